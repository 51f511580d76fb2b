//! Tests of files that are far larger, deeper or more erroneous than those that people write.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use config::diagnostics::{MAX_SHOWN, shown};

use crate::repository::Files;

/// Returns a repository whose `count` resources are written by `resource` from their number.
fn resources(count: usize, resource: impl Fn(usize) -> String) -> Files {
    let mut text = String::from(
        "plugins: [{ name: p, source: { type: local, path: p } }]\nresources:\n  resources:\n    prod:\n      resources:\n",
    );
    for number in 0..count {
        writeln!(text, "        r{number:05}: {{ type: p:m:T, {} }}", resource(number)).unwrap();
    }
    Files::sections(&text)
}

fn unresolved_references(count: usize) -> Files {
    resources(count, |number| format!("config: {{ a: \"${{resource:s{number:05}.id}}\" }}"))
}

#[test]
fn suggestions_are_searched_for_the_shown_errors_only() {
    let read = unresolved_references(300).read(&["s"]);
    let diagnostics = &read.loaded.diagnostics;
    assert_eq!((diagnostics.len(), shown(diagnostics).count()), (300, MAX_SHOWN));
    for (number, diagnostic) in diagnostics.iter().enumerate() {
        let expected = if number < MAX_SHOWN { vec![format!("did you mean `r{number:05}`?")] } else { Vec::new() };
        assert_eq!(diagnostic.help, expected, "{number}");
    }
}

/// Shows: server-yaml.md#files "The first 50 errors and the first 50 warnings are shown, the others are counted."
#[test]
fn first_errors_are_shown_even_after_many_warnings() {
    let files = resources(200, |_| "name: other, options: { nothing: 1 }".to_owned());
    let read = files.read(&["s"]);
    let errors = |diagnostics: &mut dyn Iterator<Item = &config::diagnostics::Diagnostic>| {
        diagnostics
            .filter(|diagnostic| diagnostic.code.0 == "unknown-key" && diagnostic.summary.contains("has no key"))
            .count()
    };
    assert_eq!(errors(&mut shown(&read.loaded.diagnostics)), MAX_SHOWN);
    assert_eq!(shown(&read.loaded.diagnostics).count(), 2 * MAX_SHOWN);
}

/// Reads small and large files in turns, and returns the smallest ratio of their times.
fn ratio_of_times(files: impl Fn(usize) -> Files, count: usize, factor: usize) -> f64 {
    let (small, large) = (files(count), files(count * factor));
    let time = |files: &Files| -> Duration {
        let started = Instant::now();
        files.read(&["s"]);
        started.elapsed()
    };
    let ratios = (0..3).map(|_| time(&large).as_secs_f64() / time(&small).as_secs_f64());
    ratios.fold(f64::INFINITY, f64::min)
}

/// Function that returns a repository with a number of errors.
type Generator<'g> = &'g dyn Fn(usize) -> Files;

#[test]
fn time_to_read_grows_with_the_number_of_errors_and_not_with_its_square() {
    const FACTOR: usize = 8;
    let unresolved_secrets = |count| {
        let values: String = (0..count).map(|number| format!("  t{number:05}: v\n")).collect();
        resources(count, |number| format!("config: {{ a: \"${{secret:s{number:05}}}\" }}"))
            .secrets(&format!("values:\n{values}"))
    };
    let long_cycles = |count| {
        resources(count, |number| {
            format!("config: {{ a: [\"${{resource:r{:05}.id}}\", \"${{resource:r00000.id}}\"] }}", (number + 1) % count)
        })
    };
    let escaped_placeholders = |count| {
        let text = "${secret:a\\x62}".repeat(count);
        resources(1, |_| format!("config: {{ a: \"{text}\" }}"))
    };
    let merged_keys = |count: usize| {
        let keys: String = (0..count).map(|number| format!("k{number}: 1, ")).collect();
        Files::sections(&format!("variables: {{}}\nx: &x {{{keys}}}\ny: {{<<: *x}}\n"))
    };
    let unknown_environments = |count: usize| {
        let environments: String = (0..count)
            .map(|number| format!("    e{number:05}: {{ resources: {{ a: {{ type: p:m:T }} }} }}\n"))
            .collect();
        let reference = |number| format!("${{resource:f{number:05}/a.id}}").repeat(8);
        let outputs: String = (0..count).map(|number| format!("  o{number}: \"{}\"\n", reference(number))).collect();
        Files::sections(&format!(
            "plugins: [{{ name: p, source: {{ type: local, path: p }} }}]\nresources:\n  resources:\n{environments}outputs:\n{outputs}"
        ))
    };
    let cases: [(&str, Generator<'_>, usize); 7] = [
        ("references", &unresolved_references, 100),
        ("secrets", &unresolved_secrets, 100),
        ("cycles", &long_cycles, 100),
        ("environments", &unknown_environments, 250),
        ("escapes", &escaped_placeholders, 200),
        ("merged keys", &merged_keys, 200),
        ("misspelled keys", &|count| resources(count, |_| "confg: 1".to_owned()), 100),
    ];
    for (case, files, count) in cases {
        let ratio = ratio_of_times(files, count, FACTOR);
        // A square would be 64; the other half is left to the noise of the machine.
        assert!(ratio < (FACTOR * FACTOR) as f64 / 2.0, "{case}: {ratio}");
    }
}

#[test]
fn long_names_and_lines_are_not_echoed() {
    let long = "z".repeat(1_000_000);
    let cases = [
        format!("{long}: 1\n{long}: 2\n"),
        format!("outputs: {{ o: \"${{secret:{long}}}\" }}\n"),
        format!("outputs: {{ o: \"${{resource:{long}.id}} {long}\" }}\n"),
        format!("x: !{long} 1\n"),
        format!("plugins: [{{ name: {long}, {long}: 1 }}]\n"),
        format!("plugins: [{{ name: p, source: {{ type: {long} }} }}]\n"),
        format!("resources: {{ resources: {{ prod: {{ resources: {{ a: {{ type: {long} }} }} }} }} }}\n"),
        format!("x: \"{long}\n"),
    ];
    for text in cases {
        let messages = Files::sections(&text).read(&["s"]).messages();
        assert!(!messages.is_empty() && messages.len() < 8000, "{} bytes for {}", messages.len(), &text[..40]);
    }
}

#[test]
fn file_that_is_too_large_or_not_regular_is_refused() {
    let large = Files::server(&"#\n".repeat(2 << 20)).read(&["s"]);
    assert!(large.loaded.stacks.is_empty());
    let too_large = Files::server(&("#".repeat(4 << 20) + "\n")).messages();
    assert_eq!(too_large, "error[file]: failed to read .sc/stacks/s/server.yaml: open: it is larger than 4 MiB");
    let folder = Files::empty().with(".sc/stacks/s/server.yaml/file", "").messages();
    assert_eq!(
        folder,
        "error[file]: failed to read .sc/stacks/s/server.yaml: open: it is a folder, not a regular file"
    );
}
