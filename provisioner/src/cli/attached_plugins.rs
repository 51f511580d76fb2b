//! Plugins that run already, in environment variables: `PULUMI_DEBUG_PROVIDERS` (docs/spec/provider-protocol.md#1.8) and
//! `SC_REATTACH_PLUGINS` (docs/spec/plugin-hosts.md#A.12).

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use bridge::host::AttachedPlugin;
use bridge::launch::{PluginAddress, is_usable_socket_path};
use serde_json::{Map, Value};

use super::exit::CliError;

/// Variable with ports of Pulumi's providers.
pub(crate) const PULUMI: &str = "PULUMI_DEBUG_PROVIDERS";
/// Variable with addresses of go-plugin servers.
pub(crate) const GO_PLUGIN: &str = "SC_REATTACH_PLUGINS";

/// Returns the plugins that the variables name, by the name of the plugin or of its package.
///
/// # Errors
/// Wrong usage: an invalid value, or a plugin that is named twice.
pub(crate) fn read(environment: &BTreeMap<String, String>) -> Result<BTreeMap<String, AttachedPlugin>, CliError> {
    let mut attached = BTreeMap::new();
    type Reader = fn(&str) -> Result<Vec<(String, AttachedPlugin)>, String>;
    let readers: [(&'static str, Reader); 2] = [(PULUMI, read_ports), (GO_PLUGIN, read_records)];
    for (variable, reader) in readers {
        let text = environment.get(variable).map_or("", |text| text.trim());
        let plugins = if text.is_empty() { Ok(Vec::new()) } else { reader(text) };
        for (name, plugin) in plugins.map_err(|reason| invalid(variable, &reason))? {
            let setting = plugin.setting;
            if let Some(other) = attached.insert(name.clone(), plugin) {
                let reason = match other.setting == setting {
                    true => format!("{name} is named twice"),
                    false => format!("{name} is named by {}, too", other.setting),
                };
                return Err(invalid(variable, &reason));
            }
        }
    }
    Ok(attached)
}

fn invalid(variable: &str, reason: &str) -> CliError {
    let form = match variable {
        PULUMI => "NAME:PORT, with commas between several".to_owned(),
        _ => r#"{"NAME":{"Protocol":"grpc","ProtocolVersion":1,"Pid":7,"Addr":{"Network":"unix","String":"/PATH"}}}"#
            .to_owned(),
    };
    CliError::usage(format_args!("the variable {variable} is invalid: {reason}"), format_args!("its form is {form}"))
}

/// Reads `NAME:PORT[,NAME:PORT…]`.
fn read_ports(text: &str) -> Result<Vec<(String, AttachedPlugin)>, String> {
    let entry = |(index, entry): (usize, &str)| {
        let place = || format!("entry {} is {entry:?}", index + 1);
        let (name, port) = entry.split_once(':').ok_or_else(|| format!("{}, without a port", place()))?;
        if name.is_empty() {
            return Err(format!("{}, without a name", place()));
        }
        let port = port.parse().ok().filter(|port: &u16| *port != 0);
        let port = port.ok_or_else(|| format!("{}, whose port is not a number from 1 to 65535", place()))?;
        let plugin = AttachedPlugin {
            address: PluginAddress::Tcp((Ipv4Addr::LOCALHOST, port).into()),
            setting: PULUMI,
            protocol_version: None,
            requires_attach: true,
        };
        Ok((name.to_owned(), plugin))
    };
    text.split(',').map(str::trim).enumerate().map(entry).collect()
}

/// Reads the JSON object of go-plugin's records.
fn read_records(text: &str) -> Result<Vec<(String, AttachedPlugin)>, String> {
    let records: Map<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let record = |(name, record): (&String, &Value)| {
        let plugin = read_record(record).map_err(|reason| format!("{name}{reason}"))?;
        Ok((name.clone(), plugin))
    };
    records.iter().map(record).collect()
}

/// Reads a record. The reason of an error begins with the path of the member.
fn read_record(record: &Value) -> Result<AttachedPlugin, String> {
    let text = |pointer: &str| record.pointer(pointer).and_then(Value::as_str);
    let number = |member: &str, least: u64| match record.get(member) {
        None => Ok(0),
        Some(value) => match value.as_u64().and_then(|number| u32::try_from(number).ok()) {
            Some(number) if u64::from(number) >= least => Ok(number),
            Some(_) | None => Err(format!(".{member} is {value}, not a number from {least} on")),
        },
    };
    if !record.is_object() {
        return Err(" is not an object".to_owned());
    }
    match text("/Protocol") {
        Some("grpc") => {}
        Some("netrpc" | "") | None => return Err(".Protocol is not \"grpc\": sc does not support net/rpc".to_owned()),
        Some(other) => return Err(format!(".Protocol is {other:?}, not \"grpc\"")),
    }
    number("Pid", 1)?;
    let version = number("ProtocolVersion", 0)?;
    let address = text("/Addr/String").ok_or(".Addr.String is not a text")?;
    let address = match text("/Addr/Network") {
        Some("unix") if is_usable_socket_path(address) => PluginAddress::Unix(address.into()),
        Some("unix") => {
            return Err(format!(".Addr.String is {address:?}, not an absolute path of less than 108 bytes"));
        }
        Some("tcp") => match address.parse::<SocketAddr>() {
            Ok(address) if address.ip().is_loopback() && address.port() != 0 => PluginAddress::Tcp(address),
            Ok(_) | Err(_) => return Err(format!(".Addr.String is {address:?}, not a loopback address with a port")),
        },
        _ => return Err(".Addr.Network is neither \"unix\" nor \"tcp\"".to_owned()),
    };
    let protocol_version = Some(version).filter(|version| *version != 0);
    Ok(AttachedPlugin { address, setting: GO_PLUGIN, protocol_version, requires_attach: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_both(pulumi: &str, go_plugin: &str) -> Result<Vec<String>, String> {
        let variables = [(PULUMI, pulumi), (GO_PLUGIN, go_plugin)];
        let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let attached = read(&environment.into()).map_err(|error| error.to_string())?;
        let line = |(name, plugin): (String, AttachedPlugin)| {
            let AttachedPlugin { address, protocol_version, requires_attach, .. } = plugin;
            format!("{name} {address} {protocol_version:?} {requires_attach}")
        };
        Ok(attached.into_iter().map(line).collect())
    }

    #[test]
    fn plugins_of_both_variables_are_read() {
        assert_eq!(read_both("", " "), Ok(vec![]));
        assert_eq!(read(&BTreeMap::new()).unwrap(), BTreeMap::new());
        let records = r#"{
            "a": {"Protocol": "grpc", "ProtocolVersion": 5, "Pid": 7, "Test": true,
                  "Addr": {"Network": "unix", "String": "/tmp/p"}},
            "b": {"Protocol": "grpc", "ProtocolVersion": 0, "Addr": {"Network": "tcp", "String": "127.0.0.1:7"}}
        }"#;
        let expected = [
            "a /tmp/p Some(5) false",
            "b 127.0.0.1:7 None false",
            "x 127.0.0.1:1 None true",
            "y-z 127.0.0.1:65535 None true",
        ];
        assert_eq!(read_both("x:1, y-z:65535", records).unwrap(), expected);
    }

    /// Shows: hosting.md#attaching-to-a-running-plugin "An invalid value ends the command with exit code 2."
    #[test]
    fn invalid_value_is_named_with_its_variable_and_place() {
        let record = |members: &str| format!(r#"{{"a": {{{members}}}}}"#);
        let grpc = |address: &str| record(&format!(r#""Protocol": "grpc", "Addr": {address}"#));
        let table = [
            ("x", String::new(), "PULUMI_DEBUG_PROVIDERS is invalid: entry 1 is \"x\", without a port"),
            ("x:1,", String::new(), "entry 2 is \"\", without a port"),
            (":1", String::new(), "entry 1 is \":1\", without a name"),
            ("x:1,y:http", String::new(), "entry 2 is \"y:http\", whose port is not a number from 1 to 65535"),
            ("x:0", String::new(), "whose port is not"),
            ("x:65536", String::new(), "whose port is not"),
            ("x:1,x:2", String::new(), "x is named twice"),
            ("", "{".to_owned(), "SC_REATTACH_PLUGINS is invalid: EOF while parsing an object at line 1 column 1"),
            ("", "[]".to_owned(), "invalid type: sequence, expected a map at line 1 column 0"),
            ("", r#"{"a": 1}"#.to_owned(), "a is not an object"),
            ("", record(""), "a.Protocol is not \"grpc\": sc does not support net/rpc"),
            ("", record(r#""Protocol": "http""#), "a.Protocol is \"http\", not \"grpc\""),
            ("", record(r#""Protocol": "grpc", "Pid": 0"#), "a.Pid is 0, not a number from 1 on"),
            ("", record(r#""Protocol": "grpc", "ProtocolVersion": -1"#), "a.ProtocolVersion is -1, not a number"),
            ("", record(r#""Protocol": "grpc""#), "a.Addr.String is not a text"),
            ("", grpc(r#"{"Network": "udp", "String": "x"}"#), "a.Addr.Network is neither"),
            ("", grpc(r#"{"Network": "unix", "String": "x"}"#), "\"x\", not an absolute path"),
            ("", grpc(r#"{"Network": "tcp", "String": "10.0.0.1:7"}"#), "not a loopback address with a port"),
            ("", grpc(r#"{"Network": "tcp", "String": "127.0.0.1:0"}"#), "not a loopback address with a port"),
            (
                "a:1",
                grpc(r#"{"Network": "tcp", "String": "127.0.0.1:7"}"#),
                "a is named by PULUMI_DEBUG_PROVIDERS, too",
            ),
        ];
        for (pulumi, go_plugin, expected) in table {
            let error = read_both(pulumi, &go_plugin).unwrap_err();
            assert!(error.contains(expected), "{error}: {expected}");
        }
    }
}
