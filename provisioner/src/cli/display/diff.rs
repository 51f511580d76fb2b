//! What a step changes, property by property.
//!
//! Where the provider says which paths change (a detailed diff), those are shown; else the old and new inputs are
//! compared. Each line carries what happens (`+ - ~`), and `[replaces]` where it is why the resource is replaced.

use std::collections::BTreeMap;

use bridge::provider::DiffKind;
use provisioner::events::{StepInfo, StepOp};
use provisioner::state::ResourceState;
use pulumi_proto::property::path::{Element, PropertyPath};
use pulumi_proto::property::{PropertyMap, PropertyValue, same_maps};
use similar::{ChangeTag, TextDiff};

use super::palette::Palette;
use super::text::Line;
use super::value::{Secrets, Shown, is_internal, quoted};

/// How much is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiffOptions {
    /// Whether secrets are shown.
    pub(crate) secrets: Secrets,
    /// Whether long texts are shown whole.
    pub(crate) full: bool,
}

/// Lines of a text that comes or goes shown unless all are asked for.
const TEXT_LINES: usize = 8;
/// Characters of a one-line text shown unless all are asked for.
const TEXT_CHARACTERS: usize = 240;
/// Two texts that together are longer than this stand on lines of their own.
const ONE_LINE: usize = 70;

/// What a step changes; no lines where nothing does.
pub(crate) fn step_diff(info: &StepInfo, options: DiffOptions) -> Vec<Line> {
    let mut printer = Printer { options, lines: Vec::new() };
    let mut tree = changes(info);
    if let (Some(_), Some(new)) = (&info.old, &info.new) {
        let hidden = new.hide_diff.iter().filter_map(|path| path.parse::<PropertyPath>().ok());
        hidden.for_each(|path| hide(&mut tree, path.elements()));
    }
    printer.children(&tree, 0);
    printer.lines
}

/// Takes out what the option `hideDiffs` names.
fn hide(tree: &mut Branch<'_>, path: &[Element]) {
    let Some((first, rest)) = path.split_first() else { return };
    tree.retain(|segment, node| {
        let is_on_path = match (first, segment) {
            (Element::Wildcard, _) => true,
            (Element::Key(key), Segment::Name(name)) => key == name,
            (Element::Index(index), Segment::Index(place)) => index == place,
            _ => false,
        };
        match node {
            _ if !is_on_path => true,
            Node::Branch(members) if !rest.is_empty() => {
                hide(members, rest);
                !members.is_empty()
            }
            _ => !rest.is_empty(),
        }
    });
}

/// What changes between two bags, such as the outputs of a stack; unchanged members are shown without a mark.
pub(crate) fn bag_diff(old: Option<&PropertyMap>, new: &PropertyMap, options: DiffOptions) -> Vec<Line> {
    let mut printer = Printer { options, lines: Vec::new() };
    let empty = PropertyMap::new();
    let old = old.unwrap_or(&empty);
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for key in keys.into_iter().filter(|key| !is_internal(key)) {
        let segment = Segment::Name(key.clone());
        match compare(old.get(key), new.get(key)) {
            Some(node) => printer.node(&segment, &node, 0),
            None => {
                new.get(key).into_iter().for_each(|value| printer.value(Mark::Same, &segment, value, false, 0));
            }
        }
    }
    printer.lines
}

/// The members of a bag, as they are.
pub(crate) fn values(bag: &PropertyMap, options: DiffOptions) -> Vec<Line> {
    bag_diff(Some(bag), bag, options)
}

/// What changes, as a tree of properties.
enum Node<'a> {
    Branch(BTreeMap<Segment, Node<'a>>),
    Leaf(Leaf<'a>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    Name(String),
    Index(usize),
}

struct Leaf<'a> {
    old: Option<&'a PropertyValue>,
    new: Option<&'a PropertyValue>,
    replaces: bool,
}

type Branch<'a> = BTreeMap<Segment, Node<'a>>;

