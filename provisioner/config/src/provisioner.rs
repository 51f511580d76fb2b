//! `provisioner` of server.yaml: location of the state, and secrets manager (docs/spec/simple-container.md#6).

mod block_reader;
mod secrets_provider;
mod state_storage;

use bridge::error::shorten;
use bridge::message_text::MessageText;

use self::block_reader::{BlockReader, CODE, Field, has_scheme};
use self::state_storage::SERVICE_SCHEMES;

use crate::diagnostics::{Diagnostic, Span};
use crate::placeholder::Resolver;
use crate::reader::Section;
use crate::stack::{Confirm, JournalGuarantee, MaxDeletes, PendingCreateRule, Provisioner};
use crate::tree::{Mapping, Node};

const KEYS: [&str; 9] = [
    "organization",
    "state-storage",
    "secrets-provider",
    "confirm",
    "maxDeletes",
    "acceptMissing",
    "pendingCreates",
    "lock",
    "journal",
];

/// Reads the block. If it is inherited from another stack, its placeholders are resolved for the current stack.
pub(super) fn read(node: Option<&Node>, file_start: Option<Span>, resolver: &mut Resolver<'_>) -> Option<Provisioner> {
    let mut diagnostics = Vec::new();
    let provisioner = BlockReader { resolver, diagnostics: &mut diagnostics }.read_provisioner(node, file_start);
    resolver.diagnostics.extend(diagnostics);
    provisioner
}

/// Reads location and secrets manager of a stack in `references`: what the entry does not say is that of the own provisioner. `None` if
/// there is an error, which is reported.
pub(super) fn of_reference(entry: Section<'_>, own: &Provisioner, resolver: &mut Resolver<'_>) -> Option<Provisioner> {
    let mut diagnostics = Vec::new();
    let mut reader = BlockReader { resolver, diagnostics: &mut diagnostics };
    let is_given = |key| entry.get(key).is_some_and(|node| !node.is_null());
    let (mut state_storage, mut secrets_provider) =
        (Some(own.state_storage.clone()), Some(own.secrets_provider.clone()));
    if is_given("state-storage") {
        state_storage = reader.read_state_storage(Some(entry), entry.span);
    }
    if is_given("secrets-provider") {
        secrets_provider = reader.read_secrets_provider(Some(entry), entry.span);
    }
    resolver.diagnostics.extend(diagnostics);
    Some(Provisioner { state_storage: state_storage?, secrets_provider: secrets_provider?, ..own.clone() })
}

impl BlockReader<'_, '_> {
    fn read_provisioner(&mut self, node: Option<&Node>, file_start: Option<Span>) -> Option<Provisioner> {
        let section = match node.filter(|node| !node.is_null()) {
            Some(node) => Some(self.reader().mapping(node, "`provisioner`")?),
            None => None,
        };
        let kind = section.and_then(|section| self.reader().text_at(section, "type"));
        let (kind, span) =
            kind.map_or((String::new(), section.map(|section| section.span).or(file_start)), |(k, s)| (k, Some(s)));
        if kind != "pulumi" {
            self.diagnostics.push(
                Diagnostic::error(CODE, span, format_args!("unknown provisioner type {kind:?}"))
                    .help("write `provisioner: { type: pulumi, config: … }`"),
            );
            return None;
        }
        let section = section?;
        self.reader().warn_of_unknown_keys(section, &["type", "config", "inherit"]);
        let config = self.reader().section(section, "config", "provisioner.config");
        let (mut organization, mut confirm, mut max_deletes, mut takeover) = (None, Confirm::default(), None, true);
        let (mut accept_missing, mut pending_creates, mut journal) = (false, PendingCreateRule::default(), None);
        if let Some(config) = config {
            self.reader().reject_misspelled_and_warn_of_unknown_keys(config, &KEYS, "provisioner.config");
            organization = self.read_organization(config);
            confirm = self.read_confirm(config);
            max_deletes = self.read_max_deletes(config);
            accept_missing = self.reader().boolean(config, "acceptMissing").unwrap_or_default();
            pending_creates = self.read_pending_creates(config);
            takeover = self.read_takeover(config);
            journal = self.read_journal(config);
        }
        let state_storage = self.read_state_storage(config, section.span);
        let secrets_provider = self.read_secrets_provider(config, section.span);
        Some(Provisioner {
            organization,
            state_storage: state_storage?,
            secrets_provider: secrets_provider?,
            confirm,
            max_deletes,
            accept_missing,
            pending_creates,
            takeover,
            journal,
        })
    }

