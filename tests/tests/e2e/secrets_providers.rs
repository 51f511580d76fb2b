//! `sc stack change-secrets-provider`.

use std::io::Write as _;
use std::process::Stdio;

use tests::google_kms::{GoogleKms, KeyState, TOKEN};

use crate::repository::{FILES, PROVISIONER, Repository, Sections};

const KEY: &str = "projects/p/locations/l/keyRings/r/cryptoKeys/reef";
const COMMAND: &str = "stack change-secrets-provider --yes";
const SETTINGS: &str = "Pulumi.reef.yaml";
/// Passphrase and secret of docs/spec/state-and-secrets.md#5.3.
const PASSPHRASE: &str = "tide-pool 42";
const SALT: &str = "v1:obLD1OX2Bxg=:v1:AAECAwQFBgcICQoL:4k5vYY3TEksuSLXK3QiRhRl15zgSzw==";
const CIPHERTEXT: &str = "v1:JCUmJygpKissLS4v:bX8xQC+hZHc5O1Yf91a20+1eoB22bpV/";

fn sections() -> Sections<'static> {
    let resources = "page: { type: files:fs:File, config: { path: a, content: '${secret:token}' } }";
    Sections { plugins: FILES, resources, outputs: "token: '${secret:token}'" }
}

/// Returns a repository with a provisioned stack, whose settings file has a secret if `with_settings` is set.
fn provisioned(with_settings: bool) -> Repository {
    let repository = Repository::new(sections());
    repository.write(".sc/stacks/reef/secrets.yaml", "schemaVersion: 1.0\nvalues:\n  token: swordfish-7f3a\n");
    choose_passphrase(&repository, PASSPHRASE);
    if with_settings {
        let config = format!("config:\n  tank:motto: # ours\n    secure: {CIPHERTEXT}\n  tank:depth: 40\n");
        repository.write(SETTINGS, &format!("encryptionsalt: {SALT}\n{config}"));
    }
    repository.expect_exit(0, "provision");
    repository
}

fn choose_passphrase(repository: &Repository, passphrase: &str) {
    repository.write_stack("reef", &PROVISIONER.replace("hush", &format!("'{passphrase}'")), sections());
}

fn choose_key(repository: &Repository) {
    let provider = format!("type: gcp-kms, config: {{ keyName: 'gcpkms://{KEY}' }}");
    let provisioner = PROVISIONER.replace("type: passphrase, config: { passPhrase: hush }", &provider);
    repository.write_stack("reef", &provisioner, sections());
}

/// Runs a command with an input and variables.
fn run(repository: &Repository, arguments: &str, input: &str, variables: &[(&str, &str)]) -> String {
    let mut command = repository.command(arguments);
    command.stdin(Stdio::piped()).envs(variables.iter().copied());
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(input.as_bytes()).unwrap();
    drop(writer);
    command.stdin(reader.try_clone().unwrap());
    let output = repository.start_command(command).output();
    std::io::Read::read_to_end(&mut reader, &mut Vec::new()).unwrap();
    output
}

fn assert_readable(repository: &Repository, variables: &[(&str, &str)]) {
    let outputs = run(repository, "stack outputs --show-secrets", "", variables);
    assert!(outputs.contains("swordfish-7f3a"), "{outputs}");
    let provisioned = run(repository, "provision", "", variables);
    assert!(provisioned.starts_with("exit 0\n") && !provisioned.contains("encrypted anew"), "{provisioned}");
}

fn in_state(repository: &Repository) -> serde_json::Value {
    repository.state()["checkpoint"]["latest"]["secrets_providers"].clone()
}

