//! Rule: each claim that a test shows stands in the documentation. The doc comment of the test quotes it:
//! `Shows: PAGE#SECTION "WORDS"`.
//!
//! PAGE is a page of `docs` or of the root. SECTION is the anchor of a heading, and WORDS stand in the text up to the next
//! heading of the same or a higher level. Emphasis, links and line ends do not count. A quotation may wrap.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

use super::assert_none;
use super::language::{doc_line, rust_files};
use crate::pages::{anchor, pages, prose};
use crate::workspace::root;

/// Fewest words of a quotation: less of them would stand in a page by chance.
const FEWEST_WORDS: usize = 4;

/// Pages of `docs` that describe no behaviour of the program.
const PAGES_WITHOUT_CLAIMS: [&str; 3] = ["architecture.md", "glossary.md", "testing.md"];

/// Part of a doc comment that begins with `Shows:`.
struct Statement {
    line: usize,
    text: String,
    /// Name of the test that the comment belongs to, if it is one.
    test: Option<String>,
}

/// Claim of a page, as a test quotes it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    page: String,
    section: String,
    words: String,
}

impl Claim {
    fn parse(text: &str) -> Option<Self> {
        let (place, words) = text.strip_prefix("Shows:")?.trim().split_once(" \"")?;
        let (page, section) = place.split_once('#')?;
        Some(Self { page: page.to_owned(), section: section.to_owned(), words: words.strip_suffix('"')?.to_owned() })
    }

    /// Returns why the documentation does not make the claim, or `None` if it does.
    fn objection(&self, sections: &BTreeMap<String, Vec<Section>>) -> Option<String> {
        let Self { page, section, words } = self;
        let Some(sections) = sections.get(page) else { return Some(format!("there is no page {page}")) };
        let mut found = sections.iter().filter(|candidate| candidate.anchor == *section).peekable();
        if found.peek().is_none() {
            return Some(format!("{page} has no section {section}"));
        }
        let plain = plain_text(words);
        if plain.split(' ').count() < FEWEST_WORDS {
            return Some(format!("`{words}` has fewer than {FEWEST_WORDS} words"));
        }
        (!found.any(|section| section.text.contains(&plain)))
            .then(|| format!("{page}#{section} does not say `{words}`: does the test show what it says now?"))
    }
}

/// Returns whether an attribute has a name, such as `test` in `#[tokio::test(flavor = "…")]`.
fn is_attribute(attribute: &TokenStream, name: &str) -> bool {
    let path = attribute.clone().into_iter().take_while(|token| !matches!(token, TokenTree::Group(_)));
    let names = path.filter_map(|token| if let TokenTree::Ident(ident) = token { Some(ident) } else { None });
    names.last().is_some_and(|last| last == name)
}

/// Returns the name of the function that tokens begin with, or of a case in a macro that defines tests.
fn item_name(tokens: &[TokenTree], is_macro: bool) -> Option<(String, bool)> {
    let mut rest = tokens.iter().skip_while(|token| match token {
        TokenTree::Ident(ident) => ["pub", "async", "const"].iter().any(|word| ident == word),
        TokenTree::Group(_) => true,
        _ => false,
    });
    let (TokenTree::Ident(first), Some(second)) = (rest.next()?, rest.next()) else { return None };
    match second {
        TokenTree::Ident(name) if first == "fn" => Some((name.to_string(), false)),
        TokenTree::Punct(end) if is_macro && [',', ':'].contains(&end.as_char()) => Some((first.to_string(), true)),
        _ => None,
    }
}

