//! The files that were read, kept so that a place can be named and shown.

use std::ops::Range;
use std::sync::Arc;

/// A file in [`SourceFiles`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u32);

/// A piece of a file, in bytes of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte; equal to the start where nothing is written.
    pub end: u32,
}

impl Span {
    /// The piece as a range of bytes.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// From the start of this piece to the end of the other one.
    #[must_use]
    pub fn to(self, other: Span) -> Self {
        Self { end: other.end.max(self.end), ..self }
    }
}

/// A place as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The file, as the user would type it.
    pub path: Arc<str>,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// Whether lines of a file may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensitivity {
    /// They may.
    Public,
    /// They hold secrets: only the place is named.
    Secret,
}

/// One file that was read.
#[derive(Clone)]
pub struct SourceFile {
    path: Arc<str>,
    text: Arc<str>,
    sensitivity: Sensitivity,
}

impl SourceFile {
    /// The path, as the user would type it.
    pub fn path(&self) -> &Arc<str> {
        &self.path
    }

    /// The text, without a byte order mark.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Whether lines may be shown.
    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }
}

/// Shows the path only: the text may hold secrets.
impl std::fmt::Debug for SourceFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SourceFile").field(&self.path).finish()
    }
}

/// All files that were read in a run.
#[derive(Clone, Debug, Default)]
pub struct SourceFiles(Vec<SourceFile>);

impl SourceFiles {
    /// Takes a file's text; a byte order mark at its start is dropped.
    ///
    /// # Panics
    /// With more than 2^32 files: their number is that of the stacks of a repository.
    pub fn add(&mut self, path: &str, text: &str, sensitivity: Sensitivity) -> FileId {
        let id = u32::try_from(self.0.len()).expect("a repository has fewer than 2^32 files");
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        self.0.push(SourceFile { path: path.into(), text: text.into(), sensitivity });
        FileId(id)
    }

    /// A file by its id.
    ///
    /// # Panics
    /// If the id comes from another table.
    pub fn get(&self, file: FileId) -> &SourceFile {
        &self.0[file.0 as usize]
    }

    /// Where a piece starts.
    pub fn position(&self, span: Span) -> Position {
        let file = self.get(span.file);
        let before = &file.text[..floor(&file.text, span.start as usize)];
        let line_start = before.rfind('\n').map_or(0, |index| index + 1);
        Position {
            path: file.path.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// The text of a piece.
    pub fn slice(&self, span: Span) -> &str {
        let text = &self.get(span.file).text;
        &text[floor(text, span.start as usize)..floor(text, span.end as usize)]
    }
}

/// The nearest character boundary at or before an index.
fn floor(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}
