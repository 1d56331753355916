//! What a text says, before it is evaluated.

use super::access::{self, Accessor, Part};
use super::yaml::{self, Key, Kind, Node};
use super::{Diagnostic, Span};

/// A definition, as far as it could be read.
#[derive(Debug, Clone, Default)]
pub struct Definition {
    /// What it imports, in this order: what is later goes before what is earlier.
    pub imports: Vec<Import>,
    /// Its values, in their order. A name may stand there twice.
    pub values: Vec<(Key, Expr)>,
}

/// An import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// What is imported: `project/environment`, with or without `@version`.
    pub name: String,
    /// Where it stands.
    pub span: Span,
    /// Whether its values become this environment's, or are only to be had by name.
    pub merge: bool,
}

/// An expression.
#[derive(Debug, Clone)]
pub struct Expr {
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub kind: ExprKind,
}

/// What an expression is.
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// Something that could not be read; what is wrong was told.
    Missing,
    /// Nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number, as JSON writes it.
    Number(String),
    /// A text.
    String(String),
    /// A text with references in it.
    Interpolate(Vec<Part>),
    /// A reference alone.
    Symbol(Vec<Accessor>),
    /// A sequence.
    Array(Vec<Expr>),
    /// An object.
    Object(Vec<(Key, Expr)>),
    /// A call of a function.
    Call(Box<Call>),
}

/// A call of a function.
#[derive(Debug, Clone)]
pub struct Call {
    /// What was called, as it was written.
    pub name: Key,
    /// Where its argument stands.
    pub argument: Span,
    /// The function with its arguments.
    pub function: Function,
}

/// A function with its arguments.
#[derive(Debug, Clone)]
pub enum Function {
    /// `fn::concat`: arrays as one.
    Concat(Expr),
    /// `fn::final`: a value that whoever imports it cannot replace.
    Final(Expr),
    /// `fn::fromBase64`.
    FromBase64(Expr),
    /// `fn::fromJSON`.
    FromJson(Expr),
    /// `fn::join`: strings with a delimiter between them.
    Join(Expr, Expr),
    /// `fn::open`, `fn::open::…`: what a provider answers.
    Open {
        /// The provider.
        provider: String,
        /// What it is asked with.
        inputs: Expr,
    },
    /// `fn::rotate`, `fn::rotate::…`.
    Rotate {
        /// The rotator.
        provider: String,
    },
    /// `fn::secret` of a text that is not sealed yet.
    Plaintext(String),
    /// `fn::secret` of a text that is sealed.
    Ciphertext(String),
    /// `fn::split`: a string, cut at a delimiter.
    Split(Expr, Expr),
    /// `fn::toBase64`.
    ToBase64(Expr),
    /// `fn::toJSON`.
    ToJson(Expr),
    /// `fn::toString`.
    ToString(Expr),
    /// `fn::toYAML`.
    ToYaml(Expr),
    /// `fn::validate`: a value, and what it has to be.
    Validate {
        /// A JSON schema.
        schema: Expr,
        /// The value.
        value: Expr,
    },
    /// A call that could not be read; what is wrong was told.
    Unreadable,
}

/// What functions begin with.
const PREFIX: &str = "fn::";

/// Reads the text of an environment. What is wrong with it goes to `diagnostics`.
pub fn read(environment: &str, text: &str, diagnostics: &mut Vec<Diagnostic>) -> Definition {
    let mut reader = Reader { environment, diagnostics };
    match yaml::parse(text) {
        Ok(None) => Definition::default(),
        Ok(Some(root)) => reader.definition(root),
        Err(unreadable) => {
            reader.wrong(unreadable.span, format!("the YAML cannot be read: {}", unreadable.why));
            Definition::default()
        }
    }
}

