//! A deployment as the replayer reads it: the members that it needs, and the text of everything else.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::domain::json::{self, Key, Reader};
use crate::domain::resource::{Feature, Features, Resource, raw_object, text};

/// The oldest and the newest envelope version that the CLI reads.
const VERSIONS: std::ops::RangeInclusive<i64> = 1..=4;

/// `{"version":..,"features"?:[..],"deployment":{..}}`.
#[derive(Debug, Clone)]
pub(crate) struct Envelope<'a> {
    /// The members in text order, including those we read.
    pub(crate) frame: Vec<(Key<'a>, &'a str)>,
    pub(crate) version: i64,
    pub(crate) features: Vec<Cow<'a, str>>,
    pub(crate) deployment: Deployment<'a>,
}

/// The content of an envelope. `Default` is that of a stack that was never updated.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deployment<'a> {
    /// The members in text order, including those we read.
    pub(crate) frame: Vec<(Key<'a>, &'a str)>,
    pub(crate) manifest: Manifest<'a>,
    pub(crate) secrets_providers: Option<SecretsProvider<'a>>,
    pub(crate) resources: Vec<Resource<'a>>,
    pub(crate) pending_operations: Vec<Operation<'a>>,
    pub(crate) metadata: Metadata<'a>,
    pub(crate) snippets: Vec<Snippet<'a>>,
    pub(crate) extensions: Extensions<'a>,
}

/// When a deployment was written, and by which program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manifest<'a> {
    pub(crate) frame: Vec<(Key<'a>, &'a str)>,
    pub(crate) time: Cow<'a, str>,
    pub(crate) magic: Cow<'a, str>,
    pub(crate) version: Cow<'a, str>,
}

/// How the secrets of a deployment are encrypted.
#[derive(Debug, Clone)]
pub(crate) struct SecretsProvider<'a> {
    pub(crate) raw: &'a str,
    kind: Cow<'a, str>,
    state: Option<&'a str>,
}

/// A step that began and did not end.
#[derive(Debug, Clone)]
pub(crate) struct Operation<'a> {
    pub(crate) raw: &'a str,
    pub(crate) kind: Cow<'a, str>,
    /// The features of its resource.
    pub(crate) features: Features,
}

/// `metadata`, and the change to its `integrity_error`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metadata<'a> {
    pub(crate) raw: Option<&'a str>,
    pub(crate) integrity: IntegrityMember,
}

/// What to write as `integrity_error`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum IntegrityMember {
    #[default]
    AsRead,
    /// This text, or none.
    Set(Option<super::error::IntegrityError>),
}

/// A snippet: a piece of program that is stored with the state.
#[derive(Debug, Clone)]
pub(crate) struct Snippet<'a> {
    pub(crate) raw: &'a str,
    pub(crate) uuid: Cow<'a, str>,
    pub(crate) references: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Whether the references differ from those in the text.
    pub(crate) edited: bool,
}

