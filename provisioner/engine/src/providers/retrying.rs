//! Provider whose failed calls are repeated if its plugin asks for it (docs/engine.md#repeated-calls).
//!
//! All attempts of a call are one operation: the caller records it before the first one, and receives the result of the
//! last one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bridge::message_text::MessageText;
use bridge::provider::{
    CallReply, CallRequest, Capabilities, CheckConfigRequest, CheckReply, CheckRequest, ConfigureRequest,
    ConstructReply, ConstructRequest, CreateReply, CreateRequest, DeleteRequest, DiffConfigRequest, DiffReply,
    DiffRequest, InvokeReply, InvokeRequest, ListReply, ListRequest, Method, ParameterizeReply, ParameterizeRequest,
    Provider, ProviderError, ReadReply, ReadRequest, SchemaRequest, UpdateReply, UpdateRequest, Views,
};
use futures_util::future::BoxFuture;
use pulumi_proto::urn::Urn;
use state::HeldLease;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::decisions::retries::{FailedAttempt, RetryDecision, RetryRefusal, decide};
use crate::events::{Event, ScheduledRetry};
use crate::reporter::Reporter;

/// Parts of a run that repeated calls need.
#[derive(Clone, Debug)]
pub(crate) struct Retries {
    pub(crate) reporter: Arc<Reporter>,
    /// Ends each wait for the next attempt.
    pub(crate) stop: CancellationToken,
    /// Lease of the lock of the stack, which is confirmed before each repetition.
    pub(crate) lease: Option<HeldLease>,
    /// Limits of the calls about resources; `None` if the slots of the resources limit them.
    pub(crate) calls: Option<CallLimits>,
}

/// Permits for calls about resources.
#[derive(Clone, Debug)]
pub(crate) struct CallLimits {
    /// Calls that do work in the cloud.
    work: Arc<Semaphore>,
    /// Calls that decide what work there is. They do not queue behind the work: what is decided meanwhile can be announced in the
    /// journal before its turn comes.
    decisions: Arc<Semaphore>,
}

impl CallLimits {
    /// Allows as many calls of each kind at once.
    pub(crate) fn new(parallel: usize) -> Self {
        Self { work: Arc::new(Semaphore::new(parallel)), decisions: Arc::new(Semaphore::new(parallel)) }
    }
}

impl Retries {
    /// Waits until a call may be made.
    async fn permit(&self, method: Method) -> Option<SemaphorePermit<'_>> {
        let limits = self.calls.as_ref()?;
        let permits = match method {
            Method::Create | Method::Read | Method::Update | Method::Delete => &limits.work,
            Method::Check | Method::Diff => &limits.decisions,
            // They may be made for a resource that holds a permit, or for many of them.
            _ => return None,
        };
        permits.acquire().await.ok()
    }
}

/// Provider whose failed calls are repeated if its plugin asks for it.
#[derive(Debug)]
pub(super) struct RetryingProvider {
    provider: Arc<dyn Provider>,
    /// Package of the provider.
    package: String,
    retries: Retries,
}

/// Call that may be repeated.
#[derive(Clone, Copy)]
struct RepeatedCall<'a> {
    method: Method,
    urn: Option<&'a Urn>,
    /// Token of a function.
    function: Option<&'a str>,
    /// Time limit of all attempts together.
    timeout: Option<Duration>,
    views: Option<&'a Views>,
}

impl<'a> RepeatedCall<'a> {
    fn new(method: Method, urn: &'a Urn) -> Self {
        Self { method, urn: Some(urn), function: None, timeout: None, views: None }
    }
}

impl RetryingProvider {
    pub(super) fn new(provider: Arc<dyn Provider>, package: String, retries: Retries) -> Self {
        Self { provider, package, retries }
    }

    /// Makes a call, and repeats it. `attempt` makes one attempt within a time limit.
    async fn repeat<'s, T>(
        &'s self,
        call: RepeatedCall<'_>,
        attempt: impl Fn(Option<Duration>) -> BoxFuture<'s, Result<T, ProviderError>> + Send + Sync,
    ) -> Result<T, ProviderError> {
        let mut permit = self.retries.permit(call.method).await;
        let started = Instant::now();
        let time_left = || call.timeout.map(|timeout| timeout.saturating_sub(started.elapsed()));
        let (mut retries, mut timeout) = (0, call.timeout);
        loop {
            let error = match attempt(timeout).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            drop(permit.take());
            let decision = decide(FailedAttempt {
                method: call.method,
                error: &error,
                retries,
                can_repeat_mutations: self.provider.can_repeat_mutations(),
                time_left: time_left(),
                is_stopped: self.retries.stop.is_cancelled(),
                jitter: random_fraction(),
            });
            let delay = match decision {
                RetryDecision::Fail => return Err(error),
                RetryDecision::Refuse(refusal) => return Err(refused(error, refusal)),
                RetryDecision::Retry(delay) => delay,
            };
            self.report(call, retries, delay, &error);
            debug!(method = %call.method, retries, delay_ms = delay.as_millis(), "call is repeated after a delay");
            // A provider does not report that it can be called again: the delay is the one that it asked for, or grows.
            tokio::select! {
                biased;
                () = self.retries.stop.cancelled() => return Err(refused(error, RetryRefusal::Stopped)),
                () = tokio::time::sleep(delay) => {}
            }
            if let Some(lease) = &self.retries.lease
                && lease.confirm().await.is_err()
            {
                return Err(refused(error, RetryRefusal::LockLost));
            }
            (retries, timeout) = (retries + 1, time_left());
            // The protocol sends "no limit" as zero.
            if timeout.is_some_and(|left| left.is_zero()) {
                return Err(refused(error, RetryRefusal::TimeLimit));
            }
            permit = self.retries.permit(call.method).await;
            call.views.iter().filter_map(|views| views.listener.as_ref()).for_each(|listener| listener.discard());
        }
    }

    fn report(&self, call: RepeatedCall<'_>, retries: u32, delay: Duration, error: &ProviderError) {
        self.retries.reporter.emit(Event::RetryScheduled(Box::new(ScheduledRetry {
            plugin: self.package.clone(),
            method: call.method,
            urn: call.urn.cloned(),
            function: call.function.map(str::to_owned),
            attempt: retries + 2,
            delay,
            message: MessageText::of(error),
            details: error.details(),
        })));
    }
}

