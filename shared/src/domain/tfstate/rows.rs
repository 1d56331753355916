//! The resource instances of a long state as rows, in the order of lists, by blocks that are read one at a time.
//!
//! A blob of rows has a [`Directory`] and the blocks. Each block is compressed for itself and then sealed for itself, and
//! the directory is sealed too. The directory names the text that it is of, and has a hash of each sealed block: so no
//! block and no directory can stand in for another. The first blocks follow it, so that one read is enough for the first
//! page.

use std::ops::Range;

use sha2::{Digest, Sha256};

use super::super::resource_index::Damaged;
use super::super::resource_index::codec::{Taker, compress, decompress, put_number, put_text};
use super::document::InvalidState;
use super::index::{Index, Whole};
use super::instance::{Relating, after_key};
use super::listing::{Listed, PAGE_BYTES_MAX, Pager, Place, order};
use super::resources::each;

/// Rows that are read together with the directory. A page of fewer takes one read.
pub const FIRST_ROWS: usize = 500;

/// Rows of a block, at most.
const ROWS_PER_BLOCK: u32 = 256;

/// Bytes of a block before it is compressed: the row that reaches this is the last.
const BLOCK_BYTES: usize = 64 << 10;

/// The first bytes of a directory, with its format.
const MAGIC: [u8; 5] = *b"SWTR\x01";

/// The bytes of a hash that the directory has of each block.
const HASH_BYTES: usize = 16;

/// The memory of a block in a directory, in bytes, in addition to the text of its place.
const BLOCK_MEMORY: usize = 160;

/// What applies to a row, and which of its texts are absent, as bits.
const TAINTED: u8 = 1;
const KEYED: u8 = 2;
const DEPOSED: u8 = 4;

/// What lists and details show of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'a> {
    /// The address, as clients print it.
    pub address: &'a str,
    /// The start of the SHA-256 of its text, as in an [`Index`].
    pub digest: [u8; 8],
    /// The length of the address of its resource, with which its own begins.
    of_bytes: usize,
    /// Empty for the root module.
    pub(super) module: &'a str,
    mode: &'a str,
    kind: &'a str,
    name: &'a str,
    key: Option<&'a str>,
    deposed: Option<&'a str>,
    /// As it is shown.
    provider: &'a str,
    /// The provider of its resource as in the text, which filters look into.
    pub(super) sought: &'a str,
    is_tainted: bool,
    dependency_count: Option<u64>,
    /// The resources that it depends on.
    pub(super) needs: Vec<&'a str>,
}

impl Row<'_> {
    /// The address of its resource.
    pub(super) fn of(&self) -> &str {
        self.address.get(..self.of_bytes).unwrap_or(self.address)
    }

    pub(super) fn listed(&self) -> Listed {
        Listed {
            address: self.address.to_owned(),
            module: (!self.module.is_empty()).then(|| self.module.to_owned()),
            mode: self.mode.to_owned(),
            kind: self.kind.to_owned(),
            name: self.name.to_owned(),
            key: self.key.map(str::to_owned),
            deposed: self.deposed.map(str::to_owned),
            provider: self.provider.to_owned(),
            is_tainted: self.is_tainted,
            dependency_count: self.dependency_count,
        }
    }

    /// Seeks what is related to its instance.
    pub fn relating(&self) -> Relating {
        let needs = self.needs.iter().map(|&needed| needed.to_owned()).collect();
        Relating::new(self.listed(), self.of(), needs)
    }
}

impl Pager {
    /// Offers the instance of a row.
    pub fn offer(&mut self, row: &Row<'_>) {
        self.add(row.module, row.address, row.sought, || row.listed());
    }
}

impl Relating {
    /// Offers the instance of a row.
    pub fn offer(&mut self, row: &Row<'_>) {
        self.add(row.address, row.of(), &row.needs);
    }
}

