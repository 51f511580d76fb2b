//! Start protocol of a plugin, `protocol` in server.yaml.

/// Way in which a plugin is started, reports its address and is ended. The calls after that are the same in each dialect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Pulumi's: the address of the engine is the last argument, and the first line of output is the port.
    #[default]
    Pulumi,
    /// HashiCorp's go-plugin (docs/spec/plugin-hosts.md#A).
    GoPlugin(GoPlugin),
    /// Registration: the process calls the service `simplecontainer.host.v1` of the host with the address at which it
    /// listens (docs/spec/plugin-hosts.md#C.2).
    Register(Register),
}

/// Settings of a plugin that registers itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Register {
    /// Largest number of starts of a process that does not register in time.
    pub start_attempts: u32,
}

impl Register {
    /// Largest value, and default, of [`start_attempts`](Self::start_attempts).
    pub const START_ATTEMPTS: u32 = 5;
}

impl Default for Register {
    fn default() -> Self {
        Self { start_attempts: Self::START_ATTEMPTS }
    }
}

/// Settings of a go-plugin server, `goPlugin` in server.yaml.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GoPlugin {
    /// Environment variable by which the plugin recognizes that a host has started it. Not a security measure.
    pub cookie_key: String,
    /// Value of that variable.
    pub cookie_value: String,
    /// Versions of the application protocol that are offered to the plugin.
    pub versions: Vec<u32>,
    /// Encryption of the connection.
    pub tls: GoPluginTls,
}

/// Encryption of the connection to a go-plugin server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GoPluginTls {
    /// AutoMTLS: both sides make a certificate at each start. A plugin that offers no TLS is not used.
    #[default]
    Auto,
    /// Plain text.
    None,
}

impl GoPlugin {
    /// Default of [`cookie_key`](Self::cookie_key).
    pub const COOKIE_KEY: &str = "SC_PLUGIN_COOKIE";
    /// Default of [`cookie_value`](Self::cookie_value).
    pub const COOKIE_VALUE: &str = "simple-container-provider";
    /// Default version of the application protocol.
    pub const VERSION: u32 = 1;
}

impl Default for GoPlugin {
    fn default() -> Self {
        Self {
            cookie_key: Self::COOKIE_KEY.to_owned(),
            cookie_value: Self::COOKIE_VALUE.to_owned(),
            versions: vec![Self::VERSION],
            tls: GoPluginTls::default(),
        }
    }
}
