//! Repeated calls of a scripted provider, on a paused clock.

use std::collections::VecDeque;
use std::sync::Mutex;

use bridge::provider::{ErrorClass, ErrorDetails, LostReply, PartialFailure};
use pulumi_proto::resource_id::{ReferenceId, ResourceId};
use state::store::StackReference;

use super::*;
use crate::decisions::retries::{MAX_DELAY, MAX_RETRIES};
use crate::events::EventSink;

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Provider whose calls fail with the errors of a script, and then succeed.
#[derive(Debug, Default)]
struct Scripted {
    errors: Mutex<VecDeque<ProviderError>>,
    can_repeat_mutations: bool,
    /// Time and timeout of each attempt.
    attempts: Mutex<Vec<(Instant, Option<Duration>)>>,
    /// Duration of each attempt.
    duration: Duration,
}

impl Scripted {
    async fn attempt<T: Default>(&self, timeout: Option<Duration>) -> Result<T, ProviderError> {
        self.attempts.lock().unwrap().push((Instant::now(), timeout));
        tokio::time::sleep(self.duration).await;
        self.errors.lock().unwrap().pop_front().map_or_else(|| Ok(T::default()), Err)
    }
}

#[async_trait]
impl Provider for Scripted {
    fn can_repeat_mutations(&self) -> bool {
        self.can_repeat_mutations
    }

    async fn check_config(&self, request: CheckConfigRequest) -> Result<CheckReply, ProviderError> {
        self.attempt::<()>(None).await?;
        Ok(CheckReply { inputs: (*request.news).clone(), failures: Vec::new() })
    }

    async fn configure(&self, _: ConfigureRequest) -> Result<(), ProviderError> {
        self.attempt(None).await
    }

    async fn invoke(&self, _: InvokeRequest) -> Result<InvokeReply, ProviderError> {
        self.attempt(None).await
    }

    async fn create(&self, request: CreateRequest) -> Result<CreateReply, ProviderError> {
        self.attempt(request.timeout).await
    }

    async fn delete(&self, request: DeleteRequest) -> Result<(), ProviderError> {
        self.attempt(request.timeout).await
    }
}

#[derive(Debug, Default)]
struct Events(Mutex<Vec<ScheduledRetry>>);

impl EventSink for Events {
    fn emit(&self, event: Event) {
        if let Event::RetryScheduled(retry) = event {
            self.0.lock().unwrap().push(*retry);
        }
    }
}

struct Fixture {
    scripted: Arc<Scripted>,
    provider: RetryingProvider,
    events: Arc<Events>,
    stop: CancellationToken,
}

impl Fixture {
    fn new(scripted: Scripted) -> Self {
        let (scripted, events) = (Arc::new(scripted), Arc::new(Events::default()));
        let reporter = Arc::new(Reporter::new(Arc::clone(&events) as _, Arc::default()));
        let stop = CancellationToken::new();
        let retries = Retries { reporter, stop: stop.clone(), lease: None, calls: None };
        let provider = RetryingProvider::new(Arc::clone(&scripted) as _, "rec".to_owned(), retries);
        Self { scripted, provider, events, stop }
    }

    fn attempts(&self) -> usize {
        self.scripted.attempts.lock().unwrap().len()
    }

    /// Returns the times between the ends and the starts of attempts.
    fn waits(&self) -> Vec<Duration> {
        let attempts = self.scripted.attempts.lock().unwrap();
        attempts.windows(2).map(|pair| pair[1].0 - pair[0].0 - self.scripted.duration).collect()
    }
}

fn busy(method: Method, retry_after: Duration) -> ProviderError {
    let details = ErrorDetails { retry_after: Some(retry_after), ..ErrorDetails::new(ErrorClass::Unavailable) };
    ProviderError::Failed {
        method,
        message: "busy".into(),
        indeterminate: false,
        source: None,
        details: Some(Box::new(details)),
    }
}

fn all_busy(method: Method, count: usize, retry_after: Duration) -> Mutex<VecDeque<ProviderError>> {
    Mutex::new((0..count).map(|_| busy(method, retry_after)).collect())
}

fn urn() -> Urn {
    "urn:pulumi:s::p::rec:index:Thing::a".parse().unwrap()
}

