//! Types of templates. Client stacks are deployed from templates; a template registers no resource.

use schemars::{JsonSchema, Schema, schema_for};
use serde::de::DeserializeOwned;

use super::decode::{Decoded, decode};
use super::text_handle::TextHandle;
use crate::diagnostics::Diagnostic;
use crate::tree::Node;

/// Typed `config` of a kind of template.
pub trait TemplateConfig: DeserializeOwned + JsonSchema {
    /// Provider in Simple Container's schemas.
    const PROVIDER: &'static str;
    /// Name in Simple Container's schemas.
    const NAME: &'static str;

    /// Returns the fields by name, in the order in which Simple Container writes them.
    fn fields(&self) -> Vec<(&'static str, TemplateField)>;
}

/// A field of a typed `config`.
#[derive(Clone, Copy, Debug)]
pub enum TemplateField {
    /// A text; an absent one is written as an empty text.
    Text(Option<TextHandle>),
    /// A text that is omitted if it is absent.
    Optional(Option<TextHandle>),
    /// A boolean that is omitted if it is absent.
    Boolean(Option<bool>),
}

/// Value of a field. Has no `Debug`, because the value may be secret.
pub enum TemplateValue {
    /// A text.
    Text(String),
    /// A boolean.
    Boolean(bool),
}

/// The fields of a template in the order in which Simple Container writes them.
pub(crate) type TemplateFields = Vec<(&'static str, TemplateValue)>;

/// Identifies a kind of template `config` in Simple Container's schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplateConfigName {
    /// Provider in Simple Container's schemas.
    pub provider: &'static str,
    /// Name in Simple Container's schemas.
    pub name: &'static str,
}

/// A type of templates as an entry of a [`TypeTable`](super::TypeTable).
#[derive(Clone, Copy, Debug)]
pub struct TemplateType {
    name: &'static str,
    config: TemplateConfigName,
    schema: fn() -> Schema,
    fields: fn(&Node, &mut Vec<Diagnostic>) -> Option<TemplateFields>,
}

impl TemplateType {
    /// Returns the entry for a `type` in server.yaml with a typed `config`.
    pub fn of<C: TemplateConfig>(name: &'static str) -> Self {
        Self {
            name,
            config: TemplateConfigName { provider: C::PROVIDER, name: C::NAME },
            schema: || schema_for!(C),
            fields: |node, diagnostics| decode::<C>(node, diagnostics).map(|decoded| values(&decoded)),
        }
    }

    /// Returns the value of `type` in server.yaml.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the kind of `config`. Several types can share one kind.
    pub fn config(&self) -> TemplateConfigName {
        self.config
    }

    /// Returns the JSON Schema of `config`.
    pub fn schema(&self) -> Schema {
        (self.schema)()
    }

    /// Decodes the fields of a `config`; `None` if it has errors, which are added to `diagnostics`.
    pub(crate) fn fields(&self, config: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<TemplateFields> {
        (self.fields)(config, diagnostics)
    }
}

fn values<C: TemplateConfig>(decoded: &Decoded<C>) -> TemplateFields {
    let text = |handle| TemplateValue::Text(decoded.text(handle).0.known().unwrap_or_default());
    let value = |field| match field {
        TemplateField::Text(None) => Some(TemplateValue::Text(String::new())),
        TemplateField::Text(Some(handle)) | TemplateField::Optional(Some(handle)) => Some(text(handle)),
        TemplateField::Boolean(value) => value.map(TemplateValue::Boolean),
        TemplateField::Optional(None) => None,
    };
    let fields = decoded.config.fields().into_iter();
    fields.filter_map(|(key, field)| Some((key, value(field)?))).collect()
}
