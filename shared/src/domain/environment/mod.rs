//! Environments: configuration and secrets that stacks and people share, in YAML that is evaluated.
//!
//! A [`Definition`](definition::Definition) is the parsed text: imports and values, which may refer to each
//! other and to imported values, and call functions. [`evaluate`](evaluate::evaluate) computes the values. It
//! is pure: the caller provides the imported definitions and the opened secrets, and gets back the provider
//! calls to make first.
//!
//! The language is that of Pulumi ESC (pulumi v3.274.1, `sdk/go/common/esc`), without its schemas: an unknown
//! value may be anything. The length, the depth and the evaluated size of texts have limits, because a few
//! lines that refer to each other can expand to more than the memory.

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

/// The longest definition, in bytes. It has to fit into one item of the ledger together with its record.
pub const DEFINITION_BYTES_MAX: usize = 256 << 10;

/// A position in a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The number of bytes before it.
    pub byte: usize,
}

/// A part of a text, without its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    pub begin: Position,
    pub end: Position,
}

/// A part of the text of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The name of the environment.
    pub environment: String,
    pub begin: Position,
    pub end: Position,
}

impl Range {
    /// The range of a part of this environment's text.
    pub fn new(environment: &str, span: Span) -> Self {
        Self { environment: environment.to_owned(), begin: span.begin, end: span.end }
    }
}

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The environment cannot be used.
    Error,
    /// The environment can be used.
    Warning,
}

/// An error or a warning about a definition. Its shape is that of `EnvironmentDiagnostic`, pulumi v3.274.1,
/// `pkg/cmd/esc/cli/client/apitype.go`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    pub range: Range,
    pub summary: String,
    pub severity: Severity,
}

impl Diagnostic {
    pub fn error(environment: &str, span: Span, summary: impl Into<String>) -> Self {
        Self { range: Range::new(environment, span), summary: summary.into(), severity: Severity::Error }
    }

    pub fn warning(environment: &str, span: Span, summary: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(environment, span, summary) }
    }
}

/// Whether the environment cannot be used.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}
