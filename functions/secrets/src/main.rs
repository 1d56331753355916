//! The function that encrypts and decrypts secrets.

use statewright_lambda::{Error, Function, routes};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    Function::start().await?.with_keys().serve::<routes::Secrets>().await
}
