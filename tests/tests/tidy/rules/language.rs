//! Rule: names and doc comments use the words of the field (`docs/glossary.md`), in product code and tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::{Expr, ExprLit, Lit, MetaNameValue};

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
const IDENTIFIERS: [(&str, &str); 67] = [
    ("answer", "reply, response, return"),
    ("answered", "reply, response, return"),
    ("answers", "reply, response, return"),
    ("book", "deployment state"),
    ("breach", "violation"),
    ("breaches", "violation"),
    ("break", "abort, fatal error"),
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
const ALLOWED: [(&str, &str); 4] = [
    ("break", "Rust: the keyword"),
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

/// Line of a doc comment. The parser turns each line `///` and `//!` into an attribute `#[doc = "..."]`.
pub(crate) struct DocLine {
    /// True for `//!` and `#![doc = "..."]`.
    is_inner: bool,
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// Returns the doc line that tokens begin with, if they do, and the tokens after it.
pub(crate) fn doc_line(tokens: &[TokenTree]) -> Option<(DocLine, &[TokenTree])> {
    let is = |token: &TokenTree, c: char| matches!(token, TokenTree::Punct(punct) if punct.as_char() == c);
    let (is_inner, group, rest) = match tokens {
        [hash, bang, TokenTree::Group(group), rest @ ..] if is(hash, '#') && is(bang, '!') => (true, group, rest),
        [hash, TokenTree::Group(group), rest @ ..] if is(hash, '#') => (false, group, rest),
        _ => return None,
    };
    let attribute: MetaNameValue = syn::parse2(group.stream()).ok()?;
    match attribute.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if attribute.path.is_ident("doc") => {
            Some((DocLine { is_inner, line: text.span().start().line, text: text.value() }, rest))
        }
        _ => None,
    }
}

/// Calls a function with the line and the text of the first line of each doc comment that is not blank, in macros too.
fn visit_doc_comments(tokens: TokenStream, found: &mut impl FnMut(usize, &str)) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut rest = tokens.as_slice();
    // Kind of the doc comment that the last tokens belong to.
    let mut begun = None;
    while let Some(token) = rest.first() {
        if let Some((doc, after)) = doc_line(rest) {
            if begun != Some(doc.is_inner) && !doc.text.trim().is_empty() {
                found(doc.line, doc.text.trim());
                begun = Some(doc.is_inner);
            }
            rest = after;
            continue;
        }
        begun = None;
        if let TokenTree::Group(group) = token {
            visit_doc_comments(group.stream(), found);
        }
        rest = &rest[1..];
    }
}

/// Returns the doc comments of a file that begin with a pronoun or a similar word.
fn openings_without_subject(path: &str, text: &str) -> Vec<String> {
    let mut openings = Vec::new();
    visit_doc_comments(text.parse().expect("a source file can be parsed"), &mut |line, comment| {
        // A word in emphasis or quotation marks is a word, too.
        let start = comment.trim_start_matches(['*', '_', '"', '\'']);
        let word: String = start.chars().take_while(|c| c.is_alphanumeric()).collect();
        if OPENINGS.contains(&word.as_str()) {
            let first = comment.lines().next().unwrap_or_default();
            openings.push(format!("{path}:{line}: {first}"));
        }
    });
    openings
}

/// Returns the Rust files of the repository, without those that Cargo builds and that package managers install.
pub(crate) fn rust_files() -> BTreeMap<String, String> {
    fn read(folder: &Path, files: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && !["target", "node_modules"].contains(&name) && !name.starts_with('.') {
                read(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(root()).expect("the file lies below the root").display().to_string();
                files.insert(relative, fs::read_to_string(&path).expect("a source file can be read"));
            }
        }
    }
    let mut files = BTreeMap::new();
    read(&root(), &mut files);
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
    let files: BTreeMap<String, String> = rust_files().into_iter().filter(|(path, _)| path != own).collect();
    let mut violations: Vec<String> = files.iter().flat_map(|(path, text)| excluded_identifiers(path, text)).collect();
    let is_stale = |(allowed, _): &&(&str, &str)| !files.values().any(|text| text.contains(allowed));
    violations.extend(ALLOWED.iter().filter(is_stale).map(|(name, _)| format!("`{name}` is allowed, but is not used")));
    assert_none(&violations);
}

#[test]
fn doc_comment_without_subject_is_found() {
    let found = |text: &str| openings_without_subject("a.rs", text);
    assert_eq!(found("/// What is kept.\nfn f() {}"), ["a.rs:1: What is kept."]);
    assert_eq!(found("/// Returns the rest.\n/// What follows is a second line.\nfn f() {}"), [""; 0]);
    assert_eq!(found("#[test]\n/// Whether f works.\nfn f() {}"), ["a.rs:2: Whether f works."]);
    assert_eq!(found("///\n/// It works.\nfn f() {}"), ["a.rs:2: It works."]);
    assert_eq!(found("//! Module.\n/// What f is.\nfn f() {}"), ["a.rs:2: What f is."]);
    assert_eq!(found("//! That module."), ["a.rs:1: That module."]);
    assert_eq!(found("#[doc = \"How f works.\"]\nfn f() {}"), ["a.rs:1: How f works."]);
    assert_eq!(found("/**\n Where f is.\n */\nfn f() {}"), ["a.rs:1: Where f is."]);
    assert_eq!(found("/// **This** works.\nfn f() {}"), ["a.rs:1: **This** works."]);
    assert_eq!(
        found("m! {\n    /// Nothing.\n    f,\n    /// One more.\n    g,\n}"),
        ["a.rs:2: Nothing.", "a.rs:4: One more."]
    );
    assert_eq!(found("const TEXT: &str = \"\n/// What a fixture has.\n\"; // What a comment says.\n"), [""; 0]);
}

#[test]
fn excluded_identifier_is_found() {
    let found = |text: &str| excluded_identifiers("a.rs", text);
    let code =
        "mod m {\n    struct Condemned;\n    fn what_stays() { let told = 1.0_f64.floor(); }\n    fn what() {}\n}\n";
    let violations = found(code);
    assert_eq!(violations.len(), 3, "{violations:?}");
    assert!(violations[0].starts_with("a.rs:2: `Condemned`") && violations[1].starts_with("a.rs:3: `what_stays`"));
    assert!(violations[2].starts_with("a.rs:3: `told`"));
    for code in [
        "assert!(told);",
        "macro_rules! m { () => { fn told() {} } }",
        "m! { names: [say] }",
        "fn f() { vec![g(|it| it.Say)] }",
        "#[derive(Doomed)] struct A;",
        "enum E { PendingSurgery }",
        "const TAKE_THROUGH: u8 = 1;",
        "fn r#says() {}",
    ] {
        assert_eq!(found(code).len(), 1, "{code}");
    }
    assert_eq!(found("// told\nconst WORDS: &str = \"told\";"), [""; 0]);
    assert_eq!(words("DeploymentState2"), "deployment_state2");
}
