//! Events of `--json` outside of runs: diagnostics about the user's files, and the error of a command.
//! `docs/events.md` specifies the members.

use bridge::message_text::MessageText;
use config::diagnostics::{Diagnostic, Severity, SourceFiles, Span};
use engine::masking::SecretMasker;
use serde_json::{Map, Value, json};

/// Texts of an error, without secrets.
#[derive(Clone, Debug)]
pub(crate) struct ErrorTexts {
    pub(crate) message: String,
    pub(crate) causes: Vec<String>,
    /// Next steps of the user.
    pub(crate) hints: Vec<String>,
}

/// Adds the members of the event `diagnostic`, without secrets.
pub(crate) fn describe_diagnostic(
    diagnostic: &Diagnostic,
    sources: &SourceFiles,
    masker: &SecretMasker,
    line: &mut Map<String, Value>,
) {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mask = |text: &MessageText| masker.mask_message(text);
    line.insert("event".into(), "diagnostic".into());
    line.insert("severity".into(), severity.into());
    line.insert("code".into(), diagnostic.code.0.into());
    line.insert("summary".into(), mask(&diagnostic.summary).into());
    line.insert("detail".into(), diagnostic.detail.as_ref().map(mask).into());
    line.insert("hints".into(), diagnostic.help.iter().map(mask).collect());
    let place = |span: Span| sources.position(span).to_string();
    line.insert("place".into(), diagnostic.span.map(place).into());
    line.insert("range".into(), diagnostic.span.map_or(Value::Null, |span| range(span, sources)));
    let labels = diagnostic.labels.iter().map(|label| {
        json!({
            "text": mask(&label.text),
            "place": place(label.span),
            "range": range(label.span, sources),
        })
    });
    line.insert("labels".into(), labels.collect());
}

/// Adds the members of the event `error`. The texts hold no secrets.
pub(crate) fn describe_error(texts: ErrorTexts, exit_code: u8, line: &mut Map<String, Value>) {
    line.insert("event".into(), "error".into());
    line.insert("message".into(), texts.message.into());
    line.insert("causes".into(), texts.causes.into());
    line.insert("hints".into(), texts.hints.into());
    line.insert("exitCode".into(), exit_code.into());
}

/// Returns the file, and the positions of the start and the end of a span.
fn range(span: Span, sources: &SourceFiles) -> Value {
    let (start, end) = (sources.position(span), sources.position(Span { start: span.end, ..span }));
    json!({
        "file": &*start.path,
        "line": start.line,
        "column": start.column,
        "endLine": end.line,
        "endColumn": end.column,
    })
}

#[cfg(test)]
mod tests {
    use config::diagnostics::{Code, Sensitivity};

    use super::*;

    /// Shows: events.md#diagnostic "A mistake in your files, or a warning about them."
    #[test]
    fn diagnostic_has_code_range_hints_and_labels_without_secrets() {
        let mut sources = SourceFiles::default();
        let text = "key:\n  näme: [a,\n    b]\n";
        let file = sources.add("server.yaml", text, Sensitivity::Public);
        let span = |part: &str| {
            let start = text.find(part).unwrap();
            let at = |index: usize| u32::try_from(index).unwrap();
            Span { file, start: at(start), end: at(start + part.len()) }
        };
        let diagnostic = Diagnostic::error(Code("unknown-key"), span("[a,\n    b]"), "no `hunter22` here".to_owned())
            .detail("it is hunter22".to_owned())
            .help("use another than hunter22".to_owned())
            .help("or none")
            .label(span("näme"), "of hunter22".to_owned());
        let masker = SecretMasker::default();
        masker.add_text("hunter22");
        let mut line = Map::new();
        describe_diagnostic(&diagnostic, &sources, &masker, &mut line);
        let range = |line: usize, column: usize, end_line: usize, end_column: usize| {
            json!({
                "file": "server.yaml",
                "line": line,
                "column": column,
                "endLine": end_line,
                "endColumn": end_column,
            })
        };
        assert_eq!(
            Value::Object(line),
            json!({
                "event": "diagnostic",
                "severity": "error",
                "code": "unknown-key",
                "summary": "no `[secret]` here",
                "detail": "it is [secret]",
                "hints": ["use another than [secret]", "or none"],
                "place": "server.yaml:2:9",
                "range": range(2, 9, 3, 7),
                "labels": [{"text": "of [secret]", "place": "server.yaml:2:3", "range": range(2, 3, 2, 7)}],
            })
        );
        let mut line = Map::new();
        describe_diagnostic(&Diagnostic::warning(Code("file"), None, "missing"), &sources, &masker, &mut line);
        assert_eq!(
            (&line["severity"], &line["place"], &line["range"]),
            (&"warning".into(), &Value::Null, &Value::Null)
        );
    }
}
