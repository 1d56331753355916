//! Facts about a request, collected while it is handled, for the log line and the audit record at its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use super::app::App;
use super::error::Failure;
use super::extract::{FromHead, from_head};
use super::route::Route;
use crate::domain::ids::UpdateId;
use crate::domain::names::{
    EnvironmentAddress, EnvironmentName, Login, OrgName, ProjectName, StackAddress, StackName, StateAddress,
    TokenName,
};
use crate::domain::update::Requester;
use crate::services::Error;
use crate::services::caller::{Asked, Caller};
use crate::services::identity::tokens::TOKEN_PREFIX;
use crate::services::states::StateRef;

/// The facts so far. Only valid names are stored, so all of them are short and printable.
#[derive(Debug, Default)]
pub(super) struct RequestFacts {
    pub(super) route: Option<&'static Route>,
    pub(super) user: Option<Login>,
    pub(super) token: Option<TokenName>,
    /// The login of a password, before the password is checked.
    pub(super) tried: Option<Login>,
    pub(super) org: Option<OrgName>,
    pub(super) project: Option<ProjectName>,
    pub(super) stack: Option<StackName>,
    pub(super) update: Option<UpdateId>,
    /// The Terraform state, by its ID or its address.
    pub(super) state: Option<StateRef>,
    /// The environment, within its organization and project.
    pub(super) environment: Option<EnvironmentName>,
    pub(super) detail: Option<String>,
    /// What the caller's request turned out to be about.
    asked: Option<Arc<Asked>>,
}

impl RequestFacts {
    /// The organization: from the path or the handler, or as the caller's request turned out.
    pub(super) fn organization(&self) -> Option<&OrgName> {
        self.org.as_ref().or_else(|| self.asked.as_ref()?.org())
    }

    /// Whether the request is about an organization that the caller is not a member of.
    pub(super) fn is_foreign(&self) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.is_foreign())
    }
}

/// The shared context of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestContext(Arc<Mutex<RequestFacts>>);

impl RequestContext {
    pub(super) fn facts(&self) -> MutexGuard<'_, RequestFacts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the route and the names in the path.
    pub(super) async fn enter(&self, app: &App, route: &'static Route, parts: &mut Parts) {
        let parameters = match route.path.contains('{') {
            true => RawPathParams::from_request_parts(parts, app).await.ok(),
            false => None,
        };
        let mut facts = self.facts();
        facts.route = Some(route);
        for (name, value) in parameters.iter().flatten() {
            match name {
                "org" => facts.org = OrgName::parse(value).ok(),
                "project" => facts.project = ProjectName::parse(value).ok(),
                "stack" => facts.stack = StackName::parse(value).ok(),
                "update" => facts.update = UpdateId::parse(value),
                "environment" => facts.environment = EnvironmentName::parse(value).ok(),
                _ => {}
            }
        }
    }

    pub(super) fn asked_by(&self, requester: Requester) {
        let mut facts = self.facts();
        (facts.user, facts.token) = (Some(requester.login), Some(requester.token));
        facts.tried = None;
    }

    /// Records the organization that the caller's request turns out to be about.
    pub(super) fn follow(&self, caller: &Caller) {
        self.facts().asked = Some(Arc::clone(caller.asked()));
    }

    /// Records the login of a password. A text that looks like a token is a secret, and is not recorded.
    pub(super) fn record_login_attempt(&self, login: &str) {
        if !login.starts_with(TOKEN_PREFIX) {
            self.facts().tried = Login::parse(login).ok();
        }
    }

    /// The organization, if the path names it.
    pub(super) fn org(&self) -> Option<OrgName> {
        self.facts().org.clone()
    }

    /// Records the stack, if the path alone does not name it.
    pub(crate) fn stack(&self, address: &StackAddress) {
        let StackAddress { org, project, stack } = address.clone();
        let mut facts = self.facts();
        (facts.org, facts.project, facts.stack) = (Some(org), Some(project), Some(stack));
    }

    /// Records the environment, if the path alone does not name it.
    pub(crate) fn environment(&self, address: &EnvironmentAddress) {
        let EnvironmentAddress { org, project, name } = address.clone();
        let mut facts = self.facts();
        (facts.org, facts.project, facts.environment) = (Some(org), Some(project), Some(name));
    }

    /// Records the update, if the path does not name it.
    pub(crate) fn update(&self, update: UpdateId) {
        self.facts().update = Some(update);
    }

    /// Records the Terraform state that the path names.
    pub(crate) fn state(&self, place: &StateRef) {
        match place {
            StateRef::Name(address) => self.state_named(address),
            StateRef::Id(_) => self.facts().state = Some(place.clone()),
        }
    }

    /// Records the Terraform state by its address, which may be known only after the lookup.
    pub(super) fn state_named(&self, address: &StateAddress) {
        let mut facts = self.facts();
        (facts.org, facts.project) = (Some(address.org.clone()), Some(address.project.clone()));
        facts.state = Some(StateRef::Name(address.clone()));
    }

    /// Records a short detail for the audit log. Never a secret, and no long text of a client.
    pub(crate) fn detail(&self, text: impl Into<String>) {
        self.facts().detail = Some(text.into());
    }
}

impl FromHead for RequestContext {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let broken = || Error::Broken("a handler reads the context of a request without one".to_owned());
        parts.extensions.get::<Self>().cloned().ok_or_else(|| broken().into())
    }
}

from_head!(RequestContext);
