//! Which plugin runs: boots instances for the engine, and serves the Engine service to them.
