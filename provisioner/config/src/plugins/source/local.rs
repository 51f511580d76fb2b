//! `source` with `type: local`.
//!
//! Length: each kind of source has a file.

use bridge::plugin::LocalSource;

use super::section::SourceSection;

pub(super) const KEYS: [&str; 4] = ["type", "path", "checksum", "build"];

pub(super) fn read(source: &mut SourceSection<'_, '_>) -> Option<LocalSource> {
    let path = source.required("path");
    let checksum = source.checksum();
    let build = source.build();
    let (path, _) = path?;
    Some(LocalSource { checksum, build, ..LocalSource::new(path) })
}
