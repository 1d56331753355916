//! Faults, deaths, races and models: the use cases in this process, over stores that fail, on clocks and randomness that
//! repeat. The tests carry the numbers of the invariants that they hold (I1 to I5).

#![expect(clippy::unwrap_used, reason = "a test whose ground is missing stops there")]

mod backing_up;
mod copying;
mod deaths;
mod environments;
mod erasing;
mod faults;
mod fleet;
mod model;
mod races;
mod rotation;
mod scene;
mod states;
mod totality;
mod world;