fn changes(info: &StepInfo) -> Branch<'_> {
    let old = info.old.as_deref();
    let new = info.new.as_deref();
    match (info.op, old, new) {
        (StepOp::Same, ..) => Branch::new(),
        (StepOp::Delete | StepOp::Discard, Some(old), _) => all_of(&old.inputs, Side::Old),
        (StepOp::DeleteReplaced | StepOp::DiscardReplaced | StepOp::RemovePendingReplace, ..) => Branch::new(),
        (StepOp::Refresh, Some(old), Some(new)) => compare_maps(&old.outputs, &new.outputs),
        (_, Some(old), Some(new)) => named_changes(info, old, new),
        (StepOp::Read, None, Some(new)) => all_of(&new.outputs, Side::New),
        (_, None, Some(new)) => all_of(&new.inputs, Side::New),
        (_, _, None) => Branch::new(),
    }
}

/// The changes of a resource that was there: as the provider says them, else as its inputs do.
fn named_changes<'a>(info: &StepInfo, old: &'a ResourceState, new: &'a ResourceState) -> Branch<'a> {
    let mut tree = Branch::new();
    for (path, change) in &info.detailed_diff {
        let segments = segments(path);
        if segments.iter().any(|segment| matches!(segment, Segment::Name(name) if is_internal(name))) {
            continue;
        }
        let old_bag = if change.input_diff { &old.inputs } else { &old.outputs };
        let mut leaf = at_path(old_bag, &new.inputs, &segments);
        match change.kind {
            DiffKind::Add | DiffKind::AddReplace => leaf.1.old = None,
            DiffKind::Delete | DiffKind::DeleteReplace => leaf.1.new = None,
            DiffKind::Update | DiffKind::UpdateReplace => {}
        }
        leaf.1.replaces = change.kind.is_replace();
        insert(&mut tree, &segments[..leaf.0], leaf.1);
    }
    if tree.is_empty() {
        tree = compare_maps(&old.inputs, &new.inputs);
        let known = |tree: &Branch<'_>, key: &String| tree.contains_key(&Segment::Name(key.clone()));
        for key in info.diffs.iter().chain(&info.replace_keys) {
            // A name that the inputs do not explain: the provider compares with what it finds, not with what we asked.
            if !is_internal(key) && !known(&tree, key) {
                let (depth, leaf) = at_path(&old.outputs, &new.inputs, &segments(key));
                insert(&mut tree, &segments(key)[..depth], leaf);
            }
        }
    }
    for key in &info.replace_keys {
        mark_replaces(&mut tree, &segments(key));
    }
    tree
}

/// Why something is named as changed of which there is no value before or after: mostly a reason of the engine's own.
fn unseen_change(name: &str) -> &'static str {
    match name {
        "id" => "its replacement was asked for",
        "provider" => "another provider serves it",
        "replaceWith" => "a resource that it is tied to is replaced",
        "deletedWith" => "the resource that it goes with is replaced",
        "replacementTrigger" => "its value changed",
        "#initerror" => "it did not come up",
        _ => "differs from what the provider found",
    }
}

enum Side {
    Old,
    New,
}

fn all_of<'a>(bag: &'a PropertyMap, side: Side) -> Branch<'a> {
    let shown = bag.iter().filter(|(key, value)| !is_internal(key) && **value != PropertyValue::Null);
    shown
        .map(|(key, value)| {
            let leaf = match side {
                Side::Old => Leaf { old: Some(value), new: None, replaces: false },
                Side::New => Leaf { old: None, new: Some(value), replaces: false },
            };
            (Segment::Name(key.clone()), Node::Leaf(leaf))
        })
        .collect()
}

fn compare_maps<'a>(old: &'a PropertyMap, new: &'a PropertyMap) -> Branch<'a> {
    let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
    keys.filter(|key| !is_internal(key))
        .filter_map(|key| Some((Segment::Name(key.clone()), compare(old.get(key), new.get(key))?)))
        .collect()
}

/// What changes between two values; nothing where they are the same. A null equals nothing at all.
fn compare<'a>(old: Option<&'a PropertyValue>, new: Option<&'a PropertyValue>) -> Option<Node<'a>> {
    let is_there = |value: &&PropertyValue| **value != PropertyValue::Null;
    match (old.filter(is_there), new.filter(is_there)) {
        (None, None) => None,
        (Some(PropertyValue::Map(old)), Some(PropertyValue::Map(new))) => {
            let same = same_maps(old, new);
            let tree = compare_maps(old, new);
            (!same && !tree.is_empty()).then_some(Node::Branch(tree))
        }
        (Some(PropertyValue::List(old)), Some(PropertyValue::List(new))) => {
            let length = old.len().max(new.len());
            let items =
                (0..length).filter_map(|index| Some((Segment::Index(index), compare(old.get(index), new.get(index))?)));
            let tree: Branch<'a> = items.collect();
            (!tree.is_empty()).then_some(Node::Branch(tree))
        }
        (Some(old), Some(new)) if old.same_as(new) => None,
        (old, new) => Some(Node::Leaf(Leaf { old, new, replaces: false })),
    }
}