fn write_row(out: &mut Vec<u8>, whole: &Whole<'_>, digest: [u8; 8]) {
    let listed = Listed::of(whole);
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let (keyed, deposed) = (flag(whole.key.is_some(), KEYED), flag(whole.deposed.is_some(), DEPOSED));
    out.push(flag(listed.is_tainted, TAINTED) | keyed | deposed);
    out.extend_from_slice(&digest);
    put_text(out, &whole.address);
    put_number(out, whole.of.len() as u64);
    for text in [whole.module, whole.mode, whole.kind, whole.name] {
        put_text(out, text);
    }
    for text in [whole.key, whole.deposed] {
        put_text(out, text.unwrap_or_default());
    }
    put_text(out, &listed.provider);
    put_text(out, whole.provider);
    put_number(out, listed.dependency_count.map_or(0, |count| count.saturating_add(1)));
    let needs = whole.needs();
    put_number(out, needs.len() as u64);
    for needed in &needs {
        put_text(out, needed);
    }
}

fn read_row<'a>(taker: &mut Taker<'a>) -> Result<Row<'a>, Damaged> {
    let [flags] = taker.bytes()?;
    let digest = taker.bytes()?;
    let address = taker.text()?;
    let of_bytes = usize::try_from(taker.number()?).map_err(|_| Damaged("a text is too long"))?;
    let (module, mode, kind, name) = (taker.text()?, taker.text()?, taker.text()?, taker.text()?);
    let (key, deposed) = (taker.text()?, taker.text()?);
    let (provider, sought) = (taker.text()?, taker.text()?);
    let dependency_count = taker.number()?.checked_sub(1);
    let needs = (0..taker.number()?).map(|_| taker.text()).collect::<Result<_, Damaged>>()?;
    Ok(Row {
        address,
        digest,
        of_bytes,
        module,
        mode,
        kind,
        name,
        key: (flags & KEYED != 0).then_some(key),
        deposed: (flags & DEPOSED != 0).then_some(deposed),
        provider,
        sought,
        is_tainted: flags & TAINTED != 0,
        dependency_count,
        needs,
    })
}

/// The module in an address, as clients write it; empty for the root module.
fn module_in(address: &str) -> &str {
    let mut end = 0;
    loop {
        let rest = address.get(end..).unwrap_or_default();
        let rest = if end == 0 { rest } else { rest.strip_prefix('.').unwrap_or_default() };
        let Some(name) = rest.strip_prefix("module.") else { break };
        let Some(after) = name.find(['.', '[']).and_then(|length| name.get(length..)) else { break };
        let after = after.strip_prefix('[').map_or(after, after_key);
        if !after.starts_with('.') {
            break;
        }
        end = address.len() - after.len();
    }
    address.get(..end).unwrap_or_default()
}

/// The size of the rows of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// The number of rows.
    pub rows: usize,
    /// Their length in bytes, before they are compressed.
    pub bytes: usize,
    /// The length of the longest.
    longest: usize,
}

impl Measured {
    /// The memory that [`make`] takes, in bytes: the rows, the order of the rows, the block that is made, and all blocks.
    pub fn memory(&self) -> usize {
        let order = self.rows.saturating_mul(size_of::<Span>());
        let block = self.longest.saturating_add(BLOCK_BYTES).saturating_mul(3);
        self.bytes.saturating_mul(2).saturating_add(order).saturating_add(block)
    }
}

/// Measures the rows of a state. `None` if the client encrypted it or its format is unknown, and if an instance has
/// another module than its address says: it could not be found by that.
///
/// # Errors
/// [`InvalidState`].
pub fn measure(text: &[u8]) -> Result<Option<Measured>, InvalidState> {
    let (mut rows, mut bytes, mut longest) = (0_usize, 0_usize, 0);
    let (mut are_named, mut scratch) = (true, Vec::new());
    let is_known = each(text, &mut |whole: Whole<'_>| {
        scratch.clear();
        write_row(&mut scratch, &whole, [0; 8]);
        rows += 1;
        bytes = bytes.saturating_add(scratch.len());
        longest = longest.max(scratch.len());
        are_named &= module_in(&whole.address) == whole.module;
    })?;
    let is_short = u32::try_from(rows).is_ok() && u32::try_from(bytes).is_ok();
    Ok((is_known && are_named && is_short).then_some(Measured { rows, bytes, longest }))
}

