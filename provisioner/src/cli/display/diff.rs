//! Prints the properties that a step changes.
//!
//! Input: a step, or two property maps. Output: lines that begin with `+`, `-` or `~`, or with a space if nothing
//! changes, and that end with `[replaces]` if the property is a reason to replace the resource. Long texts are
//! shortened and secrets masked unless the options show them. [`super::property_changes`] decides which properties have
//! changed.

use engine::events::StepInfo;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use similar::{ChangeTag, TextDiff};

use super::palette::Palette;
use super::property_changes::{PropertyChange, PropertyChanges, Segment, ValueChange, compare_values, find_changes};
use super::text::Line;
use super::value::{DisplayValue, Secrets, is_internal, quoted};

/// Extent of a diff.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiffOptions {
    /// Treatment of secrets.
    pub(crate) secrets: Secrets,
    /// True if long texts are shown in full.
    pub(crate) full: bool,
}

/// Number of lines shown of an added or removed text, unless texts are shown in full.
const TEXT_LINES: usize = 8;
/// Number of characters shown of a one-line text, unless texts are shown in full.
const TEXT_CHARACTERS: usize = 240;
/// Maximum length of two texts, in bytes, that are shown on one line.
const ONE_LINE: usize = 70;

/// Returns the lines of the properties that a step changes. Empty if it changes no property.
pub(crate) fn step_diff(info: &StepInfo, options: DiffOptions) -> Vec<Line> {
    let mut printer = Printer { options, lines: Vec::new() };
    printer.children(&find_changes(info), 0);
    printer.lines
}

/// Returns the lines of two property maps, such as the outputs of a stack. Unchanged properties have no mark.
pub(crate) fn bag_diff(old: Option<&PropertyMap>, new: &PropertyMap, options: DiffOptions) -> Vec<Line> {
    let mut printer = Printer { options, lines: Vec::new() };
    let empty = PropertyMap::new();
    let old = old.unwrap_or(&empty);
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for key in keys.into_iter().filter(|key| !is_internal(key)) {
        let segment = Segment::Name(key.clone());
        match compare_values(old.get(key), new.get(key)) {
            Some(node) => printer.node(&segment, &node, 0),
            None => {
                new.get(key).into_iter().for_each(|value| printer.value(Mark::Same, &segment, value, false, 0));
            }
        }
    }
    printer.lines
}

/// Returns the lines of a property map, without marks.
pub(crate) fn values(properties: &PropertyMap, options: DiffOptions) -> Vec<Line> {
    bag_diff(Some(properties), properties, options)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Add,
    Remove,
    Change,
    Same,
}

impl Mark {
    fn symbol_and_style(self) -> (&'static str, anstyle::Style) {
        match self {
            Self::Add => ("+", Palette::CREATE),
            Self::Remove => ("-", Palette::DELETE),
            Self::Change => ("~", Palette::UPDATE),
            Self::Same => (" ", Palette::PLAIN),
        }
    }
}

struct Printer {
    options: DiffOptions,
    lines: Vec<Line>,
}

impl Printer {
    fn children(&mut self, tree: &PropertyChanges<'_>, depth: usize) {
        tree.iter().for_each(|(segment, node)| self.node(segment, node, depth));
    }

    fn node(&mut self, segment: &Segment, node: &PropertyChange<'_>, depth: usize) {
        match node {
            PropertyChange::Nested(tree) => {
                self.push(Mark::Change, depth, format!("{}:", label(segment)), Line::new(), false);
                self.children(tree, depth + 1);
            }
            PropertyChange::Value(ValueChange { old: None, new: Some(new), replaces }) => {
                self.value(Mark::Add, segment, new, *replaces, depth);
            }
            PropertyChange::Value(ValueChange { old: Some(old), new: None, replaces }) => {
                self.value(Mark::Remove, segment, old, *replaces, depth);
            }
            PropertyChange::Value(ValueChange { old: Some(old), new: Some(new), replaces }) => {
                self.change(segment, old, new, *replaces, depth);
            }
            PropertyChange::Value(ValueChange { old: None, new: None, replaces }) => {
                let name = label(segment);
                let reason = Line::new().styled(Palette::DIM, change_reason(&name));
                self.push(Mark::Change, depth, format!("{name}:"), reason, *replaces);
            }
        }
    }

