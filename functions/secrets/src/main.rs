//! The function that seals and opens secrets.

use statewright_lambda::{Error, Function, Group};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    Function::start().await?.with_keys().serve(Group::Secrets).await
}
