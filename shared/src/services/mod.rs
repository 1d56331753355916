//! Use cases: one function each, one file per noun. A service loads, decides with a pure function, writes under a
//! condition and answers. Services know the ports and the layout; they know no adapter and no HTTP.

pub mod accounts;
pub mod at_once;
pub mod caller;
pub mod check;
mod check_edges;
mod check_environments;
pub mod check_states;
pub mod copy;
pub mod directory;
mod due;
pub mod edges;
pub mod environment_lookup;
pub mod environment_opening;
mod environment_retention;
pub mod environment_revisions;
pub mod environment_tags;
pub mod environments;
pub mod error;
pub mod events;
mod fold;
pub mod health;
pub mod history;
pub mod label_compliance;
pub mod label_policy;
pub mod log;
pub mod lookup;
pub mod masters;
mod membership;
mod next_version;
pub mod orgs;
pub mod outputs;
pub mod passwords;
pub mod previews;
pub mod publish;
pub mod rehome;
pub mod removed;
pub mod rename;
pub mod rescue;
mod retention;
pub mod saves;
pub mod secrets;
pub mod stack_config;
pub mod stacks;
pub mod staleness;
pub mod state_locks;
mod state_retention;
pub mod state_schemas;
mod state_texts;
pub mod state_versions;
pub mod state_writes;
pub mod states;
mod store;
pub mod sweep;
pub mod takeover;
pub mod texts;
pub mod tokens;
mod update_record;
pub mod update_tokens;
pub mod updates;
pub mod users;
pub mod versions;

pub use error::{Error, Holder};

/// So often a use case reads again and decides anew after losing a race, before it gives up with a conflict.
pub(crate) const RACES_MAX: usize = 16;
