//! The shapes that clients send and read, exactly as each client writes them.

pub mod pulumi;
