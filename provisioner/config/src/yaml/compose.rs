//! Composes parser events to a tree, by the rules of docs/spec/simple-container.md#2.1.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use bridge::message_text::MessageText;
use bridge::yaml::{MAX_DEPTH, MAX_VALUES};
use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span as ParserSpan, StrInput, Tag, options};

use crate::diagnostics::{Code, Diagnostic, FileId, SourceFiles, Span};
use crate::tree::{Entry, Mapping, Node, Scalar, Value};

use super::syntax_hint::{ErrorPlace, Opened, SyntaxHint, find_hint};

/// Namespace of the tag prefix `!!`.
const YAML_TAGS: &str = "tag:yaml.org,2002:";

const SYNTAX: Code = Code("yaml-syntax");
const LIMIT: Code = Code("yaml-limit");

/// First document of a file. Further documents are not read.
#[derive(Debug)]
pub(crate) struct Document {
    /// Content; `None` if the document is empty.
    pub(crate) root: Option<Node>,
    /// Keys that occur twice in one mapping. The tree holds the first occurrence.
    pub(crate) duplicates: Vec<Duplicate>,
    /// Top-level keys whose value is, or contains, an anchored node that an alias refers to.
    pub(crate) aliased_sections: HashSet<String>,
    /// Start of the second document, if there is one with content.
    pub(crate) second: Option<Span>,
}

/// A key that occurs twice in one mapping.
#[derive(Clone, Debug)]
pub(crate) struct Duplicate {
    /// The key.
    pub(crate) key: String,
    /// Position of the first occurrence.
    pub(crate) first: Span,
    /// Position of the second occurrence.
    pub(crate) again: Span,
    /// Top-level key that contains it; `None` at the top.
    pub(crate) section: Option<String>,
}

impl Duplicate {
    /// Returns the diagnostic for the second occurrence.
    pub(crate) fn diagnostic(&self) -> Diagnostic {
        let code = Code("duplicate-key");
        Diagnostic::error(code, self.again, format_args!("the key `{}` is written twice", self.key))
            .label(self.first, "first written here")
    }
}

/// Parses the first document of a file.
///
/// # Errors
/// The first syntax error.
pub(crate) fn parse(file: FileId, sources: &SourceFiles) -> Result<Document, Box<Diagnostic>> {
    let text = sources.get(file).text().clone();
    let limits = options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut composer = Composer {
        events: Parser::new_from_str_with_options(&text, limits),
        text: &text,
        file,
        open_collections: Vec::new(),
        read_end: 0,
        anchors: HashMap::new(),
        sections_of_anchors: HashMap::new(),
        aliased_sections: HashSet::new(),
        duplicates: Vec::new(),
        section: None,
        nodes: 0,
        depth: 0,
    };
    let root = composer.compose_document()?;
    let second = composer.find_second_document();
    Ok(Document { root, duplicates: composer.duplicates, aliased_sections: composer.aliased_sections, second })
}

struct Anchored {
    node: Node,
    size: usize,
    depth: usize,
}

struct Composer<'t> {
    events: Parser<'t, StrInput<'t>>,
    text: &'t str,
    file: FileId,
    /// Offsets of the starts of the collections that have not ended.
    open_collections: Vec<usize>,
    /// Offset of the end of the last event.
    read_end: usize,
    /// Anchored nodes, with their number of nodes and their nesting depth.
    anchors: HashMap<usize, Anchored>,
    /// Top-level keys that contain anchors, by the anchor.
    sections_of_anchors: HashMap<usize, String>,
    aliased_sections: HashSet<String>,
    duplicates: Vec<Duplicate>,
    section: Option<String>,
    nodes: usize,
    depth: usize,
}

type ComposeResult<T> = Result<T, Box<Diagnostic>>;

