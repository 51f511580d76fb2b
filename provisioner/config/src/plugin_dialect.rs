//! `protocol`, `goPlugin` and `startAttempts` of an entry of `plugins`.

use bridge::message_text::MessageText;
use bridge::plugin::{Dialect, GoPlugin, GoPluginTls, Register};

use crate::diagnostics::{Code, Diagnostic};
use crate::reader::{Reader, Section};

const PLUGIN: Code = Code("plugin");
const PROTOCOLS: [&str; 3] = ["pulumi", "go-plugin", "register"];
const KEYS: [&str; 4] = ["cookieKey", "cookieValue", "versions", "tls"];

/// Reads the start protocol of a plugin. Reports invalid values, and returns the default for them.
pub(super) fn read(name: &str, plugin: Section<'_>, reader: &mut Reader<'_>) -> Dialect {
    let protocol = match reader.text_at(plugin, "protocol") {
        None => "pulumi".to_owned(),
        Some((protocol, span)) => {
            if !PROTOCOLS.contains(&protocol.as_str()) {
                let summary = MessageText::new(format_args!("plugin {name:?}: unknown protocol {protocol:?}"));
                let help = MessageText::new(format_args!("the protocols are {}", PROTOCOLS.join(", ")));
                reader.push(Diagnostic::error(PLUGIN, span, summary).help(help));
            }
            protocol
        }
    };
    let go_plugin = reader.section(plugin, "goPlugin", "goPlugin").map(|settings| {
        if protocol != "go-plugin" {
            let summary =
                MessageText::new(format_args!("plugin {name:?}: goPlugin has no effect without `protocol: go-plugin`"));
            reader.push(Diagnostic::error(PLUGIN, settings.span, summary));
        }
        read_go_plugin(name, settings, reader)
    });
    let start_attempts = read_start_attempts(name, &protocol, plugin, reader);
    match protocol.as_str() {
        "go-plugin" => Dialect::GoPlugin(go_plugin.unwrap_or_default()),
        "register" => Dialect::Register(Register { start_attempts }),
        _ => Dialect::Pulumi,
    }
}

fn read_start_attempts(name: &str, protocol: &str, plugin: Section<'_>, reader: &mut Reader<'_>) -> u32 {
    let Some((text, span)) = reader.text_at(plugin, "startAttempts") else { return Register::START_ATTEMPTS };
    if protocol != "register" {
        let summary =
            MessageText::new(format_args!("plugin {name:?}: startAttempts has no effect without `protocol: register`"));
        reader.push(Diagnostic::error(PLUGIN, span, summary));
    }
    text.parse().ok().filter(|attempts| (1..=Register::START_ATTEMPTS).contains(attempts)).unwrap_or_else(|| {
        let summary = MessageText::new(format_args!("plugin {name:?}: invalid startAttempts {text:?}"));
        let help = MessageText::new(format_args!("write a number from 1 to {}", Register::START_ATTEMPTS));
        reader.push(Diagnostic::error(PLUGIN, span, summary).help(help));
        Register::START_ATTEMPTS
    })
}

fn read_go_plugin(name: &str, section: Section<'_>, reader: &mut Reader<'_>) -> GoPlugin {
    reader.reject_unknown_keys(section, &KEYS, "goPlugin");
    let mut settings = GoPlugin::default();
    if let Some((key, span)) = reader.text_at(section, "cookieKey") {
        if key.is_empty() || key.contains(['=', '\0']) || key.starts_with("PLUGIN_") {
            let summary = MessageText::new(format_args!(
                "plugin {name:?}: cookieKey {key:?} is not a name of an environment variable"
            ));
            reader.push(Diagnostic::error(PLUGIN, span, summary).help("names with PLUGIN_ belong to go-plugin"));
        }
        settings.cookie_key = key;
    }
    if let Some((value, span)) = reader.text_at(section, "cookieValue") {
        if value.is_empty() || value.contains('\0') {
            reader.push(Diagnostic::error(
                PLUGIN,
                span,
                format_args!("plugin {name:?}: invalid cookieValue {value:?}"),
            ));
        }
        settings.cookie_value = value;
    }
    let has_versions = section.get("versions").is_some_and(|node| !node.is_null());
    let mut versions = Vec::new();
    for (text, span) in reader.texts(section, "versions") {
        match text.parse() {
            Ok(version) => versions.push(version),
            Err(_) => {
                let summary =
                    MessageText::new(format_args!("plugin {name:?}: version {text:?} of goPlugin is not a number"));
                reader.push(Diagnostic::error(PLUGIN, span, summary));
            }
        }
    }
    if !versions.is_empty() {
        settings.versions = versions;
    } else if has_versions {
        let summary = MessageText::new(format_args!("plugin {name:?}: goPlugin.versions has no version"));
        reader.push(Diagnostic::error(PLUGIN, section.span, summary).help("write a list such as `[1]`"));
    }
    if let Some((tls, span)) = reader.text_at(section, "tls") {
        settings.tls = match tls.as_str() {
            "auto" => GoPluginTls::Auto,
            "none" => GoPluginTls::None,
            _ => {
                let summary = MessageText::new(format_args!("plugin {name:?}: unknown tls {tls:?}"));
                reader.push(Diagnostic::error(PLUGIN, span, summary).help("write `auto` or `none`"));
                GoPluginTls::Auto
            }
        };
    }
    settings
}
