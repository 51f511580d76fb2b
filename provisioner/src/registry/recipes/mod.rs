//! Recipes of the core types, and their table. Another type is a `config` in [`super::types`], a function here, and a line of
//! the table.

mod aws;
mod gcp;

use config::types::TypeTable;

use super::recipe::{CoreTypeRecipe, RecipeTable};
use super::types::templates;

/// Returns the recipes of all core types.
pub fn core_types() -> RecipeTable {
    RecipeTable::new([
        CoreTypeRecipe::of(&[aws::AWS], aws::s3_bucket),
        CoreTypeRecipe::of(&[aws::AWS], aws::ecr_repository),
        CoreTypeRecipe::of(&[aws::AWS], aws::rds_postgres),
        CoreTypeRecipe::of(&[aws::AWS], aws::rds_mysql),
        CoreTypeRecipe::of(&[gcp::GCP], gcp::gcp_bucket),
    ])
}

/// Returns the table of all core types and types of templates, for reading files.
pub fn built_in_types() -> TypeTable {
    core_types().types().with_templates(templates::all())
}
