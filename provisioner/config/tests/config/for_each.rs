//! Reading of `forEach`: one entry of the file that stands for several resources.

use config::graph::NodeName;
use config::values;
use pulumi_proto::property::{PropertyMap, PropertyValue};

use crate::core_types::pond_types;
use crate::repository::Files;

const PLUGIN: &str = "plugins: [{ name: p, source: { type: git, path: x, ref: v1.2.3 } }]\n";

fn files(resources: &str, more: &str) -> Files {
    Files::sections(&format!("{PLUGIN}resources:\n  resources:\n    e:\n      resources:\n{resources}\n{more}"))
}

/// Returns the first lines of the errors.
fn errors(resources: &str, more: &str) -> String {
    let messages = files(resources, more).types(pond_types()).messages();
    let errors: Vec<&str> = messages.lines().filter_map(|line| line.strip_prefix("error[")).collect();
    errors.join("\n")
}

/// Shows: server-yaml.md#several-resources-of-one-entry "As the whole text, a value keeps its type"
#[test]
fn entries_give_their_keys_and_values_with_their_types() {
    let files = files(
        "        web:
          type: 'p:m:T'
          forEach: { eu: { zone: z1, size: 4, on: [true] }, us: { zone: z2, size: 2, on: [false] } }
          enabled: '${each:value.on[0]}'
          config: { name: 'web-${each:key}', size: '${each:value.size}', text: '${each:value.size}!', whole: '${each:value}' }
          options: { import: 'id-${each:key}', dependsOn: ['db[${each:key}]'] }
        db: { type: 'p:m:T', forEach: [eu, us] }",
        "",
    );
    assert_eq!(files.messages(), "");
    let stack = files.read(&["s"]).loaded.stacks.remove(0);
    let keys: Vec<&str> = stack.resources().map(|(_, resource)| resource.key.as_str()).collect();
    assert_eq!((keys, &stack.environments[0].disabled), (vec!["web-eu", "db-eu", "db-us"], &vec!["web-us".to_owned()]));
    let (_, web) = stack.resources().next().unwrap();
    let whole: PropertyValue = PropertyMap::from([
        ("zone".to_owned(), "z1".into()),
        ("size".to_owned(), PropertyValue::Number(4.0)),
        ("on".to_owned(), PropertyValue::List(vec![PropertyValue::Bool(true)])),
    ])
    .into();
    let config =
        [("name", "web-eu".into()), ("size", PropertyValue::Number(4.0)), ("text", "4!".into()), ("whole", whole)];
    let config: PropertyMap = config.map(|(key, value)| (key.to_owned(), value)).into();
    assert_eq!(values::evaluate_constant(&web.config), config.into());
    assert_eq!(web.options.import.as_deref(), Some("id-eu"));
    assert_eq!(web.options.depends_on.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["db-eu"]);
}

