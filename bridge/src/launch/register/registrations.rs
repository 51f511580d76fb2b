//! Expected registrations, by their tokens (docs/spec/plugin-hosts.md#C.2).
//!
//! ```text
//! waiting ──► checked ──► registered ──► deregistered
//!    │           └──► used: refused, or its plugin has ended
//!    └──► expired: its start was given up
//! ```

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pulumi_proto::host_v1::{RegisterRequest, RegisterResponse};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::error::{RegistrationError, SUPPORTED_VERSION};
use super::group::ProcessGroup;
use super::token::Token;
use crate::process::{LogLevel, OutputSink};

/// Largest number of past registrations whose tokens are recognized.
const MAX_PAST: usize = 1000;

/// Registrations that a host expects at its socket. Clones share them.
#[derive(Clone, Debug)]
pub struct PluginRegistrations {
    socket: PathBuf,
    records: Arc<Mutex<Vec<Record>>>,
}

/// Plugin that is expected to register.
pub(super) struct ExpectedPlugin {
    /// Name of the plugin.
    pub(super) plugin: String,
    /// Package that it serves.
    pub(super) package: String,
    /// Receiver of messages about late and repeated registrations.
    pub(super) sink: Arc<dyn OutputSink>,
}

struct Record {
    token: Token,
    expected: ExpectedPlugin,
    group: Arc<OnceLock<ProcessGroup>>,
    stage: Stage,
}

enum Stage {
    /// No process has used the token.
    Waiting(mpsc::Sender<Claim>),
    /// The start checks a registration, or has refused it, or the plugin has ended.
    Used,
    /// The plugin is registered. `deregistered` is cancelled once it has deregistered.
    Registered { id: Token, deregistered: CancellationToken },
    /// The start was given up before a process used the token.
    Expired,
}

/// Registration with a valid token, or the error of one without, of a process of the plugin. The start replies to it.
pub(super) struct Claim {
    pub(super) request: Result<RegisterRequest, RegistrationError>,
    /// Number of the process that registers, if the system shows it.
    pub(super) process: Option<i32>,
    reply: oneshot::Sender<Result<RegisterResponse, RegistrationError>>,
}

/// Right of a process to register, which the start of its plugin decides.
struct Right {
    plugin: String,
    claims: mpsc::Sender<Claim>,
}

/// Expected registration of one process. Dropping it ends the right to register, or the registration.
pub(super) struct Expectation {
    registrations: PluginRegistrations,
    token: Token,
    group: Arc<OnceLock<ProcessGroup>>,
    claims: mpsc::Receiver<Claim>,
}

impl PluginRegistrations {
    /// Variable with the path of the socket.
    pub const HOST_VARIABLE: &str = "SC_PLUGIN_HOST";
    /// Variable with the token.
    pub const TOKEN_VARIABLE: &str = "SC_PLUGIN_TOKEN";
    /// Variable with the address of the engine service, host:port.
    pub const ENGINE_VARIABLE: &str = "SC_PLUGIN_ENGINE";

    /// Creates registrations of which none is expected, for the service at a Unix socket.
    pub fn new(socket: PathBuf) -> Self {
        Self { socket, records: Arc::default() }
    }

    /// The path of the socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Registers a plugin, see `Host.Register`. `process` is the number of the calling process, if the system shows it.
    ///
    /// # Errors
    /// [`RegistrationError`], which the start of the plugin fails with, too.
    ///
    /// # Cancellation
    /// The registration continues.
    pub async fn register(
        &self,
        request: RegisterRequest,
        process: Option<i32>,
    ) -> Result<RegisterResponse, RegistrationError> {
        let (reply, replied) = oneshot::channel();
        let (right, request) = match self.claim(&request.token) {
            Ok(right) => (right, Ok(request)),
            Err(error) => match self.waiting_of(process).filter(|_| error == RegistrationError::UnknownToken) {
                Some(right) => (right, Err(error)),
                None => return Err(error),
            },
        };
        // The start may be given up meanwhile: then there is no reply.
        right.claims.try_send(Claim { request, process, reply }).ok();
        replied.await.unwrap_or(Err(RegistrationError::TooLate { plugin: right.plugin }))
    }

    /// Takes the right to register with a token.
    fn claim(&self, token: &str) -> Result<Right, RegistrationError> {
        let mut records = self.lock();
        let record = records.iter_mut().find(|record| record.token.is(token));
        let record = record.ok_or(RegistrationError::UnknownToken)?;
        let plugin = record.expected.plugin.clone();
        let error = match std::mem::replace(&mut record.stage, Stage::Used) {
            Stage::Waiting(claims) => return Ok(Right { plugin, claims }),
            Stage::Used => RegistrationError::UsedToken { plugin },
            Stage::Expired => {
                record.stage = Stage::Expired;
                RegistrationError::TooLate { plugin }
            }
            registered @ Stage::Registered { .. } => {
                record.stage = registered;
                RegistrationError::SecondRegistration { plugin }
            }
        };
        let sink = Arc::clone(&record.expected.sink);
        drop(records);
        sink.log(LogLevel::Warning, &format!("a registration is refused: {error}"));
        Err(error)
    }

