//! The environment of a plugin: built from nothing (provider protocol, section 1.4; plugin-hosts, section E).

use std::ffi::OsString;

use crate::plugin::PluginConfig;
use crate::process::HostEnvironment;

/// What every plugin gets of our own environment.
const ALWAYS: [&str; 4] = ["PATH", "HOME", "TMPDIR", "LANG"];

/// The environment of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginEnvironment {
    /// All its variables.
    pub variables: Vec<(OsString, OsString)>,
    /// Declared in `passEnv`, but not set here.
    pub missing: Vec<String>,
}

/// Builds the environment of a plugin: the few variables that programs need, those that it declares, and what Pulumi's
/// engine sets.
pub fn plugin_environment(plugin: &PluginConfig, project: &str, host: &HostEnvironment) -> PluginEnvironment {
    let pulumi = [
        ("PULUMI_PROJECT", project),
        // The configuration goes by way of Configure, and nowhere else.
        ("PULUMI_CONFIG", "{}"),
        // Python would keep the port line to itself until its buffer is full.
        ("PYTHONUNBUFFERED", "1"),
    ];
    let declared = plugin.pass_env.iter().map(String::as_str);
    let variables = host
        .select(ALWAYS)
        .chain(host.select(declared))
        .chain(pulumi.map(|(name, value)| (OsString::from(name), OsString::from(value))))
        .collect();
    let missing = plugin.pass_env.iter().filter(|name| host.get(name).is_none()).cloned().collect();
    PluginEnvironment { variables, missing }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::{LocalSource, PluginSource};

    #[test]
    fn a_plugin_gets_what_it_needs_and_what_it_declares_and_nothing_else() {
        let source = PluginSource::Local(LocalSource { path: "x".into(), checksum: None });
        let mut plugin = PluginConfig::new("files".parse().unwrap(), source);
        plugin.pass_env = vec!["HTTPS_PROXY".into(), "NOT_SET".into()];
        let host = [("PATH", "/bin"), ("HTTPS_PROXY", "p"), ("AWS_SECRET_ACCESS_KEY", "s3cr3t"), ("HOME", "/h")];
        let host = HostEnvironment::new(host.map(|(name, value)| (name.into(), value.into())));
        let environment = plugin_environment(&plugin, "t", &host);
        let variables: Vec<_> =
            environment.variables.iter().map(|(name, value)| format!("{name:?}={value:?}")).collect();
        assert_eq!(
            variables,
            [
                r#""PATH"="/bin""#,
                r#""HOME"="/h""#,
                r#""HTTPS_PROXY"="p""#,
                r#""PULUMI_PROJECT"="t""#,
                r#""PULUMI_CONFIG"="{}""#,
                r#""PYTHONUNBUFFERED"="1""#,
            ]
        );
        assert_eq!(environment.missing, ["NOT_SET"]);
        assert!(!format!("{host:?}").contains("s3cr3t"));
    }
}
