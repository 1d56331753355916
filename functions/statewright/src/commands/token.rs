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
    /// Make a token. It is printed this once; only its hash is kept. Or make a client certificate known, which stands for a token
    /// where `tofu` and `terraform` ask for states.
    Create {
        /// What the token is called, in the history for example.
        #[arg(value_parser = args::token_name)]
        name: TokenName,
        #[command(flatten)]
        owner: Owner,
        /// When it ends: so long from now, such as 12h or 90d [default: never, or with its certificate].
        #[arg(long, value_name = "DURATION", value_parser = args::duration)]
        expires_in: Option<Duration>,
        /// A PEM file with the client's certificate, whoever issued it. No text is made then, and the private key is not asked for.
        #[arg(long, value_name = "FILE")]
        certificate: Option<PathBuf>,
        /// The most that whoever shows it may do, of outputs, plan, apply, member and admin, as the roles of members
        /// [default: whatever its owner may].
        #[arg(long, value_name = "ROLE", value_parser = args::role)]
        may: Option<Role>,
    },
    /// List a user's tokens, without the tokens themselves, and client certificates with their fingerprints.
    List {
        #[command(flatten)]
        owner: Owner,
    },
    /// End a token. Running servers forget it within a minute, and an update that was begun with it ends within five; those that
    /// still run are listed.
    Revoke {
        /// What the token is called.
        #[arg(value_parser = args::token_name)]
        name: TokenName,
        #[command(flatten)]
        owner: Owner,
    },
}

#[derive(Debug, clap::Args)]
struct Owner {
    /// Its owner.
    #[arg(long, value_name = "NAME", default_value = "admin", value_parser = args::login)]
    user: Login,
}

/// A token that was made, or a client certificate that is known now.
#[derive(Serialize)]
struct Created {
    name: TokenName,
    user: Login,
    token: Option<String>,
    /// The certificate's fingerprint: the SHA-256 of it as DER, in hex.
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
    /// The most that it may do; `None` for whatever its owner may.
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
                    "{} of {} is the certificate in {}, until {expires}",
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
                    let may =
                        token.may.map_or_else(|| "what its owner may".to_owned(), |may| may.to_string());
                    vec![token.name.to_string(), created, expires, may, certificate]
                });
                table(&["NAME", "CREATED", "EXPIRES", "MAY", "CERTIFICATE"], rows)
            })
        }
        Command::Revoke { name, owner: Owner { user } } => {
            tokens::revoke_token(&ctx, &user, &name).await?;
            let begun = Begun { login: &user, token: Some(&name), org: None, above: None };
            let running = running::find(&ctx, &begun).await?;
            out.answer(&Revoked { name, user, running }, |revoked| {
                let said = format!(
                    "{} of {} is revoked; a running server forgets it within a minute",
                    revoked.name, revoked.user
                );
                running::after(said, &revoked.running)
            })
        }
    }
}

/// An end for people.
fn shown(expires: Option<Timestamp>) -> String {
    expires.map_or_else(|| "never".to_owned(), |at| Rfc3339(at).to_string())
}
