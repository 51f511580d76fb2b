//! The file of `--trace`: an array of Chrome's trace events, which <https://ui.perfetto.dev> opens.
//!
//! ```text
//! [{"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"lane 1"}},
//! {"name":"step","cat":"engine::step_executor::executor","ph":"B","ts":12.5,"pid":1,"tid":1,"args":{"urn":"urn:…"}},
//! {"ph":"E","ts":20.25,"pid":1,"tid":1}]
//! ```
//! The threads of the format are lanes. A span is in the lane of its parent if nothing else runs there within the parent, else in the
//! first lane that is free: so the slices of a lane are nested, and each concurrent job has a lane of its own. Every event is written
//! at once, and readers accept an array without its end, so the file of a killed run shows what it was waiting for.

use std::fs::File;
use std::io::{self, Write as _};
use std::time::Instant;

use serde_json::{Map, Value, json};

/// Writer of trace events.
#[derive(Debug)]
pub(super) struct ChromeTrace {
    /// File; `None` once the array has ended.
    file: Option<File>,
    began: Instant,
    /// Ids of the open spans of each lane, the innermost last.
    lanes: Vec<Vec<u64>>,
    is_empty: bool,
    /// First error of a write. Nothing is written after it.
    error: Option<io::Error>,
}

impl ChromeTrace {
    /// Begins the array in an empty file.
    pub(super) fn new(file: File) -> Self {
        let mut trace =
            Self { file: Some(file), began: Instant::now(), lanes: Vec::new(), is_empty: true, error: None };
        trace.write(&json!({ "name": "process_name", "ph": "M", "pid": PID, "tid": 0, "args": { "name": "sc" } }));
        trace
    }

    /// Writes the begin of a span, and returns its lane.
    pub(super) fn begin(
        &mut self,
        id: u64,
        parent: Option<(u64, usize)>,
        (name, module): (&str, &str),
        fields: &Map<String, Value>,
    ) -> usize {
        let lane = self.lane_within(parent);
        self.lanes[lane].push(id);
        self.write(&json!({
            "name": name, "cat": module, "ph": "B", "ts": self.now(), "pid": PID, "tid": lane + 1, "args": fields,
        }));
        lane
    }

    /// Writes the end of a span.
    pub(super) fn end(&mut self, id: u64, lane: usize) {
        if let Some(open) = self.lanes.get_mut(lane) {
            open.retain(|span| *span != id);
        }
        self.write(&json!({ "ph": "E", "ts": self.now(), "pid": PID, "tid": lane + 1 }));
    }

    /// Writes an event without a duration, in the lane of the span that it belongs to.
    pub(super) fn instant(&mut self, lane: Option<usize>, (name, module): (&str, &str), fields: &Map<String, Value>) {
        let lane = lane.map_or(0, |lane| lane + 1);
        self.write(&json!({
            "name": name, "cat": module, "ph": "i", "s": "t", "ts": self.now(), "pid": PID, "tid": lane, "args": fields,
        }));
    }

    /// Ends the spans that are open, and the array.
    ///
    /// # Errors
    /// The first error of a write.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        for lane in 0..self.lanes.len() {
            while let Some(id) = self.lanes[lane].last().copied() {
                self.end(id, lane);
            }
        }
        match (self.error.take(), self.file.take()) {
            (Some(error), _) => Err(error),
            (None, Some(mut file)) => file.write_all(b"\n]\n"),
            (None, None) => Ok(()),
        }
    }

    fn lane_within(&mut self, parent: Option<(u64, usize)>) -> usize {
        if let Some((parent, lane)) = parent
            && self.lanes.get(lane).is_some_and(|open| open.last() == Some(&parent))
        {
            return lane;
        }
        if let Some(free) = self.lanes.iter().position(Vec::is_empty) {
            return free;
        }
        self.lanes.push(Vec::new());
        let number = self.lanes.len();
        let name = format!("lane {number}");
        self.write(&json!({ "name": "thread_name", "ph": "M", "pid": PID, "tid": number, "args": { "name": name } }));
        number - 1
    }

    /// Returns the time in microseconds.
    fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64() * 1e6
    }

    fn write(&mut self, event: &Value) {
        let (None, Some(file)) = (&self.error, &mut self.file) else { return };
        let separator = if std::mem::take(&mut self.is_empty) { "[\n" } else { ",\n" };
        self.error = file.write_all(format!("{separator}{event}").as_bytes()).err();
    }
}

/// Process id in the file: the own one means nothing to its reader.
const PID: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_spans_have_lanes_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.json");
        let mut trace = ChromeTrace::new(File::create(&path).unwrap());
        let fields = Map::new();
        let mut begin = |id, parent| trace.begin(id, parent, ("span", "engine"), &fields);
        assert_eq!(begin(1, None), 0);
        assert_eq!(begin(2, Some((1, 0))), 0, "a child is nested");
        assert_eq!(begin(3, Some((1, 0))), 1, "its sibling runs at the same time");
        assert_eq!(begin(4, None), 2);
        trace.end(3, 1);
        assert_eq!(trace.begin(5, None, ("span", "engine"), &fields), 1, "the lane is free");
        trace.finish().unwrap();
        let events: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let number = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
        assert_eq!((number("B"), number("E"), number("M")), (5, 5, 4));
    }
}
