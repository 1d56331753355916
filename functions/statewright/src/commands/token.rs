//! `statewright token`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use serde::Serialize;
use statewright_shared::domain::names::{Login, TokenName};
use statewright_shared::domain::role::Role;
use statewright_shared::layout;
use statewright_shared::ports::Timestamp;
use statewright_shared::services::identity::tokens;
use statewright_shared::services::updates::running::Begun;

use super::running::{self, Running};
use crate::args::{self, Data};
use crate::output::{Output, Rfc3339, table};
use crate::{certificate, data};

#[derive(Debug, clap::Args)]
pub(crate) struct Token {
    #[command(flatten)]
    data: Data,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a token, which is printed only once: the server stores only its hash. Or register a client
    /// certificate, which replaces a token for `tofu` and `terraform`.
    Create {
        /// The name of the token, as shown in histories.
        #[arg(value_parser = args::token_name)]
        name: TokenName,
        #[command(flatten)]
        owner: Owner,
        /// When the token expires, from now, such as 12h or 90d [default: never, or with its certificate].
        #[arg(long, value_name = "DURATION", value_parser = args::duration)]
        expires_in: Option<Duration>,
        /// Register this client certificate instead, a PEM file from any issuer. The private key is not
        /// needed.
        #[arg(long, value_name = "FILE")]
        certificate: Option<PathBuf>,
        /// The highest role of requests with this token: outputs, plan, apply, member or admin [default: no
        /// limit beyond the owner's role].
        #[arg(long, value_name = "ROLE", value_parser = args::role)]
        may: Option<Role>,
    },
    /// List a user's tokens and client certificates. Shows fingerprints, not the tokens themselves.
    List {
        #[command(flatten)]
        owner: Owner,
    },
    /// Revoke a token. Running servers apply it within a minute, and updates begun with it end within five
    /// minutes; those still running are listed.
    Revoke {
        /// The name of the token.
        #[arg(value_parser = args::token_name)]
        name: TokenName,
        #[command(flatten)]
        owner: Owner,
    },
}

#[derive(Debug, clap::Args)]
struct Owner {
    /// The owner of the token.
    #[arg(long, value_name = "NAME", default_value = "admin", value_parser = args::login)]
    user: Login,
}

/// A new token, or a newly registered client certificate.
#[derive(Serialize)]
struct Created {
    name: TokenName,
    user: Login,
    token: Option<String>,
    /// The certificate's fingerprint: the SHA-256 of its DER form, in hex.
    certificate: Option<String>,
}

#[derive(Serialize)]
struct Listed {
    tokens: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    name: TokenName,
    created: Rfc3339,
    expires: Option<Rfc3339>,
    certificate: Option<String>,
    /// The highest role; `None` for no limit beyond the owner's role.
    may: Option<Role>,
}

#[derive(Serialize)]
struct Revoked {
    name: TokenName,
    user: Login,
    running: Vec<Running>,
}

pub(crate) async fn run(token: Token, out: Output) -> anyhow::Result<()> {
    let (_folder, ctx) = data::open_beside(&token.data).await?;
    match token.command {
        Command::Create { name, owner: Owner { user }, expires_in, may, certificate: None } => {
            let token = tokens::create_scoped_token(&ctx, &user, &name, may, expires_in).await?;
            out.answer(&Created { name, user, token: Some(token.clone()), certificate: None }, |_| token)
        }
        Command::Create { name, owner: Owner { user }, expires_in, may, certificate: Some(file) } => {
            let read = certificate::read(&file)?;
            let entry = tokens::create_certificate(&ctx, &user, &name, &read, may, expires_in).await?;
            let expires = shown(entry.token.expires);
            out.answer(&Created { name, user, token: None, certificate: entry.certificate }, |created| {
                format!(
                    "registered the certificate in {2} as {0} of {1}, until {expires}",
                    created.name,
                    created.user,
                    file.display()
                )
            })
        }
        Command::List { owner: Owner { user } } => {
            let tokens = tokens::list_tokens(&ctx, &user).await?;
            let line = |layout::TokenEntry { token, certificate, .. }| Line {
                name: token.name,
                created: Rfc3339(token.created),
                expires: token.expires.map(Rfc3339),
                certificate,
                may: token.may,
            };
            out.answer(&Listed { tokens: tokens.into_iter().map(line).collect() }, |listed| {
                let rows = listed.tokens.iter().map(|token| {
                    let certificate = token.certificate.clone().unwrap_or_default();
                    let (created, expires) = (token.created.to_string(), shown(token.expires.map(|at| at.0)));
                    let may = token.may.map_or_else(|| "as its owner".to_owned(), |may| may.to_string());
                    vec![token.name.to_string(), created, expires, may, certificate]
                });
                table(&["NAME", "CREATED", "EXPIRES", "ROLE", "CERTIFICATE"], rows)
            })
        }
        Command::Revoke { name, owner: Owner { user } } => {
            tokens::revoke_token(&ctx, &user, &name).await?;
            let begun = Begun { login: &user, token: Some(&name), org: None, above: None };
            let running = running::find(&ctx, &begun).await?;
            out.answer(&Revoked { name, user, running }, |revoked| {
                let message = format!(
                    "{} of {} is revoked; running servers apply this within a minute",
                    revoked.name, revoked.user
                );
                running::after(message, &revoked.running)
            })
        }
    }
}

fn shown(expires: Option<Timestamp>) -> String {
    expires.map_or_else(|| "never".to_owned(), |at| Rfc3339(at).to_string())
}
