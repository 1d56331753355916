//! The resource instances of a state, a page at a time, without values.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::document::InvalidState;
use super::index::{Whole, text_of};
use super::resources::each;

/// Bytes of a module that count for the order, at most.
const MODULE_BYTES_MAX: usize = 160;

/// Bytes of the rest of an address that count for the order, at most.
const REST_BYTES_MAX: usize = 200;

/// The size of the instances on one page in bytes, at most, unless it is a single one. Names and keys may have any
/// length.
pub(super) const PAGE_BYTES_MAX: usize = 2 << 20;

/// A resource instance, without its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The address, as clients print it.
    pub address: String,
    /// The module instance that has it; `None` for the root module.
    pub module: Option<String>,
    /// `managed` or `data`.
    pub mode: String,
    pub kind: String,
    pub name: String,
    /// The key of `count` or `for_each`, as in the address: `0` or `"a"`.
    pub key: Option<String>,
    /// The key of the deposed object, if it is one.
    pub deposed: Option<String>,
    /// The provider, by its name and alias: `registry.opentofu.org/hashicorp/aws.west`.
    pub provider: String,
    /// Whether the next run replaces it.
    pub is_tainted: bool,
    /// The number of its dependencies; `None` if the client does not report them.
    pub dependency_count: Option<u64>,
}

impl Listed {
    pub(super) fn of(whole: &Whole<'_>) -> Self {
        let own = whole.own();
        Self {
            address: whole.address.clone(),
            module: (!whole.module.is_empty()).then(|| whole.module.to_owned()),
            mode: whole.mode.to_owned(),
            kind: whole.kind.to_owned(),
            name: whole.name.to_owned(),
            key: whole.key.map(str::to_owned),
            deposed: whole.deposed.map(str::to_owned),
            provider: provider_name(&text_of(own.provider.unwrap_or(whole.provider))),
            is_tainted: own.is_tainted(),
            dependency_count: own.dependency_count(),
        }
    }

    /// The memory that it takes, in bytes.
    fn bytes(&self) -> usize {
        let texts = [&self.address, &self.mode, &self.kind, &self.name, &self.provider];
        let optional = [&self.module, &self.key, &self.deposed];
        size_of::<Self>()
            + texts.iter().map(|text| text.len()).sum::<usize>()
            + optional.iter().filter_map(|text| text.as_deref()).map(str::len).sum::<usize>()
    }
}

/// Shortens a provider's name to `registry.opentofu.org/hashicorp/aws`, with `.alias` at the end if it has one.
pub fn provider_name(provider: &str) -> String {
    let inner = provider.strip_prefix("provider[\"").and_then(|rest| rest.split_once("\"]"));
    inner.map_or_else(|| provider.to_owned(), |(name, alias)| format!("{name}{alias}"))
}

/// The place of an instance in a list: by module and address. Of long addresses, the first bytes and a digest count, so
/// that a place is short.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    module: String,
    rest: String,
    digest: String,
}

impl Place {
    pub(super) fn of(module: &str, address: &str) -> Self {
        let (module, rest) = first_bytes(module, address);
        Self { module: module.to_owned(), rest: rest.to_owned(), digest: hex::encode(digest_of(address)) }
    }

    /// The place as text of at most 400 bytes.
    pub fn to_text(&self) -> String {
        format!("{}\n{}\n{}", self.digest, self.module, self.rest)
    }

    /// Parses [`Place::to_text`].
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '\n').map(str::to_owned);
        Some(Self { digest: parts.next()?, module: parts.next()?, rest: parts.next()? })
    }
}

/// The order of the places of two instances, each a module and an address.
pub(super) fn order(one: (&str, &str), other: (&str, &str)) -> Ordering {
    let by_names = first_bytes(one.0, one.1).cmp(&first_bytes(other.0, other.1));
    // A digest costs more than it tells, except of long addresses.
    by_names.then_with(|| match one.1 == other.1 {
        true => Ordering::Equal,
        false => digest_of(one.1).cmp(&digest_of(other.1)),
    })
}

/// What counts for the order of an instance, of its module and of the rest of its address.
fn first_bytes<'a>(module: &'a str, address: &'a str) -> (&'a str, &'a str) {
    let rest = address.get(module.len()..).unwrap_or(address);
    (cut(module, MODULE_BYTES_MAX), cut(rest, REST_BYTES_MAX))
}

fn digest_of(address: &str) -> [u8; 8] {
    Sha256::digest(address).first_chunk().copied().unwrap_or_default()
}

