//! Configuration values of a stack.

/// Configuration value of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// Namespace of the key: a package or a project.
    pub namespace: String,
    /// Name of the key.
    pub name: String,
    /// Text of the value. Values other than strings are JSON.
    pub value: String,
    /// True if the value is secret.
    pub secret: bool,
}
