//! Linker options of this program.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // Identical functions are merged, which saves a megabyte. Only LLD can do this, and only on this target
    // is it the toolchain's linker.
    if is("PROFILE", "release")
        && is("TARGET", "x86_64-unknown-linux-gnu")
        && env::var_os("RUSTC_LINKER").is_none()
    {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
