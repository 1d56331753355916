//! The suites that every adapter of a port passes.
