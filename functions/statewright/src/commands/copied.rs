//! What a copy, a backup and a restore show: their progress, and what they lack.

use indicatif::ProgressBar;
use statewright_shared::domain::plural::count;
use statewright_shared::services::maintenance::copy::Progress;

/// Shows the progress of a copy.
pub(super) fn shown(bar: &ProgressBar) -> impl Fn(Progress) + Sync + use<> {
    let bar = bar.clone();
    move |progress| match progress {
        Progress::Items(done) => {
            bar.set_message("items");
            bar.set_length(done);
            bar.set_position(done);
        }
        Progress::Blobs(done, total) => {
            bar.set_message("blobs");
            bar.set_length(total);
            bar.set_position(done);
        }
    }
}

/// Describes the data that a backup or a copy lacks; `None` if it is complete.
pub(super) fn lacking(missing: &[String], damaged: &[String], unreadable: &[String]) -> Option<String> {
    let words: Vec<String> =
        [("missing blob", missing), ("damaged blob", damaged), ("unreadable item", unreadable)]
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(noun, names)| format!("{}: {}", count(names.len(), noun), names.join(", ")))
            .collect();
    (!words.is_empty()).then(|| words.join("; "))
}
