//! An environment once it is evaluated: its expressions as they are written, and its values.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::definition::Expr;
use super::value::{Over, Value};

/// An environment once it is evaluated.
#[derive(Debug)]
pub struct Environment<'a> {
    /// Its name in ranges.
    pub name: &'a str,
    /// The expressions of its values, by name.
    pub exprs: BTreeMap<&'a str, Expression<'a>>,
    /// Its values: an object.
    pub properties: Rc<Value>,
    /// The value of `context`: an object.
    pub context: Rc<Value>,
}

/// An expression with what it overrides and what it is made of.
#[derive(Debug)]
pub struct Expression<'a> {
    /// As it is written.
    pub syntax: &'a Expr,
    /// What it overrides in the environments that are imported.
    pub over: Option<Rc<Over>>,
    /// The expressions within it.
    pub parts: Parts<'a, Self>,
}

/// The expressions within an expression.
#[derive(Debug)]
pub enum Parts<'a, T> {
    /// There are none.
    None,
    /// The elements of an array.
    Array(Vec<T>),
    /// The members of an object; the first one of each name.
    Object(BTreeMap<&'a str, T>),
    /// The arguments of a call.
    Arguments(Vec<T>),
}
