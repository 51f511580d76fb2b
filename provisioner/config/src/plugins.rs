//! `plugins` of server.yaml (docs/spec/simple-container.md#2.5). In a `source` that is not local, `path` is accepted
//! for `repository`, and `ref` for `version`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use bridge::message_text::MessageText;
use bridge::plugin::{
    Checksum, GitSource, GithubReleaseSource, InitSecrets, Keep, LocalSource, Platform, PluginConfig, PluginName,
    PluginSource, PluginValueError, Retry, Sha256Digest, SourceToken,
};
use pulumi_proto::property::PropertyValue;

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::placeholder::{ReferenceRule, Resolver, UsedSecrets};
use crate::plugin_dialect;
use crate::plugin_sandbox;
use crate::reader::{Reader, Section};
use crate::secret_text::SecretText;
use crate::secrets::{Auth, Secrets};
use crate::tree::{Mapping, Node, Value};
use crate::values;

const PLUGIN: Code = Code("plugin");
const KEYS: [&str; 17] = [
    "name",
    "enabled",
    "source",
    "config",
    "passEnv",
    "initSecrets",
    "startTimeout",
    "keep",
    "retry",
    "sandbox",
    "readable",
    "writable",
    "ports",
    "package",
    "protocol",
    "goPlugin",
    "startAttempts",
];
const SOURCE_KEYS: [&str; 12] = [
    "type",
    "path",
    "repository",
    "ref",
    "version",
    "platform",
    "checksum",
    "asset",
    "token",
    "apiUrl",
    "subdir",
    "insecure",
];
const SOURCE_TYPES: [&str; 3] = ["local", "github-release", "git"];

/// Resolved entry of `plugins`.
#[derive(Clone, Debug)]
pub struct PluginDeclaration {
    /// Declaration for the plugin host.
    pub plugin: PluginConfig,
    /// Position of the name.
    pub name_span: Span,
    /// Configuration with positions: a mapping without references.
    pub config: Node,
    /// Secrets that are sent in Initialize.
    pub secrets: PluginSecrets,
}

/// Secrets that are sent to a plugin in Initialize (docs/spec/simple-container.md#10.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginSecrets {
    /// Values by name.
    pub secrets: BTreeMap<String, SecretText>,
    /// Auth entries by name.
    pub auth: BTreeMap<String, Auth>,
}

impl PluginDeclaration {
    /// Returns the name of the plugin, which is also the name of its provider resource.
    pub fn name(&self) -> &str {
        self.plugin.name.as_str()
    }

    /// Returns the Pulumi package, which is the first part of the plugin's type tokens.
    pub fn package(&self) -> &str {
        self.plugin.package.as_str()
    }
}

/// State of the readers: resolver and collected diagnostics.
struct Context<'c, 'r> {
    resolver: &'c mut Resolver<'r>,
    diagnostics: Vec<Diagnostic>,
}

/// Reads the section. Leaves out invalid plugins and reports them.
pub(super) fn read(node: Option<&Node>, resolver: &mut Resolver<'_>) -> Vec<PluginDeclaration> {
    let Some(node) = node.filter(|node| !node.is_null()) else { return Vec::new() };
    let mut context = Context { resolver, diagnostics: Vec::new() };
    let mut plugins = Vec::new();
    match node.as_sequence() {
        Some(items) => {
            let mut names: BTreeMap<String, Span> = BTreeMap::new();
            for (index, item) in items.iter().enumerate() {
                plugins.extend(context.read_plugin(index + 1, item, &mut names));
            }
        }
        None => context.diagnostics.push(
            Diagnostic::error(PLUGIN, node.span, "plugins must be a list")
                .help("write `plugins:` and below it `- name: …` for each plugin"),
        ),
    }
    let diagnostics = context.diagnostics;
    resolver.diagnostics.extend(diagnostics);
    plugins
}

