//! Statewright as one binary: `serve` mounts every group of routes on the embedded store, the operator's commands work on
//! the same data beside it, and its users' commands ask a server.

mod args;
mod audit;
mod certificate;
mod client;
mod commands;
mod data;
mod given;
mod hcl;
mod managed;
mod output;
#[cfg(test)]
mod pages;
mod recorded;
mod serve;

use std::num::NonZero;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::available_parallelism;

use clap::CommandFactory as _;
use clap::error::ErrorKind;
use statewright_shared::api::audit::AuditLog as _;
use tokio::runtime::Builder;

use crate::args::Misused;
use crate::audit::AuditFile;
use crate::commands::{Args, EndsWith};
use crate::output::Output;

/// Gives back what a peak took, also when nothing is asked any more: the system's own allocator keeps what was freed for the thread
/// that had it.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A commit holds its thread for as long as the disk syncs, so there is another that can go on. More than there are cores
/// only wake each other up.
const THREADS_MIN: usize = 2;

/// 0: done. 1: refused, or failed. 2: asked for in a way that cannot be meant, as the parser has it too.
fn main() -> ExitCode {
    let args = match commands::arguments() {
        Ok(args) => args,
        Err(usage) => return misused(&usage),
    };
    let out = Output::new(args.json);
    let cores = available_parallelism().map_or(1, NonZero::get);
    let runtime = Builder::new_multi_thread().worker_threads(cores.max(THREADS_MIN)).enable_all().build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(run(args, out)),
        Err(error) => Err(anyhow::Error::new(error).context("this process may not start threads")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(Misused(why)) = error.downcast_ref() {
                return misused(&Args::command().error(ErrorKind::ArgumentConflict, why));
            }
            if let Some(EndsWith(code)) = error.downcast_ref() {
                return ExitCode::from(*code);
            }
            out.complain(&error, commands::next_step(&error).as_deref());
            ExitCode::FAILURE
        }
    }
}

/// Says what is wrong with a command line, which may hold what others wrote; or what was asked for: help, or the version.
fn misused(usage: &clap::Error) -> ExitCode {
    if usage.use_stderr() {
        Output::new(false).note(usage.render().to_string().trim_end());
    } else {
        // There is nowhere left to say that stdout is gone.
        let _ = usage.print();
    }
    ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2))
}

/// Does what was asked, and keeps a record of it where one is wanted. A server keeps those of its requests, its users' commands
/// among them.
async fn run(args: Args, out: Output) -> anyhow::Result<()> {
    let audit = args.audit_log.as_deref().map(AuditFile::open).transpose()?.map(Arc::new);
    let is_an_act = args.command.is_the_operators();
    let result = commands::run(args.command, audit.clone(), out).await;
    if let Some(audit) = audit.filter(|_| is_an_act) {
        audit.keep(&audit::of_command(std::env::args().skip(1), &result));
    }
    result
}
