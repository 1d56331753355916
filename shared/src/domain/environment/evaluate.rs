//! Evaluates definitions.
//!
//! An expression is evaluated when it is first needed. So a value may refer to any other, even within the
//! object that contains it, if no value depends on itself. An imported environment is evaluated once.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::access::{Accessor, Part, Step};
use super::definition::{Definition, Expr, ExprKind, Function, Import, inline};
use super::tree::{Environment, Expression, Parts};
use super::value::{Kind, Over, Text, Value, merge, read_json};
use super::yaml::Key;
use super::{Diagnostic, Range, Span, has_errors};
use crate::domain::json_schema::Steps;

/// The name of a text that is not a stored environment (`esc.AnonymousEnvironmentName`, pulumi v3.274.1).
pub const ANONYMOUS: &str = "<yaml>";

/// The depth of evaluation through nesting, references and imports.
const DEPTH_MAX: usize = 150;

/// The steps of one evaluation, at most: one for each expression and each merged property.
const STEPS_MAX: usize = 500_000;

/// The size of what functions and interpolations of one evaluation read and produce, in bytes, as values
/// estimate their size.
const MADE_BYTES_MAX: usize = 32 << 20;

/// Diagnostics of one evaluation, at most. More would not help a reader.
const DIAGNOSTICS_MAX: usize = 100;

/// An environment before its evaluation.
#[derive(Debug)]
pub struct Source {
    /// Its name in ranges: `project/environment`.
    pub name: String,
    /// The parsed text, without the parts that could not be parsed.
    pub definition: Definition,
    /// The errors and warnings about its text.
    pub diagnostics: Vec<Diagnostic>,
    /// Its secrets by ciphertext: opened, or why they could not be. A missing secret is unknown.
    pub secrets: BTreeMap<String, Result<String, String>>,
}

/// A request to evaluate an environment.
#[derive(Debug)]
pub struct Request<'a> {
    /// The environment to evaluate.
    pub root: &'a Source,
    /// The environments that it and its imports name, by these names, or why one is missing.
    pub others: &'a BTreeMap<String, Result<Source, String>>,
    /// Whether the environment is opened. A check calls no provider.
    pub is_opened: bool,
    /// The value of `context` without the names of the environments: an object, as JSON text.
    pub context: &'a str,
    /// The results of the provider calls so far: the outputs, or why a call failed.
    pub outputs: &'a BTreeMap<ProviderCall, Result<ProviderOutputs, String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProviderCall {
    /// The name of the provider.
    pub provider: String,
    /// The inputs, as JSON text.
    pub inputs: String,
}

/// The outputs of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderOutputs {
    Value {
        /// The value, as JSON text.
        json: String,
        /// Whether the value is secret.
        is_secret: bool,
    },
    Object(BTreeMap<String, ProviderOutputs>),
}

/// The result of an evaluation.
#[derive(Debug)]
pub struct Evaluation<'a> {
    /// Errors and warnings: those of the text first, then those of its values.
    pub diagnostics: Vec<Diagnostic>,
    /// The providers to call before evaluating again with their outputs.
    pub calls: Vec<ProviderCall>,
    /// Whether the text could be parsed. If so, all errors are those of values.
    pub is_read: bool,
    /// The environment; `None` if the text defines nothing.
    pub environment: Option<Environment<'a>>,
    /// The value at the requested path.
    pub found: Option<Rc<Value>>,
}

/// Evaluates an environment, and finds the value at `path` if there is one.
pub fn evaluate<'a>(request: &'a Request<'a>, path: Option<&[Step]>) -> Evaluation<'a> {
    let mut session = Session {
        request,
        done: HashMap::new(),
        diagnostics: request.root.diagnostics.clone(),
        calls: Vec::new(),
        budget: Budget { depth: 0, steps: STEPS_MAX, made: MADE_BYTES_MAX, checks: Steps::default() },
    };
    let definition = &request.root.definition;
    let mut root = Evaluator::new(&mut session, request.root, request.root.name.clone());
    let value = root.evaluate();
    let is_empty = definition.values.is_empty() && definition.imports.is_empty();
    let environment = (!is_empty).then(|| Environment {
        name: &request.root.name,
        exprs: root.expressions(),
        properties: Rc::clone(&value),
        context: Rc::clone(&root.context),
    });
    let Session { diagnostics, calls, .. } = session;
    Evaluation {
        diagnostics,
        calls,
        is_read: !has_errors(&request.root.diagnostics),
        environment,
        found: path.and_then(|path| value.at(path)),
    }
}

