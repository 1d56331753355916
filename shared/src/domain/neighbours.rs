//! The bounds of what is shown around one resource, of a stack or of a state.

/// Resources around one, at most, with itself.
pub const NODES_MAX: usize = 300;

/// References between them, at most.
pub const EDGES_MAX: usize = 5_000;

/// Steps from the resource in the middle, at most.
pub const HOPS_MAX: u64 = 3;
