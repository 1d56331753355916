//! The replayer.
