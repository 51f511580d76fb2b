//! Recipes of the core types, and their table. Another type is a `config` in [`super::types`], a function here, and a line of
//! the table.

mod aws;
mod caddy;
mod cloudflare;
mod gcp;
mod gcp_data;
mod gcp_registry;
mod gke;
mod helm;
mod keys;
mod kubernetes;
mod mongodb;
mod packages;
mod random;

use config::ProvisionedKey;
use config::types::TypeTable;

use super::recipe::{CoreTypeRecipe, Package, Place, RecipeTable};
use super::templates;
use packages::{ATLAS, AWS, CLOUDFLARE, GCP, KUBERNETES, RANDOM};

/// Returns the recipes of all core types.
pub fn core_types() -> RecipeTable {
    RecipeTable::new([
        CoreTypeRecipe::of(&[AWS], aws::s3_bucket).with_optional(&[CLOUDFLARE]),
        CoreTypeRecipe::of(&[AWS], aws::ecr_repository),
        CoreTypeRecipe::of(&[AWS], aws::rds_postgres),
        CoreTypeRecipe::of(&[AWS], aws::rds_mysql),
        CoreTypeRecipe::of(&[GCP], gcp::gcp_bucket),
        CoreTypeRecipe::of(&[GCP, RANDOM], gcp_data::cloud_sql_postgres),
        CoreTypeRecipe::of(&[GCP], gcp_data::redis),
        CoreTypeRecipe::of(&[GCP], gcp_data::pubsub),
        CoreTypeRecipe::of(&[GCP], gcp_registry::artifact_registry).with_optional(&[CLOUDFLARE]),
        CoreTypeRecipe::of(&[KUBERNETES], helm::postgres_operator),
        CoreTypeRecipe::of(&[KUBERNETES, RANDOM], helm::mongodb_operator),
        CoreTypeRecipe::of(&[KUBERNETES], helm::rabbitmq_operator),
        CoreTypeRecipe::of(&[KUBERNETES], helm::redis_operator),
        CoreTypeRecipe::of(&[ATLAS, RANDOM], mongodb::mongodb_atlas).with_optional(&[AWS]),
        CoreTypeRecipe::of(&[KUBERNETES], caddy::kubernetes_caddy),
        CoreTypeRecipe::of(&[GCP], gke::gke_autopilot).with_optional(&[KUBERNETES]),
        CoreTypeRecipe::of(&[CLOUDFLARE], cloudflare::registrar).for_registrars(),
    ])
}

/// Returns the recipes of the keys that secrets providers create (docs/spec/simple-container.md#6.4).
pub fn keys() -> RecipeTable {
    RecipeTable::new([CoreTypeRecipe::of(&[AWS], keys::aws_kms), CoreTypeRecipe::of(&[GCP], keys::gcp_kms)])
}

/// Returns the packages that create a key.
pub fn key_packages(key: &ProvisionedKey) -> Vec<Package> {
    let place = Place { stack: "", project: "", environment: "", type_name: key.type_name, name: "", registrar: None };
    keys().get(key.type_name).map(|recipe| recipe.packages_and_names(&key.config, place).0).unwrap_or_default()
}

/// Returns the table of all core types, types of keys and types of templates, for reading files.
pub fn built_in_types() -> TypeTable {
    core_types().types().with_keys(keys().core_types()).with_templates(templates::all())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use config::diagnostics::SourceFiles;
    use config::{LoadedStacks, ProcessContext, Profile, Repository, ResourceImplementation, Stack, Workspace};
    use serde_json::Value;

    use super::*;
    use crate::registry::recipe::tests::checker;

    /// Reads a server.yaml; `None` if it has errors.
    fn read(server: &str) -> Option<Stack> {
        let folder = tempfile::tempdir().unwrap();
        let stack = folder.path().join(".sc/stacks/s");
        std::fs::create_dir_all(&stack).unwrap();
        std::fs::write(folder.path().join(".sc/cfg.default.yaml"), "projectName: reef").unwrap();
        std::fs::write(stack.join("server.yaml"), server).unwrap();
        let now = "2024-01-02T03:04:05Z".parse().unwrap();
        let process_context = ProcessContext { environment: BTreeMap::new(), now, time_zone: None, account: None };
        let repository = Repository { root: folder.path().to_owned(), git: None };
        let (mut sources, types) = (SourceFiles::default(), built_in_types());
        let profile = Profile::read("default", &repository, &process_context, &mut sources).unwrap();
        let workspace = Workspace {
            repository: &repository,
            profile: &profile,
            stacks_dir: None,
            process_context: &process_context,
            types: &types,
        };
        let LoadedStacks { mut stacks, .. } = workspace.load(&["s".to_owned()], &mut sources);
        stacks.pop()
    }

    #[test]
    fn recipes_hold_to_the_packages() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/simple-container/registrations");
        let mut checked = BTreeSet::new();
        for file in ["buckets.json", "cases.json"] {
            let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(folder.join(file)).unwrap()).unwrap();
            for case in cases {
                let Some(stack) = read(case["server"].as_str().unwrap()) else { continue };
                if let Some(key) = stack.provisioner.secrets_provider.provisioned_key() {
                    let (recipes, type_name) = (keys(), key.type_name);
                    let place = Place {
                        stack: "s",
                        project: "reef",
                        environment: "",
                        type_name,
                        name: "reef-s-sc",
                        registrar: None,
                    };
                    recipes.get(type_name).unwrap().inspect(&key.config, place, &mut |mut recipe| {
                        assert_eq!(checker::mistakes(&mut recipe), [""; 0], "{}", case["name"]);
                        checked.insert(type_name.to_owned());
                    });
                }
                for (environment, resource) in stack.declarations() {
                    let ResourceImplementation::Core { type_name } = &resource.implementation else { continue };
                    let recipes = core_types();
                    let Some(recipe) = recipes.get(type_name) else { continue };
                    let place = Place::new(&stack, environment, type_name, resource);
                    recipe.inspect(&resource.config, place, &mut |mut recipe| {
                        assert_eq!(checker::mistakes(&mut recipe), [""; 0], "{}", case["name"]);
                        checked.insert(type_name.clone());
                    });
                }
            }
        }
        let names: BTreeSet<String> = core_types().names().chain(keys().names()).map(str::to_owned).collect();
        assert_eq!(checked, names);
    }

    #[test]
    fn packages_of_recipes_have_an_sdk() {
        for recipes in [core_types(), keys()] {
            for name in recipes.names() {
                let mut packages = recipes.get(name).unwrap().all_packages();
                assert!(packages.all(|package| package.version().is_some()), "{name}");
            }
        }
    }
}
