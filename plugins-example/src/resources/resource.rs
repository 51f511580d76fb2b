//! The trait of a resource type, with the arguments and results of its methods.
//!
//! Excluded: implementations. Each resource type has its own file, and [`super`] lists them.

use pulumi_proto::property::{PropertyMap, PropertyValue};
use tonic::Status;

use crate::property::Property;
use crate::root::CallContext;

/// A resource type. Its calls may block, because each runs on a thread of its own.
pub(crate) trait Resource: Send + Sync {
    /// Returns the type's token, `package:module:Name`.
    fn token(&self) -> &'static str;
    /// Returns the description for the schema: sentences, in Markdown.
    fn description(&self) -> &'static str;
    /// Returns the table of inputs.
    fn inputs(&self) -> &'static [Property];
    /// Returns the table of outputs that are not inputs. Every input is an output, too.
    fn outputs(&self) -> &'static [Property];
    /// Returns the input that locates the resource, if two resources cannot share one location.
    fn location(&self) -> Option<&'static str> {
        None
    }
    /// Returns the outputs that programs see as environment variables: the suffix of the variable's name, and the
    /// output.
    fn variables(&self) -> &'static [(&'static str, &'static str)];

    /// Returns the input without secret wrappers, normalized, or the reason why it is invalid. The value has the type
    /// that the table declares, or is unknown.
    fn check(&self, name: &str, value: &PropertyValue) -> Result<PropertyValue, String>;

    /// Returns the outputs that Create (`old` is `None`) or Update would return, with unknowns where they cannot be
    /// predicted. Has no effects.
    fn preview(&self, news: &PropertyMap, old: Option<&State>) -> PropertyMap;

    /// Creates the resource.
    ///
    /// # Errors
    /// ALREADY_EXISTS if something else is in its place.
    fn create(&self, ctx: &CallContext, inputs: &PropertyMap) -> Result<Created, Status>;

    /// Reads the actual state; `None` if the resource does not exist. A `known` without outputs means an import.
    fn read(&self, ctx: &CallContext, id: &str, known: &State) -> Result<Option<Live>, Status>;

    /// Changes the resource to match the inputs.
    fn update(&self, ctx: &CallContext, id: &str, old: &State, news: &PropertyMap) -> Result<Updated, Status>;

    /// Deletes the resource. Succeeds if it does not exist.
    fn delete(&self, ctx: &CallContext, id: &str) -> Result<(), Status>;
}

/// The recorded state of a resource.
pub(crate) struct State {
    pub(crate) inputs: PropertyMap,
    pub(crate) outputs: PropertyMap,
}

/// The result of Create.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) id: String,
    pub(crate) outputs: PropertyMap,
}

/// The result of Read: the actual state, with the inputs that would produce it.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) id: String,
    pub(crate) inputs: PropertyMap,
    pub(crate) outputs: PropertyMap,
}

/// The result of Update.
#[derive(Debug)]
pub(crate) struct Updated {
    pub(crate) outputs: PropertyMap,
    /// A message for the user, without property values.
    pub(crate) notice: Option<&'static str>,
}
