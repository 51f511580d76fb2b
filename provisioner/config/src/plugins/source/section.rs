//! `source` of a known kind, with the readers of what several kinds have: locations, platforms, checksums.

use std::collections::BTreeMap;
use std::time::Duration;

use bridge::message_text::MessageText;
use bridge::plugin::{
    Build, Checksum, GithubReleaseSource, Platform, PluginValueError, Sha256Digest, SourceKind, SourceToken,
    WantedVersion,
};

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::placeholder::Namespaces;
use crate::reader::{Reader, Section};
use crate::tree::Node;

pub(super) const PLUGIN: Code = Code("plugin");

/// Source of a known kind. Its methods report errors.
pub(super) struct SourceSection<'s, 'n> {
    pub(super) plugin_name: &'s str,
    pub(super) kind: SourceKind,
    pub(super) section: Section<'s>,
    pub(super) namespaces: Namespaces<'n>,
    pub(super) diagnostics: &'s mut Vec<Diagnostic>,
}

impl SourceSection<'_, '_> {
    fn reader(&mut self) -> Reader<'_> {
        Reader::new(self.diagnostics)
    }

    /// Returns an error about the plugin.
    pub(super) fn error(&self, span: Span, text: impl Into<MessageText>) -> Diagnostic {
        let text: MessageText = text.into();
        Diagnostic::error(PLUGIN, span, format_args!("plugin {:?}: {text}", self.plugin_name))
    }

    /// Reports an error about the plugin.
    pub(super) fn fail(&mut self, span: Span, text: impl Into<MessageText>) {
        let error = self.error(span, text);
        self.diagnostics.push(error);
    }

    /// Returns the text below a key; `None` if it is missing or empty.
    pub(super) fn text(&mut self, key: &str) -> Option<(String, Span)> {
        let section = self.section;
        self.reader().text_at(section, key).filter(|(text, _)| !text.is_empty())
    }

    /// Returns the text below a key, which must not be missing.
    pub(super) fn required(&mut self, key: &str) -> Option<(String, Span)> {
        let text = self.text(key);
        if text.is_none() {
            self.report_missing(key, &[key]);
        }
        text
    }

    /// Returns the text below a key or below its alias, one of which must not be missing. Both may have the same text.
    pub(super) fn required_or_alias(&mut self, key: &str, alias: &str) -> Option<(String, Span)> {
        if self.text(alias).is_none() && self.text(key).is_none() {
            self.report_missing(key, &[alias, key]);
        }
        self.optional_or_alias(key, alias)
    }

    /// Returns the text below a key or below its alias, both of which may be missing.
    pub(super) fn optional_or_alias(&mut self, key: &str, alias: &str) -> Option<(String, Span)> {
        match (self.text(alias), self.text(key)) {
            (Some((first, _)), Some((second, span))) if first != second => {
                self.fail(span, format_args!("source.{alias} and source.{key} disagree"));
                None
            }
            (first, second) => first.or(second),
        }
    }

    /// Reports that a key is missing in all its spellings. One that is present but invalid is already reported.
    fn report_missing(&mut self, key: &str, spellings: &[&str]) {
        let is_present = |key: &&str| {
            self.section.get(key).is_some_and(|node| node.as_scalar().is_none_or(|scalar| !scalar.text.is_empty()))
        };
        if !spellings.iter().any(is_present) {
            let kind = self.kind.as_str();
            let error =
                self.error(self.section.span, format_args!("source.{key} is required for source type {kind:?}"));
            // `version: >1` begins a block of text, which is empty.
            let is_block = |key: &&str| {
                let scalar = self.section.get(key).and_then(Node::as_scalar);
                scalar.is_some_and(|scalar| scalar.text.is_empty() && !scalar.plain)
            };
            let is_range = key == "version" && spellings.iter().any(is_block);
            self.diagnostics.push(if is_range {
                error.help("a range that begins with `>` is put in quotes: `\">1\"`")
            } else {
                error
            });
        }
    }

    /// Returns the declared platform; `None` for the current one.
    pub(super) fn platform(&mut self) -> Option<Platform> {
        let (platform, span) = self.text("platform").filter(|(platform, _)| platform != "auto")?;
        let parsed = platform.parse();
        if parsed.is_err() {
            self.fail(span, format_args!("unsupported platform {platform:?}"));
        }
        parsed.ok()
    }

    /// Returns the wanted version of a text. Reports one that cannot be read.
    pub(super) fn wanted(
        &mut self,
        (text, span): (String, Span),
        parse: impl Fn(&str) -> Result<WantedVersion, PluginValueError>,
    ) -> Option<WantedVersion> {
        let parsed = parse(&text);
        parsed
            .map_err(|error| {
                let error = self.error(span, MessageText::of(&error));
                self.diagnostics
                    .push(error.help("a range is written as in Cargo: `^1.2`, `~1.4`, `=1.2.3`, `\">=1, <2\"`"));
            })
            .ok()
    }

    /// Returns the age from which on a release is accepted.
    pub(super) fn minimum_age(&mut self) -> Duration {
        let Some((text, span)) = self.text("minimumAge") else { return GithubReleaseSource::MINIMUM_AGE };
        pulumi_proto::duration::parse(&text).unwrap_or_else(|| {
            let error = self.error(span, format_args!("invalid source.minimumAge {text:?}"));
            self.diagnostics.push(error.help("write a duration such as `24h`; `0s` accepts each release"));
            GithubReleaseSource::MINIMUM_AGE
        })
    }

    pub(super) fn token(&mut self) -> Option<SourceToken> {
        let section = self.section;
        let token = self.reader().secret_at(section, "token")?;
        SourceToken::new(token.expose().to_owned())
    }

    /// Returns the build of the files: `true`, or the command of a shell.
    pub(super) fn build(&mut self) -> Option<Build> {
        let node = self.section.get("build").filter(|node| !node.is_unknown())?;
        match node.as_scalar().map(|scalar| (scalar.text.as_str(), scalar.plain)) {
            Some(("true", true)) => Some(Build::ByRuntime),
            Some(("false", true)) => None,
            Some((command, _)) if !command.trim().is_empty() => Some(Build::Command(command.to_owned())),
            _ => {
                let error = self.error(node.span, "invalid source.build");
                self.diagnostics.push(
                    error.help("write `true` for the build of the runtime, or the command that builds the plugin"),
                );
                None
            }
        }
    }

    /// Returns whether an address that is not encrypted is accepted as it is.
    pub(super) fn insecure(&mut self) -> bool {
        let section = self.section;
        self.reader().boolean(section, "insecure").unwrap_or(false)
    }

    pub(super) fn checksum(&mut self) -> Option<Checksum> {
        let node = self.section.get("checksum")?;
        let Some(platforms) = node.as_mapping() else { return self.digest(node).map(Checksum::One) };
        let mut digests = BTreeMap::new();
        for entry in platforms {
            match entry.key.parse::<Platform>() {
                Ok(platform) => digests.extend(self.digest(&entry.value).map(|digest| (platform, digest))),
                Err(_) => self.fail(entry.key_span, format_args!("unsupported platform {:?}", entry.key)),
            }
        }
        Some(Checksum::ByPlatform(digests))
    }

    /// Returns whether a checksum is declared and not known in this process.
    pub(super) fn has_unknown_checksum(&self) -> bool {
        let Some(node) = self.section.get("checksum") else { return false };
        let platforms = node.as_mapping().into_iter().flatten();
        node.is_unknown() || platforms.into_iter().any(|entry| entry.value.is_unknown())
    }

    fn digest(&mut self, node: &Node) -> Option<Sha256Digest> {
        if node.is_unknown() {
            return None;
        }
        let digest = node.as_scalar().and_then(|scalar| scalar.text.parse().ok());
        if digest.is_none() {
            let error = self.error(node.span, "invalid checksum");
            self.diagnostics.push(error.help("a checksum is `sha256:` and 64 hexadecimal digits"));
        }
        digest
    }

    /// Reports an address that is neither encrypted nor accepted as it is, without a checksum that protects the files.
    pub(super) fn report_unprotected(&mut self, span: Span) {
        if self.has_unknown_checksum() {
            return;
        }
        let error = self.error(span, "the address is not encrypted, and no checksum is declared");
        self.diagnostics.push(
            error.help("use an https address, or declare `checksum`; `insecure: true` accepts the address as it is"),
        );
    }
}
