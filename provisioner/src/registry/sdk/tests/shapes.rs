//! Kinds of the inputs and outputs of resources and functions, for tests that hold core types to the packages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::registry::sdk::{self, Constant, FILES, SdkResource, package_name};

/// Kind of a value.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::registry) enum Kind {
    /// Text.
    String,
    /// `true` or `false`.
    Boolean,
    /// Whole number.
    Integer,
    /// Number.
    Number,
    /// Any value.
    Any,
    /// Asset or archive.
    Asset,
    /// List of values of one kind.
    Array(Box<Kind>),
    /// Map of any keys to values of one kind.
    Map(Box<Kind>),
    /// Object type, by its name in [`PackageShapes::types`].
    Object(String),
    /// Value of one of several kinds.
    OneOf(Vec<Kind>),
}

/// Resources, functions and object types of a package, as far as core types use them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::registry) struct PackageShapes {
    name: String,
    version: String,
    /// Resources by their type token.
    pub resources: BTreeMap<String, ResourceShape>,
    /// Functions by their token.
    #[serde(default)]
    pub functions: BTreeMap<String, FunctionShape>,
    /// Object types by their name.
    #[serde(default)]
    pub types: BTreeMap<String, ObjectType>,
}

/// Inputs and outputs of a resource type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::registry) struct ResourceShape {
    /// Inputs by their name.
    pub inputs: BTreeMap<String, Kind>,
    /// Names of the inputs that a program must set.
    pub required: Vec<String>,
    /// Outputs by their name.
    pub outputs: BTreeMap<String, Kind>,
    /// True for a component that its provider constructs.
    pub remote: bool,
}

/// Arguments and results of a function.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::registry) struct FunctionShape {
    /// Arguments by their name.
    pub args: BTreeMap<String, Kind>,
    /// Names of the arguments that a call must have.
    pub required: Vec<String>,
    /// Results by their name.
    pub results: BTreeMap<String, Kind>,
}

/// Object type of inputs and outputs.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::registry) struct ObjectType {
    /// Fields by their name, with their kinds as inputs. A field that only outputs have is among them.
    pub fields: BTreeMap<String, Kind>,
    /// Names of the fields that an input must have.
    pub required: Vec<String>,
}

static PACKAGES: LazyLock<BTreeMap<&str, PackageShapes>> = LazyLock::new(|| {
    let parsed = FILES.iter().map(|file| match serde_json::from_str(file.json) {
        Ok(shapes) => (file.package, shapes),
        Err(error) => panic!("{}.json: {error}", file.package),
    });
    parsed.collect()
});

/// Returns the shapes of a package, if core types use the package.
pub(in crate::registry) fn package(name: &str) -> Option<&'static PackageShapes> {
    PACKAGES.get(name)
}

/// Returns the shape of a resource by its type token.
pub(in crate::registry) fn resource(token: &str) -> Option<&'static ResourceShape> {
    package(package_name(token))?.resources.get(token)
}

pub(in crate::registry) fn function(token: &str) -> Option<&'static FunctionShape> {
    package(package_name(token))?.functions.get(token)
}

/// Adds the names of the object types that a kind refers to, directly or through others.
fn collect_types<'p>(kind: &'p Kind, package: &'p PackageShapes, found: &mut BTreeSet<&'p str>) {
    match kind {
        Kind::Array(item) | Kind::Map(item) => collect_types(item, package, found),
        Kind::OneOf(kinds) => kinds.iter().for_each(|kind| collect_types(kind, package, found)),
        Kind::Object(name) => {
            let object = package.types.get(name).unwrap_or_else(|| panic!("{} has no {name}", package.name));
            if found.insert(name) {
                object.fields.values().for_each(|kind| collect_types(kind, package, found));
            }
        }
        Kind::String | Kind::Boolean | Kind::Integer | Kind::Number | Kind::Any | Kind::Asset => {}
    }
}

