//! The table of types that stacks are read against: a value that the caller builds.
//!
//! Enters: a `serde` type per core type ([`CoreConfig`]) and per kind of template ([`TemplateConfig`]). Leaves: a
//! [`TypeTable`], which checks a `config`, lists the outputs of a type and has its JSON Schema. Never here: a type of the
//! product, and what a core type registers.

mod core_type;
mod decode;
mod table;
mod template_type;

pub use core_type::{CoreConfig, CoreType};
pub use decode::{Decoded, TextHandle, decode};
pub use table::TypeTable;
pub use template_type::{TemplateConfig, TemplateConfigName, TemplateField, TemplateType, TemplateValue};