    fn value(&mut self, mark: Mark, segment: &Segment, value: &PropertyValue, replaces: bool, depth: usize) {
        let shown = DisplayValue::of(value, self.options.secrets);
        self.shown(mark, label(segment), &shown, replaces, depth);
    }

    fn shown(&mut self, mark: Mark, label: String, value: &DisplayValue, replaces: bool, depth: usize) {
        let name = format!("{label}:");
        if let Some(text) = value.inline() {
            let text = self.shortened(&text);
            return self.push(mark, depth, name, Line::plain(text), replaces);
        }
        self.push(mark, depth, name, Line::new(), replaces);
        match value {
            DisplayValue::Map(map) => {
                for (key, value) in map {
                    self.shown(mark, key_label(key), value, false, depth + 1);
                }
            }
            DisplayValue::List(items) => {
                for (index, value) in items.iter().enumerate() {
                    self.shown(mark, format!("[{index}]"), value, false, depth + 1);
                }
            }
            DisplayValue::Text(text) => self.text_block(mark, text, depth + 1),
            _ => {}
        }
    }

    fn change(&mut self, segment: &Segment, old: &PropertyValue, new: &PropertyValue, replaces: bool, depth: usize) {
        let name = format!("{}:", label(segment));
        if self.options.secrets == Secrets::Shown && (old.contains_secrets() || new.contains_secrets()) {
            return self.change(segment, &old.without_wrappers(), &new.without_wrappers(), replaces, depth);
        }
        // A change to or from a secret masks both values, as they are often the same text.
        if (old.is_secret() || new.is_secret()) && self.options.secrets == Secrets::Masked {
            let masked = |value: &PropertyValue| match DisplayValue::of(value, Secrets::Masked) {
                DisplayValue::Unknown => super::value::COMPUTED,
                _ => engine::masking::MASK,
            };
            let change = arrow(masked(old), masked(new));
            return self.push(Mark::Change, depth, name, change, replaces);
        }
        if let (PropertyValue::String(old), PropertyValue::String(new)) = (old, new) {
            return self.text_change(name, old, new, replaces, depth);
        }
        if let Some(node @ PropertyChange::Nested(_)) = compare_values(Some(old), Some(new)) {
            self.push(Mark::Change, depth, name, Line::new(), replaces);
            if let PropertyChange::Nested(tree) = node {
                self.children(&tree, depth + 1);
            }
            return;
        }
        let (old, new) = (DisplayValue::of(old, self.options.secrets), DisplayValue::of(new, self.options.secrets));
        match (old.inline(), new.inline()) {
            (Some(old), Some(new)) if old.len() + new.len() <= ONE_LINE => {
                self.push(Mark::Change, depth, name, arrow(&old, &new), replaces);
            }
            _ => {
                self.shown(Mark::Remove, label(segment), &old, false, depth);
                self.shown(Mark::Add, label(segment), &new, replaces, depth);
            }
        }
    }

    fn text_change(&mut self, name: String, old: &str, new: &str, replaces: bool, depth: usize) {
        if let (Some(old), Some(new)) = (json_container(old), json_container(new))
            && let Some(PropertyChange::Nested(tree)) = compare_values(Some(&old), Some(&new))
        {
            self.push(Mark::Change, depth, name, Line::new().styled(Palette::DIM, "(JSON)"), replaces);
            return self.children(&tree, depth + 1);
        }
        if old.contains('\n') || new.contains('\n') {
            self.push(Mark::Change, depth, name, Line::new(), replaces);
            return self.line_diff(old, new, depth + 1);
        }
        let (old, new) = (self.shortened(&quoted(old)), self.shortened(&quoted(new)));
        if old.len() + new.len() <= ONE_LINE {
            return self.push(Mark::Change, depth, name, arrow(&old, &new), replaces);
        }
        self.push(Mark::Change, depth, name, Line::new(), replaces);
        self.push(Mark::Remove, depth + 1, String::new(), Line::plain(old), false);
        self.push(Mark::Add, depth + 1, String::new(), Line::plain(new), false);
    }