/// Where a row is among those that are written one after the other.
struct Span {
    start: u32,
    end: u32,
}

/// A block of rows that is not sealed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBlock {
    /// The place of its first row.
    place: Place,
    rows: u32,
    bytes_raw: u32,
    /// The rows, compressed.
    pub compressed: Vec<u8>,
}

/// Makes the blocks of a state's rows. `index` is that of the same text, if it has one.
///
/// # Errors
/// [`Damaged`] if the text is not the one that was measured.
pub fn make(text: &[u8], measured: &Measured, index: Option<&Index>) -> Result<Vec<NewBlock>, Damaged> {
    const OTHER: Damaged = Damaged("its text is another one");
    let mut rows = Vec::with_capacity(measured.bytes);
    let mut places: Vec<Span> = Vec::with_capacity(measured.rows);
    let mut scratch = Vec::new();
    each(text, &mut |whole: Whole<'_>| {
        let known = index.and_then(|index| index.digest(&whole.address));
        let digest = known.unwrap_or_else(|| whole.digest(&mut scratch));
        let start = rows.len() as u32;
        write_row(&mut rows, &whole, digest);
        places.push(Span { start, end: rows.len() as u32 });
    })
    .map_err(|_| OTHER)?;
    if (rows.len(), places.len()) != (measured.bytes, measured.rows) {
        return Err(OTHER);
    }
    let raw_of = |place: &Span| rows.get(place.start as usize..place.end as usize).unwrap_or_default();
    let names_of = |place: &Span| names_in(raw_of(place)).unwrap_or_default();
    // Several instances may have one address. They stay in the order of the text.
    places.sort_unstable_by(|one, other| {
        order(names_of(one), names_of(other)).then_with(|| one.start.cmp(&other.start))
    });
    let (mut blocks, mut raw, mut first, mut count) = (Vec::new(), Vec::new(), None, 0);
    let mut end_block = |raw: &mut Vec<u8>, first: &mut Option<Place>, count: &mut u32| {
        if let Some(place) = first.take() {
            let bytes_raw = u32::try_from(raw.len()).unwrap_or(u32::MAX);
            blocks.push(NewBlock { place, rows: *count, bytes_raw, compressed: compress(raw) });
            raw.clear();
            *count = 0;
        }
    };
    for place in &places {
        let (module, address) = names_of(place);
        first.get_or_insert_with(|| Place::of(module, address));
        raw.extend_from_slice(raw_of(place));
        count += 1;
        if count == ROWS_PER_BLOCK || raw.len() >= BLOCK_BYTES {
            end_block(&mut raw, &mut first, &mut count);
        }
    }
    end_block(&mut raw, &mut first, &mut count);
    Ok(blocks)
}

/// The module and the address of a row.
fn names_in(raw: &[u8]) -> Option<(&str, &str)> {
    let mut taker = Taker::new(raw);
    // The flags and the digest come first.
    taker.bytes::<9>().ok()?;
    let address = taker.text().ok()?;
    taker.number().ok()?;
    Some((taker.text().ok()?, address))
}

/// The directory of these blocks of a text, which are sealed in the same order. It is not sealed yet.
pub fn write_directory(text_sha256: &str, blocks: &[NewBlock], sealed: &[Vec<u8>]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    put_text(&mut out, text_sha256);
    put_number(&mut out, blocks.len() as u64);
    for (block, sealed) in blocks.iter().zip(sealed) {
        put_number(&mut out, u64::from(block.rows));
        put_number(&mut out, sealed.len() as u64);
        put_number(&mut out, u64::from(block.bytes_raw));
        put_text(&mut out, &block.place.to_text());
        out.extend_from_slice(&hash_of(sealed));
    }
    out
}

