//! Mistakes in the user's files, as values.
//!
//! Enters: mistakes that the readers of files (and, through references to the source, the program) find. Leaves: values
//! for the display, for `--json`, for tests, and [`render`], which draws one as text. Never here: a decision about what
//! is a mistake, output to a terminal, and the text of a file that holds secrets.

mod diagnostic;
mod render;
mod sources;
mod suggest;

pub use diagnostic::{Code, Diagnostic, Label, Severity, has_errors, sort};
pub use render::{Style, excerpt, render};
pub use sources::{FileId, Position, Sensitivity, SourceFile, SourceFiles, Span};
pub use suggest::closest;
