//! Keys that protect the secrets of a state.

use config::tree::Value;
use config::{AwsAccount, CloudAccount, SecretsProvider};

use crate::repository::Files;

fn server(provider: &str) -> String {
    format!(
        "
provisioner:
  type: pulumi
  config:
    state-storage: {{ type: fs, config: {{ path: 'file:///x' }} }}
    secrets-provider: {provider}
"
    )
}

const AUTH: &str = "
auth:
  aws: { type: aws-token, config: { account: '1', accessKey: AKIA, secretAccessKey: hidden, region: eu-west-3 } }
  gcp: { type: gcp-service-account, config: { projectId: p, credentials: '{\"type\":\"service_account\"}' } }
values: { alias: reef }
";

fn read(provider: &str) -> (String, String, CloudAccount) {
    let read = Files::server(&server(provider)).secrets(AUTH).read(&["s"]);
    assert_eq!(read.messages(), "", "{provider}");
    let provider = &read.loaded.stacks[0].provisioner.secrets_provider;
    let shown = format!("{provider:?}");
    assert!(!shown.contains("hidden") && !shown.contains("service_account"), "{shown}");
    let secrets: Vec<_> = provider.secrets().into_iter().map(|text| text.expose().to_owned()).collect();
    let SecretsProvider::Key { url, account, .. } = provider else { panic!("{provider:?}") };
    (url.clone(), secrets.join(" "), account.clone())
}

#[test]
fn key_is_read_with_its_account() {
    let url = "awskms://alias/reef?region=eu-north-1";
    let (read_url, secrets, account) =
        read("{ type: aws-kms, config: { keyName: 'awskms://alias/${secret:alias}?region=eu-north-1' } }");
    assert_eq!((&*read_url, &*secrets), (url, ""));
    assert_eq!(account, CloudAccount::Aws(AwsAccount::default()));

    for fields in [
        "credentials: '${auth:aws}'",
        "accessKey: AKIA, secretAccessKey: hidden, region: eu-west-3, account: 1, provision: false",
    ] {
        let (_, secrets, account) = read(&format!("{{ type: aws-kms, config: {{ keyName: '{url}', {fields} }} }}"));
        assert_eq!(secrets, "hidden");
        let CloudAccount::Aws(AwsAccount { access_key: Some((key, secret)), region }) = account else { panic!() };
        assert_eq!((key.expose(), secret.expose(), region.as_deref()), ("AKIA", "hidden", Some("eu-west-3")));
    }

    let name = "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k";
    let (read_url, _, account) = read(&format!("{{ type: gcp-kms, config: {{ keyName: '{name}' }} }}"));
    assert_eq!((&*read_url, account), (name, CloudAccount::Environment));
    let fields =
        "credentials: '${auth:gcp}', projectId: '${auth:gcp.projectId}', keyLocation: l, keyRotationPeriod: 1s";
    let (_, secrets, account) = read(&format!("{{ type: gcp-kms, config: {{ keyName: '{name}', {fields} }} }}"));
    assert_eq!(secrets, "{\"type\":\"service_account\"}");
    assert!(matches!(account, CloudAccount::Google(_)));
}

#[test]
fn key_to_create_is_read_with_its_settings_and_its_account() {
    let fields = "credentials: '${auth:gcp}', projectId: '${auth:gcp.projectId}', keyLocation: l, provision: true";
    let read =
        Files::server(&server(&format!("{{ type: gcp-kms, config: {{ {fields} }} }}"))).secrets(AUTH).read(&["s"]);
    assert_eq!(read.messages(), "");
    let provider = &read.loaded.stacks[0].provisioner.secrets_provider;
    let shown = format!("{provider:?}");
    assert!(!shown.contains("service_account"), "{shown}");
    assert!(matches!(provider.secrets()[..], [secret] if secret.expose().contains("service_account")));
    let key = provider.provisioned_key().unwrap();
    assert_eq!(key.type_name, "gcp-kms");
    assert!(matches!(key.account, CloudAccount::Google(_)));
    let settings = key.config.as_mapping().unwrap();
    assert_eq!(settings.keys().collect::<Vec<_>>(), ["keyLocation", "credentials", "projectId"]);
    let text = |name: &str| match &settings.get(name).unwrap().value {
        Value::Scalar(scalar) => (scalar.text.clone(), false),
        Value::Interpolated(string) => (string.known().unwrap(), string.secret),
        _ => panic!(),
    };
    assert_eq!(text("keyLocation"), ("l".to_owned(), false));
    assert_eq!(text("credentials"), ("{\"type\":\"service_account\"}".to_owned(), true));

    let provider = "{ type: aws-kms, config: { provision: true, credentials: '${auth:aws}' } }";
    let read = Files::server(&server(provider)).secrets(AUTH).read(&["s"]);
    let key = read.loaded.stacks[0].provisioner.secrets_provider.provisioned_key().unwrap();
    let CloudAccount::Aws(AwsAccount { region, .. }) = &key.account else { panic!("{key:?}") };
    assert_eq!((key.type_name, region.as_deref()), ("aws-kms", Some("eu-west-3")));
}