struct Reader<'a> {
    environment: &'a str,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Reader<'_> {
    fn wrong(&mut self, span: Span, what: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(self.environment, span, what));
    }

    fn odd(&mut self, span: Span, what: impl Into<String>) {
        self.diagnostics.push(Diagnostic::warning(self.environment, span, what));
    }

    fn definition(&mut self, root: Node) -> Definition {
        let mut definition = Definition::default();
        let members = match root.kind {
            Kind::Object(members) => members,
            Kind::Null => return definition,
            other => {
                self.wrong(root.span, format!("an environment is an object, and this is {}", other.name()));
                return definition;
            }
        };
        let mut seen: Vec<String> = Vec::new();
        for (key, value) in members {
            let field = key.text.to_ascii_lowercase();
            if seen.contains(&field) {
                self.wrong(key.span, format!("{:?} stands there twice", key.text));
                continue;
            }
            match field.as_str() {
                "imports" => definition.imports = self.imports(value),
                "values" => definition.values = self.values(value),
                "description" if matches!(value.kind, Kind::String(_) | Kind::Null) => {}
                "description" => self.wrong(value.span, "the description is a string"),
                _ => self.odd(
                    key.span,
                    format!(
                        "an environment has `imports`, `values` and a `description`, and no {:?}",
                        key.text
                    ),
                ),
            }
            seen.push(field);
        }
        definition
    }

    fn imports(&mut self, node: Node) -> Vec<Import> {
        let items = match node.kind {
            Kind::Array(items) => items,
            Kind::Null => return Vec::new(),
            other => {
                self.wrong(node.span, format!("`imports` is a list, and this is {}", other.name()));
                return Vec::new();
            }
        };
        items.into_iter().filter_map(|item| self.import(item)).collect()
    }

    fn import(&mut self, node: Node) -> Option<Import> {
        let span = node.span;
        match node.kind {
            Kind::String(name) => return Some(Import { name, span, merge: true }),
            Kind::Object(members) => {
                if let Ok([(key, options)]) = <[_; 1]>::try_from(members) {
                    let merge = self.import_options(options)?;
                    return Some(Import { name: key.text, span: key.span, merge });
                }
            }
            _ => {}
        }
        self.wrong(
            span,
            "an import is the name of an environment, or that name with `merge: false` below it",
        );
        None
    }

    /// Whether what is imported is merged.
    fn import_options(&mut self, node: Node) -> Option<bool> {
        if let Kind::Object(members) = &node.kind
            && members.iter().all(|(key, value)| key.text == "merge" && matches!(value.kind, Kind::Bool(_)))
        {
            return Some(!members.iter().any(|(_, value)| value.kind == Kind::Bool(false)));
        }
        self.wrong(node.span, "below an import there may be `merge: true` or `merge: false`");
        None
    }

    fn values(&mut self, node: Node) -> Vec<(Key, Expr)> {
        let members = match node.kind {
            Kind::Object(members) => members,
            Kind::Null => return Vec::new(),
            other => {
                self.wrong(node.span, format!("`values` is an object, and this is {}", other.name()));
                return Vec::new();
            }
        };
        for (key, _) in &members {
            if key.text.starts_with(PREFIX) {
                self.wrong(key.span, format!("`values` cannot be a call of {}", key.text));
            }
        }
        members.into_iter().map(|(key, value)| (key, self.expr(value))).collect()
    }

    fn expr(&mut self, node: Node) -> Expr {
        let span = node.span;
        let kind = match &node.kind {
            Kind::Null => ExprKind::Null,
            Kind::Bool(value) => ExprKind::Bool(*value),
            Kind::Number(number) => ExprKind::Number(number.clone()),
            Kind::String(text) => self.text(&node, text),
            Kind::Array(_) | Kind::Object(_) => return self.collection(node),
        };
        Expr { span, kind }
    }

    fn collection(&mut self, node: Node) -> Expr {
        let span = node.span;
        let kind = match node.kind {
            Kind::Array(items) => ExprKind::Array(items.into_iter().map(|item| self.expr(item)).collect()),
            Kind::Object(members) => self.object(span, members),
            _ => ExprKind::Missing,
        };
        Expr { span, kind }
    }

    fn text(&mut self, node: &Node, text: &str) -> ExprKind {
        let (mut parts, misspelt) = access::parts(node, text);
        for misspelt in misspelt {
            self.wrong(misspelt.span, misspelt.what);
        }
        match parts.as_mut_slice() {
            [] => ExprKind::String(String::new()),
            [Part { text, access: None }] => ExprKind::String(std::mem::take(text)),
            [Part { text, access: Some(access) }] if text.is_empty() => {
                ExprKind::Symbol(std::mem::take(access))
            }
            _ => ExprKind::Interpolate(parts),
        }
    }

    fn object(&mut self, span: Span, members: Vec<(Key, Node)>) -> ExprKind {
        let members = match <[_; 1]>::try_from(members) {
            Ok([(name, argument)]) if is_call(&name.text) => return self.call(name, argument),
            Ok(one) => Vec::from(one),
            Err(members) => members,
        };
        for (key, _) in &members {
            if is_call(&key.text) {
                self.wrong(span, format!("{} is called in an object that holds nothing else", key.text));
            } else if key.text.to_ascii_lowercase().starts_with(PREFIX) {
                self.wrong(
                    key.span,
                    format!("there is no function {}, and no other key begins with fn::", key.text),
                );
            }
        }
        ExprKind::Object(members.into_iter().map(|(key, value)| (key, self.expr(value))).collect())
    }

    fn call(&mut self, name: Key, argument: Node) -> ExprKind {
        let span = argument.span;
        let function = match name.text.strip_prefix(PREFIX).unwrap_or_default() {
            "secret" => self.secret(argument),
            "concat" => Function::Concat(self.expr(argument)),
            "final" => Function::Final(self.expr(argument)),
            "fromBase64" => Function::FromBase64(self.expr(argument)),
            "fromJSON" => Function::FromJson(self.expr(argument)),
            "toBase64" => Function::ToBase64(self.expr(argument)),
            "toJSON" => Function::ToJson(self.expr(argument)),
            "toString" => Function::ToString(self.expr(argument)),
            "toYAML" => Function::ToYaml(self.expr(argument)),
            "join" => self.two(
                argument,
                Function::Join,
                "fn::join takes a list of two: a delimiter, and a list of strings",
            ),
            "split" => self.two(
                argument,
                Function::Split,
                "fn::split takes a list of two: a delimiter, and a string",
            ),
            "validate" => self.validate(argument),
            "open" => self.open(argument),
            "rotate" => self.rotate(&argument),
            short => match (short.strip_prefix("open::"), short.strip_prefix("rotate::")) {
                (Some(provider), _) => {
                    Function::Open { provider: provider.to_owned(), inputs: self.expr(argument) }
                }
                (None, Some(provider)) => Function::Rotate { provider: provider.to_owned() },
                (None, None) => Function::Unreadable,
            },
        };
        ExprKind::Call(Box::new(Call { name, argument: span, function }))
    }

    fn two(&mut self, argument: Node, of: fn(Expr, Expr) -> Function, words: &str) -> Function {
        let span = argument.span;
        if let Kind::Array(items) = argument.kind
            && let Ok([first, second]) = <[_; 2]>::try_from(items)
        {
            return of(self.expr(first), self.expr(second));
        }
        self.wrong(span, words);
        Function::Unreadable
    }

    fn secret(&mut self, argument: Node) -> Function {
        let span = argument.span;
        match sealed(&argument) {
            Some(Sealed::Plaintext(text)) => return Function::Plaintext(text.to_owned()),
            Some(Sealed::Ciphertext(text)) => return Function::Ciphertext(text.to_owned()),
            None => {}
        }
        self.wrong(
            span,
            "fn::secret takes a string; make one of other values with fn::toJSON around the secret, or quote it",
        );
        Function::Unreadable
    }

    fn members<const N: usize>(
        &mut self,
        argument: Node,
        names: [&str; N],
        words: &str,
    ) -> Option<[Node; N]> {
        let span = argument.span;
        let found = match argument.kind {
            Kind::Object(members) => {
                let mut members: Vec<_> = members.into_iter().map(|(key, value)| (key.text, value)).collect();
                let mut take = |name: &str| {
                    let at = members.iter().position(|(found, _)| found == name)?;
                    Some(members.swap_remove(at).1)
                };
                names.iter().map(|name| take(name)).collect::<Option<Vec<_>>>()
            }
            _ => None,
        };
        let found = found.and_then(|found| <[Node; N]>::try_from(found).ok());
        if found.is_none() {
            self.wrong(span, words);
        }
        found
    }

    fn validate(&mut self, argument: Node) -> Function {
        let words = "fn::validate takes an object of `schema` and `value`";
        let Some([schema, value]) = self.members(argument, ["schema", "value"], words) else {
            return Function::Unreadable;
        };
        Function::Validate { schema: self.expr(schema), value: self.expr(value) }
    }

    fn open(&mut self, argument: Node) -> Function {
        let words = "fn::open takes an object of `provider` and `inputs`";
        let Some([provider, inputs]) = self.members(argument, ["provider", "inputs"], words) else {
            return Function::Unreadable;
        };
        let Kind::String(provider) = provider.kind else {
            self.wrong(provider.span, "the provider is a string, without references");
            return Function::Unreadable;
        };
        Function::Open { provider, inputs: self.expr(inputs) }
    }

    fn rotate(&mut self, argument: &Node) -> Function {
        if let Kind::Object(members) = &argument.kind
            && let Some(Kind::String(provider)) =
                members.iter().find(|(key, _)| key.text == "provider").map(|(_, value)| &value.kind)
        {
            return Function::Rotate { provider: provider.clone() };
        }
        self.wrong(argument.span, "fn::rotate takes an object of `provider`, `inputs` and `state`");
        Function::Unreadable
    }
}