impl<'t> Composer<'t> {
    fn compose_document(&mut self) -> ComposeResult<Option<Node>> {
        loop {
            match self.next_event()? {
                None | Some((Event::StreamEnd, _)) => return Ok(None),
                Some((Event::DocumentStart(_, Some(version)), range)) if (version.major, version.minor) != (1, 1) => {
                    return Err(self
                        .error_at(SYNTAX, range, "found incompatible YAML document")
                        .help("remove the `%YAML` directive")
                        .into());
                }
                Some((Event::StreamStart | Event::DocumentStart(..), _)) => {}
                Some((Event::DocumentEnd, _)) => return Ok(None),
                Some((event, range)) => {
                    let node = self.compose_node(event, range)?;
                    return Ok((!node.is_null()).then_some(node));
                }
            }
        }
    }

    /// Finds the start of the second document. A `---` without content behind it begins no document. The content is not
    /// read: it may not even be YAML.
    fn find_second_document(&mut self) -> Option<Span> {
        let mut start = None;
        while let Some(event) = self.events.next_event() {
            match (event, start) {
                (Ok((Event::DocumentStart(..), range)), None) => start = Some(self.span(range)),
                (Ok((Event::DocumentEnd, _)), None) => {}
                (Ok((Event::Scalar(_, ScalarStyle::Plain, ..), range)), Some(_))
                    if self.span(range).range().is_empty() =>
                {
                    return None;
                }
                (Ok((Event::StreamEnd, _)), _) | (Err(_), None) => return None,
                (_, Some(_)) => return start,
                (Ok(_), None) => {}
            }
        }
        None
    }

    fn next_event(&mut self) -> ComposeResult<Option<(Event<'t>, ParserSpan)>> {
        let next = self.events.next_event().transpose().map_err(|error| Box::new(self.syntax_error(&error)))?;
        if let Some((event, range)) = &next {
            self.read_end = self.offset(range.end).max(self.read_end);
            match event {
                Event::SequenceStart(..) | Event::MappingStart(..) => {
                    self.open_collections.push(self.offset(range.start));
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    self.open_collections.pop();
                }
                _ => {}
            }
        }
        Ok(next)
    }

    fn next_event_inside(&mut self, opened: ParserSpan) -> ComposeResult<(Event<'t>, ParserSpan)> {
        match self.next_event()? {
            Some(next) => Ok(next),
            None => Err(self.error_at(SYNTAX, opened, "the file ends before this collection is closed").into()),
        }
    }

    fn compose_node(&mut self, event: Event<'t>, range: ParserSpan) -> ComposeResult<Node> {
        self.count_nodes(1, range)?;
        let before = self.nodes;
        let (anchor, node) = match event {
            Event::Alias(id) => return self.compose_alias(id, range),
            Event::Scalar(text, style, anchor, tag) => {
                (anchor, self.compose_scalar(text.into_owned(), style, tag.as_deref(), range)?)
            }
            Event::SequenceStart(_, anchor, tag) => (anchor, self.compose_sequence(tag.as_deref(), range)?),
            Event::MappingStart(_, anchor, tag) => (anchor, self.compose_mapping(tag.as_deref(), range)?),
            other => return Err(self.error_at(SYNTAX, range, format!("unexpected {other:?}")).into()),
        };
        if anchor != 0 {
            let (size, depth) = (self.nodes - before + 1, depth(&node));
            self.anchors.insert(anchor, Anchored { node: node.clone(), size, depth });
            self.sections_of_anchors.extend(self.section.clone().map(|section| (anchor, section)));
        }
        Ok(node)
    }

    fn compose_alias(&mut self, id: usize, range: ParserSpan) -> ComposeResult<Node> {
        let Some(&Anchored { size, depth, .. }) = self.anchors.get(&id) else {
            return Err(self.error_at(SYNTAX, range, "the anchor contains itself").into());
        };
        self.count_nodes(size, range)?;
        if self.depth + depth > MAX_DEPTH {
            return Err(self.too_deep_error(range));
        }
        self.aliased_sections.extend(self.sections_of_anchors.get(&id).cloned());
        Ok(self.anchors[&id].node.clone())
    }

    fn count_nodes(&mut self, more: usize, range: ParserSpan) -> ComposeResult<()> {
        self.nodes += more;
        if self.nodes > MAX_VALUES {
            return Err(self
                .error_at(LIMIT, range, format!("the file has more than {MAX_VALUES} values"))
                .help("aliases count as often as they are used")
                .into());
        }
        Ok(())
    }

