//! Turns a definition into values.
//!
//! Expressions are evaluated when they are first needed, so a value may refer to any other, also within the object that it is a
//! part of, as long as none needs itself. An environment that others import is evaluated once.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use super::access::{Accessor, Part, Step};
use super::definition::{Call, Definition, Expr, ExprKind, Function, Import, inline};
use super::value::{Kind, Over, Text, Value, json_string, list, merge, read_json};
use super::yaml::{self, Key};
use super::{Diagnostic, Range, Severity, Span, has_errors};
use crate::domain::json_schema::{Checked, Schema, Steps};

/// What a text is called that is no environment of its own (`esc.AnonymousEnvironmentName`, pulumi v3.274.1).
pub const ANONYMOUS: &str = "<yaml>";

/// How deep evaluation may go, through nesting, references and imports.
const DEPTH_MAX: usize = 150;

/// Steps that one evaluation may take: each expression and each property that is merged is one.
const STEPS_MAX: usize = 500_000;

/// What functions and interpolations of one evaluation may look at and make, as values count their size.
const MADE_BYTES_MAX: usize = 32 << 20;

/// The longest text that is cut up, and the longest list that is made of others.
const PIECES_MAX: usize = 1 << 17;

const TOO_LONG: &str = "it becomes too long";

/// More than this is wrong with nothing that a person reads.
const DIAGNOSTICS_MAX: usize = 100;

/// An environment as it is given.
#[derive(Debug)]
pub struct Given {
    /// What ranges call it: `project/environment`.
    pub name: String,
    /// What its text says, as far as it can be read.
    pub definition: Definition,
    /// What is wrong with its text.
    pub diagnostics: Vec<Diagnostic>,
    /// Its secrets, by their ciphertexts: opened, or why they could not be. Those that are not here are not known.
    pub secrets: BTreeMap<String, Result<String, String>>,
}

/// What to evaluate.
#[derive(Debug)]
pub struct Question<'a> {
    /// The environment.
    pub root: &'a Given,
    /// Those that it and its imports name, by what they call them: or why there is none.
    pub others: &'a BTreeMap<String, Result<Given, String>>,
    /// Whether it is opened; or only checked, and providers are not asked.
    pub is_opened: bool,
    /// What `context` is, beside the names of the environments: an object as JSON text.
    pub context: &'a str,
    /// What providers have answered: JSON texts, or why they did not.
    pub answers: &'a BTreeMap<Asked, Result<Answer, String>>,
}

/// What a provider is asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// The provider.
    pub provider: String,
    /// What it is asked with, as JSON text.
    pub inputs: String,
}

/// What a provider answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A value, as JSON text.
    Value {
        /// The text.
        json: String,
        /// Whether it is a secret.
        is_secret: bool,
    },
    /// An object of answers.
    Object(BTreeMap<String, Answer>),
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Evaluated {
    /// What is wrong: with the text first, and then with its values.
    pub diagnostics: Vec<Diagnostic>,
    /// What has to be asked of providers first. With these answers, evaluate again.
    pub asked: Vec<Asked>,
    /// Whether the text could be read: what is wrong is in its values, if anything.
    pub is_read: bool,
    /// The environment as the client reads it (`esc.Environment`), as JSON text.
    pub environment: String,
    /// The value that the path led to, as the client reads it.
    pub found: Option<String>,
}

/// Evaluates an environment. With a path, also looks for what that leads to.
pub fn evaluate(question: &Question<'_>, path: Option<&[Step]>) -> Evaluated {
    let mut shared = Shared {
        question,
        done: HashMap::new(),
        diagnostics: question.root.diagnostics.clone(),
        asked: Vec::new(),
        depth: 0,
        steps: STEPS_MAX,
        made: MADE_BYTES_MAX,
        checks: Steps::default(),
    };
    let mut root = Environment::new(&mut shared, question.root, question.root.name.clone());
    let value = root.evaluate();
    let is_read = !has_errors(&question.root.diagnostics);
    let mut evaluated = Evaluated { is_read, environment: "{}".to_owned(), ..Evaluated::default() };
    let is_empty = question.root.definition.values.is_empty() && question.root.definition.imports.is_empty();
    if !is_empty {
        let Environment { exprs, properties, context, .. } = &root;
        let mut out = String::from("{\"exprs\":");
        list(&mut out, '{', properties, '}', |out, (key, id)| {
            out.push_str(&json_string(key));
            out.push(':');
            export_expr(exprs, *id, &question.root.name, out);
        });
        out.push_str(",\"properties\":");
        value.export_properties(&mut out);
        out.push_str(",\"executionContext\":{\"properties\":");
        context.export_properties(&mut out);
        out.push_str("}}");
        evaluated.environment = out;
    }
    evaluated.found = path.and_then(|path| value.at(path)).map(|value| {
        let mut out = String::new();
        value.export(&mut out);
        out
    });
    evaluated.diagnostics = shared.diagnostics;
    evaluated.asked = shared.asked;
    evaluated
}

/// What all environments of one evaluation have in common.
struct Shared<'a> {
    question: &'a Question<'a>,
    /// What was imported, by what it is called; `None` while it is being evaluated.
    done: HashMap<String, Option<Rc<Value>>>,
    diagnostics: Vec<Diagnostic>,
    asked: Vec<Asked>,
    depth: usize,
    steps: usize,
    made: usize,
    checks: Steps,
}

type Id = usize;

/// An expression on its way to a value.
struct Node<'a> {
    syntax: &'a Expr,
    /// Where it lies, for who refers to it in a circle.
    path: String,
    /// What it overrides.
    base: Option<Rc<Value>>,
    parts: Parts<'a>,
    state: State,
}

/// The expressions within an expression.
enum Parts<'a> {
    None,
    Array(Vec<Id>),
    Object(BTreeMap<&'a str, Id>),
    Arguments(Vec<Id>),
}

enum State {
    Declared,
    Running,
    Done(Rc<Value>),
}

struct Environment<'s, 'a> {
    shared: &'s mut Shared<'a>,
    given: &'a Given,
    /// What was asked for: or the first of its imports, where that has no name.
    root: String,
    exprs: Vec<Node<'a>>,
    properties: BTreeMap<&'a str, Id>,
    base: Option<Rc<Value>>,
    imports: Rc<Value>,
    context: Rc<Value>,
    nowhere: Rc<Range>,
}

impl<'s, 'a> Environment<'s, 'a> {
    fn new(shared: &'s mut Shared<'a>, given: &'a Given, root: String) -> Self {
        let nowhere = Rc::new(Range::new(&given.name, Span::default()));
        let mut context = read_json(shared.question.context, false, &nowhere)
            .unwrap_or_else(|_| Value::new(Kind::Object(Rc::default()), &nowhere));
        if let Kind::Object(members) = &mut context.kind {
            for (key, name) in [("rootEnvironment", &root), ("currentEnvironment", &given.name)] {
                let name = Rc::new(Value::string(name, &nowhere));
                let named = Kind::Object(Rc::new(BTreeMap::from([("name".into(), name)])));
                Rc::make_mut(members).insert(key.into(), Rc::new(Value::new(named, &nowhere)));
            }
        }
        let imports = Rc::new(Value::new(Kind::Object(Rc::default()), &nowhere));
        Self {
            shared,
            given,
            root,
            exprs: Vec::new(),
            properties: BTreeMap::new(),
            base: None,
            imports,
            context: Rc::new(context),
            nowhere,
        }
    }

    fn wrong(&mut self, span: Span, what: impl Into<String>) {
        self.tell(Diagnostic::error(&self.given.name, span, what));
    }

    fn tell(&mut self, diagnostic: Diagnostic) {
        if self.shared.diagnostics.len() < DIAGNOSTICS_MAX {
            self.shared.diagnostics.push(diagnostic);
        }
    }

    fn range(&self, span: Span) -> Rc<Range> {
        Rc::new(Range::new(&self.given.name, span))
    }

