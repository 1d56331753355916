//! The function that appends to the logs of updates.

use statewright_lambda::{Error, Function, Group};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    Function::start().await?.with_blobs().serve(Group::Log).await
}