    fn compose_scalar(
        &mut self,
        text: String,
        style: ScalarStyle,
        tag: Option<&Tag>,
        range: ParserSpan,
    ) -> ComposeResult<Node> {
        let plain = matches!(style, ScalarStyle::Plain);
        let span = self.span(range);
        // The parser reports an empty value as a tilde.
        let text = if plain && span.start == span.end { String::new() } else { text };
        let scalar = match tag.map(|tag| (tag.suffix_in_namespace(YAML_TAGS), tag)) {
            None => Scalar { text, plain },
            Some((Some(suffix), tag)) => match &*suffix {
                "int" | "float" | "bool" | "null" | "timestamp" | "merge" => Scalar { text, plain },
                "str" => Scalar { text, plain: false },
                "binary" => Scalar { text: self.decode_binary(&text, range)?, plain: false },
                _ => return Err(self.unknown_tag_error(tag, range)),
            },
            Some((None, tag)) => return Err(self.unknown_tag_error(tag, range)),
        };
        Ok(Node { value: Value::Scalar(scalar), span })
    }

    fn decode_binary(&self, text: &str, range: ParserSpan) -> ComposeResult<String> {
        let packed: String = text.split_whitespace().collect();
        base64::engine::general_purpose::STANDARD
            .decode(packed)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .ok_or_else(|| self.error_at(SYNTAX, range, "`!!binary` value contains invalid base64 data").into())
    }

    fn check_collection_tag(&self, tag: Option<&Tag>, allowed: &str, range: ParserSpan) -> ComposeResult<()> {
        match tag {
            Some(tag) if tag.suffix_in_namespace(YAML_TAGS).as_deref() != Some(allowed) => {
                Err(self.unknown_tag_error(tag, range))
            }
            _ => Ok(()),
        }
    }

    fn unknown_tag_error(&self, tag: &Tag, range: ParserSpan) -> Box<Diagnostic> {
        let summary = MessageText::new(format_args!("the YAML tag `{}` is not supported", tag.original()));
        self.error_at(Code("yaml-tag"), range, summary).help("remove the tag").into()
    }

    fn compose_sequence(&mut self, tag: Option<&Tag>, opened: ParserSpan) -> ComposeResult<Node> {
        self.check_collection_tag(tag, "seq", opened)?;
        self.enter_collection(opened)?;
        let mut items: Vec<Node> = Vec::new();
        let end = loop {
            let (event, range) = self.next_event_inside(opened)?;
            match event {
                Event::SequenceEnd => break range,
                event => items.push(self.compose_node(event, range)?),
            }
        };
        self.depth -= 1;
        let span = self.collection_span(opened, end, items.last().map(|item| item.span));
        Ok(Node { value: Value::Sequence(items), span })
    }

    fn compose_mapping(&mut self, tag: Option<&Tag>, opened: ParserSpan) -> ComposeResult<Node> {
        self.check_collection_tag(tag, "map", opened)?;
        self.enter_collection(opened)?;
        let mut mapping = Mapping::default();
        let mut seen: HashMap<String, Span> = HashMap::new();
        let mut merge: Option<(Span, Node)> = None;
        let end = loop {
            let (event, range) = self.next_event_inside(opened)?;
            if matches!(event, Event::MappingEnd) {
                break range;
            }
            let key = self.compose_node(event, range)?;
            let (key_span, Value::Scalar(Scalar { text: key_text, plain })) = (key.span, key.value) else {
                return Err(self.error_at(SYNTAX, range, "a key must be a single value").into());
            };
            let is_merge = plain && key_text == "<<";
            if self.depth == 1 {
                self.section = Some(key_text.clone());
            }
            let (event, range) = self.next_event_inside(opened)?;
            let value = self.compose_node(event, range)?;
            let first = if is_merge { merge.as_ref().map(|(span, _)| *span) } else { seen.get(&key_text).copied() };
            match first {
                Some(first) => {
                    let section = self.section.clone().filter(|_| self.depth > 1);
                    self.duplicates.push(Duplicate { key: key_text, first, again: key_span, section });
                }
                None if is_merge => merge = Some((key_span, value)),
                None => {
                    seen.insert(key_text.clone(), key_span);
                    mapping.0.push(Entry { key: key_text, key_span, value });
                }
            }
        };
        self.depth -= 1;
        let span = self.collection_span(opened, end, mapping.0.last().map(|entry| entry.value.span));
        if let Some((_, source)) = merge {
            self.apply_merge(&mut mapping, source)?;
        }
        Ok(Node { value: Value::Mapping(mapping), span })
    }

