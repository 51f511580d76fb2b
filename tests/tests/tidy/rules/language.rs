//! Rule: names and doc comments use the words of the field (`docs/glossary.md`), in product code and tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

use super::assert_none;
use crate::workspace::root;

/// Words with which no doc comment begins: the subject of the sentence would stand elsewhere.
const OPENINGS: [&str; 25] = [
    "What",
    "Who",
    "That",
    "It",
    "Those",
    "Where",
    "Whether",
    "How",
    "One",
    "So",
    "Nobody",
    "Nothing",
    "They",
    "Its",
    "Their",
    "Which",
    "This",
    "These",
    "Also",
    "Everything",
    "Something",
    "Somebody",
    "Whoever",
    "Whatever",
    "None",
];

/// Identifiers that do not occur, each with the word to use.
const IDENTIFIERS: [(&str, &str); 66] = [
    ("answer", "reply, response, return"),
    ("answered", "reply, response, return"),
    ("answers", "reply, response, return"),
    ("book", "deployment state"),
    ("breach", "violation"),
    ("breaches", "violation"),
    ("breaks", "abort, fatal error"),
    ("broken", "abort, fatal error, invalid"),
    ("come_to", "return"),
    ("comes_to", "return"),
    ("complain", "report"),
    ("complaint", "diagnostic"),
    ("condemn", "dependent replacement"),
    ("condemned", "dependent replacement"),
    ("converse", "step generator, decision"),
    ("deed", "step"),
    ("deeds", "step"),
    ("departure", "delete step"),
    ("doom", "dependent replacement"),
    ("doomed", "dependent replacement"),
    ("door", "resource monitor"),
    ("fate", "outcome"),
    ("floor", "layer"),
    ("folk", "the thing itself"),
    ("give_way", "pending replacement"),
    ("goes_along", "dependent replacement"),
    ("gone_along", "dependent replacement"),
    ("house", "crate"),
    ("is_fine", "a predicate that stands alone, such as is_valid"),
    ("ladder", "decision"),
    ("law", "invariant"),
    ("laws", "integrity, invariant"),
    ("lazy_provider", "default provider"),
    ("leftover", "pending delete"),
    ("leftovers", "pending deletes"),
    ("nobody", "none, absent"),
    ("note", "message, warning, diagnostic"),
    ("notes", "message, warning, diagnostic"),
    ("nothing", "none, absent"),
    ("oddities", "violation"),
    ("oddity", "violation"),
    ("park", "unconfigured provider"),
    ("parked", "unconfigured provider"),
    ("promise", "pending replacement"),
    ("promised", "pending replacement"),
    ("promises", "pending replacement, invariant"),
    ("reach", "targets, excludes, scope"),
    ("room", "module"),
    ("run_chain", "step executor"),
    ("said", "reported, logged"),
    ("say", "emit, report, log"),
    ("says", "emit, report, log"),
    ("settle", "resolve, finish"),
    ("settled", "resolved, finished"),
    ("staircase", "orchestration"),
    ("stranded", "dependent replacement"),
    ("stumbled", "failed step"),
    ("superseded", "pending delete"),
    ("surgery", "state edit"),
    ("tables", "deployment state"),
    ("take_through", "step executor"),
    ("tell", "emit, report, log"),
    ("tells", "emit, report, log"),
    ("told", "emitted, reported"),
    ("under_way", "pending operation"),
    ("unsettled", "pending"),
];

/// Words that no identifier has as a part, in any place.
const PARTS: [&str; 13] = [
    "breach",
    "condemned",
    "deed",
    "doomed",
    "folk",
    "nobody",
    "oddity",
    "staircase",
    "stranded",
    "stumbled",
    "surgery",
    "told",
    "whoever",
];

/// Words with which no name of a function begins.
const FIRST_WORDS: [&str; 10] = ["what", "who", "that", "it", "those", "where", "whether", "how", "nobody", "nothing"];

/// Identifiers that are allowed, each with the owner of the name.
const ALLOWED: [(&str, &str); 3] = [
    ("floor", "the standard library: `f64::floor`"),
    ("park", "the standard library: `std::thread::park`"),
    ("NOTE", "annotate-snippets: `Level::NOTE`"),
];

/// Returns the words of an identifier, in lower case and joined by `_`.
fn words(identifier: &str) -> String {
    let mut words = String::new();
    let mut before_is_lower = false;
    for c in identifier.trim_start_matches("r#").chars() {
        if c.is_uppercase() && before_is_lower {
            words.push('_');
        }
        before_is_lower = c.is_lowercase() || c.is_ascii_digit();
        words.extend(c.to_lowercase());
    }
    words
}