/// The state that all environments of one evaluation share.
pub(super) struct Session<'a> {
    pub(super) request: &'a Request<'a>,
    /// The values of imports by name; `None` for one that is being evaluated.
    done: HashMap<String, Option<Rc<Value>>>,
    diagnostics: Vec<Diagnostic>,
    pub(super) calls: Vec<ProviderCall>,
    pub(super) budget: Budget,
}

/// What is left of an evaluation's limits.
pub(super) struct Budget {
    depth: usize,
    steps: usize,
    /// The bytes that functions and interpolations may still read and produce.
    pub(super) made: usize,
    /// The steps of checks against schemas.
    pub(super) checks: Steps,
}

type Id = usize;

/// An expression during its evaluation.
struct Node<'a> {
    syntax: &'a Expr,
    /// Its path, for the message about a value that depends on itself.
    path: String,
    /// The value that it overrides.
    base: Option<Rc<Value>>,
    parts: Parts<'a, Id>,
    state: State,
}

enum State {
    Declared,
    Running,
    Done(Rc<Value>),
}

/// One environment during its evaluation.
pub(super) struct Evaluator<'s, 'a> {
    pub(super) session: &'s mut Session<'a>,
    pub(super) source: &'a Source,
    /// The name of the environment to evaluate; for an anonymous one, that of its first import.
    root: String,
    exprs: Vec<Node<'a>>,
    properties: BTreeMap<&'a str, Id>,
    base: Option<Rc<Value>>,
    imports: Rc<Value>,
    context: Rc<Value>,
    nowhere: Rc<Range>,
}

impl<'s, 'a> Evaluator<'s, 'a> {
    fn new(session: &'s mut Session<'a>, source: &'a Source, root: String) -> Self {
        let nowhere = Rc::new(Range::new(&source.name, Span::default()));
        let mut context = read_json(session.request.context, false, &nowhere)
            .unwrap_or_else(|_| Value::new(Kind::Object(Rc::default()), &nowhere));
        if let Kind::Object(members) = &mut context.kind {
            for (key, name) in [("rootEnvironment", &root), ("currentEnvironment", &source.name)] {
                let name = Rc::new(Value::string(name, &nowhere));
                let named = Kind::Object(Rc::new(BTreeMap::from([("name".into(), name)])));
                Rc::make_mut(members).insert(key.into(), Rc::new(Value::new(named, &nowhere)));
            }
        }
        let imports = Rc::new(Value::new(Kind::Object(Rc::default()), &nowhere));
        Self {
            session,
            source,
            root,
            exprs: Vec::new(),
            properties: BTreeMap::new(),
            base: None,
            imports,
            context: Rc::new(context),
            nowhere,
        }
    }

    pub(super) fn wrong(&mut self, span: Span, what: impl Into<String>) {
        self.report(Diagnostic::error(&self.source.name, span, what));
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        if self.session.diagnostics.len() < DIAGNOSTICS_MAX {
            self.session.diagnostics.push(diagnostic);
        }
    }

    pub(super) fn range(&self, span: Span) -> Rc<Range> {
        Rc::new(Range::new(&self.source.name, span))
    }

    /// Evaluates the whole environment: an object of its values, merged over its imports.
    fn evaluate(&mut self) -> Rc<Value> {
        let definition = &self.source.definition;
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
        let value = merge(&value, base.as_ref(), &mut self.session.budget.steps);
        self.bounded(value, Span::default())
    }

