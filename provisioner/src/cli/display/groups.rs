//! Messages of one cause, which are shown together.
//!
//! Errors of several resources have one cause if they differ only in what names the resource or the request: the name, the URN, and
//! words such as the ids that a service draws.

use std::collections::{HashMap, HashSet};

use engine::events::{Message, Severity};

use super::palette::{Palette, severity};
use super::report::{self, LocatedMessage};
use super::text::Line;

/// Length of a word with digits from which it may be an id.
const ID_LENGTH: usize = 8;

/// Cause of a message about a resource, as far as its text tells it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cause {
    is_error: bool,
    plugin: Option<String>,
    property: Option<String>,
    text: String,
    hint: String,
}

impl Cause {
    /// Returns the cause of an error or warning about a resource; `None` for another message.
    pub(super) fn of(message: &Message) -> Option<Self> {
        message.urn.as_ref().filter(|_| message.severity >= Severity::Warning)?;
        let general = |text: &str| general_text(message, text);
        Some(Self {
            is_error: message.severity == Severity::Error,
            plugin: message.plugin.clone(),
            property: message.property.clone(),
            text: general(&message.text),
            hint: general(message.hint.as_deref().unwrap_or_default()),
        })
    }
}

/// Returns a text of a message without what differs between resources and requests.
fn general_text(message: &Message, text: &str) -> String {
    let mut text = text.trim().to_owned();
    if let Some(urn) = &message.urn {
        text = text.replace(urn.as_str(), "…").replace(urn.name(), "…");
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let is_id = |word: &str| word.len() >= ID_LENGTH && word.contains(|c: char| c.is_ascii_digit());
    let mut general = String::new();
    for word in text.split_inclusive(|c: char| !is_part(c)) {
        let end = word.trim_end_matches(|c: char| !is_part(c));
        general.push_str(if is_id(end) { "…" } else { end });
        general.push_str(&word[end.len()..]);
    }
    general
}

/// Returns the messages in groups of one cause each, in the order of their first messages.
pub(super) fn group(messages: &[LocatedMessage]) -> Vec<Vec<&LocatedMessage>> {
    let mut groups: Vec<Vec<&LocatedMessage>> = Vec::new();
    let mut known: HashMap<Cause, usize> = HashMap::new();
    for located in messages {
        match Cause::of(&located.message) {
            None => groups.push(vec![located]),
            Some(cause) => match known.get(&cause) {
                Some(index) => groups[*index].push(located),
                None => {
                    known.insert(cause, groups.len());
                    groups.push(vec![located]);
                }
            },
        }
    }
    groups
}

/// Returns the lines of messages, those of one cause together, and a recap if resources have failed for several causes.
pub(super) fn grouped_lines(messages: &[LocatedMessage]) -> Vec<Line> {
    let groups = group(messages);
    let mut lines: Vec<Line> = groups.iter().flat_map(|group| group_lines(group)).collect();
    if groups.iter().filter(|group| is_of_errors(group)).count() > 1 {
        lines.extend(recap(&groups));
    }
    lines
}

/// Returns the lines of the messages of one cause: the text once, with all resources and their positions.
fn group_lines(group: &[&LocatedMessage]) -> Vec<Line> {
    let [first, _, ..] = group else { return group.iter().flat_map(|located| report::message(located)).collect() };
    let message = &first.message;
    let (word, style) = severity(message.severity);
    let head = Line::new().styled(style, word).styled(Palette::BOLD, ":").text(" ");
    let mut head = head.styled(Palette::BOLD, format!("{} resources", resource_count(group)));
    if let Some(property) = report::unnamed_property(message) {
        head = head.text(" ").styled(Palette::UPDATE, property);
    }
    let mut lines = report::text_lines(head.text(": "), message);
    lines.extend(group.iter().map(|located| Line::plain("  ").join(place_line(located))));
    lines.extend(report::hint_lines(message));
    lines
}

/// Returns the number of resources that messages are about. One resource may have several messages of a cause.
fn resource_count(group: &[&LocatedMessage]) -> usize {
    let urns: HashSet<_> = group.iter().map(|located| &located.message.urn).collect();
    urns.len()
}

fn is_of_errors(group: &[&LocatedMessage]) -> bool {
    group.first().is_some_and(|first| first.message.severity == Severity::Error && first.message.urn.is_some())
}

/// Returns the failed resources by cause: the first line of each error, and the resources with their positions. Empty if fewer than
/// two have failed.
pub(super) fn recap(groups: &[Vec<&LocatedMessage>]) -> Vec<Line> {
    let failed = || groups.iter().filter(|group| is_of_errors(group));
    let count = failed().flatten().map(|located| &located.message.urn).collect::<HashSet<_>>().len();
    if count < 2 {
        return Vec::new();
    }
    let (word, style) = severity(Severity::Error);
    let head = Line::new().styled(style, word).styled(Palette::BOLD, ":").text(" ");
    let mut lines = vec![head.text(format!("{count} resources failed:"))];
    // A resource may have several errors.
    let mut seen = HashSet::new();
    for group in failed() {
        let resources: Vec<_> = group.iter().filter(|located| seen.insert(&located.message.urn)).collect();
        if let Some(first) = resources.first() {
            let text = first.message.text.trim().lines().next().unwrap_or_default();
            lines.push(Line::plain("  ").text(text));
            lines.extend(resources.iter().map(|located| Line::plain("    ").join(place_line(located))));
        }
    }
    lines
}

/// Returns the resource of a message and its position: `site--prod (aws:s3:Bucket) at server.yaml:12:5`.
fn place_line(located: &LocatedMessage) -> Line {
    let subject = located.message.urn.as_ref().map(report::subject).unwrap_or_default();
    match &located.place {
        Some(place) => subject.styled(Palette::DIM, " at ").text(&place.position),
        None => subject,
    }
}

#[cfg(test)]
mod tests {
    use pulumi_proto::urn::Urn;

    use super::*;

    fn error(name: &str, text: &str) -> Message {
        let urn = Urn::new("reef", "tank", None, "t:m:T", name);
        Message { urn: Some(urn), ..Message::new(Severity::Error, text) }
    }

    #[test]
    fn errors_that_differ_in_names_and_ids_have_one_cause() {
        let cause = |name: &str, text: &str| Cause::of(&error(name, text));
        let table = [
            ("no access", "no access", true),
            ("no access to a--prod", "no access to b--prod", true),
            ("busy, request 7f3a19c2-11, try later", "busy, request 0b77aa10-92, try later", true),
            ("quota of 70", "quota of 80", false),
            ("no access", "no such zone", false),
        ];
        for (first, second, expected) in table {
            assert_eq!(cause("a--prod", first) == cause("b--prod", second), expected, "{first:?} and {second:?}");
        }
        assert_eq!(Cause::of(&Message::new(Severity::Error, "of no resource")), None);
        let info = Message { severity: Severity::Info, ..error("a--prod", "x") };
        assert_eq!(Cause::of(&info), None);
    }
}
