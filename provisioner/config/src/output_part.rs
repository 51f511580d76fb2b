//! Outputs of resources and stacks, and the parts of them at paths of names and indices.

use pulumi_proto::property::PropertyValue;

/// Output of a resource or a stack, or a part of it.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputPart {
    /// The value, which may be null or unknown.
    Value(PropertyValue),
    /// The output does not exist.
    Missing {
        /// True if the value in which it is missing is secret.
        is_secret: bool,
        /// Number of steps of the path from the first one without a value on.
        steps: usize,
    },
}

impl OutputPart {
    /// Marks the output as secret. An unknown value is not marked.
    #[must_use]
    pub fn secret(self) -> Self {
        match self {
            Self::Value(PropertyValue::Unknown(_)) => self,
            Self::Value(value) => Self::Value(PropertyValue::secret(value)),
            Self::Missing { steps, .. } => Self::Missing { is_secret: true, steps },
        }
    }

    /// Replaces a missing output by an unknown value.
    #[must_use]
    pub fn or_unknown(self) -> Self {
        match self {
            Self::Value(_) => self,
            Self::Missing { .. } => Self::Value(PropertyValue::UNKNOWN),
        }
    }

    /// Returns the value, with the default in the place of a missing or null output. `None` if the output is missing and
    /// there is no default.
    pub fn or_default(self, default: Option<&str>) -> Option<PropertyValue> {
        match (self, default) {
            (Self::Value(value), Some(default)) => Some(null_or(value, default)),
            (Self::Value(value), None) => Some(value),
            (Self::Missing { is_secret: true, .. }, default) => Some(PropertyValue::secret(default?.into())),
            (Self::Missing { is_secret: false, .. }, default) => Some(default?.into()),
        }
    }
}

/// Returns the value, or the default if it is null. The default of a secret null is secret.
fn null_or(value: PropertyValue, default: &str) -> PropertyValue {
    match value {
        PropertyValue::Null => default.into(),
        PropertyValue::Secret(secret) => PropertyValue::secret(null_or(secret.into_exposed(), default)),
        value => value,
    }
}

/// Returns whether an output has a part at a path of names and indices. Parts of an unknown may exist.
pub fn has_output(value: &PropertyValue, path: &[String]) -> bool {
    matches!(output_at(Some(value), path), OutputPart::Value(_))
}

/// Returns the part of an output at a path of names and indices. A part of a secret is secret; a part of an unknown is
/// unknown.
pub fn output_at(value: Option<&PropertyValue>, path: &[String]) -> OutputPart {
    match value {
        None => OutputPart::Missing { is_secret: false, steps: path.len() + 1 },
        // A part of null is missing with it.
        Some(PropertyValue::Null) if !path.is_empty() => {
            OutputPart::Missing { is_secret: false, steps: path.len() + 1 }
        }
        Some(PropertyValue::Secret(secret)) => output_at(Some(secret.expose()), path).secret(),
        Some(PropertyValue::Output(output)) => match (&output.value, output.secret) {
            (None, _) => OutputPart::Value(PropertyValue::UNKNOWN),
            (Some(value), false) => output_at(Some(value), path),
            (Some(value), true) => output_at(Some(value), path).secret(),
        },
        Some(PropertyValue::Unknown(_)) => OutputPart::Value(PropertyValue::UNKNOWN),
        Some(value) => match (path.split_first(), value) {
            (None, value) => OutputPart::Value(value.clone()),
            (Some((key, rest)), PropertyValue::Map(map)) => output_at(map.get(key), rest),
            (Some((index, rest)), PropertyValue::List(items)) => {
                output_at(index.parse::<usize>().ok().and_then(|index| items.get(index)), rest)
            }
            (Some(_), _) => OutputPart::Missing { is_secret: false, steps: path.len() },
        },
    }
}
