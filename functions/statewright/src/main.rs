//! Statewright as one binary: `serve` runs every route on the embedded store or on AWS, the operator's
//! commands work on the same store, and users' commands call a server.

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

use std::ffi::OsString;
use std::num::NonZero;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::available_parallelism;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap::error::ErrorKind;
use statewright_shared::adapters::SystemIds;
use statewright_shared::api::audit::{AuditLog as _, Result as Outcome};
use statewright_shared::layout::AuditResult;
use statewright_shared::ports::Ids as _;
use statewright_shared::services::audit::{self as trail, About, Act};
use tokio::runtime::Builder;

use crate::args::Misused;
use crate::audit::AuditFile;
use crate::commands::{Args, EndsWith, credential_helper};
use crate::output::Output;

/// Returns memory to the system after a peak, even when the process is idle. The system's allocator keeps
/// freed memory for the thread that allocated it.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A commit blocks its thread while the disk syncs, so a second thread must be able to continue. More threads
/// than cores only wake each other up.
const THREADS_MIN: usize = 2;

/// Exit codes: 0 for success, 1 for a refusal or failure, 2 for a usage error, as from the argument parser.
fn main() -> ExitCode {
    let args = match commands::arguments(words()) {
        Ok(args) => args,
        Err(usage) => return misused(&usage),
    };
    let out = Output::new(args.json);
    let cores = available_parallelism().map_or(1, NonZero::get);
    let runtime = Builder::new_multi_thread().worker_threads(cores.max(THREADS_MIN)).enable_all().build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(run(args, out)),
        Err(error) => Err(anyhow::Error::new(error).context("cannot start threads")),
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

/// The words of the command line. `pulumi` runs this program under the name of a credential helper, without
/// any.
fn words() -> Vec<OsString> {
    let words: Vec<_> = std::env::args_os().collect();
    if words.first().is_some_and(|name| credential_helper::is_called(name)) {
        return ["statewright", "credential-helper", "get"].map(OsString::from).into();
    }
    words
}

/// Prints a usage error, which may quote untrusted text, or the requested help or version.
fn misused(usage: &clap::Error) -> ExitCode {
    if usage.use_stderr() {
        Output::new(false).note(usage.render().to_string().trim_end());
    } else {
        // stdout is closed, so the error cannot be reported.
        let _ = usage.print();
    }
    ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2))
}

/// Stores a record of a command that changed the store.
async fn record(result: anyhow::Result<()>) -> anyhow::Result<()> {
    let Some(ctx) = data::changed() else { return result };
    let record = audit::of_command(std::env::args().skip(1), &result);
    let mut entry =
        trail::entry(&ctx, record.action, &About::Server).saying(record.detail.unwrap_or_default());
    entry.record.result = match record.result {
        Outcome::Done => AuditResult::Done,
        Outcome::Refused => AuditResult::Refused,
        Outcome::Unknown => AuditResult::Unknown,
    };
    let stored = trail::keep(&ctx, entry).await.context("the command has no record in the audit trail");
    result.and(stored)
}

/// Runs a command and audits it if that is enabled. A server audits its own requests, including those of
/// users' commands.
async fn run(args: Args, out: Output) -> anyhow::Result<()> {
    let audit = args.audit_log.as_deref().map(AuditFile::open).transpose()?.map(Arc::new);
    let is_an_act = args.command.is_the_operators();
    // The records of what the command does have its ID, and no user.
    let act = Arc::new(Act::new(Some(SystemIds.uuid().simple().to_string()), None));
    let result = Box::pin(act.during(commands::run(args.command, audit.clone(), out))).await;
    let result = act.during(record(result)).await;
    if let Some(audit) = audit.filter(|_| is_an_act) {
        audit.keep(&audit::of_command(std::env::args().skip(1), &result));
    }
    result
}
