//! `statewright completions`.

use clap_complete::Shell;

use crate::output::Output;

/// Print the completion script for a shell, for example: `statewright completions bash >
/// ~/.local/share/bash-completion/completions/statewright`.
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

/// Prints the script for this command line.
pub(crate) fn run(
    completions: &Completions,
    mut command_line: clap::Command,
    out: Output,
) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut command_line, "statewright", &mut script);
    out.text(&String::from_utf8_lossy(&script))
}
