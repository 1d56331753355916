//! `statewright token`.

use statewright_shared::ports::Timestamp;
use statewright_shared::services::accounts;

use crate::args::Token;
use crate::data;

#[expect(clippy::print_stdout, reason = "a command's answer belongs on stdout")]
pub(crate) async fn run(command: Token) -> anyhow::Result<()> {
    match command {
        Token::Create { data, name, user, expires_in } => {
            let (_folder, ctx) = data::open_beside(&data).await?;
            println!("{}", accounts::create_token(&ctx, &user, &name, expires_in).await?);
        }
        Token::List { data, user } => {
            let (_folder, ctx) = data::open_beside(&data).await?;
            let tokens = accounts::list_tokens(&ctx, &user).await?;
            println!("{:<30}  {:<30}  EXPIRES", "NAME", "CREATED");
            for token in tokens {
                let expires = token.expires.map_or_else(|| "never".to_owned(), Timestamp::to_rfc3339);
                println!("{:<30}  {:<30}  {expires}", token.name.as_str(), token.created.to_rfc3339());
            }
        }
        Token::Revoke { data, name, user } => {
            let (_folder, ctx) = data::open_beside(&data).await?;
            accounts::revoke_token(&ctx, &user, &name).await?;
        }
    }
    Ok(())
}
