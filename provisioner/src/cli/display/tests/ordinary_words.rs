//! Tests of secrets that are ordinary words of the program's own sentences: the sentences stay, and a text from outside is
//! masked. A mask in a sentence would reveal the secret.

use anyhow::Context as _;
use bridge::message_text::MessageText;
use config::diagnostics::{Code, Diagnostic, Masks, Sensitivity, SourceFiles, Span, Style, render, render_masked};
use provisioner::operation::SetupError;
use serde_json::{Map, Value};

use super::*;
use crate::cli::error_texts::{error_lines, error_texts};
use crate::cli::exit::CliError;

const WORDS: [&str; 5] = ["secret", "error", "resource", "created", "plugin"];

/// Text of another program with all words.
const OUTSIDE: &str = "secret error resource created plugin";

/// Returns a text from outside, which is not in the memory of the program's literals.
fn outside() -> String {
    OUTSIDE.to_owned()
}

/// Returns what `shown` returns if no secret is known, with [`OUTSIDE`] masked as the word demands.
fn expected(word: &str, shown: &str) -> String {
    shown.replace(OUTSIDE, &OUTSIDE.replace(word, "[secret]"))
}

/// Checks a function that shows texts with masked secrets.
fn check(shown: impl Fn(&SecretMasker) -> String) {
    let unmasked = shown(&SecretMasker::default());
    assert!(unmasked.contains(OUTSIDE), "{unmasked}");
    for word in WORDS {
        let masker = SecretMasker::default();
        masker.add_text(word);
        assert_eq!(shown(&masker), expected(word, &unmasked), "{word}");
    }
}

#[test]
fn questions() {
    let stack = outside();
    check(|masker| {
        masker.mask_message(&MessageText::new(format_args!("Encrypt the secrets of {stack} anew, with a created key?")))
    });
}

#[test]
fn errors_and_hints() {
    let errors: [&dyn Fn() -> anyhow::Error; 4] = [
        &|| {
            CliError::usage("no created resource", MessageText::new(format_args!("the plugin is {}", outside()))).into()
        },
        &|| CliError::failed(outside(), "a secret error of a created resource of the plugin").into(),
        &|| SetupError::UnknownStack { name: outside(), existing: vec![outside()] }.into(),
        &|| {
            Err::<(), _>(std::io::Error::other(outside())).context("the plugin created no secret resource").unwrap_err()
        },
    ];
    for error in errors {
        check(|masker| {
            let texts = error_texts(&error(), masker);
            let lines: Vec<String> = error_lines(&texts).iter().map(|line| line.render(false)).collect();
            let mut json = Map::new();
            describe_error(texts, 1, &mut json);
            format!("{}\n{}", lines.join("\n"), Value::Object(json))
        });
    }
}

#[test]
fn diagnostics_with_lines_of_files() {
    let mut sources = SourceFiles::default();
    let text = format!("key: {OUTSIDE}, übrig\n");
    let file = sources.add(OUTSIDE, text.as_str(), Sensitivity::Public);
    let span = Span { file, start: 0, end: 3 };
    let diagnostic = Diagnostic::error(Code("resource-error"), span, "the plugin created no secret resource: an error")
        .span_label("a created resource")
        .label(Span { start: 5, end: 7, ..span }, MessageText::new(format_args!("the secret {}", outside())))
        .detail(MessageText::new(format_args!("the error of the plugin: {}", outside())))
        .help("write a secret");
    check(|masker| {
        let masks =
            Masks { message: &|text| masker.mask_message(text), outside: &|text| masker.mask(text).into_owned() };
        let mut json = Map::new();
        describe_diagnostic(&diagnostic, &sources, masker, &mut json);
        let texts = ["summary", "detail", "hints"].map(|member| json[member].to_string());
        // Marks below a masked line are at other columns.
        let rendered = render_masked(&diagnostic, &sources, Style::Plain, &masks);
        let without_marks = |line: &str| line.replace(['^', '-', '|'], "").trim().to_owned();
        rendered.lines().map(without_marks).chain(texts).collect::<Vec<_>>().join("\n")
    });
    assert_eq!(
        render(&diagnostic, &sources, Style::Plain),
        render_masked(
            &diagnostic,
            &sources,
            Style::Plain,
            &Masks { message: &|text| text.to_string(), outside: &|text| text.to_owned() }
        )
    );
}

/// Shows: events.md#secrets-in-texts "A literal of `sc` itself is not masked, also if a secret has the same words"
#[test]
fn events_of_a_run() {
    let urn = urn("t:m:Echo", "echo");
    let failed = Arc::new(step(StepOp::Create, &urn, None, Some(bag([("a", 1.0.into())]))));
    let failure = |message| StepFailure { message, indeterminate: false, partial: false, details: None };
    let script = |message: &dyn Fn() -> MessageText| {
        let mut script = Script::new(Operation::Update, false);
        script.start(1, &failed);
        let hint = Some(MessageText::new(format_args!("a created resource: {}", outside())));
        script.at(2, Event::Message(Message { hint, ..Message::new(Severity::Warning, message()) }));
        script.at(3, Event::StepFailed(Arc::clone(&failed), failure(message())));
        // A line of a plugin.
        script.at(4, Event::Message(Message { logged: true, ..Message::new(Severity::Warning, outside()) }));
        script.end(5, Operation::Update, false, Outcome::Failed, &[]);
        script
    };
    let message = || MessageText::new(format_args!("the plugin created no secret resource: an error: {}", outside()));
    let script = script(&message);
    check(|masker| {
        let json = Shared::default();
        let mut display = JsonDisplay::new(json.clone(), Secrets::Masked, true, EventNumbers::default());
        play_masked(&script, &mut display, masker);
        let [progress, results] = [Shared::default(), Shared::default()];
        let mut display = PlainDisplay::new(progress.clone(), results.clone(), None, options(false));
        play_masked(&script, &mut display, masker);
        format!("{}{}{}", json.text(), progress.text(), results.text())
    });
}

/// Plays a script with the secrets of a masker only.
fn play_masked(script: &Script, display: &mut dyn Renderer, masker: &SecretMasker) {
    let mut redacting = Redacting::new(display);
    WORDS.iter().filter(|word| masker.mask(word) == "[secret]").for_each(|word| redacting.masker.add_text(word));
    script.play(&mut redacting, 0, u64::MAX);
}