/// The first bytes of a text, up to the end of a character.
fn cut(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default()
}

/// One page of the instances of a state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The number of instances of the state.
    pub total: u64,
    /// How many of them the filter lets through.
    pub matched: u64,
    /// The instances of the page, by module and address.
    pub listed: Vec<Listed>,
    /// The place of the last one, if others follow.
    pub next: Option<Place>,
}

/// The words that an instance must have in its address or in the name of its provider, in any order and case.
struct Words(Vec<String>);

impl Words {
    fn of(filter: &str) -> Self {
        Self(filter.split_whitespace().map(str::to_lowercase).collect())
    }

    fn match_in(&self, address: &str, provider: &str) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let (address, provider) = (address.to_lowercase(), provider.to_lowercase());
        self.0.iter().all(|word| address.contains(word) || provider.contains(word))
    }
}

/// Makes a page of the instances that it is offered, in any order. Holds no more than the page.
pub struct Pager {
    words: Words,
    after: Option<Place>,
    size: usize,
    page: Page,
    first: BTreeMap<Place, Listed>,
    bytes: usize,
    /// The first place that the page does not have.
    end: Option<Place>,
}

impl Pager {
    /// A page of the first `size` instances after a place, of those that the filter lets through. There are fewer if they
    /// are long.
    pub fn new(filter: &str, after: Option<&Place>, size: usize) -> Self {
        let (words, page) = (Words::of(filter), Page::default());
        Self { words, after: after.cloned(), size, page, first: BTreeMap::new(), bytes: 0, end: None }
    }

    /// Whether the filter lets all instances through.
    pub fn lists_all(&self) -> bool {
        self.words.0.is_empty()
    }