/// Shows: server-yaml.md#secrets-provider "A `keyName` without a scheme is refused with the URL to write"
#[test]
fn name_of_a_key_is_refused_with_its_url() {
    let hint = |provider: &str| {
        let messages = Files::server(&server(provider)).secrets(AUTH).messages();
        let line = messages.lines().find(|line| line.contains("= hint: write `keyName: "));
        line.unwrap_or_else(|| panic!("{messages}")).split_once("keyName: ").unwrap().1.to_owned()
    };
    assert_eq!(
        [
            hint("{ type: aws-kms, config: { keyName: alias/reef } }"),
            hint("{ type: aws-kms, config: { keyName: 1234abcd, region: eu-north-1 } }"),
            hint("{ type: aws-kms, config: { keyName: 1234abcd-12ab-34cd-56ef-1234567890ab } }"),
            hint("{ type: aws-kms, config: { keyName: mrk-1234abcd12ab34cd56ef1234567890ab } }"),
            hint("{ type: aws-kms, config: { keyName: reef, credentials: '${auth:aws}' } }"),
            hint("{ type: aws-kms, config: { keyName: 'arn:aws:kms:eu-west-3:1:key/k' } }"),
            hint("{ type: gcp-kms, config: { keyName: reef } }"),
            hint("{ type: gcp-kms, config: { keyName: reef, projectId: p, keyLocation: global } }"),
            hint("{ type: gcp-kms, config: { keyName: projects/p/locations/l/keyRings/r/cryptoKeys/k } }"),
            hint("{ type: azure-key-vault, config: { keyName: reef } }"),
            hint("{ type: azure-key-vault, config: { keyName: 'https://reef.vault.azure.net/keys/k' } }"),
        ],
        [
            "\"awskms://alias/reef?region=REGION\"`",
            "\"awskms://alias/1234abcd?region=eu-north-1\"`",
            "\"awskms://1234abcd-12ab-34cd-56ef-1234567890ab?region=REGION\"`",
            "\"awskms://mrk-1234abcd12ab34cd56ef1234567890ab?region=REGION\"`",
            "\"awskms://alias/reef?region=eu-west-3\"`",
            "\"awskms:///arn:aws:kms:eu-west-3:1:key/k?region=eu-west-3\"`",
            "\"gcpkms://projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/reef\"`",
            "\"gcpkms://projects/p/locations/global/keyRings/RING/cryptoKeys/reef\"`",
            "\"gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k\"`",
            "\"azurekeyvault://VAULT.vault.azure.net/keys/reef\"`",
            "\"azurekeyvault://reef.vault.azure.net/keys/k\"`",
        ]
    );
}

