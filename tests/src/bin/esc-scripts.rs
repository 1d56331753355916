//! Runs the scripts that are published with the `esc` CLI against a server of ours, and says which of them end as they are published.
#![expect(clippy::print_stdout, reason = "printing what it found is what it is for")]

use std::process::ExitCode;

use clap::Parser;
use statewright_tests::app::TestApp;
use statewright_tests::tools;
use tokio::process::Command;

/// Run the published scripts of the `esc` CLI against a server of this tree.
#[derive(Debug, Parser)]
struct Args {
    /// Only this script, such as env-set, with all that it printed.
    #[arg(long)]
    only: Option<String>,
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let args = Args::parse();
    let (program, folder) = tools::esc_scripts();
    let app = TestApp::memory().await;
    let token = app.member_of(&["test-user", "test-org", "test-org-2"], "test-user", "scripts").await;
    let which = args.only.as_ref().map_or("^TestCLI$".to_owned(), |name| format!("^TestCLI$/^{name}.yaml$"));
    let run = Command::new(program)
        .args(["-test.v", "-test.run", &which])
        .current_dir(folder)
        .env("STATEWRIGHT_URL", &app.url)
        .env("STATEWRIGHT_TOKEN", token)
        .output()
        .await?;
    let text = String::from_utf8_lossy(&run.stdout);
    if args.only.is_some() {
        println!("{text}{}", String::from_utf8_lossy(&run.stderr));
    }
    let ended = |mark: &str| -> Vec<String> {
        text.lines()
            .filter_map(|line| line.trim().strip_prefix(mark)?.split(".yaml").next().map(str::to_owned))
            .collect()
    };
    let (same, different) = (ended("--- PASS: TestCLI/"), ended("--- FAIL: TestCLI/"));
    for name in &different {
        println!("differs: {name}");
    }
    println!("{} of {} scripts end as they are published", same.len(), same.len() + different.len());
    Ok(if same.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
