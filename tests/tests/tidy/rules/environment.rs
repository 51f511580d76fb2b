//! Rule: each environment variable that the code names stands on the page about them.

use std::collections::BTreeSet;

use super::assert_none;
use crate::pages::pages;
use crate::workspace::{Workspace, product, test_workspace};

const PAGE: &str = "docs/environment.md";

/// Texts in capitals that are no environment variables of `sc`: values of APIs, constants of other programs.
const OTHERS: [&str; 23] = [
    "ALLOW_UNENCRYPTED_AND_ENCRYPTED",
    "ALL_IP_RANGES",
    "CADDYFILE_PREFIX",
    "CARGO_PKG_VERSION",
    "DEADLINE_EXCEEDED",
    "DEFAULT_ENTRY",
    "DEFAULT_ENTRY_START",
    "ENCRYPTED_ONLY",
    "ERRORS_ONLY",
    "FAILED_PRECONDITION",
    "GOOGLE_SYMMETRIC_ENCRYPTION",
    "HSTS_VALUE",
    "INVALID_ARGUMENT",
    "LIST_OF_SUBNETWORKS",
    "MANUAL_ONLY",
    "NOT_FOUND",
    "OUT_DIR",
    "PERMISSION_DENIED",
    "PROTOCOL_ERROR",
    "RSA1_5",
    "SECRET_ACCESS_KEY",
    "USE_PREFIXES",
    "WHEN_SUPPORTED",
];

/// Packages that are no part of the program.
const OTHER_PACKAGES: [&str; 2] = ["plugins-example/", "tests/"];

/// Returns the names, in the code without its tests, that look like environment variables: words in capitals, joined by `_`.
fn names(workspace: &Workspace) -> BTreeSet<&str> {
    let is_product = |path: &str| {
        !OTHER_PACKAGES.iter().any(|folder| path.starts_with(folder))
            && !path.contains("/tests/")
            && !path.ends_with("/tests.rs")
    };
    let files = workspace.files.iter().filter(|(path, _)| is_product(path));
    let code = files.map(|(_, text)| text.split("#[cfg(test)]").next().unwrap_or_default());
    // Every second part of a line is within quotes.
    let quoted = code.flat_map(str::lines).flat_map(|line| line.split('"').skip(1).step_by(2));
    quoted.filter(|text| is_name(text)).collect()
}

fn is_name(text: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    text.contains('_') && text.starts_with(|c: char| c.is_ascii_uppercase()) && text.split('_').all(is_word)
}

fn violations(names: &BTreeSet<&str>, page: &str) -> Vec<String> {
    let missing = names.iter().filter(|name| !OTHERS.contains(name) && !page.contains(&format!("`{name}`")));
    missing.map(|name| format!("{PAGE} lacks {name}")).collect()
}

/// Shows: environment.md#environment-variables "A test finds each name of the code on this page."
#[test]
fn each_environment_variable_of_the_code_is_documented() {
    let pages = pages();
    let names = names(product());
    assert!(names.contains("SIMPLE_CONTAINER_CONFIG"), "{names:?}");
    assert_none(&violations(&names, &pages[PAGE]));
}

#[test]
fn undocumented_variable_is_reported() {
    let text = "const A: &str = \"MY_VARIABLE\"; f(\"NOT_FOUND\", \"my_key\", \"OTHER_VARIABLE\");\n#[cfg(test)]\nconst B: &str = \"IN_TEST\";";
    let workspace = test_workspace(&[("lib.rs", text)]);
    assert_eq!(violations(&names(&workspace), "`OTHER_VARIABLE`"), ["docs/environment.md lacks MY_VARIABLE"]);
}
