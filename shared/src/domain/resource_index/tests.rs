use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::domain::secret::{SECRET, SIGNATURE};

const START: &str = "urn:pulumi:dev::web::";
const ROOT: &str = "urn:pulumi:dev::web::pulumi:pulumi:Stack::web-dev";

fn urn(name: &str) -> String {
    format!("{START}t:m:T::{name}")
}

fn resource(urn: &str, more: &str) -> String {
    format!(r#"{{"urn":"{urn}","type":"t:m:T"{more}}}"#)
}

fn deployment(resources: &[String]) -> String {
    format!(
        r#"{{"version":3,"deployment":{{"manifest":{{}},"resources":[{}],"metadata":{{}}}}}}"#,
        resources.join(",")
    )
}

/// An index, read as a whole.
#[derive(Debug, Clone)]
struct Read {
    bytes: Vec<u8>,
    directory: Directory,
    rows: Vec<Row>,
    entries: Vec<Entry>,
    edges: Vec<Edge>,
    since: u64,
}

fn blocks<'a>(bytes: &'a [u8], blocks: &'a [Block]) -> impl Iterator<Item = (&'a Block, Vec<u8>)> {
    blocks.iter().map(move |block| {
        let range = block.range().start as usize..block.range().end as usize;
        (block, inflate(block, &bytes[range]).unwrap())
    })
}

impl Read {
    fn of(built: Built) -> Self {
        let Built { bytes, places, entries: count, since } = built;
        let directory = places.directory().start as usize..places.directory().end as usize;
        let directory = Directory::parse(&bytes[directory], &places).unwrap();
        assert_eq!(directory.since, since);
        let all = 0..u32::MAX;
        let mut rows = Vec::new();
        for (block, raw) in blocks(&bytes, directory.rows(&all)) {
            rows.extend(rows_in(block, &raw).unwrap().iter().map(Row::to_owned));
        }
        let mut entries = Vec::new();
        for (block, raw) in blocks(&bytes, directory.lookup()) {
            entries.extend(entries_in(block, &raw).unwrap());
        }
        let mut edges = Vec::new();
        for (block, raw) in blocks(&bytes, directory.edges(&all)) {
            edges_in(block, &raw, |edge| edges.push(edge)).unwrap();
        }
        assert_eq!(entries.len() as u64, count);
        assert_eq!(directory.row_count() as usize, rows.len());
        Self { bytes, directory, rows, entries, edges, since }
    }

    fn previous(&self) -> Previous {
        let entries = self.entries.iter().cloned().map(PreviousEntry::from).collect();
        Previous { since: self.since, entries }
    }

    /// The entries of a key, by way of the directory.
    fn lookup(&self, urn: &str, is_delete: bool) -> Vec<Entry> {
        let key = key_of(urn, is_delete);
        let found = blocks(&self.bytes, self.directory.lookup_of(key));
        let entries = found.flat_map(|(block, raw)| entries_in(block, &raw).unwrap());
        entries.filter(|entry| entry.key == key).collect()
    }

    fn row(&self, name: &str) -> &Row {
        self.rows.iter().find(|row| row.urn == urn(name)).unwrap()
    }
}

fn index(text: &str, version: u64, before: Option<&Read>) -> Read {
    let scanned = scan(text.as_bytes(), 0).unwrap();
    let previous = before.map(Read::previous);
    let built = build(scanned.clone(), version, previous.as_ref());
    assert_eq!(built, build(scanned, version, previous.as_ref()), "the same bytes again");
    Read::of(built)
}

