//! `sandbox` of an entry of `plugins`, with `readable`, `writable` and `ports`.

use std::path::PathBuf;

use bridge::message_text::MessageText;
use bridge::plugin::{Sandbox, StrictSandbox};

use crate::diagnostics::{Code, Diagnostic};
use crate::reader::{Reader, Section};

const PLUGIN: Code = Code("plugin");
/// Keys that have an effect only with `sandbox: strict`.
const STRICT_KEYS: [&str; 3] = ["readable", "writable", "ports"];

/// Reads the sandbox of a plugin. Reports invalid values, and returns the default for them.
pub(super) fn read(name: &str, plugin: Section<'_>, reader: &mut Reader<'_>) -> Sandbox {
    let level = reader.text_at(plugin, "sandbox");
    let is_strict = level.as_ref().is_some_and(|(level, _)| level == "strict");
    let misplaced = STRICT_KEYS.into_iter().filter(|_| !is_strict).filter_map(|key| plugin.mapping.entry(key));
    for entry in misplaced {
        let summary =
            MessageText::new(format_args!("plugin {name:?}: {} has no effect without `sandbox: strict`", entry.key));
        reader.push(Diagnostic::error(PLUGIN, entry.key_span, summary));
    }
    match level.as_ref().map(|(level, span)| (level.as_str(), *span)) {
        None | Some(("basic", _)) => Sandbox::Basic,
        Some(("none", _)) => Sandbox::None,
        Some(("strict", _)) => Sandbox::Strict(StrictSandbox {
            readable: read_paths(name, plugin, reader, "readable"),
            writable: read_paths(name, plugin, reader, "writable"),
            ports: read_ports(name, plugin, reader),
        }),
        Some((level, span)) => {
            let summary = MessageText::new(format_args!("plugin {name:?}: unknown sandbox {level:?}"));
            reader.push(Diagnostic::error(PLUGIN, span, summary).help("write `none`, `basic` or `strict`"));
            Sandbox::default()
        }
    }
}

fn read_paths(name: &str, plugin: Section<'_>, reader: &mut Reader<'_>, key: &str) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for (path, span) in reader.texts(plugin, key) {
        if path.is_empty() || path.contains('\0') {
            let summary = MessageText::new(format_args!("plugin {name:?}: {path:?} in {key} is not a path"));
            reader.push(Diagnostic::error(PLUGIN, span, summary));
        }
        paths.push(path.into());
    }
    paths
}

fn read_ports(name: &str, plugin: Section<'_>, reader: &mut Reader<'_>) -> Vec<u16> {
    if plugin.get("ports").is_none() {
        return StrictSandbox::PORTS.to_vec();
    }
    let mut ports = Vec::new();
    for (text, span) in reader.texts(plugin, "ports") {
        match text.parse() {
            Ok(port) if port != 0 => ports.push(port),
            Ok(_) | Err(_) => {
                let summary =
                    MessageText::new(format_args!("plugin {name:?}: {text:?} in ports is not the number of a port"));
                reader.push(Diagnostic::error(PLUGIN, span, summary).help("write a number from 1 to 65535"));
            }
        }
    }
    ports
}
