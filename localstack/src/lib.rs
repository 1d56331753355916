//! The functions on one machine. A gateway makes events of requests, by the route table; and each function's processes ask a
//! local runtime for them, as they ask Lambda's.
//!
//! It stands in for API Gateway, function URLs, load balancers and Lambda where those matter to a function: one event at a
//! time for each process, as many processes as events at once, limits on the size of events and answers, a process that
//! is frozen between events, killed, or always cold. It checks no rights, and knows no other service.

mod events;
mod gateway;
mod runtime;

use std::path::PathBuf;
use std::sync::Arc;

pub use events::GatewayKind;
pub use gateway::Gateway;
pub use runtime::InvokeError;

/// A function: its program, and what its environment says.
#[derive(Debug, Clone)]
pub struct Function {
    /// Its name: of a group of the route table, or any other for one that no route leads to.
    pub name: String,
    /// The program, as it would be called `bootstrap`.
    pub program: PathBuf,
    /// All of its environment but what the runtime itself says.
    pub environment: Vec<(String, String)>,
}

/// What becomes of a process between two events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// It waits for the next one.
    Waits,
    /// It is stopped, and goes on when there is one.
    Frozen,
    /// It is killed: each event meets a cold function.
    Killed,
}

/// Takes the lines that functions write, with the name of the function.
pub type LogLines = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// How functions are run.
#[derive(Clone)]
pub struct Options {
    /// The functions.
    pub functions: Vec<Function>,
    /// The kind of gateway.
    pub kind: GatewayKind,
    /// The first part of every path, where the gateway's stage has a name.
    pub stage: Option<String>,
    /// What becomes of a process between two events.
    pub between: Between,
    /// Events of one function at once; others wait.
    pub processes_max: usize,
    /// Where lines go.
    pub log: LogLines,
}
