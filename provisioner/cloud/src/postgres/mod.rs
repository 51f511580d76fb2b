//! Stores in a table of a PostgreSQL database, the one that Pulumi uses (docs/spec/state-and-secrets.md#1).
//!
//! Input: a `postgres://` URL, the environment of the program. Output: [`PostgresObjects`]. Excluded: the layout of a
//! store.

mod connection;
mod failure;
mod objects;
mod parameters;
mod password;
mod received;
mod requests;
mod schema;
mod tls;
mod url;
mod url_error;

pub use objects::PostgresObjects;
pub use requests::TimeLimits;
pub use url::PostgresUrl;
pub use url_error::PostgresUrlError;