fn create(timeout: Option<Duration>) -> CreateRequest {
    CreateRequest { urn: urn(), inputs: Arc::default(), timeout, preview: false, views: Views::default() }
}

fn delete(timeout: Option<Duration>) -> DeleteRequest {
    DeleteRequest {
        urn: urn(),
        id: ResourceId::new("a-1"),
        outputs: Arc::default(),
        old_inputs: Arc::default(),
        timeout,
        views: Views::default(),
    }
}

fn invoke() -> InvokeRequest {
    InvokeRequest { token: "rec:index:get".into(), arguments: Arc::default(), preview: false }
}

fn reason<T: std::fmt::Debug>(reply: Result<T, ProviderError>) -> String {
    reply.expect_err("the call fails").details().not_repeated.unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn call_is_repeated_until_it_succeeds_not_before_the_named_time() {
    let fixture =
        Fixture::new(Scripted { errors: all_busy(Method::Invoke, 3, Duration::from_secs(60)), ..Scripted::default() });
    fixture.provider.invoke(invoke()).await.unwrap();
    assert_eq!(fixture.waits(), [Duration::from_secs(60); 3]);
    let events = fixture.events.0.lock().unwrap();
    assert_eq!(events.iter().map(|retry| retry.attempt).collect::<Vec<_>>(), [2, 3, 4]);
    let ScheduledRetry { plugin, method, urn, function, delay, message, details, .. } = &events[0];
    assert_eq!((plugin.as_str(), *method, urn, message.as_str()), ("rec", Method::Invoke, &None, "busy"));
    assert_eq!((function.as_deref(), *delay), (Some("rec:index:get"), Duration::from_secs(60)));
    assert_eq!(details.class, ErrorClass::Unavailable);
}

/// Shows: engine.md#repeated-calls "A call is repeated five times at most."
/// Shows: engine.md#repeated-calls "never shorter than the time that `RetryInfo` names"
#[tokio::test(start_paused = true)]
async fn call_is_repeated_five_times_with_growing_random_delays() {
    let mut first_waits = Vec::new();
    for _ in 0..20 {
        let fixture =
            Fixture::new(Scripted { errors: all_busy(Method::Invoke, 9, Duration::ZERO), ..Scripted::default() });
        assert_eq!(reason(fixture.provider.invoke(invoke()).await), "the call has failed 6 times");
        let waits = fixture.waits();
        assert_eq!(waits.len(), MAX_RETRIES as usize);
        for (wait, bound) in waits.iter().zip([2, 4, 8, 16, 32]) {
            // The clock counts whole milliseconds.
            assert!(*wait <= Duration::from_secs(bound) + Duration::from_millis(1), "{waits:?}");
        }
        first_waits.push(waits[0]);
    }
    first_waits.sort();
    first_waits.dedup();
    assert!(first_waits.len() > 10, "the delays are not random: {first_waits:?}");
}

#[tokio::test(start_paused = true)]
async fn mutation_is_repeated_only_if_it_is_declared() {
    for can_repeat_mutations in [false, true] {
        let errors = all_busy(Method::Create, 1, Duration::from_secs(1));
        let fixture = Fixture::new(Scripted { errors, can_repeat_mutations, ..Scripted::default() });
        let reply = fixture.provider.create(create(None)).await;
        assert_eq!((reply.is_ok(), fixture.attempts()), (can_repeat_mutations, 1 + usize::from(can_repeat_mutations)));
        if let Err(error) = reply {
            assert!(error.details().not_repeated.unwrap().contains("retry: { mutations: true }"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn configure_is_repeated_and_check_config_is_not() {
    let errors = all_busy(Method::Configure, 2, Duration::from_secs(1));
    let fixture = Fixture::new(Scripted { errors, ..Scripted::default() });
    let urn: Urn = "urn:pulumi:s::p::pulumi:providers:rec::rec".parse().unwrap();
    let id = ReferenceId::from("i");
    fixture.provider.configure(ConfigureRequest { urn: urn.clone(), id, inputs: Arc::default() }).await.unwrap();
    assert_eq!(fixture.attempts(), 3);

    let errors = all_busy(Method::CheckConfig, 1, Duration::from_secs(1));
    let fixture = Fixture::new(Scripted { errors, ..Scripted::default() });
    let request = CheckConfigRequest { urn, olds: Arc::default(), news: Arc::default() };
    fixture.provider.check_config(request).await.unwrap_err();
    assert_eq!(fixture.attempts(), 1);
}

/// Shows: engine.md#repeated-calls "if the next attempt would begin after the time limit of the call in
///   `customTimeouts`: a repeated call receives the rest of it"
#[tokio::test(start_paused = true)]
async fn all_attempts_lie_within_the_time_limit_and_receive_its_rest() {
    let seconds = Duration::from_secs;
    let errors = all_busy(Method::Delete, 9, seconds(20));
    let fixture =
        Fixture::new(Scripted { errors, can_repeat_mutations: true, duration: seconds(10), ..Scripted::default() });
    let started = Instant::now();
    let reply = fixture.provider.delete(delete(Some(seconds(85)))).await;
    assert_eq!(reason(reply), "the next attempt would begin after the time limit in customTimeouts");
    let attempts = fixture.scripted.attempts.lock().unwrap().clone();
    // Attempts of 10 s, and waits of 20 s.
    assert_eq!(attempts.len(), 3);
    for (at, timeout) in attempts {
        let left = seconds(85) - (at - started);
        assert!(timeout.unwrap().abs_diff(left) <= Duration::from_millis(1) && !left.is_zero(), "{timeout:?} {left:?}");
    }
    assert!(started.elapsed() < seconds(85));
}

#[tokio::test(start_paused = true)]
async fn named_time_of_a_year_fails_at_once() {
    let fixture = Fixture::new(Scripted { errors: all_busy(Method::Invoke, 1, YEAR), ..Scripted::default() });
    let error = fixture.provider.invoke(invoke()).await.unwrap_err();
    assert_eq!(error.to_string(), "busy");
    assert_eq!(reason(Err::<(), _>(error)), "the plugin asks to wait for longer than 5 minutes, the limit of sc");
    assert_eq!((fixture.attempts(), fixture.events.0.lock().unwrap().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn stop_ends_a_wait_at_once_and_prevents_the_next() {
    let fixture = Fixture::new(Scripted { errors: all_busy(Method::Invoke, 9, MAX_DELAY), ..Scripted::default() });
    let started = Instant::now();
    let (reply, ()) = tokio::join!(fixture.provider.invoke(invoke()), async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        fixture.stop.cancel();
    });
    assert_eq!(reason(reply), "the run is being stopped");
    assert_eq!((started.elapsed(), fixture.attempts()), (Duration::from_secs(7), 1));
    assert_eq!(reason(fixture.provider.invoke(invoke()).await), "the run is being stopped");
    assert_eq!((started.elapsed(), fixture.events.0.lock().unwrap().len()), (Duration::from_secs(7), 1));
}

#[tokio::test(start_paused = true)]
async fn lost_replies_and_partial_failures_are_not_repeated() {
    let lost = LostReply::ALL.map(|lost| ProviderError::ReplyLost {
        method: Method::Create,
        lost,
        message: "lost".into(),
        id: None,
        source: None,
    });
    let partial = ProviderError::Partial { message: "not ready".into(), failure: Box::new(PartialFailure::default()) };
    for error in lost.into_iter().chain([partial]) {
        let errors = Mutex::new([error].into());
        let fixture = Fixture::new(Scripted { errors, can_repeat_mutations: true, ..Scripted::default() });
        fixture.provider.create(create(None)).await.unwrap_err();
        assert_eq!(fixture.attempts(), 1);
    }
}

/// Shows: state.md#locks "repeats no provider call that has failed"
#[tokio::test(start_paused = true)]
async fn call_is_not_repeated_once_the_lock_of_the_stack_is_lost() {
    let errors = all_busy(Method::Create, 1, Duration::from_secs(1));
    let mut fixture = Fixture::new(Scripted { errors, can_repeat_mutations: true, ..Scripted::default() });
    fixture.provider.retries.lease =
        Some(HeldLease::of_lost_lock(StackReference::new("p", "s").unwrap()).await.unwrap());
    let error = fixture.provider.create(create(None)).await.unwrap_err();
    let reason = error.details().not_repeated;
    assert_eq!(reason.as_deref(), Some("the lock of the stack was removed, or cannot be renewed"));
    assert_eq!(fixture.attempts(), 1);
}
