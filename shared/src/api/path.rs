//! The parts of paths.

use std::collections::HashMap;

use axum::extract::Path;
use axum::http::request::Parts;

use super::error::Failure;
use super::extract::{FromHead, from_head, params, there};
use super::request_context::RequestContext;
use super::unsupported::unsupported;
use crate::domain::ids::{StateId, UpdateId};
use crate::domain::names::{
    EnvironmentAddress, Login, OrgName, ProjectName, ProviderName, StackAddress, StateAddress, TeamName,
};
use crate::services::Error;
use crate::services::environments::lookup::RevisionRef;
use crate::services::error::InvalidInput;
use crate::services::states::StateRef;
use crate::services::states::versions::StateVersionRef;
use crate::services::store::stack_lookup;

/// `{org}/{project}/{stack}`, not validated yet.
#[derive(Debug, Default)]
pub(super) struct StackParts {
    pub(super) org: String,
    pub(super) project: String,
    pub(super) stack: String,
}

/// `{org}/{project}/{stack}/{kind}/{update}`. Clients write `update` as the kind of every update. The kinds
/// in the paths that create updates are accepted too.
#[derive(Debug, Default)]
pub(super) struct UpdatePath {
    pub(super) stack: StackParts,
    pub(super) update: String,
    version: Option<String>,
}

const UPDATE_KINDS: [&str; 4] = ["update", "preview", "refresh", "destroy"];

impl FromHead for UpdatePath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let refused = unsupported(&parts.method, parts.uri.path());
        let mut path = Self::default();
        for (name, value) in &params(parts)? {
            match name {
                "org" => path.stack.org = value.to_owned(),
                "project" => path.stack.project = value.to_owned(),
                "stack" => path.stack.stack = value.to_owned(),
                "update" => path.update = value.to_owned(),
                "version" => path.version = Some(value.to_owned()),
                "kind" if !UPDATE_KINDS.contains(&value) => return Err(refused),
                _ => {}
            }
        }
        Ok(path)
    }
}

/// The address of the stack in a path.
#[derive(Debug)]
pub(super) struct StackPath(pub(super) StackAddress);

impl FromHead for StackPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let path = UpdatePath::read(parts)?.stack;
        Ok(Self(stack_lookup::address(&path.org, &path.project, &path.stack)?))
    }
}

/// The provider of sign-ins in a path.
#[derive(Debug)]
pub(super) struct ProviderPath(pub(super) ProviderName);

impl FromHead for ProviderPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let params = params(parts)?;
        let name = params.iter().find_map(|(name, value)| (name == "provider").then_some(value));
        Ok(Self(ProviderName::parse(name.unwrap_or_default())?))
    }
}

/// The update in a path, not validated yet.
#[derive(Debug)]
pub(super) struct UpdateText(pub(super) String);

impl FromHead for UpdateText {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        Ok(Self(UpdatePath::read(parts)?.update))
    }
}

/// The version in a path; `None` if the path means the latest one.
#[derive(Debug)]
pub(super) struct VersionPath(pub(super) Option<u64>);

impl FromHead for VersionPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        UpdatePath::read(parts)?.version.map(|text| version_of(&text)).transpose().map(Self)
    }
}

/// The entry of a history in a path.
#[derive(Debug)]
pub(super) enum EntryPath {
    /// That of a version; `None` if the path means the latest one.
    Version(Option<u64>),
    /// That of an update or a preview with this ID.
    Update(String),
}

impl FromHead for EntryPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        match UpdatePath::read(parts)?.version {
            Some(text) if UpdateId::parse(&text).is_some() => Ok(Self::Update(text)),
            text => text.map(|text| version_of(&text)).transpose().map(Self::Version),
        }
    }
}

/// The version to compare with.
#[derive(Debug)]
pub(super) struct SecondVersionPath(pub(super) Option<u64>);

impl FromHead for SecondVersionPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let params = params(parts)?;
        let text = params.iter().find_map(|(name, value)| (name == "other").then_some(value));
        text.map(version_of).transpose().map(Self)
    }
}

fn version_of(text: &str) -> Result<u64, Failure> {
    Ok(text.parse().ok().filter(|version| *version > 0).ok_or(InvalidInput::Version)?)
}

/// The state in a path: `{guid}`, or `{org}/{project}` with or without `{state}`. Names may be escaped.
#[derive(Debug)]
pub(super) struct StatePath(pub(super) StateRef);

