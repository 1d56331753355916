//! The function for users, organizations and tokens.

use statewright_lambda::{Error, Function, routes};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    Function::start().await?.with_keys().asks_issuers().serve::<routes::Account>().await
}