/// Returns the statements of the doc comments in code, with the tests that they belong to: functions with an attribute
/// `test`, cases in a macro that defines tests, and the functions that `is_listed` knows. An ignored test is left out.
fn statements(tokens: TokenStream, is_macro: bool, is_listed: &impl Fn(&str) -> bool) -> Vec<Statement> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut found = Vec::new();
    let mut rest = tokens.as_slice();
    let mut is_after_bang = false;
    while let Some(token) = rest.first() {
        let (mut begun, mut is_open, mut is_test, mut is_ignored) = (Vec::<Statement>::new(), false, false, false);
        let before = rest.len();
        loop {
            if let Some((doc, after)) = doc_line(rest) {
                let text = doc.text.trim();
                match begun.last_mut() {
                    _ if text.starts_with("Shows:") => {
                        begun.push(Statement { line: doc.line, text: text.to_owned(), test: None });
                        is_open = true;
                    }
                    Some(last) if is_open && !text.is_empty() => last.text = format!("{} {text}", last.text),
                    _ => is_open = false,
                }
                rest = after;
            } else if let [TokenTree::Punct(hash), TokenTree::Group(group), after @ ..] = rest
                && hash.as_char() == '#'
            {
                is_test |= is_attribute(&group.stream(), "test");
                is_ignored |= is_attribute(&group.stream(), "ignore");
                rest = after;
            } else {
                break;
            }
        }
        if rest.len() < before {
            let name = item_name(rest, is_macro);
            let test = name.filter(|(name, is_case)| !is_ignored && (is_test || *is_case || is_listed(name)));
            let test = test.map(|(name, _)| name);
            found.extend(begun.into_iter().map(|statement| Statement { test: test.clone(), ..statement }));
            continue;
        }
        if let TokenTree::Group(group) = token {
            found.extend(statements(group.stream(), is_macro || is_after_bang, is_listed));
        }
        is_after_bang = matches!(token, TokenTree::Punct(bang) if bang.as_char() == '!');
        rest = rest.get(1..).unwrap_or_default();
    }
    found
}

/// Returns whether the `main.rs` beside a file lists a function as a test (`test!`, `test_in_stores!`,
/// `test_with_each_sdk!`).
fn is_listed(file: &str, function: &str) -> bool {
    let path = root().join(file);
    let main = fs::read_to_string(path.with_file_name("main.rs")).unwrap_or_default();
    if !main.contains("const TESTS:") && !main.contains("test_with_each_sdk!") {
        return false;
    }
    let module = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let tokens = main.parse::<TokenStream>().expect("a source file can be parsed").to_string().replace(' ', "");
    let name = if module == "main" { function.to_owned() } else { format!("{module}::{function}") };
    [format!("({name})"), format!(",{name})"), format!("=>crate::{name};")].iter().any(|entry| tokens.contains(entry))
}

/// Section of a page: the anchor of its heading, and its text without markup.
struct Section {
    anchor: String,
    text: String,
}

