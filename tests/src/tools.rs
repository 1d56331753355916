//! Builds the programs that the tests run: the real clients, our test provider, helpers written in Go, and the stand-in
//! for AWS, which is written in Python.
//!
//! Each Go tool is a folder of `tests/tools` with its own `go.mod` and `go.sum`, so what is built is pinned by version
//! and checksum; the Python one has its `requirements.txt`. The result lies in a cache outside the tree, under a name that carries the SHA-256 of everything that
//! went into it: a second run finds it there, a changed source or version makes a new one beside it, and nothing has
//! to be cleaned for correctness. The folder is `$STATEWRIGHT_TOOLS_CACHE`, else `$XDG_CACHE_HOME/statewright-tools`,
//! else `$HOME/.cache/statewright-tools`.
//!
//! Any number of threads and processes may ask at once: one builds under a file lock, the others wait for it.
//!
//! What hands out a path panics if there is none, with one message that says what to install or what the compiler said:
//! a test cannot go on without its tool. [`build_all`] returns the same as an error.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};
use statewright_shared::api::routes::Group;

use crate::stopwatch::Stopwatch;

/// The version of the Pulumi CLI that the tests run; `tests/tools/pulumi-cli/go.mod` pins the same one.
pub const PULUMI_VERSION: &str = "3.274.1";

/// The version of the older Pulumi CLI of an extended run; `tests/tools/pulumi-cli-older/go.mod` pins the same one. It
/// asks for journals on request only, and begins updates in separate calls.
pub const OLDER_PULUMI_VERSION: &str = "3.224.0";

/// The version of the Pulumi YAML language host; `tests/tools/pulumi-language-yaml/go.mod` pins the same one.
pub const PULUMI_YAML_VERSION: &str = "1.25.0";

/// The version of OpenTofu; `tests/tools/tofu/go.mod` pins the same one.
pub const TOFU_VERSION: &str = "1.12.6";

/// The version of Terraform, the last under a free licence; `tests/tools/terraform/go.mod` pins the same one.
pub const TERRAFORM_VERSION: &str = "1.5.7";

/// What keeps a tool from being built.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// No `go` on the `PATH`.
    #[error(
        "building {tool} needs Go {needed} or later, and there is no `go` on the PATH: install it from https://go.dev/dl/"
    )]
    GoMissing {
        /// The tool that was to be built.
        tool: &'static str,
        /// The version that its `go.mod` asks for.
        needed: String,
    },
    /// No Python 3.13.
    #[cfg(feature = "extended")]
    #[error(
        "{tool} needs Python 3.13 with venv and pip, and {} is none: put `python3.13` on the PATH, or name it with \
         STATEWRIGHT_PYTHON_3_13",
        tried.display()
    )]
    Python313Missing {
        /// The tool that needs it.
        tool: &'static str,
        /// What was tried.
        tried: PathBuf,
    },
    /// The installed Go is older than the tool's `go.mod` asks for.
    #[error(
        "building {tool} needs Go {needed} or later, and `go` on the PATH is {found}: install a newer one from https://go.dev/dl/"
    )]
    GoTooOld {
        /// The tool that was to be built.
        tool: &'static str,
        /// The version that its `go.mod` asks for.
        needed: String,
        /// What `go env GOVERSION` says.
        found: String,
    },
    /// No `python3` on the `PATH`.
    #[error("{tool} needs Python 3.10 or later with venv and pip, and there is no `python3` on the PATH")]
    PythonMissing {
        /// The tool that was to be installed.
        tool: &'static str,
    },
    /// Neither of the variables that name the cache folder is set.
    #[error("nowhere to keep built tools: set STATEWRIGHT_TOOLS_CACHE or HOME")]
    NoCache,
    /// The compiler refused; its output says why.
    #[error(
        "building {tool} failed ({status}); what it needs is fetched the first time, which takes the network:\n{output}"
    )]
    Build {
        /// The tool that was to be built.
        tool: &'static str,
        /// How the compiler ended.
        status: String,
        /// What it printed.
        output: String,
    },
    /// The file system refused.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, to which path.
        what: String,
        /// The refusal.
        source: io::Error,
    },
}

impl ToolError {
    fn io(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what: format!("{what} {}", path.display()), source }
    }
}

/// One Go program: a folder of `tests/tools`, and how to build it.
#[derive(Debug)]
struct GoTool {
    /// The name of the program that comes out, and of its place in the cache.
    name: &'static str,
    /// The folder below `tests/tools`.
    folder: &'static str,
    /// The package to build, as seen from the folder.
    package: &'static str,
    /// What the linker is told besides leaving out debug tables.
    link: &'static str,
}

