//! The function for administrative requests.

use statewright_lambda::{Error, Function, routes};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    Function::start().await?.serve::<routes::Admin>().await
}
