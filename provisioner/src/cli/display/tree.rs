//! Rows as a tree: children below their parents, as lines of a given width.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use engine::events::StepOp;
use pulumi_proto::urn::{ROOT_STACK_TYPE, Urn};

use super::palette::{Palette, look};
use super::rows::{Row, RowState, Rows};
use super::text::{Line, duration, truncate};

/// A row with its place in the tree.
pub(crate) struct TreeRow<'a> {
    pub(crate) row: &'a Row,
    /// What stands before its name: `│  ├─ `.
    pub(crate) branch: String,
    /// What stands before lines that belong to it: `│  │  │`.
    pub(crate) below: String,
}

/// The rows that are asked for, and those that lead to them, parents first.
pub(crate) fn tree<'a>(rows: &'a Rows, wanted: impl Fn(&Row) -> bool) -> Vec<TreeRow<'a>> {
    let mut shown: HashSet<&Urn> = HashSet::new();
    for row in rows.iter().filter(|row| wanted(row)) {
        let mut next = Some(row);
        while let Some(row) = next
            && shown.insert(&row.urn)
        {
            next = parent(rows, row);
        }
    }
    let mut tops = Vec::new();
    let mut children: HashMap<&Urn, Vec<&Row>> = HashMap::new();
    for row in rows.iter().filter(|row| shown.contains(&row.urn)) {
        match parent(rows, row) {
            Some(parent) => children.entry(&parent.urn).or_default().push(row),
            None => tops.push(row),
        }
    }
    let mut ordered = Vec::new();
    for row in tops {
        ordered.push(TreeRow { row, branch: String::new(), below: below("", row, &children) });
        add_children(row, "", &children, &mut ordered);
    }
    ordered
}

/// The bars beside the lines of a row: those of its ancestors, and its own where it has children.
fn below(indent: &str, row: &Row, children: &HashMap<&Urn, Vec<&Row>>) -> String {
    format!("{indent}{}", if children.contains_key(&row.urn) { "│" } else { " " })
}

/// The row a row hangs below: its parent, or the stack where it has none (as in the deletes of an old state).
fn parent<'a>(rows: &'a Rows, row: &Row) -> Option<&'a Row> {
    let parent = row.parent.as_ref().and_then(|urn| rows.get(urn));
    parent.filter(|parent| parent.urn != row.urn)
}

fn add_children<'a>(row: &Row, indent: &str, children: &HashMap<&Urn, Vec<&'a Row>>, ordered: &mut Vec<TreeRow<'a>>) {
    let own = children.get(&row.urn).map_or(&[][..], Vec::as_slice);
    for (index, child) in own.iter().enumerate() {
        let last = index + 1 == own.len();
        let inner = format!("{indent}{}", if last { "   " } else { "│  " });
        let branch = format!("{indent}{}", if last { "└─ " } else { "├─ " });
        ordered.push(TreeRow { row: child, branch, below: below(&inner, child, children) });
        add_children(child, &inner, children, ordered);
    }
}

/// The widths of the columns, the same for all rows that are shown together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    name: usize,
    type_label: usize,
    status: usize,
    /// The whole line; `None` where lines may be as long as they like.
    width: Option<usize>,
}

/// What the end of a row can claim for itself; it may still fill what the others leave.
const MOST_INFO: usize = 16;
/// Below this width the type has no column.
const NARROW: usize = 60;