/// The length of the sealed blocks that have the first rows.
pub fn bytes_of_first_rows(blocks: &[NewBlock], sealed: &[Vec<u8>]) -> u64 {
    let mut first = 0;
    let counted = blocks.iter().zip(sealed).take_while(|(block, _)| {
        let is_first = first < FIRST_ROWS;
        first += block.rows as usize;
        is_first
    });
    counted.map(|(_, sealed)| sealed.len() as u64).sum()
}

/// A block of rows in a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowBlock {
    first: u32,
    rows: u32,
    at: u64,
    /// Its length in the blob.
    pub bytes: u32,
    /// Its length when it is open and inflated.
    pub bytes_raw: u32,
    /// The place of its first row.
    place: Place,
    hash: [u8; HASH_BYTES],
}

impl RowBlock {
    /// The bytes in the blob.
    pub fn range(&self) -> Range<u64> {
        self.at..self.at.saturating_add(u64::from(self.bytes))
    }

    /// Checks that sealed bytes are those of this block.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn check(&self, sealed: &[u8]) -> Result<(), Damaged> {
        if hash_of(sealed) == self.hash { Ok(()) } else { Err(Damaged("a block does not match its hash")) }
    }

    /// Inflates what was sealed.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn inflate(&self, compressed: &[u8]) -> Result<Vec<u8>, Damaged> {
        decompress(compressed, self.bytes_raw as usize)
    }

    /// Reports the rows of the inflated block, until one of them returns `false`. Returns whether all were reported.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn rows_in<'a>(
        &self,
        raw: &'a [u8],
        mut each: impl FnMut(&Row<'a>) -> bool,
    ) -> Result<bool, Damaged> {
        let mut taker = Taker::new(raw);
        for _ in 0..self.rows {
            if !each(&read_row(&mut taker)?) {
                return Ok(false);
            }
        }
        if taker.is_empty() { Ok(true) } else { Err(Damaged("a block is too long")) }
    }
}

/// Where the blocks of rows are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// The blocks, by the places of their rows.
    pub blocks: Vec<RowBlock>,
}

impl Directory {
    /// The memory for a sealed directory of this length, in bytes: as it is read, opened and parsed.
    pub fn memory(bytes: usize) -> usize {
        // A block takes some 30 bytes at least.
        bytes.saturating_mul(3 + BLOCK_MEMORY / 30)
    }

    /// Reads the directory of the rows of a text. Its blocks begin at `rows_at` in the blob.
    ///
    /// # Errors
    /// [`Damaged`], also for that of another text, and for the format of a newer program.
    pub fn parse(bytes: &[u8], text_sha256: &str, rows_at: u64) -> Result<Self, Damaged> {
        let mut taker = Taker::new(bytes);
        if taker.bytes::<5>()? != MAGIC {
            return Err(Damaged("its format is not known: a newer version of the server may have made it"));
        }
        if taker.text()? != text_sha256 {
            return Err(Damaged("it is that of another text"));
        }
        let (mut blocks, mut first, mut at) = (Vec::new(), 0_u32, rows_at);
        for _ in 0..taker.number()? {
            let (rows, bytes, bytes_raw) = (taker.small()?, taker.small()?, taker.small()?);
            let place = Place::parse(taker.text()?).ok_or(Damaged("a place is not known"))?;
            let block = RowBlock { first, rows, at, bytes, bytes_raw, place, hash: taker.bytes()? };
            first = first.checked_add(rows).ok_or(Damaged("it has too many rows"))?;
            at = block.range().end;
            blocks.push(block);
        }
        if taker.is_empty() { Ok(Self { blocks }) } else { Err(Damaged("its directory is wrong")) }
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.blocks.last().map_or(0, |last| u64::from(last.first) + u64::from(last.rows))
    }

    /// Where the last block ends in the blob; `None` without blocks.
    pub fn end(&self) -> Option<u64> {
        self.blocks.last().map(|last| last.range().end)
    }