/// Returns why an identifier is not allowed, or `None` if it is.
fn objection(identifier: &str, is_function: bool) -> Option<String> {
    if ALLOWED.iter().any(|(allowed, _)| *allowed == identifier) {
        return None;
    }
    let words = words(identifier);
    if let Some((_, instead)) = IDENTIFIERS.iter().find(|(excluded, _)| *excluded == words) {
        return Some(format!("`{identifier}`: use {instead}"));
    }
    let mut parts = words.split('_');
    if is_function
        && parts.clone().next().is_some_and(|first| FIRST_WORDS.contains(&first))
        && parts.clone().count() > 1
    {
        return Some(format!("`{identifier}` begins with a pronoun: name the situation and the expectation"));
    }
    let part = parts.find(|part| PARTS.contains(part))?;
    Some(format!("`{identifier}` contains `{part}`"))
}

/// Calls a function with each identifier of code, its line, and whether it names a function that is defined there.
fn visit(tokens: TokenStream, found: &mut impl FnMut(&str, usize, bool)) {
    let mut is_after_fn = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) => visit(group.stream(), found),
            TokenTree::Ident(identifier) => {
                let name = identifier.to_string();
                found(&name, identifier.span().start().line, is_after_fn);
                is_after_fn = name == "fn";
                continue;
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        is_after_fn = false;
    }
}

/// Returns the identifiers of a file that are not allowed.
fn excluded_identifiers(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    visit(text.parse().expect("a source file can be parsed"), &mut |name, line, is_function| {
        found.extend(objection(name, is_function).map(|objection| format!("{path}:{line}: {objection}")));
    });
    found
}

/// Returns the doc comments of a file that begin with a pronoun or a similar word.
fn openings_without_subject(path: &str, text: &str) -> Vec<String> {
    let is_doc = |line: &str| line.starts_with("///") || line.starts_with("//!");
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let first = lines.iter().enumerate().filter(|(at, line)| is_doc(line) && !(*at > 0 && is_doc(lines[at - 1])));
    let begins = |line: &str| {
        let word: String = line[3..].trim_start().chars().take_while(|c| c.is_alphanumeric()).collect();
        OPENINGS.contains(&word.as_str())
    };
    first.filter(|(_, line)| begins(line)).map(|(at, line)| format!("{path}:{}: {line}", at + 1)).collect()
}

/// Returns the Rust files of the repository, without what Cargo builds and what peers install.
pub(crate) fn rust_files() -> BTreeMap<String, String> {
    fn read(folder: &Path, files: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && name != "target" && name != "goldens" && !name.starts_with('.') {
                read(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(root()).expect("the file lies below the root").display().to_string();
                files.insert(relative, fs::read_to_string(&path).expect("a source file can be read"));
            }
        }
    }
    let mut files = BTreeMap::new();
    let crates = ["bridge", "provisioner", "pulumi-proto", "plugins-example", "schemas", "tests"];
    crates.iter().for_each(|krate| read(&root().join(krate), &mut files));
    files
}

#[test]
fn doc_comments_begin_with_a_verb_or_a_noun() {
    let files = rust_files();
    assert!(files.len() > 500, "the walk finds the code");
    assert_none(&files.iter().flat_map(|(path, text)| openings_without_subject(path, text)).collect::<Vec<_>>());
}

#[test]
fn identifiers_are_words_of_the_field() {
    let own = "tests/tests/tidy/rules/language.rs";
    let files = rust_files().into_iter().filter(|(path, _)| path != own);
    assert_none(&files.flat_map(|(path, text)| excluded_identifiers(&path, &text)).collect::<Vec<_>>());
}

#[test]
fn violations_of_the_language_are_found() {
    let comments =
        "/// What is kept.\nfn f() {}\n/// Returns the rest.\n/// What follows is a second line.\nfn g() {}\n";
    assert_eq!(openings_without_subject("a.rs", comments), ["a.rs:1: /// What is kept."]);
    let code =
        "mod m {\n    struct Condemned;\n    fn what_stays() { let told = 1.0_f64.floor(); }\n    fn what() {}\n}\n";
    let found = excluded_identifiers("a.rs", code);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].starts_with("a.rs:2: `Condemned`") && found[1].starts_with("a.rs:3: `what_stays`"));
    assert_eq!(words("DeploymentState2"), "deployment_state2");
}