/// Whether a key is that of a call.
fn is_call(key: &str) -> bool {
    let Some(name) = key.strip_prefix(PREFIX) else { return false };
    name.starts_with("open::")
        || name.starts_with("rotate::")
        || matches!(
            name,
            "concat"
                | "final"
                | "fromBase64"
                | "fromJSON"
                | "join"
                | "open"
                | "rotate"
                | "secret"
                | "split"
                | "toBase64"
                | "toJSON"
                | "toString"
                | "toYAML"
                | "validate"
        )
}

/// The argument of `fn::secret`.
pub(super) enum Sealed<'a> {
    Plaintext(&'a str),
    Ciphertext(&'a str),
}

/// Reads the argument of `fn::secret`.
pub(super) fn sealed(argument: &Node) -> Option<Sealed<'_>> {
    match &argument.kind {
        Kind::String(text) => Some(Sealed::Plaintext(text)),
        Kind::Object(members) => match members.as_slice() {
            [(key, Node { kind: Kind::String(text), .. })] if key.text == "ciphertext" => {
                Some(Sealed::Ciphertext(text))
            }
            _ => None,
        },
        _ => None,
    }
}

impl Definition {
    /// The environments that it names, by import or in a reference, in no order.
    pub fn named(&self) -> Vec<String> {
        let mut named: Vec<String> = self.imports.iter().map(|import| import.name.clone()).collect();
        for (_, value) in &self.values {
            value.visit(&mut |expr| {
                let mut note = |accessors: &[Accessor]| named.extend(inline(accessors));
                match &expr.kind {
                    ExprKind::Symbol(accessors) => note(accessors),
                    ExprKind::Interpolate(parts) => {
                        parts.iter().filter_map(|part| part.access.as_deref()).for_each(note);
                    }
                    _ => {}
                }
            });
        }
        named
    }

