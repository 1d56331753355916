//! What requests take in memory, as a multiple of the text that was sent.

use super::routes::Route;

/// How many times the bytes of its text a request of this route holds at most: the text, what is parsed of it, what is stored, and
/// the answer. `tests/memory` measures them.
pub(super) fn of_body(route: &Route) -> usize {
    match route.path.rsplit('/').next().unwrap_or_default() {
        // The deployment is taken out of it, judged, and compressed.
        "checkpoint" | "checkpointverbatim" | "checkpointdelta" => 4,
        // A state is read, hashed and compressed where it is.
        _ if route.path.starts_with("/tfstate/") => 2,
        _ => 3,
    }
}
