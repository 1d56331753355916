//! The handlers, a file for each resource. Each reads in order: who may call, what the request contains, one
//! call of a service, the answer.

pub(super) mod audit;
pub(super) mod authorize;
pub(super) mod checkpoints;
pub(super) mod cli_login;
pub(super) mod dependencies;
pub(super) mod empty;
pub(super) mod environments;
pub(super) mod events;
pub(super) mod grants;
pub(super) mod health;
pub(super) mod history;
pub(super) mod home;
pub(super) mod map;
pub(super) mod members;
pub(super) mod oidc;
pub(super) mod openapi;
pub(super) mod resources;
pub(super) mod roles;
pub(super) mod secrets;
pub(super) mod server;
pub(super) mod service;
pub(super) mod sessions;
pub(super) mod settings;
pub(super) mod sign_in;
pub(super) mod stacks;
pub(super) mod state_resources;
pub(super) mod states;
pub(super) mod teams;
pub(super) mod tfstate;
pub(super) mod tokens;
pub(super) mod updates;
pub(super) mod user;
