//! The content of Initialize (`simplecontainer.plugin.v1`). Holds credentials; shows names only.

use std::collections::BTreeMap;
use std::fmt;

use pulumi_proto::property::PropertyMap;

/// What a plugin is told once, right after Configure (Simple Container, section 10.2). Holds credentials.
#[derive(Clone, Default)]
pub struct PluginInit {
    /// Name of the project.
    pub project: String,
    /// Name of the stack.
    pub stack: String,
    /// Secrets by name, plain.
    pub secrets: BTreeMap<String, String>,
    /// Entries of `auth` by name.
    pub auth: BTreeMap<String, AuthEntry>,
    /// The plugin's `config`.
    pub config: PropertyMap,
}

/// One entry of `auth`. Holds credentials.
#[derive(Clone, Default)]
pub struct AuthEntry {
    /// Its type, such as `aws-token`.
    pub kind: String,
    /// Its configuration, placeholders resolved.
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
    fn what_holds_credentials_shows_names_only() {
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
