//! What an operator is told of a store that was looked at.

/// One thing that was looked at, and what it is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The part that it is of, with its name: `the table statewright`.
    pub of: String,
    /// The thing, in a few words.
    pub what: &'static str,
    /// What it is like.
    pub state: State,
    /// What was found, in words.
    pub found: String,
    /// What to do; `None` where there is nothing.
    pub remedy: Option<String>,
}

/// How good or bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// As it should be.
    Good,
    /// It works, and could be better.
    Advice,
    /// It does not work, or something is in danger.
    Wrong,
    /// It could not be looked at.
    Unknown,
}

impl State {
    /// The state in a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Advice => "advice",
            Self::Wrong => "wrong",
            Self::Unknown => "unknown",
        }
    }
}
