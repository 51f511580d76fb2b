//! Checker: holds recipes to the packages, by the kinds of inputs and outputs in the data about their SDKs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use pulumi_proto::property::PropertyValue;
use serde_json::Value;

use crate::registry::recipe::graph::Recipe;
use crate::registry::recipe::hole::{Handle, HoleSource, Template};
use crate::registry::recipe::node::{Node, NodeKind};
use crate::registry::recipe::resolved::ResolvedValue;
use crate::registry::sdk::tests::shapes::{self, Kind, PackageShapes};

/// Types without a class in an SDK.
static WITHOUT_CLASS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/tests/interop_clouds/core_types.json");
    let listed: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let packages = listed["packages"].as_object().unwrap().values();
    let tokens = packages.flat_map(|package| package["withoutClass"].as_array().into_iter().flatten());
    tokens.map(|token| token.as_str().unwrap().to_owned()).collect()
});

/// Returns the mistakes of a recipe, with the parts that it adds once values are known.
pub(in crate::registry) fn mistakes(recipe: &mut Recipe<'_>) -> Vec<String> {
    let mut mistakes = Vec::new();
    while let Some(part) = recipe.continuations.pop() {
        let check = Check { recipe, subject: "a continuation" };
        let kinds: Result<Vec<Kind>, String> = part.values.iter().map(|value| check.kind_of(&value.source)).collect();
        match kinds {
            Ok(kinds) => {
                let samples = kinds.iter().map(|kind| ResolvedValue::known(sample(kind)));
                (part.build)(&samples.collect::<Vec<_>>(), recipe);
            }
            Err(mistake) => mistakes.push(mistake),
        }
    }
    for node in &recipe.nodes {
        let subject = format!("{} {}", node.token, node.name);
        mistakes.extend(Check { recipe, subject: &subject }.node(node));
    }
    let check = Check { recipe, subject: "an export" };
    let exported = recipe.exports.iter().chain(&recipe.outputs);
    mistakes.extend(exported.filter_map(|(name, value)| check.value(name, value, &Kind::Any, None).err()));
    mistakes
}

fn sample(kind: &Kind) -> PropertyValue {
    match kind {
        Kind::Array(item) => vec![sample(item), sample(item)].into(),
        Kind::Integer | Kind::Number => PropertyValue::Number(7.0),
        Kind::Boolean => true.into(),
        _ => "sample".into(),
    }
}

/// Check of a node.
struct Check<'c, 'r> {
    recipe: &'c Recipe<'r>,
    subject: &'c str,
}

impl Check<'_, '_> {
    fn node(&self, node: &Node) -> Vec<String> {
        let (kinds, required) = match node.kind {
            NodeKind::Function => match shapes::function(&node.token) {
                Some(shape) => (&shape.args, &shape.required),
                None => return vec![format!("there is no function {}", node.token)],
            },
            NodeKind::Provider | NodeKind::Resource | NodeKind::RemoteComponent => {
                match shapes::resource(&node.token) {
                    Some(shape) => (&shape.inputs, &shape.required),
                    None => return self.custom_resource(node),
                }
            }
            NodeKind::Read => match shapes::resource(&node.token) {
                Some(_) => return Vec::new(),
                None => return vec![format!("there is no type {}", node.token)],
            },
            NodeKind::ComponentOutputs => {
                let outputs = node.templates.iter();
                return outputs.filter_map(|(name, value)| self.value(name, value, &Kind::Any, None).err()).collect();
            }
            NodeKind::Component | NodeKind::GoogleApi => return Vec::new(),
        };
        let package = node.package.and_then(|package| shapes::package(package.name));
        let mut mistakes = self.members(node.templates.iter().map(|(name, value)| (name, value)), kinds, package);
        let is_set = |name: &String| node.templates.iter().any(|(set, _)| set == name);
        let missing = required.iter().filter(|name| !is_set(name));
        mistakes.extend(missing.map(|name| format!("{}: {name} is missing", self.subject)));
        mistakes
    }