const PULUMI: GoTool = GoTool {
    name: "pulumi",
    folder: "pulumi-cli",
    package: "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
    // Without it the CLI works but does not know its own version.
    link: " -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.274.1",
};

#[cfg(any(feature = "extended", test))]
const OLDER_PULUMI: GoTool = GoTool {
    folder: "pulumi-cli-older",
    link: " -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.224.0",
    ..PULUMI
};

const PULUMI_LANGUAGE_YAML: GoTool = GoTool {
    name: "pulumi-language-yaml",
    folder: "pulumi-language-yaml",
    package: "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml",
    link: "",
};

const TOFU: GoTool =
    GoTool { name: "tofu", folder: "tofu", package: "github.com/opentofu/opentofu/cmd/tofu", link: "" };

const TERRAFORM: GoTool =
    GoTool { name: "terraform", folder: "terraform", package: "github.com/hashicorp/terraform", link: "" };

const BENCH_PROVIDER: GoTool =
    GoTool { name: "pulumi-resource-bench", folder: "bench-provider", package: ".", link: "" };

const BENCH_TOOLS: GoTool = GoTool { name: "bench-tools", folder: "bench-tools", package: ".", link: "" };

const REPLAY_ORACLE: GoTool =
    GoTool { name: "replay-oracle", folder: "replay-oracle", package: ".", link: "" };

const ESC_ORACLE: GoTool = GoTool { name: "esc-oracle", folder: "esc-oracle", package: ".", link: "" };

const CLOUD_SHAPES: GoTool = GoTool { name: "cloud-shapes", folder: "cloud-shapes", package: ".", link: "" };

const AWS_PREVIEWS: GoTool =
    GoTool { name: "pulumi-resource-aws", folder: "aws-schema", package: ".", link: "" };

/// The bench program is its own language host: it looks at the name that it is started under.
const BENCH_LANGUAGE_HOST: &str = "pulumi-language-bench";

/// The folder that holds what a client needs, by its name in the cache.
const PULUMI_PROGRAMS: &str = "pulumi-bin";

/// A tool that is ready to run.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The program, or for a set of programs their folder.
    pub path: PathBuf,
    /// False if it was found in the cache.
    pub built: bool,
}

/// A folder for the `PATH` of a Pulumi client: `pulumi`, `pulumi-language-yaml`, `pulumi-resource-bench` and
/// `pulumi-language-bench`.
///
/// # Panics
/// If one of them cannot be built; the message says what is missing.
pub fn pulumi_bin_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| or_panic(pulumi_programs(&PULUMI)).path)
}

/// The same with the older client.
///
/// # Panics
/// If one of them cannot be built; the message says what is missing.
#[cfg(feature = "extended")]
pub fn older_pulumi_bin_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| or_panic(pulumi_programs(&OLDER_PULUMI)).path)
}

/// OpenTofu's client, `tofu`.
///
/// # Panics
/// If it cannot be built; the message says what is missing.
pub fn tofu() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| or_panic(build(&TOFU)).path)
}

/// Terraform's client, `terraform`.
///
/// # Panics
/// If it cannot be built; the message says what is missing.
pub fn terraform() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| or_panic(build(&TERRAFORM)).path)
}

/// The program that asks Pulumi's own journal replayer; see its README for the questions.
///
/// # Panics
/// If it cannot be built; the message says what is missing.
pub fn replay_oracle() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| or_panic(build(&REPLAY_ORACLE)).path)
}

/// The program that asks the evaluator of environments that Pulumi publishes; see its README.
///
/// # Panics
/// If it cannot be built; the message says what is missing.
pub fn esc_oracle() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| or_panic(build(&ESC_ORACLE)).path)
}

/// The module that the evaluator of environments is a part of, with the cases that are published in it.
///
/// # Panics
/// If it cannot be fetched; the message says what is missing.
pub fn esc_module() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| or_panic(go_module(&ESC_ORACLE, "github.com/pulumi/pulumi/sdk/v3")))
}

/// The published scripts of the `esc` CLI as a program that runs them against a server, and the folder that it has to be run in.
///
/// The package that has them is not built where it is published: its test is changed to speak to a server.
///
/// # Panics
/// If it cannot be built; the message says what is missing.
pub fn esc_scripts() -> (&'static Path, &'static Path) {
    static PATHS: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    let (program, folder) = PATHS.get_or_init(|| {
        let (ready, folder) = or_panic(build_esc_scripts());
        (ready.path.join(ESC_SCRIPTS), folder)
    });
    (program, folder)
}

