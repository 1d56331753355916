//! The function that answers what only reads.

use statewright_lambda::{Error, Function, Group};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    Function::start().await?.with_blobs().serve(Group::Read).await
}