    /// The blocks with the first `count` rows after a place. If rows share a place, that may take more.
    pub fn blocks_after(&self, place: Option<&Place>, count: usize) -> Range<usize> {
        let start = match place {
            Some(place) => self.blocks.partition_point(|block| block.place <= *place).saturating_sub(1),
            None => 0,
        };
        let Some(begin) = self.blocks.get(start) else { return 0..0 };
        // All rows of the block at the place may come before it.
        let before = if place.is_some() { begin.rows } else { 0 };
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let end_row = begin.first.saturating_add(before).saturating_add(count);
        let end = self.blocks.partition_point(|block| block.first < end_row);
        start..end.max(start + 1)
    }

    /// The blocks that may have the rows with this address.
    pub fn blocks_of(&self, address: &str) -> Range<usize> {
        let place = Place::of(module_in(address), address);
        let start = self.blocks.partition_point(|block| block.place < place).saturating_sub(1);
        start..self.blocks.partition_point(|block| block.place <= place)
    }

    /// The length of these blocks when they are open and inflated.
    pub fn bytes_raw(&self, blocks: Range<usize>) -> usize {
        let blocks = self.blocks.get(blocks).unwrap_or_default();
        blocks.iter().fold(0, |sum, block| sum.saturating_add(block.bytes_raw as usize))
    }

    /// The memory for a page of at most `size` rows of these blocks, in bytes.
    pub fn page_memory(&self, blocks: Range<usize>, size: usize) -> usize {
        let longest = self.blocks.iter().map(|block| block.bytes_raw as usize).max().unwrap_or_default();
        let rows = size.saturating_add(1).saturating_mul(size_of::<Listed>() + size_of::<Place>());
        // A page ends with the row that makes it too long. Its places repeat parts of the rows.
        let texts = self.bytes_raw(blocks).min(PAGE_BYTES_MAX.saturating_add(longest));
        texts.saturating_mul(2).saturating_add(rows)
    }
}

