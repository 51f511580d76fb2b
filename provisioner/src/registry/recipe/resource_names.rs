//! Names of a core resource and of what it belongs to, of which the names of its resources are made.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use config::tree::Node;
use config::{Resource, Stack};
use serde::Serialize;
use serde_json::{Value, json};

/// Names of a core resource and of what it belongs to.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResourceNames<'r> {
    /// Name of the stack.
    pub stack: &'r str,
    /// Name of the project.
    pub project: &'r str,
    /// Name of the environment; empty for the key of a stack.
    pub environment: &'r str,
    /// Value of `type` in server.yaml.
    pub type_name: &'r str,
    /// Name of the resource: `name`, else the key.
    pub name: &'r str,
    /// Key of the resource.
    pub key: &'r str,
    /// `config` of the stack's registrar.
    pub registrar: Option<&'r Node>,
}

impl<'r> ResourceNames<'r> {
    /// Returns the names for a resource of a stack. `type_name`: its core type.
    pub fn new(stack: &'r Stack, environment: &'r str, type_name: &'r str, resource: &'r Resource) -> Self {
        let registrar = stack.registrar.as_ref().map(|registrar| &registrar.config);
        let Resource { key, name, .. } = resource;
        Self { stack: stack.base_name(), project: &stack.project, environment, type_name, name, key, registrar }
    }

    /// Returns the resource and its environment, as messages name them.
    pub fn in_words(&self) -> String {
        let Self { key, environment, .. } = self;
        if environment.is_empty() { format!("{key:?}") } else { format!("{key:?} of env {environment:?}") }
    }

    /// Returns the name of a registered resource: `<base>--<environment>`, without an environment `<base>`.
    pub fn qualified(&self, base: &str) -> String {
        if self.environment.is_empty() { base.to_owned() } else { format!("{base}--{}", self.environment) }
    }

    /// Returns the name of the provider of all other resources (docs/spec/simple-container.md#7.2).
    pub fn provider_name(&self) -> String {
        let Self { stack, environment, type_name, name, .. } = self;
        self.qualified(&format!("{stack}--{type_name}--{name}--{environment}--provider"))
    }

    /// Returns the tags of every resource on AWS that has tags.
    pub fn tags(&self) -> Value {
        json!({ "simple-container.com/stack": self.stack, "simple-container.com/env": self.environment })
    }

    /// Returns the labels of every resource on Google Cloud that has labels.
    pub fn labels(&self) -> Value {
        json!({ "simple_container_com_stack": self.stack, "simple_container_com_env": self.environment })
    }
}

/// Shortens a text that has more than `length` characters to its two ends with a separator between them
/// (docs/spec/simple-container.md#7.2). The ends have `length` characters together, so the separator makes the result
/// longer.
pub fn trim_middle(text: &str, length: usize, separator: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= length {
        return text.to_owned();
    }
    let (head, tail) = (&characters[..length / 2], &characters[characters.len() - length / 2..]);
    head.iter().chain(&separator.chars().collect::<Vec<_>>()).chain(tail).collect()
}

/// Shortens a text that has more than `length` bytes: its beginning, a dash, and four digits of its hash
/// (docs/spec/simple-container.md#7.2).
pub fn trim_hash(text: &str, length: usize) -> String {
    if text.len() <= length {
        return text.to_owned();
    }
    // FNV-1a of 32 bits, of which 16 are shown.
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let head = &text[..text.floor_char_boundary(length.saturating_sub(5))];
    format!("{}-{:04x}", head.trim_end_matches('-'), hash & 0xffff)
}

/// Returns the text that base64 stands for; `None` if it stands for none.
pub fn decode_base64(text: &str) -> Option<String> {
    String::from_utf8(BASE64_STANDARD.decode(text).ok()?).ok()
}

/// Returns JSON in the format of Go's encoder: compact, and with escapes for the characters that HTML gives a meaning.
pub fn go_json(value: &impl Serialize) -> String {
    let text = serde_json::to_value(value).unwrap_or_default().to_string();
    // These characters can only be in strings.
    [("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u{2028}", "\\u2028"), ("\u{2029}", "\\u2029")]
        .into_iter()
        .fold(text, |text, (from, to)| text.replace(from, to))
}
