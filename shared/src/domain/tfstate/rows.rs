//! The resource instances of a long state as rows, in the order of lists, by blocks that are read one at a time.
//!
//! A blob of rows has a [`Directory`] and the blocks. Each block is compressed for itself and then sealed for itself, and
//! the directory is sealed too. The directory names the text that it is of, and has a hash of each sealed block: so no
//! block and no directory can stand in for another. The first blocks follow it, so that one read is enough for the first
//! page.

use std::ops::Range;

use sha2::{Digest, Sha256};

use super::super::resource_index::Damaged;
use super::super::resource_index::codec::{Taker, compress, decompress, put_bytes, put_number, put_text};
use super::document::InvalidState;
use super::index::{Index, Own, Whole, text_of};
use super::instance::{Relating, after_key};
use super::listing::{Listed, PAGE_BYTES_MAX, Pager, Place, order, provider_name};
use super::resources::each;

/// Rows that are read together with the directory. A page of fewer takes one read.
pub const FIRST_ROWS: usize = 500;

/// Rows of a block, at most.
const ROWS_PER_BLOCK: u32 = 256;

/// Bytes of a block before it is compressed: the row that reaches this is the last.
const BLOCK_BYTES: usize = 64 << 10;

/// The longest row in bytes. A serving thread parses a block at once, which ends with its first long row.
const ROW_BYTES_MAX: usize = 1 << 20;

/// The shortest row in bytes: the flags, the digest, an address, and other texts and numbers of a byte.
const ROW_BYTES_MIN: usize = 22;

/// Bytes of a row in addition to its texts, at most: the flags, the digest and lengths.
const ROW_OVERHEAD: usize = 64;

/// Resources that one may depend on for its state to have rows.
const NEEDS_MAX: usize = 10_000;

/// The memory for what an instance depends on while what is related to it is sought, in bytes, at most, in addition to its
/// row.
pub const RELATING_BYTES_MAX: usize = 64 * NEEDS_MAX;

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
const PROVIDED: u8 = 8;

/// What lists and details show of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'a> {
    /// The address, as clients print it.
    pub address: &'a str,
    /// The start of the SHA-256 of its text, as in an [`Index`].
    pub digest: [u8; 8],
    /// The address of its resource.
    of: &'a str,
    /// Empty for the root module.
    module: &'a str,
    mode: &'a str,
    kind: &'a str,
    name: &'a str,
    key: Option<&'a str>,
    deposed: Option<&'a str>,
    /// The provider of its resource as in the text, which filters look into.
    provider: &'a str,
    /// Its own provider as in the text, if it differs.
    own_provider: Option<&'a str>,
    is_tainted: bool,
    dependency_count: Option<u64>,
    /// The resources that it depends on, one after the other.
    needs: &'a [u8],
}

impl<'a> Row<'a> {
    fn needs(&self) -> impl Iterator<Item = &'a str> {
        let mut taker = Taker::new(self.needs);
        std::iter::from_fn(move || taker.text().ok())
    }

    fn listed(&self) -> Listed {
        Listed {
            address: self.address.to_owned(),
            module: (!self.module.is_empty()).then(|| self.module.to_owned()),
            mode: self.mode.to_owned(),
            kind: self.kind.to_owned(),
            name: self.name.to_owned(),
            key: self.key.map(str::to_owned),
            deposed: self.deposed.map(str::to_owned),
            provider: provider_name(&text_of(self.own_provider.unwrap_or(self.provider))),
            is_tainted: self.is_tainted,
            dependency_count: self.dependency_count,
        }
    }

    /// Seeks what is related to its instance.
    pub fn relating(&self) -> Relating {
        let needs = self.needs().map(|needed| (needed.to_owned(), false)).collect();
        Relating::new(self.listed(), self.of, needs)
    }
}

impl Pager {
    /// Offers the instance of a row.
    pub fn offer(&mut self, row: &Row<'_>) {
        self.add(row.module, row.address, row.provider, || row.listed());
    }
}

impl Relating {
    /// Offers the instance of a row.
    pub fn offer(&mut self, row: &Row<'_>) {
        self.add(row.address, row.of, |own| row.needs().any(|needed| needed == own));
    }
}

/// Appends the row of an instance. Returns `false` for one that rows do not describe, or if all of them would be longer
/// than `bytes_max`. `scratch` is reused for what is made on the way.
fn put_row(
    out: &mut Vec<u8>,
    bytes_max: usize,
    whole: &Whole<'_>,
    index: Option<&Index>,
    scratch: &mut Vec<u8>,
) -> bool {
    let (address, own) = (whole.address.as_str(), whole.own());
    let texts = [address, whole.mode, whole.kind, whole.name, whole.provider];
    let optional = [whole.key, whole.deposed, own.provider, own.dependencies];
    // Dependencies are longer in the text than in a row.
    let bytes: usize = texts.into_iter().chain(optional.into_iter().flatten()).map(str::len).sum();
    if bytes > ROW_BYTES_MAX - ROW_OVERHEAD || module_in(address) != whole.module {
        return false;
    }
    let known = index.and_then(|index| index.digest(address));
    let digest = known.unwrap_or_else(|| whole.digest(scratch));
    scratch.clear();
    let mut needs = 0;
    own.each_need(|needed| {
        put_text(scratch, needed);
        needs += 1;
    });
    if needs > NEEDS_MAX {
        return false;
    }
    write_row(out, whole, &own, digest, scratch);
    out.len() <= bytes_max
}

