//! The parsed text of an environment, before its evaluation.

use super::access::{self, Accessor, Part};
use super::yaml::{self, Key, Kind, Node, Style};
use super::{Diagnostic, Span};

/// The parts of a definition that could be parsed.
#[derive(Debug, Clone, Default)]
pub struct Definition {
    /// The imports, in order. A later one overrides an earlier one.
    pub imports: Vec<Import>,
    /// The values, in order. A name may occur twice.
    pub values: Vec<(Key, Expr)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The name of the imported environment: `project/environment`, with or without `@version`.
    pub name: String,
    /// The place of the import.
    pub span: Span,
    /// Whether its values become values of this environment. If not, they are available only by the
    /// environment's name.
    pub merge: bool,
}

#[derive(Debug, Clone)]
pub struct Expr {
    pub span: Span,
    pub kind: ExprKind,
}

/// The kind of an expression.
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// An expression that could not be parsed. A diagnostic says why.
    Missing,
    Null,
    Bool(bool),
    /// A number, as written in JSON.
    Number(String),
    String(String),
    /// A text with references in it.
    Interpolate(Vec<Part>),
    /// A single reference.
    Symbol(Vec<Accessor>),
    Array(Vec<Expr>),
    Object(Vec<(Key, Expr)>),
    Call(Box<Call>),
}

/// A call of a function.
#[derive(Debug, Clone)]
pub struct Call {
    /// The name of the function, as written.
    pub name: Key,
    /// The place of the argument.
    pub argument: Span,
    pub function: Function,
}

/// A function with its arguments.
#[derive(Debug, Clone)]
pub enum Function {
    /// `fn::concat`: arrays as one.
    Concat(Expr),
    /// `fn::final`: a value that environments importing it cannot override.
    Final(Expr),
    FromBase64(Expr),
    FromJson(Expr),
    /// `fn::join`: strings with a delimiter between them.
    Join(Expr, Expr),
    /// `fn::open`, `fn::open::…`: the outputs of a provider.
    Open {
        provider: String,
        /// The place of the provider's name, if it is in the argument and not in the function's name.
        named: Option<Span>,
        inputs: Expr,
    },
    /// `fn::rotate`, `fn::rotate::…`: the outputs of a provider that also changes the secrets.
    Rotate {
        /// The name of the rotator.
        provider: String,
        /// The place of the rotator's name, if it is in the argument and not in the function's name.
        named: Option<Span>,
        inputs: Expr,
        /// The state that the rotator wrote last.
        state: Expr,
    },
    /// `fn::secret` with a plain text, not yet sealed.
    Plaintext(String),
    /// `fn::secret` with a sealed text, and its place.
    Ciphertext(String, Span),
    /// `fn::split`: a string, split at a delimiter.
    Split(Expr, Expr),
    ToBase64(Expr),
    ToJson(Expr),
    ToString(Expr),
    ToYaml(Expr),
    /// `fn::validate`: a value, and its schema.
    Validate {
        /// A JSON schema.
        schema: Expr,
        value: Expr,
    },
    /// A call that could not be parsed. A diagnostic says why.
    Unreadable,
}

/// The prefix of function names.
const PREFIX: &str = "fn::";

/// Parses the text of an environment, as far as possible. A text that is not YAML has no parts. Errors and
/// warnings go to `diagnostics`.
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
            // Unicode case folding maps the long s to s.
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
        self.wrong(node.span, "the description must be a string without references");
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
            "an import must be the name of an environment, or that name with `merge: false` below it",
        );
        None
    }

    /// Whether the import is merged.
    fn import_options(&mut self, node: Node) -> bool {
        const SHAPE: &str = "an import can have `merge: true` or `merge: false`";
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
        let (mut parts, misspelled) = access::parts(node, text);
        for misspelled in misspelled {
            self.wrong(misspelled.span, misspelled.what);
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
                            format!(
                                "there is no function {}, and no other key may start with fn::",
                                key.text
                            ),
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
                            format!("a call of {} must be the only member of its object", key.text),
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

    /// The key of a value. It has no references, and `$$` stands for `$`, as in any text.
    fn key(&mut self, key: Key) -> Option<Key> {
        let span = key.span;
        let node = Node { span, kind: Kind::Null, style: key.style };
        match self.text(&node, &key.text) {
            ExprKind::String(text) => Some(Key { text, ..key }),
            _ => {
                self.wrong(
                    span,
                    "the keys of an object cannot have references: write $${ for a ${ in a name",
                );
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
            // Other errors in the argument are reported first.
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

    /// The members of these names. Other members of a function's argument are ignored, but their errors are
    /// reported.
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

    /// A member, or an error if it is missing.
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
                self.wrong(provider.span, "the provider must be a string without references");
                None
            }
        }
    }

    /// A call of a rotator. Its name is in the function's name or in the argument.
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
                    self.wrong(state.span, "the state of a rotator must be an object");
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

/// The only key of the argument of `fn::secret` after sealing.
const CIPHERTEXT: &str = "ciphertext";

/// Whether a key is a call.
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

pub(super) enum Sealed<'a> {
    Plaintext(&'a str),
    Ciphertext(&'a str),
}

/// The argument of `fn::secret`, plain or sealed; `None` for another shape.
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
    /// The environments that the definition imports or refers to, in no particular order.
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

    /// The ciphertexts of its sealed secrets.
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

/// The environment in a reference: `environments.project.name…`.
pub(super) fn inline(accessors: &[Accessor]) -> Option<String> {
    let key = |index: usize| match accessors.get(index).map(|accessor| &accessor.step) {
        Some(access::Step::Key(key)) => Some(key.as_str()),
        _ => None,
    };
    (key(0)? == "environments").then_some(())?;
    Some(format!("{}/{}", key(1)?, key(2)?))
}

impl Expr {
    /// Visits this expression and all within it.
    fn visit(&self, each: &mut impl FnMut(&Self)) {
        each(self);
        match &self.kind {
            ExprKind::Array(items) => items.iter().for_each(|item| item.visit(each)),
            ExprKind::Object(members) => members.iter().for_each(|(_, value)| value.visit(each)),
            ExprKind::Call(call) => call.function.arguments().into_iter().for_each(|it| it.visit(each)),
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
    /// The argument expressions.
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