    /// Takes the right of the start to whose processes `process` belongs.
    fn waiting_of(&self, process: Option<i32>) -> Option<Right> {
        let process = process?;
        let mut records = self.lock();
        let is_of = |record: &&mut Record| {
            matches!(record.stage, Stage::Waiting(_)) && record.group.get().is_some_and(|group| group.contains(process))
        };
        let record = records.iter_mut().find(is_of)?;
        match std::mem::replace(&mut record.stage, Stage::Used) {
            Stage::Waiting(claims) => Some(Right { plugin: record.expected.plugin.clone(), claims }),
            _ => None,
        }
    }

    /// Ends a registration on behalf of its plugin, see `Host.Deregister`. Returns false if there is none with this number.
    pub fn deregister(&self, registration_id: &str) -> bool {
        let records = self.lock();
        let deregistered = records.iter().find_map(|record| match &record.stage {
            Stage::Registered { id, deregistered } if id.is(registration_id) => Some(deregistered),
            _ => None,
        });
        deregistered.inspect(|deregistered| deregistered.cancel()).is_some()
    }

    /// Expects a registration with a new token.
    ///
    /// # Errors
    /// Returns an error if the system has no random bytes.
    pub(super) fn expect(&self, expected: ExpectedPlugin) -> Result<Expectation, getrandom::Error> {
        let token = Token::generate()?;
        let (sender, claims) = mpsc::channel(1);
        let group = Arc::<OnceLock<ProcessGroup>>::default();
        let record =
            Record { token: token.clone(), expected, group: Arc::clone(&group), stage: Stage::Waiting(sender) };
        let mut records = self.lock();
        let is_past = |record: &Record| matches!(record.stage, Stage::Used | Stage::Expired);
        if records.iter().filter(|record| is_past(record)).count() > MAX_PAST
            && let Some(oldest) = records.iter().position(is_past)
        {
            records.remove(oldest);
        }
        records.push(record);
        Ok(Expectation { registrations: self.clone(), token, group, claims })
    }

    /// Returns whether a plugin that serves a package has registered, or is expected to.
    fn has_package(&self, package: &str) -> bool {
        self.lock().iter().any(|record| record.expected.package == package)
    }

