//! Durations in the schema of a `config`. The reader parses them with [`pulumi_proto::duration`].
//!
//! Length: the pattern is of several types.

/// Pattern of a duration, such as `90s` or `1h30m`; empty for none.
pub(super) const DURATION: &str = r"^(\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+))?$";