const ESC_SCRIPTS: &str = "esc-scripts";

/// The program, and the folder of its package.
fn build_esc_scripts() -> Result<(Ready, PathBuf), ToolError> {
    const NAME: &str = ESC_SCRIPTS;
    const PACKAGE: &str = "cmd/esc/cli";
    let served = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").join(NAME).join("served.go");
    let source = fs::read_to_string(&served).map_err(ToolError::io("cannot read", &served))?;
    let cli = go_module(&PULUMI, "github.com/pulumi/pulumi/pkg/v3")?;
    let sdk = go_module(&PULUMI, "github.com/pulumi/pulumi/sdk/v3")?;
    let mut key = Sha256::new();
    for part in [source.as_bytes(), cli.as_os_str().as_encoded_bytes(), sdk.as_os_str().as_encoded_bytes()] {
        feed(&mut key, part);
    }
    let ready = in_cache(NAME, &short_hex(key), |folder| {
        let tree = tempfile::tempdir().map_err(ToolError::io("cannot make a folder in", folder))?;
        // One names the other as its neighbour.
        copy_tree(&cli, &tree.path().join("pkg"))?;
        copy_tree(&sdk, &tree.path().join("sdk"))?;
        let package = tree.path().join("pkg").join(PACKAGE);
        let test = package.join("cli_test.go");
        let mut text = fs::read_to_string(&test).map_err(ToolError::io("cannot read", &test))?;
        for (from, to) in [
            ("\t\t\t\t\t\treturn c.client\n", "\t\t\t\t\t\treturn served()\n"),
            (
                "\tcreds := workspace.Credentials{\n",
                "\tseed(environments)\n\n\tcreds := workspace.Credentials{\n",
            ),
        ] {
            text = text.replacen(from, to, 1);
        }
        for stream in ["Stdout", "Stderr"] {
            let lower = stream.to_lowercase();
            text = text.replace(
                &format!("assert.Equal(t, testcase.expected{stream}, {lower}.String())"),
                &format!("assert.Equal(t, steady(testcase.expected{stream}), steady({lower}.String()))"),
            );
        }
        fs::write(&test, text).map_err(ToolError::io("cannot write", &test))?;
        let added = package.join("served_test.go");
        fs::write(&added, &source).map_err(ToolError::io("cannot write", &added))?;
        let built = go(&tree.path().join("pkg"))
            .args(["test", "-c", "-trimpath", "-buildvcs=false", "-o"])
            .arg(folder.join(NAME))
            .arg(format!("./{PACKAGE}"))
            .output()
            .map_err(ToolError::io("cannot run go in", tree.path()))?;
        if built.status.success() {
            return Ok(());
        }
        Err(ToolError::Build {
            tool: NAME,
            status: built.status.to_string(),
            output: String::from_utf8_lossy(&built.stderr).into_owned(),
        })
    })?;
    Ok((ready, cli.join(PACKAGE)))
}

/// Copies a folder that cannot be written to into one that can.
fn copy_tree(from: &Path, to: &Path) -> Result<(), ToolError> {
    fs::create_dir_all(to).map_err(ToolError::io("cannot make", to))?;
    for entry in fs::read_dir(from).map_err(ToolError::io("cannot read", from))? {
        let path = entry.map_err(ToolError::io("cannot read", from))?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_tree(&path, &target)?;
        } else {
            let text = fs::read(&path).map_err(ToolError::io("cannot read", &path))?;
            fs::write(&target, text).map_err(ToolError::io("cannot write", &target))?;
        }
    }
    Ok(())
}

/// The folder of a module that a tool is made of, at the version that its `go.mod` pins.
fn go_module(tool: &GoTool, module: &str) -> Result<PathBuf, ToolError> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").join(tool.folder);
    check_go(tool.name, &sources)?;
    let fetched = go(&sources)
        .args(["mod", "download", "-json", module])
        .output()
        .map_err(ToolError::io("cannot run go in", &sources))?;
    let answer: serde_json::Value = serde_json::from_slice(&fetched.stdout).unwrap_or_default();
    answer["Dir"].as_str().filter(|_| fetched.status.success()).map(PathBuf::from).ok_or_else(|| {
        ToolError::Build {
            tool: tool.name,
            status: fetched.status.to_string(),
            output: String::from_utf8_lossy(&fetched.stderr).into_owned(),
        }
    })
}

