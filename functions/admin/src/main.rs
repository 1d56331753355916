//! The function for probes, and for admins of the server.

use statewright_lambda::{Error, Function, routes};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    Function::start().await?.serve::<routes::Admin>().await
}
