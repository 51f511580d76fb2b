//! Receiver of the spans and events of the program, which writes them to the log and to the trace, with secrets masked.
//!
//! The places that emit them pass names, kinds and counts, never values. The masker is for names that contain a secret.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use engine::masking::SecretMasker;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::chrome::ChromeTrace;
use super::filter::Filter;
use super::log::Log;

/// Writes spans and events.
pub(super) struct TraceLayer {
    pub(super) masker: Arc<SecretMasker>,
    /// The log of `SC_LOG` with its filter.
    pub(super) log: Option<(Filter, Log)>,
    /// The file of `--trace`, which has everything.
    pub(super) chrome: Option<(Filter, Arc<Mutex<ChromeTrace>>)>,
}

/// Open span.
struct OpenSpan {
    began: Instant,
    fields: Map<String, Value>,
    lane: Option<usize>,
}

impl TraceLayer {
    fn passes(&self, metadata: &Metadata<'_>) -> bool {
        self.filters().any(|filter| filter.passes(metadata))
    }

    fn filters(&self) -> impl Iterator<Item = &Filter> {
        let of_log = self.log.iter().map(|(filter, _)| filter);
        of_log.chain(self.chrome.iter().map(|(filter, _)| filter))
    }

    fn log_for(&self, metadata: &Metadata<'_>) -> Option<&Log> {
        self.log.as_ref().filter(|(filter, _)| filter.passes(metadata)).map(|(_, log)| log)
    }

    fn chrome(&self) -> Option<MutexGuard<'_, ChromeTrace>> {
        self.chrome.as_ref().map(|(_, chrome)| chrome.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn fields(&self, record: impl FnOnce(&mut Fields<'_>)) -> Map<String, Value> {
        let mut fields = Fields { masker: &self.masker, found: Map::new() };
        record(&mut fields);
        fields.found
    }
}

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for TraceLayer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.passes(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.passes(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.filters().map(Filter::max_level).max()
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(id) else { return };
        let metadata = attributes.metadata();
        let fields = self.fields(|fields| attributes.record(fields));
        if let Some(log) = self.log_for(metadata) {
            log.write(metadata, [("begins", json!(metadata.name()))], &fields);
        }
        let parent = span.parent().and_then(|parent| {
            let lane = parent.extensions().get::<OpenSpan>()?.lane?;
            Some((parent.id().into_u64(), lane))
        });
        let name = (metadata.name(), metadata.target());
        let lane = self.chrome().map(|mut chrome| chrome.begin(id.into_u64(), parent, name, &fields));
        span.extensions_mut().insert(OpenSpan { began: Instant::now(), fields, lane });
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        let metadata = event.metadata();
        let mut fields = self.fields(|fields| event.record(fields));
        let name = fields.shift_remove("message");
        let name = name.as_ref().and_then(Value::as_str).unwrap_or(metadata.name());
        if let Some(mut chrome) = self.chrome() {
            let span = ctx.event_span(event);
            let lane = span.and_then(|span| span.extensions().get::<OpenSpan>()?.lane);
            chrome.instant(lane, (name, metadata.target()), &fields);
        }
        if let Some(log) = self.log_for(metadata) {
            log.write(metadata, [("event", json!(name))], &fields);
        }
    }

    fn on_close(&self, id: Id, ctx: Context<'_, S>) {
        let Some(span) = ctx.span(&id) else { return };
        let Some(OpenSpan { began, fields, lane }) = span.extensions_mut().remove() else { return };
        if let (Some(mut chrome), Some(lane)) = (self.chrome(), lane) {
            chrome.end(id.into_u64(), lane);
        }
        let metadata = span.metadata();
        if let Some(log) = self.log_for(metadata) {
            let ms = (began.elapsed().as_secs_f64() * 1e6).round() / 1e3;
            log.write(metadata, [("ended", json!(metadata.name())), ("ms", json!(ms))], &fields);
        }
    }
}

/// Fields of a span or an event, masked.
struct Fields<'m> {
    masker: &'m SecretMasker,
    found: Map<String, Value>,
}

impl Fields<'_> {
    fn insert(&mut self, field: &Field, value: impl Into<Value>) {
        self.found.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, self.masker.mask(value).into_owned());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, value);
    }
}
