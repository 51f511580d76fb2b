//! Lines of styled text with a known width.
//!
//! Removes escape sequences, which texts of providers and programs may contain, and escapes other control characters.

use std::borrow::Cow;
use std::fmt::Write as _;

use anstyle::Style;
use bridge::terminal::{has_escape_sequences, without_escape_sequences};
use config::diagnostics::{escape_controls, escape_workflow_command};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Line of styled text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    spans: Vec<Span>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    text: String,
    style: Style,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn plain(text: impl AsRef<str>) -> Self {
        Self::new().text(text)
    }

    /// Appends unstyled text.
    #[must_use]
    pub(crate) fn text(self, text: impl AsRef<str>) -> Self {
        self.styled(Style::new(), text)
    }

    /// Appends styled text.
    #[must_use]
    pub(crate) fn styled(mut self, style: Style, text: impl AsRef<str>) -> Self {
        let text = printable(text.as_ref());
        if !text.is_empty() {
            self.spans.push(Span { text, style });
        }
        self
    }

    /// Appends another line.
    #[must_use]
    pub(crate) fn join(mut self, other: Line) -> Self {
        self.spans.extend(other.spans);
        self
    }

    /// Pads the line with spaces to a width. A longer line is not changed.
    #[must_use]
    pub(crate) fn pad_to(self, width: usize) -> Self {
        let missing = width.saturating_sub(self.width());
        self.text(" ".repeat(missing))
    }

    /// Returns the number of columns of the line.
    pub(crate) fn width(&self) -> usize {
        self.spans.iter().map(|span| span.text.width()).sum()
    }

    /// Cuts the line to a width; the last column of a cut line is an ellipsis.
    #[must_use]
    pub(crate) fn truncate(self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        let mut spans = Vec::new();
        for mut span in self.spans {
            let taken = prefix_of_width(&span.text, left);
            left -= span.text[..taken].width();
            let cut = taken < span.text.len();
            span.text.truncate(taken);
            if cut {
                if width > 0 {
                    span.text.push('…');
                }
                spans.push(span);
                break;
            }
            spans.push(span);
        }
        Self { spans }
    }

    /// Returns the text, with escape sequences for its styles if `color` is set.
    pub(crate) fn render(&self, color: bool) -> String {
        let mut rendered = String::new();
        // The first text that is not blank begins the line, also behind escape sequences of styles.
        let first = self.spans.iter().position(|span| !span.text.trim_start().is_empty());
        for (at, span) in self.spans.iter().enumerate() {
            let text = match Some(at) == first {
                true => escape_workflow_command(&span.text),
                false => Cow::Borrowed(span.text.as_str()),
            };
            if color && !span.style.is_plain() {
                // Writing to a String cannot fail.
                write!(rendered, "{}{text}{}", span.style, span.style.render_reset()).unwrap_or_default();
            } else {
                rendered.push_str(&text);
            }
        }
        rendered.truncate(rendered.trim_end_matches(' ').len());
        rendered
    }
}

/// Cuts a text to a width; the last column of a cut text is an ellipsis.
pub(crate) fn truncate(text: &str, width: usize) -> String {
    Line::plain(text).truncate(width).render(false)
}

/// Returns the number of bytes of the text that fit into a width.
fn prefix_of_width(text: &str, width: usize) -> usize {
    let mut used = 0;
    for (index, character) in text.char_indices() {
        used += character.width().unwrap_or_default();
        if used > width {
            return index;
        }
    }
    text.len()
}

/// Removes escape sequences, such as colours, and escapes other characters that a terminal obeys. Tabs become spaces,
/// line ends a return arrow.
fn printable(text: &str) -> String {
    let stripped = has_escape_sequences(text).then(|| without_escape_sequences(text));
    let escaped = escape_controls(stripped.as_deref().unwrap_or(text));
    escaped.replace("\r\n", "⏎").replace('\n', "⏎").replace('\t', "    ")
}

/// Formats a number of bytes: `812 B`, `4.1 MB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let (mut unit, mut tenths) = (0, bytes / 100);
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        (unit, tenths) = (unit + 1, tenths / 1000);
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// Formats a duration: `0.3s`, `12s`, `4m05s`, `2h10m`.
pub(crate) fn duration(duration: std::time::Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=9 => format!("{}.{}s", seconds, duration.subsec_millis() / 100),
        10..=59 => format!("{seconds}s"),
        60..=3599 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::palette::Palette;
    use super::*;

    #[test]
    fn truncated_line_keeps_its_styles() {
        let line = Line::new().text("one ").styled(Palette::ERROR, "two three");
        assert_eq!(line.clone().truncate(7).render(false), "one tw…");
        assert_eq!(line.clone().truncate(13).render(false), "one two three");
        assert_eq!(line.clone().truncate(0).render(false), "");
        assert!(line.truncate(7).render(true).contains("\u{1b}["));
        assert_eq!(truncate("日本語", 4), "日…");
    }

    #[test]
    fn escape_sequences_are_removed_and_control_characters_are_escaped() {
        let line = Line::plain("a\u{1b}[2Jb\tc\nd\r\ne");
        assert_eq!(line.render(true), "ab    c⏎d⏎e");
        let line = Line::plain("a\u{202e}b\u{9b}31mc\u{7}d\re");
        assert_eq!(line.render(true), "a\\u202ebc\\u0007d\\u000de");
        assert_eq!(line.width(), line.render(false).len());
        // A sequence that does not end would hide the rest.
        assert_eq!(Line::plain("a\u{1b}]0;b\u{9f}c").render(true), "a\\u001b]0;b\\u009fc");
    }

    /// Shows: security.md#secrets-in-output "So are commands that a pipeline obeys in its log"
    #[test]
    fn text_of_others_is_no_command_of_a_pipeline() {
        for (line, expected) in [
            (Line::plain("::error::x"), "\\u003a:error::x"),
            (Line::plain("  ").styled(Palette::ERROR, " ::set-output name=a::b"), "   \\u003a:set-output name=a::b"),
            (Line::plain("warning: ").text("::error::x"), "warning: ::error::x"),
            (Line::plain("a ##vso[task.x]"), "a #\\u0023vso[task.x]"),
        ] {
            assert_eq!(line.render(false), expected);
        }
    }

    #[test]
    fn byte_counts_are_rounded() {
        let shown = [0, 999, 1000, 41_230, 999_949, 1_000_000, 612_345_678, 5_000_000_000].map(bytes);
        assert_eq!(shown, ["0 B", "999 B", "1.0 kB", "41.2 kB", "999.9 kB", "1.0 MB", "612.3 MB", "5.0 GB"]);
    }

    #[test]
    fn durations_are_rounded() {
        let shown = |millis| duration(Duration::from_millis(millis));
        assert_eq!([shown(340), shown(12_900), shown(245_000), shown(7_800_000)], ["0.3s", "12s", "4m05s", "2h10m"]);
    }
}