/// Shows: state.md#change-of-the-secrets-provider "it replaces the data key of a key in a cloud, or the passphrase"
/// Shows: state.md#change-of-the-secrets-provider "The new settings file is written beside the old one
///   (`Pulumi.<stack>.yaml.new`), then the state is saved"
#[test]
fn passphrase_is_replaced_in_the_state_and_the_settings_file() {
    for with_settings in [false, true] {
        let repository = provisioned(with_settings);
        let refused = run(&repository, COMMAND, "\n", &[]);
        assert!(refused.starts_with("exit 2\n") && refused.contains("the new passphrase is empty"), "{refused}");
        let changed = run(&repository, COMMAND, "low tide\nmore", &[]);
        assert!(changed.starts_with("exit 0\n") && !changed.contains("low tide"), "{changed}");
        assert!(changed.contains("stay under the previous passphrase"), "{changed}");
        let old = repository.sc("stack outputs --show-secrets");
        assert!(old.contains("incorrect passphrase"), "{old}");
        choose_passphrase(&repository, "low tide");
        assert_readable(&repository, &[]);
        if with_settings {
            let settings = repository.read(SETTINGS);
            let salt = in_state(&repository)["state"]["salt"].clone();
            assert!(
                settings.starts_with(&format!("encryptionsalt: {salt}\nconfig:\n  tank:motto: # ours\n")),
                "{settings}"
            );
            assert!(!settings.contains(CIPHERTEXT) && settings.ends_with("\n  tank:depth: 40\n"), "{settings}");
        }
        assert!(!repository.path("Pulumi.reef.yaml.new").exists());
    }
}