fn write_row(out: &mut Vec<u8>, whole: &Whole<'_>, own: &Own<'_>, digest: [u8; 8], needs: &[u8]) {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let (keyed, deposed) = (flag(whole.key.is_some(), KEYED), flag(whole.deposed.is_some(), DEPOSED));
    let (tainted, provided) = (flag(own.is_tainted(), TAINTED), flag(own.provider.is_some(), PROVIDED));
    out.push(tainted | keyed | deposed | provided);
    out.extend_from_slice(&digest);
    put_text(out, &whole.address);
    // The address begins with that of its resource, and that with its module.
    put_number(out, whole.of.len() as u64);
    put_number(out, whole.module.len() as u64);
    for text in [whole.mode, whole.kind, whole.name, whole.provider] {
        put_text(out, text);
    }
    for text in [whole.key, whole.deposed, own.provider] {
        put_text(out, text.unwrap_or_default());
    }
    put_number(out, own.dependency_count().map_or(0, |count| count.saturating_add(1)));
    put_bytes(out, needs);
}

fn read_row<'a>(taker: &mut Taker<'a>) -> Result<Row<'a>, Damaged> {
    let [flags] = taker.bytes()?;
    let digest = taker.bytes()?;
    let address = taker.text()?;
    let (of, module) = (beginning(address, taker)?, beginning(address, taker)?);
    let (mode, kind, name, provider) = (taker.text()?, taker.text()?, taker.text()?, taker.text()?);
    let (key, deposed, own_provider) = (taker.text()?, taker.text()?, taker.text()?);
    let dependency_count = taker.number()?.checked_sub(1);
    let needs = taker.slice()?;
    Ok(Row {
        address,
        digest,
        of,
        module,
        mode,
        kind,
        name,
        key: (flags & KEYED != 0).then_some(key),
        deposed: (flags & DEPOSED != 0).then_some(deposed),
        provider,
        own_provider: (flags & PROVIDED != 0).then_some(own_provider),
        is_tainted: flags & TAINTED != 0,
        dependency_count,
        needs,
    })
}

/// The beginning of an address, of the length that comes next.
fn beginning<'a>(address: &'a str, taker: &mut Taker<'_>) -> Result<&'a str, Damaged> {
    let length = usize::try_from(taker.number()?).ok();
    length.and_then(|length| address.get(..length)).ok_or(Damaged("an address is too short"))
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

/// The length of all rows of a text, at most: their memory is that of the text, however often they repeat its parts.
fn bytes_max(text_bytes: usize) -> usize {
    text_bytes.clamp(BLOCK_BYTES, u32::MAX as usize)
}

/// The memory that [`make`] takes for a text of this length, in bytes: the rows, their order, the block that is made, and
/// all blocks. It is enough for storing the blocks too.
pub fn memory(text_bytes: usize) -> usize {
    let rows = bytes_max(text_bytes);
    let order = (rows / ROW_BYTES_MIN).saturating_mul(size_of::<Span>());
    let block = (BLOCK_BYTES + ROW_BYTES_MAX) * 3;
    rows.saturating_mul(2).saturating_add(order).saturating_add(block + ROW_BYTES_MAX)
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
    /// The number of its rows.
    pub rows: u32,
    bytes_raw: u32,
    /// The rows, compressed.
    pub compressed: Vec<u8>,
}

/// Makes the blocks of a state's rows. `index` is that of the same text, if it has one.
///
/// `None` if the client encrypted the state or its format is unknown, if the rows are longer than the text, if one of them
/// is too long, and if an instance has another module than its address says: it could not be found by that.
///
/// # Errors
/// [`InvalidState`].
pub fn make(text: &[u8], index: Option<&Index>) -> Result<Option<Vec<NewBlock>>, InvalidState> {
    let bytes_max = bytes_max(text.len());
    // With room for the row that ends the attempt.
    let mut rows: Vec<u8> = Vec::with_capacity(bytes_max + ROW_BYTES_MAX);
    let mut places: Vec<Span> = Vec::with_capacity(bytes_max / ROW_BYTES_MIN);
    let (mut have_rows, mut scratch) = (true, Vec::new());
    let is_known = each(text, &mut |whole: Whole<'_>| {
        let start = rows.len() as u32;
        have_rows = have_rows && put_row(&mut rows, bytes_max, &whole, index, &mut scratch);
        if have_rows {
            places.push(Span { start, end: rows.len() as u32 });
        }
    })?;
    if !is_known || !have_rows {
        return Ok(None);
    }
    drop(scratch);
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
    Ok(Some(blocks))
}

