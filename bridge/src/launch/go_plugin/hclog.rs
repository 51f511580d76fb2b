//! Log lines of a go-plugin server on standard error (docs/spec/plugin-hosts.md#A.9).

use serde_json::{Map, Value};

use crate::process::LogLevel;

/// Reader of the lines of one plugin. After the first line of a Go panic, lines without a level are errors.
#[derive(Debug, Default)]
pub(super) struct LogReader {
    has_panicked: bool,
}

impl LogReader {
    /// Returns the level and the text of a line; `None` for a line that is not a log message.
    pub(super) fn read(&mut self, line: &str) -> Option<(LogLevel, String)> {
        if let Some(message) = json_message(line) {
            return Some(message);
        }
        let tags = [
            ("[TRACE]", LogLevel::Debug),
            ("[DEBUG]", LogLevel::Debug),
            ("[INFO]", LogLevel::Info),
            ("[WARN]", LogLevel::Warning),
            ("[ERROR]", LogLevel::Error),
        ];
        if let Some((_, level)) = tags.into_iter().find(|(tag, _)| line.starts_with(tag)) {
            return Some((level, line.to_owned()));
        }
        self.has_panicked |= line.starts_with("panic: ") || line.starts_with("fatal error: ");
        self.has_panicked.then(|| (LogLevel::Error, line.to_owned()))
    }
}

/// Returns the level and the text of a message of hclog in JSON: the message, then its pairs.
fn json_message(line: &str) -> Option<(LogLevel, String)> {
    let fields: Map<String, Value> = serde_json::from_str(line).ok()?;
    let level = match fields.get("@level")?.as_str()?.trim().to_ascii_lowercase().as_str() {
        "trace" | "debug" => LogLevel::Debug,
        "info" => LogLevel::Info,
        "warn" => LogLevel::Warning,
        "error" => LogLevel::Error,
        _ => return None,
    };
    // hclog always writes such a time. Another program's JSON is not a message of hclog.
    if fields.get("@timestamp").and_then(Value::as_str).is_some_and(|time| !is_rfc3339(time)) {
        return None;
    }
    let mut text = match fields.get("@message") {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    };
    let pairs = fields.iter().filter(|(key, _)| !["@level", "@message", "@timestamp"].contains(&key.as_str()));
    for (key, value) in pairs {
        let separator = if text.is_empty() { "" } else { " " };
        text.push_str(&format!("{separator}{}={value}", key.trim_start_matches('@')));
    }
    Some((level, text))
}

/// Returns whether a text has the form of a time in RFC 3339, of any precision. Go also accepts a comma as the point.
fn is_rfc3339(text: &str) -> bool {
    let form: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let Some(rest) = form.strip_prefix("0000-00-00T00:00:00") else { return false };
    let zone = match rest.strip_prefix(['.', ',']) {
        Some(fraction) if fraction.starts_with('0') => fraction.trim_start_matches('0'),
        Some(_) => return false,
        None => rest,
    };
    // The digits of a fraction end before the sign of the zone.
    ["Z", "+00:00", "-00:00"].contains(&zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Vec<Option<(LogLevel, String)>> {
        let mut reader = LogReader::default();
        lines.iter().map(|line| reader.read(line)).collect()
    }

    /// Returns the recorded cases: those of the tree, and those in the folder `SC_GO_PLUGIN_GOLDENS`.
    fn cases() -> Vec<Value> {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/goldens/go-plugin");
        let folders = [Some(own.to_owned()), std::env::var("SC_GO_PLUGIN_GOLDENS").ok()];
        let files =
            folders.into_iter().flatten().filter_map(|folder| std::fs::read(format!("{folder}/hclog.json")).ok());
        files.flat_map(|file| serde_json::from_slice::<Vec<Value>>(&file).unwrap()).collect()
    }

    #[test]
    fn recorded_lines_have_their_levels_messages_and_fields() {
        let mut compared = 0;
        for case in cases() {
            // The pipe splits bytes into lines; its own tests cover long lines and bytes that are not UTF-8.
            let Some(stderr) = case["stderr"].as_str() else { continue };
            let expected = case.get("ours").unwrap_or(&case["go"]).as_array().unwrap();
            let mut reader = LogReader::default();
            let lines: Vec<&str> = stderr.lines().collect();
            assert_eq!(lines.len(), expected.len(), "{}", case["name"]);
            for (line, expected) in lines.into_iter().zip(expected) {
                let (level, text) = reader.read(line).unwrap_or_else(|| (LogLevel::Debug, line.to_owned()));
                let expected_level = match expected["level"].as_str().unwrap() {
                    "info" => LogLevel::Info,
                    "warn" => LogLevel::Warning,
                    "error" => LogLevel::Error,
                    _ => LogLevel::Debug,
                };
                assert_eq!(level, expected_level, "{}: {line:?}", case["name"]);
                let message = expected["message"].as_str().unwrap();
                assert!(text.contains(message), "{}: {message:?} is not in {text:?}", case["name"]);
                for (key, value) in expected["fields"].as_object().into_iter().flatten() {
                    let pair = format!("{key}={value}");
                    assert!(text.contains(&pair), "{}: {pair} is not in {text:?}", case["name"]);
                }
                compared += 1;
            }
        }
        assert!(compared > 60, "{compared}");
    }

    #[test]
    fn message_of_json_has_its_pairs() {
        let line = r#"{"@level":"WARN ","@message":"slow","@module":"m","@timestamp":"2026-11-21T01:40:21Z","a":1,"b":"two words"}"#;
        let text = r#"slow module="m" a=1 b="two words""#;
        assert_eq!(read(&[line, "plain"]), [Some((LogLevel::Warning, text.to_owned())), None]);
    }

    #[test]
    fn lines_after_a_panic_are_errors() {
        let error = |line: &str| Some((LogLevel::Error, line.to_owned()));
        assert_eq!(read(&["x", "panic: deep", "goroutine 1"]), [None, error("panic: deep"), error("goroutine 1")]);
    }
}