    /// Applies a merge key. Own keys take precedence, then the keys of earlier merged mappings.
    fn apply_merge(&self, mapping: &mut Mapping, source: Node) -> ComposeResult<()> {
        let invalid_merge = |span: Span| -> Box<Diagnostic> {
            Diagnostic::error(SYNTAX, span, "map merge requires map or sequence of maps as the value").into()
        };
        let sources = match source.value {
            Value::Mapping(_) => vec![source],
            Value::Sequence(items) => items,
            Value::Scalar(_) | Value::Interpolated(_) => return Err(invalid_merge(source.span)),
        };
        let mut keys: HashSet<String> = mapping.keys().map(str::to_owned).collect();
        for source in sources {
            let Value::Mapping(from) = source.value else { return Err(invalid_merge(source.span)) };
            for entry in from.0 {
                if keys.insert(entry.key.clone()) {
                    mapping.0.push(entry);
                }
            }
        }
        Ok(())
    }

    fn enter_collection(&mut self, opened: ParserSpan) -> ComposeResult<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.too_deep_error(opened));
        }
        Ok(())
    }

    fn too_deep_error(&self, range: ParserSpan) -> Box<Diagnostic> {
        self.error_at(LIMIT, range, format!("nested deeper than {MAX_DEPTH} levels")).into()
    }

    /// Returns the span of a collection. A flow collection ends at its bracket. A block collection ends with its last
    /// item, because the parser detects its end only later in the text.
    fn collection_span(&self, opened: ParserSpan, end: ParserSpan, last: Option<Span>) -> Span {
        let start = self.offset(opened.start);
        let bracket = self.text[start..].starts_with(['[', '{']);
        let end = match last {
            Some(last) if !bracket && last.end as usize >= start => last.end as usize,
            _ => self.offset(end.end),
        };
        self.byte_span(start, end)
    }

    fn offset(&self, marker: Marker) -> usize {
        marker.byte_offset().unwrap_or(self.text.len()).min(self.text.len())
    }

    fn span(&self, range: ParserSpan) -> Span {
        let (start, end) = (self.offset(range.start), self.offset(range.end));
        let written = self.text[start..end.max(start)].trim_end();
        self.byte_span(start, start + written.len())
    }

    fn byte_span(&self, start: usize, end: usize) -> Span {
        // Files are at most 4 MiB, so offsets fit into 32 bits.
        let byte = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Span { file: self.file, start: byte(start), end: byte(end.max(start)) }
    }

    fn error_at(&self, code: Code, range: ParserSpan, summary: impl Into<MessageText>) -> Diagnostic {
        Diagnostic::error(code, self.span(range), summary)
    }

    fn syntax_error(&self, error: &ScanError) -> Diagnostic {
        let place = ErrorPlace {
            text: self.text,
            at: self.offset(*error.marker()),
            read_end: self.read_end,
            open_collections: &self.open_collections,
        };
        let SyntaxHint { at, hint, opened } = find_hint(error.kind(), &place);
        let span_at = |at: usize| {
            let end = self.text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
            self.byte_span(at, end)
        };
        let mut diagnostic = Diagnostic::error(SYNTAX, span_at(at), format_args!("this is not YAML: {}", error.info()));
        if let Some(hint) = hint {
            diagnostic = diagnostic.help(hint);
        }
        match opened {
            Some(Opened { at, text }) => diagnostic.label(span_at(at), text),
            None => diagnostic,
        }
    }
}

