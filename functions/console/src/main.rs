//! The function for the console, and for paths that no route has.

use statewright_lambda::{Error, has_path_like, routes, serve_without_store};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    serve_without_store::<routes::Console>(|router| statewright_console::around(router, has_path_like)).await
}