    /// The whole environment: an object of its values, over what it imports.
    fn evaluate(&mut self) -> Rc<Value> {
        let definition = &self.given.definition;
        self.import_all(&definition.imports);
        let mut declared = BTreeMap::new();
        for (key, value) in &definition.values {
            if matches!(key.text.as_str(), "imports" | "context" | "environments") {
                self.wrong(
                    key.span,
                    format!("{:?} is reserved, and cannot be the name of a value", key.text),
                );
            } else if declared.contains_key(key.text.as_str()) {
                self.wrong(key.span, format!("duplicate key {:?}", key.text));
            } else {
                let base = self.base.as_ref().and_then(|base| base.property(&key.text));
                let id = self.declare(value, key.text.clone(), base);
                declared.insert(key.text.as_str(), id);
            }
        }
        self.properties = declared;
        let mut own = BTreeMap::new();
        for (key, id) in self.properties.clone() {
            own.insert(Rc::from(key), self.expr(id));
        }
        let value = Rc::new(Value::new(Kind::Object(Rc::new(own)), &Rc::clone(&self.nowhere)));
        let base = self.base.clone();
        let value = merge(&value, base.as_ref(), &mut self.shared.steps);
        self.bounded(value, Span::default())
    }

    /// A value as it is, unless it is too much.
    fn bounded(&mut self, value: Rc<Value>, span: Span) -> Rc<Value> {
        if self.shared.steps == 0 {
            self.wrong(span, "the environment takes too many steps to evaluate");
        } else if value.is_bounded() {
            return value;
        } else {
            self.wrong(span, "the value is too long or nested too deep");
        }
        Rc::new(Value::unknown(&value.from))
    }

    fn import_all(&mut self, imports: &'a [Import]) {
        let mut named = BTreeMap::new();
        for import in imports {
            let Some(value) = self.import(&import.name, import.span) else { continue };
            if import.merge {
                let value = self.reopened(&value, import.span);
                let merged = merge(&value, self.base.as_ref(), &mut self.shared.steps);
                self.base = Some(self.bounded(merged, import.span));
            }
            named.insert(Rc::from(import.name.as_str()), value);
        }
        self.imports = Rc::new(Value::new(Kind::Object(Rc::new(named)), &Rc::clone(&self.nowhere)));
    }

    /// What another environment comes to.
    fn import(&mut self, name: &str, span: Span) -> Option<Rc<Value>> {
        if let Some(known) = self.shared.done.get(name) {
            let known = known.clone();
            if known.is_none() {
                self.wrong(span, format!("the imports of {name} lead back to it"));
            }
            return known;
        }
        let given = match self.shared.question.others.get(name) {
            Some(Ok(given)) => given,
            Some(Err(why)) => {
                self.wrong(span, why.clone());
                return None;
            }
            None => {
                self.wrong(span, format!("{name} cannot be imported"));
                return None;
            }
        };
        if given.name == self.shared.question.root.name {
            self.wrong(span, format!("the imports of {name} lead back to it"));
            return None;
        }
        for diagnostic in &given.diagnostics {
            self.tell(diagnostic.clone());
        }
        if has_errors(&given.diagnostics) {
            return None;
        }
        if !self.enter(span) {
            return None;
        }
        self.shared.done.insert(name.to_owned(), None);
        let root = if self.root == ANONYMOUS { given.name.clone() } else { self.root.clone() };
        let value = Environment::new(self.shared, given, root).evaluate();
        self.shared.depth -= 1;
        self.shared.done.insert(name.to_owned(), Some(Rc::clone(&value)));
        Some(value)
    }

    fn enter(&mut self, span: Span) -> bool {
        let Some(left) = self.shared.steps.checked_sub(1) else { return false };
        self.shared.steps = left;
        if self.shared.depth >= DEPTH_MAX {
            let what =
                format!("this leads too deep: through more than {DEPTH_MAX} values, references and imports");
            self.wrong(span, what);
            return false;
        }
        self.shared.depth += 1;
        true
    }

