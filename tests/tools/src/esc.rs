//! Pulumi's published code for environments: the evaluator, its module, and the scripts of the `esc` CLI.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

use crate::cache::{self, Ready, copy_tree, feed, in_cache, short_hex};
use crate::go::{GoTool, WITHOUT_DEBUG_TABLES, build, go, module};
use crate::pulumi::PULUMI;
use crate::{ToolError, or_panic};

pub(crate) const ESC_ORACLE: GoTool =
    GoTool { name: "esc-oracle", folder: "esc-oracle", package: ".", link: "" };

/// The program that runs Pulumi's published evaluator of environments; see its README.
///
/// # Panics
/// If it cannot be built; the message says what is missing.
pub fn esc_oracle() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| or_panic(build(&ESC_ORACLE)).path)
}

/// The folder of the evaluator's module, with its published test cases.
///
/// # Panics
/// If it cannot be fetched; the message says what is missing.
pub fn esc_module() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| or_panic(module(&ESC_ORACLE, "github.com/pulumi/pulumi/sdk/v3")))
}

/// The published scripts of the `esc` CLI, as a program that runs them against a server, and the folder to
/// run it in.
///
/// Their package is copied before it is built, because its test is changed to use a server.
///
/// # Panics
/// If it cannot be built; the message says what is missing.
pub fn esc_scripts() -> (&'static Path, &'static Path) {
    static PATHS: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    let (program, folder) = PATHS.get_or_init(|| {
        let (ready, folder) = or_panic(build_scripts());
        (ready.path.join(ESC_SCRIPTS), folder)
    });
    (program, folder)
}

pub(crate) const ESC_SCRIPTS: &str = "esc-scripts";

/// The program, and the folder of its package.
pub(crate) fn build_scripts() -> Result<(Ready, PathBuf), ToolError> {
    const NAME: &str = ESC_SCRIPTS;
    const PACKAGE: &str = "cmd/esc/cli";
    let served = cache::sources(NAME).join("served.go");
    let source = fs::read_to_string(&served).map_err(ToolError::io("cannot read", &served))?;
    let cli = module(&PULUMI, "github.com/pulumi/pulumi/pkg/v3")?;
    let sdk = module(&PULUMI, "github.com/pulumi/pulumi/sdk/v3")?;
    let mut key = Sha256::new();
    for part in [source.as_bytes(), cli.as_os_str().as_encoded_bytes(), sdk.as_os_str().as_encoded_bytes()] {
        feed(&mut key, part);
    }
    let ready = in_cache(NAME, &short_hex(key), |folder| {
        let tree = tempfile::tempdir().map_err(ToolError::io("cannot make a folder in", folder))?;
        // One module names the other by a relative path.
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
        let built = go(&tree.path().join("pkg"))?
            // Without `-vet=off`, Go checks the sources of all 1,400 packages in addition to compiling them.
            .args(["test", "-c", "-vet=off", "-trimpath", "-buildvcs=false", WITHOUT_DEBUG_TABLES])
            .args(["-ldflags=-s -w", "-o"])
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
