//! An index of the resources of a deployment: rows in the order of the tree, by blocks that are read one at a time.
//!
//! An index is a blob of four sections:
//!
//! 1. **lookup**: an [`Entry`] for each resource, sorted by a hash of its URN. It tells the resource's row, where its
//!    text is in the deployment, and which versions changed it. Entries of deleted resources stay without a row.
//! 2. **directory**: where the blocks of the other sections are, and their hashes.
//! 3. **rows**: a [`Row`] for each resource, depth-first by parent, children by name.
//! 4. **edges**: the references of each row to other rows.
//!
//! Every block is compressed for itself. The lookup and the directory are next to each other, so one read of both is
//! enough to index the next version; the directory and the first rows are, so one read is enough for the first page.
//!
//! A resource keeps its entry when its stack is renamed: hashes leave out the names of stack and project.

mod build;
pub(in crate::domain) mod codec;
mod directory;
mod hash;
mod model;
mod scan;
mod view;
mod writer;

pub use self::build::{Built, Previous, PreviousEntry, TEXT_FACTOR, build};
pub use self::directory::{Block, Directory, Places, edges_in, entries_in, inflate, rows_in};
pub use self::hash::{Key, TextHash, key_of, text_hash};
pub use self::model::{
    DELETED_MAX, Damaged, Edge, EdgeKind, Entry, FIRST_ROWS, Flag, Flags, ID_CHARS_MAX, Row,
};
pub use self::scan::{Scanned, scan};
pub use self::view::{
    Differences, Op, PropertyChange, View, changes, differences, is_same_resource, is_text_of,
};

#[cfg(test)]
mod tests;
