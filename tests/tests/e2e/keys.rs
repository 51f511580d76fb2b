//! Secrets of a state under a key in a key management service.

use tests::google_kms::{GoogleKms, KeyState, TOKEN};

use crate::repository::{FILES, PROVISIONER, Repository, Sections};

const REEF: &str = "projects/p/locations/l/keyRings/r/cryptoKeys/reef";
const SHORE: &str = "projects/p/locations/l/keyRings/r/cryptoKeys/shore";
const PAGE: &str = "page: { type: files:fs:File, config: { path: a, content: '${secret:token}' } }";

fn provisioner(key: &str) -> String {
    let provider = format!("type: gcp-kms, config: {{ keyName: 'gcpkms://{key}' }}");
    PROVISIONER.replace("type: passphrase, config: { passPhrase: hush }", &provider)
}

/// Repository whose commands use the stand-in of Google Cloud KMS.
struct Reef {
    repository: Repository,
    kms: GoogleKms,
    variables: Vec<(&'static str, String)>,
}

impl Reef {
    async fn new(provisioner: &str, resources: &str) -> Self {
        let sections = Sections { plugins: FILES, resources, outputs: "token: '${secret:token}'" };
        let repository = Repository::new(sections);
        repository.write(".sc/stacks/reef/secrets.yaml", "schemaVersion: 1.0\nvalues:\n  token: swordfish-7f3a\n");
        let kms = GoogleKms::start(&[REEF, SHORE]).await.unwrap();
        let variables = vec![
            ("CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS", kms.url()),
            ("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN.to_owned()),
        ];
        let reef = Self { repository, kms, variables };
        reef.choose(provisioner, resources);
        reef
    }

    /// Writes server.yaml with another secrets provider.
    fn choose(&self, provisioner: &str, resources: &str) {
        let outputs = if resources.contains("secret:") { "token: '${secret:token}'" } else { "" };
        self.repository.write_stack("reef", provisioner, Sections { plugins: FILES, resources, outputs });
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value.to_owned()));
        self
    }

    /// Runs a command. Returns its exit code and output, and the methods of the service that were called.
    fn run(&self, arguments: &str) -> (String, Vec<String>) {
        let mut command = self.repository.command(arguments);
        command.envs(self.variables.iter().map(|(name, value)| (*name, value)));
        let output = self.repository.start_command(command).output();
        assert!(!output.contains(TOKEN), "the access token is shown: {output}");
        (output, self.kms.take_methods())
    }

    fn succeed(&self, arguments: &str) -> (String, Vec<String>) {
        let (output, methods) = self.run(arguments);
        assert!(output.starts_with("exit 0\n"), "{arguments}: {output}");
        (output, methods)
    }

    fn provider(&self) -> serde_json::Value {
        self.repository.state()["checkpoint"]["latest"]["secrets_providers"].clone()
    }
}

/// Shows: state.md#secrets "A run sends at most one request for the data key."
#[tokio::test(flavor = "multi_thread")]
async fn run_requests_the_data_key_once_at_most() {
    let reef = Reef::new(&provisioner(REEF), PAGE).await;
    assert_eq!(reef.succeed("provision").1, ["encrypt"]);
    let provider = reef.provider();
    assert_eq!((&provider["type"], &provider["state"]["url"]), (&"cloud".into(), &format!("gcpkms://{REEF}").into()));
    for command in ["provision", "preview", "refresh --yes", "stack outputs --show-secrets", "doctor"] {
        assert_eq!(reef.succeed(command).1, ["decrypt"], "{command}");
    }
    for command in ["stack ls", "state ls", "state show page", "stack export", "stack history", "validate"] {
        assert_eq!(reef.succeed(command).1, [""; 0], "{command}");
    }
    assert_eq!(reef.provider(), provider, "the data key is kept");
    let (outputs, _) = reef.succeed("stack outputs --show-secrets");
    assert!(outputs.contains("swordfish-7f3a"), "{outputs}");
}