impl<'a> Envelope<'a> {
    /// Reads an envelope. `deployment` may be absent or `null`: a stack without state.
    pub(crate) fn read(reader: &mut Reader<'a>) -> json::Result<Self> {
        let start = reader.start();
        let mut version = None;
        let mut features = Vec::new();
        let mut deployment = Deployment::default();
        let frame = frame(reader, |reader, name| {
            match name {
                "version" => version = reader.optional(Reader::integer)?,
                "features" => {
                    features = reader.optional(|reader| reader.list(Reader::string))?.unwrap_or_default();
                }
                "deployment" => deployment = reader.optional(Deployment::read)?.unwrap_or_default(),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        match version {
            Some(version) if VERSIONS.contains(&version) => Ok(Self { frame, version, features, deployment }),
            _ => Err(json::Malformed::new("a deployment whose `version` is 1, 2, 3 or 4", start)),
        }
    }
}

impl<'a> Deployment<'a> {
    /// Reads the content of an envelope.
    pub(crate) fn read(reader: &mut Reader<'a>) -> json::Result<Self> {
        let mut deployment = Self::default();
        deployment.frame = frame(reader, |reader, name| {
            match name {
                "manifest" => deployment.manifest = reader.optional(Manifest::read)?.unwrap_or_default(),
                "secrets_providers" => {
                    deployment.secrets_providers = reader.optional(SecretsProvider::read)?;
                }
                "resources" => deployment.resources = list(reader, Resource::read)?,
                "pending_operations" => deployment.pending_operations = list(reader, Operation::read)?,
                "metadata" => deployment.metadata.raw = reader.optional(raw_object)?,
                "snippets" => deployment.snippets = list(reader, Snippet::read)?,
                "extensions" => {
                    deployment.extensions = reader.optional(Extensions::read)?.unwrap_or_default()
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(deployment)
    }
}

impl<'a> Manifest<'a> {
    fn read(reader: &mut Reader<'a>) -> json::Result<Self> {
        let mut manifest = Self::default();
        manifest.frame = frame(reader, |reader, name| {
            match name {
                "time" => manifest.time = text(reader)?,
                "magic" => manifest.magic = text(reader)?,
                "version" => manifest.version = text(reader)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(manifest)
    }
}

impl<'a> SecretsProvider<'a> {
    /// Reads `{"type":..,"state"?:..}`.
    pub(crate) fn read(reader: &mut Reader<'a>) -> json::Result<Self> {
        let mut provider = Self { raw: "", kind: Cow::Borrowed(""), state: None };
        let start = reader.start();
        reader.object(|reader, key| {
            match key.name.as_ref() {
                "type" => provider.kind = text(reader)?,
                "state" => provider.state = Some(reader.raw()?),
                _ => {
                    reader.raw()?;
                }
            }
            Ok(())
        })?;
        provider.raw = reader.text_since(start);
        Ok(provider)
    }

    /// Whether both have the same type and the same bytes as their state.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.kind == other.kind && self.state == other.state
    }
}

impl<'a> Operation<'a> {
    /// The types that the CLI sends and reads.
    const KINDS: [&'static str; 5] = ["creating", "updating", "deleting", "reading", "importing"];

    fn read(reader: &mut Reader<'a>) -> json::Result<Self> {
        Self::read_with(reader, Resource::read).map(|(operation, _)| operation)
    }

    /// Reads an operation. It must have one of the five types and a resource with a URN.
    pub(crate) fn read_strictly(reader: &mut Reader<'a>) -> json::Result<Self> {
        let (operation, has_resource) = Self::read_with(reader, Resource::read_named)?;
        if !has_resource {
            return Err(reader.expected("an operation with a `resource`"));
        }
        if !Self::KINDS.contains(&operation.kind.as_ref()) {
            return Err(
                reader.expected("an operation of type creating, updating, deleting, reading or importing")
            );
        }
        Ok(operation)
    }

    fn read_with(
        reader: &mut Reader<'a>,
        mut read_resource: impl FnMut(&mut Reader<'a>) -> json::Result<Resource<'a>>,
    ) -> json::Result<(Self, bool)> {
        let mut operation = Self { raw: "", kind: Cow::Borrowed(""), features: Features::default() };
        let mut has_resource = false;
        let start = reader.start();
        reader.object(|reader, key| {
            match key.name.as_ref() {
                "type" => operation.kind = text(reader)?,
                "resource" => {
                    if let Some(resource) = reader.optional(&mut read_resource)? {
                        operation.features = resource.features();
                        has_resource = true;
                    }
                }
                _ => {
                    reader.raw()?;
                }
            }
            Ok(())
        })?;
        operation.raw = reader.text_since(start);
        Ok((operation, has_resource))
    }

    /// Whether the CLI keeps it until a user resolves it.
    pub(crate) fn is_creating(&self) -> bool {
        self.kind == "creating"
    }
}

/// The parameters of the packages that resources refer to: JSON by reference, sorted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extensions<'a> {
    list: Vec<(Cow<'a, str>, &'a str)>,
    places: HashMap<Cow<'a, str>, usize>,
}

impl<'a> Extensions<'a> {
    fn read(reader: &mut Reader<'a>) -> json::Result<Self> {
        let mut extensions = Self::default();
        reader.object(|reader, key| {
            extensions.put(key.name, raw_object(reader)?);
            Ok(())
        })?;
        Ok(extensions)
    }

    /// Adds an extension, or replaces the one with the same reference.
    pub(crate) fn put(&mut self, reference: Cow<'a, str>, text: &'a str) {
        match self.places.get(&reference).and_then(|place| self.list.get_mut(*place)) {
            Some(item) => item.1 = text,
            None => {
                self.places.insert(reference.clone(), self.list.len());
                self.list.push((reference, text));
            }
        }
    }

    /// Adds those of `other` whose references are missing here.
    pub(crate) fn add_missing(&mut self, other: &Self) {
        for (reference, text) in &other.list {
            if !self.contains(reference) {
                self.put(reference.clone(), text);
            }
        }
    }

    pub(crate) fn contains(&self, reference: &str) -> bool {
        self.places.contains_key(reference)
    }

    /// References and texts, sorted.
    pub(crate) fn list(&self) -> &[(Cow<'a, str>, &'a str)] {
        &self.list
    }
}

impl<'a> Snippet<'a> {
    /// Reads a snippet.
    pub(crate) fn read(reader: &mut Reader<'a>) -> json::Result<Self> {
        let mut snippet = Self { raw: "", uuid: Cow::Borrowed(""), references: Vec::new(), edited: false };
        let start = reader.start();
        reader.object(|reader, key| {
            match key.name.as_ref() {
                "uuid" => snippet.uuid = text(reader)?,
                "references" => {
                    snippet.references.clear();
                    reader.optional(|reader| {
                        reader.object(|reader, key| {
                            snippet.references.push((key.name, text(reader)?));
                            Ok(())
                        })
                    })?;
                }
                _ => {
                    reader.raw()?;
                }
            }
            Ok(())
        })?;
        snippet.raw = reader.text_since(start);
        Ok(snippet)
    }
}

/// Reads an object. Members are kept as text; `known` reads those that we need.
fn frame<'a>(
    reader: &mut Reader<'a>,
    mut known: impl FnMut(&mut Reader<'a>, &str) -> json::Result<bool>,
) -> json::Result<Vec<(Key<'a>, &'a str)>> {
    let mut frame: Vec<(Key<'a>, &'a str)> = Vec::new();
    reader.object(|reader, key| {
        let start = reader.start();
        if !known(reader, &key.name)? {
            reader.raw()?;
        }
        frame.push((key, reader.text_since(start)));
        Ok(())
    })?;
    Ok(frame)
}

/// An array; `null` is an empty one.
pub(crate) fn list<'a, T>(
    reader: &mut Reader<'a>,
    read: impl FnMut(&mut Reader<'a>) -> json::Result<T>,
) -> json::Result<Vec<T>> {
    Ok(reader.optional(|reader| reader.list(read))?.unwrap_or_default())
}

/// Features of a whole deployment that only snippets need.
pub(crate) fn snippet_features(snippets: &[Snippet<'_>]) -> Features {
    let mut features = Features::default();
    if !snippets.is_empty() {
        features.add(Feature::Snippets);
    }
    features
}

/// Reads a whole text as an envelope.
pub(crate) fn read_envelope(text: &[u8]) -> json::Result<Envelope<'_>> {
    let mut reader = Reader::from_bytes(text)?;
    let envelope = Envelope::read(&mut reader)?;
    reader.finish()?;
    Ok(envelope)
}