    fn set_stage(&self, token: &Token, next: impl FnOnce(&Stage) -> Option<Stage>) {
        let mut records = self.lock();
        if let Some(record) = records.iter_mut().find(|record| record.token.is(token.expose()))
            && let Some(stage) = next(&record.stage)
        {
            record.stage = stage;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Expectation {
    /// Returns the token, for the environment of the process.
    pub(super) fn token(&self) -> &str {
        self.token.expose()
    }

    /// Sets the processes of the plugin.
    pub(super) fn set_group(&self, group: ProcessGroup) {
        self.group.set(group).unwrap_or_default();
    }

    /// Waits for a process that registers.
    pub(super) async fn claim(&mut self) -> Claim {
        match self.claims.recv().await {
            Some(claim) => claim,
            // The record keeps the sender until there is a claim.
            None => std::future::pending().await,
        }
    }

    /// Returns the error of a package that is not the declared one.
    pub(super) fn other_package(&self, plugin: String, expected: String, found: String) -> RegistrationError {
        if self.registrations.has_package(&found) {
            RegistrationError::OtherPlugin { plugin, expected, found }
        } else {
            RegistrationError::OtherName { expected, found }
        }
    }

    /// Registers the plugin and replies to it. Returns the signal that it has deregistered.
    ///
    /// # Errors
    /// Returns an error if the system has no random bytes.
    pub(super) fn accept(&self, claim: Claim) -> Result<CancellationToken, getrandom::Error> {
        let (id, deregistered) = (Token::generate()?, CancellationToken::new());
        let response = RegisterResponse {
            registration_id: id.expose().to_owned(),
            protocol_version: SUPPORTED_VERSION.to_owned(),
        };
        let stage = Stage::Registered { id, deregistered: deregistered.clone() };
        self.registrations.set_stage(&self.token, |_| Some(stage));
        // A plugin that does not wait for the reply is registered, too.
        claim.reply.send(Ok(response)).ok();
        Ok(deregistered)
    }
}

impl Claim {
    /// Replies that the registration is refused.
    pub(super) fn refuse(self, error: RegistrationError) {
        // A plugin that does not wait for the reply is refused, too.
        self.reply.send(Err(error)).ok();
    }
}

impl Drop for Expectation {
    fn drop(&mut self) {
        self.registrations.set_stage(&self.token, |stage| match stage {
            Stage::Waiting(_) => Some(Stage::Expired),
            Stage::Registered { .. } => Some(Stage::Used),
            Stage::Used | Stage::Expired => None,
        });
    }
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").field("plugin", &self.expected.plugin).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expect(registrations: &PluginRegistrations, plugin: &str) -> Expectation {
        let sink = Arc::new(());
        let expected = ExpectedPlugin { plugin: plugin.to_owned(), package: plugin.to_owned(), sink };
        registrations.expect(expected).unwrap()
    }

    fn request(token: &str) -> RegisterRequest {
        RegisterRequest { token: token.to_owned(), ..Default::default() }
    }

    async fn register(
        registrations: &PluginRegistrations,
        expectation: &mut Expectation,
    ) -> (CancellationToken, String) {
        let request = request(expectation.token());
        let (response, deregistered) = tokio::join!(registrations.register(request, None), async {
            let claim = expectation.claim().await;
            expectation.accept(claim).unwrap()
        });
        (deregistered, response.unwrap().registration_id)
    }

    /// Shows: hosting.md#plugins-that-register-themselves "Each start has a token of its own, which is valid for one
    ///   registration, also for one that fails."
    #[tokio::test]
    async fn token_is_valid_for_one_registration() {
        let registrations = PluginRegistrations::new("/s".into());
        let mut expectation = expect(&registrations, "a");
        let token = expectation.token().to_owned();
        let unknown = registrations.register(request("x"), None).await;
        assert_eq!(unknown, Err(RegistrationError::UnknownToken));

        let (deregistered, id) = register(&registrations, &mut expectation).await;
        let plugin = || "a".to_owned();
        let second = registrations.register(request(&token), None).await;
        assert_eq!(second, Err(RegistrationError::SecondRegistration { plugin: plugin() }));
        assert!(!registrations.deregister("x") && !registrations.deregister(&token) && !deregistered.is_cancelled());
        assert!(registrations.deregister(&id) && deregistered.is_cancelled());

        drop(expectation);
        let used = registrations.register(request(&token), None).await;
        assert_eq!(used, Err(RegistrationError::UsedToken { plugin: plugin() }));
        assert!(!registrations.deregister(&id));
    }

    /// Shows: hosting.md#plugins-that-register-themselves "Each start has a token of its own, which is valid for one
    ///   registration, also for one that fails."
    #[tokio::test]
    async fn registration_after_the_start_was_given_up_is_too_late() {
        let registrations = PluginRegistrations::new("/s".into());
        let late = RegistrationError::TooLate { plugin: "a".to_owned() };
        let expectation = expect(&registrations, "a");
        let token = expectation.token().to_owned();
        drop(expectation);
        for _ in 0..2 {
            assert_eq!(registrations.register(request(&token), None).await, Err(late.clone()));
        }
        // The start is given up while it checks the registration.
        let mut expectation = expect(&registrations, "a");
        let request = request(expectation.token());
        let (refused, ()) = tokio::join!(registrations.register(request, None), async {
            let claim = expectation.claim().await;
            drop(expectation);
            drop(claim);
        });
        assert_eq!(refused, Err(late));
    }

    /// Shows: hosting.md#plugins-that-register-themselves "Each start has a token of its own, which is valid for one
    ///   registration, also for one that fails."
    #[tokio::test]
    async fn refused_registration_uses_the_token_up() {
        let registrations = PluginRegistrations::new("/s".into());
        let (mut a, _b) = (expect(&registrations, "a"), expect(&registrations, "b"));
        let request = request(a.token());
        let other = |found: &str| a.other_package("a".to_owned(), "a".to_owned(), found.to_owned());
        assert!(matches!(other("b"), RegistrationError::OtherPlugin { .. }));
        assert!(matches!(other("c"), RegistrationError::OtherName { .. }));
        let (refused, ()) = tokio::join!(registrations.register(request.clone(), None), async {
            a.claim().await.refuse(RegistrationError::NoAddress);
        });
        assert_eq!(refused, Err(RegistrationError::NoAddress));
        let used = registrations.register(request, None).await;
        assert_eq!(used, Err(RegistrationError::UsedToken { plugin: "a".to_owned() }));
    }

    #[tokio::test]
    async fn unknown_token_ends_the_start_of_the_process_that_used_it() {
        let registrations = PluginRegistrations::new("/s".into());
        let (mut own, other) = (expect(&registrations, "a"), expect(&registrations, "b"));
        let process = i32::try_from(std::process::id()).unwrap();
        other.set_group(ProcessGroup::of_leader(i32::MAX));
        own.set_group(ProcessGroup::of_member(process).unwrap());
        let (refused, ()) = tokio::join!(registrations.register(request("x"), Some(process)), async {
            let claim = own.claim().await;
            let error = claim.request.clone().unwrap_err();
            claim.refuse(error);
        });
        assert_eq!(refused, Err(RegistrationError::UnknownToken));
    }

    #[test]
    fn tokens_of_the_latest_past_starts_are_recognized() {
        let registrations = PluginRegistrations::new("/s".into());
        let kept = expect(&registrations, "kept");
        (0..MAX_PAST + 10).for_each(|_| drop(expect(&registrations, "a")));
        let records = registrations.lock();
        assert!(records.len() <= MAX_PAST + 2, "{}", records.len());
        assert!(records.iter().any(|record| record.token.is(kept.token())));
    }
}
