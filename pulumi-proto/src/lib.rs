//! The vocabulary of the wire: generated client and server code of `pulumirpc`, and the values that travel over it.
//!
//! Never here: I/O, clocks, randomness, tasks.

pub mod property;
pub mod urn;
