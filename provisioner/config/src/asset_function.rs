//! Assets and archives in the `config` of a plugin's resource: mappings with one key, as in Pulumi's YAML language.
//!
//! | key | value |
//! |---|---|
//! | `fn::fileAsset`, `fn::fileArchive` | path of a file, or for an archive also of a folder |
//! | `fn::remoteAsset`, `fn::remoteArchive` | URL |
//! | `fn::stringAsset` | the content |
//! | `fn::assetArchive` | mapping of names to assets and archives |

use bridge::message_text::MessageText;

use crate::diagnostics::{Code, Diagnostic};
use crate::tree::{Entry, Mapping, Node, Value};

const ASSET: Code = Code("asset");
/// Beginning of the key of a function.
const PREFIX: &str = "fn::";
/// Function of secrets, which server.yaml writes as a placeholder.
const SECRET_FUNCTION: &str = "fn::secret";

/// Function that makes an asset or an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssetFunction {
    /// `fn::fileAsset`
    FileAsset,
    /// `fn::stringAsset`
    StringAsset,
    /// `fn::remoteAsset`
    RemoteAsset,
    /// `fn::fileArchive`
    FileArchive,
    /// `fn::remoteArchive`
    RemoteArchive,
    /// `fn::assetArchive`
    AssetArchive,
}

impl AssetFunction {
    /// All functions.
    pub const ALL: [Self; 6] = [
        Self::FileAsset,
        Self::StringAsset,
        Self::RemoteAsset,
        Self::FileArchive,
        Self::RemoteArchive,
        Self::AssetArchive,
    ];

    /// Returns the key in server.yaml.
    pub fn key(self) -> &'static str {
        match self {
            Self::FileAsset => "fn::fileAsset",
            Self::StringAsset => "fn::stringAsset",
            Self::RemoteAsset => "fn::remoteAsset",
            Self::FileArchive => "fn::fileArchive",
            Self::RemoteArchive => "fn::remoteArchive",
            Self::AssetArchive => "fn::assetArchive",
        }
    }

    /// Returns true if the function makes an archive.
    pub fn is_archive(self) -> bool {
        matches!(self, Self::FileArchive | Self::RemoteArchive | Self::AssetArchive)
    }

    /// Returns the function of a mapping, with its entry; `None` for another value.
    pub fn of(node: &Node) -> Option<(Self, &Entry)> {
        let [entry] = node.as_mapping()?.0.as_slice() else { return None };
        Self::ALL.into_iter().find(|function| function.key() == entry.key).map(|function| (function, entry))
    }
}

/// Calls `visit` with each asset and archive in a tree, also with those in archives.
pub fn visit<'n>(node: &'n Node, found: &mut dyn FnMut(AssetFunction, &'n Entry)) {
    if let Some((function, entry)) = AssetFunction::of(node) {
        found(function, entry);
    }
    match &node.value {
        Value::Scalar(_) | Value::Interpolated(_) => {}
        Value::Sequence(items) => items.iter().for_each(|item| visit(item, found)),
        Value::Mapping(mapping) => mapping.into_iter().for_each(|entry| visit(&entry.value, found)),
    }
}

/// Rule for assets in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AssetRule {
    Allowed,
    Rejected,
}

/// Checks the values of the `config` of a plugin's resource as [`check`]. The `config` itself is no asset.
pub(crate) fn check_config(config: &Node, diagnostics: &mut Vec<Diagnostic>) {
    for entry in config.as_mapping().into_iter().flatten() {
        match key_error(entry, &Mapping::default(), AssetRule::Rejected) {
            Some(error) => diagnostics.push(error),
            None => check(&entry.value, AssetRule::Allowed, diagnostics),
        }
    }
}

