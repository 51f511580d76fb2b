//! Tree of rows: children below their parents, as lines of a given width.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use engine::events::StepOp;
use pulumi_proto::urn::{ROOT_STACK_TYPE, TypeToken, Urn};

use super::palette::{
    Palette, StepStyle, gone_style, info_style, missing_style, renamed_style, retained_style, step_style,
};
use super::reasons::reason;
use super::rows::{Row, RowState, Rows};
use super::text::{Line, duration, truncate};

/// Row with its branch in the tree.
pub(crate) struct TreeRow<'a> {
    pub(crate) row: &'a Row,
    /// Prefix of the row's name: `│  ├─ `.
    pub(crate) branch: String,
    /// Prefix of further lines of the row: `│  │  │`.
    pub(crate) below: String,
}

/// Returns the selected rows and their ancestors, parents first, and siblings in the order of the user's files.
pub(crate) fn tree<'a>(rows: &'a Rows, is_selected: impl Fn(&Row) -> bool) -> Vec<TreeRow<'a>> {
    let mut shown: HashSet<&Urn> = HashSet::new();
    for row in rows.iter().filter(|row| is_selected(row)) {
        let mut next = Some(row);
        while let Some(row) = next
            && shown.insert(&row.urn)
        {
            next = parent(rows, row);
        }
    }
    let mut tops = Vec::new();
    let mut children: HashMap<&Urn, Vec<&Row>> = HashMap::new();
    let mut selected: Vec<&Row> = rows.iter().filter(|row| shown.contains(&row.urn)).collect();
    selected.sort_by_key(|row| row.place_key());
    for row in selected {
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

/// Returns the bars beside further lines of a row: those of its ancestors, and its own if it has children.
fn below(indent: &str, row: &Row, children: &HashMap<&Urn, Vec<&Row>>) -> String {
    format!("{indent}{}", if children.contains_key(&row.urn) { "│" } else { " " })
}

/// Returns the row of the parent; `None` if the parent has no row.
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

/// Widths of the columns, which all rows that are shown together share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    name: usize,
    type_label: usize,
    status: usize,
    /// Width of the whole line; `None` if it is not limited.
    width: Option<usize>,
}

/// Width that the last column of a row can reserve. The column may also use the space that the others leave.
const MAX_RESERVED_INFO: usize = 16;
/// Columns of a name, with an ellipsis, that are left in front of its environment.
const MIN_KEPT_NAME: usize = 4;
/// Width of a line below which types are not shown.
const MIN_WIDTH_WITH_TYPES: usize = 60;

impl Columns {
    /// Returns the columns for these rows: as wide as the rows need, within the width.
    pub(crate) fn fit(rows: &[TreeRow<'_>], width: Option<usize>, status: usize, tense: Tense) -> Self {
        let widest = |measure: &dyn Fn(&TreeRow<'_>) -> usize| rows.iter().map(measure).max().unwrap_or_default();
        let name = widest(&|row| Line::plain(&row.branch).text(row.row.urn.name()).width());
        let type_label_of = |row: &TreeRow<'_>| type_label(row.row);
        match width {
            None => Self { name, type_label: widest(&|row| type_label(row.row).len()), status, width },
            Some(columns) if columns < MIN_WIDTH_WITH_TYPES => {
                Self { name: name.min(columns.saturating_sub(status + 4).max(8)), type_label: 0, status, width }
            }
            Some(columns) => {
                // Names get the space that types leave, as they distinguish resources. Some space is reserved for the
                // changes.
                let info = widest(&|row| match row.row.state {
                    // The text of a failure only gets the space that the others leave.
                    RowState::Failed => 0,
                    RowState::Running | RowState::Done => info(row.row, tense, Names::Shown).width(),
                });
                let available = columns.saturating_sub(2 + 2 + 2 + status + 2 + info.min(MAX_RESERVED_INFO));
                let share = (available * 2 / 5).max(available.saturating_sub(name));
                let fitted = rows.iter().map(|row| Line::plain(fit_type(&type_label_of(row), share)).width());
                let type_label = fitted.max().unwrap_or_default();
                Self { name: name.min(available - type_label), type_label, status, width }
            }
        }
    }
}

/// Tense of a row's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tense {
    /// Preview: the step that would run.
    Plan,
    /// Run that applies changes: the step that runs or ran.
    Run,
}

/// Visibility of the names of changed properties at the end of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Shown,
    Hidden,
}

