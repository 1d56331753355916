//! A resource of a deployment: its text, and the few members that the replayer and the integrity rules need.

use std::borrow::Cow;

use super::json::{self, ObjectWriter, Reader};

/// The members that the replayer may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Member {
    Urn,
    Delete,
    Parent,
    Dependencies,
    Provider,
    PropertyDependencies,
    PendingReplacement,
    Aliases,
    DeletedWith,
    ReplaceWith,
    ViewOf,
}

impl Member {
    const ALL: [Self; 11] = [
        Self::Urn,
        Self::Delete,
        Self::Parent,
        Self::Dependencies,
        Self::Provider,
        Self::PropertyDependencies,
        Self::PendingReplacement,
        Self::Aliases,
        Self::DeletedWith,
        Self::ReplaceWith,
        Self::ViewOf,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Urn => "urn",
            Self::Delete => "delete",
            Self::Parent => "parent",
            Self::Dependencies => "dependencies",
            Self::Provider => "provider",
            Self::PropertyDependencies => "propertyDependencies",
            Self::PendingReplacement => "pendingReplacement",
            Self::Aliases => "aliases",
            Self::DeletedWith => "deletedWith",
            Self::ReplaceWith => "replaceWith",
            Self::ViewOf => "viewOf",
        }
    }

    fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Features of a deployment that older clients do not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Feature {
    ByteString,
    ExtensionParameterization,
    Hooks,
    RefreshBeforeUpdate,
    ReplaceWith,
    Snippets,
    Taint,
    Views,
}

/// A set of [`Feature`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Features(u8);

impl Features {
    /// In the order of their names.
    const NAMED: [(Feature, &'static str); 8] = [
        (Feature::ByteString, "byteString"),
        (Feature::ExtensionParameterization, "extensionParameterization"),
        (Feature::Hooks, "hooks"),
        (Feature::RefreshBeforeUpdate, "refreshBeforeUpdate"),
        (Feature::ReplaceWith, "replaceWith"),
        (Feature::Snippets, "snippets-prototype"),
        (Feature::Taint, "taint"),
        (Feature::Views, "views"),
    ];

    pub(crate) fn add(&mut self, feature: Feature) {
        self.0 |= 1 << feature as u8;
    }

    pub(crate) fn add_all(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMED
            .into_iter()
            .filter(move |(feature, _)| self.0 & (1 << *feature as u8) != 0)
            .map(|(_, name)| name)
    }
}

/// Lists of strings by name, sorted.
pub(crate) type TextLists<'a> = Vec<(Cow<'a, str>, Vec<Cow<'a, str>>)>;

/// A resource. Absent or `null` members read as empty, as they do for the CLI.
#[derive(Debug, Clone)]
pub(crate) struct Resource<'a> {
    /// The original text of the object; [`Resource::write`] applies the edits to it.
    raw: &'a str,
    /// The edited members, one bit each: their values below replace those in `raw`.
    edited: u16,
    pub(crate) urn: Cow<'a, str>,
    pub(crate) own_type: Cow<'a, str>,
    pub(crate) id: Cow<'a, str>,
    pub(crate) custom: bool,
    pub(crate) delete: bool,
    pub(crate) pending_replacement: bool,
    pub(crate) parent: Cow<'a, str>,
    pub(crate) provider: Cow<'a, str>,
    pub(crate) deleted_with: Cow<'a, str>,
    pub(crate) view_of: Cow<'a, str>,
    pub(crate) extension_ref: Cow<'a, str>,
    pub(crate) dependencies: Vec<Cow<'a, str>>,
    pub(crate) property_dependencies: TextLists<'a>,
    pub(crate) replace_with: Vec<Cow<'a, str>>,
    pub(crate) aliases: Vec<Cow<'a, str>>,
    /// The JSON of `outputs`.
    pub(crate) outputs: Option<&'a str>,
    features: Features,
}