impl Context<'_, '_> {
    fn reader(&mut self) -> Reader<'_> {
        Reader::new(&mut self.diagnostics)
    }

    fn report_error(&mut self, span: Span, summary: impl Into<MessageText>) {
        self.diagnostics.push(Diagnostic::error(PLUGIN, span, summary));
    }

    fn read_plugin(
        &mut self,
        number: usize,
        node: &Node,
        names: &mut BTreeMap<String, Span>,
    ) -> Option<PluginDeclaration> {
        let errors_before = self.error_count();
        let section = self.reader().mapping(node, &format!("plugin #{number}")).or_else(|| {
            if node.is_null() {
                self.report_error(node.span, format_args!("plugin #{number}: name is required"));
            }
            None
        })?;
        self.reader().reject_unknown_keys(section, &KEYS, "a plugin");
        let Some((name, name_span)) = self.reader().text_at(section, "name").filter(|(name, _)| !name.is_empty())
        else {
            self.report_error(section.span, format_args!("plugin #{number}: name is required"));
            return None;
        };
        let parsed_name = self.check_name(&name, name_span, names);
        let package = self.read_package(&name, section);
        let enabled = self.reader().boolean(section, "enabled").unwrap_or(true);
        let source = self.read_source(&name, section);
        let (config, used) = self.read_config(section);
        let pass_env = self.reader().texts(section, "passEnv").into_iter().map(|(name, _)| name).collect();
        let init_secrets = self.read_init_secrets(&name, section);
        let secrets = self.select_secrets(&name, init_secrets, used);
        let start_timeout = self.read_start_timeout(&name, section);
        let keep = self.read_keep(&name, section);
        let retry = self.read_retry(section);
        let dialect = plugin_dialect::read(&name, section, &mut self.reader());
        let sandbox = plugin_sandbox::read(&name, section, &mut self.reader());
        if self.error_count() > errors_before {
            return None;
        }
        let parsed_name = parsed_name?;
        let mut plugin = PluginConfig::new(parsed_name.clone(), source?);
        plugin.package = package.unwrap_or(parsed_name);
        plugin.enabled = enabled;
        plugin.config = match values::evaluate_constant(&config) {
            PropertyValue::Map(map) => map,
            _ => return None,
        };
        plugin.pass_env = pass_env;
        plugin.init_secrets = init_secrets;
        plugin.start_timeout = start_timeout;
        plugin.keep = keep;
        plugin.retry = retry;
        plugin.dialect = dialect;
        plugin.sandbox = sandbox;
        Some(PluginDeclaration { plugin, name_span, config, secrets })
    }

    fn error_count(&self) -> usize {
        self.diagnostics
            .iter()
            .chain(&self.resolver.diagnostics)
            .filter(|d| d.severity == crate::diagnostics::Severity::Error)
            .count()
    }

    fn check_name(&mut self, name: &str, span: Span, names: &mut BTreeMap<String, Span>) -> Option<PluginName> {
        let parsed = name.parse::<PluginName>();
        match &parsed {
            Err(PluginValueError::ReservedName(_)) => {
                self.report_error(span, format_args!("plugin {name:?}: name is reserved"))
            }
            Err(_) => self.diagnostics.push(
                Diagnostic::error(PLUGIN, span, format_args!("plugin {name:?}: invalid name"))
                    .help("a name begins with a lower-case letter; lower-case letters, digits and `-` follow"),
            ),
            Ok(_) => {}
        }
        if let Some(first) = names.get(name) {
            self.diagnostics.push(
                Diagnostic::error(PLUGIN, span, format_args!("plugin {name:?} is declared more than once"))
                    .label(*first, "first declared here"),
            );
        } else {
            names.insert(name.to_owned(), span);
        }
        parsed.ok()
    }

    fn read_package(&mut self, name: &str, section: Section<'_>) -> Option<PluginName> {
        let (package, span) = self.reader().text_at(section, "package")?;
        let parsed = package.parse();
        if parsed.is_err() {
            self.report_error(span, format_args!("plugin {name:?}: invalid package {package:?}"));
        }
        parsed.ok()
    }

    fn read_config(&mut self, section: Section<'_>) -> (Node, UsedSecrets) {
        let before = std::mem::take(&mut self.resolver.used);
        let config = match self.reader().section(section, "config", "config").and_then(|_| section.get("config")) {
            Some(node) => {
                values::check(node, &mut self.diagnostics);
                self.resolver.resolve(node, ReferenceRule::Rejected)
            }
            None => Node { value: Value::Mapping(Mapping::default()), span: section.span },
        };
        (config, std::mem::replace(&mut self.resolver.used, before))
    }

    fn read_init_secrets(&mut self, name: &str, section: Section<'_>) -> InitSecrets {
        let Some((text, span)) = self.reader().text_at(section, "initSecrets") else { return InitSecrets::default() };
        match text.as_str() {
            "referenced" => InitSecrets::Referenced,
            "all" => InitSecrets::All,
            _ => {
                self.diagnostics.push(
                    Diagnostic::error(PLUGIN, span, format_args!("plugin {name:?}: unknown initSecrets {text:?}"))
                        .help("use `referenced` (the secrets that `config` references) or `all`"),
                );
                InitSecrets::Referenced
            }
        }
    }

    /// Selects the secrets to send: those that `config` references and the auth entry with the plugin's name, or all.
    fn select_secrets(&self, name: &str, init_secrets: InitSecrets, used: UsedSecrets) -> PluginSecrets {
        let secrets: &Secrets = self.resolver.namespaces().secrets;
        match init_secrets {
            InitSecrets::All => PluginSecrets { secrets: secrets.values.clone(), auth: secrets.auth.clone() },
            InitSecrets::Referenced => {
                let names: BTreeSet<String> = used.auth.into_iter().chain([name.to_owned()]).collect();
                let value = |key: String| Some((key.clone(), secrets.values.get(&key)?.clone()));
                let auth = |name: String| Some((name.clone(), secrets.auth.get(&name)?.clone()));
                PluginSecrets {
                    secrets: used.secrets.into_iter().filter_map(value).collect(),
                    auth: names.into_iter().filter_map(auth).collect(),
                }
            }
        }
    }

    fn read_keep(&mut self, name: &str, section: Section<'_>) -> Keep {
        let Some((text, span)) = self.reader().text_at(section, "keep") else { return Keep::default() };
        match text.as_str() {
            "run" => Keep::Run,
            "never" => Keep::Never,
            _ => {
                self.diagnostics.push(
                    Diagnostic::error(PLUGIN, span, format_args!("plugin {name:?}: unknown keep {text:?}"))
                        .help("use `run` (one process for all phases of a run) or `never` (one for each phase)"),
                );
                Keep::default()
            }
        }
    }

    fn read_retry(&mut self, plugin: Section<'_>) -> Retry {
        let mut reader = self.reader();
        let Some(section) = reader.section(plugin, "retry", "retry") else { return Retry::default() };
        reader.reject_unknown_keys(section, &["mutations"], "retry");
        Retry { mutations: reader.boolean(section, "mutations").unwrap_or_default() }
    }

    fn read_start_timeout(&mut self, name: &str, section: Section<'_>) -> Duration {
        let Some((text, span)) = self.reader().text_at(section, "startTimeout") else {
            return PluginConfig::START_TIMEOUT;
        };
        pulumi_proto::duration::parse(&text).filter(|timeout| !timeout.is_zero()).unwrap_or_else(|| {
            self.diagnostics.push(
                Diagnostic::error(PLUGIN, span, format_args!("plugin {name:?}: invalid startTimeout {text:?}"))
                    .help("write a duration such as `90s` or `2m`"),
            );
            PluginConfig::START_TIMEOUT
        })
    }

    fn read_source(&mut self, name: &str, plugin: Section<'_>) -> Option<PluginSource> {
        let missing = |context: &mut Self, span| {
            context.diagnostics.push(
                Diagnostic::error(PLUGIN, span, format_args!("plugin {name:?}: source.type is required"))
                    .help(format_args!("the types are {}", SOURCE_TYPES.join(", "))),
            );
        };
        let Some(node) = plugin.get("source") else {
            missing(self, plugin.span);
            return None;
        };
        let node = self.resolver.resolve(node, ReferenceRule::Rejected);
        let section = self.reader().mapping(&node, "`source`")?;
        self.reader().reject_unknown_keys(section, &SOURCE_KEYS, "`source`");
        let Some((kind, kind_span)) = self.reader().text_at(section, "type").filter(|(kind, _)| !kind.is_empty())
        else {
            missing(self, section.span);
            return None;
        };
        if !SOURCE_TYPES.contains(&kind.as_str()) {
            self.diagnostics.push(
                Diagnostic::error(PLUGIN, kind_span, format_args!("plugin {name:?}: unknown source type {kind:?}"))
                    .did_you_mean(&kind, SOURCE_TYPES)
                    .help(format_args!("the types are {}", SOURCE_TYPES.join(", "))),
            );
            return None;
        }
        SourceReader { context: self, name, section, kind }.read()
    }
}

