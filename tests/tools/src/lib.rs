//! Builds the programs that the tests run: the real clients, our test provider, helpers written in Go, and the stand-in
//! for AWS, which is written in Python.
//!
//! Each Go tool is a folder of `tests/tools` with its own `go.mod` and `go.sum`, so that versions and
//! checksums pin the result. The Python one has its `requirements.txt`. Results are stored in a cache outside
//! the tree, under names with the SHA-256 of everything that went into them. A second run finds them there. A
//! changed source or version makes a new one next to the old, so nothing has to be cleaned. The folder is
//! `$STATEWRIGHT_TOOLS_CACHE`, else `$XDG_CACHE_HOME/statewright-tools`, else
//! `$HOME/.cache/statewright-tools`.
//!
//! Any number of threads and processes may ask at the same time. One builds under a file lock, and the others
//! wait for it.
//!
//! A function that returns a path panics if the tool cannot be built, with a message that names what to
//! install or contains the compiler's output: a test cannot run without its tool. [`all`] returns the same as
//! an error.

mod aws;
mod cache;
mod error;
mod esc;
mod go;
mod helpers;
mod node;
mod pulumi;
mod python;
mod states;
pub mod stopwatch;

#[cfg(feature = "extended")]
pub use aws::localstack;
pub use aws::{AwsPreviews, aws_cli_python, aws_previews, aws_stand_in, template, template_python};
pub use cache::Ready;
pub use error::ToolError;
pub use esc::{esc_module, esc_oracle, esc_scripts};
pub use helpers::{bench_tools, cloud_shapes, replay_oracle};
pub use node::{BrowserTools, browser, build_console};
#[cfg(feature = "extended")]
pub use pulumi::older_pulumi_bin_dir;
pub use pulumi::{OLDER_PULUMI_VERSION, PULUMI_VERSION, PULUMI_YAML_VERSION, automation_api, pulumi_bin_dir};
pub use states::{TERRAFORM_VERSION, TOFU_VERSION, terraform, tofu};

fn or_panic<T>(ready: Result<T, ToolError>) -> T {
    ready.unwrap_or_else(|error| panic!("{error}"))
}

/// Builds a tool, or finds it in the cache.
type Build = fn() -> Result<Ready, ToolError>;

/// All tools by name, in the order that builds fastest.
pub fn all() -> Vec<(&'static str, Build)> {
    let tools: &[(&'static str, Build)] = &[
        // The CLI is first, so that the others find most of their packages compiled.
        ("pulumi", || go::build(&pulumi::PULUMI)),
        ("pulumi-resource-bench", || go::build(&pulumi::BENCH_PROVIDER)),
        ("pulumi-language-yaml", || go::build(&pulumi::PULUMI_LANGUAGE_YAML)),
        ("pulumi-bin", || pulumi::programs(&pulumi::PULUMI)),
        #[cfg(feature = "extended")]
        ("pulumi-bin, older", || pulumi::programs(&pulumi::OLDER_PULUMI)),
        ("replay-oracle", || go::build(&helpers::REPLAY_ORACLE)),
        ("esc-oracle", || go::build(&esc::ESC_ORACLE)),
        ("esc-scripts", || esc::build_scripts().map(|(ready, _)| ready)),
        ("bench-tools", || go::build(&helpers::BENCH_TOOLS)),
        ("cloud-shapes", || go::build(&helpers::CLOUD_SHAPES)),
        ("pulumi-resource-aws", || go::build(&aws::AWS_PREVIEWS)),
        ("tofu", || go::build(&states::TOFU)),
        #[cfg(feature = "terraform")]
        ("terraform", || go::build(&states::TERRAFORM)),
        ("aws-schema", aws::schema),
        ("aws-stand-in", || python::install(aws::AWS_STAND_IN)),
        ("aws-cli", || python::install(aws::AWS_CLI)),
        ("template-linters", || python::install(aws::TEMPLATE_LINTERS)),
        ("node", node::install_node),
        ("browser", node::install_browser),
        ("console", node::install_console),
        ("automation-api", || python::install(pulumi::AUTOMATION_API)),
        #[cfg(feature = "extended")]
        ("localstack", aws::install_localstack),
    ];
    tools.to_vec()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use crate::aws::AWS_PREVIEWS;
    use crate::esc::ESC_ORACLE;
    use crate::go::GoTool;
    use crate::helpers::{CLOUD_SHAPES, REPLAY_ORACLE};
    use crate::pulumi::{BENCH_PROVIDER, OLDER_PULUMI, PULUMI, PULUMI_LANGUAGE_YAML};
    use crate::states::{TERRAFORM, TOFU};
    use crate::*;

    #[test]
    fn the_versions_named_here_are_those_of_the_modules() {
        let pinned = |tool: &GoTool, module: &str| {
            let text = fs::read_to_string(cache::sources(tool.folder).join("go.mod")).unwrap();
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

    /// Go compiles a package once for all programs that have the same versions of it and of what it imports.
    #[test]
    fn helpers_have_the_versions_of_the_client() {
        let versions = |folder: &str| -> BTreeMap<String, String> {
            let text = fs::read_to_string(cache::sources(folder).join("go.mod")).unwrap();
            text.lines()
                .filter_map(|line| {
                    let (module, version) = line.trim().trim_start_matches("require ").split_once(" v")?;
                    Some((module.to_owned(), version.split(' ').next()?.to_owned()))
                })
                .collect()
        };
        let client = versions(PULUMI.folder);
        for helper in [&AWS_PREVIEWS, &BENCH_PROVIDER, &CLOUD_SHAPES, &ESC_ORACLE, &REPLAY_ORACLE] {
            for (module, version) in versions(helper.folder) {
                let own = helper.folder;
                let of_client = client.get(&module).unwrap_or(&version);
                assert_eq!(version, *of_client, "{own}: another version of {module} than pulumi-cli has");
            }
        }
    }
}
