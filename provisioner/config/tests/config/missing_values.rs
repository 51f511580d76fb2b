//! Checks of server.yaml where values are missing, and readings of no more than the place of the state.

use config::types::{CoreConfig, CoreType, Decoded, RequiredKey, TextHandle, TypeOrigin, TypeTable};
use config::{Reading, SecretsProvider};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::repository::{Files, PROVISIONER};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Boat {
    owner: Option<TextHandle>,
    crew: i64,
    length: f64,
    sails: bool,
    name: String,
    kind: Option<Kind>,
    ports: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Ketch,
    Sloop,
}

impl CoreConfig for Boat {
    const TYPE: &'static str = "boat";
    const ORIGIN: TypeOrigin = TypeOrigin::Own;
    const PROVIDER: &'static str = "water";
    const REQUIRED: &'static [RequiredKey] = &[("owner", "name the owner"), ("crew", "a boat has a crew")];

    fn required_by(decoded: &Decoded<Self>) -> Vec<RequiredKey> {
        if decoded.config.sails { Vec::new() } else { vec![("engine", "a boat has sails or an engine")] }
    }
}

/// Checks a server.yaml without values: its messages, and the placeholders that are unknown.
fn check(files: Files) -> (String, String) {
    let read = files.reading(Reading::WithoutValues).read(&["s"]);
    (read.messages(), read.loaded.unknown.join(" "))
}

fn boat(config: &str) -> Files {
    let sections = format!(
        "resources: {{ resources: {{ e: {{ resources: {{ a: {{ type: boat, config: {{ {config} }} }} }} }} }} }}\n"
    );
    Files::sections(&sections).types(TypeTable::new([CoreType::of::<Boat>()]))
}

/// Shows: server-yaml.md#checks-without-a-cloud "each counts as a value of the right kind, and a line says which they are"
#[test]
fn unknown_value_counts_as_one_of_the_right_kind() {
    let config = "owner: '${secret:o}', crew: '${env:C}', length: '${env:L}', sails: '${env:S}', name: 'b-${env:N}', \
                  kind: '${auth:k.projectId}', ports: ['${env:P}', x]";
    let (messages, unknown) = check(boat(config));
    assert_eq!(messages, "");
    assert_eq!(unknown, "${auth:k.projectId} ${env:C} ${env:L} ${env:N} ${env:P} ${env:S} ${secret:o}");
    // A variable that CI sets to an empty text is as missing.
    assert_eq!(check(boat("owner: '${env:O}', crew: 1, sails: yes").environment(vec![("O", "")])).1, "${env:O}");
    assert_eq!(check(boat("owner: '${env:O:}', crew: 1, sails: yes").environment(vec![("O", "")])).1, "");
}

/// Shows: server-yaml.md#checks-without-a-cloud "Namespace, form and place of the placeholder are checked"
#[test]
fn namespace_form_and_place_of_an_unknown_value_are_checked() {
    for (files, expected) in [
        (boat("owner: '${secrets:o}', crew: 1, sails: yes"), "there is no namespace"),
        (boat("owner: '${ secret:o }', crew: 1, sails: yes"), "is not how a placeholder is written"),
        (boat("owner: '${secret:}', crew: 1, sails: yes"), "is not defined for stack"),
        (boat("owner: '${auth:k.account}', crew: 1, sails: yes"), "an auth entry has no property \"account\""),
        (boat("owner: '${var:o}', crew: 1, sails: yes"), "the variable \"o\" is not defined"),
        (boat("owner: '${env:O}', sails: yes"), "`crew` is missing"),
        (
            Files::sections("plugins: [{ name: p, source: { type: local, path: '${secret:path}' } }]\n"),
            "cannot be a secret",
        ),
        // A file that is read has all its values.
        (boat("owner: '${secret:o}', crew: 1, sails: yes").secrets("values: { p: x }"), "is not defined for stack"),
    ] {
        let (messages, _) = check(files);
        assert!(messages.contains(expected), "{expected}: {messages}");
        assert_eq!(messages.matches("error[").count(), 1, "{messages}");
    }
}

