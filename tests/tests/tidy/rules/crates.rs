//! Rule: dependencies between crates go one way.

use std::collections::BTreeSet;

use super::assert_none;
use crate::workspace::{Package, product};

/// Allowed dependencies of each crate. A new crate needs a row here.
const ALLOWED: [(&str, &[&str]); 11] = [
    ("pulumi-proto", &[]),
    ("schemas", &["pulumi-proto"]),
    ("plugins-example", &["pulumi-proto"]),
    ("bridge", &["pulumi-proto"]),
    ("state", &["pulumi-proto", "bridge"]),
    ("engine", &["pulumi-proto", "bridge", "state"]),
    ("secrets_store", &["bridge"]),
    ("config", &["pulumi-proto", "bridge", "secrets_store"]),
    ("cloud", &["bridge", "state"]),
    (
        "provisioner",
        &[
            "pulumi-proto",
            "bridge",
            "state",
            "engine",
            "config",
            "secrets_store",
            "cloud",
            "schemas",
            "plugins-example",
        ],
    ),
    ("tests", &["pulumi-proto", "bridge", "state", "engine", "config", "provisioner"]),
];

fn violations(packages: &[Package], allowed: &[(&str, &[&str])]) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages {
        match allowed.iter().find(|(name, _)| *name == package.name) {
            Some((name, allowed)) => {
                let others = package.dependencies.iter().filter(|other| !allowed.contains(&other.as_str()));
                found.extend(others.map(|other| format!("{name} depends on {other}")));
            }
            None => found.push(format!("{} has no row in the table of dependencies", package.name)),
        }
    }
    let members: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let stale = allowed.iter().filter(|(name, _)| !members.contains(name));
    found.extend(stale.map(|(name, _)| format!("{name} has a row, but is not a member of the workspace")));
    found
}

#[test]
fn crates_depend_one_way() {
    assert_none(&violations(&product().packages, &ALLOWED));
}

#[test]
fn forbidden_dependency_and_stale_row_are_reported() {
    let package = |name: &str, dependencies: &[&str]| Package {
        name: name.to_owned(),
        dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
    };
    let packages = [package("upper", &["lower"]), package("lower", &["upper"]), package("new", &[])];
    let allowed: [(&str, &[&str]); 3] = [("upper", &["lower"]), ("lower", &[]), ("gone", &[])];
    assert_eq!(
        violations(&packages, &allowed),
        [
            "lower depends on upper",
            "new has no row in the table of dependencies",
            "gone has a row, but is not a member of the workspace"
        ]
    );
}
