//! The handlers, a file for each resource. Each reads in order: who may call, what the request contains, one
//! call of a service, the answer.

pub(super) mod checkpoints;
pub(super) mod dependencies;
pub(super) mod empty;
pub(super) mod environments;
pub(super) mod events;
pub(super) mod health;
pub(super) mod history;
pub(super) mod home;
pub(super) mod openapi;
pub(super) mod secrets;
pub(super) mod service;
pub(super) mod stacks;
pub(super) mod states;
pub(super) mod tfstate;
pub(super) mod updates;
pub(super) mod user;
