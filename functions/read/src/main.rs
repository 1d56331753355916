//! The function for requests that only read.

use statewright_lambda::{Error, Function, routes};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    Function::start().await?.with_blobs().serve::<routes::Read>().await
}