/// The program that tells what the official client package of Pulumi Cloud asks for and takes, as JSON; see its source.
///
/// # Panics
/// If it cannot be built; the message says what is missing.
pub fn cloud_shapes() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| or_panic(build(&CLOUD_SHAPES)).path)
}

/// The counting and recording proxy and the replayer of its recordings; see its README.
///
/// # Panics
/// If it cannot be built; the message says what is missing.
pub fn bench_tools() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| or_panic(build(&BENCH_TOOLS)).path)
}

/// The Python that has the stand-in for AWS, and the program to give it; see [`crate::aws::StandIn`], which runs it.
///
/// # Panics
/// If it cannot be installed; the message says what is missing.
pub fn aws_stand_in() -> (&'static Path, &'static Path) {
    static PATHS: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    let (python, program) = PATHS.get_or_init(|| {
        let python = or_panic(install_python(AWS_STAND_IN)).path.join("bin").join("python");
        (python, python_sources(AWS_STAND_IN).join("start.py"))
    });
    (python, program)
}

/// The `statewright` binary of this tree, debug build.
///
/// # Panics
/// If it does not compile; the message is the compiler's.
pub fn statewright() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| or_panic(cargo_build("statewright", &["statewright"], &["--workspace"])))
}

/// The folder with the programs of all functions of this tree, debug builds: `statewright-` and the function's name each.
///
/// # Panics
/// If they do not compile; the message is the compiler's.
pub fn functions() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let names: Vec<String> = function_names().map(|name| format!("statewright-{name}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let program = or_panic(cargo_build("functions", &names, &["--workspace"]));
        program.parent().map_or_else(PathBuf::new, Path::to_owned)
    })
}

/// All functions: a group of routes each, and the sweep.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    Group::ALL.into_iter().map(Group::name).chain(["sweep"])
}

/// The `statewright` binary of this tree as it is shipped: the one to measure.
///
/// # Panics
/// If it does not compile; the message is the compiler's.
pub fn statewright_dist() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let shipped = ["--profile", "dist", "--package", "statewright", "--features", "dist"];
        or_panic(cargo_build("statewright", &["statewright"], &shipped))
    })
}

fn or_panic<T>(ready: Result<T, ToolError>) -> T {
    ready.unwrap_or_else(|error| panic!("{error}"))
}

/// The programs of [`pulumi_bin_dir`] in one folder, with this client among them.
fn pulumi_programs(client: &GoTool) -> Result<Ready, ToolError> {
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
        // A program's path carries the hash of what it was built from.
        feed(&mut key, name.as_bytes());
        feed(&mut key, program.as_os_str().as_encoded_bytes());
    }
    in_cache(PULUMI_PROGRAMS, &short_hex(key), |folder| {
        for (name, program) in &programs {
            // Hard links, not symbolic ones: the CLI follows those to find what lies beside it.
            let target = folder.join(name);
            fs::hard_link(program, &target)
                .or_else(|_| fs::copy(program, &target).map(drop))
                .map_err(ToolError::io("cannot put in place", &target))?;
        }
        Ok(())
    })
}

/// Builds one tool, or finds it built.
fn build(tool: &GoTool) -> Result<Ready, ToolError> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").join(tool.folder);
    let flags = [
        "-trimpath".to_owned(),
        "-mod=readonly".to_owned(),
        "-buildvcs=false".to_owned(),
        format!("-ldflags=-s -w{}", tool.link),
    ];
    let mut key = Sha256::new();
    for (name, value) in GO_ENVIRONMENT {
        feed(&mut key, name.as_bytes());
        feed(&mut key, value.as_bytes());
    }
    for part in
        [std::env::consts::OS, std::env::consts::ARCH].into_iter().chain(flags.iter().map(String::as_str))
    {
        feed(&mut key, part.as_bytes());
    }
    feed(&mut key, tool.package.as_bytes());
    hash_sources(&sources, &mut key)?;
    let ready = in_cache(tool.name, &short_hex(key), |folder| {
        check_go(tool.name, &sources)?;
        let built = go(&sources)
            .arg("build")
            .args(&flags)
            .arg("-o")
            .arg(folder.join(tool.name))
            .arg(tool.package)
            .output()
            .map_err(ToolError::io("cannot run go in", &sources))?;
        if built.status.success() {
            return Ok(());
        }
        Err(ToolError::Build {
            tool: tool.name,
            status: built.status.to_string(),
            output: String::from_utf8_lossy(&built.stderr).into_owned(),
        })
    })?;
    Ok(Ready { path: ready.path.join(tool.name), built: ready.built })
}

