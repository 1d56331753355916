//! `statewright sso`.

use clap::Subcommand;
use serde::Serialize;
use statewright_shared::context::Context;
use statewright_shared::domain::names::{Login, OrgName, ProviderName, TeamName};
use statewright_shared::domain::role::Role;
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::domain::sign_in::{GROUPS_CLAIM, LOGIN_CLAIM, SignInRule};
use statewright_shared::layout::{IdentityEntry, SignInProvider};
use statewright_shared::services::identity::given_providers::SCOPES;
use statewright_shared::services::identity::providers::{DAYS, DAYS_MAX};
use statewright_shared::services::identity::{accounts, code_flow, providers};

use crate::args::{self, Data, misused};
use crate::data;
use crate::output::{Output, Rfc3339, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Sso {
    #[command(flatten)]
    data: Data,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add an OpenID Connect provider. Asks for its client secret at a terminal, and otherwise reads the first
    /// line of stdin.
    Add(Box<Add>),
    /// List the providers.
    List,
    /// Show a provider, its rules, and the address to register with it.
    Show {
        /// The name of the provider.
        #[arg(value_parser = args::provider)]
        name: ProviderName,
    },
    /// Replace the rules of a provider. They apply to each person at the next sign-in.
    Rules {
        /// The name of the provider.
        #[arg(value_parser = args::provider)]
        name: ProviderName,
        #[command(flatten)]
        rules: RuleOptions,
        /// Remove all rules.
        #[arg(long, conflicts_with = "rules")]
        none: bool,
    },
    /// Remove a provider. Its users can no longer sign in with it, and their tokens stop when their next sign-in
    /// is due.
    Remove {
        /// The name of the provider.
        #[arg(value_parser = args::provider)]
        name: ProviderName,
        #[arg(long)]
        yes: bool,
    },
    /// List the accounts that are linked with a user.
    Accounts {
        /// The name of the user.
        #[arg(value_parser = args::login)]
        login: Login,
    },
    /// Unlink the accounts of a provider from a user. If no account is left, the user's tokens no longer need
    /// sign-ins.
    Unlink {
        /// The name of the user.
        #[arg(value_parser = args::login)]
        login: Login,
        /// The name of the provider.
        #[arg(value_parser = args::provider)]
        name: ProviderName,
    },
}

#[derive(Debug, clap::Args)]
struct Add {
    /// A name for the provider, which is a part of the address to register with it.
    #[arg(value_parser = args::provider)]
    name: ProviderName,
    /// The issuer of its ID tokens, exactly as in its own documents.
    #[arg(long, value_name = "URL")]
    issuer: String,
    /// The client ID that the provider assigned to this server.
    #[arg(long, value_name = "ID")]
    client_id: String,
    /// The client has no secret.
    #[arg(long)]
    public: bool,
    /// The address at which people open this server.
    #[arg(long, value_name = "URL", value_parser = args::server_url)]
    server: ServerUrl,
    /// The name on the sign-in page [default: the name of the provider].
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// A scope to ask for in addition to `openid`; may be repeated.
    #[arg(long = "scope", value_name = "SCOPE", default_values = SCOPES)]
    scopes: Vec<String>,
    /// The claim that names a new user. Of an email address, the part before the @ is used.
    #[arg(long, value_name = "CLAIM", default_value = LOGIN_CLAIM)]
    login_claim: String,
    /// The claim with the groups of a person.
    #[arg(long, value_name = "CLAIM", default_value = GROUPS_CLAIM)]
    groups_claim: String,
    /// Days without a sign-in after which the access tokens of the provider's users stop, up to 365.
    #[arg(long, value_name = "DAYS", default_value_t = DAYS, value_parser = clap::value_parser!(u32).range(1..=i64::from(DAYS_MAX)))]
    days: u32,
    #[command(flatten)]
    rules: RuleOptions,
}

#[derive(Debug, clap::Args)]
struct RuleOptions {
    /// A rule GROUP=ORGANIZATION:ROLE or GROUP=ORGANIZATION:ROLE:TEAM; may be repeated. In GROUP, `*` stands for any text. A person whom
    /// no rule matches does not become a user.
    #[arg(long = "rule", value_name = "RULE", value_parser = args::sign_in_rule)]
    rules: Vec<SignInRule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    name: ProviderName,
    title: String,
    issuer: String,
    client_id: String,
    server: String,
    redirect_uri: String,
    scopes: Vec<String>,
    login_claim: String,
    groups_claim: String,
    days: u32,
    rules: Vec<Rule>,
    created: Rfc3339,
}

#[derive(Serialize)]
struct Rule {
    group: String,
    organization: OrgName,
    role: Role,
    team: Option<TeamName>,
}

impl From<SignInProvider> for Shown {
    fn from(provider: SignInProvider) -> Self {
        let redirect_uri = code_flow::redirect_uri(&provider);
        let SignInProvider { name, title, issuer, client_id, server, .. } = provider;
        let SignInProvider { scopes, login_claim, groups_claim, days, rules, created, .. } = provider;
        let rule = |SignInRule { group, org, role, team }| Rule { group, organization: org, role, team };
        Self {
            name,
            title,
            issuer,
            client_id,
            server,
            redirect_uri,
            scopes,
            login_claim,
            groups_claim,
            days,
            rules: rules.into_iter().map(rule).collect(),
            created: Rfc3339(created),
        }
    }
}

impl Shown {
    fn describe(&self) -> String {
        let mut text = format!(
            "{} ({})\n  issuer        {}\n  client        {}\n  redirect URI  {}\n  scopes        openid {}\n  login from    {}\n  groups \
             from   {}\n  sign in every {} days",
            self.name,
            self.title,
            self.issuer,
            self.client_id,
            self.redirect_uri,
            self.scopes.join(" "),
            self.login_claim,
            self.groups_claim,
            self.days
        );
        match self.rules.as_slice() {
            [] => text += "\n  no rules: only linked accounts sign in",
            rules => {
                for Rule { group, organization, role, team } in rules {
                    let team = team.as_ref().map(|team| format!(":{team}")).unwrap_or_default();
                    text += &format!("\n  rule          {group}={organization}:{role}{team}");
                }
            }
        }
        text
    }
}

#[derive(Serialize)]
struct Listed {
    providers: Vec<Shown>,
}

#[derive(Serialize)]
struct Removed {
    name: ProviderName,
}

#[derive(Serialize)]
struct Accounts {
    user: Login,
    accounts: Vec<Account>,
}

#[derive(Serialize)]
struct Account {
    provider: ProviderName,
    issuer: String,
    subject: String,
    linked: Rfc3339,
}

#[derive(Serialize)]
struct Unlinked {
    user: Login,
    provider: ProviderName,
    accounts: usize,
}

pub(crate) async fn run(sso: Sso, out: Output) -> anyhow::Result<()> {
    let (_folder, ctx) = data::open_beside(&sso.data).await?;
    match sso.command {
        Command::Add(add) => self::add(&ctx, *add, out).await,
        Command::List => {
            let providers = providers::list(&ctx).await?.into_iter().map(Shown::from).collect();
            out.answer(&Listed { providers }, |listed| {
                let rows = listed.providers.iter().map(|one| {
                    vec![
                        one.name.to_string(),
                        one.title.clone(),
                        one.issuer.clone(),
                        one.rules.len().to_string(),
                    ]
                });
                table(&["PROVIDER", "TITLE", "ISSUER", "RULES"], rows)
            })
        }
        Command::Show { name } => {
            out.answer(&Shown::from(providers::get(&ctx, &name).await?), Shown::describe)
        }
        Command::Rules { name, rules: RuleOptions { rules }, none } => {
            if rules.is_empty() && !none {
                return Err(misused("name each rule with --rule, or remove all of them with --none"));
            }
            out.answer(&Shown::from(providers::set_rules(&ctx, &name, &rules).await?), Shown::describe)
        }
        Command::Remove { name, yes } => {
            out.confirm(&format!("Remove the provider {name}?"), yes)?;
            providers::remove(&ctx, &name).await?;
            out.answer(&Removed { name }, |removed| format!("removed {}", removed.name))
        }
        Command::Accounts { login } => list_accounts(&ctx, login, out).await,
        Command::Unlink { login, name } => {
            let accounts = accounts::unlink(&ctx, &login, &name).await?;
            out.answer(&Unlinked { user: login, provider: name, accounts }, |unlinked| {
                format!("unlinked {} from {}", unlinked.provider, unlinked.user)
            })
        }
    }
}

async fn add(ctx: &Context, add: Add, out: Output) -> anyhow::Result<()> {
    let Add { name, issuer, client_id, public, server, title, scopes, login_claim, groups_claim, .. } = add;
    let RuleOptions { rules } = add.rules;
    let secret = match public {
        true => None,
        false => Some(out.ask_for_secret(&format!("Client secret of {name}"))?),
    };
    let provider = SignInProvider {
        title: title.unwrap_or_else(|| name.to_string()),
        name,
        issuer,
        client_id,
        server: server.to_string(),
        scopes,
        login_claim,
        groups_claim,
        days: add.days,
        rules,
        created: ctx.now(),
    };
    let added = providers::add(ctx, provider, secret.as_deref().map(str::trim)).await?;
    out.answer(&Shown::from(added), |shown| {
        format!("added {}\nregister this redirect URI with the provider: {}", shown.name, shown.redirect_uri)
    })
}

async fn list_accounts(ctx: &Context, login: Login, out: Output) -> anyhow::Result<()> {
    let account = |IdentityEntry { provider, issuer, subject, linked, .. }| Account {
        provider,
        issuer,
        subject,
        linked: Rfc3339(linked),
    };
    let accounts = accounts::list(ctx, &login).await?.into_iter().map(account).collect();
    out.answer(&Accounts { user: login, accounts }, |listed| {
        let rows = listed.accounts.iter().map(|one| {
            vec![one.provider.to_string(), one.issuer.clone(), one.subject.clone(), one.linked.to_string()]
        });
        table(&["PROVIDER", "ISSUER", "SUBJECT", "LINKED"], rows)
    })
}