impl Columns {
    /// Columns for these rows: as wide as they need, but within the width.
    pub(crate) fn fit(rows: &[TreeRow<'_>], width: Option<usize>, status: usize) -> Self {
        let widest = |measure: fn(&TreeRow<'_>) -> usize| rows.iter().map(measure).max().unwrap_or_default();
        let name = widest(|row| Line::plain(&row.branch).text(row.row.urn.name()).width());
        let type_label_of = |row: &TreeRow<'_>| type_label(row.row);
        match width {
            None => Self { name, type_label: widest(|row| type_label(row.row).len()), status, width },
            Some(columns) if columns < NARROW => {
                Self { name: name.min(columns.saturating_sub(status + 4).max(8)), type_label: 0, status, width }
            }
            Some(columns) => {
                // Names tell resources apart, so they get what types leave; some room stays for what changes.
                let info = widest(|row| match row.row.state {
                    // Why it failed takes what the others leave.
                    RowState::Failed => 0,
                    RowState::Running | RowState::Done => info(row.row, Names::Shown).width(),
                });
                let room = columns.saturating_sub(2 + 2 + 2 + status + 2 + info.min(MOST_INFO));
                let share = (room * 2 / 5).max(room.saturating_sub(name));
                let fitted = rows.iter().map(|row| Line::plain(fit_type(&type_label_of(row), share)).width());
                let type_label = fitted.max().unwrap_or_default();
                Self { name: name.min(room - type_label), type_label, status, width }
            }
        }
    }
}

/// How a row's status is worded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tense {
    /// A preview: what would be done.
    Plan,
    /// The real thing.
    Deed,
}

/// Whether a row ends with the names of the properties that change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Shown,
    Hidden,
}

/// The line of a row.
pub(crate) fn row_line(tree_row: &TreeRow<'_>, columns: Columns, tense: Tense, names: Names, at: Duration) -> Line {
    let row = tree_row.row;
    let look = look(row.op);
    let symbol = if row.state == RowState::Failed { ("✗", Palette::ERROR) } else { (look.symbol, look.style) };
    let quiet = row.op == StepOp::Same && row.state != RowState::Failed;
    let name_style = if quiet { Palette::DIM } else { Palette::PLAIN };

    let mut line = Line::new().styled(symbol.1, symbol.0).pad_to(2);
    line = line.styled(Palette::DIM, &tree_row.branch);
    let used = line.width() - 2;
    let name = truncate(row.urn.name(), columns.name.saturating_sub(used));
    line = line.styled(name_style, name).pad_to(2 + columns.name);
    let mut end = 2 + columns.name;
    if columns.type_label > 0 {
        line = line.text("  ").styled(Palette::DIM, fit_type(&type_label(row), columns.type_label));
        end += 2 + columns.type_label;
    }
    line = line.pad_to(end).text("  ").join(status(row, tense, at));
    let info = info(row, names);
    if info != Line::new() {
        line = line.pad_to(end + 2 + columns.status).text("  ").join(info);
    }
    match columns.width {
        Some(width) => line.truncate(width),
        None => line,
    }
}

/// The words in the status column.
fn status(row: &Row, tense: Tense, at: Duration) -> Line {
    let look = look(row.op);
    match (row.state, tense) {
        (RowState::Failed, Tense::Plan) => Line::new().styled(Palette::ERROR, "failed"),
        (RowState::Failed, Tense::Deed) => Line::new().styled(Palette::ERROR, format!("failed {}", duration(row.took))),
        (RowState::Running, _) if row.is_root() => Line::new(),
        (RowState::Running, _) => {
            let present = super::palette::look(row.step.op).present;
            let line = Line::new().styled(look.style, present);
            line.styled(Palette::DIM, format!(" {}", whole_seconds(at.saturating_sub(row.began))))
        }
        (RowState::Done, _) if row.op == StepOp::Same => Line::new(),
        (RowState::Done, Tense::Plan) => Line::new().styled(look.style, look.plan),
        (RowState::Done, Tense::Deed) => {
            let line = Line::new().styled(look.style, look.past);
            line.styled(Palette::DIM, format!(" {}", duration(row.took)))
        }
    }
}

/// A time that grows: tenths would flicker.
fn whole_seconds(elapsed: Duration) -> String {
    if elapsed < Duration::from_secs(10) { format!("{}s", elapsed.as_secs()) } else { duration(elapsed) }
}

/// What stands at the end of a row: why it failed, what its plugin last said, or what changes.
fn info(row: &Row, names: Names) -> Line {
    match row.state {
        RowState::Failed if names == Names::Hidden => Line::new(),
        RowState::Failed => Line::new().styled(Palette::ERROR, &row.note),
        RowState::Running if !row.note.is_empty() => Line::new().styled(Palette::DIM, &row.note),
        RowState::Running | RowState::Done => {
            let changed = row.changed();
            let is_change = row.telling.old.is_some() && row.op != StepOp::Delete;
            let shown = if names == Names::Shown && is_change && !changed.is_empty() {
                Line::new().styled(Palette::DIM, format!("[{}]", changed.join(", ")))
            } else {
                Line::new()
            };
            match row.warnings {
                0 => shown,
                1 => Line::new().styled(Palette::WARNING, "1 warning ").join(shown),
                count => Line::new().styled(Palette::WARNING, format!("{count} warnings ")).join(shown),
            }
        }
    }
}

