//! `source` with `type: local`.
//!
//! Length: each kind of source has a file.

use bridge::plugin::LocalSource;

use super::section::SourceSection;

pub(super) const KEYS: [&str; 3] = ["type", "path", "checksum"];

pub(super) fn read(source: &mut SourceSection<'_, '_>) -> Option<LocalSource> {
    let path = source.required("path");
    let checksum = source.checksum();
    let (path, _) = path?;
    Some(LocalSource { path: path.into(), checksum })
}