impl<'a> Resource<'a> {
    /// Reads an object. Other members may have any value.
    pub(crate) fn read(reader: &mut Reader<'a>) -> json::Result<Self> {
        let mut resource = Self {
            raw: "",
            edited: 0,
            urn: Cow::Borrowed(""),
            own_type: Cow::Borrowed(""),
            id: Cow::Borrowed(""),
            custom: false,
            delete: false,
            pending_replacement: false,
            parent: Cow::Borrowed(""),
            provider: Cow::Borrowed(""),
            deleted_with: Cow::Borrowed(""),
            view_of: Cow::Borrowed(""),
            extension_ref: Cow::Borrowed(""),
            dependencies: Vec::new(),
            property_dependencies: Vec::new(),
            replace_with: Vec::new(),
            aliases: Vec::new(),
            outputs: None,
            features: Features::default(),
        };
        let start = reader.start();
        let (mut taint, mut refresh_before_update, mut hooks, mut snippet) = (false, false, false, false);
        reader.object(|reader, key| {
            match key.name.as_ref() {
                "urn" => resource.urn = text(reader)?,
                "type" => resource.own_type = text(reader)?,
                "id" => resource.id = text(reader)?,
                "custom" => resource.custom = flag(reader)?,
                "delete" => resource.delete = flag(reader)?,
                "pendingReplacement" => resource.pending_replacement = flag(reader)?,
                "parent" => resource.parent = text(reader)?,
                "provider" => resource.provider = text(reader)?,
                "deletedWith" => resource.deleted_with = text(reader)?,
                "viewOf" => resource.view_of = text(reader)?,
                "extensionRef" => resource.extension_ref = text(reader)?,
                "dependencies" => resource.dependencies = texts(reader)?,
                "propertyDependencies" => resource.property_dependencies = text_lists(reader)?,
                "replaceWith" => resource.replace_with = texts(reader)?,
                "aliases" => resource.aliases = texts(reader)?,
                "outputs" => resource.outputs = reader.optional(raw_object)?,
                "inputs" => {
                    reader.optional(raw_object)?;
                }
                "taint" => taint = flag(reader)?,
                "refreshBeforeUpdate" => refresh_before_update = flag(reader)?,
                "resourceHooks" => hooks = !text_lists(reader)?.is_empty(),
                "snippetID" => snippet = !text(reader)?.is_empty(),
                _ => {
                    reader.raw()?;
                }
            }
            Ok(())
        })?;
        resource.raw = reader.text_since(start);
        for (used, feature) in [
            (taint, Feature::Taint),
            (refresh_before_update, Feature::RefreshBeforeUpdate),
            (hooks, Feature::Hooks),
            (snippet, Feature::Snippets),
        ] {
            if used {
                resource.features.add(feature);
            }
        }
        Ok(resource)
    }

    /// Reads a resource like [`Resource::read`], but requires `urn` and `type`.
    pub(crate) fn read_named(reader: &mut Reader<'a>) -> json::Result<Self> {
        let resource = Self::read(reader)?;
        for (value, what) in
            [(&resource.urn, "a resource with a `urn`"), (&resource.own_type, "a resource with a `type`")]
        {
            if value.is_empty() {
                return Err(reader.expected(what));
            }
        }
        Ok(resource)
    }

    /// The features that this resource uses now.
    pub(crate) fn features(&self) -> Features {
        let mut features = self.features;
        for (used, feature) in [
            (!self.view_of.is_empty(), Feature::Views),
            (!self.replace_with.is_empty(), Feature::ReplaceWith),
            (!self.extension_ref.is_empty(), Feature::ExtensionParameterization),
        ] {
            if used {
                features.add(feature);
            }
        }
        features
    }

    /// The names of the input properties, parsed on demand.
    pub(crate) fn input_names(&self) -> Vec<Cow<'a, str>> {
        let members = json::members(self.raw).unwrap_or_default();
        let inputs = members.iter().rfind(|(key, _)| key.name == "inputs");
        let inputs = inputs.and_then(|(_, text)| json::members(text).ok()).unwrap_or_default();
        inputs.into_iter().map(|(key, _)| key.name).collect()
    }

    /// Marks a member as edited.
    pub(crate) fn edit(&mut self, member: Member) {
        self.edited |= member.bit();
    }

    /// Marks the resource for later deletion.
    pub(crate) fn mark_delete(&mut self) {
        if !self.delete {
            self.delete = true;
            self.edit(Member::Delete);
        }
    }

    /// Marks the resource as deleted, with a replacement still to be created.
    pub(crate) fn mark_pending_replacement(&mut self) {
        if !self.pending_replacement {
            self.pending_replacement = true;
            self.edit(Member::PendingReplacement);
        }
    }

    /// The text of the resource, if nothing was edited.
    pub(super) fn unedited_text(&self) -> Option<&'a str> {
        (self.edited == 0).then_some(self.raw)
    }

    /// The approximate length of the text in bytes.
    pub(crate) fn size_hint(&self) -> usize {
        self.raw.len()
    }

    /// Appends the resource as JSON: the original text with the edited members in their places.
    pub(crate) fn write(&self, out: &mut String) {
        if self.edited == 0 {
            out.push_str(self.raw);
            return;
        }
        let mut missing = self.edited;
        let mut object = ObjectWriter::new(out);
        for (key, value) in json::members(self.raw).unwrap_or_default() {
            let edited = Member::ALL.into_iter().find(|m| self.edited & m.bit() != 0 && m.name() == key.name);
            match edited {
                None => object.copy(&key, value),
                Some(member) if missing & member.bit() != 0 => {
                    missing &= !member.bit();
                    self.write_member(member, &mut object);
                }
                // The text has the member twice; the first place gets the value.
                Some(_) => {}
            }
        }
        for member in Member::ALL.into_iter().filter(|member| missing & member.bit() != 0) {
            self.write_member(member, &mut object);
        }
        object.end();
    }

    /// Writes one edited member, or nothing if it is now empty.
    fn write_member(&self, member: Member, object: &mut ObjectWriter<'_>) {
        let mut text = |value: &str| {
            if !value.is_empty() {
                json::write_string(object.member(member.name()), value);
            }
        };
        match member {
            Member::Urn => text(&self.urn),
            Member::Parent => text(&self.parent),
            Member::Provider => text(&self.provider),
            Member::DeletedWith => text(&self.deleted_with),
            Member::ViewOf => text(&self.view_of),
            Member::Delete => write_flag(self.delete, member, object),
            Member::PendingReplacement => write_flag(self.pending_replacement, member, object),
            Member::Dependencies => write_texts(&self.dependencies, member, object),
            Member::ReplaceWith => write_texts(&self.replace_with, member, object),
            Member::Aliases => write_texts(&self.aliases, member, object),
            Member::PropertyDependencies => {
                if !self.property_dependencies.is_empty() {
                    let mut properties = ObjectWriter::new(object.member(member.name()));
                    for (name, urns) in &self.property_dependencies {
                        json::write_list(properties.named(name), urns, |out, urn| {
                            json::write_string(out, urn)
                        });
                    }
                    properties.end();
                }
            }
        }
    }
}

