//! Child processes: own group, drained pipes, an end on every path.