/// The type as people write it: `aws:s3:Bucket` for `aws:s3/bucket:Bucket`.
pub(crate) fn type_label(row: &Row) -> String {
    short_type(row.urn.type_token())
}

/// See [`type_label`].
pub(crate) fn short_type(token: &str) -> String {
    if token == ROOT_STACK_TYPE {
        return "Stack".to_owned();
    }
    let parts: Vec<&str> = token.splitn(3, ':').collect();
    let [package, module, name] = parts[..] else { return token.to_owned() };
    let repeats = |last: &str| last.eq_ignore_ascii_case(name) || last == "index";
    match module.rsplit_once('/') {
        Some((module, last)) if repeats(last) => format!("{package}:{module}:{name}"),
        None if module == "index" => format!("{package}:{name}"),
        _ => token.to_owned(),
    }
}

/// The type within a width: the package and the name say most.
fn fit_type(label: &str, width: usize) -> String {
    let mut parts = label.splitn(3, ':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(package), Some(_), Some(name)) if label.len() > width => truncate(&format!("{package}:…:{name}"), width),
        _ => truncate(label, width),
    }
}

/// How many rows are in which state, for a line such as `3 created, 1 failed, 4 running`.
pub(crate) fn counts(rows: &Rows, tense: Tense) -> Line {
    let mut done: BTreeMap<StepOp, usize> = BTreeMap::new();
    let (mut running, failed) = (0, rows.failed());
    for row in rows.iter().filter(|row| !row.is_root()) {
        match row.state {
            RowState::Running => running += 1,
            RowState::Failed => {}
            RowState::Done => *done.entry(row.op).or_default() += 1,
        }
    }
    let mut parts = vec![];
    if failed > 0 {
        parts.push(Line::new().styled(Palette::ERROR, format!("{failed} failed")));
    }
    if running > 0 {
        parts.push(Line::new().styled(Palette::BOLD, format!("{running} running")));
    }
    parts.extend(count_words(&done, tense));
    join_lines(parts, ", ")
}

/// `3 created`, `1 replaced`, …, the unchanged last.
pub(crate) fn count_words(counts: &BTreeMap<StepOp, usize>, tense: Tense) -> Vec<Line> {
    let mut counted: Vec<_> = counts.iter().filter(|(_, count)| **count > 0).collect();
    counted.sort_by_key(|(op, _)| match op {
        StepOp::Create => 0,
        StepOp::Update => 1,
        StepOp::Replace => 2,
        StepOp::Delete => 3,
        StepOp::Same => 5,
        _ => 4,
    });
    counted
        .into_iter()
        .map(|(op, count)| {
            let look = look(*op);
            let words = match tense {
                Tense::Plan if *op != StepOp::Same => format!("{count} to {}", look.plan),
                Tense::Plan | Tense::Deed => format!("{count} {}", look.past),
            };
            Line::new().styled(look.style, words)
        })
        .collect()
}

pub(crate) fn join_lines(lines: Vec<Line>, separator: &str) -> Line {
    let mut joined = Line::new();
    for (index, line) in lines.into_iter().enumerate() {
        if index > 0 {
            joined = joined.text(separator);
        }
        joined = joined.join(line);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_shown_without_what_is_said_twice() {
        let cases = [
            ("aws:s3/bucket:Bucket", "aws:s3:Bucket"),
            ("aws:s3/bucketV2:BucketV2", "aws:s3:BucketV2"),
            ("random:index/randomId:RandomId", "random:index:RandomId"),
            ("files:index:File", "files:File"),
            ("local component", "local component"),
        ];
        for (token, expected) in cases {
            assert_eq!(short_type(token), expected);
        }
        assert_eq!(fit_type("gcp:artifactregistry:Repository", 18), "gcp:…:Repository");
    }
}
