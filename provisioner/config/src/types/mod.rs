//! Table of the known core types and types of templates, which the caller builds.
//!
//! Input: a `serde` type per core type ([`CoreConfig`]) and per kind of template ([`TemplateConfig`]). Output: a
//! [`TypeTable`], which checks a `config`, lists the outputs of a type and returns its JSON Schema. Excluded: concrete
//! core types, and the registration of their resources.

mod accounts;
mod core_type;
mod decode;
mod free_value;
mod limits;
mod table;
mod template_type;
mod text_handle;

pub use core_type::{CoreConfig, CoreType, RequiredKey, TypeOrigin};
pub use decode::{Decoded, decode};
pub use free_value::FreeValue;
pub use table::TypeTable;
pub(crate) use table::{CICD_TYPES, SECRETS_TYPES};
pub use template_type::{TemplateConfig, TemplateConfigName, TemplateField, TemplateType, TemplateValue};
pub use text_handle::TextHandle;