    fn read_confirm(&mut self, config: Section<'_>) -> Confirm {
        let Some(Field { text, span, .. }) = self.read_known(config, "confirm") else { return Confirm::default() };
        match text.as_str() {
            "never" => Confirm::Never,
            "deletes" => Confirm::Deletes,
            "always" => Confirm::Always,
            _ => {
                let summary = MessageText::new(format_args!("unknown value {} of `confirm`", shorten(&text)));
                self.diagnostics.push(
                    Diagnostic::error(CODE, span, summary)
                        .did_you_mean(&text, ["never", "deletes", "always"])
                        .help("write `never`, `deletes` (the default) or `always`"),
                );
                Confirm::default()
            }
        }
    }

    fn read_pending_creates(&mut self, config: Section<'_>) -> PendingCreateRule {
        let Some(Field { text, span, .. }) = self.read_known(config, "pendingCreates") else {
            return PendingCreateRule::default();
        };
        let found = PendingCreateRule::ALL.into_iter().find(|(name, _)| *name == text);
        if found.is_none() {
            let summary = MessageText::new(format_args!("unknown value {} of `pendingCreates`", shorten(&text)));
            let names = PendingCreateRule::ALL.map(|(name, _)| name);
            self.diagnostics.push(
                Diagnostic::error(CODE, span, summary)
                    .did_you_mean(&text, names)
                    .help("write `ask` (the default), `refuse` or `recreate`"),
            );
        }
        found.map(|(_, rule)| rule).unwrap_or_default()
    }

    /// Reads `lock: { takeover }`.
    fn read_takeover(&mut self, config: Section<'_>) -> bool {
        let Some(lock) = self.reader().section(config, "lock", "provisioner.config.lock") else { return true };
        self.reader().warn_of_unknown_keys(lock, &["takeover"]);
        self.reader().boolean(lock, "takeover").unwrap_or(true)
    }

    fn read_journal(&mut self, config: Section<'_>) -> Option<JournalGuarantee> {
        let Field { text, span, .. } = self.read_known(config, "journal")?;
        let found = JournalGuarantee::ALL.into_iter().find(|(name, _)| *name == text);
        if found.is_none() {
            let summary = MessageText::new(format_args!("unknown value {} of `journal`", shorten(&text)));
            let names = JournalGuarantee::ALL.map(|(name, _)| name);
            self.diagnostics.push(Diagnostic::error(CODE, span, summary).did_you_mean(&text, names).help(
                "write `intents` (the default in a bucket or a database), `sync` or `local` (the default in a folder)",
            ));
        }
        found.map(|(_, guarantee)| guarantee)
    }

    fn read_max_deletes(&mut self, config: Section<'_>) -> Option<MaxDeletes> {
        let Field { text, span, .. } = self.read_known(config, "maxDeletes")?;
        let Ok(count) = text.parse() else {
            let summary = MessageText::new(format_args!("`maxDeletes` must be a number, not {}", shorten(&text)));
            self.diagnostics.push(
                Diagnostic::error(CODE, span, summary)
                    .help("write the number of resources that a run may delete, such as 3"),
            );
            return None;
        };
        Some(MaxDeletes { count, span })
    }

    /// Reads `organization`. Self-managed backends accept only the name `organization`.
    fn read_organization(&mut self, config: Section<'_>) -> Option<String> {
        let organization = self.read_known(config, "organization")?;
        // The error of the state storage says what to do with the organization of the service.
        if organization.text != "organization" && !is_in_service(config) {
            self.diagnostics.push(
                Diagnostic::error(CODE, organization.span, "organization name must be 'organization'")
                    .help("leave `organization` out: a state in a folder, a bucket or a database has none"),
            );
        }
        Some(organization.text)
    }
}

/// Returns whether the state storage is the service Pulumi Cloud, which is not supported.
fn is_in_service(config: Section<'_>) -> bool {
    let storage = config.get("state-storage").and_then(Node::as_mapping);
    let text = |mapping: Option<&Mapping>, key: &str| Some(mapping?.get(key)?.as_scalar()?.text.clone());
    let path = storage.and_then(|storage| text(storage.get("config")?.as_mapping(), "path"));
    text(storage, "type").is_some_and(|kind| kind == "pulumi-cloud")
        || path.is_some_and(|path| has_scheme(&path, &SERVICE_SCHEMES))
}