    fn declare(&mut self, syntax: &'a Expr, path: String, base: Option<Rc<Value>>) -> Id {
        let parts = match &syntax.kind {
            ExprKind::Array(items) => Parts::Array(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| self.declare(item, format!("{path}[{index}]"), None))
                    .collect(),
            ),
            ExprKind::Object(members) => self.declare_members(members, &path, base.as_ref()),
            ExprKind::Call(call) => {
                let arguments = call.function.arguments();
                Parts::Arguments(
                    arguments.into_iter().map(|it| self.declare(it, path.clone(), None)).collect(),
                )
            }
            _ => Parts::None,
        };
        self.exprs.push(Node { syntax, path, base, parts, state: State::Declared });
        self.exprs.len() - 1
    }

    fn declare_members(
        &mut self,
        members: &'a [(Key, Expr)],
        path: &str,
        base: Option<&Rc<Value>>,
    ) -> Parts<'a> {
        let mut declared = BTreeMap::new();
        for (key, value) in members {
            if declared.contains_key(key.text.as_str()) {
                self.wrong(key.span, format!("duplicate key {:?}", key.text));
                continue;
            }
            let base = base.and_then(|base| base.property(&key.text));
            let id = self.declare(value, format!("{path}.{}", key.text), base);
            declared.insert(key.text.as_str(), id);
        }
        Parts::Object(declared)
    }

    /// The value of an expression.
    fn expr(&mut self, id: Id) -> Rc<Value> {
        let Some(node) = self.exprs.get_mut(id) else { return Rc::new(Value::unknown(&self.nowhere)) };
        let span = node.syntax.span;
        match &node.state {
            State::Done(value) => return Rc::clone(value),
            State::Running => {
                let path = node.path.clone();
                self.wrong(span, format!("{path} needs itself"));
                return Rc::new(Value::unknown(&self.range(span)));
            }
            State::Declared => node.state = State::Running,
        }
        let base = node.base.clone();
        let syntax = node.syntax;
        let value = if let Some(base) = base.as_ref().filter(|base| base.is_final) {
            let words = "the value that is imported is final, and this has no effect";
            self.tell(Diagnostic::warning(&self.given.name, span, words));
            Rc::clone(base)
        } else if self.enter(span) {
            let mut value = self.compute(id, syntax);
            self.shared.depth -= 1;
            value.over = base.as_deref().map(overridden);
            let merged = merge(&Rc::new(value), base.as_ref(), &mut self.shared.steps);
            self.bounded(merged, span)
        } else {
            Rc::new(Value::unknown(&self.range(span)))
        };
        if let Some(node) = self.exprs.get_mut(id) {
            node.state = State::Done(Rc::clone(&value));
        }
        value
    }

    fn compute(&mut self, id: Id, syntax: &'a Expr) -> Value {
        let from = self.range(syntax.span);
        match &syntax.kind {
            ExprKind::Missing => Value::unknown(&from),
            ExprKind::Null => Value::new(Kind::Null, &from),
            ExprKind::Bool(value) => Value::new(Kind::Bool(*value), &from),
            ExprKind::Number(text) => Value::new(Kind::Number(text.as_str().into()), &from),
            ExprKind::String(text) => Value::string(text, &from),
            ExprKind::Interpolate(parts) => self.interpolate(syntax, parts, &from),
            ExprKind::Symbol(accessors) => {
                let value = self.reference(syntax, accessors);
                self.reopened(&value, syntax.span).found_at(&from)
            }
            ExprKind::Array(_) | ExprKind::Object(_) => self.collection(id, &from),
            ExprKind::Call(call) => self.call(id, syntax, call, &from),
        }
    }

    fn collection(&mut self, id: Id, from: &Rc<Range>) -> Value {
        let kind = match self.exprs.get(id).map(|node| &node.parts) {
            Some(Parts::Array(items)) => {
                Kind::Array(items.clone().into_iter().map(|item| self.expr(item)).collect())
            }
            Some(Parts::Object(members)) => {
                let members = members.clone().into_iter();
                Kind::Object(Rc::new(members.map(|(key, value)| (Rc::from(key), self.expr(value))).collect()))
            }
            _ => Kind::Null,
        };
        Value::new(kind, from)
    }

    fn interpolate(&mut self, syntax: &Expr, parts: &'a [Part], from: &Rc<Range>) -> Value {
        let mut text = Text::default();
        for part in parts {
            text.bytes.extend_from_slice(part.text.as_bytes());
            let Some(access) = &part.access else { continue };
            let value = self.reference(syntax, access);
            let is_taken = self.takes(value.size()) && value.write_text(&mut text).is_ok();
            if !is_taken {
                self.shared.made = 0;
                self.wrong(syntax.span, "the text becomes too long");
                return Value::unknown(from).secret_if(text.is_secret);
            }
        }
        let value = Value::text(text, from);
        self.made(syntax, value)
    }

    /// A value with nothing hidden, which is a copy where anything is.
    fn reopened(&mut self, value: &Rc<Value>, span: Span) -> Rc<Value> {
        if !value.has_closed() {
            return Rc::clone(value);
        }
        if self.takes(value.size()) {
            return value.reopened();
        }
        self.wrong(span, "the values of the environment become too long");
        Rc::new(Value::unknown(&value.from))
    }

    /// Whether so much may still be looked at and made. What was, is paid for.
    fn takes(&mut self, size: usize) -> bool {
        let left = self.shared.made.checked_sub(size);
        self.shared.made = left.unwrap_or(0);
        left.is_some()
    }

    /// A value that was made.
    fn made(&mut self, syntax: &Expr, value: Value) -> Value {
        if self.takes(value.size()) {
            return value;
        }
        self.wrong(syntax.span, "the values of the environment become too long");
        Value::unknown(&value.from).secret_if(value.is_secret)
    }

    /// What a reference leads to.
    fn reference(&mut self, syntax: &Expr, accessors: &'a [Accessor]) -> Rc<Value> {
        let first = accessors.first().map(|accessor| &accessor.step);
        let rest = accessors.get(1..).unwrap_or_default();
        match first {
            Some(Step::Key(key)) if key == "imports" => self.walk(Rc::clone(&self.imports), rest),
            Some(Step::Key(key)) if key == "context" => self.walk(Rc::clone(&self.context), rest),
            Some(Step::Key(key)) if key == "environments" => {
                let imported = match inline(accessors) {
                    Some(name) => self.import(&name, syntax.span),
                    None => {
                        self.wrong(
                            syntax.span,
                            "a reference to another environment names its project and its name",
                        );
                        None
                    }
                };
                match imported {
                    Some(value) => self.walk(value, accessors.get(3..).unwrap_or_default()),
                    None => Rc::new(Value::unknown(&self.range(syntax.span))),
                }
            }
            _ => self.own_value(syntax, accessors),
        }
    }

    /// What a reference to a value of this environment leads to. Objects and lists on the way are not evaluated, so that what is
    /// within them may refer to each other.
    fn own_value(&mut self, syntax: &Expr, accessors: &'a [Accessor]) -> Rc<Value> {
        enum Next {
            Expr(Id),
            Base(Option<Rc<Value>>),
            Value(Id),
        }
        let mut at: Option<Id> = None;
        for (index, accessor) in accessors.iter().enumerate() {
            let rest = accessors.get(index..).unwrap_or_default();
            let node = at.and_then(|id| self.exprs.get(id).map(|node| (id, node)));
            let next = match (node, &accessor.step) {
                (None, Step::Key(key)) => match self.properties.get(key.as_str()) {
                    Some(id) => Next::Expr(*id),
                    None => Next::Base(self.base.clone()),
                },
                (Some((_, Node { parts: Parts::Object(members), base, .. })), Step::Key(key)) => {
                    match members.get(key.as_str()) {
                        Some(id) => Next::Expr(*id),
                        None => Next::Base(base.clone()),
                    }
                }
                (Some((_, Node { parts: Parts::Array(items), .. })), Step::Index(index))
                    if *index < items.len() =>
                {
                    items.get(*index).map_or(Next::Base(None), |id| Next::Expr(*id))
                }
                (Some((_, Node { parts: Parts::Array(_) | Parts::Object(_), .. })), _) => Next::Base(None),
                (Some((id, _)), _) => Next::Value(id),
                (None, Step::Index(_)) => Next::Base(None),
            };
            match next {
                Next::Expr(id) => at = Some(id),
                Next::Base(Some(base)) => return self.walk(base, rest),
                Next::Base(None) => return self.missing(accessor),
                Next::Value(id) if self.is_sealed(id) => {
                    self.wrong(syntax.span, "the value is a secret text: there is nothing within it");
                    return Rc::new(Value::unknown(&self.range(syntax.span)));
                }
                Next::Value(id) => {
                    let value = self.expr(id);
                    return self.walk(value, rest);
                }
            }
        }
        match at {
            Some(id) => self.expr(id),
            None => Rc::new(Value::unknown(&self.nowhere)),
        }
    }

    fn is_sealed(&self, id: Id) -> bool {
        let syntax = self.exprs.get(id).map(|node| &node.syntax.kind);
        matches!(syntax, Some(ExprKind::Call(call)) if matches!(call.function, Function::Ciphertext(..)))
    }

    /// What a reference leads to from a value on.
    fn walk(&mut self, mut value: Rc<Value>, accessors: &[Accessor]) -> Rc<Value> {
        for accessor in accessors {
            if value.is_unknown {
                return value;
            }
            let next = match (&value.kind, &accessor.step) {
                (Kind::Array(items), Step::Index(index)) => items.get(*index).cloned(),
                (Kind::Object(_), Step::Key(key)) => value.property(key),
                _ => None,
            };
            match next {
                Some(next) => value = next,
                None => return self.missing(accessor),
            }
        }
        value
    }

    fn missing(&mut self, accessor: &Accessor) -> Rc<Value> {
        let what = match &accessor.step {
            Step::Key(key) => format!("unknown property {key:?}"),
            Step::Index(index) => format!("there is no element {index} here"),
        };
        self.wrong(accessor.span, what);
        Rc::new(Value::unknown(&self.range(accessor.span)))
    }

    fn arguments(&mut self, id: Id) -> Vec<Rc<Value>> {
        let ids = match self.exprs.get(id).map(|node| &node.parts) {
            Some(Parts::Arguments(ids)) => ids.clone(),
            _ => Vec::new(),
        };
        ids.into_iter().map(|id| self.expr(id)).collect()
    }

    fn call(&mut self, id: Id, syntax: &'a Expr, call: &'a Call, from: &Rc<Range>) -> Value {
        match &call.function {
            Function::Plaintext(text) => {
                return Value::string(text, &self.range(call.argument)).secret_if(true);
            }
            Function::Ciphertext(text, _) => return self.opened(syntax, text, from),
            Function::Unreadable => return Value::unknown(from),
            _ => {}
        }
        let arguments = self.arguments(id);
        // What it is made of is shared.
        let is_free = matches!(call.function, Function::Final(_) | Function::Validate { .. });
        let is_secret = arguments.iter().any(|argument| argument.has_secret());
        if !is_free && !self.takes(arguments.iter().map(|argument| argument.size()).sum()) {
            self.wrong(syntax.span, "the values of the environment become too long");
            return Value::unknown(from).secret_if(is_secret);
        }
        let computed = match arguments.as_slice() {
            [only] => self.call_with_one(syntax, call, only, from),
            [first, second] => self.call_with_two(call, first, second, from),
            _ => Ok(None),
        };
        match computed {
            Ok(Some(value)) if is_free => value,
            Ok(Some(value)) => self.made(syntax, value),
            Ok(None) => Value::unknown(from).secret_if(is_secret),
            Err(what) => {
                self.wrong(syntax.span, what);
                Value::unknown(from).secret_if(is_secret)
            }
        }
    }

    /// `None` where what it is called with is not known.
    fn call_with_one(
        &mut self,
        syntax: &Expr,
        call: &Call,
        value: &Rc<Value>,
        from: &Rc<Range>,
    ) -> Result<Option<Value>, String> {
        let is_secret = value.has_secret();
        let string = |text: &[u8]| Ok(Some(Value::string(text, from).secret_if(is_secret)));
        match &call.function {
            Function::Final(_) => return Ok(Some(value.whole_at(from).into_final())),
            Function::Open { provider, .. } => return self.open(syntax, provider, value, from),
            Function::ToString(_) => {
                let mut text = Text::default();
                value.write_text(&mut text).map_err(|_| TOO_LONG)?;
                return Ok(Some(Value::text(text, from)));
            }
            Function::Concat(_) => {
                let lists: Vec<_> = self.items(value).iter().map(|item| self.items(item)).collect();
                if value.has_unknown() {
                    return Ok(None);
                }
                if lists.iter().map(|list| list.len()).sum::<usize>() > PIECES_MAX {
                    return Err(TOO_LONG.to_owned());
                }
                let all = Kind::Array(lists.iter().flat_map(|list| list.iter().cloned()).collect());
                return Ok(Some(Value::new(all, from).secret_if(is_secret)));
            }
            _ => {}
        }
        if let Function::ToJson(_) | Function::ToYaml(_) = &call.function {
            return match (value.has_unknown(), &call.function) {
                (true, _) => Ok(None),
                (false, Function::ToJson(_)) => string(value.json().as_bytes()),
                (false, _) => string(value.yaml()?.as_bytes()),
            };
        }
        let Some(text) = self.text(value) else { return Ok(None) };
        match &call.function {
            Function::FromBase64(_) => string(&yaml::base64(&text).ok_or("this is not base64")?),
            Function::FromJson(_) => {
                let text =
                    std::str::from_utf8(&text).map_err(|_| "this is not JSON: it is not a text in UTF-8")?;
                let read = read_json(text, is_secret, from);
                read.map(Some).map_err(|error| format!("this is not JSON: {error}"))
            }
            Function::ToBase64(_) => string(STANDARD.encode(&text).as_bytes()),
            _ => Ok(None),
        }
    }

    fn call_with_two(
        &mut self,
        call: &Call,
        first: &Rc<Value>,
        second: &Rc<Value>,
        from: &Rc<Range>,
    ) -> Result<Option<Value>, String> {
        match &call.function {
            Function::Validate { schema, value } => {
                if !first.has_unknown() {
                    match read_schema(first) {
                        Err(what) => self.wrong(schema.span, what),
                        Ok(_) if second.has_unknown() => {}
                        Ok(schema) => {
                            if let Some(what) = self.misfit(&schema, second) {
                                self.wrong(value.span, what);
                            }
                        }
                    }
                }
                return Ok(Some(second.whole_at(from)));
            }
            Function::Rotate { .. } if !self.shared.question.is_opened => return Ok(None),
            Function::Rotate { provider, .. } => {
                return Err(format!("this server has no rotator {provider:?}"));
            }
            _ => {}
        }
        let is_secret = first.has_secret() || second.has_secret();
        let delimiter = self.text(first);
        match &call.function {
            Function::Join(..) => {
                let texts: Option<Vec<_>> = {
                    let items = self.items(second);
                    let texts: Vec<_> = items.iter().map(|item| self.text(item)).collect();
                    texts.into_iter().collect()
                };
                let (Some(delimiter), Some(texts), false) = (delimiter, texts, second.has_unknown()) else {
                    return Ok(None);
                };
                if !matches!(second.kind, Kind::Array(_)) {
                    return Ok(None);
                }
                let bytes: usize = texts.iter().map(|text| text.len() + delimiter.len()).sum();
                if bytes > self.shared.made {
                    return Err(TOO_LONG.to_owned());
                }
                Ok(Some(Value::string(texts.join(&*delimiter), from).secret_if(is_secret)))
            }
            Function::Split(..) => {
                let (Some(delimiter), Some(whole)) = (delimiter, self.text(second)) else { return Ok(None) };
                // A piece takes many times as much as its text.
                if whole.len() > PIECES_MAX {
                    return Err(TOO_LONG.to_owned());
                }
                let pieces = split(&whole, &delimiter)
                    .into_iter()
                    .map(|piece| Rc::new(Value::string(piece, from).secret_if(is_secret)));
                Ok(Some(Value::new(Kind::Array(pieces.collect()), from).secret_if(is_secret)))
            }
            _ => Ok(None),
        }
    }

    /// What a function is called with, where that is a text. If it is something else, that is told where it comes from.
    fn text(&mut self, value: &Value) -> Option<Rc<[u8]>> {
        match &value.kind {
            _ if value.is_unknown => None,
            Kind::String(text) => Some(Rc::clone(text)),
            other => {
                let what = format!("expected string, got {}", other.name());
                self.tell(Diagnostic {
                    range: (*value.from).clone(),
                    summary: what,
                    severity: Severity::Error,
                });
                None
            }
        }
    }

    /// The same for a list.
    fn items(&mut self, value: &Value) -> Rc<[Rc<Value>]> {
        match &value.kind {
            Kind::Array(items) => Rc::clone(items),
            _ if value.is_unknown => Rc::default(),
            other => {
                let what = format!("expected array, got {}", other.name());
                self.tell(Diagnostic {
                    range: (*value.from).clone(),
                    summary: what,
                    severity: Severity::Error,
                });
                Rc::default()
            }
        }
    }

    /// In what a value is not as its schema has it.
    fn misfit(&mut self, schema: &Schema, value: &Value) -> Option<String> {
        let Ok(json) = serde_json::from_str::<Json>(&value.json()) else {
            return Some("it is nested too deep to be validated".to_owned());
        };
        match schema.check(&json, value.has_secret(), &mut self.shared.checks) {
            Checked::Valid => None,
            Checked::Invalid { message, path } => Some(format!("{path}: {message}")),
            Checked::Error(why) => Some(why),
        }
    }

    /// A secret that was sealed.
    fn opened(&mut self, syntax: &Expr, ciphertext: &str, from: &Rc<Range>) -> Value {
        match self.given.secrets.get(ciphertext) {
            Some(Ok(text)) => Value::string(text, from).secret_if(true),
            Some(Err(why)) => {
                self.wrong(syntax.span, why.clone());
                Value::unknown(from).secret_if(true)
            }
            None => Value::unknown(from).secret_if(true),
        }
    }

    /// What a provider answers: all of it is there, or it has to be asked first.
    fn open(
        &mut self,
        syntax: &Expr,
        provider: &str,
        inputs: &Rc<Value>,
        from: &Rc<Range>,
    ) -> Result<Option<Value>, String> {
        if inputs.has_unknown() || !self.shared.question.is_opened {
            return Ok(None);
        }
        let asked = Asked { provider: provider.to_owned(), inputs: inputs.json() };
        match self.shared.question.answers.get(&asked) {
            Some(Ok(answer)) => {
                let value = self.answered(syntax, answer, from)?;
                Ok(Some(value))
            }
            Some(Err(why)) => Err(why.clone()),
            None => {
                if !self.shared.asked.contains(&asked) {
                    self.shared.asked.push(asked);
                }
                Ok(None)
            }
        }
    }

    fn answered(&mut self, syntax: &Expr, answer: &Answer, from: &Rc<Range>) -> Result<Value, String> {
        let members = match answer {
            Answer::Value { json, is_secret } => return read_json(json, *is_secret, from),
            Answer::Object(members) => members,
        };
        let mut object = BTreeMap::new();
        for (name, answer) in members {
            let value = Rc::new(self.answered(syntax, answer, from)?);
            object.insert(Rc::from(name.as_str()), self.bounded(value, syntax.span));
        }
        Ok(Value::new(Kind::Object(Rc::new(object)), from))
    }
}

