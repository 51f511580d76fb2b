//! Saved plan as Markdown for a comment on a pull request.

use std::fmt::Write as _;
use std::sync::Arc;

use engine::events::{StepInfo, StepOp};
use engine::masking::SecretMasker;
use provisioner::plan::{PlanFile, StackPlan, property_text};

/// Maximum number of characters of a comment on GitHub.
const MAX_CHARACTERS: usize = 65_536;

/// Room for the line that says how much is left out, and for ends of elements.
const RESERVED: usize = 256;

/// Group of planned steps, in the order of the text: what destroys something comes first.
const GROUPS: [(&str, &[StepOp]); 6] = [
    ("delete", &[StepOp::Delete]),
    ("replace", &[StepOp::Replace]),
    ("create", &[StepOp::Create]),
    ("update", &[StepOp::Update]),
    ("import", &[StepOp::Import, StepOp::ImportReplacement]),
    ("remove from the state", &[StepOp::Discard]),
];

/// Returns the plans of stacks as Markdown, of at most 65,536 characters. Secrets are masked.
pub(crate) fn text(file: &PlanFile, plans: &[(String, Arc<StackPlan>)], masker: &SecretMasker) -> String {
    let header = &file.header;
    let mut text =
        format!("### Plan of {}\n\n", plans.iter().map(|(name, _)| code(name)).collect::<Vec<_>>().join(", "));
    let mut sections = Vec::new();
    for (name, plan) in plans {
        let shown = plan.shown_steps();
        let steps: Vec<&StepInfo> = shown.steps.iter().map(Arc::as_ref).filter(|step| !step.internal).collect();
        let of = |ops: &[StepOp]| steps.iter().copied().filter(|step| ops.contains(&step.op)).collect::<Vec<_>>();
        let groups = GROUPS.map(|(verb, ops)| (verb, of(ops)));
        let counts: Vec<String> = groups
            .iter()
            .filter(|(_, steps)| !steps.is_empty())
            .map(|(verb, steps)| format!("**{}** to {verb}", steps.len()))
            .collect();
        let counts = if counts.is_empty() { "no changes".to_owned() } else { counts.join(", ") };
        writeln!(text, "- stack {}: {counts}", code(name)).ok();
        let groups = groups.into_iter().filter(|(_, steps)| !steps.is_empty());
        sections.extend(groups.map(|(verb, steps)| section(name, verb, &steps, masker)));
    }
    let end = format!(
        "\n<sub>Made by {} at {:.0} with sc {}; good until {:.0}; SHA-256 `{}`</sub>\n",
        code(&header.by),
        header.created,
        header.version,
        header.expires,
        file.digest
    );
    text.push('\n');
    let limit = MAX_CHARACTERS - RESERVED - end.chars().count();
    // What destroys something stays if not all has room.
    sections.sort_by_key(|section| section.rank);
    let mut left_out = 0;
    let mut length = text.chars().count();
    for section in &sections {
        let added = section.text_within(limit.saturating_sub(length));
        left_out += section.lines.len() - added.lines;
        length += added.text.chars().count();
        text.push_str(&added.text);
    }
    if left_out > 0 {
        let (resources, are) = if left_out == 1 { ("resource", "is") } else { ("resources", "are") };
        write!(text, "\n{left_out} {resources} {are} left out here; `sc plan show FILE` shows all.\n").ok();
    }
    text + &end
}

/// Steps of one kind on the resources of a stack.
struct SectionOfStack {
    rank: usize,
    head: String,
    lines: Vec<String>,
    foot: &'static str,
}

/// Part of a section that has room.
struct Added {
    text: String,
    lines: usize,
}

impl SectionOfStack {
    /// Returns as many resources of the section as have room in a number of characters.
    fn text_within(&self, room: usize) -> Added {
        let mut added = Added { text: self.head.clone(), lines: 0 };
        let mut length = self.head.chars().count() + self.foot.chars().count();
        for line in &self.lines {
            length += line.chars().count();
            if length > room {
                break;
            }
            added.text.push_str(line);
            added.lines += 1;
        }
        if added.lines == 0 {
            return Added { text: String::new(), lines: 0 };
        }
        added.text.push_str(self.foot);
        added
    }
}

fn section(stack: &str, verb: &str, steps: &[&StepInfo], masker: &SecretMasker) -> SectionOfStack {
    let rank = GROUPS.iter().position(|(name, _)| *name == verb).unwrap_or(GROUPS.len());
    let destroys = matches!(verb, "delete" | "replace");
    let open = if destroys { " open" } else { "" };
    let head = format!("<details{open}><summary>{} to {verb} in {}</summary>\n\n", steps.len(), html(stack));
    let lines = steps.iter().map(|step| lines_of(step, masker)).collect();
    SectionOfStack { rank, head, lines, foot: "\n</details>\n\n" }
}

/// Returns the lines of a step: its resource, and the properties that change.
fn lines_of(step: &StepInfo, masker: &SecretMasker) -> String {
    let mut text = format!("- {} ({})\n", code(step.urn.name()), code(step.urn.type_token()));
    let (old, new) = (step.old.as_ref().map(|old| &old.inputs), step.new.as_ref().map(|new| &new.inputs));
    let mut names: Vec<&str> = step.diffs.iter().map(String::as_str).collect();
    names.extend(step.detailed_diff.keys().map(|path| path.split(['.', '[']).next().unwrap_or(path)));
    if step.op == StepOp::Create {
        names.extend(
            new.iter().flat_map(|inputs| inputs.keys()).map(String::as_str).filter(|name| !name.starts_with("__")),
        );
    }
    names.sort_unstable();
    names.dedup();
    for name in names {
        let value = |inputs: Option<&Arc<pulumi_proto::property::PropertyMap>>| {
            inputs.and_then(|inputs| inputs.get(name)).map(|value| masker.mask(&property_text(value)).into_owned())
        };
        let replaces = if step.replace_keys.iter().any(|key| key == name) { " (replaces)" } else { "" };
        let change = match (value(old), value(new)) {
            (Some(old), Some(new)) if old != new => format!("{} → {}", code(&old), code(&new)),
            (_, Some(new)) => code(&new),
            (Some(old), None) => format!("{} is removed", code(&old)),
            (None, None) => continue,
        };
        writeln!(text, "  - {}: {change}{replaces}", code(name)).ok();
    }
    text
}

/// Returns a text as a code span on one line, which no character of it ends.
fn code(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("`{}`", line.replace('`', "'"))
}

/// Returns a text for an HTML element.
fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_end_neither_code_nor_elements() {
        assert_eq!(code("a`b\nc"), "`a'b c`");
        assert_eq!(html("<b>&"), "&lt;b&gt;&amp;");
    }

    #[test]
    fn section_has_as_many_resources_as_have_room() {
        let lines = vec!["- one\n".to_owned(), "- two\n".to_owned()];
        let section = SectionOfStack { rank: 0, head: "head\n".to_owned(), lines, foot: "foot\n" };
        let table = [(15, 0, ""), (16, 1, "head\n- one\nfoot\n"), (22, 2, "head\n- one\n- two\nfoot\n")];
        for (room, count, text) in table {
            let added = section.text_within(room);
            assert_eq!((added.lines, added.text.as_str()), (count, text));
        }
    }
}
