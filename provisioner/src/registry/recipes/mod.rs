//! Recipes of the core types, and their table. A new type needs a `config` in [`super::types`], a function here, and a line of
//! the table.

mod aws;
mod aws_sqs;
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

use config::ProvisionedKey;
use config::types::TypeTable;

use super::packages::{ATLAS, AWS, CLOUDFLARE, CorePackage, GCP, KUBERNETES, Package, RANDOM};
use super::recipe::{CoreTypeRecipe, RecipeTable, ResourceNames};
use super::templates;

/// Resource types of Simple Container that have no recipe (docs/spec/simple-container.md#7.1).
const UNSUPPORTED: [&str; 2] = ["aws-cloudtrail-security-alerts", "gcp-docker-image-push"];

/// The recipes of all core types.
pub fn core_types() -> RecipeTable {
    RecipeTable::new([
        CoreTypeRecipe::of(&[AWS], aws::s3_bucket).with_optional(&[CLOUDFLARE]),
        CoreTypeRecipe::of(&[AWS], aws::ecr_repository),
        CoreTypeRecipe::of(&[AWS], aws::rds_postgres),
        CoreTypeRecipe::of(&[AWS], aws::rds_mysql),
        CoreTypeRecipe::of(&[AWS], aws_sqs::aws_sqs_queue),
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

/// Returns the package with a name; `None` if no recipe uses it.
pub fn package(name: &str) -> Option<CorePackage> {
    let recipes = [core_types(), keys()];
    recipes.iter().flat_map(RecipeTable::packages).find(|package| package.name == name).and_then(CorePackage::of)
}

/// Returns the packages that create a key.
pub fn key_packages(key: &ProvisionedKey) -> Vec<Package> {
    let names = ResourceNames {
        stack: "",
        project: "",
        environment: "",
        type_name: key.type_name,
        name: "",
        key: "",
        registrar: None,
    };
    keys().get(key.type_name).map(|recipe| recipe.packages_and_names(&key.config, names).0).unwrap_or_default()
}

/// Returns the table of all core types, types of keys and types of templates, for reading files.
pub fn built_in_types() -> TypeTable {
    let supported = core_types().types().with_keys(keys().core_types());
    supported.with_unsupported(UNSUPPORTED).with_templates(templates::all())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use config::diagnostics::SourceFiles;
    use config::types::TypeOrigin;
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

    /// Returns the recordings of the Go program.
    fn recorded_cases() -> impl Iterator<Item = Value> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/simple-container/registrations");
        let text = |file| std::fs::read_to_string(folder.join(file)).unwrap();
        let texts = ["buckets.json", "cases.json"].map(text);
        texts.into_iter().flat_map(|text| serde_json::from_str::<Vec<Value>>(&text).unwrap())
    }

    /// Holds the recipes of a server.yaml to the packages. Returns their types; none if the file has errors.
    fn check(server: &str, case: &str) -> BTreeSet<String> {
        let mut checked = BTreeSet::new();
        let Some(stack) = read(server) else { return checked };
        let mut check = |recipe: &CoreTypeRecipe, config, names: ResourceNames<'_>| {
            recipe.inspect(config, names, &mut |mut recipe| {
                assert_eq!(checker::mistakes(&mut recipe), [""; 0], "{case}");
                checked.insert(names.type_name.to_owned());
            });
        };
        if let Some(key) = stack.provisioner.secrets_provider.provisioned_key() {
            let (stack, project, name) = ("s", "reef", "reef-s-sc");
            let names = ResourceNames {
                stack,
                project,
                environment: "",
                type_name: key.type_name,
                name,
                key: name,
                registrar: None,
            };
            check(keys().get(key.type_name).unwrap(), &key.config, names);
        }
        let recipes = core_types();
        for (environment, resource) in stack.declarations() {
            let ResourceImplementation::Core { type_name } = &resource.implementation else { continue };
            let Some(recipe) = recipes.get(type_name) else { continue };
            check(recipe, &resource.config, ResourceNames::new(&stack, environment, type_name, resource));
        }
        checked
    }

    /// Shows: architecture.md#recipes-of-core-types "is caught by a test that holds all recipes to the data about the
    ///   SDKs"
    /// Shows: architecture.md#recipes-of-core-types "Tests compare the former with recordings of Simple Container, all
    ///   of them; an own type has a written case instead"
    #[test]
    fn recipes_hold_to_the_packages() {
        let (mut of_simple_container, mut own) = (BTreeSet::new(), BTreeSet::new());
        for core_type in core_types().core_types().chain(keys().core_types()) {
            match core_type.origin() {
                TypeOrigin::SimpleContainer(_) => of_simple_container.insert(core_type.name().to_owned()),
                TypeOrigin::Own => own.insert(core_type.name()),
            };
        }
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let recorded = recorded_cases().flat_map(|case| check(&text(&case["server"]), &text(&case["name"])));
        assert_eq!(
            recorded.collect::<BTreeSet<_>>(),
            of_simple_container,
            "recordings use all types of Simple Container"
        );
        for own in own {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/own_types/{own}.yaml"));
            let server = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert!(check(&server, own).contains(own), "{} uses the type", file.display());
        }
    }

    /// Shows: plugins.md#packages-of-core-types "The program has the versions, which are those of Simple Container"
    #[test]
    fn packages_of_recipes_have_the_versions_of_their_sdks() {
        let recipes = [core_types(), keys()];
        let names: BTreeSet<&str> =
            recipes.iter().flat_map(RecipeTable::packages).map(|package| package.name).collect();
        let page = include_str!("../../../../docs/plugins.md");
        for name in names {
            let package = package(name).unwrap_or_else(|| panic!("{name} has no SDK"));
            let row = format!("\n| `{name}` | {} | ", package.version);
            assert!(page.contains(&row), "docs/plugins.md has the row {row:?}");
        }
        assert_eq!([package("docker"), package("datadog")], [None, None]);
    }

    /// Shows: plugins.md#packages-of-core-types "The program has the versions, which are those of Simple Container"
    #[test]
    fn recorded_registrations_have_the_versions_of_the_packages() {
        let mut seen = BTreeSet::new();
        for case in recorded_cases() {
            for registration in case["registrations"].as_array().into_iter().flatten() {
                let token = registration["type"].as_str().unwrap();
                let token = token.strip_prefix("pulumi:providers:").unwrap_or(token);
                let Some(package) = package(token.split(':').next().unwrap()) else { continue };
                if let Some(version) = registration["version"].as_str().filter(|version| !version.is_empty()) {
                    assert_eq!(version, package.version, "{token}");
                    seen.insert(package.name);
                }
            }
        }
        let expected = ["aws", "cloudflare", "gcp", "kubernetes", "mongodbatlas", "random"];
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
    }
}
