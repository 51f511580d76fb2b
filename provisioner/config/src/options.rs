//! `options` of a resource (the table in the grammar of server.yaml). Unknown keys are errors.

use std::time::Duration;

use bridge::message_text::MessageText;
use bridge::plugin::{PluginVersion, WantedVersion};
use pulumi_proto::duration::{self, Timeouts};
use pulumi_proto::property::path::PropertyPath;
use pulumi_proto::urn::{NameError, Urn};

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::placeholder::{ReferenceRule, Resolver};
use crate::plugins::PluginDeclaration;
use crate::reader::{Reader, Section};
use crate::stack::{AliasOption, AliasParentOption, Options, ResourceImplementation};
use crate::tree::{Entry, Mapping, Node, Value};

const OPTION: Code = Code("option");
pub(super) const KEYS: [&str; 16] = [
    "dependsOn",
    "protect",
    "deleteBeforeReplace",
    "retainOnDelete",
    "ignoreChanges",
    "replaceOnChanges",
    "replacementTrigger",
    "replaceWith",
    "deletedWith",
    "hideDiffs",
    "additionalSecretOutputs",
    "aliases",
    "import",
    "customTimeouts",
    "version",
    "provider",
];
/// Options that are allowed on core types, which register several resources.
const CORE_KEYS: [&str; 4] = ["protect", "retainOnDelete", "dependsOn", "customTimeouts"];

/// Options whose name alone reads as if they were set.
const NOT_NULL: [&str; 4] = ["protect", "deleteBeforeReplace", "retainOnDelete", "import"];

/// Resolves placeholders in `options` of a resource. Only in a value whose changes replace the resource may they refer to outputs
/// of other resources.
pub(super) fn resolve(node: &Node, resolver: &mut Resolver<'_>) -> Node {
    let Some(mapping) = node.as_mapping() else { return resolver.resolve(node, ReferenceRule::Rejected) };
    let entries = mapping.into_iter().map(|Entry { key, key_span, value }| {
        let references = match key.as_str() {
            "replacementTrigger" => ReferenceRule::SameEnvironment,
            _ => ReferenceRule::Rejected,
        };
        Entry { key: key.clone(), key_span: *key_span, value: resolver.resolve(value, references) }
    });
    Node { value: Value::Mapping(Mapping(entries.collect())), span: node.span }
}

/// Reads `options` of a resource, in which placeholders are resolved.
pub(super) fn read(
    node: Option<&Node>,
    implementation: &ResourceImplementation,
    plugins: &[PluginDeclaration],
    diagnostics: &mut Vec<Diagnostic>,
) -> Options {
    let mut reader = Reader::new(diagnostics);
    let Some(section) = node.and_then(|node| reader.mapping(node, "`options`")) else { return Options::default() };
    reader.reject_unknown_keys(section, &KEYS, "`options`");
    reject_null_options(section, &mut reader);
    // The selection of the plugin has read it.
    reader.text_at(section, "provider");
    match implementation {
        ResourceImplementation::Core { type_name } => {
            for entry in section.mapping.into_iter().filter(|entry| KEYS.contains(&entry.key.as_str())) {
                if !CORE_KEYS.contains(&entry.key.as_str()) {
                    let summary =
                        MessageText::new(format_args!("`{}` cannot be set on the core type {type_name:?}", entry.key));
                    reader.push(
                        Diagnostic::error(OPTION, entry.key_span, summary)
                            .help(format_args!("core types take {}", CORE_KEYS.join(", "))),
                    );
                }
            }
        }
        ResourceImplementation::Plugin { .. } => {}
    }
    let version = match implementation {
        ResourceImplementation::Core { .. } => None,
        ResourceImplementation::Plugin { plugin, .. } => read_version(section, &plugins[*plugin], &mut reader),
    };
    Options {
        version,
        depends_on: reader.texts(section, "dependsOn"),
        protect: reader.boolean(section, "protect"),
        delete_before_replace: reader.boolean(section, "deleteBeforeReplace"),
        retain_on_delete: reader.boolean(section, "retainOnDelete"),
        ignore_changes: read_paths(section, "ignoreChanges", &mut reader),
        replace_on_changes: read_paths(section, "replaceOnChanges", &mut reader),
        replacement_trigger: section.get("replacementTrigger").cloned(),
        replace_with: reader.texts(section, "replaceWith"),
        deleted_with: reader.text_at(section, "deletedWith"),
        hide_diffs: read_paths(section, "hideDiffs", &mut reader).into_iter().map(|(path, _)| path).collect(),
        additional_secret_outputs: reader.texts(section, "additionalSecretOutputs"),
        aliases: read_aliases(section, &mut reader),
        import: reader.text_at(section, "import").map(|(id, _)| id).filter(|id| !id.is_empty()),
        custom_timeouts: read_timeouts(section, &mut reader),
    }
}

/// Reports options without a value that read as if they were set: `protect:` alone would protect nothing.
fn reject_null_options(section: Section<'_>, reader: &mut Reader<'_>) {
    let is_null = |entry: &&Entry| NOT_NULL.contains(&entry.key.as_str()) && entry.value.is_null();
    for entry in section.mapping.into_iter().filter(is_null) {
        let key = &entry.key;
        let example = if key == "import" { "ID" } else { "true" };
        reader.push(
            Diagnostic::error(Code("wrong-kind"), entry.key_span, format_args!("the option `{key}` has no value"))
                .help(format_args!("write `{key}: {example}`, or remove the line")),
        );
    }
}

