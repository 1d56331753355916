//! An evaluated environment: its expressions as written, and its values.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::definition::Expr;
use super::value::{Over, Value};

/// An evaluated environment.
#[derive(Debug)]
pub struct Environment<'a> {
    /// Its name in ranges.
    pub name: &'a str,
    /// The expressions of its values, by name.
    pub exprs: BTreeMap<&'a str, Expression<'a>>,
    /// Its values, as an object.
    pub properties: Rc<Value>,
    /// The value of `context`, an object.
    pub context: Rc<Value>,
}

/// An expression with what it overrides and the expressions within it.
#[derive(Debug)]
pub struct Expression<'a> {
    /// The expression as written.
    pub syntax: &'a Expr,
    /// The overridden expression of an imported environment.
    pub over: Option<Rc<Over>>,
    pub parts: Parts<'a, Self>,
}

/// The expressions within an expression.
#[derive(Debug)]
pub enum Parts<'a, T> {
    None,
    /// The elements of an array.
    Array(Vec<T>),
    /// The members of an object, with the first of each name.
    Object(BTreeMap<&'a str, T>),
    /// The arguments of a call.
    Arguments(Vec<T>),
}
