//! Reading of `resources.moved`.

use config::{AliasOption, Place};

use crate::core_types::pond_types;
use crate::repository::Files;

const PLUGIN: &str = "plugins: [{ name: p, source: { type: git, path: x, ref: v1.2.3 } }]\n";

fn files(moved: &str, resources: &str) -> Files {
    Files::sections(&format!("{PLUGIN}resources:\n  moved: {moved}\n  resources:\n{resources}\n"))
}

/// Shows: server-yaml.md#moved-resources "A resource that moves several times has an entry for each move"
#[test]
fn resource_has_the_names_of_its_former_places() {
    let moved =
        "[{ from: prod/web, to: prod/site }, { from: prod/site, to: test/portal }, { from: prod/gone, to: prod/off }]";
    let resources = "    prod: { resources: { off: { type: 'p:m:T', enabled: false } } }
    test: { resources: { portal: { type: 'p:m:T' } } }";
    let files = files(moved, resources);
    assert_eq!(files.messages(), "");
    let stack = files.read(&["s"]).loaded.stacks.remove(0);
    let (_, portal) = stack.resources().next().unwrap();
    let names: Vec<_> = portal
        .options
        .aliases
        .iter()
        .map(|alias| match alias {
            AliasOption::Spec { name, .. } => name.clone().unwrap(),
            AliasOption::Urn(urn) => panic!("{urn}"),
        })
        .collect();
    assert_eq!(names, ["web--prod", "site--prod"]);
    let moves: Vec<_> = stack.moved.iter().map(|moved| format!("{} {}", moved.from, moved.to)).collect();
    assert_eq!(moves, ["prod/web test/portal", "prod/site test/portal", "prod/gone prod/off"]);
    let place = Place { environment: "prod".to_owned(), key: "web".to_owned(), entry: None };
    assert_eq!(place.logical_name(), "web--prod");
}

/// Shows: server-yaml.md#moved-resources "moves in a circle, a resource that moves twice, and two that move to one place are mistakes"
#[test]
fn moves_that_contradict_the_file_or_each_other_are_refused() {
    let resources = "    e: { resources: { a: { type: 'p:m:T' }, b: { type: 'p:m:T' }, core: { type: pond } } }";
    let first_line = |moved: &str| {
        let messages = files(moved, resources).types(pond_types()).messages();
        let errors: Vec<String> =
            messages.lines().filter_map(|line| line.strip_prefix("error[")).map(str::to_owned).collect();
        errors.join("\n")
    };
    for (moved, expected) in [
        (
            "[{ from: e/x, to: e/y }, { from: e/y, to: e/x }]",
            "moved]: e/x is moved in a circle\nmoved]: e/y is moved in a circle",
        ),
        ("[{ from: e/x, to: e/x }]", "moved]: e/x is moved in a circle"),
        ("[{ from: e/x, to: e/a }, { from: e/x, to: e/b }]", "moved]: e/x is moved twice"),
        ("[{ from: e/x, to: e/a }, { from: e/y, to: e/a }]", "moved]: two resources are moved to e/a"),
        ("[{ from: e/a, to: e/b }]", "moved]: e/a is declared, so it was not moved"),
        ("[{ from: e/x, to: e/z }]", "moved]: e/z is not declared"),
        ("[{ from: e/x, to: e/core }]", "moved]: e/core is of the core type \"pond\", which is several resources"),
        ("[{ from: x, to: e/a }]", "moved]: \"x\" is not the place of a resource"),
        ("[{ from: e/x }]", "moved]: an item of `moved` needs `to`"),
        ("[{ from: e/x, to: e/a, now: 1 }]", "unknown-key]: an item of `moved` has no key `now`"),
        ("e/x", "wrong-kind]: expected a list of `{ from: ENV/KEY, to: ENV/KEY }`, found a text"),
    ] {
        assert_eq!(first_line(moved), expected, "{moved}");
    }
}

#[test]
fn environment_in_short_form_may_be_called_moved() {
    let files = files("{ a: { type: 'p:m:T' } }", "    e: {}");
    assert!(files.messages().contains("warning[shorthand]: env \"moved\" is taken as"), "{}", files.messages());
}