    /// Returns the mistakes of a resource whose type has no class in the SDK: a custom resource of Kubernetes, which is
    /// listed in the data for the SDKs. Its inputs repeat the type, `kubernetes:GROUP/VERSION:KIND`, and its metadata is
    /// that of all resources.
    fn custom_resource(&self, node: &Node) -> Vec<String> {
        let listed = WITHOUT_CLASS.contains(&node.token);
        let parts = node.token.strip_prefix("kubernetes:").and_then(|token| token.split_once(':'));
        let Some((api_version, kind)) = parts.filter(|_| listed) else {
            return vec![format!("there is no type {}", node.token)];
        };
        let input = |name: &str| node.templates.iter().find(|(input, _)| input == name).map(|(_, value)| value);
        let expected = [("apiVersion", api_version), ("kind", kind)];
        let mut mistakes: Vec<String> = expected
            .into_iter()
            .filter(|(name, text)| input(name) != Some(&Template::Known((*text).into())))
            .map(|(name, text)| format!("{}: {name} is not {text:?}", self.subject))
            .collect();
        let metadata = Kind::Object("meta/v1/ObjectMeta".to_owned());
        match input("metadata") {
            Some(value) => {
                mistakes.extend(self.value("metadata", value, &metadata, shapes::package("kubernetes")).err())
            }
            None => mistakes.push(format!("{}: metadata is missing", self.subject)),
        }
        let others = node.templates.iter().filter(|(name, _)| !["apiVersion", "kind", "metadata"].contains(&&**name));
        mistakes.extend(others.filter_map(|(name, value)| self.value(name, value, &Kind::Any, None).err()));
        mistakes
    }

    /// Returns the mistakes of the members of an object.
    fn members<'t>(
        &self,
        members: impl Iterator<Item = (&'t String, &'t Template)>,
        kinds: &BTreeMap<String, Kind>,
        package: Option<&PackageShapes>,
    ) -> Vec<String> {
        let check = |(name, value): (&String, &Template)| match kinds.get(name) {
            Some(kind) => self.value(name, value, kind, package).err(),
            None => Some(format!("{}: there is no {name}", self.subject)),
        };
        members.filter_map(check).collect()
    }

    /// Checks that a value is of a kind.
    fn value(&self, name: &str, value: &Template, kind: &Kind, package: Option<&PackageShapes>) -> Result<(), String> {
        let wrong = |found: &str| Err(format!("{}: {name} is {found}, expected {kind:?}", self.subject));
        match (value, kind) {
            (Template::Hole(hole), kind) => {
                let found = self.kind_of(&hole.source)?;
                if is_assignable(&found, kind) { Ok(()) } else { wrong(&format!("{found:?}")) }
            }
            (Template::Secret(value), kind) => self.value(name, value, kind, package),
            (_, Kind::OneOf(kinds)) => match kinds.iter().any(|kind| self.value(name, value, kind, package).is_ok()) {
                true => Ok(()),
                false => wrong("of none of these kinds"),
            },
            (Template::Known(PropertyValue::Null), _)
            | (Template::Known(PropertyValue::String(_)), Kind::String)
            | (Template::Known(PropertyValue::Bool(_)), Kind::Boolean)
            | (Template::Known(PropertyValue::Number(_)), Kind::Number) => Ok(()),
            (Template::Known(PropertyValue::Number(number)), Kind::Integer) if number.fract() == 0.0 => Ok(()),
            (Template::List(items), Kind::Array(item)) => {
                items.iter().try_for_each(|value| self.value(name, value, item, package))
            }
            (Template::List(items), Kind::Any) => {
                items.iter().try_for_each(|value| self.value(name, value, kind, package))
            }
            (Template::Map(members), Kind::Map(item)) => {
                members.iter().try_for_each(|(key, value)| self.value(key, value, item, package))
            }
            (Template::Map(members), Kind::Any) => {
                members.iter().try_for_each(|(key, value)| self.value(key, value, kind, package))
            }
            (Template::Map(members), Kind::Object(object)) => {
                let Some(object) = package.and_then(|package| package.types.get(object)) else {
                    return wrong("of an unknown type");
                };
                let check = Check { recipe: self.recipe, subject: &format!("{}: {name}", self.subject) };
                let missing = object.required.iter().find(|name| !members.contains_key(*name));
                let mistakes = check.members(members.iter(), &object.fields, package);
                let missing = missing.map(|name| format!("{}: {name} is missing", check.subject));
                mistakes.into_iter().chain(missing).next().map_or(Ok(()), Err)
            }
            (Template::Known(_), Kind::Any) => Ok(()),
            (other, _) => wrong(&format!("{other:?}")),
        }
    }

    fn kind_of(&self, source: &HoleSource) -> Result<Kind, String> {
        match source {
            HoleSource::Id(_) => Ok(Kind::String),
            HoleSource::Reference(_) => Ok(Kind::Any),
            HoleSource::Text(index) => {
                for part in &self.recipe.texts[*index].parts {
                    match self.kind_of(&part.source)? {
                        Kind::String | Kind::Integer | Kind::Any => {}
                        other => return Err(format!("{}: a text is made of {other:?}", self.subject)),
                    }
                }
                Ok(Kind::String)
            }
            HoleSource::Value(index) => Ok(match &self.recipe.values[*index].value {
                PropertyValue::String(_) | PropertyValue::Secret(_) => Kind::String,
                _ => Kind::Any,
            }),
            HoleSource::Output(handle, path) => self.output(*handle, path),
            HoleSource::Member(map, key) => match (self.kind_of(map)?, &**map) {
                (Kind::Map(item), _) => Ok(*item),
                (Kind::Object(_), HoleSource::Output(handle, path)) => self.output(*handle, &format!("{path}.{key}")),
                (Kind::Any, _) => Ok(Kind::Any),
                (other, _) => Err(format!("{}: {key} is read from {other:?}", self.subject)),
            },
        }
    }

    fn output(&self, Handle(index): Handle, path: &str) -> Result<Kind, String> {
        let node = &self.recipe.nodes[index];
        let outputs = match node.kind {
            NodeKind::Function => shapes::function(&node.token).map(|shape| &shape.results),
            NodeKind::Provider | NodeKind::Resource | NodeKind::RemoteComponent | NodeKind::Read => {
                shapes::resource(&node.token).map(|shape| &shape.outputs)
            }
            NodeKind::Component | NodeKind::ComponentOutputs | NodeKind::GoogleApi => None,
        };
        let missing = || format!("{}: {} has no output {path}", self.subject, node.token);
        let mut names = path.split('.');
        let first = names.next().unwrap_or_default();
        let mut kind = outputs.and_then(|outputs| outputs.get(first)).ok_or_else(missing)?;
        for name in names {
            kind = match kind {
                Kind::Array(item) | Kind::Map(item) => item,
                Kind::Object(object) => node
                    .package
                    .and_then(|package| shapes::package(package.name))
                    .and_then(|package| package.types.get(object)?.fields.get(name))
                    .ok_or_else(missing)?,
                Kind::Any => return Ok(Kind::Any),
                _ => return Err(missing()),
            };
        }
        Ok(kind.clone())
    }
}

