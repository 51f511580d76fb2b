//! Tools of tests of recipes.

pub(in crate::registry) mod checker;
