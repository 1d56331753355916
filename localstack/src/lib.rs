//! Runs the functions on one machine. A gateway makes events of requests, by the route table, and each
//! function's processes get them from a local runtime, as they do from Lambda's.
//!
//! It replaces API Gateway, function URLs, load balancers and Lambda where those matter to a function: one
//! event at a time for each process, as many processes as concurrent events, limits on the size of events and
//! answers, a process that is frozen between events, killed, or always cold. It checks no permissions, and
//! knows no other service.

mod events;
mod gateway;
mod runtime;

use std::path::PathBuf;
use std::sync::Arc;

pub use events::GatewayKind;
pub use gateway::Gateway;
pub use runtime::InvokeError;

/// A function: its program and its environment.
#[derive(Debug, Clone)]
pub struct Function {
    /// Its name: that of a group of the route table, or any other name if no route leads to it.
    pub name: String,
    /// The program, which is called `bootstrap` on Lambda.
    pub program: PathBuf,
    /// Its environment, except the variables of the runtime itself.
    pub environment: Vec<(String, String)>,
}

/// What happens to a process between two events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// It waits for the next one.
    Waits,
    /// It is stopped, and continued for the next one.
    Frozen,
    /// It is killed: each event meets a cold function.
    Killed,
}

/// Receives the lines that functions write, with the name of the function.
pub type LogLines = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// How functions are run.
#[derive(Clone)]
pub struct Options {
    /// The functions to run, one for each group of the route table.
    pub functions: Vec<Function>,
    /// The service that the gateway stands for; it decides the shape of events.
    pub kind: GatewayKind,
    /// The first part of every path, if the gateway's stage has a name.
    pub stage: Option<String>,
    /// What happens to a process between two events.
    pub between: Between,
    /// Concurrent events of one function; others wait.
    pub processes_max: usize,
    /// The receiver of log lines.
    pub log: LogLines,
}