pub(crate) fn row_line(tree_row: &TreeRow<'_>, columns: Columns, tense: Tense, names: Names, at: Duration) -> Line {
    let row = tree_row.row;
    let op_style = if row.is_renamed() { renamed_style() } else { step_style(row.op) };
    let symbol =
        if row.state == RowState::Failed { ("✗", Palette::ERROR) } else { (op_style.symbol, op_style.style) };
    let is_unchanged = row.op == StepOp::Same && !row.is_renamed() && row.state != RowState::Failed;
    let name_style = if is_unchanged { Palette::DIM } else { Palette::PLAIN };

    let mut line = Line::new().styled(symbol.1, symbol.0).pad_to(2);
    line = line.styled(Palette::DIM, &tree_row.branch);
    let used = line.width() - 2;
    let name = fit_name(row.urn.name(), columns.name.saturating_sub(used));
    line = line.styled(name_style, name).pad_to(2 + columns.name);
    let mut end = 2 + columns.name;
    if columns.type_label > 0 {
        line = line.text("  ").styled(Palette::DIM, fit_type(&type_label(row), columns.type_label));
        end += 2 + columns.type_label;
    }
    line = line.pad_to(end).text("  ").join(status(row, tense, at));
    let info = info(row, tense, names);
    if info != Line::new() {
        line = line.pad_to(end + 2 + columns.status).text("  ").join(info);
    }
    match columns.width {
        Some(width) => line.truncate(width),
        None => line,
    }
}

/// Returns the text of the status column.
fn status(row: &Row, tense: Tense, at: Duration) -> Line {
    let op_style = if row.is_retained() {
        retained_style()
    } else if row.is_renamed() {
        renamed_style()
    } else if row.is_missing() {
        if row.gone { gone_style() } else { missing_style() }
    } else {
        step_style(row.op)
    };
    match (row.state, tense) {
        (RowState::Failed, Tense::Plan) => Line::new().styled(Palette::ERROR, "failed"),
        (RowState::Failed, Tense::Run) => Line::new().styled(Palette::ERROR, format!("failed {}", duration(row.took))),
        (RowState::Running, _) if row.is_root() => Line::new(),
        (RowState::Running, _) => {
            let present = info_style(&row.step).present;
            let line = Line::new().styled(op_style.style, present);
            line.styled(Palette::DIM, format!(" {}", whole_seconds(at.saturating_sub(row.began))))
        }
        (RowState::Done, _) if row.op == StepOp::Same && !row.is_renamed() => Line::new(),
        (RowState::Done, Tense::Plan) => Line::new().styled(op_style.style, op_style.plan),
        (RowState::Done, Tense::Run) => {
            let line = Line::new().styled(op_style.style, op_style.past);
            line.styled(Palette::DIM, format!(" {}", duration(row.took)))
        }
    }
}

/// Formats a running time. Tenths are left out, as they would flicker.
fn whole_seconds(elapsed: Duration) -> String {
    if elapsed < Duration::from_secs(10) { format!("{}s", elapsed.as_secs()) } else { duration(elapsed) }
}

/// Text about a replacement whose old resource is not deleted.
const OLD_RETAINED: &str = " old one is retained";

/// Text about a resource that a destroy need not delete.
const ALREADY_GONE: &str = "it does not exist any more";

/// Text about a creation whose resource an earlier run may have created.
const MAY_EXIST: &str = "an earlier run may have created it";

/// Returns the text at the end of a row: the failure, the plugin's last message, or the changed properties.
fn info(row: &Row, tense: Tense, names: Names) -> Line {
    match row.state {
        RowState::Failed if names == Names::Hidden => Line::new(),
        RowState::Failed => Line::new().styled(Palette::ERROR, &row.status_text),
        RowState::Running if !row.status_text.is_empty() => Line::new().styled(Palette::DIM, &row.status_text),
        RowState::Running | RowState::Done => {
            let changed = row.changed_properties();
            let is_change = row.diff_step.old.is_some() && !matches!(row.op, StepOp::Create | StepOp::Delete);
            let shown = if names == Names::Shown && is_change && !changed.is_empty() {
                Line::new().styled(Palette::DIM, format!("[{}]", changed.join(", ")))
            } else {
                Line::new()
            };
            let reason = if tense == Tense::Plan && row.state == RowState::Done { reason(row) } else { String::new() };
            let reason = (!reason.is_empty()).then(|| Line::new().styled(Palette::DIM, reason));
            let former = row.former.iter().map(|former| former_identity(&row.urn, former));
            let why = join_lines(former.chain(reason).collect(), "; ");
            let parts = [why, shown].into_iter().filter(|part| *part != Line::new());
            let shown = join_lines(parts.collect(), " ");
            let is_old_retained = row.retained && row.op == StepOp::Replace;
            let shown = if row.gone && row.is_missing() { shown.styled(Palette::DIM, ALREADY_GONE) } else { shown };
            let shown = if is_old_retained { shown.text(OLD_RETAINED) } else { shown };
            let shown = if row.step.may_exist { shown.styled(Palette::WARNING, MAY_EXIST) } else { shown };
            match row.warnings {
                0 => shown,
                1 => Line::new().styled(Palette::WARNING, "1 warning ").join(shown),
                count => Line::new().styled(Palette::WARNING, format!("{count} warnings ")).join(shown),
            }
        }
    }
}

/// Returns the text about a rename: the part of the former URN that differs, as in `renamed from site--prod`.
fn former_identity(urn: &Urn, former: &Urn) -> Line {
    let part = if former.name() == urn.name() { former.qualified_type() } else { former.name() };
    Line::new().styled(Palette::DIM, format!("renamed from {part}"))
}