/// The one provider that this server has: outputs of its own stacks.
pub const STACKS_PROVIDER: &str = "pulumi-stacks";

/// That there is no such provider.
pub fn no_provider(provider: &str) -> String {
    format!(
        "this server has no provider {provider:?}; it has {STACKS_PROVIDER:?} alone, for outputs of stacks"
    )
}

/// The schema of `fn::validate`. Its form is that of Pulumi ESC, which knows fewer keywords than JSON Schema, and no lists of types.
fn read_schema(schema: &Value) -> Result<Schema, String> {
    let json: Json = serde_json::from_str(&schema.json())
        .map_err(|_| "the schema is nested too deep to be read".to_owned())?;
    if let Some(what) = malformed(&json) {
        return Err(what);
    }
    Schema::read(&json).map_err(|error| error.to_string())
}

/// What is wrong with the form of a schema.
fn malformed(schema: &Json) -> Option<String> {
    const TYPES: [&str; 6] = ["string", "number", "boolean", "array", "object", "null"];
    let members = match schema {
        Json::Object(members) => members,
        Json::Bool(_) => return None,
        _ => return Some("a schema is an object, or true or false".to_owned()),
    };
    let is_texts = |value: &Json| value.as_array().is_some_and(|items| items.iter().all(Json::is_string));
    for (keyword, value) in members {
        let within: Vec<&Json> = match (keyword.as_str(), value) {
            ("items" | "additionalProperties", schema) => vec![schema],
            ("anyOf" | "oneOf" | "prefixItems", Json::Array(schemas)) => schemas.iter().collect(),
            ("$defs" | "properties", Json::Object(schemas)) => schemas.values().collect(),
            _ => Vec::new(),
        };
        if let Some(what) = within.into_iter().find_map(malformed) {
            return Some(what);
        }
        let needed = match keyword.as_str() {
            "type" if value.as_str().is_none_or(|name| !TYPES.contains(&name)) => {
                return Some(format!("the type of a schema is one of {}", TYPES.join(", ")));
            }
            "anyOf" | "oneOf" | "prefixItems" | "enum" | "examples" if !value.is_array() => "a list",
            "$defs" | "properties" if !value.is_object() => "an object",
            "$ref" | "pattern" | "title" | "description" if !value.is_string() => "a string",
            "uniqueItems" | "deprecated" if !value.is_boolean() => "true or false",
            "multipleOf" | "maximum" | "exclusiveMaximum" | "minimum" | "exclusiveMinimum" | "maxLength"
            | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties"
                if !value.is_number() =>
            {
                "a number"
            }
            "required" if !is_texts(value) => "a list of strings",
            "dependentRequired"
                if value.as_object().is_none_or(|members| !members.values().all(is_texts)) =>
            {
                "an object of lists of strings"
            }
            _ => continue,
        };
        return Some(format!("{keyword:?} in a schema takes {needed}"));
    }
    None
}

