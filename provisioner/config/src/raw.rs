//! The parsed files of a stack, before inheritance and placeholders.

use crate::diagnostics::{FileId, Span};
use crate::reader::Section;
use crate::secrets::SecretsFile;
use crate::yaml::Document;

/// The parsed files of one stack.
pub(super) struct RawStack {
    pub(super) server: Option<Document>,
    pub(super) server_file: Option<FileId>,
    pub(super) secrets: SecretsFile,
}

impl RawStack {
    /// Returns the top mapping of server.yaml.
    pub(super) fn root(&self) -> Option<Section<'_>> {
        let node = self.server.as_ref()?.root.as_ref()?;
        Some(Section { mapping: node.as_mapping()?, span: node.span })
    }

    /// Returns the start of server.yaml, the position at which a missing block is reported.
    pub(super) fn file_start(&self) -> Option<Span> {
        self.server_file.map(|file| Span { file, start: 0, end: 0 })
    }
}