/// The module and the address of a row.
fn names_in(raw: &[u8]) -> Option<(&str, &str)> {
    let mut taker = Taker::new(raw);
    // The flags and the digest come first.
    taker.bytes::<9>().ok()?;
    let address = taker.text().ok()?;
    beginning(address, &mut taker).ok()?;
    Some((beginning(address, &mut taker).ok()?, address))
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
            let index = Document::read(text).unwrap().index;
            let blocks = make(text, index.as_ref()).unwrap().unwrap();
            // Without an index, the digests are made of the text.
            assert_eq!(make(text, None).unwrap().unwrap(), blocks);
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
            let first = self.directory.blocks_after(after, size + 1);
            for blocks in [first.clone(), first.end..self.all().end] {
                if !pager.is_full() {
                    self.each(blocks, |row| {
                        pager.offer(row);
                        !pager.is_full()
                    });
                }
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
        // The text is longer than the rows, as that of a client is.
        let more = "x".repeat(100_000);
        resources.push(format!(
            r#"{{"type":"t","name":"base","instances":[{{"attributes":{{"a":"{more}"}},"dependencies":[]}}]}}"#
        ));
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
        let blocks = make(text.as_bytes(), None).unwrap().unwrap();
        let sealed: Vec<Vec<u8>> = blocks.iter().map(|block| block.compressed.clone()).collect();
        let mut rows = 0;
        let until = blocks.iter().position(|block| {
            rows += block.rows as usize;
            rows >= FIRST_ROWS
        });
        let expected: usize = sealed[..=until.unwrap()].iter().map(Vec::len).sum();
        assert_eq!(bytes_of_first_rows(&blocks, &sealed), expected as u64);
        let index = Document::read(text.as_bytes()).unwrap().index.unwrap();
        // 599 instances have the address of another one.
        assert_eq!(blocks.iter().map(|block| block.rows as usize).sum::<usize>(), index.len() + 599);
    }

    #[test]
    fn rows_are_no_longer_than_a_text_however_it_repeats() {
        let state = |resource: &str, instances: &[&str]| {
            let instances = instances.join(",");
            format!(r#"{{"serial":1,"resources":[{{"type":"t",{resource},"instances":[{instances}]}}]}}"#)
        };
        let rows_of = |text: &str| {
            let blocks = make(text.as_bytes(), None).unwrap();
            blocks.map(|blocks| blocks.iter().map(|block| block.bytes_raw as usize).sum::<usize>())
        };
        let many = vec!["{}"; 50_000];
        let long = "m".repeat(3_000);
        let zeros = format!(r#"{{"dependencies":[{}]}}"#, vec!["0"; 100_000].join(","));
        let needs = |count: usize| {
            let needs: Vec<_> = (0..count).map(|number| format!("\"t.n{number}\"")).collect();
            format!(r#"{{"attributes":{{"a":"{long}"}},"dependencies":[{}]}}"#, needs.join(","))
        };
        let key = format!(r#"{{"index_key":"{}"}}"#, "k".repeat(ROW_BYTES_MAX));
        for (text, has_rows) in [
            (state(r#""name":"n""#, &many[..]), false),
            (state(&format!(r#""name":"n","mode":"{long}""#), &many[..1_000]), false),
            (state(&format!(r#""name":"n","provider":"{long}""#), &many[..1_000]), false),
            (state(r#""name":"n""#, &[zeros.as_str()]), true),
            (state(r#""name":"n""#, &[needs(NEEDS_MAX).as_str()]), true),
            (state(r#""name":"n""#, &[needs(NEEDS_MAX + 1).as_str()]), false),
            (state(r#""name":"n""#, &[key.as_str()]), false),
        ] {
            let bytes = rows_of(&text);
            assert_eq!(bytes.is_some(), has_rows, "{text:.200}");
            assert!(bytes.is_none_or(|bytes| bytes <= text.len()), "{bytes:?} of {}", text.len());
        }
        // Elements that name no resource are counted, and nothing is kept of them.
        assert!(rows_of(&state(r#""name":"n""#, &[zeros.as_str()])).is_some_and(|bytes| bytes < 100));
    }

    #[test]
    fn every_row_is_as_long_as_its_bounds_say() {
        let text = r#"{"serial":1,"resources":[{"type":"","name":"","mode":"","instances":[{}]}]}"#;
        let blocks = make(text.as_bytes(), None).unwrap().unwrap();
        assert_eq!(blocks[0].bytes_raw as usize, ROW_BYTES_MIN);
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
            assert_eq!(make(other.as_bytes(), None).unwrap(), None, "{other}");
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
