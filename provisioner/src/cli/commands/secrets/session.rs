//! The store that a command works on: keys with passphrases, edits with confirmations.

use bridge::message_text::MessageText;
use config::diagnostics::SourceFiles;
use config::sibling_profiles::differences;
use config::{Profile, Repository};
use provisioner::operation::check_owner;
use secrets_store::edit::Edit;
use secrets_store::keys::{KeyError, OwnKeys};
use secrets_store::{SecretsStoreError, StoreFile, remove_abandoned_files};
use tokio_util::sync::CancellationToken;

use super::change;
use super::confirmations::{AcceptArgs, Confirmations};
use crate::cli::args::GlobalArgs;
use crate::cli::display::Line;
use crate::cli::exit::CliError;
use crate::cli::plaintext;
use crate::cli::process::{identity, process_context, working_folder};
use crate::cli::prompt::{ask_or_read_secret, decline};
use crate::cli::stacks::{configuration_error, profile_name};
use crate::cli::ui::Ui;

/// Number of times that an edit is prepared again because another process has edited the store.
const ATTEMPTS: usize = 20;

/// The store of a repository, with the arguments of the command.
pub(super) struct SecretsSession<'a> {
    pub(super) ui: &'a Ui,
    pub(super) global: &'a GlobalArgs,
    pub(super) repository: Repository,
    pub(super) file: StoreFile,
}

/// Outcome of an edit.
pub(super) enum Edited {
    /// The store is written. Paths of the files that were encrypted.
    Committed(Vec<String>),
    /// The user declined a question, which is reported.
    Declined,
}

/// Warns of a profile that has another project or folder of stacks than other profiles of the repository. A profile that is missing or
/// invalid is the error of the commands that need one.
fn warn_of_differing_profiles(ui: &Ui, global: &GlobalArgs, repository: &Repository) {
    let (name, mut sources) = (profile_name(global), SourceFiles::default());
    if let Ok(profile) = Profile::read(name, repository, &process_context(), &mut sources) {
        ui.output.print_diagnostics(&differences(name, &profile, repository), &sources);
    }
}

impl<'a> SecretsSession<'a> {
    /// Finds the store of the repository, and removes the temporary files of commands that were killed. Warns of profiles that differ.
    ///
    /// # Errors
    /// The working folder is missing, or the repository belongs to another user.
    pub(super) fn open(ui: &'a Ui, global: &'a GlobalArgs) -> anyhow::Result<Self> {
        let repository = Repository::discover(&working_folder(global.cwd.as_deref())?);
        check_owner(&repository, &identity(&process_context().environment))?;
        remove_abandoned_files(&repository.root);
        plaintext::remove_abandoned(&process_context().environment);
        warn_of_differing_profiles(ui, global, &repository);
        Ok(Self { ui, global, file: StoreFile::of(&repository.root), repository })
    }

    /// Reads the profile, and takes its keys.
    ///
    /// # Errors
    /// The profile is missing or invalid; the reasons have been printed.
    pub(super) fn keys(&self) -> anyhow::Result<OwnKeys> {
        let (mut sources, process_context) = (SourceFiles::default(), process_context());
        let profile = Profile::read(profile_name(self.global), &self.repository, &process_context, &mut sources);
        let profile = profile.map_err(|found| configuration_error(&self.ui.output, &found, &sources))?;
        for secret in [&profile.private_key, &profile.private_key_password].into_iter().flatten() {
            self.ui.output.masker().add_text(secret.expose());
        }
        Ok(OwnKeys::new(profile.key_config(&self.repository, &process_context)))
    }

    /// Runs work that may need the private key. If the key is encrypted and the profile has no passphrase, asks for
    /// it.
    pub(super) async fn with_passphrase<T>(
        &self,
        keys: &mut OwnKeys,
        work: impl Fn(&OwnKeys) -> Result<T, SecretsStoreError>,
    ) -> anyhow::Result<T> {
        let name = match work(keys) {
            Err(SecretsStoreError::Key(KeyError::PassphraseMissing { name })) => name,
            other => return Ok(other?),
        };
        let question = MessageText::new(format_args!("Passphrase of {name}:"));
        let Some(passphrase) =
            ask_or_read_secret(&self.ui.output, &self.ui.signals, &CancellationToken::new(), &question).await?
        else {
            return Err(CliError::failed(format_args!("{name} is encrypted, and no passphrase was given"), "").into());
        };
        *keys = keys.with_passphrase(passphrase);
        work(keys).map_err(|error| match error {
            SecretsStoreError::Key(KeyError::WrongPassphrase { name }) => {
                CliError::failed(format_args!("the passphrase of {name} is incorrect"), "run the command again").into()
            }
            other => other.into(),
        })
    }

    /// Prepares an edit, asks for confirmations of what it takes from the store, with those of the command line in
    /// `accepted`, and of its changes unless `yes` is true, and commits it. Prepares it again if another process has edited
    /// the store meanwhile.
    pub(super) async fn edit(
        &self,
        keys: &mut OwnKeys,
        yes: bool,
        accepted: &AcceptArgs,
        prepare: impl Fn(&OwnKeys) -> Result<Edit, SecretsStoreError>,
    ) -> anyhow::Result<Edited> {
        let mut attempts = 0;
        loop {
            let edit = self.with_passphrase(keys, &prepare).await?;
            let listed = edit.listed();
            let confirmations = Confirmations::read(&self.repository, accepted).await?;
            let is_confirmed = confirmations.ask(self.ui, &listed).await?;
            if !is_confirmed || !change::confirm_all(self.ui, edit.changes(), yes).await? {
                decline(&self.ui.output);
                return Ok(Edited::Declined);
            }
            for path in &edit.dropped {
                self.ui.output.warn(format_args!("dropped {path} from the store: it is not registered"));
            }
            change::warn_of_legacy(&self.ui.output, &edit.legacy);
            attempts += 1;
            let named = edit.named_file().map(str::to_owned);
            match edit.commit() {
                Err(SecretsStoreError::Conflict) if attempts < ATTEMPTS => {}
                committed => {
                    let committed = committed?;
                    confirmations.record(&self.ui.output, &listed, named.as_deref());
                    return Ok(Edited::Committed(committed));
                }
            }
        }
    }

    /// Reports what was done, on standard error.
    pub(super) fn report(&self, text: impl AsRef<str>) {
        self.ui.output.print_messages(&[Line::plain(text)]);
    }
}