    /// Prints the changed lines, with two unchanged lines around each change.
    fn line_diff(&mut self, old: &str, new: &str, depth: usize) {
        let diff = TextDiff::from_lines(old, new);
        for (index, group) in diff.grouped_ops(2).iter().enumerate() {
            if index > 0 {
                self.push(Mark::Same, depth, String::new(), Line::new().styled(Palette::DIM, "…"), false);
            }
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let mark = match change.tag() {
                    ChangeTag::Delete => Mark::Remove,
                    ChangeTag::Insert => Mark::Add,
                    ChangeTag::Equal => Mark::Same,
                };
                let style = if mark == Mark::Same { Palette::DIM } else { mark.symbol_and_style().1 };
                let mut line = Line::new().styled(style, change.value().trim_end_matches(['\r', '\n']));
                if change.missing_newline() {
                    line = line.styled(Palette::DIM, " (no newline at the end)");
                }
                self.push(mark, depth, String::new(), line, false);
            }
        }
    }

    fn text_block(&mut self, mark: Mark, text: &str, depth: usize) {
        let count = text.lines().count();
        // One line more is shown, as the line with the number of hidden lines would take its place.
        let shown = if self.options.full || count <= TEXT_LINES + 1 { count } else { TEXT_LINES };
        for line in text.lines().take(shown) {
            let line = self.shortened(line);
            self.push(mark, depth, String::new(), Line::plain(line), false);
        }
        if shown < count {
            let remainder = format!("… {} more lines", count - shown);
            self.push(mark, depth, String::new(), Line::new().styled(Palette::DIM, remainder), false);
        }
    }

    fn shortened(&self, text: &str) -> String {
        let count = text.chars().count();
        if self.options.full || count <= TEXT_CHARACTERS {
            return text.to_owned();
        }
        let start: String = text.chars().take(TEXT_CHARACTERS).collect();
        format!("{start}… ({} more characters)", count - TEXT_CHARACTERS)
    }

    fn push(&mut self, mark: Mark, depth: usize, name: String, value: Line, replaces: bool) {
        let (symbol, style) = mark.symbol_and_style();
        let mut line = Line::plain("  ".repeat(depth)).styled(style, symbol).text(" ");
        if !name.is_empty() {
            line = line.styled(style, &name);
            if value != Line::new() {
                line = line.text(" ");
            }
        }
        line = line.join(value);
        if replaces {
            line = line.text(" ").styled(Palette::REPLACE, "[replaces]");
        }
        self.lines.push(line);
    }
}

/// Returns the reason that is shown for a change without values. Most such changes are reasons of the engine to replace
/// a resource.
fn change_reason(name: &str) -> &'static str {
    engine_reason(name).unwrap_or("differs according to the provider")
}

/// Returns the reason of the engine to replace a resource that a name stands for; `None` for another name.
pub(super) fn engine_reason(name: &str) -> Option<&'static str> {
    Some(match name {
        "id" => "replacement was requested",
        "provider" => "its provider changed",
        "replaceWith" => "a resource in replaceWith is replaced",
        "deletedWith" => "the resource in deletedWith is replaced",
        "replacementTrigger" => "its value changed",
        "#initerror" => "its initialization failed",
        _ => return None,
    })
}

fn arrow(old: &str, new: &str) -> Line {
    Line::plain(old).styled(Palette::DIM, " → ").text(new)
}

fn label(segment: &Segment) -> String {
    match segment {
        Segment::Name(name) => key_label(name),
        Segment::Index(index) => format!("[{index}]"),
    }
}

fn key_label(key: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "_-./@".contains(character);
    if !key.is_empty() && key.chars().all(plain) { key.to_owned() } else { quoted(key) }
}

/// Parses the JSON list or map in a text, so that policies and the like are compared by their values.
fn json_container(text: &str) -> Option<PropertyValue> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str::<serde_json::Value>(text).ok().map(from_json)
}

fn from_json(value: serde_json::Value) -> PropertyValue {
    match value {
        serde_json::Value::Null => PropertyValue::Null,
        serde_json::Value::Bool(value) => value.into(),
        serde_json::Value::Number(number) => number.as_f64().unwrap_or_default().into(),
        serde_json::Value::String(text) => text.into(),
        serde_json::Value::Array(items) => PropertyValue::List(items.into_iter().map(from_json).collect()),
        serde_json::Value::Object(map) => {
            PropertyValue::Map(map.into_iter().map(|(key, value)| (key, from_json(value))).collect())
        }
    }
}