/// Reports functions that are unknown, not allowed or not alone in their mapping, and arguments of the wrong kind.
pub(crate) fn check(node: &Node, rule: AssetRule, diagnostics: &mut Vec<Diagnostic>) {
    match &node.value {
        Value::Scalar(_) | Value::Interpolated(_) => {}
        Value::Sequence(items) => items.iter().for_each(|item| check(item, rule, diagnostics)),
        Value::Mapping(mapping) => {
            let mistakes = diagnostics.len();
            diagnostics.extend(mapping.into_iter().find_map(|entry| key_error(entry, mapping, rule)));
            if diagnostics.len() > mistakes {
                return;
            }
            match AssetFunction::of(node) {
                Some((function, entry)) => check_argument(function, entry, diagnostics),
                None => mapping.into_iter().for_each(|entry| check(&entry.value, rule, diagnostics)),
            }
        }
    }
}

/// Returns the error of a key that is no function, but looks like one, or that cannot stand there.
fn key_error(entry: &Entry, mapping: &Mapping, rule: AssetRule) -> Option<Diagnostic> {
    let key = entry.key.as_str();
    let keys = AssetFunction::ALL.map(AssetFunction::key);
    let is_in_other_case = !keys.contains(&key) && keys.iter().any(|known| known.eq_ignore_ascii_case(key));
    if !key.starts_with(PREFIX) && !is_in_other_case {
        return None;
    }
    let error = |summary: MessageText| Diagnostic::error(ASSET, entry.key_span, summary);
    if !keys.contains(&key) {
        let unknown = error(MessageText::new(format_args!("there is no function `{key}`"))).did_you_mean(key, keys);
        if key == SECRET_FUNCTION {
            return Some(
                unknown.help("write `${secret:NAME}`, with the text below `values` of the stack's secrets.yaml"),
            );
        }
        return Some(unknown.help(format_args!(
            "the functions are {}; other functions of Pulumi's YAML are not supported",
            keys.join(", ")
        )));
    }
    if rule == AssetRule::Rejected {
        let misplaced = error(MessageText::new(format_args!("`{key}` cannot stand here")));
        return Some(
            misplaced.help("assets and archives are values of properties in the `config` of a plugin's resource"),
        );
    }
    (mapping.0.len() > 1).then(|| {
        error(MessageText::new(format_args!("`{key}` stands beside other keys")))
            .help(format_args!("write it alone: `{{ {key}: … }}`"))
    })
}

fn check_argument(function: AssetFunction, entry: &Entry, diagnostics: &mut Vec<Diagnostic>) {
    let (key, value) = (entry.key.as_str(), &entry.value);
    let mut report = |node: &Node, needs: &str, help: String| {
        let summary = MessageText::new(format_args!("`{key}` needs {needs}, found {}", node.kind()));
        diagnostics.push(Diagnostic::error(ASSET, node.span, summary).help(help));
    };
    if function != AssetFunction::AssetArchive {
        let (what, example) = match function {
            AssetFunction::StringAsset => ("a text", "TEXT"),
            AssetFunction::RemoteAsset | AssetFunction::RemoteArchive => ("a URL", "https://HOST/PATH"),
            _ => ("a path", "PATH"),
        };
        match &value.value {
            Value::Scalar(scalar) if scalar.text.is_empty() && function != AssetFunction::StringAsset => {
                report(value, what, format!("write `{{ {key}: {example} }}`"));
            }
            Value::Scalar(scalar) if !scalar.is_null() => {}
            Value::Interpolated(_) => {}
            _ => report(value, what, format!("write `{{ {key}: {example} }}`")),
        }
        return;
    }
    let Some(members) = value.as_mapping() else {
        let help = "write `{ fn::assetArchive: { NAME: { fn::fileAsset: PATH } } }`".to_owned();
        return report(value, "a mapping of names to assets and archives", help);
    };
    for member in members {
        if AssetFunction::of(&member.value).is_none() && !has_function_key(&member.value) {
            let help = format!("write `{}: {{ fn::fileAsset: PATH }}` or `{{ fn::stringAsset: TEXT }}`", member.key);
            report(&member.value, &format!("an asset or an archive as its member {:?}", member.key), help);
        }
    }
    members.into_iter().for_each(|member| check(&member.value, AssetRule::Allowed, diagnostics));
}

/// Returns true for a mapping with a key that [`check`] reports.
fn has_function_key(node: &Node) -> bool {
    node.as_mapping().into_iter().flatten().any(|entry| entry.key.to_ascii_lowercase().starts_with(PREFIX))
}
