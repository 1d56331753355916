//! The function that ends what nobody ends, and removes what is due, on a schedule.

use statewright_lambda::{Error, Function};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    Function::start().await?.with_blobs().publishes().sweep().await
}
