//! Rule: names and doc comments use the words of the field (`docs/glossary.md`), in product code and tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::{Expr, ExprLit, Lit, MetaNameValue};

use super::assert_none;
use crate::workspace::root;

/// Words with which neither a doc comment nor a name of a function with several words begins: the subject would stand
/// elsewhere.
const PRONOUNS: [&str; 16] = [
    "how", "it", "its", "nobody", "nothing", "that", "their", "these", "they", "this", "those", "what", "where",
    "whether", "which", "who",
];

/// Synonyms of terms of the glossary, with the term. No identifier has one of them among its words.
const SYNONYMS: [(&str, &str); 35] = [
    ("book", "deployment state"),
    ("breach", "violation"),
    ("breaches", "violation"),
    ("complaint", "diagnostic"),
    ("condemn", "dependent replacement"),
    ("condemned", "dependent replacement"),
    ("converse", "step generator"),
    ("deed", "step"),
    ("deeds", "step"),
    ("doom", "dependent replacement"),
    ("doomed", "dependent replacement"),
    ("door", "resource monitor"),
    ("fate", "outcome"),
    ("give_way", "pending replacement"),
    ("goes_along", "dependent replacement"),
    ("gone_along", "dependent replacement"),
    ("ladder", "decision"),
    ("law", "invariant"),
    ("laws", "invariant"),
    ("lazy_provider", "default provider"),
    ("leftover", "pending delete"),
    ("leftovers", "pending delete"),
    ("oddities", "violation"),
    ("oddity", "violation"),
    ("parked", "unconfigured provider"),
    ("promise", "pending replacement"),
    ("promised", "pending replacement"),
    ("promises", "pending replacement"),
    ("run_chain", "step executor"),
    ("stranded", "dependent replacement"),
    ("stumbled", "failed step"),
    ("superseded", "pending delete"),
    ("surgery", "state edit"),
    ("take_through", "step executor"),
    ("under_way", "pending operation"),
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
    let words = words(identifier);
    let has_pronoun = words.split_once('_').is_some_and(|(first, _)| PRONOUNS.contains(&first));
    if is_function && has_pronoun {
        return Some(format!("`{identifier}` begins with a pronoun: name the situation and the expectation"));
    }
    let is_part = |synonym: &str| format!("_{words}_").contains(&format!("_{synonym}_"));
    let (synonym, term) = SYNONYMS.iter().find(|(synonym, _)| is_part(synonym))?;
    Some(format!("`{identifier}`: the term of the glossary for `{synonym}` is `{term}`"))
}

/// Returns the terms that a glossary defines.
fn terms(glossary: &str) -> Vec<&str> {
    let cells = glossary.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    cells.map(|(term, _)| term.split(" (").next().unwrap_or(term)).collect()
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
        if PRONOUNS.contains(&word.to_lowercase().as_str()) {
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
    assert_none(&files.iter().flat_map(|(path, text)| excluded_identifiers(path, text)).collect::<Vec<_>>());
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
        found("m! {\n    /// Nothing.\n    f,\n    /// This one.\n    g,\n}"),
        ["a.rs:2: Nothing.", "a.rs:4: This one."]
    );
    assert_eq!(found("const TEXT: &str = \"\n/// What a fixture has.\n\"; // What a comment says.\n"), [""; 0]);
}

#[test]
fn synonyms_name_terms_of_the_glossary() {
    let glossary = fs::read_to_string(root().join("docs/glossary.md")).expect("there is a glossary");
    let terms = terms(&glossary);
    let unknown = SYNONYMS.iter().filter(|(synonym, term)| !terms.contains(term) || terms.contains(synonym));
    assert_none(
        &unknown.map(|(synonym, term)| format!("`{synonym}` is no synonym of a term: {term}")).collect::<Vec<_>>(),
    );
}

#[test]
fn excluded_identifier_is_found() {
    let found = |text: &str| excluded_identifiers("a.rs", text);
    let code = "mod m {\n    struct Condemned;\n    fn what_stays() { let deed = 1; }\n    fn what() {}\n}\n";
    let violations = found(code);
    assert_eq!(violations.len(), 3, "{violations:?}");
    assert!(violations[0].starts_with("a.rs:2: `Condemned`") && violations[1].starts_with("a.rs:3: `what_stays`"));
    assert_eq!(violations[2], "a.rs:3: `deed`: the term of the glossary for `deed` is `step`");
    for code in [
        "assert!(deed);",
        "macro_rules! m { () => { fn deed() {} } }",
        "m! { names: [deeds] }",
        "fn f() { vec![g(|it| it.Deed)] }",
        "#[derive(Doomed)] struct A;",
        "enum E { PendingSurgery }",
        "const TAKE_THROUGH: u8 = 1;",
        "fn r#laws() {}",
        "fn lazy_providers() { lazy_provider_of(1) }",
    ] {
        assert_eq!(found(code).len(), 1, "{code}");
    }
    assert_eq!(found("// deed\nconst WORDS: &str = \"deed\"; fn indeed() {}"), [""; 0]);
    assert_eq!(words("DeploymentState2"), "deployment_state2");
    assert_eq!(terms("| term | meaning |\n|---|---|\n| store (also: backend) | a folder |\n"), ["term", "store"]);
}
