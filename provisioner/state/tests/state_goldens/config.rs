//! Stack files of Pulumi's command line.

use serde_json::json;
use state::StackSettings;
use state::secrets::Keyring;

use crate::case::Case;

async fn check(name: &str) {
    let case = Case::open(name);
    for (stack, known) in case.stacks() {
        let file = case.folder.join(format!("project/Pulumi.{}.yaml", stack.stack()));
        let settings = StackSettings::parse(&std::fs::read_to_string(file).unwrap(), stack.project()).unwrap();
        let manager = Keyring::new(Some(case.passphrase(&stack))).manager(&settings.secrets.unwrap()).unwrap();
        let crypter = manager.crypter().await.unwrap();
        for (key, value) in &settings.config {
            let known = &known["config"][key];
            assert_eq!(known["value"], json!(value.program_text(Some(&*crypter)).unwrap()), "{key}");
            assert_eq!(known["secret"], json!(value.is_secret()), "{key}");
        }
    }
}

#[tokio::test]
async fn values_of_all_kinds_equal_those_of_the_command_line() {
    check("config").await;
}

#[tokio::test]
async fn each_stack_has_its_own_key() {
    check("two-stacks").await;
}

#[tokio::test]
async fn new_passphrase_decrypts_the_configuration() {
    check("new-passphrase").await;
}
