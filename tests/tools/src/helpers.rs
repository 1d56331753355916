//! Helpers written in Go: programs around Pulumi's own code, and a proxy that counts and records.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::go::{GoTool, build};
use crate::or_panic;

pub(crate) const BENCH_TOOLS: GoTool =
    GoTool { name: "bench-tools", folder: "bench-tools", package: ".", link: "" };

pub(crate) const REPLAY_ORACLE: GoTool =
    GoTool { name: "replay-oracle", folder: "replay-oracle", package: ".", link: "" };

pub(crate) const CLOUD_SHAPES: GoTool =
    GoTool { name: "cloud-shapes", folder: "cloud-shapes", package: ".", link: "" };

/// The program that runs Pulumi's own journal replayer; see its README for its protocol.
///
/// # Panics
/// If it cannot be built; the message says what is missing.
pub fn replay_oracle() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| or_panic(build(&REPLAY_ORACLE)).path)
}

/// The program that reports what the official client package of Pulumi Cloud sends and accepts, as JSON; see
/// its source.
///
/// # Panics
/// If it cannot be built; the message says what is missing.
pub fn cloud_shapes() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| or_panic(build(&CLOUD_SHAPES)).path)
}

/// The counting and recording proxy, and the replayer of its recordings; see its README.
///
/// # Panics
/// If it cannot be built; the message says what is missing.
pub fn bench_tools() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| or_panic(build(&BENCH_TOOLS)).path)
}