const AWS_STAND_IN: &str = "aws-stand-in";

const AWS_CLI: &str = "aws-cli";

#[cfg(feature = "extended")]
const LOCALSTACK: &str = "localstack";

const TEMPLATE_LINTERS: &str = "template-linters";
const AUTOMATION_API: &str = "automation-api";

/// The folder of what a tool in Python needs beside Python itself.
fn python_sources(tool: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").join(tool)
}

/// Installs what `requirements.txt` of a tool names into an environment of its own, or finds it there.
fn install_python(tool: &'static str) -> Result<Ready, ToolError> {
    install_for(tool, Path::new("python3"))
}

/// The same for this Python.
fn install_for(tool: &'static str, interpreter: &Path) -> Result<Ready, ToolError> {
    let requirements = python_sources(tool).join("requirements.txt");
    let mut key = Sha256::new();
    // What is installed is for one version of Python.
    feed(&mut key, &run_python(tool, interpreter, &["-VV"])?);
    feed(&mut key, &fs::read(&requirements).map_err(ToolError::io("cannot read", &requirements))?);
    in_cache(tool, &short_hex(key), |folder| {
        run_python(tool, interpreter, &["-m".as_ref(), "venv".as_ref(), folder.as_os_str()])?;
        // Through `python`, not through `pip`, whose first line names the folder that is about to be renamed.
        let pip =
            ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--requirement"];
        let arguments = pip.iter().map(OsStr::new).chain([requirements.as_os_str()]);
        run_python(tool, &folder.join("bin").join("python"), &arguments.collect::<Vec<_>>()).map(drop)
    })
}

/// Python with the AWS CLI, which `-m awscli` is.
///
/// # Panics
/// If it cannot be installed.
pub fn aws_cli_python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| or_panic(install_python(AWS_CLI)).path.join("bin").join("python"))
}

/// Installs LocalStack, which runs on one version of Python alone.
#[cfg(feature = "extended")]
fn install_localstack() -> Result<Ready, ToolError> {
    let named = std::env::var_os("STATEWRIGHT_PYTHON_3_13").map(PathBuf::from);
    let python = named.unwrap_or_else(|| PathBuf::from("python3.13"));
    let version = Command::new(&python).arg("-V").stdin(Stdio::null()).output();
    match version {
        Ok(version) if version.status.success() && version.stdout.starts_with(b"Python 3.13.") => {
            install_for(LOCALSTACK, &python)
        }
        _ => Err(ToolError::Python313Missing { tool: LOCALSTACK, tried: python }),
    }
}

/// The Python that has LocalStack, and the program to give it; see [`crate::aws::StandIn`], which runs it.
///
/// # Panics
/// If it cannot be installed; the message says what is missing.
#[cfg(feature = "extended")]
pub fn localstack() -> (&'static Path, PathBuf) {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    let python = PYTHON.get_or_init(|| or_panic(install_localstack()).path.join("bin").join("python"));
    (python, python_sources(LOCALSTACK).join("start.py"))
}

/// Python with Pulumi's Automation API, and a program that uses it.
///
/// # Panics
/// If it cannot be installed.
pub fn automation_api() -> (&'static Path, PathBuf) {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    let python =
        PYTHON.get_or_init(|| or_panic(install_python(AUTOMATION_API)).path.join("bin").join("python"));
    (python, python_sources(AUTOMATION_API).join("conflict.py"))
}

/// What Python printed.
fn run_python(
    tool: &'static str,
    python: &Path,
    arguments: &[impl AsRef<OsStr>],
) -> Result<Vec<u8>, ToolError> {
    let ran = Command::new(python).args(arguments).stdin(Stdio::null()).output().map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            ToolError::PythonMissing { tool }
        } else {
            ToolError::io("cannot run", python)(error)
        }
    })?;
    if ran.status.success() {
        return Ok(ran.stdout);
    }
    Err(ToolError::Build {
        tool,
        status: ran.status.to_string(),
        // Which of the two it complains on depends on the module.
        output: String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned(),
    })
}

/// Python with the linters of templates, cfn-lint and those of SAM.
///
/// # Panics
/// If they cannot be installed; the message says what is missing.
pub fn template_python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| or_panic(install_python(TEMPLATE_LINTERS)).path.join("bin").join("python"))
}

