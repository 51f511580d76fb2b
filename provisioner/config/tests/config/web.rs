//! Type of templates that exists only in tests.

use config::types::{TemplateConfig, TemplateField, TemplateType, TextHandle};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Web {
    region: Option<TextHandle>,
}

impl TemplateConfig for Web {
    const PROVIDER: &'static str = "test";
    const NAME: &'static str = "Web";

    fn fields(&self) -> Vec<(&'static str, TemplateField)> {
        vec![("region", TemplateField::Text(self.region))]
    }
}

/// Returns types of templates with these names.
pub(crate) fn templates<const N: usize>(names: [&'static str; N]) -> [TemplateType; N] {
    names.map(TemplateType::of::<Web>)
}
