//! The function that manages stacks and begins and ends updates.

use statewright_lambda::{Error, Function, routes};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    Function::start().await?.with_blobs().with_keys().publishes().serve::<routes::Head>().await
}
