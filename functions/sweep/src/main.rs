//! The scheduled function that ends expired updates and deletes what is due.

use statewright_lambda::{Error, Function};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    Function::start().await?.with_blobs().with_keys().publishes().sweep().await
}