/// Shows: state.md#secrets "A run that does none of these needs no key, and lists, masked states and exports need
///   none."
#[tokio::test(flavor = "multi_thread")]
async fn unchanged_stack_without_secrets_needs_no_key() {
    let plain = PAGE.replace("${secret:token}", "plain");
    let reef = Reef::new(&provisioner(REEF), &plain).await;
    assert_eq!(reef.succeed("provision").1, ["encrypt"]);
    for command in ["provision", "preview", "refresh --yes", "stack outputs"] {
        assert_eq!(reef.succeed(command).1, [""; 0], "{command}");
    }
    reef.choose(&provisioner(REEF), &PAGE.replace("${secret:token}", "changed"));
    assert_eq!(reef.succeed("provision").1, ["decrypt"], "the key must be there before the first call");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_secrets_provider_is_used_from_the_next_run_on_and_reported() {
    let reef = Reef::new(PROVISIONER, PAGE).await.with("PULUMI_CONFIG_PASSPHRASE", "hush");
    let passphrase = PROVISIONER.to_owned();
    let steps = [
        (passphrase.clone(), None, vec![]),
        (
            provisioner(REEF),
            Some(format!("with the key gcpkms://{REEF}, as server.yaml names it; so far with a passphrase")),
            vec!["encrypt"],
        ),
        (
            provisioner(SHORE),
            Some(format!(
                "with the key gcpkms://{SHORE}, as server.yaml names it; so far with the key gcpkms://{REEF}"
            )),
            vec!["decrypt", "encrypt"],
        ),
        (
            passphrase,
            Some(format!("with a passphrase, as server.yaml names it; so far with the key gcpkms://{SHORE}")),
            vec!["decrypt"],
        ),
    ];
    for (provisioner, message, methods) in steps {
        reef.choose(&provisioner, PAGE);
        let (output, called) = reef.succeed("provision");
        assert_eq!(called, methods, "{output}");
        match message {
            Some(message) => {
                let message = format!("the secrets of organization/tank/reef are encrypted anew: {message}");
                assert!(output.contains(&message), "{message}\n{output}");
            }
            None => assert!(!output.contains("encrypted anew"), "{output}"),
        }
        let (outputs, _) = reef.succeed("stack outputs --show-secrets");
        assert!(outputs.contains("swordfish-7f3a"), "{outputs}");
        assert!(!reef.succeed("provision").0.contains("encrypted anew"));
    }
    let reef = reef.with("PULUMI_CLOUD_SECRET_OVERRIDE", &format!("gcpkms://{SHORE}"));
    reef.choose(&provisioner(REEF), PAGE);
    let (output, _) = reef.succeed("provision");
    assert!(output.contains("as PULUMI_CLOUD_SECRET_OVERRIDE names it"), "{output}");
    assert_eq!(reef.provider()["state"]["url"], format!("gcpkms://{SHORE}"));
}

/// Shows: state.md#secrets "A key that cannot be used is reported before anything is changed."
#[tokio::test(flavor = "multi_thread")]
async fn unusable_key_is_reported_before_anything_is_changed() {
    let reef = Reef::new(&provisioner(REEF), PAGE).await;
    reef.succeed("provision");
    let before = reef.repository.files("backend");
    let mut messages = Vec::new();
    let mut fail = |reef: &Reef| {
        reef.choose(&provisioner(REEF), &PAGE.replace("path: a", "path: b"));
        let (output, _) = reef.run("provision");
        messages.push(output.replace(&reef.kms.url(), "KMS"));
        assert!(reef.repository.files("backend") == before && !reef.repository.path("site/b").exists(), "{output}");
    };
    for state in [KeyState::Disabled, KeyState::Denied, KeyState::Unavailable(100)] {
        reef.kms.set(REEF, state);
        fail(&reef);
    }
    reef.kms.set(REEF, KeyState::Unavailable(2));
    assert_eq!(reef.succeed("stack outputs --show-secrets").1, ["decrypt"; 3], "a request without a reply is repeated");
    reef.kms.set(REEF, KeyState::Enabled);
    let reef = reef.with("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29.expired");
    fail(&reef);
    let reef = reef.with("GOOGLE_OAUTH_ACCESS_TOKEN", "").with("GOOGLE_APPLICATION_CREDENTIALS", "/missing.json");
    fail(&reef);
    // A new stack.
    std::fs::remove_dir_all(reef.repository.path("backend/.pulumi/stacks")).unwrap();
    std::fs::remove_dir_all(reef.repository.path("backend/.pulumi/history")).unwrap();
    let reef = reef.with("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN);
    reef.kms.set(REEF, KeyState::Denied);
    let (output, _) = reef.run("provision --allow-empty");
    assert!(output.contains("PERMISSION_DENIED") && output.contains("cannot be encrypted"), "{output}");
    assert!(!reef.repository.is_locked() && !reef.repository.path("backend/.pulumi/stacks").exists(), "{output}");
    insta::assert_snapshot!(messages.join("\n\n"), @"
    exit 1
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error[key]: this key cannot be used
     --> .sc/stacks/reef/server.yaml:6:59
      |
    6 |     secrets-provider: { type: gcp-kms, config: { keyName: 'gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/reef' } }
      |                                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: the checkpoint of organization/tank/reef ([repo]/backend/.pulumi/stacks/tank/reef.json) cannot be read
      caused by: the data key of stack organization/tank/reef cannot be decrypted with the key gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/reef: the key is disabled: FAILED_PRECONDITION: projects/p/locations/l/keyRings/r/cryptoKeys/reef/cryptoKeyVersions/1 is not enabled, current state is: DISABLED.
      hint: enable the key, or cancel its deletion; the secrets cannot be read without it


    exit 1
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error[key]: this key cannot be used
     --> .sc/stacks/reef/server.yaml:6:59
      |
    6 |     secrets-provider: { type: gcp-kms, config: { keyName: 'gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/reef' } }
      |                                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: the checkpoint of organization/tank/reef ([repo]/backend/.pulumi/stacks/tank/reef.json) cannot be read
      caused by: the data key of stack organization/tank/reef cannot be decrypted with the key gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/reef: access to the key is denied: PERMISSION_DENIED: Permission 'cloudkms.cryptoKeyVersions.useTodecrypt' denied on resource 'projects/p/locations/l/keyRings/r/cryptoKeys/reef'
      hint: the account needs kms:Encrypt and kms:Decrypt, the role roles/cloudkms.cryptoKeyEncrypterDecrypter, or in Azure the role `Key Vault Crypto User`; AWS also refuses a data key that was encrypted in another region


    exit 1
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error[key]: this key cannot be used
     --> .sc/stacks/reef/server.yaml:6:59
      |
    6 |     secrets-provider: { type: gcp-kms, config: { keyName: 'gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/reef' } }
      |                                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: the checkpoint of organization/tank/reef ([repo]/backend/.pulumi/stacks/tank/reef.json) cannot be read
      caused by: the data key of stack organization/tank/reef cannot be decrypted with the key gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/reef: the key management service does not reply: UNAVAILABLE: The service is currently unavailable.
      hint: check the network, the region and the `endpoint` of the key's URL


    exit 1
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error[key]: this key cannot be used
     --> .sc/stacks/reef/server.yaml:6:59
      |
    6 |     secrets-provider: { type: gcp-kms, config: { keyName: 'gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/reef' } }
      |                                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: the checkpoint of organization/tank/reef ([repo]/backend/.pulumi/stacks/tank/reef.json) cannot be read
      caused by: the data key of stack organization/tank/reef cannot be decrypted with the key gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/reef: there are no valid credentials: UNAUTHENTICATED: Request had invalid authentication credentials.
      hint: log in again, or set the credentials of the secrets provider in server.yaml; those of Azure are variables of the environment, such as AZURE_CLIENT_ID


    exit 1
    --- out
    --- err
    info: Loaded plugin: files v0.1.0
    error[key]: this key cannot be used
     --> .sc/stacks/reef/server.yaml:6:59
      |
    6 |     secrets-provider: { type: gcp-kms, config: { keyName: 'gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/reef' } }
      |                                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: the checkpoint of organization/tank/reef ([repo]/backend/.pulumi/stacks/tank/reef.json) cannot be read
      caused by: the data key of stack organization/tank/reef cannot be decrypted with the key gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/reef: there are no valid credentials: the credentials of GOOGLE_APPLICATION_CREDENTIALS (/missing.json) cannot be read: cannot read /missing.json: No such file or directory (os error 2)
      hint: log in again, or set the credentials of the secrets provider in server.yaml; those of Azure are variables of the environment, such as AZURE_CLIENT_ID
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn data_key_of_another_key_is_reported_before_anything_is_changed() {
    let reef = Reef::new(&provisioner(SHORE), PAGE).await;
    reef.succeed("provision");
    // The state names a key that has not encrypted its data key.
    let path = "backend/.pulumi/stacks/tank/reef.json";
    let text = reef.repository.read(path).replace(SHORE, REEF);
    reef.repository.write(path, &text);
    reef.choose(&provisioner(REEF), &PAGE.replace("path: a", "path: b"));
    let (output, methods) = reef.run("provision");
    assert!(output.starts_with("exit 1\n"), "{output}");
    let reason =
        "the data key was encrypted with another key or in another context: INVALID_ARGUMENT: Decryption failed";
    assert!(output.contains(reason) && output.contains("`sc stack restore` returns to a state"), "{output}");
    assert_eq!((methods, reef.repository.read(path)), (vec!["decrypt".to_owned()], text));
    assert!(!reef.repository.path("site/b").exists() && !reef.repository.is_locked(), "{output}");
}
