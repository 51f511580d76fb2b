//! The configuration of a stack.

/// One value of a stack's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// The package it concerns.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its text; anything but a string is JSON.
    pub value: String,
    /// Whether it is secret.
    pub secret: bool,
}
