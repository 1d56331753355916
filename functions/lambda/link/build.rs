//! How functions are linked, where a panic ends them: without how to unwind, and for one fixed address, so that there is no
//! table of what to relocate. Together that is a sixth of a program.

use std::env;
use std::path::Path;

fn main() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lambda/link/function.ld");
    println!("cargo::rerun-if-changed={}", script.display());
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // Of a profile a build script learns this much: only in `function` are they built for size, and a panic ends them there.
    if is("OPT_LEVEL", "z") && is("CARGO_CFG_TARGET_OS", "linux") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
    }
}
