//! The environment variables of a plugin process (docs/spec/provider-protocol.md#1.4; docs/spec/plugin-hosts.md#E).

use std::ffi::OsString;
use std::path::PathBuf;

use crate::plugin::PluginConfig;
use crate::process::HostEnvironment;

/// Variables of our own environment that every plugin receives.
const PASSED_TO_ALL: [&str; 4] = ["PATH", "HOME", "TMPDIR", "LANG"];

/// Environment of a plugin process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginEnvironment {
    /// All variables of the process.
    pub variables: Vec<(OsString, OsString)>,
    /// Variables that `passEnv` declares and that are not set.
    pub missing: Vec<String>,
}

/// Builds the environment of a plugin: `PATH`, `HOME`, `TMPDIR` and `LANG`, the variables declared in `passEnv`, those
/// optional ones that are set, and the variables that Pulumi's engine sets.
pub fn plugin_environment(plugin: &PluginConfig, project: &str, host: &HostEnvironment) -> PluginEnvironment {
    let pulumi = [
        ("PULUMI_PROJECT", project),
        // The configuration is passed in Configure only.
        ("PULUMI_CONFIG", "{}"),
        // Python would buffer the port line.
        ("PYTHONUNBUFFERED", "1"),
    ];
    let declared = plugin.pass_env.iter().map(String::as_str);
    let variables = host
        .select(PASSED_TO_ALL)
        .chain(host.select(declared))
        .chain(plugin.optional_env.iter().flat_map(|name| matching(host, name)))
        .chain(pulumi.map(|(name, value)| (OsString::from(name), OsString::from(value))))
        .collect();
    let missing = plugin.pass_env.iter().filter(|name| host.get(name).is_none()).cloned().collect();
    PluginEnvironment { variables, missing }
}

/// Returns the variables that a name stands for: those with its prefix, if it ends with `*`.
fn matching(host: &HostEnvironment, name: &str) -> Vec<(OsString, OsString)> {
    match name.strip_suffix('*') {
        Some(prefix) => host.with_prefix(prefix).collect(),
        None => host.select([name]).collect(),
    }
}

/// Returns the folders for the private folders of sockets: that of the user's session, then those for temporary files.
pub fn socket_folders(host: &HostEnvironment) -> Vec<PathBuf> {
    let declared = ["XDG_RUNTIME_DIR", "TMPDIR"].into_iter().filter_map(|name| host.get(name)).map(PathBuf::from);
    declared.chain([PathBuf::from("/tmp")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::{LocalSource, PluginSource};

    /// Shows: plugin-authoring.md#what-a-process-has-to-do "Its environment has `PATH`, `HOME`, `TMPDIR`, `LANG`, the
    ///   variables that Pulumi sets, and those that `passEnv` names."
    #[test]
    fn plugin_environment_holds_only_default_declared_and_pulumi_variables() {
        let source = PluginSource::Local(LocalSource::new("x"));
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

    #[test]
    fn optional_variables_are_inherited_if_they_are_set() {
        let source = PluginSource::Local(LocalSource::new("x"));
        let mut plugin = PluginConfig::new("sea".parse().unwrap(), source);
        plugin.optional_env = ["SEA_*", "NO_PROXY", "NOT_SET"].map(str::to_owned).to_vec();
        let host = ["SEA_KEY", "SEA_REGION", "SEASIDE", "NO_PROXY", "LAKE_KEY"];
        let host = HostEnvironment::new(host.map(|name| (name.into(), "1".into())));
        let environment = plugin_environment(&plugin, "t", &host);
        let names: Vec<_> = environment.variables.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(names[..3], ["SEA_KEY", "SEA_REGION", "NO_PROXY"]);
        assert_eq!(names[3..], ["PULUMI_PROJECT", "PULUMI_CONFIG", "PYTHONUNBUFFERED"]);
        assert_eq!(environment.missing, [""; 0]);
    }
}