/// Shows: state.md#change-of-the-secrets-provider "encrypts the secrets of a stack anew with the provider that
///   server.yaml names"
/// Shows: state.md#change-of-the-secrets-provider "The new settings file is written beside the old one
///   (`Pulumi.<stack>.yaml.new`), then the state is saved"
#[tokio::test(flavor = "multi_thread")]
async fn stack_moves_between_a_passphrase_and_a_key_and_gets_a_new_data_key() {
    let repository = provisioned(true);
    let kms = GoogleKms::start(&[KEY]).await.unwrap();
    let url = kms.url();
    let variables = [
        ("CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS", url.as_str()),
        ("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN),
        ("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE),
    ];
    choose_key(&repository);
    let warned = run(&repository, "provision", "", &variables);
    assert!(warned.contains("warning: Pulumi.reef.yaml names a passphrase for the secrets"), "{warned}");

    kms.set(KEY, KeyState::Disabled);
    let (state, settings) = (repository.files("backend"), repository.read(SETTINGS));
    let failed = run(&repository, COMMAND, "", &variables);
    assert!(failed.starts_with("exit 1\n") && failed.contains("is not enabled"), "{failed}");
    assert!(repository.files("backend") == state && repository.read(SETTINGS) == settings, "{failed}");

    kms.set(KEY, KeyState::Enabled);
    let changed = run(&repository, COMMAND, "", &variables);
    assert!(changed.contains("stay under a passphrase"), "{changed}");
    assert_readable(&repository, &variables[..2]);
    let first = in_state(&repository);
    let lines = |provider: &serde_json::Value| {
        let state = &provider["state"];
        format!("secretsprovider: {}\nencryptedkey: {}\nconfig:\n", state["url"], state["encryptedkey"])
    };
    assert!(repository.read(SETTINGS).starts_with(&lines(&first)), "{}", repository.read(SETTINGS));

    let replaced = run(&repository, COMMAND, "", &variables[..2]);
    assert!(replaced.contains("stay under the previous data key"), "{replaced}");
    let second = in_state(&repository);
    assert_ne!(first, second, "the data key is replaced");
    assert!(repository.read(SETTINGS).starts_with(&lines(&second)));
    assert_readable(&repository, &variables[..2]);

    choose_passphrase(&repository, PASSPHRASE);
    let back = run(&repository, COMMAND, "", &variables);
    assert!(back.contains(&format!("stay under the key gcpkms://{KEY}")), "{back}");
    assert_readable(&repository, &[]);
    assert!(!repository.read(SETTINGS).contains("secretsprovider"));
}

/// Shows: state.md#change-of-the-secrets-provider "The new settings file is written beside the old one
///   (`Pulumi.<stack>.yaml.new`), then the state is saved"
/// Shows: state.md#change-of-the-secrets-provider "If this is interrupted, the next command finishes it"
#[test]
fn interrupted_change_of_the_settings_file_is_finished_as_the_state_says() {
    let repository = provisioned(true);
    let before = repository.read(SETTINGS);
    run(&repository, COMMAND, "low tide\n", &[]);
    let after = repository.read(SETTINGS);
    choose_passphrase(&repository, "low tide");
    // The process died before the new file took its place.
    repository.write(SETTINGS, &before);
    repository.write("Pulumi.reef.yaml.new", &after);
    repository.expect_exit(0, "provision");
    assert_eq!(repository.read(SETTINGS), after);
    // The process died before it saved the state.
    repository.write("Pulumi.reef.yaml.new", &before);
    repository.expect_exit(0, "provision");
    assert_eq!(repository.read(SETTINGS), after);
    assert!(!repository.path("Pulumi.reef.yaml.new").exists());
}

/// Shows: state.md#change-of-the-secrets-provider "It takes the lock, and refuses as long as an interrupted run has
///   left a journal."
#[test]
fn locked_stack_is_left_unchanged() {
    let repository = provisioned(true);
    repository.write(
        "backend/.pulumi/locks/organization/tank/reef/other.json",
        r#"{"pid":1,"username":"u","hostname":"h","timestamp":"2026-01-01T00:00:00Z"}"#,
    );
    let (state, settings) = (repository.files("backend"), repository.read(SETTINGS));
    let locked = run(&repository, COMMAND, "low tide\n", &[]);
    assert!(locked.starts_with("exit 4\n") && locked.contains("currently locked"), "{locked}");
    assert!(repository.files("backend") == state && repository.read(SETTINGS) == settings, "{locked}");
    assert!(!repository.path("Pulumi.reef.yaml.new").exists());
}

/// Shows: state.md#change-of-the-secrets-provider "on a terminal it asks for the new one twice, without showing it"
#[test]
fn new_passphrase_is_asked_for_twice_and_not_shown_on_a_terminal() {
    let repository = provisioned(false);
    let before = in_state(&repository);
    for (first, second, refused) in
        [("low tide", "low tied", "the two passphrases differ"), ("", "", "passphrase is empty")]
    {
        let mut terminal = repository.start_on_terminal("stack change-secrets-provider");
        terminal.wait_until_shown("New passphrase:");
        terminal.type_line(first);
        if !first.is_empty() {
            terminal.wait_until_shown("The new passphrase again:");
            terminal.type_line(second);
        }
        assert_eq!(terminal.wait(), 2, "{}", terminal.screen());
        let screen = terminal.screen();
        assert!(screen.contains(refused) && !screen.contains("tide") && terminal.is_restored(), "{screen}");
    }
    assert_eq!(in_state(&repository), before);

    let mut terminal = repository.start_on_terminal("stack change-secrets-provider");
    terminal.wait_until_shown("New passphrase:");
    terminal.press_ctrl_c();
    assert_eq!(terminal.wait(), 130);
    assert!(terminal.is_restored() && terminal.line_before_cursor().is_empty(), "{}", terminal.screen());
    drop(terminal);

    // Spaces belong to a passphrase.
    let mut terminal = repository.start_on_terminal("stack change-secrets-provider");
    for question in ["New passphrase:", "The new passphrase again:"] {
        terminal.wait_until_shown(question);
        terminal.type_line(" low  tide ");
    }
    terminal.wait_until_shown("[y/N]");
    terminal.type_line("y");
    assert_eq!(terminal.wait(), 0, "{}", terminal.screen());
    let screen = terminal.screen();
    assert!(screen.contains("with the new passphrase") && !screen.contains("tide"), "{screen}");
    assert!(terminal.is_restored(), "{screen}");
    drop(terminal);
    choose_passphrase(&repository, " low  tide ");
    assert_readable(&repository, &[]);
}