#[test]
fn files_have_the_version_provider_and_tokens_of_their_package() {
    for (name, shapes) in &*PACKAGES {
        assert_eq!(shapes.name, *name);
        assert_eq!(sdk::package(name).unwrap().version, shapes.version);
        assert!(resource(&format!("pulumi:providers:{name}")).is_some(), "{name}");
        for token in shapes.resources.keys().chain(shapes.functions.keys()) {
            assert_eq!(package_name(token), *name, "{token}");
        }
    }
}

#[test]
fn object_types_exist_and_are_used() {
    for (name, shapes) in &*PACKAGES {
        let mut found = BTreeSet::new();
        let of_resources = shapes.resources.values().flat_map(|shape| [&shape.inputs, &shape.outputs]);
        let of_functions = shapes.functions.values().flat_map(|shape| [&shape.args, &shape.results]);
        for kind in of_resources.chain(of_functions).flat_map(BTreeMap::values) {
            collect_types(kind, shapes, &mut found);
        }
        assert_eq!(found, shapes.types.keys().map(String::as_str).collect(), "{name}");
    }
}

#[test]
fn required_properties_and_additions_of_sdks_are_properties() {
    let has_all = |token: &str, properties: &BTreeMap<String, Kind>, names: &[String]| {
        names.iter().for_each(|name| assert!(properties.contains_key(name), "{token} has no {name}"));
    };
    for shapes in PACKAGES.values() {
        for (token, shape) in &shapes.resources {
            let SdkResource { secret_outputs, secret_inputs, defaults, .. } = sdk::resource(token).unwrap();
            has_all(token, &shape.inputs, &shape.required);
            has_all(token, &shape.inputs, secret_inputs);
            if !token.starts_with("pulumi:providers:") {
                has_all(token, &shape.outputs, secret_outputs);
            }
            for (name, constant) in defaults {
                let kind = match constant {
                    Constant::Boolean(_) => Kind::Boolean,
                    Constant::Text(_) => Kind::String,
                };
                assert_eq!(shape.inputs.get(name), Some(&kind), "{token}: {name}");
            }
        }
        for (token, shape) in &shapes.functions {
            has_all(token, &shape.args, &shape.required);
        }
        for (name, object) in &shapes.types {
            has_all(name, &object.fields, &object.required);
        }
    }
}

#[test]
fn shapes_have_kinds_of_inputs_outputs_arguments_and_results() {
    let bucket = resource("aws:s3/bucketCorsConfigurationV2:BucketCorsConfigurationV2").unwrap();
    assert_eq!(bucket.required, ["bucket", "corsRules"]);
    let rule = "s3/BucketCorsConfigurationV2CorsRule";
    assert_eq!(bucket.inputs["corsRules"], Kind::Array(Kind::Object(rule.to_owned()).into()));
    let rule = &package("aws").unwrap().types[rule];
    assert_eq!(rule.fields["allowedMethods"], Kind::Array(Kind::String.into()));
    assert_eq!(rule.required, ["allowedMethods", "allowedOrigins"]);
    assert_eq!(resource("aws:iam/user:User").unwrap().outputs["arn"], Kind::String);

    let chart = resource("kubernetes:helm.sh/v4:Chart").unwrap();
    assert!(chart.remote && !resource("kubernetes:helm.sh/v3:Release").unwrap().remote);
    assert_eq!(chart.inputs["values"], Kind::Map(Kind::Any.into()));
    assert_eq!(chart.inputs["valueYamlFiles"], Kind::Array(Kind::Asset.into()));
    let port = &package("kubernetes").unwrap().types["core/v1/ServicePort"];
    assert_eq!(port.fields["targetPort"], Kind::OneOf(vec![Kind::Integer, Kind::String]));

    let cluster = function("gcp:container/getCluster:getCluster").unwrap();
    assert_eq!((&cluster.args["location"], &cluster.required[..]), (&Kind::String, &["name".to_owned()][..]));
    assert_eq!(cluster.results["deletionProtection"], Kind::Boolean);
}
