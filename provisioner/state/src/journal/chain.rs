//! Objects of a run's journal in a store, read and put in order.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::closing::{Closing, is_close_line};
use super::decode::read_closing;
use super::header::StoredHeader;
use super::seal::Seal;
use super::segment::{JournalContent, Segment, object_name, object_number, read_object};
use crate::error::StateError;
use crate::store::{StackReference, StateStore};

/// Objects of a run's journal that were read.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    /// Time of the last write of an object.
    pub(super) modified: Option<Timestamp>,
    segments: BTreeMap<u64, Segment>,
    seals: BTreeMap<u64, Seal>,
}

impl Chain {
    /// Reads the objects of a run's journal. Objects with other names than this program writes are ignored. Returns `None` if
    /// one is gone.
    ///
    /// # Errors
    /// [`StateError`] if an object cannot be read, or is damaged.
    pub(super) async fn read(
        store: &StateStore,
        stack: &StackReference,
        run: &str,
        names: &[String],
        modified: Option<Timestamp>,
    ) -> Result<Option<Self>, StateError> {
        let numbered: Vec<_> = names.iter().filter(|name| object_number(name).is_some()).cloned().collect();
        let contents = store.read_journal_objects(stack, run, &numbered).await?;
        let mut chain = Self { modified, ..Self::default() };
        let full_name = stack.to_string();
        for (name, content) in numbered.iter().zip(contents) {
            let (Some(number), Some(content)) = (object_number(name), content) else { return Ok(None) };
            let location = format!("{}/{name}", store.journal_location(stack, run));
            match read_object(&location, &full_name, run, number, content)? {
                JournalContent::Segment(segment) => drop(chain.segments.insert(number, segment)),
                JournalContent::Seal(seal) => drop(chain.seals.insert(number, seal)),
            }
        }
        Ok(Some(chain))
    }

    /// Returns the first number that no object has.
    pub(super) fn free_number(&self) -> u64 {
        let is_free = |number: &u64| !self.segments.contains_key(number) && !self.seals.contains_key(number);
        (0..).find(is_free).unwrap_or_default()
    }

    /// Adds a seal that was written.
    pub(super) fn add_seal(&mut self, number: u64, seal: Seal) {
        self.seals.insert(number, seal);
    }

    /// Returns the names of the segments.
    pub(super) fn segment_names(&self) -> Vec<String> {
        self.segments.keys().copied().map(object_name).collect()
    }

    /// Returns the names of the segments that have no line after a number of lines.
    pub(super) fn segment_names_up_to(&self, lines: usize) -> Vec<String> {
        let merged = self.segments.iter().filter(|(_, segment)| segment.last() <= lines);
        merged.map(|(number, _)| object_name(*number)).collect()
    }

    /// Returns the number of the last line that a checkpoint has once all lines were used that follow each other. If the run itself
    /// has saved the checkpoint, that is the last line.
    pub(super) fn saved_end(&self, checkpoint: Option<&str>) -> usize {
        match self.has_saved(checkpoint) {
            // The `close` line may be alone in the last segment.
            Some(_) => self.segments.values().map(Segment::last).max().unwrap_or_default(),
            None => self.end_without_gap(),
        }
    }

    /// Returns the number of the last line that no gap separates from those that a checkpoint has according to a seal, or from the
    /// first line.
    fn end_without_gap(&self) -> usize {
        let saved = self.seals.values().filter(|seal| seal.saved).map(|seal| seal.lines).max().unwrap_or_default();
        let lines = self.lines();
        (saved + 1..).take_while(|number| lines.contains_key(number)).last().unwrap_or(saved)
    }

    /// Returns `true` if a seal says that a checkpoint has the lines up to a number.
    pub(super) fn is_saved_up_to(&self, lines: usize) -> bool {
        self.seals.values().any(|seal| seal.saved && seal.lines >= lines)
    }

    /// Returns the names of the seals.
    pub(super) fn seal_names(&self) -> Vec<String> {
        self.seals.keys().copied().map(object_name).collect()
    }

    /// Returns the seal of the run that has taken the journal over and saved. `checkpoint` is the digest of the current one. A seal
    /// whose run did not save counts for nothing: the run says that it has saved, its checkpoint is the current one, or the first
    /// line is gone, because the segments are removed after the save. The first line of a file has never been in the store for
    /// certain, so nothing follows from its absence there.
    pub(super) fn counting_seal(&self, checkpoint: Option<&str>, lines_of_file: usize) -> Option<&Seal> {
        let has_begin = lines_of_file > 0 || self.segments.values().any(|segment| segment.first == 1);
        let newest = |counts: &dyn Fn(&Seal) -> bool| self.seals.values().rev().find(|seal| counts(seal));
        newest(&|seal| seal.saved)
            .or_else(|| newest(&|seal| seal.checkpoint.is_some() && checkpoint == seal.checkpoint.as_deref()))
            .or_else(|| newest(&|_| !has_begin))
    }

    /// Returns the second seal of the run that has saved the current checkpoint, if it has ended before it wrote that.
    pub(super) fn missing_mark(&self, checkpoint: Option<&str>) -> Option<Seal> {
        let is_of_current = |seal: &&Seal| seal.checkpoint.is_some() && checkpoint == seal.checkpoint.as_deref();
        let seal = self.seals.values().rev().find(is_of_current)?;
        let is_marked = self.seals.values().any(|seal| seal.saved);
        (!is_marked).then(|| Seal { saved: true, ..seal.clone() })
    }

    /// Returns `true` if there are segments.
    pub(super) fn has_segments(&self) -> bool {
        !self.segments.is_empty()
    }

    /// Returns the first line of the journal, as any segment has it; `None` without a segment.
    pub(super) fn header(&self) -> Option<&StoredHeader> {
        self.segments.values().next().map(|segment| &segment.header)
    }

    /// Returns the lines by their numbers, without `close` lines.
    pub(super) fn lines(&self) -> BTreeMap<usize, &str> {
        let mut lines = BTreeMap::new();
        for segment in self.segments.values() {
            let numbered = segment.lines.iter().filter(|line| !is_close_line(line)).map(String::as_str);
            lines.extend((segment.first..).zip(numbered));
        }
        lines
    }

    /// Returns the `close` line after a number of lines, if there is one.
    pub(super) fn close_line(&self, lines: usize) -> Option<&str> {
        let mut last = self.segments.values().rev().filter(|segment| segment.last() == lines);
        last.find_map(|segment| segment.lines.last().filter(|line| is_close_line(line))).map(String::as_str)
    }

    /// Returns the end of the run that a segment has, if it names the current checkpoint: the run has saved, and ended while it
    /// removed its segments.
    pub(super) fn has_saved(&self, checkpoint: Option<&str>) -> Option<Closing> {
        let close_lines = self.segments.values().flat_map(|segment| &segment.lines).filter(|line| is_close_line(line));
        let mut closings = close_lines.filter_map(|line| read_closing(line).ok().flatten());
        closings.rfind(|closing| checkpoint == Some(closing.checkpoint.as_str()))
    }
}
