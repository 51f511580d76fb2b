//! Generated code of the package `simplecontainer.plugin.v1`: the optional service of a plugin for `sc`, as defined in
//! `proto/simplecontainer`. `Debug` of messages with credentials shows names only.

use std::fmt;

pub use generated::*;

mod generated {
    #![allow(missing_docs, unreachable_pub, rust_2018_idioms, clippy::all, reason = "generated")]
    tonic::include_proto!("simplecontainer.plugin.v1");
}

impl fmt::Debug for InitializeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InitializeRequest")
            .field("config_file", &self.config_file)
            .field("secrets", &self.secrets.keys())
            .field("auth", &self.auth)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AuthConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthConfig").field("type", &self.r#type).finish_non_exhaustive()
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.secret { "[secret]" } else { &self.value };
        f.debug_struct("Variable").field("name", &self.name).field("value", &value).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_of_credentials_shows_names_only() {
        let request = InitializeRequest {
            config_file: None,
            secrets: [("token".to_owned(), "s3cr3t".to_owned())].into(),
            auth: [("aws".to_owned(), AuthConfig { r#type: "aws-token".to_owned(), config: None })].into(),
            plugin_config: None,
        };
        assert_eq!(
            format!("{request:?}"),
            r#"InitializeRequest { config_file: None, secrets: ["token"], auth: {"aws": AuthConfig { type: "aws-token", .. }}, .. }"#
        );
        let variable = Variable { name: "PGPASSWORD".to_owned(), value: "s3cr3t".to_owned(), secret: true };
        assert_eq!(format!("{variable:?}"), r#"Variable { name: "PGPASSWORD", value: "[secret]", .. }"#);
    }
}
