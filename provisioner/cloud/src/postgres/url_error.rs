//! Errors of URLs.

/// Reason why a text is not the URL of a store in a database. Contains neither the user nor the password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostgresUrlError {
    /// The text is not a URL of the form `postgres://user:password@host:port/database?parameters`.
    #[error(
        "the postgres:// URL has an invalid {0}: expected postgres://user:password@host:port/database?table=name, with \
         special characters of the user and the password as %XX"
    )]
    Malformed(&'static str),
    /// Parameter or environment variable with an invalid value.
    #[error("{setting} cannot be {value:?} for a postgres:// URL: expected {expected}")]
    Value {
        /// Name of the parameter or of the variable.
        setting: &'static str,
        /// Value, never a password.
        value: String,
        /// Description of valid values.
        expected: String,
    },
    /// Parameter or environment variable that this client does not support.
    #[error("{setting} is not supported for a postgres:// URL; {hint}")]
    Unsupported {
        /// Name of the parameter or of the variable.
        setting: String,
        /// Action that avoids it.
        hint: &'static str,
    },
    /// Lists of hosts, addresses and ports of different lengths.
    #[error(
        "host, hostaddr and port of the postgres:// URL are lists of different lengths: write a port for each host, or \
             one port"
    )]
    Hosts,
    /// Parameter that occurs twice: in the query, or in the query and in the rest of the URL.
    #[error("the postgres:// URL has {0} twice: keep one of them")]
    Twice(String),
}
