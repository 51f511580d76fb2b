//! Diagnostics of server.yaml, secrets.yaml and the profile: message, position and hints. The modules of single
//! sections test further diagnostics.

use config::StateStorage;
use config::types::TypeTable;

use crate::repository::{Files, PROVISIONER};
use crate::web::templates;

fn types() -> TypeTable {
    TypeTable::default().with_templates(templates(["ecs-fargate", "cloudrun"]))
}

/// Shows: comparison.md#what-is-refused-or-missing "state in Pulumi Cloud; secrets with Pulumi Cloud | refused"
#[test]
fn unsupported_features_are_reported_at_their_line() {
    let messages = Files::server(
        "
provisioner:
  type: pulumi
  config:
    organization: acme
    state-storage: { type: pulumi-cloud }
    secrets-provider: { type: aws-kms }
templates:
  web: { type: ecs-fargate }
",
    )
    .types(types())
    .messages();
    insta::assert_snapshot!(messages, @r#"
    error[not-supported]: the state storage "pulumi-cloud" is not supported: it belongs to the service Pulumi Cloud
     --> .sc/stacks/s/server.yaml:6:28
      |
    6 |     state-storage: { type: pulumi-cloud }
      |                            ^^^^^^^^^^^^
      |
      = hint: keep the state in a store of your own, such as a folder (`file://…`) or a bucket (`s3://…`, `gs://…`, `azblob://…`); `pulumi stack export | sc stack import` moves a stack there
      = hint: leave `organization` out then: it is an account of the service, and a store of your own has none

    error[provisioner]: a secrets provider of type "aws-kms" needs the URL of a key
     --> .sc/stacks/s/server.yaml:7:31
      |
    7 |     secrets-provider: { type: aws-kms }
      |                               ^^^^^^^
      |
      = hint: write `config: { keyName: "awskms://alias/NAME?region=REGION" }`
    "#);
}

#[test]
fn incomplete_provisioner_is_rejected() {
    insta::assert_snapshot!(Files::server("provisioner: { type: terraform }\n").messages(), @r#"
    error[provisioner]: unknown provisioner type "terraform"
     --> .sc/stacks/s/server.yaml:1:22
      |
    1 | provisioner: { type: terraform }
      |                      ^^^^^^^^^
      |
      = hint: write `provisioner: { type: pulumi, config: … }`
    "#);
    insta::assert_snapshot!(Files::server("# nothing\n").messages(), @r#"
    error[provisioner]: unknown provisioner type ""
     --> .sc/stacks/s/server.yaml:1:1
      |
    1 | # nothing
      | ^
      |
      = hint: write `provisioner: { type: pulumi, config: … }`
    "#);
    let messages = Files::server(
        "
provisioner:
  type: pulumi
  config:
    stateStorage: { type: fs }
    secrets-provider: { type: passphrse }
",
    )
    .messages();
    insta::assert_snapshot!(messages, @r#"
    error[unknown-key]: provisioner.config has no key `stateStorage`
     --> .sc/stacks/s/server.yaml:5:5
      |
    5 |     stateStorage: { type: fs }
      |     ^^^^^^^^^^^^
      |
      = hint: did you mean `state-storage`?

    error[provisioner]: failed to read state storage config: unknown provisioner field config type ""
     --> .sc/stacks/s/server.yaml:5:5
      |
    5 |     stateStorage: { type: fs }
      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = hint: add `state-storage: { type: fs, config: … }` below `provisioner.config`

    error[provisioner]: failed to read secrets provider config: unknown provisioner field config type "passphrse"
     --> .sc/stacks/s/server.yaml:6:31
      |
    6 |     secrets-provider: { type: passphrse }
      |                               ^^^^^^^^^
      |
      = hint: did you mean `passphrase`?
      = hint: add `secrets-provider: { type: passphrase, config: … }` below `provisioner.config`
    "#);
    let messages = Files::server(
        "
provisioner:
  type: pulumi
  config:
    state-storage: { type: fs, config: { path: /state } }
    secrets-provider: { type: passphrase, config: { passPhrase: 0123 } }
",
    )
    .messages();
    insta::assert_snapshot!(messages, @r#"
    error[provisioner]: the path of a state storage of type "fs" must be a URL
     --> .sc/stacks/s/server.yaml:5:48
      |
    5 |     state-storage: { type: fs, config: { path: /state } }
      |                                                ^^^^^^
      |
      = hint: write `file:///absolute/folder`, `file://~/folder`, `file://${project:root}/folder`, `s3://bucket`, `gs://bucket`, `azblob://container` or `postgres://host/database`

    warning[rewritten-scalar]: `passPhrase` is changed when it is read
     --> .sc/stacks/s/server.yaml:6:65
      |
    6 |     secrets-provider: { type: passphrase, config: { passPhrase: 0123 } }
      |                                                                 ^^^^
      |
      = note: an unquoted number, date or boolean is parsed and formatted again
      = hint: put the value in quotes
    "#);
}

#[test]
fn unknown_types_in_all_sections_are_reported() {
    let messages = Files::sections(
        "
schemaVersion: [1]
secrets: { type: vault }
cicd: { type: jenkins }
templates: { t: { type: ecs-fargat }, u: {}, v: { inherit: s/u } }
resources: { registrar: { type: godaddy }, resources: { e: { resources: { a: { type: '${env:T:x}' } } } } }
",
    )
    .types(types())
    .messages();
    insta::assert_snapshot!(messages, @r#"
    error[wrong-kind]: `schemaVersion` must be a text
     --> .sc/stacks/s/server.yaml:7:16
      |
    7 | schemaVersion: [1]
      |                ^^^ this is a list

    error[unknown-type]: unknown secrets type "vault"
     --> .sc/stacks/s/server.yaml:8:18
      |
    8 | secrets: { type: vault }
      |                  ^^^^^
      |
      = hint: the types of `secrets` are aws-secrets-manager, gcp-secrets-manager

    error[unknown-type]: unknown cicd type "jenkins"
     --> .sc/stacks/s/server.yaml:9:15
      |
    9 | cicd: { type: jenkins }
      |               ^^^^^^^
      |
      = hint: the types of `cicd` are github-actions

    error[unknown-type]: unknown template type "ecs-fargat"
      --> .sc/stacks/s/server.yaml:10:25
       |
    10 | templates: { t: { type: ecs-fargat }, u: {}, v: { inherit: s/u } }
       |                         ^^^^^^^^^^
       |
       = hint: did you mean `ecs-fargate`?
       = hint: the types of templates are ecs-fargate, cloudrun

    error[unknown-type]: unknown template type ""
      --> .sc/stacks/s/server.yaml:10:42
       |
    10 | templates: { t: { type: ecs-fargat }, u: {}, v: { inherit: s/u } }
       |                                          ^^
       |
       = hint: the types of templates are ecs-fargate, cloudrun

    error[unknown-type]: unknown registrar type "godaddy"
      --> .sc/stacks/s/server.yaml:11:33
       |
    11 | resources: { registrar: { type: godaddy }, resources: { e: { resources: { a: { type: '${env:T:x}' } } } } }
       |                                 ^^^^^^^

    error[unknown-resource-type]: unknown resource type "${env:T:x}"
      --> .sc/stacks/s/server.yaml:11:86
       |
    11 | resources: { registrar: { type: godaddy }, resources: { e: { resources: { a: { type: '${env:T:x}' } } } } }
       |                                                                                      ^^^^^^^^^^^^
       |
       = note: unknown type "${env:T:x}" for resource "a" of env "e"
       = hint: placeholders in `type` are not resolved
    "#);
}

#[test]
fn unknown_keys_are_rejected_at_the_top_and_in_resources() {
    let messages = Files::sections(
        "
x-anchors: { a: 1, a: 2 }
pluginz: []
resources: { resourcess: {} }
",
    )
    .messages();
    insta::assert_snapshot!(messages, @r"
    error[unknown-key]: server.yaml has no key `pluginz`
     --> .sc/stacks/s/server.yaml:8:1
      |
    8 | pluginz: []
      | ^^^^^^^
      |
      = hint: did you mean `plugins`?
      = hint: the keys are schemaVersion, provisioner, secrets, cicd, templates, resources, variables, plugins, outputs, references; a key that begins with `x-` is ignored

    error[unknown-key]: `resources` has no key `resourcess`
     --> .sc/stacks/s/server.yaml:9:14
      |
    9 | resources: { resourcess: {} }
      |              ^^^^^^^^^^
      |
      = hint: did you mean `resources`?
      = hint: environments are declared below `resources.resources`
    ");
}

#[test]
fn all_values_of_wrong_kind_are_reported() {
    let messages = Files::sections(
        "
variables: { a: bare, b: { value: [1] } }
resources: { resources: { e: { resources: { a: text, b: { type: [x] }, c: { type: 'p:m:T', config: [] } } } } }
outputs: []
",
    )
    .messages();
    insta::assert_snapshot!(messages, @r#"
    error[wrong-kind]: a variable must be a mapping
     --> .sc/stacks/s/server.yaml:7:17
      |
    7 | variables: { a: bare, b: { value: [1] } }
      |                 ^^^^ this is a text

    error[wrong-kind]: `value` must be a text
     --> .sc/stacks/s/server.yaml:7:35
      |
    7 | variables: { a: bare, b: { value: [1] } }
      |                                   ^^^ this is a list

    error[wrong-kind]: a resource must be a mapping
     --> .sc/stacks/s/server.yaml:8:48
      |
    8 | resources: { resources: { e: { resources: { a: text, b: { type: [x] }, c: { type: 'p:m:T', config: [] } } } } }
      |                                                ^^^^ this is a text

    error[unknown-resource-type]: unknown resource type ""
     --> .sc/stacks/s/server.yaml:8:54
      |
    8 | resources: { resources: { e: { resources: { a: text, b: { type: [x] }, c: { type: 'p:m:T', config: [] } } } } }
      |                                                      ^
      |
      = note: unknown type "" for resource "b" of env "e"
      = hint: add `type`: a core type, or `plugin:module:Type`

    error[wrong-kind]: `type` must be a text
     --> .sc/stacks/s/server.yaml:8:65
      |
    8 | resources: { resources: { e: { resources: { a: text, b: { type: [x] }, c: { type: 'p:m:T', config: [] } } } } }
      |                                                                 ^^^ this is a list

    error[unknown-resource-type]: unknown resource type "p:m:T": no enabled plugin serves the package "p"
     --> .sc/stacks/s/server.yaml:8:83
      |
    8 | resources: { resources: { e: { resources: { a: text, b: { type: [x] }, c: { type: 'p:m:T', config: [] } } } } }
      |                                                                                   ^^^^^^^
      |
      = hint: declare a plugin with `name: p` in `plugins`

    error[wrong-kind]: `config` must be a mapping
     --> .sc/stacks/s/server.yaml:8:100
      |
    8 | resources: { resources: { e: { resources: { a: text, b: { type: [x] }, c: { type: 'p:m:T', config: [] } } } } }
      |                                                                                                    ^^ this is a list

    error[wrong-kind]: `outputs` must be a mapping
     --> .sc/stacks/s/server.yaml:9:10
      |
    9 | outputs: []
      |          ^^ this is a list
    "#);
}

#[test]
fn diagnostics_show_no_text_of_secret_files() {
    let messages = Files::server(PROVISIONER)
        .secrets("auth: { a: { type: aws-tokn, config: {} }, b: { inherit: x, type: kubernetes } }\nvalues: { p: [hunter2], p: hunter3 }\n")
        .messages();
    insta::assert_snapshot!(messages, @r#"
    error[unknown-auth-type]: failed to detect auth type for "a": unknown auth type "aws-tokn"
    --> .sc/stacks/s/secrets.yaml:1:20
     = hint: did you mean `aws-token`?
     = hint: the types are aws-token, gcp-service-account, kubernetes, pulumi-token

    error[inherit-and-type]: auth "b" is inherited, but type "kubernetes" is defined
    --> .sc/stacks/s/secrets.yaml:1:67
     = hint: remove `type` or `inherit`

    error[wrong-kind]: a secret must be a text
    --> .sc/stacks/s/secrets.yaml:2:14

    error[duplicate-key]: the key `p` is written twice
    --> .sc/stacks/s/secrets.yaml:2:25
    ::: .sc/stacks/s/secrets.yaml:2:11
    "#);
    let messages = Files::server(PROVISIONER).secrets("values:\n  p: \"hunter2\n").messages();
    insta::assert_snapshot!(messages, @r#"
    error[yaml-syntax]: this is not YAML: invalid indentation in multiline quoted scalar
    --> .sc/stacks/s/secrets.yaml:3:1
    ::: .sc/stacks/s/secrets.yaml:2:6
     = hint: close the quote; in a value in double quotes, write `\"` for a quote
    "#);
    assert!(!messages.contains("hunter"));
}

#[test]
fn missing_files_and_names_are_reported() {
    insta::assert_snapshot!(Files::empty().messages(), @r"error[file]: failed to read .sc/stacks/s/server.yaml: open: No such file or directory (os error 2)");
    insta::assert_snapshot!(Files::server(PROVISIONER).with(".sc/cfg.default.yaml", "{}").messages(), @r"
    error[profile]: bad stack reference, project was not set
     |
     = hint: set `projectName` in the profile: `.sc/cfg.PROFILE.yaml`, by default `.sc/cfg.default.yaml`, or SIMPLE_CONTAINER_CONFIG
    ");
    insta::assert_snapshot!(Files::server(PROVISIONER).with(".sc/cfg.default.yaml", "projectName: a b\n").messages(), @r"
    error[profile]: project names may only contain alphanumerics, hyphens, underscores, and periods
    --> .sc/cfg.default.yaml:1:14
    ");
    insta::assert_snapshot!(Files::server("a: [1\n").messages(), @r"
    error[yaml-syntax]: this is not YAML: unclosed bracket '['
     --> .sc/stacks/s/server.yaml:1:4
      |
    1 | a: [1
      |    ^
      |
      = hint: close the list with `]`
    ");
}

/// Shows: server-yaml.md#files "A missing profile is reported once, with the folder that was searched."
#[test]
fn missing_profile_is_reported_once_with_the_searched_folder() {
    insta::assert_snapshot!(Files::empty().profile_error("defualt"), @r#"
    error[profile]: the profile "defualt" does not exist: there is no cfg.defualt.yaml in <ROOT>/.sc
     |
     = hint: did you mean `default`?
     = hint: this folder has the profiles: default
    "#);
    let none = Files::empty().without(".sc/cfg.default.yaml");
    insta::assert_snapshot!(none.profile_error("default"), @r#"
    error[profile]: the profile "default" does not exist: there is no cfg.default.yaml in <ROOT>/.sc
     |
     = hint: `sc init` writes one, with a first stack; SIMPLE_CONTAINER_CONFIG can have its text instead
     = hint: a profile is a YAML file that holds `projectName: NAME`
     = hint: `.sc` is searched only in the root of the git repository
    "#);
    let without_git = none.without(".git/HEAD").without(".git/refs/heads/f/x").with("a", "");
    insta::assert_snapshot!(without_git.profile_error("default"), @r#"
    error[profile]: the profile "default" does not exist: there is no cfg.default.yaml in <ROOT>/.sc
     |
     = hint: `sc init` writes one, with a first stack; SIMPLE_CONTAINER_CONFIG can have its text instead
     = hint: a profile is a YAML file that holds `projectName: NAME`
     = hint: outside of a git repository, `.sc` is searched only in the working folder
    "#);
    let with_template =
        Files::empty().without(".sc/cfg.default.yaml").with(".sc/cfg.yaml.template", "projectName: tank\n");
    let with_template = with_template.profile_error("default");
    let hint = "copy `.sc/cfg.yaml.template`, which this repository has for it, to `.sc/cfg.default.yaml`";
    assert!(with_template.contains(hint) && !with_template.contains("sc init"), "{with_template}");
    let folder = without_git.with(".sc/cfg.default.yaml/a", "");
    insta::assert_snapshot!(folder.profile_error("default"), @r#"error[profile]: failed to read the profile "default", .sc/cfg.default.yaml: it is a folder, not a regular file"#);
}

#[test]
fn state_storage_is_private_only_if_declared() {
    let provisioner = |config: &str| {
        format!(
            "provisioner: {{ type: pulumi, config: {{ state-storage: {{ type: fs, config: {{ path: 'file:///x'{config} }} }}, \
             secrets-provider: {{ type: passphrase }} }} }}\n"
        )
    };
    for (text, expected) in [("", false), (", private: false", false), (", private: true", true)] {
        let stack = Files::server(&provisioner(text)).stack();
        let storage = stack.provisioner.state_storage;
        assert!(matches!(storage, StateStorage::FileSystem { private, .. } if private == expected), "{text}");
    }
    let messages = Files::server(&provisioner(", private: yes please")).messages();
    assert!(messages.contains("expected `true` or `false`"), "{messages}");
}

#[test]
fn locks_are_taken_over_unless_it_is_switched_off() {
    let provisioner = |lock: &str| {
        format!(
            "provisioner: {{ type: pulumi, config: {{ state-storage: {{ type: fs, config: {{ path: 'file:///x' }} }}, \
             secrets-provider: {{ type: passphrase }}{lock} }} }}\n"
        )
    };
    let table = [
        ("", true),
        (", lock:", true),
        (", lock: {}", true),
        (", lock: { takeover: true }", true),
        (", lock: { takeover: no }", false),
    ];
    for (text, expected) in table {
        assert_eq!(Files::server(&provisioner(text)).stack().provisioner.takeover, expected, "{text}");
    }
    let messages = Files::server(&provisioner(", lock: { takeover: never }")).messages();
    assert!(messages.contains("expected `true` or `false`"), "{messages}");
    let messages = Files::server(&provisioner(", lock: { lease: 5 }")).messages();
    assert!(messages.contains("the key `lease` is ignored"), "{messages}");
}

#[test]
fn broken_secrets_file_is_reported_without_the_secrets_that_it_lacks() {
    let server = format!(
        "{PROVISIONER}variables: {{ a: {{ type: string, value: x }} }}\noutputs: {{ x: '${{secret:p}} ${{auth:q}} ${{var:b}}' }}\n"
    );
    let codes = |secrets: &str| {
        let read = Files::server(&server).secrets(secrets).read(&["s"]);
        read.loaded.diagnostics.iter().map(|found| found.code.0).collect::<Vec<_>>()
    };
    assert_eq!(codes("values: { other: text }\n"), ["unresolved-placeholder"; 3]);
    assert_eq!(codes("values:\n  p: \"hunter2\n"), ["unresolved-placeholder", "yaml-syntax"]);
    assert_eq!(codes("values: { p: [hunter2] }\n"), ["unresolved-placeholder", "wrong-kind"]);
}

#[test]
fn stores_that_are_not_supported_are_refused_by_name() {
    let moved = "`pulumi stack export | sc stack import` moves a stack there";
    for (storage, expected, hint) in [
        ("type: pulumi-cloud", "the state storage \"pulumi-cloud\" is not supported: it belongs to the service", moved),
        ("type: fs, config: { path: \"https://api.pulumi.com\" }", "at an `https://` address is not supported", moved),
        ("type: passphrase", "\"passphrase\" is not a state storage, but a secrets provider", "\"s3-bucket\""),
    ] {
        let server = format!(
            "
provisioner:
  type: pulumi
  config:
    state-storage: {{ {storage} }}
    secrets-provider: {{ type: passphrase, config: {{ passPhrase: hush }} }}
"
        );
        let messages = Files::server(&server).messages();
        assert!(messages.starts_with("error[not-supported]: ") && messages.contains(expected), "{storage}: {messages}");
        assert!(messages.contains(hint), "{storage}: {messages}");
    }
}
