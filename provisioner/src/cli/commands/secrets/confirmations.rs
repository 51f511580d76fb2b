//! Recipients and files that a store lists, and that the user has to confirm before a file is encrypted.
//!
//! Whoever writes the repository can list them. Those of the default branch are confirmed, and those that were confirmed in
//! this clone before.

use std::path::{Path, PathBuf};

use bridge::fs::{Access, MAX_DOCUMENT_BYTES, read_if_exists, utf8, write_atomically};
use bridge::message_text::MessageText;
use bridge::shell::option;
use clap::Args;
use config::Repository;
use secrets_store::STORE_PATH;
use secrets_store::confirmed::{Confirmed, Listed};
use secrets_store::store::Store;
use tokio_util::sync::CancellationToken;

use crate::cli::exit::CliError;
use crate::cli::git::Git;
use crate::cli::output::Output;
use crate::cli::prompt::{Confirmation, confirm};
use crate::cli::ui::Ui;

/// The default branch of the repository that this one was cloned from.
const DEFAULT_BRANCH: &str = "refs/remotes/origin/HEAD";
/// Record of what was confirmed in this clone, in the folder of git, which nobody else writes.
const RECORD: &str = "sc-secrets-confirmed";

/// Confirmations on the command line.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct AcceptArgs {
    /// Encrypt for this new recipient without a question; the fingerprint is that of `ssh-keygen -l`
    #[arg(long, value_name = "FINGERPRINT")]
    accept_recipient: Vec<String>,
    /// Encrypt this newly registered file without a question
    #[arg(long, value_name = "PATH")]
    accept_file: Vec<String>,
}

/// Recipients and files that are confirmed.
pub(super) struct Confirmations {
    confirmed: Confirmed,
    /// File of the confirmations of this clone, and its content.
    record: Option<(PathBuf, Confirmed)>,
}

impl Confirmations {
    /// Reads those of the default branch and of this clone, and adds those of the command line.
    ///
    /// # Errors
    /// git cannot be started.
    pub(super) async fn read(repository: &Repository, accepted: &AcceptArgs) -> anyhow::Result<Self> {
        let record = repository.git_folder().map(|folder| folder.join(RECORD)).map(|file| {
            let recorded = read_record(&file);
            (file, recorded)
        });
        let mut confirmed = record.as_ref().map(|(_, recorded)| recorded.clone()).unwrap_or_default();
        let store = match Git::find(&repository.root).filter(|_| record.is_some()) {
            Some(git) => git.file_of(DEFAULT_BRANCH, STORE_PATH).await?,
            None => None,
        };
        // A store that cannot be read confirms nothing.
        let store = store.and_then(|text| Store::parse(&text).ok()).unwrap_or_default();
        confirmed.extend(Confirmed::of_store(&store));
        accepted.accept_recipient.iter().for_each(|fingerprint| confirmed.add_recipient(fingerprint));
        accepted.accept_file.iter().for_each(|path| confirmed.add_file(path));
        Ok(Self { confirmed, record })
    }

    /// Asks about each recipient and each file that is not confirmed. Returns false after the first no.
    ///
    /// # Errors
    /// Wrong usage, if there is no terminal: a pipe or `--yes` is no reply, because it confirms changes of known files.
    pub(super) async fn ask(&self, ui: &Ui, listed: &Listed) -> anyhow::Result<bool> {
        let Listed { recipients, files } = self.confirmed.without_confirmation(listed);
        if recipients.is_empty() && files.is_empty() {
            return Ok(true);
        }
        if !ui.output.can_ask() {
            let names = recipients.iter().map(|key| format!("the recipient {} {}", key.kind(), key.fingerprint()));
            let names: Vec<String> = names.chain(files.iter().map(|path| format!("the file {path:?}"))).collect();
            let options = recipients.iter().map(|key| option("--accept-recipient", &key.fingerprint()).to_string());
            let options: Vec<String> =
                options.chain(files.iter().map(|path| option("--accept-file", path).to_string())).collect();
            let message = MessageText::new(format_args!(
                "{STORE_PATH} lists what neither the default branch ({DEFAULT_BRANCH}) nor a confirmation in this clone has: {}",
                names.join(", ")
            ));
            let hint = MessageText::new(format_args!(
                "find out who has added it; to encrypt, run the command on a terminal, or with {}",
                options.join(" ")
            ));
            return Err(CliError::usage(message, hint).into());
        }
        let of_recipients = recipients.iter().map(|key| {
            let (kind, fingerprint) = (key.kind(), key.fingerprint());
            MessageText::new(format_args!(
                "Encrypt for the new recipient {kind} {fingerprint}? It is not confirmed yet."
            ))
        });
        let of_files = files.iter().map(|path| {
            MessageText::new(format_args!("Encrypt the newly registered file {path}? It is not confirmed yet."))
        });
        for question in of_recipients.chain(of_files) {
            if confirm(&ui.output, &ui.signals, &CancellationToken::new(), &question, false).await? == Confirmation::No
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Records what a committed edit has encrypted. Without a repository of git there is no record.
    pub(super) fn record(self, output: &Output, listed: &Listed, named: Option<&str>) {
        let Some((file, mut recorded)) = self.record else { return };
        let before = recorded.clone();
        listed.recipients.iter().for_each(|key| recorded.add_recipient(&key.fingerprint()));
        listed.files.iter().map(String::as_str).chain(named).for_each(|path| recorded.add_file(path));
        if recorded == before {
            return;
        }
        if let Err(error) = write_atomically(&file, recorded.to_text().as_bytes(), Access::Private) {
            output.warn(format_args!(
                "the confirmations are not recorded, and are asked for again: {}",
                MessageText::chain(&error)
            ));
        }
    }
}

fn read_record(file: &Path) -> Confirmed {
    let text = read_if_exists(file, MAX_DOCUMENT_BYTES).ok().flatten().and_then(|text| utf8(text).ok());
    Confirmed::parse(&text.unwrap_or_default())
}