/// Shows: server-yaml.md#secrets-provider "The provider `pulumi-cloud` is refused."
#[test]
fn unusable_keys_are_reported_at_their_line() {
    let messages = [
        "{ type: aws-kms }",
        "{ type: gcp-kms, config: { keyName: '' } }",
        "{ type: aws-kms, config: { keyName: 'awskms://k', provision: true } }",
        "{ type: aws-kms, config: { provision: true, credentials: hidden } }",
        "{ type: aws-kms, config: { keyName: 'gcpkms://projects/p' } }",
        "{ type: aws-kms, config: { keyName: 'azurekeyvault://reef.vault.azure.net/keys/k' } }",
        "{ type: gcp-kms, config: { keyName: 'hashivault://k' } }",
        "{ type: hashivault }",
        "{ type: hashivault, config: { keyName: reef, provision: true } }",
        "{ type: aws-kms, config: { keyName: 'awskms://k', accessKey: AKIA } }",
        "{ type: aws-kms, config: { keyName: 'awskms://k', credentials: hidden } }",
        "{ type: aws-kms, config: { keyName: 'awskms://k', colour: red } }",
        "{ type: pulumi-cloud, config: { credentials: c } }",
        "{ type: gcp-bucket }",
    ]
    .map(|provider| Files::server(&server(provider)).messages());
    insta::assert_snapshot!(messages.join("\n\n"), @r#"
    error[provisioner]: a secrets provider of type "aws-kms" needs the URL of a key
     --> .sc/stacks/s/server.yaml:6:31
      |
    6 |     secrets-provider: { type: aws-kms }
      |                               ^^^^^^^
      |
      = hint: write `config: { keyName: "awskms://alias/NAME?region=REGION" }`

    error[provisioner]: a secrets provider of type "gcp-kms" needs the URL of a key
     --> .sc/stacks/s/server.yaml:6:31
      |
    6 |     secrets-provider: { type: gcp-kms, config: { keyName: '' } }
      |                               ^^^^^^^
      |
      = hint: write `config: { keyName: "gcpkms://projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/NAME" }`

    warning[provisioner]: `keyName` has no effect beside `provision: true`, which creates a key
     --> .sc/stacks/s/server.yaml:6:59
      |
    6 |     secrets-provider: { type: aws-kms, config: { keyName: 'awskms://k', provision: true } }
      |                                                           ^^^^^^^^^^^^
      |
      = hint: remove one of them

    error[credentials]: these are not the credentials of an AWS account
     --> .sc/stacks/s/server.yaml:6:80
      |
    6 |     secrets-provider: { type: aws-kms, config: { provision: true, credentials: hidden } }
      |                                                                                ^^^^^^
      |
      = hint: write `${auth:NAME}`, where NAME is an `aws-token` in the stack's secrets.yaml

    warning[provisioner]: this is a key of gcp-kms, not of aws-kms
     --> .sc/stacks/s/server.yaml:6:59
      |
    6 |     secrets-provider: { type: aws-kms, config: { keyName: 'gcpkms://projects/p' } }
      |                                                           ^^^^^^^^^^^^^^^^^^^^^
      |
      = hint: write `type: gcp-kms`

    warning[provisioner]: this is a key of azure-key-vault, not of aws-kms
     --> .sc/stacks/s/server.yaml:6:59
      |
    6 |     secrets-provider: { type: aws-kms, config: { keyName: 'azurekeyvault://reef.vault.azure.net/keys/k' } }
      |                                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = hint: write `type: azure-key-vault`

    warning[provisioner]: this is a key of hashivault, not of gcp-kms
     --> .sc/stacks/s/server.yaml:6:59
      |
    6 |     secrets-provider: { type: gcp-kms, config: { keyName: 'hashivault://k' } }
      |                                                           ^^^^^^^^^^^^^^^^
      |
      = hint: write `type: hashivault`

    error[provisioner]: a secrets provider of type "hashivault" needs the URL of a key
     --> .sc/stacks/s/server.yaml:6:31
      |
    6 |     secrets-provider: { type: hashivault }
      |                               ^^^^^^^^^^
      |
      = hint: write `config: { keyName: "hashivault://NAME" }`

    error[provisioner]: "reef" is not the URL of a key
     --> .sc/stacks/s/server.yaml:6:62
      |
    6 |     secrets-provider: { type: hashivault, config: { keyName: reef, provision: true } }
      |                                                              ^^^^
      |
      = hint: write `keyName: "hashivault://reef"`

    warning[unknown-key]: the key `provision` is ignored
     --> .sc/stacks/s/server.yaml:6:68
      |
    6 |     secrets-provider: { type: hashivault, config: { keyName: reef, provision: true } }
      |                                                                    ^^^^^^^^^
      |
      = hint: the keys are keyName

    error[credentials]: an access key of AWS needs both `accessKey` and `secretAccessKey`
     --> .sc/stacks/s/server.yaml:6:84
      |
    6 |     secrets-provider: { type: aws-kms, config: { keyName: 'awskms://k', accessKey: AKIA } }
      |                                                                                    ^^^^

    error[credentials]: these are not the credentials of an AWS account
     --> .sc/stacks/s/server.yaml:6:86
      |
    6 |     secrets-provider: { type: aws-kms, config: { keyName: 'awskms://k', credentials: hidden } }
      |                                                                                      ^^^^^^
      |
      = hint: write `${auth:NAME}`, where NAME is an `aws-token` in the stack's secrets.yaml

    warning[unknown-key]: the key `colour` is ignored
     --> .sc/stacks/s/server.yaml:6:73
      |
    6 |     secrets-provider: { type: aws-kms, config: { keyName: 'awskms://k', colour: red } }
      |                                                                         ^^^^^^
      |
      = hint: the keys are keyName, provision, account, accessKey, secretAccessKey, region, credentials

    error[not-supported]: the secrets provider "pulumi-cloud" is not supported: it belongs to the service Pulumi Cloud
     --> .sc/stacks/s/server.yaml:6:31
      |
    6 |     secrets-provider: { type: pulumi-cloud, config: { credentials: c } }
      |                               ^^^^^^^^^^^^
      |
      = hint: use a passphrase or a key of your own: `passphrase`, `aws-kms`, `gcp-kms`, `azure-key-vault`, `hashivault`

    error[not-supported]: "gcp-bucket" is not a secrets provider
     --> .sc/stacks/s/server.yaml:6:31
      |
    6 |     secrets-provider: { type: gcp-bucket }
      |                               ^^^^^^^^^^
      |
      = hint: supported are "passphrase", "aws-kms", "gcp-kms", "azure-key-vault" and "hashivault"
    "#);
}