/// A SAM template as the CloudFormation template that it becomes (`sam`), or a YAML file as it is (`yaml`).
///
/// # Panics
/// If it cannot be read.
pub fn template(kind: &str, file: &Path) -> serde_json::Value {
    let look = python_sources(TEMPLATE_LINTERS).join("look.py");
    let arguments = [look.as_os_str(), OsStr::new(kind), file.as_os_str()];
    let text = or_panic(run_python(TEMPLATE_LINTERS, template_python(), &arguments));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// A provider that takes the place of AWS's when the program in `infra/pulumi` is previewed.
#[derive(Debug)]
pub struct AwsPreviews {
    /// The plugin, `pulumi-resource-aws`. Its environment names the schema: `STATEWRIGHT_AWS_SCHEMA`.
    pub provider: PathBuf,
    /// The types of the AWS provider, of those resources that the program has.
    pub schema: PathBuf,
}

/// What previews of the program in `infra/pulumi` need beside the client.
///
/// # Panics
/// If it cannot be built; the message says what is missing.
pub fn aws_previews() -> &'static AwsPreviews {
    static PREVIEWS: OnceLock<AwsPreviews> = OnceLock::new();
    PREVIEWS.get_or_init(|| {
        let provider = or_panic(build(&AWS_PREVIEWS)).path;
        AwsPreviews { provider, schema: or_panic(aws_schema()).path.join(SCHEMA) }
    })
}

const AWS_SCHEMA: &str = "aws-schema";

const SCHEMA: &str = "schema.json";

/// Makes the schema of the types that the program has, from the provider's package for Python, which is not kept.
fn aws_schema() -> Result<Ready, ToolError> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra/pulumi/Pulumi.yaml");
    let text = fs::read_to_string(&program).map_err(ToolError::io("cannot read", &program))?;
    let types = text.lines().filter_map(|line| line.trim().strip_prefix("type: "));
    let types: BTreeSet<&str> = types.filter(|name| name.starts_with("aws:")).collect();
    let sources = python_sources(AWS_SCHEMA);
    let (script, requirements) = (sources.join("schema.py"), sources.join("requirements.txt"));
    let mut key = Sha256::new();
    for file in [&script, &requirements] {
        feed(&mut key, &fs::read(file).map_err(ToolError::io("cannot read", file))?);
    }
    types.iter().for_each(|name| feed(&mut key, name.as_bytes()));
    in_cache(AWS_SCHEMA, &short_hex(key), |folder| {
        let python = |arguments: &[&OsStr]| run_python(AWS_SCHEMA, Path::new("python3"), arguments);
        let wheels = tempfile::tempdir().map_err(ToolError::io("cannot make a folder in", folder))?;
        let pip =
            ["-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps"];
        let to = [OsStr::new("--dest"), wheels.path().as_os_str()];
        let from = [OsStr::new("--requirement"), requirements.as_os_str()];
        python(&pip.map(OsStr::new).into_iter().chain(to).chain(from).collect::<Vec<_>>())?;
        let reading = || ToolError::io("cannot read", wheels.path());
        let mut schema = Vec::new();
        for wheel in fs::read_dir(wheels.path()).map_err(reading())? {
            let wheel = wheel.map_err(reading())?.path();
            let arguments = [script.as_os_str(), wheel.as_os_str()];
            schema = python(&arguments.into_iter().chain(types.iter().map(OsStr::new)).collect::<Vec<_>>())?;
        }
        let file = folder.join(SCHEMA);
        fs::write(&file, schema).map_err(ToolError::io("cannot write", &file))
    })
}

/// What every build has in its environment, whatever the caller has in theirs: no flags and no workspace of their own, no
/// other Go fetched behind their back, no C. Without C a program runs on any machine of its kind, so a cache may be carried
/// from one image to the next, and no C compiler is needed.
const GO_ENVIRONMENT: [(&str, &str); 4] =
    [("CGO_ENABLED", "0"), ("GOFLAGS", ""), ("GOTOOLCHAIN", "local"), ("GOWORK", "off")];

/// `go` in a folder, deaf to what the environment says about how to build, but not about where modules come from.
fn go(folder: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(folder).envs(GO_ENVIRONMENT).stdin(Stdio::null());
    command
}

