//! Random definitions of environments: mostly valid, with all features of the language, and sometimes a mistake.

mod words;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fastrand::Rng;
use serde_json::json;

use crate::esc_oracle::{Case, seal};

use self::words::{KEYS, NUMBERS, SCHEMAS, TEXTS};

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    List,
    Texts,
    Object,
    Any,
}

const KINDS: &[Kind] = &[Kind::Text, Kind::Number, Kind::List, Kind::Texts, Kind::Object, Kind::Any];

/// A node of YAML to write.
#[derive(Debug, Clone)]
enum Node {
    /// Written as it is.
    Raw(String),
    /// A text, in any style that can hold it.
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// A top-level value of a definition.
#[derive(Debug, Clone)]
struct Named {
    key: String,
    kind: Kind,
}

struct Writer<'d> {
    dice: &'d mut Rng,
    /// What references can refer to.
    names: Vec<Named>,
    /// Environments that can be imported.
    envs: Vec<String>,
    /// The rate of mistakes, in thousandths.
    faults: u16,
    depth: usize,
}

/// A random case.
pub fn case(seed: u64) -> Case {
    let mut dice = Rng::with_seed(seed);
    let faults = *dice.choice(&[0, 0, 0, 4, 20, 60]).unwrap_or(&0);
    let mut envs = BTreeMap::new();
    let mut known: Vec<String> = Vec::new();
    if dice.u8(..3) > 0 {
        for name in ["p/base", "p/mid", "q/other"] {
            if dice.u8(..3) > 0 {
                let text = definition(&mut dice, &known, faults / 2);
                envs.insert(name.to_owned(), text);
                known.push(name.to_owned());
            }
        }
    }
    let text = definition(&mut dice, &known, faults);
    let context = json!({ "pulumi": { "user": { "login": "admin", "id": "u-1" }, "organization": { "login": "main", "id": "o-1" } } });
    Case { name: "p/top".to_owned(), text, envs, context }
}

fn definition(dice: &mut Rng, known: &[String], faults: u16) -> String {
    let names = (0..dice.usize(1..8))
        .map(|index| {
            let kind = KINDS[dice.usize(..KINDS.len())];
            let key = match dice.u8(..8) {
                0 => KEYS[dice.usize(..KEYS.len())].to_owned(),
                // The same names in all definitions, so that they override each other.
                _ => format!("{}{}", ["t", "n", "l", "s", "o", "v"][kind as usize], index % 4),
            };
            Named { key, kind }
        })
        .collect();
    let mut writer = Writer { dice, names, envs: known.to_vec(), faults, depth: 0 };
    writer.definition()
}

