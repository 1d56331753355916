//! Facts about a request, collected while it is handled, for the log line and the audit record at its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use super::app::App;
use super::error::Failure;
use super::extract::{FromHead, from_head};
use super::route::{Route, STATES_ROOT};
use crate::domain::ids::UpdateId;
use crate::domain::names::{
    DEFAULT_STATE, EnvironmentAddress, EnvironmentName, Login, OrgName, ProjectName, StackAddress, StackName,
    StateAddress, StateName, TokenName,
};
use crate::domain::update::Requester;
use crate::services::Error;
use crate::services::audit::Act;
use crate::services::caller::{AddressedOrg, Caller};
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
    /// The name of the stack, state or environment that the path names, within its project.
    unit: Option<String>,
    pub(super) detail: Option<String>,
    /// The organizations of the person, if the request is about the person's own sign-ins or tokens.
    pub(super) orgs_of_person: Vec<OrgName>,
    /// Whether the caller is known to be a member of the organization in the path.
    is_of_member: bool,
    /// What the caller's request turned out to be about.
    addressed: Option<Arc<AddressedOrg>>,
}

impl RequestFacts {
    /// The organization: from the path or the handler, or as the caller's request turned out.
    pub(super) fn organization(&self) -> Option<&OrgName> {
        self.org.as_ref().or_else(|| self.addressed.as_ref()?.org())
    }

    /// The organization, if the caller is known to be a member of it. Its audit trail gets the record.
    pub(super) fn organization_of_member(&self) -> Option<&OrgName> {
        let addressed = self.addressed.as_ref().and_then(|addressed| addressed.org());
        let is_of_member = if addressed.is_some() { !self.is_foreign() } else { self.is_of_member };
        self.organization().filter(|_| is_of_member)
    }

    /// Whether the request is about an organization that the caller is not a member of.
    pub(super) fn is_foreign(&self) -> bool {
        self.addressed.as_ref().is_some_and(|addressed| addressed.is_foreign())
    }
}

/// The shared context of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestContext {
    facts: Arc<Mutex<RequestFacts>>,
    /// What use cases may know of the request.
    act: Arc<Act>,
}

impl RequestContext {
    pub(super) fn facts(&self) -> MutexGuard<'_, RequestFacts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn new(act: Act) -> Self {
        Self { facts: Arc::default(), act: Arc::new(act) }
    }

    pub(super) fn act(&self) -> &Arc<Act> {
        &self.act
    }

    /// Records the route and the names in the path.
    pub(super) async fn enter(&self, app: &App, route: &'static Route, parts: &mut Parts) {
        let parameters = match route.path.contains('{') {
            true => RawPathParams::from_request_parts(parts, app).await.ok(),
            false => None,
        };
        let mut facts = self.facts();
        facts.route = Some(route);
        let mut state = None;
        for (name, value) in parameters.iter().flatten() {
            match name {
                "org" => facts.org = OrgName::parse(value).ok(),
                "project" => facts.project = ProjectName::parse(value).ok(),
                "stack" => facts.stack = StackName::parse(value).ok(),
                "update" => facts.update = UpdateId::parse(value),
                "environment" => facts.environment = EnvironmentName::parse(value).ok(),
                "state" => state = StateName::parse(value).ok(),
                _ => {}
            }
        }
        let is_of_default = route.path.starts_with(STATES_ROOT) && !route.path.contains("{state}");
        let stack = facts.stack.as_ref().map(StackName::as_str);
        let unit = stack
            .or_else(|| facts.environment.as_ref().map(EnvironmentName::as_str))
            .or_else(|| state.as_ref().map(StateName::as_str))
            .or_else(|| is_of_default.then_some(DEFAULT_STATE))
            .map(str::to_owned);
        facts.unit = unit;
        self.act.set_action(route.action);
        if let (Some(org), Some(project), Some(stack)) = (&facts.org, &facts.project, &facts.stack) {
            let (org, project, stack) = (org.clone(), project.clone(), stack.clone());
            self.act.set_stack(StackAddress { org, project, stack });
        }
    }

    pub(super) fn asked_by(&self, requester: Requester) {
        self.act.set_caller(requester.clone());
        let mut facts = self.facts();
        (facts.user, facts.token) = (Some(requester.login), Some(requester.token));
        facts.tried = None;
    }

    /// Records who got a token for the organization. Its audit trail gets the record.
    pub(super) fn admits(&self, requester: Requester) {
        self.asked_by(requester);
        self.facts().is_of_member = true;
    }

    /// Records the organization that the caller's request turns out to be about.
    pub(super) fn follow(&self, caller: &Caller) {
        let mut facts = self.facts();
        facts.is_of_member = facts.org.as_ref().is_some_and(|org| caller.is_member(org));
        facts.addressed = Some(Arc::clone(caller.addressed()));
        // A record that is not about an organization is about the caller.
        if facts.route.is_some_and(|route| route.needs.is_none() && route.action.is_some()) {
            facts.orgs_of_person.clone_from(&caller.user.orgs);
        }
    }

    /// Records the organizations of a person who has just signed in.
    pub(crate) fn of_organizations(&self, orgs: Vec<OrgName>) {
        self.facts().orgs_of_person = orgs;
    }

    /// Records that the path names the stack of the update whose token was sent.
    pub(super) fn holds_its_update(&self) {
        self.facts().is_of_member = true;
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

    /// The address of the stack, if the path names it.
    pub(super) fn address(&self) -> Option<StackAddress> {
        let facts = self.facts();
        let (org, project, stack) = (facts.org.clone()?, facts.project.clone()?, facts.stack.clone()?);
        Some(StackAddress { org, project, stack })
    }

    /// The project and the name of the stack, state or environment, if the path names it.
    pub(super) fn unit(&self) -> Option<(ProjectName, String)> {
        let facts = self.facts();
        Some((facts.project.clone()?, facts.unit.clone()?))
    }

    /// Records the organization, if the path does not name it.
    pub(crate) fn organization(&self, org: OrgName) {
        self.facts().org = Some(org);
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
    pub(crate) fn state(&self, state: &StateRef) {
        match state {
            StateRef::Name(address) => self.state_named(address),
            StateRef::Id(_) => self.facts().state = Some(state.clone()),
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
        let text = text.into();
        self.act.set_detail(text.clone());
        self.facts().detail = Some(text);
    }
}

impl FromHead for RequestContext {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let broken = || Error::Internal("a handler reads the context of a request without one".to_owned());
        parts.extensions.get::<Self>().cloned().ok_or_else(|| broken().into())
    }
}

from_head!(RequestContext);
