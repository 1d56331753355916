//! The function that encrypts and decrypts secrets, and opens those of resources.

use statewright_lambda::{Error, Function, routes};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    Function::start().await?.with_blobs().with_keys().serve::<routes::Secrets>().await
}