/// Is there a Go that is new enough for the `go.mod` in this folder?
fn check_go(tool: &'static str, sources: &Path) -> Result<(), ToolError> {
    let module = sources.join("go.mod");
    let text = fs::read_to_string(&module).map_err(ToolError::io("cannot read", &module))?;
    let needed = text.lines().find_map(|line| line.strip_prefix("go ")).unwrap_or("1.0").trim().to_owned();
    // Asked outside of the module: inside, a Go that is too old refuses to answer at all.
    let outside = std::env::temp_dir();
    let answer = match go(&outside).args(["env", "GOVERSION"]).output() {
        Ok(answer) => answer,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ToolError::GoMissing { tool, needed });
        }
        Err(error) => return Err(ToolError::io("cannot run go in", &outside)(error)),
    };
    let found = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    if go_version(&found) < go_version(&needed) {
        return Err(ToolError::GoTooOld { tool, needed, found });
    }
    Ok(())
}

/// `go1.26.8`, `1.26.6` or `go1.27rc1` as numbers that compare; what follows the digits of a part is dropped.
fn go_version(text: &str) -> Vec<u32> {
    text.trim_start_matches("go")
        .split('.')
        .map(|part| {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            part[..digits].parse().unwrap_or(0)
        })
        .collect()
}

/// The folder of the cache for this name and key, made by `fill` if it is not there.
///
/// What is there is whole: it is filled under another name and renamed.
fn in_cache(
    name: &str,
    key: &str,
    fill: impl FnOnce(&Path) -> Result<(), ToolError>,
) -> Result<Ready, ToolError> {
    let cache = cache_folder()?;
    let finished = cache.join(format!("{name}-{key}"));
    if finished.is_dir() {
        return Ok(Ready { path: finished, built: false });
    }
    fs::create_dir_all(&cache).map_err(ToolError::io("cannot make", &cache))?;
    let lock_path = cache.join(format!("{name}-{key}.lock"));
    let lock = File::create(&lock_path).map_err(ToolError::io("cannot make", &lock_path))?;
    // Held until `lock` is dropped, and by nobody longer than their process lives.
    lock.lock().map_err(ToolError::io("cannot lock", &lock_path))?;
    if finished.is_dir() {
        return Ok(Ready { path: finished, built: false });
    }
    let filling = tempfile::Builder::new()
        .prefix(&format!(".{name}-"))
        .tempdir_in(&cache)
        .map_err(ToolError::io("cannot make a folder in", &cache))?;
    fill(filling.path())?;
    fs::rename(filling.path(), &finished).map_err(ToolError::io("cannot rename to", &finished))?;
    // It moved: there is nothing left to remove.
    let _ = filling.keep();
    Ok(Ready { path: finished, built: true })
}

fn cache_folder() -> Result<PathBuf, ToolError> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("STATEWRIGHT_TOOLS_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("statewright-tools")))
        .or_else(|| Some(set("HOME")?.join(".cache").join("statewright-tools")))
        .ok_or(ToolError::NoCache)
        // Go runs in the folder of its sources, where a relative path would mean another place.
        .and_then(|folder| std::path::absolute(&folder).map_err(ToolError::io("cannot find", &folder)))
}

/// Hashes names and contents of all files of a folder, in order of name; documentation is no source.
fn hash_sources(folder: &Path, key: &mut Sha256) -> Result<(), ToolError> {
    let reading = || ToolError::io("cannot read", folder);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(reading())? {
        let path = entry.map_err(reading())?.path();
        if path.extension() != Some(OsStr::new("md")) {
            files.push(path);
        }
    }
    files.sort();
    for file in files {
        feed(key, file.file_name().unwrap_or_default().as_encoded_bytes());
        feed(key, &fs::read(&file).map_err(ToolError::io("cannot read", &file))?);
    }
    Ok(())
}

/// Hashes a field with its length in front, so that no two sequences of fields read the same.
fn feed(key: &mut Sha256, field: &[u8]) {
    key.update((field.len() as u64).to_be_bytes());
    key.update(field);
}

/// Half of the hash is plenty to tell builds apart.
fn short_hex(key: Sha256) -> String {
    key.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Lets cargo build these binaries (or find them fresh) and tells where it put the last of them; all lie in one folder. For tests
/// they are built as a part of the workspace, so that what `cargo test` has built of them serves; for benches alone, as
/// their users build them.
fn cargo_build(tool: &'static str, binaries: &[&str], arguments: &[&str]) -> Result<PathBuf, ToolError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    // What cargo told this process about its own package. Build scripts that look at it would be run again, and all that is
    // built on them with them.
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_MANIFEST") || name.starts_with("CARGO_PKG"))
        {
            command.env_remove(name);
        }
    }
    let built = command
        .current_dir(root)
        .args(["build", "--message-format=json-render-diagnostics"])
        .args(binaries.iter().flat_map(|binary| ["--bin", binary]))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(ToolError::io("cannot run cargo in", root))?;
    // One JSON object a line; those of our binaries name their files, whatever target folder is configured.
    String::from_utf8_lossy(&built.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| binaries.iter().any(|binary| message["target"]["name"] == *binary))
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back()
        .filter(|_| built.status.success())
        .ok_or_else(|| ToolError::Build {
            tool,
            status: built.status.to_string(),
            output: String::from_utf8_lossy(&built.stderr).into_owned(),
        })
}

