//! The parts of paths.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use super::App;
use super::error::Failure;
use super::unsupported::unsupported;
use crate::domain::names::{OrgName, ProjectName, StackAddress};
use crate::services::{Error, lookup};

/// `{org}/{project}/{stack}`, not judged yet.
#[derive(Debug, Default)]
pub(super) struct StackParts {
    pub(super) org: String,
    pub(super) project: String,
    pub(super) stack: String,
}

/// `{org}/{project}/{stack}/{kind}/{update}`. The client writes `update` for the kind of every update; the words of
/// the calls that create one are taken as well.
#[derive(Debug, Default)]
pub(super) struct UpdatePath {
    pub(super) stack: StackParts,
    pub(super) update: String,
    version: Option<String>,
}

const UPDATE_KINDS: [&str; 4] = ["update", "preview", "refresh", "destroy"];

impl FromRequestParts<App> for UpdatePath {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let refused = unsupported(&parts.method, parts.uri.path());
        let mut path = Self::default();
        for (name, value) in &RawPathParams::from_request_parts(parts, app).await.map_err(unreadable)? {
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

fn unreadable(rejection: axum::extract::rejection::RawPathParamsRejection) -> Failure {
    Error::Invalid(format!("the path cannot be read: {rejection}")).into()
}

/// The address of the stack in a path.
#[derive(Debug)]
pub(super) struct StackPath(pub(super) StackAddress);

impl FromRequestParts<App> for StackPath {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let path = UpdatePath::from_request_parts(parts, app).await?.stack;
        Ok(Self(lookup::address(&path.org, &path.project, &path.stack)?))
    }
}

/// The update in a path, not looked up yet.
#[derive(Debug)]
pub(super) struct UpdateText(pub(super) String);

impl FromRequestParts<App> for UpdateText {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        Ok(Self(UpdatePath::from_request_parts(parts, app).await?.update))
    }
}

/// The version in a path; `None` where the path is that of the latest.
#[derive(Debug)]
pub(super) struct VersionPath(pub(super) Option<u64>);

impl FromRequestParts<App> for VersionPath {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let Some(text) = UpdatePath::from_request_parts(parts, app).await?.version else {
            return Ok(Self(None));
        };
        let version = text.parse().ok().filter(|version| *version > 0);
        let version =
            version.ok_or_else(|| Error::Invalid("a version is a whole number from 1".to_owned()))?;
        Ok(Self(Some(version)))
    }
}

/// `{org}/{project}` of a path.
#[derive(Debug)]
pub(super) struct ProjectPath(pub(super) OrgName, pub(super) ProjectName);

impl FromRequestParts<App> for ProjectPath {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let path = UpdatePath::from_request_parts(parts, app).await?.stack;
        Ok(Self(OrgName::parse(&path.org)?, ProjectName::parse(&path.project)?))
    }
}

/// `{org}` of a path.
#[derive(Debug)]
pub(super) struct OrgPath(pub(super) OrgName);

impl FromRequestParts<App> for OrgPath {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let path = UpdatePath::from_request_parts(parts, app).await?.stack;
        Ok(Self(OrgName::parse(&path.org)?))
    }
}