/// Returns whether a value of one kind can be one of the other kind.
fn is_assignable(found: &Kind, expected: &Kind) -> bool {
    match (found, expected) {
        (Kind::Any, _) | (_, Kind::Any) | (Kind::Integer, Kind::Number) => true,
        (Kind::Array(found), Kind::Array(expected)) | (Kind::Map(found), Kind::Map(expected)) => {
            is_assignable(found, expected)
        }
        (found, Kind::OneOf(kinds)) => kinds.iter().any(|kind| is_assignable(found, kind)),
        (found, expected) => found == expected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::packages::{AWS, KUBERNETES};
    use crate::registry::recipe::ResourceNames;
    use serde_json::json;

    const PLACE: ResourceNames<'_> = ResourceNames {
        stack: "s",
        project: "reef",
        environment: "e",
        type_name: "t",
        name: "n",
        key: "n",
        registrar: None,
    };

    /// Returns the mistakes of a recipe with one resource.
    fn mistakes_of(token: &str, inputs: impl FnOnce(Handle, Handle, &mut Recipe<'_>) -> Value) -> Vec<String> {
        let mut recipe = Recipe::new(PLACE, Vec::new(), false);
        let aws = recipe.provider(AWS, json!({ "region": "sea" }));
        let bucket = recipe.add(aws.resource("aws:s3/bucket:Bucket", "b", json!({ "bucket": "b" })));
        let zones = recipe.add(aws.function("aws:index/getAvailabilityZones:getAvailabilityZones", json!({})));
        let inputs = inputs(bucket, zones, &mut recipe);
        recipe.add(aws.resource(token, "r", inputs));
        mistakes(&mut recipe)
    }

    #[test]
    fn each_kind_of_slip_is_found() {
        let policy = "aws:s3/bucketPolicy:BucketPolicy";
        let cors = "aws:s3/bucketCorsConfigurationV2:BucketCorsConfigurationV2";
        let rules = |rule: Value| move |bucket: Handle, _: Handle, _: &mut Recipe<'_>| json!({ "bucket": bucket.id(), "corsRules": [rule] });
        let correct = json!({ "allowedMethods": ["GET"], "allowedOrigins": ["*"] });
        let subject = format!("{policy} r");
        let found = |token: &str, inputs: fn(Handle, Handle, &mut Recipe<'_>) -> Value| mistakes_of(token, inputs);

        assert!(mistakes_of(cors, rules(correct)).is_empty());
        assert!(found(policy, |b, _, _| json!({ "bucket": b.id(), "policy": "{}" })).is_empty());
        let slips: [(Vec<String>, String); 9] = [
            (
                found("aws:s3/bucketPolicy:BucketPolice", |b, _, _| json!({ "bucket": b.id() })),
                "there is no type aws:s3/bucketPolicy:BucketPolice".into(),
            ),
            (
                found(policy, |b, _, _| json!({ "bucket": b.id(), "policy": "", "polizy": "" })),
                format!("{subject}: there is no polizy"),
            ),
            (found(policy, |b, _, _| json!({ "bucket": b.id() })), format!("{subject}: policy is missing")),
            (
                found(policy, |b, _, _| json!({ "bucket": b.id(), "policy": true })),
                format!("{subject}: policy is Known(Bool(true)), expected String"),
            ),
            (
                found(policy, |b, _, _| json!({ "bucket": b.out("ahn"), "policy": "" })),
                format!("{subject}: aws:s3/bucket:Bucket has no output ahn"),
            ),
            (
                found(policy, |b, z, _| json!({ "bucket": b.id(), "policy": z.out("names") })),
                format!("{subject}: policy is Array(String), expected String"),
            ),
            (
                found(policy, |b, z, r| {
                    let text = r.text([z.out("names")], |[names]| names.to_owned());
                    json!({ "bucket": b.id(), "policy": text })
                }),
                format!("{subject}: a text is made of Array(String)"),
            ),
            (
                mistakes_of(cors, rules(json!({ "allowedMethods": ["GET"], "allowedOrigin": ["*"] }))),
                format!("{cors} r: corsRules: there is no allowedOrigin"),
            ),
            (
                mistakes_of(cors, rules(json!({ "allowedMethods": ["GET"] }))),
                format!("{cors} r: corsRules: allowedOrigins is missing"),
            ),
        ];
        for (found, expected) in slips {
            assert_eq!(found, [expected]);
        }
    }

    #[test]
    fn custom_resources_of_kubernetes_are_listed_and_repeat_their_type() {
        let found = |token: &str, inputs: Value| {
            let mut recipe = Recipe::new(PLACE, Vec::new(), false);
            let kubernetes = recipe.provider(KUBERNETES, json!({}));
            recipe.add(kubernetes.resource(token, "r", inputs));
            mistakes(&mut recipe)
        };
        let (token, version) = ("kubernetes:rabbitmq.com/v1beta1:RabbitmqCluster", "rabbitmq.com/v1beta1");
        let metadata = json!({ "name": "r" });
        let correct = json!({ "apiVersion": version, "kind": "RabbitmqCluster", "metadata": metadata, "spec": { "replicas": 1 } });
        assert_eq!(found(token, correct.clone()), [""; 0]);
        let misspelt = "kubernetes:rabbitmq.com/v1beta1:RabbitmqCluser";
        assert_eq!(found(misspelt, correct), [format!("there is no type {misspelt}")]);
        let wrong = json!({ "apiVersion": "rabbitmq.com/v1", "metadata": { "nome": "r" } });
        let subject = format!("{token} r");
        let expected = [
            format!("{subject}: apiVersion is not {version:?}"),
            format!("{subject}: kind is not \"RabbitmqCluster\""),
            format!("{subject}: metadata: there is no nome"),
        ];
        assert_eq!(found(token, wrong), expected);
    }

    #[test]
    fn continuations_are_checked_with_samples() {
        let mut recipe = Recipe::new(PLACE, Vec::new(), false);
        let aws = recipe.provider(AWS, json!({}));
        let zones = recipe.add(aws.function("aws:index/getAvailabilityZones:getAvailabilityZones", json!({})));
        recipe.then(zones.out("names"), move |_, r| {
            r.add(aws.resource("aws:ec2/defaultSubnet:DefaultSubnet", "s", json!({ "availabilityZome": "z" })));
        });
        recipe.then(zones.out("numbers"), |_, _| {});
        let found = mistakes(&mut recipe);
        let (subnet, zone) =
            ("aws:ec2/defaultSubnet:DefaultSubnet s", "aws:index/getAvailabilityZones:getAvailabilityZones");
        assert_eq!(found[0], format!("a continuation: {zone} has no output numbers"));
        assert!(found[1..].contains(&format!("{subnet}: there is no availabilityZome")), "{found:?}");
    }
}
