//! Builds every client and helper program that the tests run, one line for each.
//!
//! The tests do the same on first use. This program does it ahead of time, in parallel with the build of the
//! tests.

use std::process::ExitCode;

use statewright_tools::all;
use statewright_tools::stopwatch::Stopwatch;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command's output")]
fn main() -> ExitCode {
    let tools = all();
    for (number, (name, build)) in (1..).zip(&tools) {
        let watch = Stopwatch::start();
        match build() {
            Ok(ready) => {
                let (how, seconds) =
                    (if ready.built { "built" } else { "cached" }, watch.elapsed().as_secs_f64());
                println!(
                    "[{number:>2}/{}] {name:<24} {how:<6} {seconds:>7.1} s  {}",
                    tools.len(),
                    ready.path.display()
                );
            }
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