fn write_flag(value: bool, member: Member, object: &mut ObjectWriter<'_>) {
    if value {
        object.member(member.name()).push_str("true");
    }
}

fn write_texts(values: &[Cow<'_, str>], member: Member, object: &mut ObjectWriter<'_>) {
    if !values.is_empty() {
        json::write_list(object.member(member.name()), values, |out, value| json::write_string(out, value));
    }
}

/// A string; `null` is an empty one.
pub(crate) fn text<'a>(reader: &mut Reader<'a>) -> json::Result<Cow<'a, str>> {
    Ok(reader.optional(Reader::string)?.unwrap_or_default())
}

/// A boolean; `null` is false.
pub(crate) fn flag(reader: &mut Reader<'_>) -> json::Result<bool> {
    Ok(reader.optional(Reader::boolean)?.unwrap_or_default())
}

/// The text of an object.
pub(crate) fn raw_object<'a>(reader: &mut Reader<'a>) -> json::Result<&'a str> {
    let start = reader.start();
    let raw = reader.raw()?;
    if raw.starts_with('{') {
        return Ok(raw);
    }
    reader.return_to(start);
    Err(reader.expected("an object"))
}

fn texts<'a>(reader: &mut Reader<'a>) -> json::Result<Vec<Cow<'a, str>>> {
    Ok(reader.optional(|reader| reader.list(text))?.unwrap_or_default())
}

fn text_lists<'a>(reader: &mut Reader<'a>) -> json::Result<TextLists<'a>> {
    let mut lists = Vec::new();
    reader.optional(|reader| {
        reader.object(|reader, key| {
            lists.push((key.name, texts(reader)?));
            Ok(())
        })
    })?;
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"urn":"urn:a","x":1e+21,"dependencies":["b"], "custom":true,"type":"t:m:T","outputs":{"big":12345678901234567891}}"#;

    fn read(text: &str) -> Resource<'_> {
        Resource::read(&mut Reader::new(text)).unwrap()
    }

    fn written(resource: &Resource<'_>) -> String {
        let mut out = String::new();
        resource.write(&mut out);
        out
    }

    #[test]
    fn an_untouched_resource_keeps_every_byte() {
        assert_eq!(written(&read(TEXT)), TEXT);
    }

    #[test]
    fn an_edit_changes_its_member_and_keeps_the_order_of_the_others() {
        let mut resource = read(TEXT);
        resource.mark_delete();
        resource.dependencies = vec![Cow::Borrowed("c\n")];
        resource.edit(Member::Dependencies);
        assert_eq!(
            written(&resource),
            r#"{"urn":"urn:a","x":1e+21,"dependencies":["c\n"],"custom":true,"type":"t:m:T","outputs":{"big":12345678901234567891},"delete":true}"#
        );
        resource.dependencies.clear();
        assert!(!written(&resource).contains("dependencies"));
    }

    #[test]
    fn setting_a_present_mark_is_not_an_edit() {
        let mut resource = read(r#"{"urn":"u","type":"t","delete":true}"#);
        resource.mark_delete();
        assert!(resource.unedited_text().is_some());
    }

    #[test]
    fn members_of_the_wrong_kind_are_refused_by_name() {
        for text in
            [r#"{"urn":1}"#, r#"{"dependencies":["a",2]}"#, r#"{"outputs":[]}"#, r#"{"delete":"yes"}"#]
        {
            assert!(Resource::read(&mut Reader::new(text)).is_err(), "{text}");
        }
        let error = Resource::read(&mut Reader::new(r#"{"dependencies":["a",2]}"#)).unwrap_err();
        assert_eq!(error.to_string(), "`dependencies`: expected a string at byte 21");
    }
}
