//! A program that answers each line of its input with a line of JSON.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::de::DeserializeOwned;

/// The running program. Dropping it closes its input, which ends it.
#[derive(Debug)]
pub struct Answering {
    process: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Answering {
    /// Starts a program.
    ///
    /// # Errors
    /// If the process does not start.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let questions = process.stdin.take();
        let answers = process.stdout.take().ok_or_else(|| io::Error::other("the program has no output"))?;
        Ok(Self { process, questions, answers: BufReader::new(answers) })
    }

    /// Sends a line, and reads its answer.
    ///
    /// # Errors
    /// If the program has ended, or its answer is of another type.
    pub fn ask<T: DeserializeOwned>(&mut self, line: &str) -> io::Result<T> {
        let questions =
            self.questions.as_mut().ok_or_else(|| io::Error::other("the program has no input"))?;
        writeln!(questions, "{}", line.trim_end())?;
        questions.flush()?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        Ok(serde_json::from_str(&answer)?)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        drop(self.questions.take());
        let _ = self.process.wait();
    }
}