/// Shows: server-yaml.md#several-resources-of-one-entry "a placeholder that is known before the run and whose text is one of both as JSON"
#[test]
fn collection_may_be_the_text_of_a_placeholder() {
    for (text, expected) in [(r#"["eu", "us"]"#, "web-eu web-us"), (r#"{"b": 1, "a": [2]}"#, "web-b web-a"), ("[]", "")]
    {
        let variables = format!("variables: {{ regions: {{ type: string, value: '{text}' }} }}\n");
        let files = files(
            "        web: { type: 'p:m:T', forEach: '${var:regions}', config: { v: '${each:value}' } }",
            &variables,
        );
        assert_eq!(files.messages(), "", "{text}");
        let stack = files.read(&["s"]).loaded.stacks.remove(0);
        let keys: Vec<&str> = stack.resources().map(|(_, resource)| resource.key.as_str()).collect();
        assert_eq!(keys.join(" "), expected);
    }
}

/// Shows: server-yaml.md#several-resources-of-one-entry "A reference names the entry, `${resource:web[eu].address}`, or all of them"
#[test]
fn references_and_options_lead_to_the_resources() {
    let files = files(
        "        web: { type: 'p:m:T', forEach: [eu, 'a.b/c d'] }
        all: { type: 'p:m:T', config: { one: '${resource:web[a.b/c d].x.y}', all: '${resource:web[*].x}' }, options: { dependsOn: [web] } }",
        "outputs: { one: '${resource:e/web[eu].x}', all: '${resource:web[*].x}' }\n",
    );
    assert_eq!(files.messages(), "");
    let stack = files.read(&["s"]).loaded.stacks.remove(0);
    let (_, all) = stack.resources().last().unwrap();
    let names: Vec<NodeName<'_>> = config::graph::dependencies("e", all).map(|(name, _)| name).collect();
    let keys = ["web-a.b/c d", "web-eu", "web-a.b/c d", "web-eu", "web-a.b/c d"];
    assert_eq!(names, keys.map(|key| NodeName::Resource("e", key)));
    let of_outputs: Vec<String> = stack
        .outputs
        .iter()
        .flat_map(|output| config::graph::references(&output.value))
        .map(|reference| format!("{:?} {:?}", reference.environment, reference.targets().collect::<Vec<_>>()))
        .collect();
    assert_eq!(of_outputs, [r#"Some("e") ["web-eu"]"#, r#"Some("e") ["web-eu", "web-a.b/c d"]"#]);
}

#[test]
fn mistakes_name_what_there_is() {
    let web = "        web: { type: 'p:m:T', forEach: [eu, us] }\n";
    for (resources, expected) in [
        ("        a: { type: 'p:m:T', forEach: [eu, eu] }", "for-each]: the collection has \"eu\" twice"),
        (
            "        a: { type: 'p:m:T', forEach: [1] }",
            "for-each]: an entry of the list must be a text, and this is a number",
        ),
        (
            "        a: { type: 'p:m:T', forEach: [~] }",
            "for-each]: an entry of the list must be a text, and this is nothing",
        ),
        (
            "        a: { type: 'p:m:T', forEach: [[x]] }",
            "for-each]: an entry of the list must be a text, and this is a list",
        ),
        ("        a: { type: 'p:m:T', forEach: eu }", "for-each]: `forEach` must be a list of texts or a mapping"),
        (
            "        a: { type: 'p:m:T', forEach: '${stack:name}' }",
            "for-each]: `forEach` must be a list of texts or a mapping",
        ),
        (
            "        a: { type: 'p:m:T', forEach: ['arn:aws:x'] }",
            "for-each]: \"arn:aws:x\" cannot be the key of an entry",
        ),
        (
            "        a: { type: 'p:m:T', config: { v: '${each:key}' } }",
            "misplaced-reference]: `${each:key}` is not allowed here",
        ),
        (
            "        a: { type: 'p:m:T', forEach: [x], config: { v: '${each:value.y}' } }",
            "for-each]: `${each:value.y}` does not exist for this entry",
        ),
        (
            "        a: { type: 'p:m:T', forEach: { x: [1] }, config: { v: 'a ${each:value}' } }",
            "for-each]: `${each:value}` is a list or a mapping, which cannot stand within a text",
        ),
        (
            "        a: { type: 'p:m:T', forEach: [x] }\n        a-x: { type: 'p:m:T' }",
            "for-each]: two resources of env \"e\" come to the name \"a-x\"",
        ),
        (
            "        a: { type: pond, name: fixed, forEach: [x, y] }",
            "for-each]: all resources of this \"pond\" would have one name",
        ),
        (
            "        a: { type: 'p:m:T', config: { v: '${resource:web.id}' } }",
            "for-each]: resource \"web\" has `forEach`, so it is several resources",
        ),
        (
            "        a: { type: 'p:m:T', config: { v: '${resource:web[uk].id}' } }",
            "for-each]: the `forEach` of \"web\" has no entry \"uk\"",
        ),
        (
            "        a: { type: 'p:m:T', options: { dependsOn: ['web[uk]'] } }",
            "for-each]: the `forEach` of \"web\" has no entry \"uk\"",
        ),
        (
            "        a: { type: 'p:m:T', options: { deletedWith: web } }",
            "for-each]: resource \"web\" has `forEach`, so it is several resources",
        ),
        (
            "        a: { type: 'p:m:T' }\n        b: { type: 'p:m:T', config: { v: '${resource:a[x].id}' } }",
            "for-each]: resource \"a\" has no `forEach`",
        ),
    ] {
        assert_eq!(errors(&format!("{web}{resources}"), ""), expected, "{resources}");
    }
}

/// Shows: server-yaml.md#several-resources-of-one-entry "It has each key once, and 100,000 entries at most"
#[test]
fn collection_of_too_many_entries_is_refused_and_fifty_thousand_are_read() {
    let collection = |count: usize| {
        let entries: Vec<String> = (0..count).map(|number| format!("\"n{number}\"")).collect();
        format!("variables: {{ all: {{ type: string, value: '[{}]' }} }}\n", entries.join(","))
    };
    let web = "        web: { type: 'p:m:T', forEach: '${var:all}', config: { v: '${each:key}' } }";
    let refused = errors(web, &collection(200_000));
    assert_eq!(refused, "for-each]: a collection has at most 100000 entries, and this one has 200000");
    let files = files(web, &collection(50_000));
    assert_eq!(files.read(&["s"]).loaded.stacks.remove(0).resources().count(), 50_000);
}
