//! Closes the journal of another run.

use std::fs::OpenOptions;
use std::path::Path;

use bridge::fs::{FileError, calls};

use super::closing::Closing;
use super::encode::write_close;
use super::end::FileEnd;
use super::error::JournalError;

/// Appends the line that closes the journal.
pub(crate) fn append_close_line(path: &Path, end: FileEnd, closing: &Closing) -> Result<(), JournalError> {
    let failed = || FileError::of("write", path);
    let file = calls::open(OpenOptions::new().append(true), path).map_err(failed())?;
    let mut text = Vec::new();
    if end == FileEnd::InLine {
        text.push(b'\n');
    }
    write_close(&mut text, closing);
    calls::write_all(&file, path, &text).and_then(|()| calls::sync_data(&file, path)).map_err(failed())?;
    Ok(())
}