fn hash_of(bytes: &[u8]) -> [u8; HASH_BYTES] {
    Sha256::digest(bytes).first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::document::Document;
    use super::super::instance::detail_of;
    use super::super::listing::{Page, Pager, page_of};
    use super::*;

    const TEXT: &str = "ab";

    /// Rows as they are stored, but not sealed.
    struct Kept {
        directory: Directory,
        sealed_directory: Vec<u8>,
        blob: Vec<u8>,
    }

    impl Kept {
        fn of(text: &str) -> Self {
            let text = text.as_bytes();
            let measured = measure(text).unwrap().unwrap();
            let index = Document::read(text).unwrap().index;
            let blocks = make(text, &measured, index.as_ref()).unwrap();
            // Without an index, the digests are made of the text.
            assert_eq!(make(text, &measured, None).unwrap(), blocks);
            let sealed: Vec<Vec<u8>> = blocks.iter().map(|block| block.compressed.clone()).collect();
            let sealed_directory = write_directory(TEXT, &blocks, &sealed);
            let rows_at = sealed_directory.len() as u64;
            let directory = Directory::parse(&sealed_directory, TEXT, rows_at).unwrap();
            let blob = [sealed_directory.clone(), sealed.concat()].concat();
            assert_eq!(directory.end().unwrap_or(rows_at), blob.len() as u64);
            Self { directory, sealed_directory, blob }
        }

        fn sealed(&self, block: usize) -> &[u8] {
            let range = self.directory.blocks[block].range();
            &self.blob[range.start as usize..range.end as usize]
        }

        fn each(&self, blocks: Range<usize>, mut each: impl FnMut(&Row<'_>) -> bool) {
            for number in blocks {
                let block = &self.directory.blocks[number];
                block.check(self.sealed(number)).unwrap();
                let raw = block.inflate(self.sealed(number)).unwrap();
                if !block.rows_in(&raw, &mut each).unwrap() {
                    return;
                }
            }
        }

        fn all(&self) -> Range<usize> {
            0..self.directory.blocks.len()
        }

        fn page(&self, filter: &str, after: Option<&Place>, size: usize) -> Page {
            let mut pager = Pager::new(filter, after, size);
            if !pager.lists_all() {
                self.each(self.all(), |row| {
                    pager.offer(row);
                    true
                });
                return pager.end();
            }
            let mut blocks = self.directory.blocks_after(after, size + 1);
            while !pager.is_full() && !blocks.is_empty() {
                self.each(blocks.clone(), |row| {
                    pager.offer(row);
                    !pager.is_full()
                });
                blocks = blocks.end..(blocks.end + 1).min(self.directory.blocks.len());
            }
            Page { total: self.directory.rows(), matched: self.directory.rows(), ..pager.end() }
        }
    }

    /// More rows than two blocks have, out of order, with all that clients write and some that they do not.
    fn state() -> String {
        let mut resources = Vec::new();
        for number in (0..300).map(|number| number * 7 % 300) {
            let module = format!("module.m[\\\"{}.[x]\\\"].module.n", number % 5);
            resources.push(format!(
                r#"{{"module":"{module}","mode":"managed","type":"t","name":"n{number}","provider":"provider[\"r/h/P\"].west",
                    "instances":[{{"index_key":0,"dependencies":["t.base"]}},{{"index_key":"k","status":"tainted",
                    "dependencies":["t.base","module.m.module.n.t.n{number}"]}}]}}"#
            ));
        }
        let long = "k".repeat(700);
        resources.push(format!(
            r#"{{"mode":"data","type":"t","name":"gr\u00fcn","instances":[{{"index_key":"{long}1"}},{{"index_key":"{long}2",
                "dependencies":7}},{{"deposed":"0badf00d","provider":"provider[\"r/h/other\"]","dependencies":null}}]}}"#
        ));
        // Several instances with one address, in other blocks than their neighbors.
        let same = vec![r#"{"a":1}"#; 600].join(",");
        resources.push(format!(r#"{{"type":"t","name":"same","instances":[{same}]}}"#));
        resources.push(r#"{"type":"t","name":"base","instances":[{"dependencies":[]}]}"#.to_owned());
        format!(r#"{{"version":4,"serial":1,"resources":[{}]}}"#, resources.join(","))
    }

    #[test]
    fn pages_of_rows_are_those_of_the_text() {
        let text = state();
        let kept = Kept::of(&text);
        assert!(kept.directory.blocks.len() > 3, "{}", kept.directory.blocks.len());
        for filter in
            ["", "  ", "n1", "WEST k", "other", "gr\u{fc}n", "provider", "nothing", "same", "module.m 1"]
        {
            for size in [1, 7, 255, 256, 500, 1_000, 2_000] {
                let (mut after, mut pages): (Option<Place>, usize) = (None, 0);
                loop {
                    let expected = page_of(text.as_bytes(), filter, after.as_ref(), size).unwrap().unwrap();
                    let page = kept.page(filter, after.as_ref(), size);
                    assert_eq!(page, expected, "{filter:?}, {size}, {after:?}");
                    pages += 1;
                    after = page.next;
                    if after.is_none() || pages > 5 {
                        break;
                    }
                }
            }
        }
        let elsewhere = Place::of("module.z", "module.z.t.z");
        for after in [elsewhere, Place::of("", "a"), Place::of("", "t.same")] {
            let expected = page_of(text.as_bytes(), "", Some(&after), 10).unwrap().unwrap();
            assert_eq!(kept.page("", Some(&after), 10), expected);
        }
    }

    #[test]
    fn details_and_digests_of_rows_are_those_of_the_text() {
        let text = state();
        let kept = Kept::of(&text);
        let index = Document::read(text.as_bytes()).unwrap().index.unwrap();
        let mut of_rows = Index::default();
        kept.each(kept.all(), |row| {
            of_rows.add(row.address, row.digest);
            true
        });
        assert_eq!(of_rows, index);
        let long = format!("data.t.gr\u{fc}n[\"{}2\"]", "k".repeat(700));
        let of_module = "module.m[\"3.[x]\"].module.n.t.n8[\"k\"]";
        for address in ["t.base", "t.same", of_module, &long, "data.t.gr\u{fc}n (deposed 0badf00d)", "t.none"]
        {
            let (mut digest, mut relating) = (None, None);
            kept.each(kept.directory.blocks_of(address), |row| {
                if row.address == address {
                    (digest, relating) = (Some(row.digest), Some(row.relating()));
                }
                true
            });
            assert_eq!(digest, index.digest(address), "{address}");
            let found = relating.map(|mut relating| {
                kept.each(kept.all(), |row| {
                    relating.offer(row);
                    true
                });
                relating.end()
            });
            assert_eq!(found, detail_of(text.as_bytes(), address).unwrap().unwrap(), "{address}");
        }
    }

    #[test]
    fn the_first_rows_are_the_blocks_next_to_the_directory() {
        let text = state();
        let measured = measure(text.as_bytes()).unwrap().unwrap();
        let blocks = make(text.as_bytes(), &measured, None).unwrap();
        let sealed: Vec<Vec<u8>> = blocks.iter().map(|block| block.compressed.clone()).collect();
        let mut rows = 0;
        let until = blocks.iter().position(|block| {
            rows += block.rows as usize;
            rows >= FIRST_ROWS
        });
        let expected: usize = sealed[..=until.unwrap()].iter().map(Vec::len).sum();
        assert_eq!(bytes_of_first_rows(&blocks, &sealed), expected as u64);
        assert_eq!(measured.rows, blocks.iter().map(|block| block.rows as usize).sum::<usize>());
    }

    #[test]
    fn a_state_without_resources_has_a_directory_alone() {
        let kept = Kept::of(r#"{"version":4,"serial":1,"resources":[]}"#);
        assert_eq!((kept.directory.rows(), kept.page("", None, 10)), (0, Page::default()));
        assert_eq!(kept.directory.blocks_of("t.a"), 0..0);
        for other in [
            r#"{"version":3,"serial":1,"modules":[]}"#,
            r#"{"serial":1,"encryption_version":"v0","encrypted_data":""}"#,
            // A module that no client writes.
            r#"{"serial":1,"resources":[{"module":"m","type":"t","name":"a","instances":[{}]}]}"#,
        ] {
            assert_eq!(measure(other.as_bytes()).unwrap(), None, "{other}");
        }
    }

    #[test]
    fn the_module_of_an_address_is_what_clients_write() {
        for (address, module) in [
            ("t.a", ""),
            ("data.t.a[0]", ""),
            ("module.a.t.b", "module.a"),
            (
                "module.a[0].module.b[\"x.y]\\\"\"].data.t.c[\"module.d.\"]",
                "module.a[0].module.b[\"x.y]\\\"\"]",
            ),
            // Resources of a type with this name.
            ("module.a", ""),
            ("module.a[0]", ""),
            ("module.a.module.b", "module.a"),
            ("module.", ""),
        ] {
            assert_eq!(module_in(address), module, "{address}");
        }
    }

    #[test]
    fn altered_swapped_and_short_parts_are_damage() {
        let kept = Kept::of(&state());
        let (first, second) = (&kept.directory.blocks[0], &kept.directory.blocks[1]);
        assert!(first.check(kept.sealed(1)).is_err() && second.check(kept.sealed(0)).is_err());
        let mut altered = kept.sealed(0).to_vec();
        altered[7] ^= 1;
        assert!(first.check(&altered).is_err());
        assert!(first.check(&kept.sealed(0)[1..]).is_err());
        let raw = first.inflate(kept.sealed(0)).unwrap();
        let longer = [raw.as_slice(), b"x".as_slice()].concat();
        for bad in [&raw[..raw.len() - 1], longer.as_slice()] {
            assert!(first.rows_in(bad, |_| true).is_err());
        }
        let directory = &kept.sealed_directory;
        assert!(Directory::parse(directory, "cd", 0).is_err(), "it is of another text");
        for length in 0..directory.len() {
            assert!(Directory::parse(&directory[..length], TEXT, 0).is_err(), "{length}");
        }
        let mut newer = directory.clone();
        newer[4] = 2;
        let refusal = Directory::parse(&newer, TEXT, 0).unwrap_err().to_string();
        assert!(refusal.contains("newer version"), "{refusal}");
    }
}
