//! What the linker is told of this program.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // Functions that came out the same are kept once, a megabyte in all. Only LLD can do that, and on this target alone it is the
    // toolchain's linker.
    if is("PROFILE", "release")
        && is("TARGET", "x86_64-unknown-linux-gnu")
        && env::var_os("RUSTC_LINKER").is_none()
    {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