/// The values at a path, and how much of the path leads to them: the way ends at a secret, which is shown as one.
fn at_path<'a>(old: &'a PropertyMap, new: &'a PropertyMap, segments: &[Segment]) -> (usize, Leaf<'a>) {
    let Some(Segment::Name(first)) = segments.first() else {
        return (segments.len(), Leaf { old: None, new: None, replaces: false });
    };
    let (mut old, mut new) = (old.get(first), new.get(first));
    for (depth, segment) in segments.iter().enumerate().skip(1) {
        if [old, new].into_iter().flatten().any(PropertyValue::is_secret) {
            return (depth, Leaf { old, new, replaces: false });
        }
        old = old.and_then(|value| step_into(value, segment));
        new = new.and_then(|value| step_into(value, segment));
    }
    (segments.len(), Leaf { old, new, replaces: false })
}

fn step_into<'a>(value: &'a PropertyValue, segment: &Segment) -> Option<&'a PropertyValue> {
    match (value, segment) {
        (PropertyValue::Map(map), Segment::Name(name)) => map.get(name),
        (PropertyValue::List(items), Segment::Index(index)) => items.get(*index),
        _ => None,
    }
}

fn insert<'a>(tree: &mut Branch<'a>, path: &[Segment], leaf: Leaf<'a>) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        let replaces = leaf.replaces || matches!(tree.get(first), Some(Node::Leaf(earlier)) if earlier.replaces);
        tree.insert(first.clone(), Node::Leaf(Leaf { replaces, ..leaf }));
        return;
    }
    match tree.entry(first.clone()).or_insert_with(|| Node::Branch(Branch::new())) {
        Node::Branch(inner) => insert(inner, rest, leaf),
        // The whole is shown already.
        Node::Leaf(whole) => whole.replaces |= leaf.replaces,
    }
}

/// Marks what a key names, or, where it only names the way there, everything below.
fn mark_replaces(tree: &mut Branch<'_>, path: &[Segment]) {
    fn mark(node: &mut Node<'_>) {
        match node {
            Node::Leaf(leaf) => leaf.replaces = true,
            Node::Branch(inner) => {
                // The provider has said below which of them it is.
                if !has_mark(inner) {
                    inner.values_mut().for_each(mark);
                }
            }
        }
    }
    fn has_mark(tree: &Branch<'_>) -> bool {
        tree.values().any(|node| match node {
            Node::Leaf(leaf) => leaf.replaces,
            Node::Branch(inner) => has_mark(inner),
        })
    }
    match (path.split_first(), path.first().and_then(|first| tree.get_mut(first))) {
        (Some((_, [])), Some(node)) => mark(node),
        (Some((_, rest)), Some(Node::Branch(inner))) => mark_replaces(inner, rest),
        (Some(_), Some(node)) => mark(node),
        _ => {}
    }
}

/// The steps of a path. What cannot be read is one name.
fn segments(path: &str) -> Vec<Segment> {
    let Ok(parsed) = path.parse::<PropertyPath>() else { return vec![Segment::Name(path.to_owned())] };
    let segment = |element: &Element| match element {
        Element::Key(name) => Segment::Name(name.clone()),
        Element::Index(index) => Segment::Index(*index),
        Element::Wildcard => Segment::Name("*".to_owned()),
    };
    parsed.elements().iter().map(segment).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Add,
    Remove,
    Change,
    Same,
}

