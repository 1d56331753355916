//! How functions are linked, where a panic ends them: without how to unwind, and for one fixed address, so that there is no
//! table of what to relocate. Together that is a sixth of a program.

use std::env;
use std::path::Path;

fn main() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lambda/link/function.ld");
    println!("cargo::rerun-if-changed={}", script.display());
    if env::var("CARGO_CFG_PANIC").is_ok_and(|panic| panic == "abort")
        && env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux")
    {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
    }
}
