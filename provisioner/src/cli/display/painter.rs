//! Painter of a block of lines at the bottom of a terminal, which is repainted in place.

use std::io::{self, Write};

use super::text::Line;

/// Begin and end of a synchronised frame. Terminals without support for it ignore both.
const BEGIN_FRAME: &str = "\u{1b}[?2026h";
const END_FRAME: &str = "\u{1b}[?2026l";
const HIDE_CURSOR: &str = "\u{1b}[?25l";
/// Escape sequence that shows the cursor.
pub(crate) const SHOW_CURSOR: &str = "\u{1b}[?25h";
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_BELOW: &str = "\u{1b}[J";

/// Terminal with a block of lines at its bottom. Lines printed above the block are not repainted.
#[derive(Debug)]
pub(crate) struct Painter<W: Write> {
    out: W,
    color: bool,
    /// Widths of the lines of the block that is on the terminal.
    drawn: Vec<usize>,
}

impl<W: Write> Painter<W> {
    pub(crate) fn new(out: W, color: bool) -> Self {
        Self { out, color, drawn: Vec::new() }
    }

    /// Paints the block over the last one. Each line must be narrower than the terminal.
    pub(crate) fn draw(&mut self, lines: &[Line], columns: usize) -> io::Result<()> {
        let mut frame = String::from(BEGIN_FRAME);
        frame.push_str(HIDE_CURSOR);
        frame.push_str(&self.to_top(columns));
        for line in lines {
            frame.push_str(&line.render(self.color));
            frame.push_str(CLEAR_LINE);
            frame.push_str("\r\n");
        }
        frame.push_str(CLEAR_BELOW);
        frame.push_str(END_FRAME);
        self.drawn = lines.iter().map(Line::width).collect();
        self.write(&frame)
    }

    /// Removes the block and shows the cursor. The next output starts where the block did.
    pub(crate) fn clear(&mut self, columns: usize) -> io::Result<()> {
        if self.drawn.is_empty() {
            return Ok(());
        }
        let frame = format!("{}{CLEAR_BELOW}{SHOW_CURSOR}", self.to_top(columns));
        self.drawn.clear();
        self.write(&frame)
    }

    /// Prints lines that are not repainted. The block must have been cleared.
    pub(crate) fn print(&mut self, lines: &[Line]) -> io::Result<()> {
        let text: String = lines.iter().map(|line| line.render(self.color) + "\n").collect();
        self.write(&text)
    }

    /// Returns the escape sequence that moves the cursor to the first line of the block. A terminal that has become
    /// narrower wraps the lines of the block.
    fn to_top(&self, columns: usize) -> String {
        let rows: usize = self.drawn.iter().map(|width| width.saturating_sub(1) / columns.max(1) + 1).sum();
        if rows == 0 { "\r".to_owned() } else { format!("\r\u{1b}[{rows}A") }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Drop for Painter<W> {
    fn drop(&mut self) {
        if !self.drawn.is_empty() {
            // An error means that the terminal is closed, so it cannot be reported there.
            self.write(SHOW_CURSOR).ok();
        }
    }
}
