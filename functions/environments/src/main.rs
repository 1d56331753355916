//! The function that stores and opens environments.

use statewright_lambda::{Error, Function, routes};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    Function::start().await?.with_blobs().with_keys().serve::<routes::Environments>().await
}