#[test]
fn sections_other_than_resources_count_unknown_values_as_met() {
    let server = "
provisioner:
  type: pulumi
  config:
    state-storage: { type: fs, config: { path: '${env:STATE}' } }
    secrets-provider: { type: gcp-kms, config: { keyName: '${env:KEY}', credentials: '${auth:gcp}' } }
    confirm: '${env:CONFIRM}'
    maxDeletes: '${env:MAX}'
    organization: '${env:ORG}'
plugins:
  - { name: p, source: { type: git, repository: 'https://sea.example/${env:R}', version: v1, token: '${secret:t}' } }
  - { name: q, source: { type: local, path: p, checksum: '${env:SUM}' }, config: { key: '${secret:k}' } }
resources:
  resources:
    e:
      resources:
        a:
          type: p:index:Thing
          config: { list: ['${env:A}'] }
          options: { customTimeouts: { create: '${env:T}' }, ignoreChanges: ['${env:I}'] }
        b: { type: q:index:Thing }
outputs: { o: '${env:OUT}' }
";
    assert_eq!(check(Files::server(server)).0, "");
    let aws =
        "type: aws-kms, config: { keyName: 'awskms://${env:KEY}', accessKey: '${env:A}', secretAccessKey: '${env:B}'";
    for provider in [
        &format!("{aws}, region: '${{env:R}}' }}"),
        "type: aws-kms, config: { keyName: '${env:K}', credentials: '${auth:a}' }",
    ] {
        let server = PROVISIONER.replace("type: passphrase, config: { passPhrase: p }", provider);
        assert_ne!(server, PROVISIONER);
        assert_eq!(check(Files::server(&server)).0, "", "{provider}");
    }
    // What is written is checked.
    let wrong = PROVISIONER.replace("file:///state", "'https://${env:HOST}/state'");
    assert!(check(Files::server(&wrong)).0.contains("Pulumi Cloud"));
    // A placeholder is no secret: it is not masked in messages.
    let files = Files::server(&PROVISIONER.replace("passPhrase: p", "passPhrase: '${env:PHRASE}'"));
    let read = files.reading(Reading::WithoutValues).read(&["s"]);
    let provider = &read.loaded.stacks[0].provisioner.secrets_provider;
    assert!(matches!(provider, SecretsProvider::Passphrase { passphrase: None, .. }), "{provider:?}");
}

#[test]
fn inherited_entry_of_a_file_that_is_not_there_is_unknown() {
    let files = || {
        Files::sections("outputs: { o: '${auth:aws}' }\n")
            .secrets("auth: { aws: { inherit: base } }")
            .with(".sc/stacks/base/server.yaml", PROVISIONER)
    };
    assert_eq!(check(files()), (String::new(), "${auth:aws}".to_owned()));
    assert!(files().messages().contains("has no auth entry \"aws\" to inherit"));
}

#[test]
fn missing_values_are_errors_where_all_must_be() {
    let files = Files::sections("outputs: { a: '${env:A}', b: '${env:B:}', c: '${secret:c}', d: '${env:D}' }\n");
    let messages = files.environment(vec![("D", "")]).reading(Reading::WithValues).messages();
    for expected in ["the environment variable \"A\" is not set or is empty", "the secret \"c\"", "variable \"D\""] {
        assert!(messages.contains(expected), "{expected}: {messages}");
    }
    assert_eq!(messages.matches("error[").count(), 3, "{messages}");
}

#[test]
fn place_of_the_state_is_read_from_a_file_with_mistakes_elsewhere() {
    let mistakes = "
resorces: {}
variables: { v: 1 }
templates: { t: { type: none } }
resources: { resources: { e: { resources: { a: { type: none, config: { '${env:X}': 1 } } } } } }
resources: {}
outputs: { o: '${secret:none}', p: '${resource:none.id}' }
plugins: [{ name: P }]
";
    let files = || Files::server(&format!("{PROVISIONER}{mistakes}"));
    let (root, _folder) = files().write();
    assert!(!files().read_at(&root, &["s"]).0.diagnostics.is_empty());
    let (loaded, _) = files().reading(Reading::StateOnly).read_at(&root, &["s"]);
    assert_eq!(loaded.diagnostics, []);
    let stack = &loaded.stacks[0];
    assert!(matches!(stack.provisioner.secrets_provider, SecretsProvider::Passphrase { .. }));
    assert!(stack.environments.is_empty() && stack.plugins.is_empty() && stack.outputs.is_empty());
    for wrong in [
        PROVISIONER.replace("type: fs", "type: fsx"),
        PROVISIONER.replace("passPhrase: p", "passPhrase: '${secret:none}'"),
        PROVISIONER.replace("passPhrase: p", "passPhrase: p, passPhrase: q"),
        PROVISIONER.replace("passPhrase: p", "'${env:P}': p"),
    ] {
        let files = Files::server(&wrong).reading(Reading::StateOnly);
        let (root, _folder) = files.write();
        assert!(files.read_at(&root, &["s"]).0.stacks.is_empty(), "{wrong}");
    }
}
