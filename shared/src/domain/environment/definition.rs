//! What a text says, before it is evaluated.

use super::access::{self, Accessor, Part};
use super::yaml::{self, Key, Kind, Node, Style};
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
        /// Where the argument names it, where the function's name does not.
        named: Option<Span>,
        /// What it is asked with.
        inputs: Expr,
    },
    /// `fn::rotate`, `fn::rotate::…`: what a provider answers that also changes the secrets it speaks of.
    Rotate {
        /// The rotator.
        provider: String,
        /// Where the argument names it, where the function's name does not.
        named: Option<Span>,
        /// What it is asked with.
        inputs: Expr,
        /// What it wrote last.
        state: Expr,
    },
    /// `fn::secret` of a text that is not sealed yet.
    Plaintext(String),
    /// `fn::secret` of a text that is sealed, and where that stands.
    Ciphertext(String, Span),
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

/// Reads the text of an environment: as much of it as can be read, and nothing of what is not YAML. What is wrong with it goes to
/// `diagnostics`.
pub fn read(environment: &str, text: &str, diagnostics: &mut Vec<Diagnostic>) -> Definition {
    let mut reader = Reader { environment, diagnostics };
    match yaml::read(text) {
        Ok(None) if text.is_empty() => Definition::default(),
        Ok(root) => {
            let nothing = Node { span: Span::default(), kind: Kind::Null, style: Style::Plain };
            reader.definition(root.unwrap_or(nothing))
        }
        Err(faults) => {
            for fault in faults {
                reader.wrong(fault.span, format!("the YAML cannot be read: {}", fault.why));
            }
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
            other => {
                self.wrong(root.span, format!("environment must be an object, and this is {}", other.name()));
                return definition;
            }
        };
        let mut seen: Vec<String> = Vec::new();
        for (key, value) in members {
            if seen.contains(&key.text) {
                self.odd(key.span, format!("duplicate key {:?}", key.text));
            }
            // As Unicode folds it: the long s is an s.
            match key.text.to_lowercase().replace('ſ', "s").as_str() {
                "imports" => definition.imports = self.imports(value),
                "values" => definition.values = self.values(value),
                "description" => self.description(&value),
                _ => self.odd(
                    key.span,
                    format!(
                        "an environment has `imports`, `values` and a `description`: {:?} has no meaning here",
                        key.text
                    ),
                ),
            }
            seen.push(key.text);
        }
        definition
    }

    fn description(&mut self, node: &Node) {
        if let Kind::String(text) = &node.kind
            && matches!(self.text(node, text), ExprKind::String(_))
        {
            return;
        }
        self.wrong(node.span, "the description is a string, without references");
    }

    fn imports(&mut self, node: Node) -> Vec<Import> {
        let Kind::Array(items) = node.kind else {
            self.wrong(node.span, "imports must be a list");
            return Vec::new();
        };
        items.into_iter().filter_map(|item| self.import(item)).collect()
    }

    fn import(&mut self, node: Node) -> Option<Import> {
        let span = node.span;
        match node.kind {
            Kind::String(name) => return Some(Import { name, span, merge: true }),
            Kind::Object(members) => {
                if let Ok([(key, options)]) = <[_; 1]>::try_from(members) {
                    let merge = self.import_options(options);
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
    fn import_options(&mut self, node: Node) -> bool {
        const SHAPE: &str = "below an import there may be `merge: true` or `merge: false`";
        let Kind::Object(members) = node.kind else {
            self.wrong(node.span, SHAPE);
            return true;
        };
        let mut merge = true;
        for (key, value) in members {
            match (key.text.to_lowercase().as_str(), &value.kind) {
                ("merge", Kind::Bool(is_merged)) => merge = *is_merged,
                ("merge", _) => self.wrong(value.span, SHAPE),
                _ => self.odd(key.span, format!("{SHAPE}: {:?} has no meaning here", key.text)),
            }
        }
        merge
    }

    fn values(&mut self, node: Node) -> Vec<(Key, Expr)> {
        let Kind::Object(members) = node.kind else {
            self.wrong(node.span, "values must be an object");
            return Vec::new();
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
            Ok(one) => {
                for (key, _) in &one {
                    if key.text.to_lowercase().starts_with(PREFIX) {
                        self.wrong(
                            key.span,
                            format!("there is no function {}, and no other key begins with fn::", key.text),
                        );
                    }
                }
                Vec::from(one)
            }
            Err(members) => {
                for (key, _) in &members {
                    if key.text.starts_with(PREFIX) {
                        self.wrong(
                            span,
                            format!("{} is called in an object that holds nothing else", key.text),
                        );
                    }
                }
                members
            }
        };
        let members = members.into_iter().filter_map(|(key, value)| {
            let key = self.key(key);
            let value = self.expr(value);
            Some((key?, value))
        });
        ExprKind::Object(members.collect())
    }

    /// The key of a value, which holds no references: `$$` stands for `$`, as in any text.
    fn key(&mut self, key: Key) -> Option<Key> {
        let span = key.span;
        let node = Node { span, kind: Kind::Null, style: key.style };
        match self.text(&node, &key.text) {
            ExprKind::String(text) => Some(Key { text, ..key }),
            _ => {
                self.wrong(span, "the keys of an object hold no references: write $${ for a ${ in a name");
                None
            }
        }
    }

    fn call(&mut self, name: Key, argument: Node) -> ExprKind {
        let span = argument.span;
        let function = match name.text.strip_prefix(PREFIX).unwrap_or_default() {
            "secret" => self.secret(argument),
            "concat" => self.concat(argument),
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
            "rotate" => self.rotate(argument, None),
            short => match (short.strip_prefix("open::"), short.strip_prefix("rotate::")) {
                (Some(provider), _) => {
                    Function::Open { provider: provider.to_owned(), named: None, inputs: self.expr(argument) }
                }
                (None, Some(provider)) => self.rotate(argument, Some(provider)),
                (None, None) => Function::Unreadable,
            },
        };
        ExprKind::Call(Box::new(Call { name, argument: span, function }))
    }

    fn concat(&mut self, argument: Node) -> Function {
        if matches!(argument.kind, Kind::Array(_)) {
            return Function::Concat(self.expr(argument));
        }
        let list = self.expr(argument);
        self.wrong(list.span, "fn::concat takes a list of lists");
        Function::Unreadable
    }

    fn two(&mut self, argument: Node, of: fn(Expr, Expr) -> Function, words: &str) -> Function {
        let span = argument.span;
        let argument = self.expr(argument);
        if let ExprKind::Array(items) = argument.kind
            && let Ok([first, second]) = <[_; 2]>::try_from(items)
        {
            return of(first, second);
        }
        self.wrong(span, words);
        Function::Unreadable
    }

    fn secret(&mut self, argument: Node) -> Function {
        let span = argument.span;
        let mut plain = |node: &Node, text: &str| match self.text(node, text) {
            ExprKind::String(text) => Some(text),
            _ => None,
        };
        let function = match &argument.kind {
            Kind::String(text) => plain(&argument, text).map(Function::Plaintext),
            Kind::Object(members) => match members.as_slice() {
                [(key, node @ Node { kind: Kind::String(text), .. })] if key.text == CIPHERTEXT => {
                    plain(node, text).map(|text| Function::Ciphertext(text, node.span))
                }
                _ => None,
            },
            _ => None,
        };
        function.unwrap_or_else(|| {
            // What else is wrong with it is told first.
            if !matches!(argument.kind, Kind::String(_)) {
                self.expr(argument);
            }
            self.wrong(
                span,
                "fn::secret takes a string without references. Put other values in quotes, with fn::fromJSON around the \
                 secret to have them back. For a text with ${ in it write fn::fromBase64 with its base64 as the secret",
            );
            Function::Unreadable
        })
    }

    /// The members of these names, and what else there is in the argument of a function, which has no meaning.
    fn members<const N: usize>(
        &mut self,
        argument: Node,
        names: [&str; N],
        words: &str,
    ) -> Option<[Option<Node>; N]> {
        let span = argument.span;
        let members = match argument.kind {
            Kind::Object(members) if !matches!(members.as_slice(), [(key, _)] if is_call(&key.text)) => {
                members
            }
            kind => {
                self.expr(Node { kind, ..argument });
                self.wrong(span, words);
                return None;
            }
        };
        let mut found = [const { None }; N];
        for (key, value) in members {
            let Some(key) = self.key(key) else { continue };
            match names.iter().position(|name| *name == key.text).and_then(|at| found.get_mut(at)) {
                Some(place) => *place = Some(value),
                None => {
                    self.expr(value);
                }
            }
        }
        Some(found)
    }

    /// A member, or what is wrong without it.
    fn needed(&mut self, member: Option<Node>, span: Span, words: &str) -> Expr {
        match member {
            Some(node) => self.expr(node),
            None => {
                self.wrong(span, words);
                Expr { span, kind: ExprKind::Missing }
            }
        }
    }

    fn validate(&mut self, argument: Node) -> Function {
        const SHAPE: &str = "fn::validate takes an object of `schema` and `value`";
        let span = argument.span;
        let Some([schema, value]) = self.members(argument, ["schema", "value"], SHAPE) else {
            return Function::Unreadable;
        };
        let schema = self.needed(schema, span, SHAPE);
        Function::Validate { schema, value: self.needed(value, span, SHAPE) }
    }

    fn open(&mut self, argument: Node) -> Function {
        const SHAPE: &str = "fn::open takes an object of `provider` and `inputs`";
        let span = argument.span;
        let Some([provider, inputs]) = self.members(argument, ["provider", "inputs"], SHAPE) else {
            return Function::Unreadable;
        };
        let provider = self.provider(provider, span, SHAPE);
        let inputs = self.needed(inputs, span, SHAPE);
        provider.map_or(Function::Unreadable, |(provider, named)| Function::Open { provider, named, inputs })
    }

    fn provider(&mut self, node: Option<Node>, span: Span, words: &str) -> Option<(String, Option<Span>)> {
        let provider = self.needed(node, span, words);
        match provider.kind {
            ExprKind::String(name) => Some((name, Some(provider.span))),
            ExprKind::Missing => None,
            _ => {
                self.wrong(provider.span, "the provider is a string, without references");
                None
            }
        }
    }

    /// A call of a rotator, which the function's name names or its argument.
    fn rotate(&mut self, argument: Node, named: Option<&str>) -> Function {
        let words = match named {
            Some(_) => "fn::rotate::… takes an object of `inputs` and `state`",
            None => "fn::rotate takes an object of `provider`, `inputs` and `state`",
        };
        let span = argument.span;
        let Some([provider, inputs, state]) = self.members(argument, ["provider", "inputs", "state"], words)
        else {
            return Function::Unreadable;
        };
        let provider = match (named, provider) {
            (None, provider) => self.provider(provider, span, words),
            (Some(name), None) => Some((name.to_owned(), None)),
            (Some(name), Some(other)) => {
                self.expr(other);
                Some((name.to_owned(), None))
            }
        };
        let inputs = self.needed(inputs, span, words);
        let state = match state {
            None => Expr { span, kind: ExprKind::Null },
            Some(node) => {
                let state = self.expr(node);
                if !matches!(state.kind, ExprKind::Object(_)) {
                    self.wrong(state.span, "the state of a rotator is an object");
                }
                state
            }
        };
        provider.map_or(Function::Unreadable, |(provider, named)| Function::Rotate {
            provider,
            named,
            inputs,
            state,
        })
    }
}

/// The one key of the argument of `fn::secret` once it is sealed.
const CIPHERTEXT: &str = "ciphertext";

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
            [(key, Node { kind: Kind::String(text), .. })] if key.text == CIPHERTEXT => {
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
                    && let Function::Ciphertext(text, _) = &call.function
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
            Self::Rotate { inputs, state, .. } => vec![inputs, state],
            Self::Plaintext(_) | Self::Ciphertext(..) | Self::Unreadable => Vec::new(),
        }
    }
}
