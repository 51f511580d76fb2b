//! Diagnostics about the user's files, as values.
//!
//! Input: errors and warnings that the file readers and the program report. Output: values for the display, `--json`
//! and tests, and the function `render`, which formats a diagnostic as text. Excluded: the rules that find errors,
//! output to a terminal, and the text of files that hold secrets.

mod diagnostic;
mod escape;
mod render;
mod sources;

pub use diagnostic::{Code, Diagnostic, Label, MAX_SHOWN, Severity, finish, has_errors, shown};
pub use escape::{escape_controls, escape_workflow_command};
pub use render::{Masks, Style, excerpt, render, render_masked};
pub use sources::{FileId, Position, Sensitivity, SourceFile, SourceFiles, Span};
