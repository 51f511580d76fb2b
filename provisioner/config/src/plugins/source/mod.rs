//! `source` of an entry of `plugins`. Each kind of source has a file, with its keys and its reader.
//!
//! Input: an entry of `plugins`. Output: the source, of one kind. Excluded: access to the source.

mod git;
mod github_release;
mod installed;
mod local;
mod section;

use bridge::plugin::{PluginSource, SourceKind};

use crate::diagnostics::{Diagnostic, Span};
use crate::placeholder::{ReferenceRule, Resolver};
use crate::reader::{Reader, Section, unknown_key_error};

use section::{PLUGIN, SourceSection};

/// Reads the source of a plugin. Reports its errors, and returns `None` if there is one, or if the place or the checksum of the
/// plugin is not known in this process.
pub(super) fn read(
    plugin_name: &str,
    plugin: Section<'_>,
    resolver: &mut Resolver<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<PluginSource> {
    let Some(node) = plugin.get("source") else {
        diagnostics.push(missing_kind(plugin_name, plugin.span));
        return None;
    };
    let node = resolver.resolve(node, ReferenceRule::Rejected);
    let mut reader = Reader::new(diagnostics);
    let section = reader.mapping(&node, "`source`")?;
    let Some(kind) = read_kind(plugin_name, section, &mut reader) else {
        reader.reject_unknown_keys(section, &keys_of_all_kinds(), "`source`");
        return None;
    };
    reject_unknown_keys(kind, section, &mut reader);
    let mut source = SourceSection { plugin_name, kind, section, namespaces: resolver.namespaces(), diagnostics };
    let read = match kind {
        SourceKind::Local => local::read(&mut source).map(PluginSource::Local),
        SourceKind::GithubRelease => github_release::read(&mut source).map(PluginSource::GithubRelease),
        SourceKind::Git => git::read(&mut source).map(PluginSource::Git),
        SourceKind::Installed => installed::read(&mut source).map(PluginSource::Installed),
    };
    // A plugin is not started without the check that its author has asked for.
    read.filter(|_| !source.has_unknown_checksum())
}

fn keys(kind: SourceKind) -> &'static [&'static str] {
    match kind {
        SourceKind::Local => &local::KEYS,
        SourceKind::GithubRelease => &github_release::KEYS,
        SourceKind::Git => &git::KEYS,
        SourceKind::Installed => &installed::KEYS,
    }
}

/// Returns the keys of all kinds, each once.
fn keys_of_all_kinds() -> Vec<&'static str> {
    let mut all: Vec<&str> = Vec::new();
    for key in SourceKind::all().flat_map(keys) {
        if !all.contains(key) {
            all.push(key);
        }
    }
    all
}

fn read_kind(plugin_name: &str, section: Section<'_>, reader: &mut Reader<'_>) -> Option<SourceKind> {
    let Some((text, span)) = reader.text_at(section, "type").filter(|(text, _)| !text.is_empty()) else {
        reader.push(missing_kind(plugin_name, section.span));
        return None;
    };
    let kind = SourceKind::all().find(|kind| kind.as_str() == text);
    if kind.is_none() {
        reader.push(
            Diagnostic::error(PLUGIN, span, format_args!("plugin {plugin_name:?}: unknown source type {text:?}"))
                .did_you_mean(&text, SourceKind::all().map(SourceKind::as_str))
                .help(format_args!("the types are {}", kind_names().join(", "))),
        );
    }
    kind
}

fn missing_kind(plugin_name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(PLUGIN, span, format_args!("plugin {plugin_name:?}: source.type is required"))
        .help(format_args!("the types are {}", kind_names().join(", ")))
}

fn kind_names() -> Vec<&'static str> {
    SourceKind::all().map(SourceKind::as_str).collect()
}

/// Reports the keys that a kind does not have. Names the kinds that have them, if there are any.
fn reject_unknown_keys(kind: SourceKind, section: Section<'_>, reader: &mut Reader<'_>) {
    let has = |kind: SourceKind, key: &str| keys(kind).contains(&key);
    for entry in section.mapping.into_iter().filter(|entry| !has(kind, &entry.key)) {
        let others: Vec<String> = SourceKind::all()
            .filter(|other| has(*other, &entry.key))
            .map(|other| format!("{:?}", other.as_str()))
            .collect();
        let error = unknown_key_error(format_args!("`source` of type {:?}", kind.as_str()), entry);
        let error = match &others[..] {
            [] => error.did_you_mean(&entry.key, keys(kind).iter().copied()),
            others => error.help(format_args!("it is a key of type {}", others.join(" and of type "))),
        };
        reader.push(error.help(format_args!("the keys are {}", keys(kind).join(", "))));
    }
}