#[test]
fn rows_are_in_the_order_of_the_tree() {
    let root = r#"{"urn":"URN","type":"pulumi:pulumi:Stack"}"#.replace("URN", ROOT);
    let below = |parent: &str| format!(r#","parent":"{parent}""#);
    let read = index(
        &deployment(&[
            resource(&urn("provider"), r#","custom":true"#),
            root,
            resource(&urn("b"), &below(ROOT)),
            resource(&urn("d"), &below(&urn("b"))),
            resource(&urn("a"), &below(ROOT)),
            resource(&urn("c"), &below(&urn("b"))),
            resource(&urn("e"), &below(&urn("nobody"))),
        ]),
        1,
        None,
    );
    let shown: Vec<String> = read
        .rows
        .iter()
        .map(|row| format!("{}{} {} {}", " ".repeat(row.depth as usize), row.name(), row.children, row.below))
        .collect();
    assert_eq!(shown, ["web-dev 2 4", " a 0 0", " b 2 2", "  c 0 0", "  d 0 0", "e 0 0", "provider 0 0"]);
    assert_eq!((read.row("c").parent, read.row("c").parent_urn.as_str()), (Some(2), urn("b").as_str()));
    assert_eq!((read.row("e").parent, read.row("e").parent_urn.as_str()), (None, ""));
}

#[test]
fn parents_in_a_circle_end_in_a_tree() {
    let below = |parent: &str| format!(r#","parent":"{}""#, urn(parent));
    let text = deployment(&[
        resource(&urn("a"), &below("b")),
        resource(&urn("b"), &below("a")),
        resource(&urn("c"), &below("c")),
        resource(&urn("d"), &below("b")),
    ]);
    let read = index(&text, 1, None);
    let names: Vec<(&str, u32)> = read.rows.iter().map(|row| (row.name(), row.depth)).collect();
    assert_eq!(names, [("c", 0), ("a", 0), ("b", 1), ("d", 2)]);
}

#[test]
fn edges_name_rows_and_the_kind_of_reference() {
    let text = deployment(&[
        resource(&urn("p"), ""),
        resource(&urn("a"), r#","delete":true"#),
        resource(&urn("a"), ""),
        resource(
            &urn("b"),
            &format!(
                r#","provider":"{}::0-1","dependencies":["{}","gone"],"deletedWith":"{}","propertyDependencies":{{"x":["{}"],"y":["{}"]}}"#,
                urn("p"),
                urn("a"),
                urn("p"),
                urn("a"),
                urn("a")
            ),
        ),
    ]);
    let read = index(&text, 1, None);
    let name = |row: u32| {
        format!(
            "{}{}",
            read.rows[row as usize].name(),
            if read.rows[row as usize].flags.has(Flag::Delete) { "!" } else { "" }
        )
    };
    let edges: BTreeSet<String> = read
        .edges
        .iter()
        .map(|edge| format!("{} {} {}", name(edge.from), edge.kind, name(edge.to)))
        .collect();
    let expected = ["b deletedWith p", "b dependency a", "b property a", "b provider p"];
    assert_eq!(edges, BTreeSet::from(expected.map(str::to_owned)));
    assert_eq!(read.edges.len(), 4, "each once");
}

#[test]
fn a_rename_of_the_stack_changes_no_resource() {
    let resources = |stack: &str| {
        let text = deployment(&[
            format!(r#"{{"urn":"{ROOT}","type":"pulumi:pulumi:Stack"}}"#),
            resource(
                &urn("a"),
                &format!(r#","parent":"{ROOT}","inputs":{{"of":"{ROOT}","b":"{}"}}"#, urn("b")),
            ),
        ]);
        text.replace("urn:pulumi:dev::", &format!("urn:pulumi:{stack}::"))
            .replace("web-dev", &format!("web-{stack}"))
    };
    let first = index(&resources("dev"), 1, None);
    let renamed = index(&resources("prod"), 2, Some(&first));
    assert!(renamed.rows.iter().all(|row| row.changed == 1), "{:?}", renamed.rows);
    let new = renamed.rows[1].urn.clone();
    assert!(new.starts_with("urn:pulumi:prod::"));
    for urn in [&new, &urn("a")] {
        assert_eq!(renamed.lookup(urn, false)[0].row, Some(1));
    }
}

#[test]
fn links_lead_through_deletion_and_creation() {
    let with = |size: u32| deployment(&[resource(&urn("a"), &format!(r#","inputs":{{"n":{size}}}"#))]);
    let without = deployment(&[]);
    let mut last: Option<Read> = None;
    let mut links = Vec::new();
    for (version, text) in (1..).zip([with(1), with(1), with(2), without.clone(), without, with(2), with(3)])
    {
        let read = index(&text, version, last.as_ref());
        let entry = &read.lookup(&urn("a"), false)[0];
        links.push((entry.row.is_some(), entry.changed, entry.before));
        last = Some(read);
    }
    assert_eq!(
        links,
        [(true, 1, 0), (true, 1, 0), (true, 3, 1), (false, 4, 3), (false, 4, 3), (true, 6, 4), (true, 7, 6)]
    );
}

#[test]
fn times_do_not_count_and_ciphertexts_do() {
    let sealed =
        |text: &str| format!(r#","inputs":{{"p":{{"{SIGNATURE}":"{SECRET}","ciphertext":"{text}"}}}}"#);
    let at = |time: &str| format!(r#","created":"2026","modified":"{time}""#);
    let of = |more: String| deployment(&[resource(&urn("a"), &more)]);
    let first = index(&of(sealed("AA") + &at("1")), 1, None);
    let touched = index(&of(sealed("AA") + &at("2")), 2, Some(&first));
    assert_eq!(touched.rows[0].changed, 1);
    let sealed_again = index(&of(sealed("BB") + &at("2")), 3, Some(&touched));
    assert_eq!(sealed_again.rows[0].changed, 3);
}

#[test]
fn the_oldest_deletions_are_forgotten_first() {
    let of = |names: std::ops::Range<usize>| {
        let all: Vec<String> = names.map(|n| resource(&urn(&format!("r{n}")), "")).collect();
        deployment(&all)
    };
    let first = index(&of(0..DELETED_MAX + 10), 1, None);
    let second = index(&of(5..DELETED_MAX + 10), 2, Some(&first));
    let third = index(&of(0..0), 3, Some(&second));
    assert_eq!(third.entries.len(), DELETED_MAX);
    assert!(third.entries.iter().all(|entry| entry.changed == 3 && entry.before == 1));
}

#[test]
fn every_damaged_byte_of_a_block_is_found() {
    let text = deployment(&[resource(&urn("a"), ""), resource(&urn("b"), "")]);
    let read = index(&text, 1, None);
    let all = 0..u32::MAX;
    for block in
        read.directory.rows(&all).iter().chain(read.directory.edges(&all)).chain(read.directory.lookup())
    {
        let good = read.bytes[block.range().start as usize..block.range().end as usize].to_vec();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(inflate(block, &bad).is_err());
        }
    }
}

#[test]
fn a_directory_that_is_cut_or_newer_is_refused() {
    let text = deployment(&[resource(&urn("a"), "")]);
    let built = build(scan(text.as_bytes(), 1).unwrap(), 1, None);
    let range = built.places.directory().start as usize..built.places.directory().end as usize;
    let directory = &built.bytes[range];
    for length in 0..directory.len() {
        assert!(Directory::parse(&directory[..length], &built.places).is_err());
    }
    let mut newer = directory.to_vec();
    newer[4] = 2;
    let error = Directory::parse(&newer, &built.places).unwrap_err().to_string();
    assert!(error.contains("newer version"), "{error}");
}

#[test]
fn texts_that_are_no_deployments_have_no_index() {
    for text in ["", "[]", "\u{feff}", r#"{"deployment":{"resources":[{"urn":1}]}}"#] {
        assert_eq!(scan(text.as_bytes(), 0), None, "{text}");
    }
    for text in [r#"{"version":3}"#, r#"{"version":3,"deployment":null}"#] {
        assert_eq!(scan(text.as_bytes(), 0), Some(Scanned::default()), "{text}");
    }
}

#[test]
fn a_filter_needs_each_word_in_type_name_or_id() {
    let row = Row {
        urn: urn("WebServer"),
        own_type: "aws:ec2:Instance".into(),
        id: "i-0AB".into(),
        ..Row::default()
    };
    let matches =
        |words: &[&str]| row.matches(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    assert!(matches(&["webs", "ec2", "i-0ab"]) && matches(&[]));
    assert!(!matches(&["webs", "lambda"]) && !matches(&["dev"]));
}

#[test]
fn a_view_has_no_secret_and_hides_values_on_request() {
    let secret = format!(r#"{{"{SIGNATURE}":"{SECRET}","ciphertext":"AAAA"}}"#);
    let text = resource(
        &urn("a"),
        &format!(
            r#","id":"i","inputs":{{"n":12345678901234567890,"list":[{secret}]}},"outputs":{{"p":{secret}}},"created":"2026-01-01T00:00:00Z","sourcePosition":"project:///index.ts#1,2","propertyDependencies":{{"n":["{}"],"none":[]}}"#,
            urn("b")
        ),
    );
    let view = View::of(&text, true).unwrap();
    assert_eq!(view.inputs.unwrap(), r#"{"n":12345678901234567890,"list":[{"secret":true}]}"#);
    assert_eq!(view.outputs.unwrap(), r#"{"p":{"secret":true}}"#);
    assert_eq!(view.property_dependencies, BTreeMap::from([("n".to_owned(), vec![urn("b")])]));
    assert_eq!(view.created.unwrap(), "2026-01-01T00:00:00Z");
    assert_eq!(view.source_position.unwrap(), "project:///index.ts#1,2");
    let view = View::of(&text, false).unwrap();
    assert_eq!(view.inputs.unwrap(), r#"{"n":"[masked]","list":"[masked]"}"#);
    assert_eq!((view.id.as_str(), view.modified), ("i", None));
}

#[test]
fn changes_show_short_values_but_no_secrets() {
    let secret = |text: &str| format!(r#"{{"{SIGNATURE}":"{SECRET}","ciphertext":"{text}"}}"#);
    let long = "x".repeat(2_000);
    let text = |id: &str, n: u32, p: &str, more: &str| {
        let (urn, p) = (urn("a"), secret(p));
        format!(r#"{{"urn":"{urn}","id":"{id}","inputs":{{"n":{n},"p":{p},{more}}},"modified":"{n}"}}"#)
    };
    let old = text("1", 1, "AA", r#""gone":{"deep":[true]}"#);
    let new = text("2", 2, "BB", &format!(r#""all":{{"p":{}}},"long":"{long}""#, secret("CC")));
    let (op, found, has_more) = changes(&old, &new, true).unwrap();
    let shown: Vec<String> = found
        .iter()
        .map(|c| {
            format!("{} {} {} {:?} {:?}", c.path, c.how, c.is_secret, c.old.as_deref(), c.new.as_deref())
        })
        .collect();
    assert_eq!((op, has_more), (Op::Replace, false));
    assert_eq!(
        shown,
        [
            r#"id changed false Some("\"1\"") Some("\"2\"")"#,
            "inputs.all added true None None",
            r#"inputs.gone removed false Some("{\"deep\":[true]}") None"#,
            "inputs.long added false None None",
            r#"inputs.n changed false Some("1") Some("2")"#,
            "inputs.p changed true None None",
        ]
    );
    let (_, hidden, _) = changes(&old, &new, false).unwrap();
    assert!(hidden.iter().all(|change| change.old.is_none() && change.new.is_none()));
}

#[test]
fn a_secret_is_hidden_however_it_is_written() {
    let strange = [
        format!(r#"{{"{SIGNATURE}":"{SECRET}","value":"hunter2"}}"#),
        format!(r#"{{"\u0034{}":"\u0031{}","x":"hunter2"}}"#, &SIGNATURE[1..], &SECRET[1..]),
        format!(r#"[[{{"a":{{"{SIGNATURE}":"{SECRET}","ciphertext":["hunter2"]}}}}]]"#),
    ];
    for one in &strange {
        let text = |value: &str| format!(r#"{{"urn":"{}","inputs":{{"p":{value}}}}}"#, urn("a"));
        for (old, new) in [(text("1"), text(one)), (text(one), text(&one.replace("hunter2", "hunter3")))] {
            let found = changes(&old, &new, true).unwrap().1;
            assert!(!found.is_empty() && !format!("{found:?}").contains("hunter"), "{found:?}");
            assert!(!format!("{:?}", View::of(&new, true)).contains("hunter"));
        }
    }
}

/// A resource of a random deployment: name, value, whether it waits for its deletion, and the name of its parent.
type Random = (u8, u8, bool, u8);

fn text_of(resources: &[Random]) -> String {
    let one = |(name, value, is_delete, parent): &Random| {
        let delete = if *is_delete { r#","delete":true"# } else { "" };
        let more = format!(
            r#","inputs":{{"v":{value}}}{delete},"parent":"{}","dependencies":["{}"]"#,
            urn(&format!("n{parent}")),
            urn(&format!("n{}", parent ^ 1))
        );
        resource(&urn(&format!("n{name}")), &more)
    };
    deployment(&resources.iter().map(one).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn every_resource_is_a_row_and_is_found(all in prop::collection::vec((0..12_u8, 0..3_u8, any::<bool>(), 0..12_u8), 0..30)) {
        let text = text_of(&all);
        let read = index(&text, 1, None);
        prop_assert_eq!(read.rows.len(), all.len());
        let mut found = BTreeSet::new();
        for (name, _, is_delete, _) in &all {
            for entry in read.lookup(&urn(&format!("n{name}")), *is_delete) {
                let row = &read.rows[entry.row.unwrap() as usize];
                prop_assert_eq!(&row.urn, &urn(&format!("n{name}")));
                prop_assert_eq!(row.flags.has(Flag::Delete), *is_delete);
                let raw = &text[entry.offset as usize..(entry.offset + entry.bytes) as usize];
                prop_assert_eq!(text_hash(raw), Some(entry.hash));
                found.insert(entry.row);
            }
        }
        prop_assert_eq!(found.len(), all.len());
        for (number, row) in (0_u32..).zip(&read.rows) {
            let children = read.rows.iter().filter(|child| child.parent == Some(number)).count();
            prop_assert_eq!(row.children as usize, children);
            prop_assert!(row.parent.is_none_or(|parent| parent < number));
            let below = read.rows[number as usize + 1..].iter().take_while(|next| next.depth > row.depth);
            prop_assert_eq!(row.below as usize, below.count());
        }
    }

    /// Against a model that compares whole texts: of the n-th resource with a URN, as long as there are as many.
    #[test]
    fn links_are_those_of_a_naive_model(
        versions in prop::collection::vec(prop::collection::btree_map(0..6_u8, (0..3_u8, any::<bool>()), 0..6), 1..8)
    ) {
        // Name to its text, the last version that changed it, and the one before.
        let mut model: BTreeMap<(u8, bool), (Option<u8>, u64, u64)> = BTreeMap::new();
        let mut last: Option<Read> = None;
        for (version, resources) in (1_u64..).zip(&versions) {
            let all: Vec<Random> =
                resources.iter().map(|(name, (value, is_delete))| (*name, *value, *is_delete, 99)).collect();
            for name in 0..6_u8 {
                for is_delete in [false, true] {
                    let now = resources.get(&name).filter(|(_, delete)| *delete == is_delete).map(|(value, _)| *value);
                    match model.get(&(name, is_delete)).copied() {
                        Some((then, _, _)) if then == now => {}
                        // What waited for its deletion is forgotten.
                        Some(_) if now.is_none() && is_delete => {
                            model.remove(&(name, is_delete));
                        }
                        Some((_, changed, _)) => {
                            model.insert((name, is_delete), (now, version, changed));
                        }
                        None if now.is_some() => {
                            model.insert((name, is_delete), (now, version, 0));
                        }
                        None => {}
                    }
                }
            }
            let read = index(&text_of(&all), version, last.as_ref());
            for ((name, is_delete), (there, changed, before)) in &model {
                let entries = read.lookup(&urn(&format!("n{name}")), *is_delete);
                prop_assert_eq!(entries.len(), 1);
                let entry = &entries[0];
                prop_assert_eq!((entry.row.is_some(), entry.changed, entry.before), (there.is_some(), *changed, *before));
            }
            prop_assert_eq!(read.entries.len(), model.len());
            last = Some(read);
        }
    }

    #[test]
    fn arbitrary_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = scan(&bytes, usize::MAX);
        let _ = Directory::parse(&bytes, &Places::default());
        let _ = Directory::parse(&[&b"SWRX\x01"[..], &bytes].concat(), &Places::default());
    }
}

/// Blocks are cut by number and by length, and a page needs few of them.
#[test]
fn a_large_stack_is_read_by_blocks() {
    let all: Vec<String> = (0..3_000)
        .map(|n| resource(&urn(&format!("r{n:05}")), &format!(r#","dependencies":["{}"]"#, urn("r00000"))))
        .collect();
    let text = deployment(&all);
    let built = build(scan(text.as_bytes(), 3_000).unwrap(), 1, None);
    let first_rows = built.places.first_rows_bytes;
    let read = Read::of(built);
    assert_eq!(read.directory.rows(&(0..u32::MAX)).len(), 12);
    let first = read.directory.rows(&(0..FIRST_ROWS as u32));
    assert_eq!(first.iter().map(|block| u64::from(block.bytes)).sum::<u64>(), first_rows);
    let page: Vec<&str> = read.rows[500..1_000].iter().map(Row::name).collect();
    assert_eq!((page[0], page[499]), ("r00500", "r00999"));
    assert_eq!(read.edges.len(), 2_999);
    // A name of a megabyte is found as any other.
    let long = urn(&"x".repeat(1 << 20));
    let read =
        index(&deployment(&[resource(&urn("a"), ""), resource(&long, ""), resource(&urn("b"), "")]), 1, None);
    assert_eq!(read.lookup(&long, false)[0].row, Some(2));
}