    /// The sealed secrets in it.
    pub fn ciphertexts(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (_, value) in &self.values {
            value.visit(&mut |expr| {
                if let ExprKind::Call(call) = &expr.kind
                    && let Function::Ciphertext(text) = &call.function
                {
                    found.push(text.clone());
                }
            });
        }
        found
    }
}

/// The environment that a reference names: `environments.project.name…`.
pub(super) fn inline(accessors: &[Accessor]) -> Option<String> {
    let key = |index: usize| match accessors.get(index).map(|accessor| &accessor.step) {
        Some(access::Step::Key(key)) => Some(key.as_str()),
        _ => None,
    };
    (key(0)? == "environments").then_some(())?;
    Some(format!("{}/{}", key(1)?, key(2)?))
}

impl Expr {
    /// Looks at this and at everything within it.
    fn visit(&self, look: &mut impl FnMut(&Self)) {
        look(self);
        match &self.kind {
            ExprKind::Array(items) => items.iter().for_each(|item| item.visit(look)),
            ExprKind::Object(members) => members.iter().for_each(|(_, value)| value.visit(look)),
            ExprKind::Call(call) => call.function.arguments().into_iter().for_each(|it| it.visit(look)),
            ExprKind::Missing
            | ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::Interpolate(_)
            | ExprKind::Symbol(_) => {}
        }
    }
}

impl Function {
    /// The expressions that it is called with.
    pub(super) fn arguments(&self) -> Vec<&Expr> {
        match self {
            Self::Concat(it)
            | Self::Final(it)
            | Self::FromBase64(it)
            | Self::FromJson(it)
            | Self::ToBase64(it)
            | Self::ToJson(it)
            | Self::ToString(it)
            | Self::ToYaml(it)
            | Self::Open { inputs: it, .. } => vec![it],
            Self::Join(first, second)
            | Self::Split(first, second)
            | Self::Validate { schema: first, value: second } => vec![first, second],
            Self::Rotate { .. } | Self::Plaintext(_) | Self::Ciphertext(_) | Self::Unreadable => Vec::new(),
        }
    }
}
