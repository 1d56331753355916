//! `statewright why`.

use serde::Serialize;
use statewright_shared::domain::access::Grant;
use statewright_shared::domain::names::{Login, StackAddress};
use statewright_shared::domain::role::{Right, Role};
use statewright_shared::services::identity::grants::Kind;
use statewright_shared::services::identity::{directory, grants};
use statewright_shared::wire::access::{ExplainedAccess, ExplainedRight};

use super::place::{Ask, Place};
use crate::args::{self, Data};
use crate::client::Call;
use crate::output::{Output, table};

/// Show which role or grants let a user do something with a stack, a state or an environment.
#[derive(Debug, clap::Args)]
pub(crate) struct Why {
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    ask: Ask,
    /// The user, a member of the organization.
    #[arg(value_parser = args::login)]
    user: Login,
    /// The action: see, view, outputs, plan, apply, member, audit or admin, or a command such as preview, up or
    /// delete.
    #[arg(value_parser = args::action)]
    action: Right,
    /// The stack, state or environment.
    #[arg(value_name = "ORGANIZATION/PROJECT/NAME", value_parser = args::stack_address)]
    stack: StackAddress,
    /// What the name is of, if more than one thing has it: stack, tfstate or environment [default: the stack, or
    /// else the state].
    #[arg(long, value_name = "KIND", value_parser = args::kind)]
    kind: Option<Kind>,
}

#[derive(Serialize)]
struct Explained {
    user: Login,
    stack: String,
    /// What has the name; `None` if nothing has it.
    kind: Option<String>,
    right: &'static str,
    allowed: bool,
    /// The role in the organization.
    role: Role,
    because: Vec<Because>,
}

/// A reason: the role in the organization, or a grant.
#[derive(Serialize)]
struct Because {
    role: Role,
    grant: Option<Grant>,
}

impl Why {
    /// Whether the command opens the store itself.
    pub(crate) fn is_the_operators(&self) -> bool {
        !self.ask.is_given()
    }
}

pub(crate) async fn run(why: Why, out: Output) -> anyhow::Result<()> {
    let Why { data, ask, user, action, stack, kind } = why;
    let server = ask.words();
    let (role, rights, kind): (Role, Vec<ExplainedRight>, Option<String>) = match ask.open(&data).await? {
        Place::Store(store) => {
            let operator = directory::operator(&store.ctx, Some(&stack.org)).await?;
            let explained = grants::explain_as(&store.ctx, &operator, &stack, Some(&user), kind).await?;
            let kind = explained.kind.map(|kind| kind.as_str().to_owned());
            (explained.role, explained.rights.into_iter().map(ExplainedRight::new).collect(), kind)
        }
        Place::Server(client) => {
            let StackAddress { org, project, stack } = &stack;
            let path = ["api", "stacks", org.as_str(), project.as_str(), stack.as_str(), "access"];
            let call = Call::get(path).query("user", user.as_str());
            let call = kind.iter().fold(call, |call, kind| call.query("kind", kind.as_str()));
            let explained: ExplainedAccess = client.json(call).await?;
            (explained.role, explained.rights, explained.kind)
        }
    };
    let right = rights.into_iter().find(|held| held.right == action.as_str());
    let because = right.map(|held| held.because).unwrap_or_default();
    let because: Vec<Because> =
        because.into_iter().map(|it| Because { role: it.role, grant: it.grant }).collect();
    let answer = Explained {
        user,
        stack: stack.to_string(),
        kind,
        right: action.as_str(),
        allowed: !because.is_empty(),
        role,
        because,
    };
    out.answer(&answer, |answer| describe(answer, &stack, action.role(), &server))
}

fn describe(answer: &Explained, stack: &StackAddress, needed: Role, server: &str) -> String {
    let Explained { user, right, because, role, .. } = answer;
    if because.is_empty() {
        let StackAddress { org, project, stack: name } = stack;
        return format!(
            "{user} does not have the right {right} on {stack}: the role in {org} is {role}, and no grant gives it. To give \
             it, run `statewright org grant add {org} user:{user} {project}/{name} {needed}{server}`"
        );
    }
    let row = |reason: &Because| match &reason.grant {
        None => vec!["role".to_owned(), reason.role.to_string(), "*".to_owned(), user.to_string()],
        Some(Grant { to, on, role }) => {
            vec!["grant".to_owned(), role.0.to_string(), on.to_string(), to.to_string()]
        }
    };
    format!(
        "{user} has the right {right} on {stack}\n{}",
        table(&["BY", "ROLE", "ON", "TO"], because.iter().map(row))
    )
}