/// Builds or finds every tool and tells `report` the name, the outcome and the seconds of each as it goes.
///
/// # Errors
/// The first that cannot be built; those after it are not tried.
pub fn build_all(mut report: impl FnMut(&str, &Ready, f64)) -> Result<(), ToolError> {
    // The CLI first: the others find most of their packages compiled then.
    let tools = [
        PULUMI,
        BENCH_PROVIDER,
        PULUMI_LANGUAGE_YAML,
        REPLAY_ORACLE,
        ESC_ORACLE,
        BENCH_TOOLS,
        CLOUD_SHAPES,
        AWS_PREVIEWS,
        TOFU,
        TERRAFORM,
    ];
    for tool in tools {
        let watch = Stopwatch::start();
        let ready = build(&tool)?;
        report(tool.name, &ready, watch.elapsed().as_secs_f64());
    }
    let watch = Stopwatch::start();
    let (ready, _) = build_esc_scripts()?;
    report(ESC_SCRIPTS, &ready, watch.elapsed().as_secs_f64());
    let watch = Stopwatch::start();
    let ready = aws_schema()?;
    report(AWS_SCHEMA, &ready, watch.elapsed().as_secs_f64());
    for tool in [AWS_STAND_IN, AWS_CLI, TEMPLATE_LINTERS, AUTOMATION_API] {
        let watch = Stopwatch::start();
        let ready = install_python(tool)?;
        report(tool, &ready, watch.elapsed().as_secs_f64());
    }
    #[cfg(feature = "extended")]
    {
        let watch = Stopwatch::start();
        let ready = install_localstack()?;
        report(LOCALSTACK, &ready, watch.elapsed().as_secs_f64());
    }
    let clients: &[&GoTool] = &[
        &PULUMI,
        #[cfg(feature = "extended")]
        &OLDER_PULUMI,
    ];
    for client in clients {
        let watch = Stopwatch::start();
        let ready = pulumi_programs(client)?;
        report(PULUMI_PROGRAMS, &ready, watch.elapsed().as_secs_f64());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_versions_compare_by_their_numbers() {
        assert!(go_version("go1.26.8") > go_version("1.26.6"));
        assert!(go_version("go1.9") < go_version("1.26.6"));
        assert!(go_version("go1.27rc1") > go_version("1.26.6"));
        assert!(go_version("go1.26.6") >= go_version("1.26.6"));
    }

    #[test]
    fn the_versions_named_here_are_those_of_the_modules() {
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools");
        let pinned = |tool: &GoTool, module: &str| {
            let text = fs::read_to_string(tools.join(tool.folder).join("go.mod")).unwrap();
            text.lines()
                .find_map(|line| {
                    line.trim().strip_prefix(module)?.trim().strip_prefix('v').map(str::to_owned)
                })
                .unwrap()
        };
        let of = |line: String| line.split(' ').next().unwrap_or_default().to_owned();
        assert_eq!(of(pinned(&PULUMI, "github.com/pulumi/pulumi/pkg/v3 ")), PULUMI_VERSION);
        assert_eq!(of(pinned(&PULUMI_LANGUAGE_YAML, "github.com/pulumi/pulumi-yaml ")), PULUMI_YAML_VERSION);
        assert_eq!(of(pinned(&TOFU, "github.com/opentofu/opentofu ")), TOFU_VERSION);
        assert_eq!(of(pinned(&TERRAFORM, "github.com/hashicorp/terraform ")), TERRAFORM_VERSION);
        assert!(PULUMI.link.ends_with(&format!("=v{PULUMI_VERSION}")));
        assert_eq!(of(pinned(&OLDER_PULUMI, "github.com/pulumi/pulumi/pkg/v3 ")), OLDER_PULUMI_VERSION);
        assert!(OLDER_PULUMI.link.ends_with(&format!("=v{OLDER_PULUMI_VERSION}")));
    }
}