/// Returns the text of a page without emphasis, code marks and the targets of links, each space and line end as one space.
fn plain_text(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("](") {
        let start = before.rfind('[').filter(|start| !before[*start..].contains(']'));
        let end = after.find(|c: char| c == ')' || c.is_whitespace()).filter(|end| after[*end..].starts_with(')'));
        if let (Some(start), Some(end)) = (start, end) {
            plain.push_str(&before[..start]);
            plain.push_str(&before[start + 1..]);
            rest = &after[end + 1..];
        } else {
            plain.push_str(before);
            plain.push_str("](");
            rest = after;
        }
    }
    plain.push_str(rest);
    plain.replace(['`', '*'], "").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn sections(text: &str) -> Vec<Section> {
    let is_heading: BTreeSet<*const u8> = prose(text).filter(|line| line.starts_with('#')).map(str::as_ptr).collect();
    let lines: Vec<&str> = text.lines().collect();
    let level = |line: &str| line.chars().take_while(|c| *c == '#').count();
    let headings = lines.iter().enumerate().filter(|(_, line)| is_heading.contains(&line.as_ptr()));
    let sections = headings.map(|(at, heading)| {
        let is_end = |line: &&&str| is_heading.contains(&line.as_ptr()) && level(line) <= level(heading);
        let length = lines[at + 1..].iter().take_while(|line| !is_end(line)).count();
        Section { anchor: anchor(heading), text: plain_text(&lines[at + 1..][..length].join("\n")) }
    });
    sections.collect()
}

/// Returns the sections of each page, by the name with which a test quotes it.
fn all_sections(pages: &BTreeMap<String, String>) -> BTreeMap<String, Vec<Section>> {
    let name = |path: &str| path.strip_prefix("docs/").unwrap_or(path).to_owned();
    pages.iter().map(|(path, text)| (name(path), sections(text))).collect()
}

/// Returns the claims that the tests of a file show, each with the name of its test, and the violations.
fn claims(
    path: &str,
    text: &str,
    sections: &BTreeMap<String, Vec<Section>>,
    is_listed: &impl Fn(&str) -> bool,
) -> (Vec<(Claim, String)>, Vec<String>) {
    let (mut claims, mut violations) = (Vec::new(), Vec::new());
    for Statement { line, text, test } in
        statements(text.parse().expect("a source file can be parsed"), false, is_listed)
    {
        let claim = Claim::parse(&text);
        let objection = match (&claim, &test) {
            (None, _) => Some("the form is `Shows: PAGE#SECTION \"WORDS\"`".to_owned()),
            (_, None) => Some("only a test shows a claim".to_owned()),
            (Some(claim), Some(_)) => claim.objection(sections),
        };
        violations.extend(objection.map(|objection| format!("{path}:{line}: {objection}")));
        claims.extend(claim.zip(test));
    }
    (claims, violations)
}

/// Returns the claims of all files, each with its tests (`FILE::FUNCTION`), and the violations.
fn all_claims(sections: &BTreeMap<String, Vec<Section>>) -> (BTreeMap<Claim, Vec<String>>, Vec<String>) {
    let (mut found, mut violations) = (BTreeMap::<Claim, Vec<String>>::new(), Vec::new());
    for (path, text) in rust_files().iter().filter(|(_, text)| text.contains("Shows:")) {
        let (claims, new) = claims(path, text, sections, &|function| is_listed(path, function));
        violations.extend(new);
        for (claim, test) in claims {
            found.entry(claim).or_default().push(format!("{path}::{test}"));
        }
    }
    (found, violations)
}

#[test]
fn claims_of_tests_stand_in_the_documentation() {
    let sections = all_sections(&pages());
    let (claims, mut violations) = all_claims(&sections);
    let quoted: BTreeSet<&str> = claims.keys().map(|claim| claim.page.as_str()).collect();
    for page in pages().keys().filter_map(|page| page.strip_prefix("docs/")).filter(|page| !page.contains('/')) {
        if !PAGES_WITHOUT_CLAIMS.contains(&page) && !quoted.contains(page) {
            violations.push(format!("no test shows a claim of docs/{page}"));
        }
    }
    assert_none(&violations);
}

#[test]
#[ignore = "writes a file: cargo claims"]
fn claims_are_written_as_a_table() {
    let (claims, _) = all_claims(&all_sections(&pages()));
    let mut table = "# Claims of the documentation, and the tests that show them\n\n\
        | section | words | tests |\n|---|---|---|\n"
        .to_owned();
    for (Claim { page, section, words }, tests) in &claims {
        let words = words.replace('|', "\\|");
        let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
        table.push_str(&format!("| {page}#{section} | {words} | {} |\n", tests.join(", ")));
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("claims.md");
    fs::write(&path, table).expect("the target folder can be written to");
    println!("{} claims: {}", claims.len(), path.display());
}

#[test]
fn claim_that_no_page_makes_or_no_test_shows_is_found() {
    let page = "# Top\n\nOne line of words,\nwhich **wraps** to [a `link`](b.md#c).\n\n## Retained resources\n\nIt keeps the old \
        resource. [x] (y)\n\n```sh\n# A comment in code\n```\n\n### Below\n\n| a table | has cells |\n\n## Last\n";
    let sections = all_sections(&BTreeMap::from([
        ("docs/a.md".to_owned(), page.to_owned()),
        ("README.md".to_owned(), "# Read me\n\nThis is the first page.\n".to_owned()),
    ]));
    let check = |code: &str| claims("t.rs", code, &sections, &|name| name == "listed").1;
    let test = |claim: &str| check(&format!("/// Shows: {claim}\n#[test]\nfn t() {{}}"));
    for claim in [
        "a.md#retained-resources \"It keeps the old resource.\"",
        "a.md#top \"of words, which wraps to a link.\"",
        "a.md#top \"It keeps the `old` resource\"",
        "a.md#retained-resources \"# A comment in code\"",
        "a.md#retained-resources \"| a table | has\"",
        "a.md#below \"a table | has cells\"",
        "README.md#read-me \"This is the first page.\"",
    ] {
        assert_eq!(test(claim), [""; 0], "{claim}");
    }
    let place = "t.rs:1: ";
    for (claim, objection) in [
        ("b.md#top \"It keeps the old resource.\"", "there is no page b.md"),
        ("a.md#a-comment-in-code \"It keeps the old resource.\"", "a.md has no section a-comment-in-code"),
        ("a.md#last \"It keeps the old resource.\"", "a.md#last does not say `It keeps the old resource.`"),
        ("a.md#below \"It keeps the old resource.\"", "a.md#below does not say `It keeps the old resource.`"),
        ("a.md#top \"It keeps a new resource.\"", "a.md#top does not say `It keeps a new resource.`"),
        ("a.md#top \"keeps the old\"", "`keeps the old` has fewer than 4 words"),
        ("a.md \"It keeps the old resource.\"", "the form is `Shows: PAGE#SECTION \"WORDS\"`"),
        ("a.md#top It keeps the old resource.", "the form is `Shows: PAGE#SECTION \"WORDS\"`"),
        ("a.md#top \"It keeps the old resource.\" And more.", "the form is `Shows: PAGE#SECTION \"WORDS\"`"),
    ] {
        let violations = test(claim);
        assert!(violations.len() == 1 && violations[0].starts_with(&format!("{place}{objection}")), "{violations:?}");
    }

    let shows = "/// Shows: a.md#top \"It keeps the\n///   old resource.\"\n";
    for code in [
        format!("/// Other words.\n///\n{shows}/// Shows: a.md#top \"One line of words\"\n#[test]\nfn t() {{}}"),
        format!("mod tests {{ {shows}#[tokio::test(flavor = \"multi_thread\")]\nasync fn t() {{}} }}"),
        format!("#[cfg(unix)]\n{shows}#[test]\nfn t() {{}}"),
        format!("{shows}pub(crate) fn listed() {{}}"),
        format!("cases! {{ first, {shows}second, third: option }}"),
        format!("proptest! {{ {shows}#[test]\nfn t(x in 0..2) {{}} }}"),
    ] {
        assert_eq!(check(&code), [""; 0], "{code}");
    }
    for code in [
        format!("{shows}fn helper() {{}}"),
        format!("{shows}#[test]\n#[ignore]\nfn t() {{}}"),
        format!("struct S {{\n{shows}field: u8,\n}}"),
        format!("{shows}mod tests {{}}"),
        "//! Shows: a.md#top \"It keeps the old resource.\"\n".to_owned(),
    ] {
        let violations = check(&code);
        assert!(violations.len() == 1 && violations[0].ends_with("only a test shows a claim"), "{violations:?}");
    }
    assert!(is_listed("tests/tests/interop_cli/states.rs", "pulumi_lists_our_stack"));
    assert!(is_listed("tests/tests/interop_components/main.rs", "strict_sandbox"));
    assert!(is_listed("tests/tests/interop_providers/starts.rs", "attaching"));
    assert!(!is_listed("tests/tests/interop_cli/states.rs", "gone") && !is_listed("tests/tests/tidy/main.rs", "root"));
}