/// Reads a `source` of a known type.
struct SourceReader<'s, 'c, 'r> {
    context: &'s mut Context<'c, 'r>,
    name: &'s str,
    section: Section<'s>,
    kind: String,
}

impl SourceReader<'_, '_, '_> {
    fn read(mut self) -> Option<PluginSource> {
        if self.kind == "local" {
            return self.read_local();
        }
        let location = self.either_key("path", "repository");
        let revision = self.either_key("ref", "version");
        let platform = self.read_platform();
        let checksum = self.read_checksum();
        let (location, location_span) = self.require(location, "repository")?;
        let (revision, revision_span) = self.require(revision, "version")?;
        let token = self.context.reader().secret_at(self.section, "token");
        let token = token.and_then(|token| SourceToken::new(token.expose().to_owned()));
        let insecure = self.context.reader().boolean(self.section, "insecure").unwrap_or(false);
        let api_url = self.read_text("apiUrl");
        let mut text = |key: &str| self.read_text(key).map(|(text, _)| text);
        let (asset, subdir) = (text("asset"), text("subdir"));
        if self.kind == "git" {
            if self.context.resolver.namespaces().root_has_reserved(&location, '%') {
                let summary = "the path of the repository contains `%`, and git decodes `%` in a `file://` URL";
                let diagnostic =
                    Diagnostic::error(PLUGIN, location_span, format_args!("plugin {:?}: {summary}", self.name));
                self.context.diagnostics.push(diagnostic.help("write the path without `file://`"));
                return None;
            }
            let subdir = subdir.map(PathBuf::from).unwrap_or_default();
            let source = GitSource { url: location, revision, subdir, platform, checksum, token, insecure };
            return self.protected(PluginSource::Git(source), location_span);
        }
        if !is_github_repository(&location) {
            return self.fail(location_span, "source.repository must be `owner/name` or an https URL of a repository");
        }
        if revision == "latest" && checksum.is_some() {
            return self.fail(
                revision_span,
                "source.version `latest` cannot have a checksum: name the version that has this checksum",
            );
        }
        let address_span = api_url.as_ref().map_or(location_span, |(_, span)| *span);
        let api_url = api_url.map(|(url, _)| url);
        let release = GithubReleaseSource::new(location, revision);
        let source = GithubReleaseSource { platform, checksum, asset, token, api_url, insecure, ..release };
        self.protected(PluginSource::GithubRelease(source), address_span)
    }

    /// Returns the source unless its address is neither encrypted nor accepted as it is, and no checksum protects it.
    fn protected(&mut self, source: PluginSource, span: Span) -> Option<PluginSource> {
        let address = match &source {
            PluginSource::Local(_) => None,
            PluginSource::GithubRelease(release) => release.unprotected_address(),
            PluginSource::Git(git) => git.unprotected_address(),
        };
        if address.is_none() {
            return Some(source);
        }
        let name = &self.name;
        let summary = format_args!("plugin {name:?}: the address is not encrypted, and no checksum is declared");
        self.context.diagnostics.push(
            Diagnostic::error(PLUGIN, span, summary)
                .help("use an https address, or declare `checksum`; `insecure: true` accepts the address as it is"),
        );
        None
    }

    fn read_local(mut self) -> Option<PluginSource> {
        for key in ["ref", "version"] {
            if let Some(entry) = self.section.mapping.entry(key) {
                let name = &self.name;
                let summary = format_args!("plugin {name:?}: source.{key} is ignored for source type \"local\"");
                self.context.diagnostics.push(Diagnostic::warning(PLUGIN, entry.key_span, summary));
            }
        }
        let path = self.read_text("path");
        let checksum = self.read_checksum();
        let (path, _) = self.require(path, "path")?;
        Some(PluginSource::Local(LocalSource { path: path.into(), checksum }))
    }

    /// Reports an error of the source and returns `None`.
    fn fail<T>(&mut self, span: Span, text: &str) -> Option<T> {
        self.context.report_error(span, format_args!("plugin {:?}: {text}", self.name));
        None
    }

    /// Returns the text below a key; `None` if it is missing or empty.
    fn read_text(&mut self, key: &str) -> Option<(String, Span)> {
        self.context.reader().text_at(self.section, key).filter(|(text, _)| !text.is_empty())
    }

    fn either_key(&mut self, first: &str, second: &str) -> Option<(String, Span)> {
        match (self.read_text(first), self.read_text(second)) {
            (Some((a, _)), Some((b, span))) if a != b => {
                self.fail(span, &format!("source.{first} and source.{second} disagree"))
            }
            (a, b) => a.or(b),
        }
    }

    fn require(&mut self, value: Option<(String, Span)>, key: &str) -> Option<(String, Span)> {
        let spellings = match key {
            "repository" => ["path", "repository"],
            "version" => ["ref", "version"],
            other => [other; 2],
        };
        // A key that is present but invalid is already reported.
        let is_present = |key: &&str| {
            self.section.get(key).is_some_and(|node| node.as_scalar().is_none_or(|scalar| !scalar.text.is_empty()))
        };
        if value.is_none() && !spellings.iter().any(is_present) {
            let text = format!("source.{key} is required for source type {:?}", self.kind);
            return self.fail(self.section.span, &text);
        }
        value
    }

    fn read_platform(&mut self) -> Option<Platform> {
        let (platform, span) = self.read_text("platform").filter(|(platform, _)| platform != "auto")?;
        platform.parse().ok().or_else(|| self.fail(span, &format!("unsupported platform {platform:?}")))
    }

    fn read_checksum(&mut self) -> Option<Checksum> {
        let node = self.section.get("checksum")?;
        let Some(platforms) = node.as_mapping() else { return self.read_digest(node).map(Checksum::One) };
        let mut digests = BTreeMap::new();
        for entry in platforms {
            match entry.key.parse::<Platform>() {
                Ok(platform) => {
                    digests.extend(self.read_digest(&entry.value).map(|digest| (platform, digest)));
                }
                Err(_) => {
                    self.fail::<()>(entry.key_span, &format!("unsupported platform {:?}", entry.key));
                }
            }
        }
        Some(Checksum::ByPlatform(digests))
    }

    fn read_digest(&mut self, node: &Node) -> Option<Sha256Digest> {
        let digest = node.as_scalar().and_then(|scalar| scalar.text.parse().ok());
        if digest.is_none() {
            self.report_invalid_checksum(node.span);
        }
        digest
    }

    fn report_invalid_checksum(&mut self, span: Span) {
        self.context.diagnostics.push(
            Diagnostic::error(PLUGIN, span, format_args!("plugin {:?}: invalid checksum", self.name))
                .help("a checksum is `sha256:` and 64 hexadecimal digits"),
        );
    }
}

/// Returns true for `owner/name` or the https URL of a repository.
fn is_github_repository(text: &str) -> bool {
    let path = match text.strip_prefix("https://") {
        Some(rest) => rest.split_once('/').filter(|(host, _)| !host.is_empty()).map(|(_, path)| path),
        None => Some(text),
    };
    let path = path.map(|path| path.strip_suffix('/').unwrap_or(path));
    let word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    path.and_then(|path| path.split_once('/')).is_some_and(|(owner, name)| word(owner) && word(name))
}
