//! Keys of server.yaml in the wrong place: a slip must not remove resources from a stack in silence.

use crate::repository::{Files, PROVISIONER};
use crate::schema_agreement::{Reported, disagreement};

const PLUGIN: &str = "plugins: [{ name: p, source: { type: local, path: p } }]\n";

/// Returns the diagnostics of sections without their places: the headings and the hints, a line each.
fn diagnostics(sections: &str) -> Vec<String> {
    let messages = Files::sections(&format!("{PLUGIN}{sections}")).messages();
    let shown = messages.lines().filter(|line| line.contains("]: ") || line.contains("= hint: "));
    shown.map(|line| line.trim().to_owned()).collect()
}

/// Shows: server-yaml.md#files "A key that means nothing is an error at the top of the file, in `resources`, below a
///   resource, in `plugins` and in `options`; the hint names the level or the key that was meant."
#[test]
fn missing_or_misspelled_level_is_a_mistake() {
    let resource = "a: { type: 'p:m:T' }";
    let table = [
        (
            format!("resources: {{ resources: {{ {resource} }} }}"),
            "error[missing-level]: `a` is a resource in the place of an environment\n\
             = hint: write `resources.resources.ENVIRONMENT.resources.a`",
        ),
        (
            format!("resources: {{ resources: {{ resources: {{ {resource} }} }} }}"),
            "error[missing-level]: `resources` is in the place of an environment\n\
             = hint: write `resources.resources.ENVIRONMENT.resources.KEY`",
        ),
        (
            format!("resources: {{ prod: {{ resources: {{ {resource} }} }} }}"),
            "error[unknown-key]: `resources` has no key `prod`\n\
             = hint: write `resources.resources.prod.resources`",
        ),
        (
            format!("resources: {{ {resource} }}"),
            "error[unknown-key]: `resources` has no key `a`\n\
             = hint: write `resources.resources.ENVIRONMENT.resources.a`",
        ),
        (
            format!("resources: {{ resource: {{ prod: {{ resources: {{ {resource} }} }} }} }}"),
            "error[unknown-key]: `resources` has no key `resource`\n\
             = hint: did you mean `resources`?\n\
             = hint: environments are declared below `resources.resources`",
        ),
        (
            format!("resources: {{ resources: {{ prod: {{ resource: {{ {resource} }} }} }} }}"),
            "error[unknown-key]: an environment has no key `resource`\n\
             = hint: did you mean `resources`?\n\
             = hint: the keys are template, resources, inherit, enabled and functions; a resource needs a `type`",
        ),
        (
            format!("resource: {{ resources: {{ prod: {{ resources: {{ {resource} }} }} }} }}"),
            "error[unknown-key]: server.yaml has no key `resource`\n\
             = hint: did you mean `resources`?\n\
             = hint: the keys are schemaVersion, provisioner, secrets, cicd, templates, resources, variables, plugins, \
             outputs, references; a key that begins with `x-` is ignored",
        ),
        (
            format!("environments: {{ prod: {{ resources: {{ {resource} }} }} }}"),
            "error[unknown-key]: server.yaml has no key `environments`\n\
             = hint: environments are declared below `resources.resources`",
        ),
    ];
    for (sections, expected) in table {
        assert_eq!(diagnostics(&sections).join("\n"), expected, "{sections}");
    }
}

#[test]
fn unknown_key_of_a_resource_is_a_mistake() {
    let keys = "the keys are type, name, config, inherit, options, enabled, forEach; what the resource is made of stands in `config`";
    let table = [
        ("protect: true", "= hint: write `options: { protect: … }`".to_owned()),
        ("dependsOn: [b]", "= hint: write `options: { dependsOn: … }`".to_owned()),
        ("properties: {}", "= hint: did you mean `config`?".to_owned()),
        ("confg: {}", format!("= hint: did you mean `config`?\n= hint: {keys}")),
        ("dependson: [b]", format!("= hint: did you mean `dependsOn`?\n= hint: {keys}")),
        ("colour: red", format!("= hint: {keys}")),
    ];
    for (key, expected) in table {
        let sections =
            format!("resources: {{ resources: {{ e: {{ resources: {{ a: {{ type: 'p:m:T', {key} }} }} }} }} }}");
        let name = key.split(':').next().unwrap();
        let expected = format!("error[unknown-key]: a resource has no key `{name}`\n{expected}");
        assert_eq!(diagnostics(&sections).join("\n"), expected, "{key}");
    }
}

