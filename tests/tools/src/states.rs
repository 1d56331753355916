//! The clients of Terraform states.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::go::{GoTool, build};
use crate::or_panic;

/// The version of OpenTofu; `tests/tools/tofu/go.mod` pins the same one.
pub const TOFU_VERSION: &str = "1.12.6";

/// The version of Terraform, the last under a free license; `tests/tools/terraform/go.mod` pins the same one.
pub const TERRAFORM_VERSION: &str = "1.5.7";

pub(crate) const TOFU: GoTool =
    GoTool { name: "tofu", folder: "tofu", package: "github.com/opentofu/opentofu/cmd/tofu", link: "" };

pub(crate) const TERRAFORM: GoTool =
    GoTool { name: "terraform", folder: "terraform", package: "github.com/hashicorp/terraform", link: "" };

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
