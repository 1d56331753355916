//! The rows of what a stack was: its versions and its previews.

use crate::api::handlers::{history, resources, stacks};
use crate::api::parameters as query;
use crate::api::route::Answered::Json;
use crate::api::shapes::{history_page, of};
use crate::wire::pulumi::{ServiceHistory, ServiceUpdate, StackPreviews, Timeline, UpdateSummary};
use crate::wire::resources::{RestoredStack, VersionDifferences};

rows! {
    Rows

    /// List the history of a stack, newest first
    GET "/api/stacks/{org}/{project}/{stack}/updates" => history::history {
        auth: Token, needs: View, group: Read,
        query: [query::PAGE, query::PAGE_SIZE, query::OUTPUT_TYPE],
        answer: Json(history_page), id: GetStackUpdates,
    }
    /// Get the newest entry of the history
    GET "/api/stacks/{org}/{project}/{stack}/updates/latest" => history::update {
        auth: Token, needs: View, group: Read,
        answer: Json(of::<ServiceUpdate>), id: GetLatestStackUpdate,
    }
    /// List the previews of the newest version
    GET "/api/stacks/{org}/{project}/{stack}/updates/latest/previews" => history::previews {
        auth: Token, needs: View, group: Read,
        query: [query::PAGE, query::PAGE_SIZE, query::OLDEST_FIRST],
        answer: Json(of::<ServiceHistory>), id: GetLatestStackPreviews,
    }
    /// Get the newest version, and the previews before it
    GET "/api/stacks/{org}/{project}/{stack}/updates/latest/timeline" => history::timeline {
        auth: Token, needs: View, group: Read,
        answer: Json(of::<Timeline>), id: GetLatestUpdateTimeline,
    }
    /// Get an entry of the history, or an update or a preview by its ID
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}" => history::update {
        auth: Token, needs: View, group: Read,
        answer: Json(of::<ServiceUpdate>), id: GetStackUpdate,
    }
    /// Get a summary of an entry of the history
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/summary" => history::summary {
        auth: Token, needs: View, group: Read,
        answer: Json(of::<UpdateSummary>), id: GetStackUpdateSummary,
    }
    /// List the previews of a version
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/previews" => history::previews {
        auth: Token, needs: View, group: Read,
        query: [query::PAGE, query::PAGE_SIZE, query::OLDEST_FIRST],
        answer: Json(of::<ServiceHistory>), id: GetStackPreviews,
    }
    /// Get a version, and the previews before it
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/timeline" => history::timeline {
        auth: Token, needs: View, group: Read,
        answer: Json(of::<Timeline>), id: GetUpdateTimeline,
    }
    /// Compare two versions of a stack, without their secrets
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/diff/{other}" => resources::differences {
        auth: Token, needs: View, group: Read,
        answer: Json(of::<VersionDifferences>), id: CompareStackVersions,
    }
    /// Make an old version of a stack the next one
    POST "/api/stacks/{org}/{project}/{stack}/updates/{version}/restore" => stacks::restore {
        auth: Token, needs: Apply, group: Head, audit: "stack.restore",
        answer: Json(of::<RestoredStack>), id: RestoreStackVersion,
    }
    /// List the previews of a stack, by the version that they started from
    GET "/api/stacks/{org}/{project}/{stack}/previews" => history::all_previews {
        auth: Token, needs: View, group: Read,
        query: [query::CONTINUATION, query::PAGE_SIZE],
        answer: Json(of::<StackPreviews>), id: ListStackPreviewRows,
    }
}