/// Shortens a name to a width. The environment at its end, `--ENV`, is kept: names often differ only there.
fn fit_name(name: &str, width: usize) -> String {
    let environment = name.rfind("--").filter(|at| *at > 0).map(|at| &name[at..]);
    let length = Line::plain(name).width();
    match environment.map(|environment| (environment, Line::plain(environment).width())) {
        Some((environment, kept)) if length > width && kept + MIN_KEPT_NAME <= width => {
            let start = &name[..name.len() - environment.len()];
            format!("{}{environment}", truncate(start, width - kept))
        }
        _ => truncate(name, width),
    }
}

/// Returns the type of a row in short form: `aws:s3:Bucket` for `aws:s3/bucket:Bucket`.
pub(crate) fn type_label(row: &Row) -> String {
    short_type(row.urn.type_token())
}

/// Returns the short form of a type token, which server.yaml accepts too; `Stack` for the root stack resource.
pub(crate) fn short_type(token: &str) -> String {
    if token == ROOT_STACK_TYPE { "Stack".to_owned() } else { TypeToken::new(token).short_form().into_owned() }
}

/// Shortens a type to a width. Package and name are kept before the module.
fn fit_type(label: &str, width: usize) -> String {
    let mut parts = label.splitn(3, ':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(package), Some(_), Some(name)) if label.len() > width => truncate(&format!("{package}:…:{name}"), width),
        _ => truncate(label, width),
    }
}

/// Returns the number of rows by state, as a line such as `3 created, 1 failed, 4 running`.
pub(crate) fn counts(rows: &Rows, tense: Tense) -> Line {
    let mut done: BTreeMap<StepOp, usize> = BTreeMap::new();
    let (mut running, failed) = (0, rows.failed_count());
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
    parts.extend(count_words(&done, rows, tense));
    join_lines(parts, ", ")
}

/// Returns the words for counts of steps: `3 created`, `1 replaced`, and so on, the unchanged last. Among the deletions are those
/// that leave their resources alone, and in a refresh the missing resources.
pub(crate) fn count_words(counts: &BTreeMap<StepOp, usize>, rows: &Rows, tense: Tense) -> Vec<Line> {
    let rank = |op: StepOp| match op {
        StepOp::Create => 0,
        StepOp::Update => 1,
        StepOp::Replace => 2,
        StepOp::Delete => 3,
        StepOp::Same => 5,
        _ => 4,
    };
    let words = |count: usize, op_style: StepStyle, tense: Tense| {
        let words = match tense {
            Tense::Plan => format!("{count} to {}", op_style.plan),
            Tense::Run => format!("{count} {}", op_style.past),
        };
        (count > 0).then(|| Line::new().styled(op_style.style, words))
    };
    let mut counted: Vec<(StepOp, usize)> = counts.iter().map(|(op, count)| (*op, *count)).collect();
    counted.sort_by_key(|(op, _)| rank(*op));
    let mut parts = Vec::new();
    for (op, count) in counted {
        match op {
            StepOp::Same => {
                let renamed = rows.renamed_count().min(count);
                parts.extend(words(renamed, renamed_style(), tense));
                parts.extend(words(count - renamed, step_style(op), Tense::Run));
            }
            StepOp::Delete if rows.is_refresh() => parts.extend(words(count, missing_style(), Tense::Run)),
            StepOp::Delete => {
                let retained = rows.retained_count().min(count);
                parts.extend(words(count - retained, step_style(op), tense));
                parts.extend(words(retained, retained_style(), tense));
            }
            _ => parts.extend(words(count, step_style(op), tense)),
        }
    }
    match rows.gone_count() {
        0 => {}
        count => parts.push(Line::new().styled(Palette::DIM, format!("{count} gone already"))),
    }
    parts
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
    fn names_that_are_cut_keep_their_environment() {
        let table = [
            ("resource-070--production", 24, "resource-070--production"),
            ("resource-070--production", 18, "resou…--production"),
            ("resource-070--production", 16, "res…--production"),
            ("resource-070--production", 12, "resource-07…"),
            ("web--prod", 4, "web…"),
            ("without-environment", 10, "without-e…"),
        ];
        for (name, width, expected) in table {
            assert_eq!(fit_name(name, width), expected);
        }
    }

    #[test]
    fn types_are_shown_without_repeated_parts() {
        let cases = [
            ("aws:s3/bucket:Bucket", "aws:s3:Bucket"),
            ("aws:s3/bucketV2:BucketV2", "aws:s3:BucketV2"),
            ("random:index/randomId:RandomId", "random:RandomId"),
            ("files:index:File", "files:File"),
            ("local component", "local component"),
        ];
        for (token, expected) in cases {
            assert_eq!(short_type(token), expected);
        }
        assert_eq!(fit_type("gcp:artifactregistry:Repository", 18), "gcp:…:Repository");
    }
}
