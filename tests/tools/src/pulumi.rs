//! The Pulumi CLI with its language hosts and providers, and the Automation API.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

use crate::cache::{self, Ready, feed, in_cache, short_hex};
use crate::go::{GoTool, build};
use crate::{ToolError, or_panic, python};

/// The version of the Pulumi CLI that the tests run; `tests/tools/pulumi-cli/go.mod` pins the same one.
pub const PULUMI_VERSION: &str = "3.274.1";

/// The version of the older Pulumi CLI of an extended run; `tests/tools/pulumi-cli-older/go.mod` pins the
/// same one. It uses journals only on request, and begins updates in separate calls.
pub const OLDER_PULUMI_VERSION: &str = "3.224.0";

/// The version of the Pulumi YAML language host; `tests/tools/pulumi-language-yaml/go.mod` pins the same one.
pub const PULUMI_YAML_VERSION: &str = "1.25.0";

pub(crate) const PULUMI: GoTool = GoTool {
    name: "pulumi",
    folder: "pulumi-cli",
    package: "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
    // Without this, the CLI works but does not know its own version.
    link: " -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.274.1",
};

#[cfg(any(feature = "extended", test))]
pub(crate) const OLDER_PULUMI: GoTool = GoTool {
    folder: "pulumi-cli-older",
    link: " -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.224.0",
    ..PULUMI
};

pub(crate) const PULUMI_LANGUAGE_YAML: GoTool = GoTool {
    name: "pulumi-language-yaml",
    folder: "pulumi-language-yaml",
    package: "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml",
    link: "",
};

pub(crate) const BENCH_PROVIDER: GoTool =
    GoTool { name: "pulumi-resource-bench", folder: "bench-provider", package: ".", link: "" };

/// The bench program is its own language host: it checks the name that it is started under.
pub(crate) const BENCH_LANGUAGE_HOST: &str = "pulumi-language-bench";

/// The name in the cache of the folder with a client's programs.
pub(crate) const PULUMI_PROGRAMS: &str = "pulumi-bin";

pub(crate) const AUTOMATION_API: &str = "automation-api";

/// A folder for the `PATH` of a Pulumi client: `pulumi`, `pulumi-language-yaml`, `pulumi-resource-bench` and
/// `pulumi-language-bench`.
///
/// # Panics
/// If one of them cannot be built; the message says what is missing.
pub fn pulumi_bin_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| or_panic(programs(&PULUMI)).path)
}

/// The same folder with the older client.
///
/// # Panics
/// If one of them cannot be built; the message says what is missing.
#[cfg(feature = "extended")]
pub fn older_pulumi_bin_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| or_panic(programs(&OLDER_PULUMI)).path)
}

/// The programs of [`pulumi_bin_dir`] in one folder, with this client.
pub(crate) fn programs(client: &GoTool) -> Result<Ready, ToolError> {
    let pulumi = build(client)?.path;
    let yaml = build(&PULUMI_LANGUAGE_YAML)?.path;
    let bench = build(&BENCH_PROVIDER)?.path;
    let programs = [
        (client.name, &pulumi),
        (PULUMI_LANGUAGE_YAML.name, &yaml),
        (BENCH_PROVIDER.name, &bench),
        (BENCH_LANGUAGE_HOST, &bench),
    ];
    let mut key = Sha256::new();
    for (name, program) in &programs {
        // The path of a program includes the hash of its sources.
        feed(&mut key, name.as_bytes());
        feed(&mut key, program.as_os_str().as_encoded_bytes());
    }
    in_cache(PULUMI_PROGRAMS, &short_hex(key), |folder| {
        for (name, program) in &programs {
            // Hard links instead of symbolic ones, because the CLI follows those to find the programs next to
            // it.
            let target = folder.join(name);
            fs::hard_link(program, &target)
                .or_else(|_| fs::copy(program, &target).map(drop))
                .map_err(ToolError::io("cannot put in place", &target))?;
        }
        Ok(())
    })
}

/// The Python with Pulumi's Automation API, and a program that uses it.
///
/// # Panics
/// If it cannot be installed.
pub fn automation_api() -> (&'static Path, PathBuf) {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    let python =
        PYTHON.get_or_init(|| or_panic(python::install(AUTOMATION_API)).path.join("bin").join("python"));
    (python, cache::sources(AUTOMATION_API).join("conflict.py"))
}
