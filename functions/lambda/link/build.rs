//! Linker options of functions, where a panic aborts: without unwinding tables, and with a fixed address, so
//! that there is no relocation table. Together that is a sixth of a program.

use std::env;
use std::path::Path;

pub(crate) fn main() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lambda/link/function.ld");
    println!("cargo::rerun-if-changed={}", script.display());
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // A build script can recognize the profile `function` only by its optimization for size. It aborts on
    // panic.
    if is("OPT_LEVEL", "z") && is("CARGO_CFG_TARGET_OS", "linux") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
    }
}
