//! Holes: parts of inputs whose values are known only once other nodes of the recipe are registered.

use std::collections::BTreeMap;

use config::types::TextHandle;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Value, json};

use super::resolved::{ResolvedValue, distinct, secret_as_a_whole};

/// The only key of the object that stands for a hole in JSON. Texts of users never become JSON, so none can look like it.
const HOLE: &str = "$sc::Hole";

/// The only key of the object that stands for a secret value in JSON.
const SECRET: &str = "$sc::Secret";

/// Marks a value as secret, as a whole.
pub fn secret(value: Value) -> Value {
    json!({ SECRET: value })
}

/// Node of a recipe, for references to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Handle(pub(super) usize);

impl Handle {
    /// Returns the id of the resource.
    pub fn id(self) -> Hole {
        Hole { source: HoleSource::Id(self), secret: false }
    }

    /// Returns a reference to the resource, as a value.
    pub fn reference(self) -> Hole {
        Hole { source: HoleSource::Reference(self), secret: false }
    }

    /// Returns an output of the resource, or a part of the function's result, at a path of names and indices that are
    /// joined by dots.
    pub fn out(self, path: &str) -> Hole {
        Hole { source: HoleSource::Output(self, path.to_owned()), secret: false }
    }
}

/// Value that is known later. It serializes to an object that a recipe reads back.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Hole {
    pub(super) source: HoleSource,
    pub(super) secret: bool,
}

/// Source of the value of a hole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum HoleSource {
    Id(Handle),
    Output(Handle, String),
    Reference(Handle),
    /// Index of a value of the recipe, which is known already.
    Value(usize),
    /// Index of a text of the recipe, which is made of other holes.
    Text(usize),
    /// Text in a map of texts, by its key.
    Member(Box<HoleSource>, String),
}

impl Hole {
    /// Marks the value as secret.
    pub fn secret(self) -> Self {
        Self { secret: true, ..self }
    }

    /// Returns a text of a map of texts, by any key; an empty one if it is missing.
    pub fn member(&self, key: &str) -> Self {
        let source = HoleSource::Member(Box::new(self.source.clone()), key.to_owned());
        Self { source, secret: self.secret }
    }
}

impl Serialize for Hole {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(HOLE, &(&self.source, self.secret))?;
        map.end()
    }
}

/// Treatment of null members of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nulls {
    /// Leaves them out, as SDKs do in inputs.
    LeaveOut,
    /// Keeps them, as SDKs do in outputs of components.
    Keep,
}

/// Inputs with holes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Template {
    Known(PropertyValue),
    List(Vec<Template>),
    Map(BTreeMap<String, Template>),
    Secret(Box<Template>),
    Hole(Hole),
}

impl Template {
    /// Reads JSON, in which objects stand for holes. `text` returns the template of a text of the `config`.
    pub(super) fn read(value: &Value, nulls: Nulls, text: &mut dyn FnMut(TextHandle) -> Self) -> Self {
        match value {
            Value::Null => Self::Known(PropertyValue::Null),
            Value::Bool(value) => Self::Known((*value).into()),
            Value::Number(value) => Self::Known(PropertyValue::Number(value.as_f64().unwrap_or_default())),
            Value::String(value) => Self::Known(value.as_str().into()),
            Value::Array(items) => Self::List(items.iter().map(|item| Self::read(item, nulls, text)).collect()),
            Value::Object(members) => {
                if let Some((source, secret)) = members.get(HOLE).and_then(|hole| Deserialize::deserialize(hole).ok()) {
                    return Self::Hole(Hole { source, secret });
                }
                if let Some(handle) = TextHandle::from_json(value) {
                    return text(handle);
                }
                if let Some(value) = members.get(SECRET).filter(|_| members.len() == 1) {
                    return Self::Secret(Box::new(Self::read(value, nulls, text)));
                }
                let members = members.iter().map(|(key, value)| (key.clone(), Self::read(value, nulls, text)));
                Self::Map(
                    members
                        .filter(|(_, value)| nulls == Nulls::Keep || *value != Self::Known(PropertyValue::Null))
                        .collect(),
                )
            }
        }
    }

    /// Adds the holes of the template.
    pub(super) fn collect_holes<'t>(&'t self, holes: &mut Vec<&'t Hole>) {
        match self {
            Self::Known(_) => {}
            Self::List(items) => items.iter().for_each(|item| item.collect_holes(holes)),
            Self::Map(members) => members.values().for_each(|member| member.collect_holes(holes)),
            Self::Secret(value) => value.collect_holes(holes),
            Self::Hole(hole) => holes.push(hole),
        }
    }

    /// Fills the holes.
    ///
    /// # Errors
    /// Returns the first error of `resolve`.
    pub(super) fn fill(
        &self,
        resolve: &dyn Fn(&Hole) -> Result<ResolvedValue, String>,
    ) -> Result<ResolvedValue, String> {
        let mut dependencies = Vec::new();
        let value = self.fill_value(resolve, &mut dependencies)?;
        Ok(ResolvedValue { value, dependencies: distinct(dependencies) })
    }

    fn fill_value(
        &self,
        resolve: &dyn Fn(&Hole) -> Result<ResolvedValue, String>,
        dependencies: &mut Vec<Urn>,
    ) -> Result<PropertyValue, String> {
        Ok(match self {
            Self::Known(value) => value.clone(),
            Self::List(items) => {
                let items = items.iter().map(|item| item.fill_value(resolve, dependencies));
                PropertyValue::List(items.collect::<Result<_, _>>()?)
            }
            Self::Map(members) => {
                let mut filled = PropertyMap::new();
                for (key, member) in members {
                    let value = member.fill_value(resolve, dependencies)?;
                    if value != PropertyValue::Null {
                        filled.insert(key.clone(), value);
                    }
                }
                PropertyValue::Map(filled)
            }
            Self::Secret(value) => secret_as_a_whole(value.fill_value(resolve, dependencies)?),
            Self::Hole(hole) => {
                let resolved = resolve(hole)?;
                dependencies.extend(resolved.dependencies);
                resolved.value
            }
        })
    }
}
