//! Text of all files that were read, to show positions in diagnostics.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Id of a file in [`SourceFiles`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u32);

/// A range of a file, in bytes of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// End, exclusive; equal to the start for an empty value.
    pub end: u32,
}

impl Span {
    /// Returns the range of bytes.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Returns the span from the start of this span to the end of the other one.
    #[must_use]
    pub fn to(self, other: Span) -> Self {
        Self { end: other.end.max(self.end), ..self }
    }
}

/// A position as shown to users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Path of the file, relative to the repository where possible.
    pub path: Arc<str>,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// Writes `path:line:column`.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path, self.line, self.column)
    }
}

/// Rule for showing lines of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensitivity {
    /// Lines may be shown.
    Public,
    /// Lines hold secrets: only the position is shown.
    Secret,
}

/// File that was read.
#[derive(Clone)]
pub struct SourceFile {
    path: Arc<str>,
    text: Arc<str>,
    /// Offsets of the first bytes of all lines.
    line_starts: Arc<[u32]>,
    sensitivity: Sensitivity,
}

impl SourceFile {
    /// Returns the path, relative to the repository where possible.
    pub fn path(&self) -> &Arc<str> {
        &self.path
    }

    /// Returns the text, without a byte order mark.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Returns the number of the line, from 1, that a byte belongs to.
    pub(super) fn line_of(&self, byte: usize) -> usize {
        self.line_starts.partition_point(|start| *start as usize <= byte)
    }

    /// Returns the bytes of a line by its number, from 1, with its line end.
    pub(super) fn line_range(&self, line: usize) -> Range<usize> {
        let start = |line: usize| self.line_starts.get(line).map_or(self.text.len(), |start| *start as usize);
        start(line.saturating_sub(1))..start(line)
    }

    /// Returns the rule for showing lines.
    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }
}

/// Shows only the path, because the text may hold secrets.
impl std::fmt::Debug for SourceFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SourceFile").field(&self.path).finish()
    }
}

/// All files that were read in a run.
#[derive(Clone, Debug, Default)]
pub struct SourceFiles(Vec<SourceFile>);

impl SourceFiles {
    /// Adds a file. A byte order mark at the start of the text is dropped.
    ///
    /// # Panics
    /// Panics after 2^32 files, which no repository has.
    pub fn add(&mut self, path: &str, text: &str, sensitivity: Sensitivity) -> FileId {
        let id = u32::try_from(self.0.len()).expect("a repository has fewer than 2^32 files");
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = ends.filter_map(|(at, _)| u32::try_from(at + 1).ok());
        let line_starts = std::iter::once(0).chain(starts).collect();
        self.0.push(SourceFile { path: path.into(), text: text.into(), line_starts, sensitivity });
        FileId(id)
    }

    /// Returns all files, in the order in which they were read.
    pub fn iter(&self) -> impl Iterator<Item = &SourceFile> {
        self.0.iter()
    }

    /// Returns the files with a name, in any folder.
    pub(crate) fn named(&self, name: &str) -> impl Iterator<Item = FileId> {
        let is_named = move |file: &SourceFile| file.path.rsplit('/').next() == Some(name);
        let numbered = (0..).zip(&self.0).filter(move |(_, file)| is_named(file));
        numbered.map(|(id, _)| FileId(id))
    }

    /// Returns a file by id.
    ///
    /// # Panics
    /// Panics if the id comes from another table.
    pub fn get(&self, file: FileId) -> &SourceFile {
        &self.0[file.0 as usize]
    }

    /// Returns the start of a span as path, line and column.
    pub fn position(&self, span: Span) -> Position {
        let file = self.get(span.file);
        let start = floor_char_boundary(&file.text, span.start as usize);
        let line = file.line_of(start);
        let before = &file.text[file.line_range(line).start..start];
        Position { path: file.path.clone(), line, column: before.chars().count() + 1 }
    }

    /// Returns the text of a span.
    pub fn slice(&self, span: Span) -> &str {
        let text = &self.get(span.file).text;
        &text[floor_char_boundary(text, span.start as usize)..floor_char_boundary(text, span.end as usize)]
    }
}

/// Returns the nearest character boundary at or before an index.
fn floor_char_boundary(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}
