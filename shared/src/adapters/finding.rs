//! What `doctor` reports about a store.

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The part of the store, with its name: `the table statewright`.
    pub of: String,
    /// The property that was checked.
    pub what: &'static str,
    pub state: State,
    /// What was found, as text.
    pub found: String,
    /// What to do about it; `None` if nothing has to be done.
    pub remedy: Option<String>,
}

/// How good or bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Correct.
    Good,
    /// Works, but could be better.
    Advice,
    /// Does not work, or puts something at risk.
    Wrong,
    /// Could not be checked.
    Unknown,
}

impl State {
    /// The state as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Advice => "advice",
            Self::Wrong => "wrong",
            Self::Unknown => "unknown",
        }
    }
}
