//! Input of Initialize (`simplecontainer.plugin.v1`). Holds credentials; `Debug` prints names only.

use std::collections::BTreeMap;
use std::fmt;

use pulumi_proto::property::PropertyMap;

/// Input of Initialize, which is called once, directly after Configure (docs/spec/simple-container.md#10.2). Holds
/// credentials.
#[derive(Clone, Default, PartialEq)]
pub struct PluginInit {
    /// Name of the project.
    pub project: String,
    /// Name of the stack.
    pub stack: String,
    /// Secrets by name, in plain text.
    pub secrets: BTreeMap<String, String>,
    /// Entries of `auth` by name.
    pub auth: BTreeMap<String, AuthEntry>,
    /// Entry `config` of the plugin in server.yaml.
    pub config: PropertyMap,
}

/// Entry of `auth`. Holds credentials.
#[derive(Clone, Default, PartialEq)]
pub struct AuthEntry {
    /// Type of the entry, such as `aws-token`.
    pub kind: String,
    /// Configuration of the entry, with placeholders resolved.
    pub config: PropertyMap,
}

impl fmt::Debug for PluginInit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginInit")
            .field("project", &self.project)
            .field("stack", &self.stack)
            .field("secrets", &self.secrets.keys())
            .field("auth", &self.auth)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AuthEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthEntry").field("kind", &self.kind).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_credentials() {
        let auth = AuthEntry { kind: "aws-token".into(), config: [("key".into(), "s3cr3t".into())].into() };
        let init = PluginInit {
            project: "p".into(),
            stack: "s".into(),
            secrets: [("token".into(), "s3cr3t".into())].into(),
            auth: [("main".into(), auth)].into(),
            config: [("password".into(), "s3cr3t".into())].into(),
        };
        let shown = format!("{init:?}");
        assert!(!shown.contains("s3cr3t") && shown.contains("token") && shown.contains("aws-token"), "{shown}");
    }
}
