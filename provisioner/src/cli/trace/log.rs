//! The log of `SC_LOG`: one line for each begin and end of a span, and for each event.

use std::fs::File;
use std::io::Write as _;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tracing::Metadata;

/// Form of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogFormat {
    /// `TIME LEVEL module: begins=step op=create urn=…`
    Text,
    /// A JSON object.
    Json,
}

/// Receiver of the lines of a log.
pub(super) enum LogTarget {
    File(File),
    /// The lines on standard error, beside those of a display.
    Lines(Box<dyn Fn(String) + Send + Sync>),
}

/// Log with the form of its lines.
pub(super) struct Log {
    pub(super) format: LogFormat,
    pub(super) target: LogTarget,
}

impl Log {
    /// Writes a line. An error of the file is ignored: a log that cannot be written must not end a run.
    pub(super) fn write<const N: usize>(
        &self,
        metadata: &Metadata<'_>,
        what: [(&'static str, Value); N],
        fields: &Map<String, Value>,
    ) {
        let line = self.format.line(&Timestamp::now().to_string(), metadata, what, fields);
        match &self.target {
            // One call for a line: lines of several threads, and of several processes with one file, stay whole.
            LogTarget::File(file) => { file }.write_all((line + "\n").as_bytes()).unwrap_or_default(),
            LogTarget::Lines(print) => print(line),
        }
    }
}

impl LogFormat {
    fn line<const N: usize>(
        self,
        time: &str,
        metadata: &Metadata<'_>,
        what: [(&'static str, Value); N],
        fields: &Map<String, Value>,
    ) -> String {
        let (level, module) = (metadata.level().as_str(), metadata.target());
        match self {
            Self::Json => {
                let mut line = Map::new();
                line.insert("time".to_owned(), json!(time));
                line.insert("level".to_owned(), json!(level));
                line.insert("module".to_owned(), json!(module));
                line.extend(what.map(|(key, value)| (key.to_owned(), value)));
                line.insert("fields".to_owned(), json!(fields));
                Value::Object(line).to_string()
            }
            Self::Text => {
                let what = what.into_iter().map(|(key, value)| format!(" {key}={}", text(&value)));
                let fields = fields.iter().map(|(key, value)| format!(" {key}={}", text(value)));
                format!("{time} {level} {module}:{}", what.chain(fields).collect::<String>())
            }
        }
    }
}

/// Returns a value as it is, and as a JSON text if it has spaces or characters that a terminal obeys.
fn text(value: &Value) -> String {
    let is_plain = |character: char| !character.is_whitespace() && !character.is_control() && character != '"';
    match value {
        Value::String(text) if !text.is_empty() && text.chars().all(is_plain) => text.clone(),
        other => other.to_string(),
    }
}