impl Mark {
    fn look(self) -> (&'static str, anstyle::Style) {
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
    fn children(&mut self, tree: &Branch<'_>, depth: usize) {
        tree.iter().for_each(|(segment, node)| self.node(segment, node, depth));
    }

    fn node(&mut self, segment: &Segment, node: &Node<'_>, depth: usize) {
        match node {
            Node::Branch(tree) => {
                self.push(Mark::Change, depth, format!("{}:", label(segment)), Line::new(), false);
                self.children(tree, depth + 1);
            }
            Node::Leaf(Leaf { old: None, new: Some(new), replaces }) => {
                self.value(Mark::Add, segment, new, *replaces, depth);
            }
            Node::Leaf(Leaf { old: Some(old), new: None, replaces }) => {
                self.value(Mark::Remove, segment, old, *replaces, depth);
            }
            Node::Leaf(Leaf { old: Some(old), new: Some(new), replaces }) => {
                self.change(segment, old, new, *replaces, depth);
            }
            Node::Leaf(Leaf { old: None, new: None, replaces }) => {
                let name = label(segment);
                let note = Line::new().styled(Palette::DIM, unseen_change(&name));
                self.push(Mark::Change, depth, format!("{name}:"), note, *replaces);
            }
        }
    }

    fn value(&mut self, mark: Mark, segment: &Segment, value: &PropertyValue, replaces: bool, depth: usize) {
        let shown = Shown::of(value, self.options.secrets);
        self.shown(mark, label(segment), &shown, replaces, depth);
    }

    fn shown(&mut self, mark: Mark, label: String, value: &Shown, replaces: bool, depth: usize) {
        let name = format!("{label}:");
        if let Some(text) = value.inline() {
            let text = self.shortened(&text);
            return self.push(mark, depth, name, Line::plain(text), replaces);
        }
        self.push(mark, depth, name, Line::new(), replaces);
        match value {
            Shown::Map(map) => {
                for (key, value) in map {
                    self.shown(mark, key_label(key), value, false, depth + 1);
                }
            }
            Shown::List(items) => {
                for (index, value) in items.iter().enumerate() {
                    self.shown(mark, format!("[{index}]"), value, false, depth + 1);
                }
            }
            Shown::Text(text) => self.text_block(mark, text, depth + 1),
            _ => {}
        }
    }

    fn change(&mut self, segment: &Segment, old: &PropertyValue, new: &PropertyValue, replaces: bool, depth: usize) {
        let name = format!("{}:", label(segment));
        if self.options.secrets == Secrets::Shown && (old.contains_secrets() || new.contains_secrets()) {
            return self.change(segment, &old.without_wrappers(), &new.without_wrappers(), replaces, depth);
        }
        // Beside a secret nothing is shown plainly: the other side is often the same text.
        if (old.is_secret() || new.is_secret()) && self.options.secrets == Secrets::Masked {
            let masked = |value: &PropertyValue| match Shown::of(value, Secrets::Masked) {
                Shown::Unknown => super::value::COMPUTED,
                _ => super::value::SECRET,
            };
            let change = arrow(masked(old), masked(new));
            return self.push(Mark::Change, depth, name, change, replaces);
        }
        if let (PropertyValue::String(old), PropertyValue::String(new)) = (old, new) {
            return self.text_change(name, old, new, replaces, depth);
        }
        if let Some(node @ Node::Branch(_)) = compare(Some(old), Some(new)) {
            self.push(Mark::Change, depth, name, Line::new(), replaces);
            if let Node::Branch(tree) = node {
                self.children(&tree, depth + 1);
            }
            return;
        }
        let (old, new) = (Shown::of(old, self.options.secrets), Shown::of(new, self.options.secrets));
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
            && let Some(Node::Branch(tree)) = compare(Some(&old), Some(&new))
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

    /// The lines that changed, with two lines around each change.
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
                let style = if mark == Mark::Same { Palette::DIM } else { mark.look().1 };
                let mut line = Line::new().styled(style, change.value().trim_end_matches(['\r', '\n']));
                if change.missing_newline() {
                    line = line.styled(Palette::DIM, " (no line end)");
                }
                self.push(mark, depth, String::new(), line, false);
            }
        }
    }

    fn text_block(&mut self, mark: Mark, text: &str, depth: usize) {
        let count = text.lines().count();
        // Not worth a line that says that one line is missing.
        let shown = if self.options.full || count <= TEXT_LINES + 1 { count } else { TEXT_LINES };
        for line in text.lines().take(shown) {
            let line = self.shortened(line);
            self.push(mark, depth, String::new(), Line::plain(line), false);
        }
        if shown < count {
            let note = format!("… {} more lines", count - shown);
            self.push(mark, depth, String::new(), Line::new().styled(Palette::DIM, note), false);
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
        let (symbol, style) = mark.look();
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

/// The list or map that a text holds as JSON: policies and the like are compared by what they say.
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
