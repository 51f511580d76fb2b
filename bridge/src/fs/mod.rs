//! The one place that writes files: beside the target, flushed, renamed.
