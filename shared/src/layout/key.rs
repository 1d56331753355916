//! Keys that know the type of the record that is stored under them.
//!
//! No name or identifier holds `#` or `/`, so the parts of a key cannot run into each other.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use super::record::{Broken, Record};
use crate::domain::names::ProjectName;
use crate::ports::{ItemKey, Order, Query};

/// The sort key of a record that is the only one in its partition.
pub(super) const META: &str = "META";

/// The key of an item that stores a `T`.
pub struct Key<T> {
    item: ItemKey,
    record: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    pub(super) fn new(partition: impl Into<String>, sort: impl Into<String>) -> Self {
        Self { item: ItemKey::new(partition, sort), record: PhantomData }
    }
}

impl<T> Deref for Key<T> {
    type Target = ItemKey;

    fn deref(&self) -> &ItemKey {
        &self.item
    }
}

impl<T> From<Key<T>> for ItemKey {
    fn from(key: Key<T>) -> Self {
        key.item
    }
}

impl<T> PartialEq<Key<T>> for ItemKey {
    fn eq(&self, key: &Key<T>) -> bool {
        *self == key.item
    }
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        Self { item: self.item.clone(), record: PhantomData }
    }
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.item.fmt(f)
    }
}

/// The common start of the keys of several items of one partition, each of which stores a `T`.
pub struct KeyPrefix<T> {
    pub partition: String,
    /// The start of the sort keys; empty for all items of the partition.
    pub sort: String,
    record: PhantomData<fn() -> T>,
}

impl<T> KeyPrefix<T> {
    pub(super) fn new(partition: impl Into<String>, sort: impl Into<String>) -> Self {
        Self { partition: partition.into(), sort: sort.into(), record: PhantomData }
    }

    /// The keys of the same partition that start with `sort`.
    pub fn within(&self, sort: String) -> Self {
        Self::new(self.partition.clone(), sort)
    }

    /// A query for these items.
    pub fn query(self, after: Option<String>, order: Order, limit: usize) -> Query {
        Query { partition: self.partition, prefix: self.sort, after, order, limit }
    }
}

/// The part that was parsed from the key of a `T`.
///
/// # Errors
/// [`Broken`] if parsing failed: no version of this program creates such a key.
pub(super) fn parsed<T: Record, P>(key: &ItemKey, part: Option<P>) -> Result<P, Broken> {
    part.ok_or_else(|| Broken::Damaged {
        name: T::NAME,
        detail: format!("{:?} is not the key of one", key.sort),
    })
}

/// The project and the name from `project/name`.
pub(super) fn project_and_name<N, E>(
    text: &str,
    parse: impl FnOnce(&str) -> Result<N, E>,
) -> Option<(ProjectName, N)> {
    let (project, name) = text.split_once('/')?;
    Some((ProjectName::parse(project).ok()?, parse(name).ok()?))
}

/// The part before the `#` and the id at the end of a sort key.
pub(super) fn before_id(text: &str) -> Option<&str> {
    Some(text.split_once('#')?.0)
}