impl FromHead for StatePath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let Path(path) = there::<Path<HashMap<String, String>>>(parts)?;
        let part = |name: &str| path.get(name).map(String::as_str);
        let state = match (part("guid"), part("org"), part("project")) {
            (Some(id), ..) => StateRef::Id(StateId::parse(id).ok_or(InvalidInput::StateName)?),
            (None, Some(org), Some(project)) => {
                StateRef::Name(StateAddress::parse(org, project, part("state"))?)
            }
            (None, ..) => {
                return Err(Error::Internal("a route of states has no state in its path".to_owned()).into());
            }
        };
        if let Some(context) = parts.extensions.get::<RequestContext>() {
            context.state(&state);
        }
        Ok(Self(state))
    }
}

/// The state version in a path: a version or a refused write.
#[derive(Debug)]
pub(super) struct StateVersionPath(pub(super) StateVersionRef);

/// The version to compare with.
#[derive(Debug)]
pub(super) struct OtherVersionPath(pub(super) StateVersionRef);

fn which(parts: &mut Parts, name: &str) -> Result<StateVersionRef, Failure> {
    let params = params(parts)?;
    let text = params.iter().find(|(found, _)| *found == name).map(|(_, value)| value);
    let which = text.and_then(StateVersionRef::parse);
    Ok(which.ok_or(InvalidInput::StateVersion)?)
}

impl FromHead for StateVersionPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        which(parts, "version").map(Self)
    }
}

impl FromHead for OtherVersionPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        which(parts, "other").map(Self)
    }
}

/// The edge in a path, not validated yet: check first whether the caller may see the organization.
#[derive(Debug)]
pub(super) struct EdgeText(pub(super) String);

impl FromHead for EdgeText {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let params = params(parts)?;
        let edge = params.iter().find(|(name, _)| *name == "edge").map(|(_, value)| value.to_owned());
        Ok(Self(edge.unwrap_or_default()))
    }
}

/// The environment in a path.
#[derive(Debug)]
pub(super) struct EnvironmentPath(pub(super) EnvironmentAddress);

impl FromHead for EnvironmentPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let params = params(parts)?;
        let part =
            |name: &str| params.iter().find(|(found, _)| *found == name).map_or("", |(_, value)| value);
        Ok(Self(EnvironmentAddress::parse(part("org"), part("project"), part("environment"))?))
    }
}

/// The revision of an environment in a path; without one, the current revision.
#[derive(Debug)]
pub(super) struct RevisionPath(pub(super) RevisionRef);

impl FromHead for RevisionPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let params = params(parts)?;
        let version = params.iter().find(|(name, _)| *name == "version").map(|(_, value)| value);
        Ok(Self(version.map_or(Ok(RevisionRef::Latest), RevisionRef::parse)?))
    }
}

/// The tag in a path, not validated yet.
#[derive(Debug)]
pub(super) struct TagPath(pub(super) String);

impl FromHead for TagPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let params = params(parts)?;
        let tag = params.iter().find(|(name, _)| *name == "tag").map(|(_, value)| value.to_owned());
        Ok(Self(tag.unwrap_or_default()))
    }
}

/// An opened environment or text, and its session.
#[derive(Debug)]
pub(super) struct SessionPath {
    pub(super) org: OrgName,
    /// `None` for a text.
    pub(super) environment: Option<EnvironmentAddress>,
    /// Not validated yet.
    pub(super) session: String,
}

impl FromHead for SessionPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let params = params(parts)?;
        let part = |name: &str| params.iter().find(|(found, _)| *found == name).map(|(_, value)| value);
        let org = part("org").unwrap_or_default();
        let environment = match (part("project"), part("environment")) {
            (Some(project), Some(name)) => Some(EnvironmentAddress::parse(org, project, name)?),
            _ => None,
        };
        let session = part("session").unwrap_or_default().to_owned();
        Ok(Self { org: OrgName::parse(org)?, environment, session })
    }
}

/// `{org}/{project}` in a path.
#[derive(Debug)]
pub(super) struct ProjectPath(pub(super) OrgName, pub(super) ProjectName);

impl FromHead for ProjectPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let path = UpdatePath::read(parts)?.stack;
        Ok(Self(OrgName::parse(&path.org)?, ProjectName::parse(&path.project)?))
    }
}

/// `{org}` in a path.
#[derive(Debug)]
pub(super) struct OrgPath(pub(super) OrgName);

impl FromHead for OrgPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let path = UpdatePath::read(parts)?.stack;
        Ok(Self(OrgName::parse(&path.org)?))
    }
}

