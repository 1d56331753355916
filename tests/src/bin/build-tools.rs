//! Builds every client and helper program that the tests run, one line for each.
//!
//! The tests do the same on first use; this is for doing it ahead, as an image or a CI cache wants it.

use std::process::ExitCode;

use statewright_tests::tools;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command's output")]
fn main() -> ExitCode {
    let built = tools::build_all(|name, ready, seconds| {
        let how = if ready.built { "built" } else { "cached" };
        println!("{name:<24} {how:<6} {seconds:>7.1} s  {}", ready.path.display());
    });
    match built {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
