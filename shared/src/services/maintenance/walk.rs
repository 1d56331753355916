//! Reads all items whose partition has a prefix.

use crate::context::Context;
use crate::ports::{Inventory, Item};
use crate::services::{Error, store};

/// Calls `ask` for each item whose partition has the prefix, and collects the answers.
pub(super) async fn walk<T>(
    ctx: &Context,
    inventory: &dyn Inventory,
    prefix: &str,
    ask: impl AsyncFn(&Item) -> Result<Option<T>, Error>,
) -> Result<Vec<T>, Error> {
    let (mut answers, mut from) = (Vec::new(), None);
    loop {
        let part = store::inventory_items(ctx, inventory, prefix, from.as_ref()).await?;
        for item in &part.found {
            answers.extend(ask(item).await?);
        }
        from = part.next;
        if from.is_none() {
            return Ok(answers);
        }
    }
}
