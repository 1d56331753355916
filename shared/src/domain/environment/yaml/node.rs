//! The nodes of a tree.

use crate::domain::environment::Span;

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The place of the node. A block scalar starts at its indicator.
    pub span: Span,
    pub kind: Kind,
    pub style: Style,
}

/// The style of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// On its own lines, or unquoted.
    Plain,
    /// Quoted.
    Quoted,
    /// Below a `|` or a `>`.
    Block,
    /// In brackets or braces.
    Flow,
}

/// The content of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Null,
    Bool(bool),
    /// A number, as written in JSON.
    Number(String),
    String(String),
    Array(Vec<Node>),
    /// A mapping, in order. A key may occur twice.
    Object(Vec<(Key, Node)>),
}

impl Kind {
    /// The type as text, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// A key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub text: String,
    pub span: Span,
    pub style: Style,
}