/// Returns the nesting depth of collections in a node.
fn depth(node: &Node) -> usize {
    match &node.value {
        Value::Scalar(_) | Value::Interpolated(_) => 0,
        Value::Sequence(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Mapping(mapping) => 1 + mapping.into_iter().map(|entry| depth(&entry.value)).max().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::{Sensitivity, Style, render};

    fn read(text: &str) -> (SourceFiles, Result<Document, Box<Diagnostic>>) {
        let mut sources = SourceFiles::default();
        let file = sources.add("t.yaml", text, Sensitivity::Public);
        let document = parse(file, &sources);
        (sources, document)
    }

    /// Formats each scalar with its position and source text.
    fn places(text: &str) -> String {
        fn walk(node: &Node, path: &str, sources: &SourceFiles, out: &mut String) {
            match &node.value {
                Value::Sequence(items) => {
                    for (index, item) in items.iter().enumerate() {
                        walk(item, &format!("{path}/{index}"), sources, out);
                    }
                }
                Value::Mapping(mapping) => {
                    for entry in mapping {
                        assert_eq!(sources.slice(entry.key_span).trim_matches(['"', '\'']), entry.key);
                        walk(&entry.value, &format!("{path}/{}", entry.key), sources, out);
                    }
                }
                Value::Scalar(scalar) => {
                    let place = sources.position(node.span);
                    let source = sources.slice(node.span);
                    let line = format!("{path} {}:{} {source:?} = {:?}\n", place.line, place.column, scalar.text);
                    out.push_str(&line);
                }
                Value::Interpolated(_) => unreachable!("the parser returns no interpolated strings"),
            }
        }
        let (sources, document) = read(text);
        let mut out = String::new();
        walk(document.unwrap().root.as_ref().unwrap(), "", &sources, &mut out);
        out
    }

    fn rendered_errors(text: &str) -> String {
        let (sources, document) = read(text);
        match document {
            Err(diagnostic) => render(&diagnostic, &sources, Style::Plain),
            Ok(document) => {
                let all: Vec<_> =
                    document.duplicates.iter().map(|d| render(&d.diagnostic(), &sources, Style::Plain)).collect();
                all.join("\n")
            }
        }
    }

    #[test]
    fn every_scalar_has_its_position() {
        insta::assert_snapshot!(places(
            "\u{feff}a: one # note\nb:\n  - 'two'\n  - {c: \"t\\u00e9 3\", d: }\ne: |\n  four\n  five\nü: sechs\n"
        ), @r#"
        /a 1:4 "one" = "one"
        /b/0 3:5 "'two'" = "two"
        /b/1/c 4:9 "\"t\\u00e9 3\"" = "té 3"
        /b/1/d 4:23 "" = ""
        /e 6:3 "four\n  five" = "four\nfive\n"
        /ü 8:4 "sechs" = "sechs"
        "#);
    }

    #[test]
    fn aliases_and_merged_keys_have_position_of_their_definition() {
        insta::assert_snapshot!(places(
            "x: &x {p: 1, q: 2}\ny: &y {q: 3, r: 4}\nz:\n  <<: [*x, *y]\n  p: 0\nw: *x\n"
        ), @r#"
        /x/p 1:11 "1" = "1"
        /x/q 1:17 "2" = "2"
        /y/q 2:11 "3" = "3"
        /y/r 2:17 "4" = "4"
        /z/p 5:6 "0" = "0"
        /z/q 1:17 "2" = "2"
        /z/r 2:17 "4" = "4"
        /w/p 1:11 "1" = "1"
        /w/q 1:17 "2" = "2"
        "#);
    }

    #[test]
    fn standard_yaml_tags_are_supported() {
        insta::assert_snapshot!(places("- !!str 5\n- !!binary aGVsbG8=\n- !!int \"5\"\n- !!seq [!!float 1]\n"), @r#"
        /0 1:9 "5" = "5"
        /1 2:12 "aGVsbG8=" = "hello"
        /2 3:9 "\"5\"" = "5"
        /3/0 4:18 "1" = "1"
        "#);
        assert!(read("- !!binary x\n").1.is_err());
    }

    /// Shows: server-yaml.md#files "Only the first document of a file is read"
    #[test]
    fn only_the_first_document_is_read_and_the_second_is_found() {
        assert!(read("a: 1\n---\n{broken\n").1.is_ok());
        assert!(read("--- \n---\na: 1\n").1.unwrap().root.is_none());
        assert!(read("# nothing\n").1.unwrap().root.is_none());
        let line_of_second = |text: &str| {
            let (sources, document) = read(text);
            document.unwrap().second.map(|span| sources.position(span).line)
        };
        let table = [
            ("a: 1\n", None),
            ("---\na: 1\n...\n", None),
            ("a: 1\n---\n", None),
            ("a: 1\n---\n# nothing\n", None),
            ("a: 1\n---\nb: 1\n", Some(2)),
            ("---\na: 1\n...\n---\n- b\n", Some(4)),
            ("--- \n---\na: 1\n", Some(2)),
            ("a: 1\n---\n{broken\n", Some(2)),
        ];
        for (text, line) in table {
            assert_eq!(line_of_second(text), line, "{text:?}");
        }
    }

    #[test]
    fn sections_with_anchors_that_are_used_are_found() {
        let text = "a: &a 1\nb: {c: &c [2]}\nd: &d 3\ne: [*a, *c]\n";
        let mut found: Vec<_> = read(text).1.unwrap().aliased_sections.into_iter().collect();
        found.sort_unstable();
        assert_eq!(found, ["a", "b"]);
    }

    #[test]
    fn syntax_rejected_by_go_is_rejected_with_position() {
        for bad in ["a: {b\n", "a:\n\tb: 1\n", "a: *x\n", "a: &a [*a]\n", "%YAML 1.2\n---\na: 1\n", "a: \u{1}\n"] {
            assert!(read(bad).1.is_err(), "{bad:?}");
        }
        assert!(read("%YAML 1.1\n---\na: 1\n").1.is_ok());
        insta::assert_snapshot!(rendered_errors("a: 1\n<<: 2\n"), @r"
        error[yaml-syntax]: map merge requires map or sequence of maps as the value
         --> t.yaml:2:5
          |
        2 | <<: 2
          |     ^
        ");
        insta::assert_snapshot!(rendered_errors("a:\n  - !Ref x\n"), @r"
        error[yaml-tag]: the YAML tag `!Ref` is not supported
         --> t.yaml:2:10
          |
        2 |   - !Ref x
          |          ^
          |
          = hint: remove the tag
        ");
    }

    #[test]
    fn duplicate_keys_are_compared_by_text_without_quotes() {
        insta::assert_snapshot!(rendered_errors("s:\n  a: 1\n  \"a\": 2\n"), @r#"
        error[duplicate-key]: the key `a` is written twice
         --> t.yaml:3:3
          |
        2 |   a: 1
          |   - first written here
        3 |   "a": 2
          |   ^^^
        "#);
        assert_eq!(rendered_errors("s: {1: a, 01: b}\n"), "");
        assert!(rendered_errors("m: &m {}\ns:\n  <<: *m\n  <<: *m\n").contains("written twice"));
    }

    /// Shows: server-yaml.md#files "A file has at most 4 MiB, 64 levels and 500,000 values"
    #[test]
    fn alias_bombs_and_deep_nesting_are_rejected() {
        let mut bomb = String::from("a0: &a0 [1,1,1,1,1,1,1,1,1]\n");
        for level in 1..9 {
            let items = vec![format!("*a{}", level - 1); 9].join(",");
            bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
        }
        assert!(rendered_errors(&bomb).contains("more than 500000 values"));
        assert!(read(&"[".repeat(100_000)).1.is_err());
        let chain = (1..100).map(|level| format!("a{level}: &a{level} [*a{}]\n", level - 1)).collect::<String>();
        assert!(rendered_errors(&format!("a0: &a0 []\n{chain}")).contains("nested deeper than 64 levels"));
        let deep: String = (0..100).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
        assert!(read(&deep).1.is_err());
    }
}
