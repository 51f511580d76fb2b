//! The files of a stack as written, before anything is inherited or resolved.

use crate::diagnostics::{FileId, Span};
use crate::reader::Section;
use crate::secrets::SecretsFile;
use crate::yaml::Document;

/// The files of one stack as written.
pub(super) struct RawStack {
    pub(super) server: Option<Document>,
    pub(super) server_file: Option<FileId>,
    pub(super) secrets: SecretsFile,
}

impl RawStack {
    /// The top of server.yaml.
    pub(super) fn root(&self) -> Option<Section<'_>> {
        let node = self.server.as_ref()?.root.as_ref()?;
        Some(Section { mapping: node.as_mapping()?, span: node.span })
    }

    /// A place for what is missing: the start of the file.
    pub(super) fn top(&self) -> Option<Span> {
        self.server_file.map(|file| Span { file, start: 0, end: 0 })
    }
}
