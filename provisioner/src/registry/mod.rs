//! The static map of core types.