/// Reads the version of the plugin that the resource expects. Reports one that the plugin cannot have; whether one of a range, or of
/// parameters, is that of the resolved plugin is checked once that is known.
pub(super) fn read_version(
    section: Section<'_>,
    plugin: &PluginDeclaration,
    reader: &mut Reader<'_>,
) -> Option<(PluginVersion, Span)> {
    let (text, span) = reader.text_at(section, "version")?;
    let Ok(version) = text.parse::<PluginVersion>() else {
        reader.push(
            Diagnostic::error(OPTION, span, format_args!("{text:?} is not a version"))
                .help("write one such as `5.2.2`"),
        );
        return None;
    };
    // Which version parameters mean, only the plugin says.
    let has_parameters = plugin.plugin.parameters.is_some();
    let wanted = plugin.plugin.source.wanted();
    let (is_possible, declared) = match wanted {
        _ if has_parameters => (true, None),
        Some(wanted @ WantedVersion::Named(_)) => (wanted.stated().as_ref() == Some(&version), wanted.stated()),
        Some(WantedVersion::Latest) => (true, None),
        Some(WantedVersion::Range(range)) => (range.contains(&version), None),
        None => (false, None),
    };
    if !is_possible {
        let summary = MessageText::new(format_args!("version {version} is not that of the plugin {:?}", plugin.name()));
        let has = match (wanted, declared) {
            (_, Some(declared)) => format!("the plugin is declared with version {declared}"),
            (Some(WantedVersion::Range(range)), None) => format!("the plugin is declared with the range {range}"),
            _ => "the plugin is declared without a version".to_owned(),
        };
        reader.push(Diagnostic::error(OPTION, span, summary).label(plugin.name_span, has));
    }
    Some((version, span))
}

/// Reads a list of Pulumi property paths, with their positions.
fn read_paths(section: Section<'_>, key: &str, reader: &mut Reader<'_>) -> Vec<(String, Span)> {
    let mut paths = Vec::new();
    for (text, span) in reader.texts(section, key) {
        match text.parse::<PropertyPath>() {
            Ok(_) => paths.push((text, span)),
            Err(error) => reader.push(Diagnostic::error(OPTION, span, error.to_string())),
        }
    }
    paths
}

fn read_aliases(section: Section<'_>, reader: &mut Reader<'_>) -> Vec<AliasOption> {
    let items = reader.list(section, "aliases").iter();
    items
        .filter_map(|item| {
            if item.as_mapping().is_some() { read_alias_spec(item, reader) } else { read_urn_alias(item, reader) }
        })
        .collect()
}

fn read_urn_alias(item: &Node, reader: &mut Reader<'_>) -> Option<AliasOption> {
    let text = reader.text(item, "an alias")?;
    parse_urn(&text, item.span, reader).map(AliasOption::Urn)
}

fn read_alias_spec(item: &Node, reader: &mut Reader<'_>) -> Option<AliasOption> {
    let section = reader.mapping(item, "an alias")?;
    reader.reject_unknown_keys(section, &["name", "type", "stack", "project", "parent", "noParent"], "an alias");
    let parent = reader.text_at(section, "parent");
    let no_parent = reader.boolean(section, "noParent").unwrap_or(false);
    let parent = match parent {
        Some((_, span)) if no_parent => {
            reader.push(Diagnostic::error(OPTION, span, "an alias has either `parent` or `noParent`"));
            return None;
        }
        Some((text, span)) => AliasParentOption::Urn(parse_urn(&text, span, reader)?),
        None if no_parent => AliasParentOption::None,
        None => AliasParentOption::Same,
    };
    let mut text = |key: &str| reader.text_at(section, key).map(|(text, _)| text);
    Some(AliasOption::Spec {
        name: text("name"),
        type_token: text("type"),
        stack: text("stack"),
        project: text("project"),
        parent,
    })
}

fn parse_urn(text: &str, span: Span, reader: &mut Reader<'_>) -> Option<Urn> {
    text.parse().map_err(|error: NameError| reader.push(Diagnostic::error(OPTION, span, error.to_string()))).ok()
}

/// Reads `customTimeouts`. A timeout of zero counts as not set.
fn read_timeouts(section: Section<'_>, reader: &mut Reader<'_>) -> Timeouts {
    let Some(section) = reader.section(section, "customTimeouts", "customTimeouts") else { return Timeouts::default() };
    reader.reject_unknown_keys(section, &["create", "update", "delete", "read"], "`customTimeouts`");
    let mut timeout = |key: &str| -> Option<Duration> {
        let (text, span) = reader.text_at(section, key)?;
        let parsed = duration::parse(&text);
        if parsed.is_none() {
            let summary = MessageText::new(format_args!("{text:?} is not a duration"));
            reader.push(Diagnostic::error(OPTION, span, summary).help("write one such as `90s`, `5m` or `1h30m`"));
        }
        parsed.filter(|timeout| !timeout.is_zero())
    };
    Timeouts { create: timeout("create"), update: timeout("update"), delete: timeout("delete"), read: timeout("read") }
}