/// `{org}` with `{issuer}` or `{policy}` in a path. The second is an ID, not validated yet.
#[derive(Debug)]
pub(super) struct IssuerPath {
    pub(super) org: OrgName,
    pub(super) id: String,
}

impl FromHead for IssuerPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let params = params(parts)?;
        let part = |names: &[&str]| {
            let found = params.iter().find(|(found, _)| names.contains(found));
            found.map_or_else(String::new, |(_, value)| value.to_owned())
        };
        Ok(Self { org: OrgName::parse(&part(&["org"]))?, id: part(&["issuer", "policy"]) })
    }
}

/// `{issuer}` alone in a path, not validated yet.
#[derive(Debug)]
pub(super) struct IssuerText(pub(super) String);

impl FromHead for IssuerText {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let params = params(parts)?;
        let found = params.iter().find(|(found, _)| *found == "issuer");
        Ok(Self(found.map_or_else(String::new, |(_, value)| value.to_owned())))
    }
}

/// The owner of access tokens in a path: an organization, or one of its teams or members, or the caller. The token is
/// an ID, not validated yet.
#[derive(Debug)]
pub(super) struct TokensPath {
    pub(super) org: Option<OrgName>,
    pub(super) team: Option<TeamName>,
    user: Option<Login>,
    pub(super) token: String,
}

impl TokensPath {
    /// The organization and its member.
    pub(super) fn member(&self) -> Result<(&OrgName, &Login), Error> {
        let member = self.org.as_ref().zip(self.user.as_ref());
        member.ok_or_else(|| Error::Broken("a route of members has no member in its path".to_owned()))
    }
}

impl FromHead for TokensPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let params = params(parts)?;
        let part = |name: &str| params.iter().find(|(found, _)| *found == name).map(|(_, value)| value);
        Ok(Self {
            org: part("org").map(OrgName::parse).transpose()?,
            team: part("team").map(TeamName::parse).transpose()?,
            user: part("user").map(Login::parse).transpose()?,
            token: part("token").unwrap_or_default().to_owned(),
        })
    }
}

/// `{org}` and `{team}` in a path.
#[derive(Debug)]
pub(super) struct TeamPath(pub(super) OrgName, pub(super) TeamName);

impl FromHead for TeamPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let OrgPath(org) = OrgPath::read(parts)?;
        Ok(Self(org, TeamName::parse(&named(parts, "team")?)?))
    }
}

/// `{org}` and `{user}` in a path.
#[derive(Debug)]
pub(super) struct MemberPath(pub(super) OrgName, pub(super) Login);

impl FromHead for MemberPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let OrgPath(org) = OrgPath::read(parts)?;
        Ok(Self(org, Login::parse(&named(parts, "user")?)?))
    }
}

/// `{org}` and `{program}` in a path. The second is the ID of a deleted stack, not validated yet.
#[derive(Debug)]
pub(super) struct ProgramPath(pub(super) OrgName, pub(super) String);

impl FromHead for ProgramPath {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let OrgPath(org) = OrgPath::read(parts)?;
        Ok(Self(org, named(parts, "program")?))
    }
}

/// The session of a browser in a path: an ID, not validated yet.
#[derive(Debug)]
pub(super) struct BrowserText(pub(super) String);

impl FromHead for BrowserText {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        named(parts, "browser").map(Self)
    }
}

/// The role in a path, not validated yet.
#[derive(Debug)]
pub(super) struct RoleText(pub(super) String);

impl FromHead for RoleText {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        named(parts, "role").map(Self)
    }
}

/// The parameter of this name, not validated yet.
fn named(parts: &mut Parts, name: &str) -> Result<String, Failure> {
    let params = params(parts)?;
    let found = params.iter().find(|(found, _)| *found == name).map(|(_, value)| value.to_owned());
    Ok(found.unwrap_or_default())
}

from_head!(
    TeamPath,
    MemberPath,
    ProgramPath,
    BrowserText,
    RoleText,
    ProviderPath,
    UpdatePath,
    StackPath,
    UpdateText,
    VersionPath,
    EntryPath,
    StatePath,
    StateVersionPath,
    OtherVersionPath,
    SecondVersionPath,
    EdgeText,
    EnvironmentPath,
    RevisionPath,
    TagPath,
    SessionPath,
    ProjectPath,
    OrgPath,
    IssuerPath,
    IssuerText,
    TokensPath
);