    /// Whether others follow those of the page.
    pub fn is_full(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn add(
        &mut self,
        module: &str,
        address: &str,
        provider: &str,
        listed: impl FnOnce() -> Listed,
    ) {
        self.page.total += 1;
        if !self.words.match_in(address, provider) {
            return;
        }
        self.page.matched += 1;
        let place = Place::of(module, address);
        let is_later = self.end.as_ref().is_some_and(|end| place >= *end);
        if is_later || self.after.as_ref().is_some_and(|after| place <= *after) {
            return;
        }
        let listed = listed();
        self.bytes += listed.bytes();
        if let Some(same) = self.first.insert(place, listed) {
            self.bytes = self.bytes.saturating_sub(same.bytes());
        }
        while self.first.len() > self.size || (self.bytes > PAGE_BYTES_MAX && self.first.len() > 1) {
            let Some((place, listed)) = self.first.pop_last() else { break };
            self.bytes = self.bytes.saturating_sub(listed.bytes());
            self.end = Some(place);
        }
    }

    /// The page.
    pub fn end(self) -> Page {
        let Self { mut page, first, end, .. } = self;
        if end.is_some() {
            page.next = first.last_key_value().map(|(last, _)| last.clone());
        }
        page.listed = first.into_values().collect();
        page
    }
}

/// The first `size` instances of a state after a place, of those that the filter lets through; `None` if the client
/// encrypted the state or its format is unknown. Holds no more than a page in memory in addition to the text.
///
/// # Errors
/// [`InvalidState`].
pub fn page_of(
    text: &[u8],
    filter: &str,
    after: Option<&Place>,
    size: usize,
) -> Result<Option<Page>, InvalidState> {
    let mut pager = Pager::new(filter, after, size);
    let is_known = each(text, &mut |whole: Whole<'_>| {
        pager.add(whole.module, &whole.address, whole.provider, || Listed::of(&whole));
    })?;
    Ok(is_known.then(|| pager.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(instance: &str) -> String {
        format!(
            r#"{{"version":4,"serial":1,"resources":[{{"module":"module.m","mode":"managed","type":"t","name":"n",
                "provider":"provider[\"r/h/p\"].west","instances":[{instance}]}}]}}"#
        )
    }

    #[test]
    fn an_instance_is_listed_without_its_values() {
        let text = state(
            r#"{"index_key":"a","attributes":{"secret":"hunter2"},"dependencies":["t.x","t.y"]},
               {"index_key":1,"status":"tainted"}"#,
        );
        let page = page_of(text.as_bytes(), "", None, 10).unwrap().unwrap();
        let one = |key: &str, dependency_count| Listed {
            address: format!("module.m.t.n[{key}]"),
            module: Some("module.m".to_owned()),
            mode: "managed".to_owned(),
            kind: "t".to_owned(),
            name: "n".to_owned(),
            key: Some(key.to_owned()),
            deposed: None,
            provider: "r/h/p.west".to_owned(),
            is_tainted: key == "1",
            dependency_count,
        };
        assert_eq!(page.listed, [one("\"a\"", Some(2)), one("1", None)]);
        assert_eq!((page.total, page.matched, page.next), (2, 2, None));
        for (text, expected) in [
            (r#"{"serial":1,"resources":[]}"#, Some(0)),
            (r#"{"serial":1,"resources":null}"#, Some(0)),
            (r#"{"serial":1,"modules":[]}"#, None),
            (r#"{"serial":1,"resources":[7]}"#, None),
            (r#"{"serial":1,"encryption_version":"v0","encrypted_data":""}"#, None),
        ] {
            let page = page_of(text.as_bytes(), "", None, 10).unwrap();
            assert_eq!(page.map(|page| page.total), expected, "{text}");
        }
    }

    #[test]
    fn a_provider_is_shown_by_its_name_and_alias() {
        for (provider, shown) in [
            ("provider[\"registry.opentofu.org/hashicorp/aws\"]", "registry.opentofu.org/hashicorp/aws"),
            ("module.m.provider[\"r/h/p\"].west", "module.m.provider[\"r/h/p\"].west"),
            ("provider[\"r/h/p\"].west", "r/h/p.west"),
            ("provider.aws", "provider.aws"),
        ] {
            assert_eq!(provider_name(provider), shown);
        }
    }

    fn pages(text: &str, filter: &str, size: usize) -> Vec<Vec<String>> {
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let page = page_of(text.as_bytes(), filter, after.as_ref(), size).unwrap().unwrap();
            pages.push(page.listed.into_iter().map(|listed| listed.address).collect());
            let Some(next) = page.next else { return pages };
            let text = next.to_text();
            assert!(text.len() <= 400);
            after = Place::parse(&text);
            assert_eq!(after, Some(next));
        }
    }

    #[test]
    fn a_page_of_long_names_is_short() {
        let name = "n".repeat(PAGE_BYTES_MAX / 4);
        let instances: Vec<_> = (0..4).rev().map(|key| format!(r#"{{"index_key":{key}}}"#)).collect();
        let text = format!(
            r#"{{"serial":1,"resources":[{{"type":"t","name":"{name}","instances":[{}]}},
                {{"type":"t","name":"z","instances":[{{}}]}}]}}"#,
            instances.join(",")
        );
        // An instance has its name twice.
        let found = pages(&text, "", 100);
        assert!(found.iter().all(|page| page.len() <= 2), "{}", found.len());
        let keyed = (0..4).map(|key| format!("t.{name}[{key}]"));
        let all: Vec<String> = keyed.chain(["t.z".to_owned()]).collect();
        let mut listed = found.concat();
        listed.sort();
        assert!(listed == all);
    }

    #[test]
    fn pages_are_in_order_of_module_and_address_whatever_the_text() {
        let long = "k".repeat(500);
        let text = format!(
            r#"{{"version":4,"serial":1,"resources":[
                {{"module":"module.b","type":"t","name":"a","instances":[{{}}]}},
                {{"type":"u","name":"z","instances":[{{"index_key":1}},{{"index_key":0}}]}},
                {{"module":"module.a","mode":"data","type":"t","name":"x","provider":"p/West","instances":[{{}}]}},
                {{"type":"t","name":"y","instances":[{{"index_key":"{long}1"}},{{"index_key":"{long}2"}}]}}]}}"#
        );
        let all = pages(&text, "", 100).concat();
        assert_eq!(all.len(), 6);
        let mut long_ones = all[..2].to_vec();
        long_ones.sort();
        assert_eq!(long_ones, [format!("t.y[\"{long}1\"]"), format!("t.y[\"{long}2\"]")]);
        assert_eq!(all[2..], ["u.z[0]", "u.z[1]", "module.a.data.t.x", "module.b.t.a"]);
        for size in 1..7 {
            let found = pages(&text, "", size);
            assert_eq!(found.concat(), all, "{size}");
            assert!(found.iter().all(|page| page.len() <= size && !page.is_empty()));
        }
        assert_eq!(pages(&text, "WEST data", 1), [["module.a.data.t.x"]]);
        assert_eq!(pages(&text, "u. z", 1), [["u.z[0]"], ["u.z[1]"]]);
        assert_eq!(pages(&text, "nothing", 1), [Vec::<String>::new()]);
    }
}
