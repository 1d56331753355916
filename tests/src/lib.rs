//! Shared machinery of the tests.
