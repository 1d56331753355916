//! Faults, deaths, races and models: the use cases in this process, on failing stores, with reproducible clocks
//! and randomness. The tests carry the numbers of the invariants that they check (I1 to I5).

#![expect(clippy::unwrap_used, reason = "a test without its preconditions stops there")]

mod backing_up;
mod copying;
mod deaths;
mod environments;
mod erasing;
mod faults;
mod fleet;
mod model;
mod races;
mod repeats;
mod rotation;
mod scene;
mod states;
mod totality;
mod world;
