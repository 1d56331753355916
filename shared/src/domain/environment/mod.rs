//! Environments: configuration and secrets that stacks and people share, as YAML that is evaluated.
//!
//! A [`Definition`](definition::Definition) is what a text says: imports, and values that may refer to each other, to what is
//! imported, and call functions. [`evaluate`](evaluate::evaluate) turns it into values. It is pure: whoever calls it
//! brings the imported definitions and the opened secrets, and gets back what has to be asked of others first.
//!
//! The language is that of Pulumi ESC (pulumi v3.274.1, `sdk/go/common/esc`), without its schemas: a value that is not known
//! yet may be anything. Texts are bounded in length, depth and in what they may become, since a few lines that refer to each
//! other can stand for more than memory holds.

pub mod access;
pub mod comments;
pub mod definition;
mod emitter;
pub mod evaluate;
pub mod functions;
pub mod sealed;
pub mod tree;
pub mod value;
pub mod yaml;

use serde::{Deserialize, Serialize};

/// The longest definition, in bytes. With its record it has to fit one item of the ledger.
pub const DEFINITION_BYTES_MAX: usize = 256 << 10;

/// A place in a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// Bytes before it.
    pub byte: usize,
}

/// A part of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// Where it begins.
    pub begin: Position,
    /// Where it has ended.
    pub end: Position,
}

/// A part of the text of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The environment.
    pub environment: String,
    /// Where it begins.
    pub begin: Position,
    /// Where it has ended.
    pub end: Position,
}

impl Range {
    /// A part of this environment's text.
    pub fn new(environment: &str, span: Span) -> Self {
        Self { environment: environment.to_owned(), begin: span.begin, end: span.end }
    }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The environment cannot be used.
    Error,
    /// It can.
    Warning,
}

/// What is wrong with a definition. Its shape is that of `EnvironmentDiagnostic`, pulumi v3.274.1,
/// `pkg/cmd/esc/cli/client/apitype.go`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Where.
    pub range: Range,
    /// What.
    pub summary: String,
    /// How bad it is.
    pub severity: Severity,
}

impl Diagnostic {
    /// Something that is wrong there.
    pub fn error(environment: &str, span: Span, summary: impl Into<String>) -> Self {
        Self { range: Range::new(environment, span), summary: summary.into(), severity: Severity::Error }
    }

    /// Something that is odd there.
    pub fn warning(environment: &str, span: Span, summary: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(environment, span, summary) }
    }
}

/// Whether the environment cannot be used.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}