/// Shows: server-yaml.md#files "At the top, keys may stand for other uses"
#[test]
fn keys_for_other_uses_are_accepted_at_the_top() {
    for sections in [
        "x-common: { a: 1 }",
        ".hidden: 1",
        "common: &common { a: 1 }\noutputs: { x: *common }",
        "common: { a: &deep 1 }\noutputs: { x: *deep }",
    ] {
        assert_eq!(diagnostics(sections), [""; 0], "{sections}");
    }
    assert_eq!(diagnostics("common: &common { a: 1 }")[0], "error[unknown-key]: server.yaml has no key `common`");
}

#[test]
fn other_version_of_the_format_is_a_mistake() {
    for version in ["1.0", "'1.0'", "1", "''", ""] {
        assert_eq!(diagnostics(&format!("schemaVersion: {version}")), [""; 0], "{version}");
    }
    assert_eq!(
        diagnostics("schemaVersion: 2.0"),
        [
            "error[schema-version]: the version 2.0 of the format is not supported",
            "= hint: this program reads version 1.0"
        ]
    );
}

#[test]
fn second_document_is_a_warning() {
    let messages = Files::sections("outputs: { a: 1 }\n---\nresources: {}\n").messages();
    insta::assert_snapshot!(messages, @r"
    warning[yaml-document]: only the first document of a file is read
     --> .sc/stacks/s/server.yaml:7:1
      |
    7 | ---
      | ^^^ the second document begins here
      |
      = hint: remove this line, or move the second document to a file of its own
    ");
}

/// Shows: server-yaml.md#files "The keys of an account that stand beside `type`, not in `config`, are not read"
#[test]
fn account_beside_the_type_of_an_auth_entry_is_named_with_its_level() {
    let secrets = "\
auth:
  gcloud:
    type: gcp-service-account
    projectId: reef
    keyLocation: global
    confg: {}
  aws: { type: aws-token, config: { acount: '1', colour: red } }
  cluster: { inherit: other, config: {} }
";
    let other = "auth: { cluster: { type: kubernetes, config: { kubeconfig: k } } }\n";
    let files = Files::sections("").secrets(secrets).with(".sc/stacks/other/secrets.yaml", other);
    insta::assert_snapshot!(files.messages(), @r#"
    warning[unknown-key]: the key `projectId` is ignored
    --> .sc/stacks/s/secrets.yaml:4:5
     = hint: write it one level deeper, in `config`: `config: { projectId: … }`

    warning[unknown-key]: the key `keyLocation` is ignored
    --> .sc/stacks/s/secrets.yaml:5:5
     = hint: the keys are type, config, inherit; the keys of a "gcp-service-account" in `config` are projectId, credentials

    warning[unknown-key]: the key `confg` is ignored
    --> .sc/stacks/s/secrets.yaml:6:5
     = hint: did you mean `config`?
     = hint: the keys are type, config, inherit; the keys of a "gcp-service-account" in `config` are projectId, credentials

    warning[unknown-key]: the key `acount` is ignored
    --> .sc/stacks/s/secrets.yaml:7:37
     = hint: did you mean `account`?
     = hint: the keys are account, accessKey, secretAccessKey, region, credentials

    warning[unknown-key]: the key `colour` is ignored
    --> .sc/stacks/s/secrets.yaml:7:50
     = hint: the keys are account, accessKey, secretAccessKey, region, credentials
    "#);
}

#[test]
fn empty_names_are_mistakes() {
    for (sections, of) in [
        ("resources: { resources: { '': {} } }", "an environment"),
        ("resources: { resources: { e: { resources: { '': { type: 'p:m:T' } } } } }", "a resource"),
        ("outputs: { '': x }", "an output"),
        ("variables: { '': { value: x } }", "a variable"),
        ("templates: { '': { inherit: s/'' } }", "a template"),
    ] {
        let found = diagnostics(sections);
        assert_eq!(found[0], format!("error[empty-name]: the name of {of} is empty"), "{sections}");
    }
}

/// Shows: server-yaml.md#options "An option without a value is a mistake if its name alone reads as if it were set"
#[test]
fn option_without_a_value_that_reads_as_if_it_were_set_is_a_mistake() {
    for (option, written) in [
        ("protect", "protect: true"),
        ("deleteBeforeReplace", "deleteBeforeReplace: true"),
        ("retainOnDelete", "retainOnDelete: true"),
        ("import", "import: ID"),
    ] {
        let resource = format!("a: {{ type: 'p:m:T', options: {{ {option}: }} }}");
        let found = diagnostics(&format!("resources: {{ resources: {{ e: {{ resources: {{ {resource} }} }} }} }}"));
        let error = format!("error[wrong-kind]: the option `{option}` has no value");
        assert_eq!(found, [error, format!("= hint: write `{written}`, or remove the line")]);
    }
    let empty = "dependsOn: , ignoreChanges: ~, customTimeouts: , provider: ";
    let resource = format!("a: {{ type: 'p:m:T', options: {{ {empty} }} }}");
    assert_eq!(
        diagnostics(&format!("resources: {{ resources: {{ e: {{ resources: {{ {resource} }} }} }} }}")),
        [""; 0]
    );
}

/// Shows: server-yaml.md#sections "`name` of a resource of a plugin has no effect"
#[test]
fn name_of_a_resource_of_a_plugin_is_a_warning_with_its_alias() {
    let named = |name: &str| {
        let resource = format!("web: {{ type: 'p:m:T', name: {name} }}");
        diagnostics(&format!("resources: {{ resources: {{ prod: {{ resources: {{ {resource} }} }} }} }}"))
    };
    assert_eq!(
        named("site"),
        [
            "warning[unused]: `name` has no effect on a resource of a plugin, whose logical name is \"web--prod\", from its \
             key and its environment",
            "= hint: a resource that Pulumi has recorded under this name is kept with `options: { aliases: [{ name: \"site\" \
             }] }`",
            "= hint: a name in the cloud is an input of the type, in `config`; else remove `name`",
        ]
    );
    assert_eq!(named("web--prod"), [""; 0]);
    assert_eq!(named("''"), [""; 0]);
}

#[test]
fn misspelled_key_of_a_profile_is_a_mistake() {
    let profile = |text: &str| Files::sections("").with(".sc/cfg.default.yaml", text).profile_error("default");
    insta::assert_snapshot!(profile("projectName: reef\nstackDir: infra\n"), @"
    error[unknown-key]: the profile has no key `stackDir`
    --> .sc/cfg.default.yaml:2:1
     = hint: did you mean `stacksDir`?
    ");
    insta::assert_snapshot!(profile("projectname: reef\n"), @"
    error[unknown-key]: the profile has no key `projectname`
    --> .sc/cfg.default.yaml:1:1
     = hint: did you mean `projectName`?
    ");
}

/// Shows: server-yaml.md#files "A folder with a `client.yaml` and no `server.yaml` is a client stack"
#[test]
fn folder_of_a_client_stack_is_no_stack() {
    let files = Files::sections("")
        .with(".sc/stacks/web/client.yaml", "")
        .with(".sc/stacks/both/client.yaml", "")
        .with(".sc/stacks/both/server.yaml", "")
        .with(".sc/stacks/neither/notes.txt", "");
    let names = files.stack_names().unwrap();
    assert_eq!(names.stacks, ["both", "neither", "s"]);
    assert_eq!(names.client_stacks, ["web"]);
}

#[test]
fn server_yaml_that_is_not_read_is_named_where_there_are_no_stacks() {
    let names = |files: Files| files.stack_names().unwrap_err();
    for path in [".sc/stacks/server.yaml", ".sc/server.yaml", "server.yaml"] {
        let found = names(Files::empty().with(path, ""));
        let expected = format!("error[file]: {path} is in the folder of no stack\n");
        assert!(found.starts_with(&expected) && found.contains("move it to .sc/stacks/NAME/server.yaml"), "{found}");
    }
    insta::assert_snapshot!(names(Files::empty().with(".sc/cfg.default.yaml", "stacksDir: stack\n")), @"
    error[file]: failed to read stacks dir: open stack: No such file or directory (os error 2)
     |
     = hint: a stack is a folder with a server.yaml below `stack`; `stacksDir` of the profile names this folder
    ");
    assert_eq!(Files::sections("").with("server.yaml", "").stack_names().unwrap().stacks, ["s"]);
}

/// Returns the hints about resources of a plugin.
fn hints(resources: &str) -> Vec<String> {
    let plugins = "plugins: [{ name: p, source: { type: local, path: p } }]";
    let sections = format!("{plugins}\nresources: {{ resources: {{ e: {{ resources: {{ {resources} }} }} }} }}\n");
    let diagnostics = Files::sections(&sections).read(&["s"]).loaded.diagnostics;
    diagnostics.into_iter().flat_map(|found| found.help).map(|help| help.to_string()).collect()
}

#[test]
fn key_of_a_resource_is_found_within_a_placeholder_or_a_logical_name() {
    let hints = |named: &str| {
        hints(&format!("a: {{ type: 'p:m:T', options: {{ dependsOn: ['{named}'] }} }}, b: {{ type: 'p:m:T' }}"))
    };
    for named in ["${b}", "${resource:b.id}", "b--e"] {
        assert!(hints(named).contains(&"write the key alone: `b`".to_owned()), "{named}: {:?}", hints(named));
    }
    assert!(!hints("nothing--e").iter().any(|hint| hint.contains("alone")));
}

#[test]
fn reference_without_its_namespace_gets_its_spelling() {
    for (text, expected) in [
        ("${weather.text}", "if it is an output of a resource, write `${resource:weather.text}`"),
        ("${var.title}", "write `${var:title}`"),
        ("${secret.db.password}", "write `${secret:db.password}`"),
        ("${vars:title}", "did you mean `var`?"),
    ] {
        let found = hints(&format!("a: {{ type: 'p:m:T', config: {{ v: '{text}' }} }}"));
        assert!(found.contains(&expected.to_owned()), "{text}: {found:?}");
    }
}

/// Shows: server-yaml.md#files "In a profile and in `provisioner.config`, a key that looks like a misspelt one"
#[test]
fn misspelled_key_of_the_provisioner_is_a_mistake() {
    let server = PROVISIONER.replace("state-storage:", "maxDelete: 3\n    state-storage:");
    insta::assert_snapshot!(Files::server(&server).messages(), @"
    error[unknown-key]: provisioner.config has no key `maxDelete`
     --> .sc/stacks/s/server.yaml:4:5
      |
    4 |     maxDelete: 3
      |     ^^^^^^^^^
      |
      = hint: did you mean `maxDeletes`?
    ");
    let server = PROVISIONER.replace("state-storage:", "color: blue\n    state-storage:");
    insta::assert_snapshot!(Files::server(&server).messages(), @"
    warning[unknown-key]: the key `color` is ignored
     --> .sc/stacks/s/server.yaml:4:5
      |
    4 |     color: blue
      |     ^^^^^
      |
      = hint: the keys are organization, state-storage, secrets-provider, confirm, maxDeletes, acceptMissing, pendingCreates, lock, journal
    ");
}

#[test]
fn file_with_another_extension_is_named_where_server_yaml_is_missing() {
    insta::assert_snapshot!(Files::empty().with(".sc/stacks/s/server.yml", "").messages(), @"
    error[file]: failed to read .sc/stacks/s/server.yaml: open: No such file or directory (os error 2)
     |
     = hint: a file server.yml is there: rename it to server.yaml
    ");
}

/// Shows: server-yaml.md#in-an-editor "The schema is stricter than `sc`: it refuses the keys and kinds of values that
///   `sc` refuses"
#[test]
fn disagreement_of_reader_and_schema_is_found() {
    let (accepted, refused) = (Reported { any: false, of_schema: false }, Reported { any: true, of_schema: true });
    let good = format!("{}outputs: {{ a: 1 }}\n", PROVISIONER);
    let bad = good.replace("outputs", "ouputs");
    assert_eq!(disagreement(&good, accepted), None);
    assert_eq!(disagreement(&bad, refused), None);
    assert!(disagreement(&bad, accepted).unwrap().starts_with("only the schema refuses"));
    assert!(disagreement(&good, refused).unwrap().starts_with("only the reader refuses"));
}
