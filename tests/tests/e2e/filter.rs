//! Filter that replaces the parts of an output that differ between runs.

use std::path::Path;

/// Replaces folders by names, and durations, timestamps, ages, digests, ids and process ids by placeholders. Removes the
/// counts of finished changes, as steps may end in any order, and what a slow machine waits for.
pub(crate) fn filter_output(text: &str, folders: &[(&Path, &str)]) -> String {
    let mut text = text.to_owned();
    for (folder, name) in folders {
        text = text.replace(&folder.display().to_string(), name);
    }
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    text = text.replace(&format!("root@{host}"), "[holder]");
    let mut result = String::new();
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let word = rest[..rest.find(|c: char| !is_part(c)).unwrap_or(rest.len())].trim_end_matches([':', '.', '-']);
        let word = if word.starts_with("20") { word } else { word.split(':').next().unwrap_or_default() };
        if word.is_empty() {
            result.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            result.push_str(placeholder(&result, word).unwrap_or(word));
            rest = &rest[word.len()..];
        }
    }
    without_ages(without_counts(&without_activities(&result)))
}

/// Removes the lines that say after some seconds what the run waits for.
fn without_activities(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.starts_with("  … ")).collect()
}

/// Replaces the ages of states, such as `just now` and `2 seconds ago`.
fn without_ages(mut text: String) -> String {
    for unit in [" second ago", " seconds ago", " minute ago", " minutes ago"] {
        while let Some(end) = text.find(unit) {
            let start = text[..end].trim_end_matches(|c: char| c.is_ascii_digit()).len();
            text.replace_range(start..end + unit.len(), "[age]");
        }
    }
    text.replace("just now", "[age]")
}

/// Removes ` [3/12]` from the ends of lines.
fn without_counts(text: &str) -> String {
    let is_count = |count: &str| {
        let numbers = count.strip_suffix(']').and_then(|count| count.split_once('/'));
        numbers.is_some_and(|(done, all)| [done, all].iter().all(|number| number.parse::<usize>().is_ok()))
    };
    let lines = text.split('\n').map(|line| match line.rsplit_once(" [") {
        Some((line, count)) if is_count(count) => line,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '+')
}

/// Returns the placeholder of a word, if it differs between runs.
fn placeholder(before: &str, word: &str) -> Option<&'static str> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if word.strip_suffix('s').and_then(|number| number.split_once('.')).is_some_and(|(a, b)| digits(a) && digits(b)) {
        Some("[time]")
    } else if word.strip_suffix('s').is_some_and(digits) && ["in ", "after ", "("].iter().any(|it| before.ends_with(it))
    {
        // The time of a whole command may be longer than ten seconds on a slow machine.
        Some("[time]")
    } else if word.len() >= 20 && word.starts_with("20") && word.contains("T") && word.contains(':') {
        Some("[moment]")
    } else if word.len() >= 32 && hex(word.strip_suffix(".json").unwrap_or(word)) {
        Some("[id]")
    } else if before.ends_with("column ") && digits(word) {
        Some("[column]")
    } else if (before.ends_with("pid ") || before.ends_with("process ")) && digits(word) {
        Some("[pid]")
    } else {
        None
    }
}