impl Writer<'_> {
    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.dice.usize(..of.len())].clone()
    }

    fn is_wrong(&mut self) -> bool {
        self.dice.u16(..1000) < self.faults
    }

    fn chance(&mut self, of: u8) -> bool {
        self.dice.u8(..of) == 0
    }

    fn definition(&mut self) -> String {
        let mut members = Vec::new();
        if !self.envs.is_empty() && !self.chance(5) {
            let mut imports = Vec::new();
            for name in self.envs.clone() {
                if self.chance(3) {
                    continue;
                }
                let name = if self.is_wrong() { "p/none".to_owned() } else { name };
                imports.push(match self.dice.u8(..6) {
                    0 => Node::Object(vec![(name, Node::Raw("{merge: false}".to_owned()))]),
                    1 => Node::Object(vec![(name, Node::Raw("{merge: true, other: 1}".to_owned()))]),
                    _ => Node::Raw(name),
                });
            }
            if !imports.is_empty() || self.is_wrong() {
                members.push(("imports".to_owned(), Node::List(imports)));
            }
        }
        if self.is_wrong() {
            let odd = self.one(&["imports", "values", "other", "description", "Values", "valueſ"]);
            let value = self.one(&["", "1", "x", "[]", "{}", "null", "{a: 1}", "[p/base]"]);
            members.push((odd.to_owned(), Node::Raw(value.to_owned())));
        }
        let mut values = Vec::new();
        for index in 0..self.names.len() {
            let Named { key, kind } = self.names[index].clone();
            if values.iter().any(|(known, _)| *known == key) && !self.is_wrong() {
                continue;
            }
            // Mostly values further down, to avoid most cycles.
            let names = self.names.clone();
            if !self.is_wrong() {
                self.names.drain(..=index);
            }
            let value = self.value(kind);
            self.names = names;
            values.push((key, value));
        }
        members.push(("values".to_owned(), Node::Object(values)));
        let mut text = String::new();
        if self.chance(8) {
            text.push_str("# a comment\n");
        }
        if self.chance(40) {
            text.push_str("---\n");
        }
        self.block(&Node::Object(members), 0, &mut text);
        match self.dice.u8(..12) {
            0 => text.truncate(text.trim_end_matches('\n').len()),
            1 => text.push_str("# the end"),
            2 => text.push_str("\n  \n"),
            _ => {}
        }
        if self.is_wrong() {
            self.spoil(&mut text);
        }
        text
    }

    /// Inserts something in the wrong place.
    fn spoil(&mut self, text: &mut String) {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let from = self.dice.usize(..places.len());
        let until = self.dice.usize(from..(from + 4).min(places.len()));
        let part = self.one(&[
            "", " ", "\n", "\t", "  ", ":", ": ", "-", "- ", "'", "\"", "[", "]", "{", "}", "#", " #", "|",
            "&a ", "*a", "!!str ", "!x ", "? ", "fn::", "$", "${", "}", ",", "\n---\n", "\n...\n", "\u{1}",
            "\u{85}", "\u{2028}", "%", "@", "é",
        ]);
        text.replace_range(places[from]..places[until], part);
    }

    fn value(&mut self, kind: Kind) -> Node {
        let kind = match kind {
            Kind::Any => self.one(KINDS),
            kind => kind,
        };
        let kind = if self.is_wrong() { self.one(KINDS) } else { kind };
        self.depth += 1;
        let node = if self.depth > 4 || self.chance(2) { self.literal(kind) } else { self.computed(kind) };
        self.depth -= 1;
        node
    }

    fn literal(&mut self, kind: Kind) -> Node {
        match kind {
            Kind::Text => {
                let text = self.one(TEXTS);
                Node::Text(if text.contains("${") { text.replace('$', "$$") } else { text.to_owned() })
            }
            Kind::Number => Node::Raw(self.one(NUMBERS).to_owned()),
            Kind::List => {
                let count = self.dice.usize(..4);
                Node::List((0..count).map(|_| self.value(Kind::Any)).collect())
            }
            Kind::Texts => {
                let count = self.dice.usize(..4);
                Node::List((0..count).map(|_| self.value(Kind::Text)).collect())
            }
            Kind::Object => {
                let mut members: Vec<(String, Node)> = Vec::new();
                for _ in 0..self.dice.usize(..5) {
                    let key = match self.dice.u8(..3) {
                        0 => self.one(KEYS),
                        _ => self.one(&["a", "b", "c"]),
                    };
                    if members.iter().any(|(known, _)| known == key) && !self.is_wrong() {
                        continue;
                    }
                    members.push((key.to_owned(), self.value(Kind::Any)));
                }
                // Alone it would be a function call.
                if members.len() == 1 && members[0].0.starts_with("Fn") && !self.is_wrong() {
                    members.push(("z".to_owned(), Node::Raw("1".to_owned())));
                }
                Node::Object(members)
            }
            Kind::Any => Node::Raw(self.one(&["null", "~", "true", "False", ""]).to_owned()),
        }
    }

    fn call(name: &str, argument: Node) -> Node {
        Node::Object(vec![(format!("fn::{name}"), argument)])
    }

    fn computed(&mut self, kind: Kind) -> Node {
        if self.is_wrong() {
            return self.faulty();
        }
        if self.chance(3)
            && let Some(reference) = self.reference(kind)
        {
            return Node::Text(reference);
        }
        if self.chance(14) {
            let inner = self.value(kind);
            return Self::call("final", inner);
        }
        if self.chance(16) {
            let schema = Node::Raw(self.one(SCHEMAS).to_owned());
            let inner = self.value(kind);
            return Self::call(
                "validate",
                Node::Object(vec![("schema".to_owned(), schema), ("value".to_owned(), inner)]),
            );
        }
        match kind {
            Kind::Text => match self.dice.u8(..11) {
                0 | 1 => self.interpolation(),
                2 | 3 => self.secret(),
                4 => {
                    let inner = self.value(Kind::Any);
                    Self::call("toJSON", inner)
                }
                5 => {
                    let inner = self.value(Kind::Any);
                    Self::call("toYAML", inner)
                }
                6 => {
                    let inner = self.value(Kind::Any);
                    Self::call("toString", inner)
                }
                7 => {
                    let inner = self.value(Kind::Text);
                    Self::call("toBase64", inner)
                }
                8 => {
                    let inner = match self.dice.u8(..3) {
                        0 => Self::call("toBase64", self.value(Kind::Text)),
                        _ => Node::Text(
                            self.one(&[
                                "aGk=",
                                "aGVs\nbG8=\n",
                                "/////w==",
                                "aGl=",
                                "w6k=",
                                "gICA4pyT",
                                "",
                                "Zg=\n=",
                            ])
                            .to_owned(),
                        ),
                    };
                    Self::call("fromBase64", inner)
                }
                _ => {
                    let delimiter = self.delimiter();
                    let texts = self.value(Kind::Texts);
                    Self::call("join", Node::List(vec![delimiter, texts]))
                }
            },
            Kind::Texts => {
                let delimiter = self.delimiter();
                let text = self.value(Kind::Text);
                Self::call("split", Node::List(vec![delimiter, text]))
            }
            Kind::List => {
                let count = self.dice.usize(..3);
                let lists = (0..count).map(|_| self.value(Kind::List)).collect();
                Self::call("concat", Node::List(lists))
            }
            Kind::Object if self.chance(3) => {
                let provider = self.one(&["test", "test", "secret-wrapper"]);
                let inputs = self.one(&[
                    "{}",
                    "{a: 1.0, b: [x, null]}",
                    "{a: {b: y, c: [[]]}, c: \"\\n\"}",
                    "{'é': {fn::toBase64: x}}",
                ]);
                Self::call(&format!("open::{provider}"), Node::Raw(inputs.to_owned()))
            }
            Kind::Object | Kind::Number | Kind::Any => {
                let json = match self.dice.u8(..3) {
                    0 => Self::call("toJSON", self.value(Kind::Any)),
                    1 => Self::call("secret", Node::Text("{\"a\":[1.50,{\"b\":null}]}".to_owned())),
                    _ => Node::Text(
                        self.one(&[
                            "{\"a\":1,\"b\":{\"c\":[]}}",
                            "[1,1.0]",
                            "1e3",
                            "\"x\"",
                            "{\"a\":1} x",
                            "12 13",
                        ])
                        .to_owned(),
                    ),
                };
                Self::call("fromJSON", json)
            }
        }
    }

    fn delimiter(&mut self) -> Node {
        Node::Text(self.one(&[",", "", "-", ", ", "\n", "é"]).to_owned())
    }

    fn secret(&mut self) -> Node {
        let text = self.one(TEXTS).to_owned();
        let argument = match self.dice.u8(..4) {
            0 => Node::Object(vec![("ciphertext".to_owned(), Node::Raw(seal(&text)))]),
            _ => Node::Text(text.replace("${", "$${")),
        };
        Self::call("secret", argument)
    }

    fn reference(&mut self, kind: Kind) -> Option<String> {
        if self.is_wrong() {
            let odd = self.one(&[
                "${none}",
                "${a..b}",
                "${a[0}",
                "${a[-1]}",
                "${a[x]}",
                "${}",
                "${",
                "${a b}",
                "${[0]}",
                "${environments}",
                "${environments.p}",
                "${imports}",
                "${context}",
                "${à}",
                "${a[+0]}",
                "${environments.p.none.x}",
                "${[\"\"]}",
                "${a[\"b}",
            ]);
            return Some(odd.to_owned());
        }
        if kind == Kind::Text && self.chance(6) {
            let known = self.one(&[
                "${context.pulumi.user.id}",
                "${context.pulumi.organization.login}",
                "${context.currentEnvironment.name}",
                "${context.rootEnvironment.name}",
                "${context[\"pulumi\"].user[\"login\"]}",
            ]);
            return Some(known.to_owned());
        }
        if !self.envs.is_empty() && self.chance(4) {
            let env = self.one(&self.envs.clone());
            let (project, name) = env.split_once('/')?;
            let head = match self.chance(2) {
                true => format!("imports[\"{env}\"]"),
                false => format!("environments.{project}.{name}"),
            };
            let key = format!("{}{}", ["t", "n", "l", "s", "o", "v"][kind as usize], self.dice.u8(..4));
            return Some(format!("${{{head}.{key}}}"));
        }
        let fitting: Vec<Named> =
            self.names.iter().filter(|it| it.kind == kind || kind == Kind::Any).cloned().collect();
        if fitting.is_empty() {
            return None;
        }
        let named = self.one(&fitting);
        let is_plain = !named.key.is_empty() && named.key.chars().all(|c| c.is_ascii_alphanumeric());
        let name = match is_plain {
            true => named.key.clone(),
            false if named.key.is_empty() => return None,
            false => format!("[\"{}\"]", named.key.replace('"', "\\\"")),
        };
        let step = match self.dice.u8(..10) {
            0 if named.kind == Kind::List => "[0]",
            0 if named.kind == Kind::Object => ".a",
            _ => "",
        };
        Some(format!("${{{name}{step}}}"))
    }

    fn interpolation(&mut self) -> Node {
        let mut text = String::new();
        for _ in 0..self.dice.usize(1..3) {
            text.push_str(self.one(&["", "x", "$$", "a-", "é", " ", "\n", "<", "$${y}", "\""]));
            let kind = self.one(KINDS);
            text.push_str(&self.reference(kind).unwrap_or_default());
        }
        text.push_str(self.one(&["", "/z", "$", "\n", " "]));
        Node::Text(text)
    }

    fn faulty(&mut self) -> Node {
        let raw = self.one(&[
            "{fn::none: 1}",
            "{fn::toJSON: 1, b: 2}",
            "{Fn::toJSON: 1}",
            "{fn::join: [1]}",
            "{fn::join: [',', x]}",
            "{fn::join: [',', [1, a, [b]]]}",
            "{fn::split: x}",
            "{fn::concat: x}",
            "{fn::concat: [x, [1]]}",
            "{fn::concat: '${a}'}",
            "{fn::secret: 1}",
            "{fn::secret: '${a}'}",
            "{fn::secret: 'x ${a}'}",
            "{fn::secret: {a: b}}",
            "{fn::secret: {ciphertext: AAAA}}",
            "{fn::secret: {ciphertext: '${a}'}}",
            "{fn::secret: [x]}",
            "{fn::toBase64: 1}",
            "{fn::fromBase64: '!'}",
            "{fn::fromBase64: aGk}",
            "{fn::fromJSON: '{'}",
            "{fn::fromJSON: 1}",
            "{fn::open: {provider: test}}",
            "{fn::open: {inputs: {}}}",
            "{fn::open: x}",
            "{fn::open: {provider: '${a}', inputs: {}}}",
            "{fn::open::aws-login: {a: 1}}",
            "{fn::rotate::x: {inputs: {}}}",
            "{fn::rotate: {provider: x, inputs: {}, state: 1}}",
            "{fn::rotate: 1}",
            "{fn::validate: {schema: {}}}",
            "{fn::validate: x}",
            "{fn::validate: {schema: 1, value: 2}}",
            "{a: 1, a: 2}",
            "{'${a}': 1}",
            "{'a${': 1}",
            "{1: a}",
            "{a: *x}",
            ".inf",
            "!!int x",
            "[a, *b]",
            "{fn::final: '${none}'}",
            "{fn::toString: '${none.a}'}",
            "{fn::open: {provider: test, inputs: {a: 1}, more: 2}}",
            "\"\\ud800\"",
            "{fn::fromJSON: '\"\\ud800\"'}",
        ]);
        Node::Raw(raw.to_owned())
    }

    fn quoted(&mut self, text: &str) -> String {
        let is_simple = !text.is_empty()
            && !text.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}'));
        if is_simple && self.chance(2) {
            return format!("'{}'", text.replace('\'', "''"));
        }
        let mut quoted = String::from("\"");
        for c in text.chars() {
            match c {
                '"' => quoted.push_str("\\\""),
                '\\' => quoted.push_str("\\\\"),
                '\n' => quoted.push_str("\\n"),
                '\t' => quoted.push_str("\\t"),
                c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                    let _ = write!(quoted, "\\u{:04x}", u32::from(c));
                }
                c => quoted.push(c),
            }
        }
        quoted.push('"');
        quoted
    }

    /// Whether a text may be written without quotes; false in doubt.
    fn is_plain(text: &str) -> bool {
        text.starts_with(|c: char| c.is_alphabetic() || c == '$')
            && !text.ends_with(' ')
            && !text.contains([':', '#', '\n', '\t', '\r'])
            && !text.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}'))
    }

    fn key(&mut self, key: &str) -> String {
        let is_word = key.starts_with("fn::") || key.starts_with("Fn::");
        let is_known = matches!(key, "true" | "null" | "y" | "n" | "on" | "");
        if (is_word || Self::is_plain(key)) && !is_known && !self.chance(8) {
            return key.to_owned();
        }
        self.quoted(key)
    }

    fn flow(&mut self, node: &Node) -> String {
        match node {
            Node::Raw(raw) => raw.clone(),
            Node::Text(text) => {
                let is_plain = Self::is_plain(text) && !text.contains([',', '[', ']', '{', '}', '?']);
                if is_plain && !self.chance(3) { text.clone() } else { self.quoted(text) }
            }
            Node::List(items) => {
                let items: Vec<String> = items.iter().map(|item| self.flow(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Node::Object(members) => {
                let members: Vec<String> = members
                    .iter()
                    .map(|(key, value)| format!("{}: {}", self.key(key), self.flow(value)))
                    .collect();
                format!("{{{}}}", members.join(", "))
            }
        }
    }

    /// A block text after `|` or `>`, if that can hold it.
    fn literal_block(&mut self, text: &str, indent: usize) -> Option<String> {
        let is_fitting = !text.is_empty()
            && !text.trim().is_empty()
            && !text.contains(|c: char| {
                c != '\n' && c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
            });
        if !is_fitting {
            return None;
        }
        let chomp = match (text.ends_with("\n\n"), text.ends_with('\n')) {
            (true, _) => "+",
            (_, true) => self.one(&["", "+"]),
            (_, false) => "-",
        };
        let hint = if text.starts_with([' ', '\n']) { "2" } else { "" };
        let mark = if self.chance(4) && !text.contains('\n') { ">" } else { "|" };
        let comment = if self.chance(10) { " # why" } else { "" };
        let body = text.strip_suffix('\n').unwrap_or(text);
        let lines: String = body
            .split('\n')
            .map(|line| {
                if line.is_empty() { "\n".to_owned() } else { format!("{}{line}\n", " ".repeat(indent + 2)) }
            })
            .collect();
        Some(format!("{mark}{hint}{chomp}{comment}\n{lines}"))
    }

    fn comment(&mut self) -> &'static str {
        if self.chance(16) { " # why\n" } else { "\n" }
    }

    /// What follows a key or a dash, from the blank to the end of its last line.
    fn behind(&mut self, node: &Node, indent: usize, out: &mut String) {
        match node {
            Node::List(items) if !items.is_empty() && !self.chance(4) => {
                out.push_str(self.comment());
                self.block(node, indent, out);
            }
            Node::Object(members) if !members.is_empty() && !self.chance(4) => {
                out.push_str(self.comment());
                self.block(node, indent + 2, out);
            }
            Node::Text(text) if self.chance(3) => match self.literal_block(text, indent) {
                Some(block) => {
                    out.push(' ');
                    out.push_str(&block);
                }
                None => {
                    let text = self.quoted(text);
                    let _ = write!(out, " {text}");
                    out.push_str(self.comment());
                }
            },
            Node::Text(text) => {
                let text = match Self::is_plain(text) && !self.chance(3) {
                    true => text.clone(),
                    false => self.quoted(text),
                };
                let _ = write!(out, " {text}");
                out.push_str(self.comment());
            }
            Node::Raw(raw) if raw.is_empty() => out.push_str(self.comment()),
            node => {
                let text = self.flow(node);
                let _ = write!(out, " {text}");
                out.push_str(self.comment());
            }
        }
    }

    fn block(&mut self, node: &Node, indent: usize, out: &mut String) {
        let blanks = " ".repeat(indent);
        match node {
            Node::List(items) => {
                for item in items {
                    let _ = write!(out, "{blanks}-");
                    self.behind(item, indent, out);
                }
            }
            Node::Object(members) => {
                for (key, value) in members {
                    if self.chance(40) {
                        out.push_str("\n# between\n");
                    }
                    let key = self.key(key);
                    let _ = write!(out, "{blanks}{key}:");
                    self.behind(value, indent, out);
                }
            }
            _ => self.behind(node, indent, out),
        }
    }
}
