//! Writes the sections of an index block by block.

use super::codec::compress;
use super::directory::Section;
use super::hash::Key;

/// Bytes of a block before it is compressed: the item that reaches this is the last.
const BLOCK_BYTES: usize = 64 << 10;

/// Writes a section. It holds one block that is not compressed yet.
#[derive(Default)]
pub(super) struct Writer {
    written: Written,
    raw: Vec<u8>,
    items: usize,
    key: Key,
}

impl Writer {
    pub(super) fn add(&mut self, items_max: usize, key: Key, write: impl FnOnce(&mut Vec<u8>)) {
        if self.items == 0 {
            self.key = key;
        }
        write(&mut self.raw);
        self.items += 1;
        if self.items >= items_max || self.raw.len() >= BLOCK_BYTES {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        if self.items > 0 {
            let block = compress(&self.raw);
            self.written.section.add(self.items, &block, self.raw.len(), self.key);
            self.written.blocks.push(block.into_boxed_slice());
            self.raw.clear();
            self.items = 0;
        }
    }

    pub(super) fn end(mut self) -> Written {
        self.end_block();
        self.written
    }
}

/// A section that is written. Its blocks are joined once, when their total is known: a list that grows would be copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) section: Section,
    blocks: Vec<Box<[u8]>>,
}

impl Written {
    /// The length of all blocks.
    pub(super) fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.len()).sum()
    }

    /// Appends the blocks, and frees each.
    pub(super) fn append_to(self, out: &mut Vec<u8>) {
        for block in self.blocks {
            out.extend_from_slice(&block);
        }
    }
}