    /// The value itself, or an unknown one if a limit is exceeded.
    pub(super) fn bounded(&mut self, value: Rc<Value>, span: Span) -> Rc<Value> {
        if self.session.budget.steps == 0 {
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
                let merged = merge(&value, self.base.as_ref(), &mut self.session.budget.steps);
                self.base = Some(self.bounded(merged, import.span));
            }
            named.insert(Rc::from(import.name.as_str()), value);
        }
        self.imports = Rc::new(Value::new(Kind::Object(Rc::new(named)), &Rc::clone(&self.nowhere)));
    }

    /// The value of an imported environment.
    fn import(&mut self, name: &str, span: Span) -> Option<Rc<Value>> {
        if let Some(known) = self.session.done.get(name) {
            let known = known.clone();
            if known.is_none() {
                self.wrong(span, format!("the imports of {name} lead back to it"));
            }
            return known;
        }
        let source = match self.session.request.others.get(name) {
            Some(Ok(source)) => source,
            Some(Err(why)) => {
                self.wrong(span, why.clone());
                return None;
            }
            None => {
                self.wrong(span, format!("{name} cannot be imported"));
                return None;
            }
        };
        if source.name == self.session.request.root.name {
            self.wrong(span, format!("the imports of {name} lead back to it"));
            return None;
        }
        for diagnostic in &source.diagnostics {
            self.report(diagnostic.clone());
        }
        if has_errors(&source.diagnostics) {
            return None;
        }
        if !self.enter(span) {
            return None;
        }
        self.session.done.insert(name.to_owned(), None);
        let root = if self.root == ANONYMOUS { source.name.clone() } else { self.root.clone() };
        let value = Evaluator::new(self.session, source, root).evaluate();
        self.session.budget.depth -= 1;
        self.session.done.insert(name.to_owned(), Some(Rc::clone(&value)));
        Some(value)
    }

    fn enter(&mut self, span: Span) -> bool {
        let Some(left) = self.session.budget.steps.checked_sub(1) else { return false };
        self.session.budget.steps = left;
        if self.session.budget.depth >= DEPTH_MAX {
            let what =
                format!("this is nested too deep: the limit is {DEPTH_MAX} values, references and imports");
            self.wrong(span, what);
            return false;
        }
        self.session.budget.depth += 1;
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
    ) -> Parts<'a, Id> {
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
                self.wrong(span, format!("{path} depends on itself"));
                return Rc::new(Value::unknown(&self.range(span)));
            }
            State::Declared => node.state = State::Running,
        }
        let base = node.base.clone();
        let syntax = node.syntax;
        let value = if let Some(base) = base.as_ref().filter(|base| base.is_final) {
            let words = "this value has no effect, because the imported one is final";
            self.report(Diagnostic::warning(&self.source.name, span, words));
            Rc::clone(base)
        } else if self.enter(span) {
            let mut value = self.compute(id, syntax);
            self.session.budget.depth -= 1;
            value.over = base.as_deref().map(overridden);
            let merged = merge(&Rc::new(value), base.as_ref(), &mut self.session.budget.steps);
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
                self.session.budget.made = 0;
                self.wrong(syntax.span, "the text is too long");
                return Value::unknown(from).secret_if(text.is_secret);
            }
        }
        let value = Value::text(text, from);
        self.made(syntax, value)
    }

    /// The value without hidden properties. That is a copy if it had any.
    fn reopened(&mut self, value: &Rc<Value>, span: Span) -> Rc<Value> {
        if !value.has_closed() {
            return Rc::clone(value);
        }
        if self.takes(value.size()) {
            return value.reopened();
        }
        self.wrong(span, "the values of the environment are too long");
        Rc::new(Value::unknown(&value.from))
    }

    /// Takes this size from the budget; false if not enough is left.
    pub(super) fn takes(&mut self, size: usize) -> bool {
        let left = self.session.budget.made.checked_sub(size);
        self.session.budget.made = left.unwrap_or(0);
        left.is_some()
    }

    /// A produced value, if the budget allows it.
    pub(super) fn made(&mut self, syntax: &Expr, value: Value) -> Value {
        if self.takes(value.size()) {
            return value;
        }
        self.wrong(syntax.span, "the values of the environment are too long");
        Value::unknown(&value.from).secret_if(value.is_secret)
    }

    /// The value of a reference.
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

    /// The value of a reference within this environment. Objects and lists on the way are not evaluated, so
    /// that values within them may refer to each other.
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

    /// Follows the rest of a reference from a value.
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

    pub(super) fn arguments(&mut self, id: usize) -> Vec<Rc<Value>> {
        let ids = match self.exprs.get(id).map(|node| &node.parts) {
            Some(Parts::Arguments(ids)) => ids.clone(),
            _ => Vec::new(),
        };
        ids.into_iter().map(|id| self.expr(id)).collect()
    }

    /// The expressions of the values, by name.
    fn expressions(&self) -> BTreeMap<&'a str, Expression<'a>> {
        let expressions = self.properties.iter();
        expressions.filter_map(|(name, id)| Some((*name, self.expression(*id)?))).collect()
    }

    fn expression(&self, id: Id) -> Option<Expression<'a>> {
        let Node { syntax, base, parts, .. } = self.exprs.get(id)?;
        let all = |ids: &[Id]| ids.iter().filter_map(|id| self.expression(*id)).collect();
        let parts = match parts {
            Parts::None => Parts::None,
            Parts::Array(ids) => Parts::Array(all(ids)),
            Parts::Arguments(ids) => Parts::Arguments(all(ids)),
            Parts::Object(ids) => Parts::Object(
                ids.iter().filter_map(|(name, id)| Some((*name, self.expression(*id)?))).collect(),
            ),
        };
        Some(Expression { syntax, over: base.as_deref().map(overridden), parts })
    }
}

/// A value as an overridden expression.
fn overridden(value: &Value) -> Rc<Over> {
    Rc::new(Over { from: Rc::clone(&value.from), over: value.over.clone() })
}

#[cfg(test)]
mod tests;
