//! The stand-in for AWS, and the linters of our templates.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
#[cfg(feature = "extended")]
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

use crate::cache::{self, Ready, feed, in_cache, short_hex};
use crate::go::{GoTool, build};
use crate::{ToolError, or_panic, python};

pub(crate) const AWS_PREVIEWS: GoTool =
    GoTool { name: "pulumi-resource-aws", folder: "aws-schema", package: ".", link: "" };

pub(crate) const AWS_STAND_IN: &str = "aws-stand-in";

pub(crate) const AWS_CLI: &str = "aws-cli";

#[cfg(feature = "extended")]
pub(crate) const LOCALSTACK: &str = "localstack";

pub(crate) const TEMPLATE_LINTERS: &str = "template-linters";

/// The Python with the stand-in for AWS, and the program for it; `StandIn` of the tests runs it.
///
/// # Panics
/// If it cannot be installed; the message says what is missing.
pub fn aws_stand_in() -> (&'static Path, &'static Path) {
    static PATHS: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    let (python, program) = PATHS.get_or_init(|| {
        let python = or_panic(python::install(AWS_STAND_IN)).path.join("bin").join("python");
        (python, cache::sources(AWS_STAND_IN).join("start.py"))
    });
    (python, program)
}

/// The Python with the AWS CLI, which `-m awscli` runs.
///
/// # Panics
/// If it cannot be installed.
pub fn aws_cli_python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| or_panic(python::install(AWS_CLI)).path.join("bin").join("python"))
}

/// Installs LocalStack, which runs on one version of Python only.
#[cfg(feature = "extended")]
pub(crate) fn install_localstack() -> Result<Ready, ToolError> {
    let named = std::env::var_os("STATEWRIGHT_PYTHON_3_13").map(PathBuf::from);
    let python = named.unwrap_or_else(|| PathBuf::from("python3.13"));
    let version = Command::new(&python).arg("-V").stdin(Stdio::null()).output();
    match version {
        Ok(version) if version.status.success() && version.stdout.starts_with(b"Python 3.13.") => {
            python::install_for(LOCALSTACK, &python)
        }
        _ => Err(ToolError::Python313Missing { tool: LOCALSTACK, tried: python }),
    }
}

/// The Python with LocalStack, and the program for it; `StandIn` of the tests runs it.
///
/// # Panics
/// If it cannot be installed; the message says what is missing.
#[cfg(feature = "extended")]
pub fn localstack() -> (&'static Path, PathBuf) {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    let python = PYTHON.get_or_init(|| or_panic(install_localstack()).path.join("bin").join("python"));
    (python, cache::sources(LOCALSTACK).join("start.py"))
}

/// The Python with the linters of templates: cfn-lint and those of SAM.
///
/// # Panics
/// If they cannot be installed; the message says what is missing.
pub fn template_python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| or_panic(python::install(TEMPLATE_LINTERS)).path.join("bin").join("python"))
}

/// A SAM template after its expansion to CloudFormation (`sam`), or a YAML file without changes (`yaml`).
///
/// # Panics
/// If it cannot be read.
pub fn template(kind: &str, file: &Path) -> serde_json::Value {
    let look = cache::sources(TEMPLATE_LINTERS).join("look.py");
    let arguments = [look.as_os_str(), OsStr::new(kind), file.as_os_str()];
    let text = or_panic(python::run_python(TEMPLATE_LINTERS, template_python(), &arguments));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// A provider that replaces the AWS provider in previews of the program in `infra/pulumi`.
#[derive(Debug)]
pub struct AwsPreviews {
    /// The plugin, `pulumi-resource-aws`. Its environment names the schema: `STATEWRIGHT_AWS_SCHEMA`.
    pub provider: PathBuf,
    /// The types of the AWS provider for the resources of the program.
    pub schema: PathBuf,
}

/// What previews of the program in `infra/pulumi` need in addition to the client.
///
/// # Panics
/// If it cannot be built; the message says what is missing.
pub fn aws_previews() -> &'static AwsPreviews {
    static PREVIEWS: OnceLock<AwsPreviews> = OnceLock::new();
    PREVIEWS.get_or_init(|| {
        let provider = or_panic(build(&AWS_PREVIEWS)).path;
        AwsPreviews { provider, schema: or_panic(schema()).path.join(SCHEMA) }
    })
}

pub(crate) const AWS_SCHEMA: &str = "aws-schema";

const SCHEMA: &str = "schema.json";

/// Makes the schema of the program's types from the provider's package for Python, which is not kept.
pub(crate) fn schema() -> Result<Ready, ToolError> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra/pulumi/Pulumi.yaml");
    let text = fs::read_to_string(&program).map_err(ToolError::io("cannot read", &program))?;
    let types = text.lines().filter_map(|line| line.trim().strip_prefix("type: "));
    let types: BTreeSet<&str> = types.filter(|name| name.starts_with("aws:")).collect();
    let sources = cache::sources(AWS_SCHEMA);
    let (script, requirements) = (sources.join("schema.py"), sources.join("requirements.txt"));
    let mut key = Sha256::new();
    for file in [&script, &requirements] {
        feed(&mut key, &fs::read(file).map_err(ToolError::io("cannot read", file))?);
    }
    types.iter().for_each(|name| feed(&mut key, name.as_bytes()));
    in_cache(AWS_SCHEMA, &short_hex(key), |folder| {
        let run = |arguments: &[&OsStr]| python::run_python(AWS_SCHEMA, Path::new("python3"), arguments);
        let wheels = tempfile::tempdir().map_err(ToolError::io("cannot make a folder in", folder))?;
        let to = [OsStr::new("--dest"), wheels.path().as_os_str()];
        let from = [OsStr::new("--requirement"), requirements.as_os_str()];
        let pip = python::pip("download").map(OsStr::new).into_iter().chain([OsStr::new("--no-deps")]);
        run(&pip.chain(to).chain(from).collect::<Vec<_>>())?;
        let reading = || ToolError::io("cannot read", wheels.path());
        let mut schema = Vec::new();
        for wheel in fs::read_dir(wheels.path()).map_err(reading())? {
            let wheel = wheel.map_err(reading())?.path();
            let arguments = [script.as_os_str(), wheel.as_os_str()];
            schema = run(&arguments.into_iter().chain(types.iter().map(OsStr::new)).collect::<Vec<_>>())?;
        }
        let file = folder.join(SCHEMA);
        fs::write(&file, schema).map_err(ToolError::io("cannot write", &file))
    })
}