/// A text cut at each delimiter: between its characters where that is empty.
fn split<'t>(text: &'t [u8], delimiter: &[u8]) -> Vec<&'t [u8]> {
    let mut pieces = Vec::new();
    if delimiter.is_empty() {
        for chunk in text.utf8_chunks() {
            pieces.extend(
                chunk
                    .valid()
                    .char_indices()
                    .map(|(at, c)| chunk.valid().as_bytes().get(at..at + c.len_utf8()).unwrap_or_default()),
            );
            pieces.extend(chunk.invalid().chunks(1));
        }
        return pieces;
    }
    let (mut from, mut at) = (0, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(delimiter) {
            pieces.push(text.get(from..at).unwrap_or_default());
            at += delimiter.len();
            from = at;
        } else {
            at += 1;
        }
    }
    pieces.push(text.get(from..).unwrap_or_default());
    pieces
}

/// An expression as the client reads it (`esc.Expr`, pulumi v3.274.1): where it stands and what it is made of.
fn export_expr(exprs: &[Node<'_>], id: Id, environment: &str, out: &mut String) {
    let Some(Node { syntax, base, parts, .. }) = exprs.get(id) else {
        out.push_str("{}");
        return;
    };
    let range = |span: Span| json(&Range::new(environment, span));
    out.push_str("{\"range\":");
    out.push_str(&range(syntax.span));
    let mut bases = 0;
    let mut next = base.as_deref().map(overridden);
    while let Some(over) = next {
        out.push_str(",\"base\":{\"range\":");
        out.push_str(&json(over.from.as_ref()));
        bases += 1;
        next = over.over.clone();
    }
    out.push_str(&"}".repeat(bases));
    match (&syntax.kind, parts) {
        (ExprKind::Bool(value), _) => out.push_str(&format!(",\"literal\":{value}")),
        (ExprKind::Number(text), _) => out.push_str(&format!(",\"literal\":{text}")),
        (ExprKind::String(text), _) => out.push_str(&format!(",\"literal\":{}", json_string(text))),
        (ExprKind::Symbol(accessors), _) => {
            out.push_str(",\"symbol\":");
            export_accessors(accessors, environment, out);
        }
        (ExprKind::Interpolate(texts), _) => {
            out.push_str(",\"interpolate\":");
            list(out, '[', texts, ']', |out, part| {
                out.push('{');
                if !part.text.is_empty() {
                    out.push_str(&format!("\"text\":{}", json_string(&part.text)));
                }
                if let Some(access) = &part.access {
                    let comma = if part.text.is_empty() { "" } else { "," };
                    out.push_str(&format!("{comma}\"value\":"));
                    export_accessors(access, environment, out);
                }
                out.push('}');
            });
        }
        (ExprKind::Array(_), Parts::Array(items)) => {
            out.push_str(",\"list\":");
            list(out, '[', items, ']', |out, id| export_expr(exprs, *id, environment, out));
        }
        (ExprKind::Object(members), Parts::Object(ids)) => {
            out.push_str(",\"keyRanges\":");
            let spans: BTreeMap<&str, Span> =
                members.iter().map(|(key, _)| (key.text.as_str(), key.span)).collect();
            list(out, '{', spans, '}', |out, (key, span)| {
                out.push_str(&format!("{}:{}", json_string(key), range(span)));
            });
            out.push_str(",\"object\":");
            list(out, '{', ids, '}', |out, (key, id)| {
                out.push_str(&format!("{}:", json_string(key)));
                export_expr(exprs, *id, environment, out);
            });
        }
        (ExprKind::Call(call), parts) => {
            let name = json_string(&call.name.text);
            out.push_str(&format!(",\"builtin\":{{\"name\":{name},\"nameRange\":{}", range(call.name.span)));
            out.push_str(",\"arg\":");
            let ids = match parts {
                Parts::Arguments(ids) => ids.as_slice(),
                _ => &[],
            };
            export_argument(exprs, call, ids, environment, out);
            out.push('}');
        }
        _ => {}
    }
    out.push('}');
}

/// A value as what another one overrides.
fn overridden(value: &Value) -> Rc<Over> {
    Rc::new(Over { from: Rc::clone(&value.from), over: value.over.clone() })
}

/// What a function is called with. The text of a secret that is not sealed is left out.
fn export_argument(exprs: &[Node<'_>], call: &Call, ids: &[Id], environment: &str, out: &mut String) {
    let range = |span: Span| json(&Range::new(environment, span));
    let literal =
        |span: Span, text: &str| format!("{{\"range\":{},\"literal\":{}}}", range(span), json_string(text));
    let mut members: Vec<(&str, String)> = Vec::new();
    let names: &[&str] = match &call.function {
        Function::Ciphertext(text, span) => {
            members.push(("ciphertext", literal(*span, text)));
            &[]
        }
        Function::Open { provider, named: Some(span), .. } => {
            members.push(("provider", literal(*span, provider)));
            &["inputs"]
        }
        Function::Rotate { provider, named, .. } => {
            members.extend(named.map(|span| ("provider", literal(span, provider))));
            &["inputs", "state"]
        }
        Function::Validate { .. } => &["schema", "value"],
        _ => match ids {
            [only] => return export_expr(exprs, *only, environment, out),
            _ => &[],
        },
    };
    for (name, id) in names.iter().zip(ids) {
        let mut member = String::new();
        export_expr(exprs, *id, environment, &mut member);
        members.push((name, member));
    }
    out.push_str(&format!("{{\"range\":{}", range(call.argument)));
    if !members.is_empty() {
        out.push_str(",\"object\":");
        list(out, '{', members, '}', |out, (name, member)| out.push_str(&format!("\"{name}\":{member}")));
    } else if !ids.is_empty() {
        out.push_str(",\"list\":");
        list(out, '[', ids, ']', |out, id| export_expr(exprs, *id, environment, out));
    }
    out.push('}');
}

fn export_accessors(accessors: &[Accessor], environment: &str, out: &mut String) {
    list(out, '[', accessors, ']', |out, accessor| {
        let step = match &accessor.step {
            Step::Key(key) => format!("\"key\":{}", json_string(key)),
            Step::Index(index) => format!("\"index\":{index}"),
        };
        let range = json(&Range::new(environment, accessor.span));
        out.push_str(&format!("{{{step},\"range\":{range}}}"));
    });
}

fn json(range: &Range) -> String {
    serde_json::to_string(range).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::{Severity, access, definition, has_errors};
    use super::*;

    const TOP: &str = "acme/top";

    struct Case {
        others: BTreeMap<String, Result<Given, String>>,
        answers: BTreeMap<Asked, Result<Answer, String>>,
        is_opened: bool,
    }

    impl Case {
        fn new(others: &[(&str, &str)]) -> Self {
            let given = |(name, text): &(&str, &str)| {
                let given = given(name, text);
                (name.to_string(), Ok(given))
            };
            Self { others: others.iter().map(given).collect(), answers: BTreeMap::new(), is_opened: true }
        }

        fn evaluated(&self, text: &str, path: Option<&str>) -> Evaluated {
            let root = given(TOP, text);
            let question = Question {
                root: &root,
                others: &self.others,
                is_opened: self.is_opened,
                context: r#"{"pulumi":{"user":{"login":"alice"}}}"#,
                answers: &self.answers,
            };
            let path = path.map(|path| access::path(path).unwrap());
            evaluate(&question, path.as_deref())
        }

        /// The plain values, as JSON.
        fn values(&self, text: &str) -> Json {
            let evaluated = self.evaluated(text, None);
            assert!(!has_errors(&evaluated.diagnostics), "{text}: {:?}", evaluated.diagnostics);
            let environment: Json = serde_json::from_str(&evaluated.environment).unwrap();
            plain(&serde_json::json!({ "value": environment["properties"] }))
        }

        fn errors(&self, text: &str) -> Vec<String> {
            let evaluated = self.evaluated(text, None);
            serde_json::from_str::<Json>(&evaluated.environment).unwrap();
            let at =
                |it: &Diagnostic| format!("{}:{} {}", it.range.begin.line, it.range.begin.column, it.summary);
            evaluated.diagnostics.iter().filter(|it| it.severity == Severity::Error).map(at).collect()
        }
    }

    fn given(name: &str, text: &str) -> Given {
        let mut diagnostics = Vec::new();
        let definition = definition::read(name, text, &mut diagnostics);
        let open = |sealed: String| {
            let opened = sealed.strip_prefix("sealed-").map(str::to_owned);
            (sealed, opened.ok_or_else(|| "the ciphertext is of another environment".to_owned()))
        };
        let secrets = definition.ciphertexts().into_iter().map(open).collect();
        Given { name: name.to_owned(), definition, diagnostics, secrets }
    }

    /// A client's value without what is said about it; secrets in brackets.
    fn plain(value: &Json) -> Json {
        let bare = match &value["value"] {
            Json::Array(items) => items.iter().map(plain).collect(),
            Json::Object(members) => members.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
            other => other.clone(),
        };
        if value["unknown"] == true {
            return "unknown".into();
        }
        match (value["secret"] == true, bare) {
            (true, Json::String(text)) => format!("<{text}>").into(),
            (true, other) => serde_json::json!({ "secret": other }),
            (false, bare) => bare,
        }
    }

    fn alone(text: &str) -> Json {
        Case::new(&[]).values(text)
    }

    #[test]
    fn values_refer_to_each_other_in_any_order() {
        let text = "values:\n  url: https://${server.host}:${server.port}/${list[1].x}\n  server:\n    host: ${names.first}\n    \
                    port: 8080\n    same: ${server.host}\n  names: {first: a.example}\n  list: [1, {x: y}]\n  all: ${list}\n  \
                    \"odd name\": 1\n  odd: ${[\"odd name\"]}\n  dollar: $${x}\n  texts: \"${list} ${server.port}\"\n";
        assert_eq!(
            alone(text),
            serde_json::json!({
                "url": "https://a.example:8080/y",
                "server": {"host": "a.example", "port": 8080, "same": "a.example"},
                "names": {"first": "a.example"},
                "list": [1, {"x": "y"}],
                "all": [1, {"x": "y"}],
                "odd name": 1,
                "odd": 1,
                "dollar": "${x}",
                "texts": r#""1","\"x\"=\"y\"" 8080"#,
            })
        );
    }

    #[test]
    fn functions_do_what_they_say() {
        let text = "values:\n  json: {fn::toJSON: {a: [1, 1.50, true, null], b: x}}\n  back: {fn::fromJSON: \"${json}\"}\n  \
                    exact: {fn::fromJSON: \"[1.50,12345678901234567890]\"}\n  yaml: {fn::toYAML: {a: [1, {x: 'true', y: [[1], []]}], b: 'x: y', c: {}, d: null, e: {f: g}}}\n  \
                    base: {fn::toBase64: hé}\n  text: {fn::fromBase64: \"${base}\"}\n  joined: {fn::join: ['-', [a, b, \"${base}\"]]}\n  \
                    split: {fn::split: [',', 'a,b,']}\n  string: {fn::toString: {a: 1}}\n  concat: {fn::concat: [[1], [2, 3], []]}\n  \
                    checked: {fn::validate: {schema: {type: string, minLength: 1}, value: x}}\n";
        let values = alone(text);
        assert_eq!(values["json"], r#"{"a":[1,1.5,true,null],"b":"x"}"#);
        assert_eq!(values["back"], serde_json::json!({"a": [1, 1.5, true, null], "b": "x"}));
        assert_eq!(values["exact"].to_string(), "[1.5,12345678901234567890]");
        let yaml = "a:\n    - \"1\"\n    - x: \"true\"\n      \"y\":\n        - - \"1\"\n        - []\nb: 'x: y'\nc: {}\nd: null\ne:\n    f: g\n";
        assert_eq!(values["yaml"], yaml);
        yaml::parse(yaml).unwrap();
        assert_eq!((&values["base"], &values["text"]), (&"aMOp".into(), &"hé".into()));
        assert_eq!(values["joined"], "a-b-aMOp");
        assert_eq!(values["split"], serde_json::json!(["a", "b", ""]));
        assert_eq!(values["string"], r#""a"="1""#);
        assert_eq!(values["concat"], serde_json::json!([1, 2, 3]));
        assert_eq!(values["checked"], "x");
    }

    #[test]
    fn a_secret_makes_a_secret_of_whatever_is_made_of_it() {
        let text = "values:\n  a: {fn::secret: {ciphertext: sealed-x}}\n  b: \"-${a}-\"\n  c: {fn::toJSON: [\"${a}\"]}\n  \
                    d: {fn::fromJSON: \"${c}\"}\n  e: [1, \"${a}\"]\n  f: {fn::secret: plain}\n  g: {fn::join: [\",\", \"${d}\"]}\n";
        assert_eq!(
            alone(text),
            serde_json::json!({
                "a": "<x>", "b": "<-x->", "c": "<[\"x\"]>", "d": {"secret": ["<x>"]}, "e": [1, "<x>"], "f": "<plain>", "g": "<x>",
            })
        );
        let refused = Case::new(&[]).errors("values:\n  a:\n    fn::secret: {ciphertext: other}\n");
        assert_eq!(refused, ["3:5 the ciphertext is of another environment"]);
    }

    #[test]
    fn imports_are_merged_in_their_order_below_the_own_values() {
        let case = Case::new(&[
            (
                "acme/a",
                "values:\n  x: {a: 1, b: 1, list: [1, 2]}\n  only: a\n  where: ${context.currentEnvironment.name}\n",
            ),
            (
                "acme/b",
                "imports: [acme/a]\nvalues:\n  x: {b: 2, c: 2}\n  up: ${x.a}\n  root: ${context.rootEnvironment.name}\n",
            ),
            ("acme/c", "values: {x: {c: 3}, hidden: {y: 1}}\n"),
        ]);
        let text = "imports: [acme/a, acme/b, {acme/c: {merge: false}}]\nvalues:\n  x: {d: \"${x.a}\", list: [3]}\n  \
                    by: ${imports[\"acme/c\"].hidden.y}\n  inline: ${environments.acme.c.x.c}\n  me: ${context.pulumi.user.login}\n";
        assert_eq!(
            case.values(text),
            serde_json::json!({
                "x": {"a": 1, "b": 2, "c": 2, "d": 1, "list": [3]},
                "only": "a", "up": 1, "where": "acme/a", "root": TOP,
                "by": 1, "inline": 3, "me": "alice",
            })
        );
        // A value that refers to an object takes the place of the imported one, property by property.
        let text = "imports: [acme/a]\nvalues:\n  y: {b: 9}\n  x: ${y}\n";
        assert_eq!(case.values(text)["x"], serde_json::json!({"a": 1, "b": 9, "list": [1, 2]}));
        let text = "imports: [acme/a]\nvalues: {x: 1}\n";
        assert_eq!(case.values(text)["x"], 1);
        // Where a value comes from, and what it overrides, is told.
        let evaluated = case.evaluated("imports: [acme/b]\nvalues:\n  x:\n    b: 5\n", Some("x.b"));
        let found: Json = serde_json::from_str(&evaluated.found.unwrap()).unwrap();
        assert_eq!(found["value"], 5);
        let trace = &found["trace"];
        let names =
            [&trace["def"], &trace["base"]["trace"]["def"], &trace["base"]["trace"]["base"]["trace"]["def"]];
        assert_eq!(names.map(|range| range["environment"].as_str().unwrap()), [TOP, "acme/b", "acme/a"]);
        let bases = [&trace["base"]["value"], &trace["base"]["trace"]["base"]["value"]];
        assert_eq!(bases, [2, 1], "what was overridden is told");
        assert_eq!(names[0]["begin"], serde_json::json!({"line": 4, "column": 8, "byte": 38}));
    }

    #[test]
    fn a_final_value_stays_with_a_warning() {
        let case = Case::new(&[("acme/a", "values: {x: {fn::final: {a: 1}}, y: {fn::final: 1}}\n")]);
        let text = "imports: [acme/a]\nvalues: {x: {a: 2, b: 3}, y: 2}\n";
        assert_eq!(case.values(text), serde_json::json!({"x": {"a": 1}, "y": 1}));
        let warned = case.evaluated(text, None).diagnostics;
        assert!(
            warned.iter().all(|it| it.severity == Severity::Warning && it.summary.contains("final")),
            "{warned:?}"
        );
        assert_eq!(warned.len(), 2);
    }

    #[test]
    fn what_is_wrong_is_told_where_it_is() {
        let case = Case::new(&[
            ("acme/loop", "imports: [acme/loop2]\nvalues: {}\n"),
            ("acme/loop2", "imports: [acme/loop]\nvalues: {}\n"),
            ("acme/back", "imports: [acme/top]\nvalues: {}\n"),
            (TOP, "values: {}\n"),
        ]);
        for (text, error) in [
            ("values:\n  a: ${b}\n", "2:8 unknown property \"b\""),
            ("values:\n  a: x ${b.c} ${context}\n", "2:10 unknown property \"b\""),
            ("values: {a: {b: 1}, c: '${a.x}'}\n", "1:24 unknown property \"x\""),
            ("values: {a: [1], c: '${a[1]}'}\n", "1:21 there is no element 1 here"),
            ("values: {a: [1], c: '${a.x}'}\n", "1:21 unknown property \"x\""),
            ("values:\n  a: ${b}\n  b: ${a}\n", "2:6 a needs itself"),
            ("values:\n  a: {b: '${a}'}\n", "2:6 a needs itself"),
            ("values: {a: 1, a: 2}\n", "1:16 duplicate key \"a\""),
            ("values: {imports: 1}\n", "1:10 \"imports\" is reserved, and cannot be the name of a value"),
            ("imports: [acme/none]\n", "1:11 acme/none cannot be imported"),
            ("imports: [acme/loop]\n", "1:11 the imports of acme/loop lead back to it"),
            ("imports: [acme/back]\n", "1:11 the imports of acme/top lead back to it"),
            ("values: {a: {fn::join: [',', x]}}\n", "1:30 expected array, got string"),
            ("values: {a: {fn::join: [',', '${b}']}, b: x}\n", "1:30 expected array, got string"),
            ("values: {a: {fn::toBase64: 1}}\n", "1:28 expected string, got number"),
            ("values: {a: {fn::fromBase64: '!'}}\n", "1:13 this is not base64"),
            ("values: {a: {fn::concat: '${b}'}, b: []}\n", "1:26 fn::concat takes a list of lists"),
            (
                "values: {a: {fn::secret: 'x ${b}'}, b: 1}\n",
                "1:26 fn::secret takes a string without references.",
            ),
            ("values: {a: {fn::secret: {ciphertext: '${b}'}}, b: 1}\n", "1:26 fn::secret takes a string"),
            ("values: {a: {'${b}': 1}, b: 1}\n", "1:14 the keys of an object hold no references"),
            (
                "values: {a: {fn::validate: {schema: {type: integer}, value: 1}}}\n",
                "1:37 the type of a schema is one of",
            ),
            (
                "values: {a: '${s.x}', s: {fn::secret: {ciphertext: sealed-x}}}\n",
                "1:13 the value is a secret text",
            ),
            ("values:\n", "1:8 values must be an object"),
            ("imports:\nvalues: {}\n", "1:9 imports must be a list"),
            ("# nothing\n", "0:0 environment must be an object"),
            ("values: {a: {fn::rotate::x: {inputs: {}}}}\n", "1:13 this server has no rotator \"x\""),
            ("values: {a: {fn::validate: {schema: {type: string}, value: 1}}}\n", "1:60 $: "),
        ] {
            let errors = case.errors(text);
            assert_eq!(errors.len(), 1, "{text}: {errors:?}");
            assert!(errors[0].starts_with(error), "{text}: {errors:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_all_at_once() {
        let errors = Case::new(&[]).errors("values:\n  a: ${b..c}\n  d: ${e}\n  f: {fn::toBase64: [1]}\n");
        let places: Vec<&str> = errors.iter().filter_map(|error| error.split(' ').next()).collect();
        assert_eq!(places, ["2:9", "2:8", "3:8", "4:21"], "{errors:?}");
    }

    #[test]
    fn numbers_in_texts_are_written_as_go_writes_them() {
        let values = alone(
            "values:\n  v: 1.0\n  w: 1e3\n  x: 1_000.5\n  y: 1e6\n  t: \"v${v} ${w} ${x} ${y}\"\n  s: {fn::toString: \"${w}\"}\n  \
             j: {fn::toJSON: [1.0, 2.50, 1e-7]}\n",
        );
        assert_eq!(values["t"], "v1 1000 1000.5 1e+06");
        assert_eq!((&values["s"], &values["j"]), (&"1000".into(), &"[1,2.5,1e-07]".into()));
    }

    #[test]
    fn base64_may_be_wrapped_and_stand_for_any_bytes() {
        let values = alone(
            "values:\n  a:\n    fn::fromBase64: |\n      aGVs\n      bG8=\n  b: {fn::fromBase64: /////w==}\n  c: {fn::toBase64: \"${b}\"}\n  \
             d: {fn::toYAML: [\"${b}\"]}\n  e: {fn::toString: [\"${b}\"]}\n  f: {fn::split: ['', \"${b}\"]}\n",
        );
        assert_eq!((&values["a"], &values["c"]), (&"hello".into(), &"/////w==".into()));
        assert_eq!(values["b"], "\u{fffd}".repeat(4), "each byte is told");
        assert_eq!(
            (&values["d"], &values["e"]),
            (&"- !!binary /////w==\n".into(), &r#""\xff\xff\xff\xff""#.into())
        );
        assert_eq!(values["f"].as_array().map(Vec::len), Some(4));
    }

    #[test]
    fn texts_are_escaped_as_go_escapes_them() {
        let values = alone(
            "values:\n  t: \"<&>\\u2028\\x01\\x7f\"\n  j: {fn::toJSON: \"${t}\"}\n  s: {fn::toString: [\"${t}\"]}\n",
        );
        assert_eq!(values["j"], r#""\u003c\u0026\u003e\u2028\u0001\u007f""#.replace(r"\u007f", "\u{7f}"));
        assert_eq!(values["s"], r#""<&>\u2028\x01\x7f""#);
    }

    #[test]
    fn the_text_of_an_object_is_what_it_has_of_its_own() {
        let case = Case::new(&[("acme/a", "values: {o: {a: 1, s: {fn::secret: x}}}\n")]);
        let text = "imports: [acme/a]\nvalues:\n  o: {b: 2}\n  t: o is ${o}\n  u: {fn::toString: \"${o}\"}\n  j: {fn::toJSON: \"${o}\"}\n";
        let values = case.values(text);
        assert_eq!((&values["t"], &values["u"]), (&r#"o is "b"="2""#.into(), &r#""b"="2""#.into()));
        assert_eq!(values["j"], r#"<{"a":1,"b":2,"s":"x"}>"#);
    }

    #[test]
    fn a_list_with_a_secret_in_it_is_one_once_it_is_joined() {
        let values = alone(
            "values:\n  l: {fn::concat: [[1], [{fn::secret: x}]]}\n  o: {fn::final: {a: 1, b: {fn::secret: x}}}\n",
        );
        assert_eq!(values["l"], serde_json::json!({"secret": [1, "<x>"]}));
        assert_eq!(values["o"], serde_json::json!({"secret": {"a": 1, "b": "<x>"}}));
    }

    #[test]
    fn a_missing_provider_is_named_when_it_is_needed() {
        let mut case = Case::new(&[]);
        let text = "values:\n  a: {fn::open::aws-login: {oidc: {}}}\n  b: {fn::rotate::x: {inputs: {}, state: {y: 1}}}\n";
        case.is_opened = false;
        let checked = case.evaluated(text, None);
        assert_eq!(case.values(text), serde_json::json!({"a": "unknown", "b": "unknown"}));
        assert_eq!(checked.diagnostics, [], "it can be kept");
        case.is_opened = true;
        let asked = case.evaluated(text, None).asked;
        assert_eq!(asked[0].provider, "aws-login");
        case.answers = BTreeMap::from([(asked[0].clone(), Err(no_provider("aws-login")))]);
        assert_eq!(case.errors(text).len(), 2);
    }

    #[test]
    fn a_provider_is_asked_once_the_environment_is_opened() {
        let mut case = Case::new(&[]);
        let text = "values:\n  s:\n    fn::open::pulumi-stacks:\n      stacks: {net: {stack: \"${name}\"}}\n  name: net/dev\n  id: v-${s.net.id}\n";
        case.is_opened = false;
        assert_eq!(
            case.values(text),
            serde_json::json!({"s": "unknown", "name": "net/dev", "id": "unknown"})
        );
        case.is_opened = true;
        let asked = case.evaluated(text, None).asked;
        let inputs = r#"{"stacks":{"net":{"stack":"net/dev"}}}"#.to_owned();
        assert_eq!(asked, [Asked { provider: STACKS_PROVIDER.to_owned(), inputs }]);
        let value = |json: &str, is_secret| Answer::Value { json: json.to_owned(), is_secret };
        let outputs = BTreeMap::from([
            ("id".to_owned(), value("\"vpc-1\"", false)),
            ("key".to_owned(), value("{\"a\":1}", true)),
        ]);
        let answer = Answer::Object(BTreeMap::from([("net".to_owned(), Answer::Object(outputs))]));
        case.answers = BTreeMap::from([(asked[0].clone(), Ok(answer))]);
        let values = case.values(text);
        assert_eq!(values["id"], "v-vpc-1");
        assert_eq!(values["s"]["net"]["key"], serde_json::json!({"secret": {"a": {"secret": 1}}}));
    }

    #[test]
    fn what_the_reference_takes_is_taken_with_a_warning_at_most() {
        let case = Case::new(&[("acme/a", "values: {x: 1}\n")]);
        for (text, value, warnings) in [
            ("values: {x: 1}\nvalues: {x: 2}\n", serde_json::json!(2), 1),
            ("values: {x: 1}\nvaues: {x: 2}\n", serde_json::json!(1), 1),
            ("imports: [{acme/a: {merge: true, other: 1}}]\n", serde_json::json!(1), 1),
            ("values: {x: 1, o: {Fn::x: 1, y: 2}}\n", serde_json::json!(1), 0),
            ("values: {x: '${}', '': 1}\n", serde_json::json!(1), 0),
            ("values: {x: {fn::fromJSON: '1 and more'}}\n", serde_json::json!(1), 0),
            ("values: {x: {fn::fromJSON: '1&a '}}\n", serde_json::json!(1), 0),
            ("values: {x: {fn::fromJSON: '1.5.2'}}\n", serde_json::json!(1.5), 0),
            ("values: {x: {fn::fromJSON: ' 012'}}\n", serde_json::json!(0), 0),
            ("values: {x: {fn::fromJSON: 'truest'}}\n", serde_json::json!(true), 0),
            ("values: {x: {fn::fromJSON: '\"a\"b'}}\n", serde_json::json!("a"), 0),
        ] {
            assert_eq!(case.values(text)["x"], value, "{text}");
            let told = case.evaluated(text, None).diagnostics;
            assert_eq!(told.len(), warnings, "{text}: {told:?}");
        }
    }

    #[test]
    fn a_secret_is_traced_to_its_text_and_known_without_opening() {
        let mut case = Case::new(&[]);
        case.is_opened = false;
        let text = "values:\n  s: {fn::secret: '{\"a\": 1}'}\n  k: ${j.a}\n  j: {fn::fromJSON: \"${s}\"}\n";
        assert_eq!(case.values(text)["k"], serde_json::json!({"secret": 1}));
        let found: Json = serde_json::from_str(&case.evaluated(text, Some("s")).found.unwrap()).unwrap();
        assert_eq!(found["trace"]["def"]["begin"], serde_json::json!({"line": 2, "column": 19, "byte": 26}));
    }

    #[test]
    fn a_chain_of_too_many_references_is_refused_where_it_is() {
        let chain = |links: usize| {
            let link = |n: usize| format!("  a{n:03}: ${{a{:03}}}\n", n + 1);
            format!("values:\n{}  a{links:03}: 1\n", (0..links).map(link).collect::<String>())
        };
        assert_eq!(alone(&chain(DEPTH_MAX - 1))["a000"], 1);
        let errors = Case::new(&[]).errors(&chain(DEPTH_MAX));
        let place = format!("{}:9 ", DEPTH_MAX + 2);
        let words = "this leads too deep: through more than 150 values, references and imports";
        assert_eq!(errors, [format!("{place}{words}")]);
    }

    #[test]
    fn what_would_become_too_much_is_refused() {
        let doubling = |line: &dyn Fn(usize) -> String| {
            let lines: String = (1..60).map(line).collect();
            format!("values:\n  a00: [xxxxxxxxxx]\n{lines}")
        };
        let many = |line: &str| {
            let members: String = (0..2_000).map(|n| format!("k{n}: 1, ")).collect();
            let lines = format!("  {line}\n").repeat(5_000);
            format!(
                "values:\n  o: {{{members}}}\n  l: [{}]\n  t: {}\n  j: {{fn::toJSON: \"${{o}}\"}}\n  x:\n{lines}",
                "1, ".repeat(2_000),
                "x".repeat(20_000)
            )
        };
        for text in [
            doubling(&|n| format!("  a{n:02}: [\"${{a{:02}}}\", \"${{a{:02}}}\"]\n", n - 1, n - 1)),
            doubling(&|n| format!("  a{n:02}: \"${{a{:02}}} ${{a{:02}}}\"\n", n - 1, n - 1)),
            doubling(&|n| {
                format!("  a{n:02}: {{fn::toJSON: [\"${{a{:02}}}\", \"${{a{:02}}}\"]}}\n", n - 1, n - 1)
            }),
            (1..400).fold("values:\n  a000: 1\n".to_owned(), |text, n| {
                text + &format!("  a{n:03}: [\"${{a{:03}}}\"]\n", n - 1)
            }),
            // Many references to something long, and functions of it.
            many("- ${o}"),
            many("- \"${o}\""),
            many("- {fn::toJSON: \"${o}\"}"),
            many("- {fn::concat: [\"${l}\", \"${l}\"]}"),
            many("- {fn::split: ['', \"${t}\"]}"),
            many("- {fn::fromJSON: \"${j}\"}"),
            (1..2000)
                .fold("values:\n".to_owned(), |text, n| text + &format!("  a{n:04}: ${{a{:04}}}\n", n + 1))
                + "  a2000: 1\n",
        ] {
            let errors = Case::new(&[]).errors(&text);
            assert!(errors.iter().any(|error| error.contains("too ")), "{errors:?}");
        }
    }
}
