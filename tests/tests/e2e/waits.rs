//! Display of commands without a run while a store is slow.

use std::time::Duration;

use tests::s3_server::S3Server;

use crate::repository::{PROVISIONER, Repository, Sections};
use crate::terminal::Terminal;

/// Time until a reply of the store: longer than a command is silent on a terminal.
const DELAY: Duration = Duration::from_secs(1);

/// Shows: state.md#stack-commands "A command that waits
///   for its store says so, on a terminal at once"
#[tokio::test(flavor = "multi_thread")]
async fn command_that_waits_for_a_store_says_so_on_a_terminal() {
    let server = S3Server::start(DELAY).await.unwrap();
    let repository = Repository::new(Sections::default());
    let url = format!("s3://reef/team?endpoint={}&s3ForcePathStyle=true&region=us-east-1", server.url());
    let provisioner = PROVISIONER.replace("file://backend", &format!("'{url}'"));
    assert_ne!(provisioner, PROVISIONER);
    repository.write_stack("reef", &provisioner, Sections::default());
    let mut command = repository.command("stack ls");
    command.env("AWS_ACCESS_KEY_ID", "a").env("AWS_SECRET_ACCESS_KEY", "b");
    let mut terminal = Terminal::start(&command);
    terminal.wait_until_shown("reading the state of reef (");
    assert_eq!(terminal.wait(), 0);
    let screen = terminal.screen();
    assert!(!screen.contains("reading") && screen.contains("STACK"), "{screen}");
}