/// Adds the reason why a call is not repeated to its error.
fn refused(mut error: ProviderError, refusal: RetryRefusal) -> ProviderError {
    if let ProviderError::Failed { details: Some(details), .. } = &mut error {
        details.not_repeated = Some(refusal.to_string());
    }
    error
}

/// Returns a random number from 0 to 1.
fn random_fraction() -> f64 {
    let random = getrandom::u32().expect("the operating system has random bytes for each process");
    f64::from(random) / f64::from(u32::MAX)
}

#[async_trait]
impl Provider for RetryingProvider {
    fn capabilities(&self) -> Capabilities {
        self.provider.capabilities()
    }

    fn version(&self) -> Option<&str> {
        self.provider.version()
    }

    fn can_repeat_mutations(&self) -> bool {
        self.provider.can_repeat_mutations()
    }

    async fn parameterize(&self, request: ParameterizeRequest) -> Result<ParameterizeReply, ProviderError> {
        self.provider.parameterize(request).await
    }

    async fn schema(&self, request: SchemaRequest) -> Result<Option<String>, ProviderError> {
        self.provider.schema(request).await
    }

    async fn check_config(&self, request: CheckConfigRequest) -> Result<CheckReply, ProviderError> {
        self.provider.check_config(request).await
    }

    async fn diff_config(&self, request: DiffConfigRequest) -> Result<DiffReply, ProviderError> {
        self.provider.diff_config(request).await
    }

    async fn configure(&self, request: ConfigureRequest) -> Result<(), ProviderError> {
        let call = RepeatedCall::new(Method::Configure, &request.urn);
        self.repeat(call, |_| self.provider.configure(request.clone())).await
    }

    async fn check(&self, request: CheckRequest) -> Result<CheckReply, ProviderError> {
        let call = RepeatedCall::new(Method::Check, &request.urn);
        self.repeat(call, |_| self.provider.check(request.clone())).await
    }

    async fn diff(&self, request: DiffRequest) -> Result<DiffReply, ProviderError> {
        let call = RepeatedCall::new(Method::Diff, &request.urn);
        self.repeat(call, |_| self.provider.diff(request.clone())).await
    }

    async fn create(&self, request: CreateRequest) -> Result<CreateReply, ProviderError> {
        let (timeout, views) = (request.timeout, Some(&request.views));
        let call = RepeatedCall { timeout, views, ..RepeatedCall::new(Method::Create, &request.urn) };
        self.repeat(call, |timeout| self.provider.create(CreateRequest { timeout, ..request.clone() })).await
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadReply, ProviderError> {
        let (timeout, views) = (request.timeout, Some(&request.views));
        let call = RepeatedCall { timeout, views, ..RepeatedCall::new(Method::Read, &request.urn) };
        self.repeat(call, |timeout| self.provider.read(ReadRequest { timeout, ..request.clone() })).await
    }

    async fn update(&self, request: UpdateRequest) -> Result<UpdateReply, ProviderError> {
        let (timeout, views) = (request.timeout, Some(&request.views));
        let call = RepeatedCall { timeout, views, ..RepeatedCall::new(Method::Update, &request.urn) };
        self.repeat(call, |timeout| self.provider.update(UpdateRequest { timeout, ..request.clone() })).await
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        let (timeout, views) = (request.timeout, Some(&request.views));
        let call = RepeatedCall { timeout, views, ..RepeatedCall::new(Method::Delete, &request.urn) };
        self.repeat(call, |timeout| self.provider.delete(DeleteRequest { timeout, ..request.clone() })).await
    }

    async fn list(&self, request: ListRequest) -> Result<ListReply, ProviderError> {
        self.provider.list(request).await
    }

    async fn invoke(&self, request: InvokeRequest) -> Result<InvokeReply, ProviderError> {
        let function = Some(request.token.as_str());
        let call = RepeatedCall { method: Method::Invoke, urn: None, function, timeout: None, views: None };
        self.repeat(call, |_| self.provider.invoke(request.clone())).await
    }

    async fn call(&self, request: CallRequest) -> Result<CallReply, ProviderError> {
        self.provider.call(request).await
    }

    async fn construct(&self, request: ConstructRequest) -> Result<ConstructReply, ProviderError> {
        self.provider.construct(request).await
    }

    async fn mappings(&self, key: &str) -> Result<Option<Vec<String>>, ProviderError> {
        self.provider.mappings(key).await
    }

    async fn mapping(&self, key: &str, provider: &str) -> Result<Option<(String, Vec<u8>)>, ProviderError> {
        self.provider.mapping(key, provider).await
    }

    async fn cancel(&self) -> Result<(), ProviderError> {
        self.provider.cancel().await
    }

    async fn close(&self) {
        self.provider.close().await;
    }
}

#[cfg(test)]
mod tests;
