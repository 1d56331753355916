//! Errors about an operator's copy or backup of a store.

/// Why a copy or a backup is refused.
#[derive(Debug, thiserror::Error)]
pub enum MaintenanceError {
    /// A newer program created the backup.
    #[error(
        "the backup has format {found}, and this program knows format {known} only: use the program that made it"
    )]
    BackupFormat {
        /// The format of the backup.
        found: u32,
        /// The newest format that this program knows.
        known: u32,
    },
    /// No server has run on the store.
    #[error("there is nothing to back up, as no server has run on the store yet: start one first")]
    NothingToBackUp,
    /// The destination contains a backup of another store.
    #[error(
        "the destination contains a backup of another store. Nothing was changed. Choose another destination"
    )]
    OtherBackup,
    /// The destination contains something other than such a backup.
    #[error(
        "the destination contains something that is not a backup of this kind. Nothing was changed. Choose a bucket or \
         a folder that contains nothing else"
    )]
    NotABackup,
    /// A copy into the store is not finished.
    #[error(
        "a copy into this store was begun and is not finished: run `statewright copy` again with the same options to go on"
    )]
    CopyUnfinished,
    /// The source changed during every comparison.
    #[error(
        "the source changed during each comparison: stop what uses it, and run the command again to go on with the copy"
    )]
    SourceChanges,
    /// No server has run on the source.
    #[error("there is nothing to copy, as no server has run on the source yet: start one first")]
    NothingToCopy,
    /// This number of updates run on the source.
    #[error(
        "updates run on the source ({0}): let them end (`statewright stack list` shows them), stop the servers of the source, \
         and run the command again"
    )]
    UpdatesRunning(usize),
    /// The target contains an unfinished copy of another store.
    #[error(
        "the target contains an unfinished copy of another store. Nothing was changed. Finish that copy, or choose another \
         target"
    )]
    TargetOfOtherCopy,
    /// The target contains data.
    #[error(
        "the target is not empty. Nothing was changed. Choose a new folder, or a table and a bucket that nothing has used"
    )]
    TargetNotEmpty,
    /// Another copy into the target began while this one ran.
    #[error("another copy into this target was begun, so this one ended: let the other one finish")]
    OtherCopyBegan,
    /// Another process writes to the target.
    #[error(
        "something else changed {partition} {sort} of the target during the copy: stop it, and run the command again"
    )]
    TargetChanged {
        /// The partition key of the changed item.
        partition: String,
        /// The sort key of the changed item.
        sort: String,
    },
}
