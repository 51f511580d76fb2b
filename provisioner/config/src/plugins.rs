//! `plugins` of server.yaml (simple-container §2.5), in both spellings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use bridge::plugin::{
    Checksum, GitSource, GithubReleaseSource, InitSecrets, LocalSource, Platform, PluginConfig, PluginName,
    PluginSource, PluginValueError, Sha256Digest, SourceToken,
};
use pulumi_proto::property::PropertyValue;

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::placeholder::{References, Resolver, Used};
use crate::reader::{Reader, Section};
use crate::secret_text::SecretText;
use crate::secrets::{Auth, Secrets};
use crate::tree::{Mapping, Node, Value};
use crate::values;

const PLUGIN: Code = Code("plugin");
const KEYS: [&str; 8] = ["name", "enabled", "source", "config", "passEnv", "initSecrets", "startTimeout", "package"];
const SOURCE_KEYS: [&str; 11] =
    ["type", "path", "repository", "ref", "version", "platform", "checksum", "asset", "token", "apiUrl", "subdir"];
const SOURCE_TYPES: [&str; 3] = ["local", "github-release", "git"];

/// One entry of `plugins`, resolved.
#[derive(Clone, Debug)]
pub struct PluginDeclaration {
    /// What the host needs to know.
    pub plugin: PluginConfig,
    /// Where the name was written.
    pub name_span: Span,
    /// Its configuration with positions: a mapping, without references.
    pub config: Node,
    /// What it is told when it is initialised.
    pub secrets: PluginSecrets,
}

/// What a plugin is told when it is initialised (simple-container §10.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginSecrets {
    /// Values by name.
    pub secrets: BTreeMap<String, SecretText>,
    /// Auth entries by name.
    pub auth: BTreeMap<String, Auth>,
}

impl PluginDeclaration {
    /// Its name; also the name of its provider resource.
    pub fn name(&self) -> &str {
        self.plugin.name.as_str()
    }

    /// The Pulumi package and prefix of its types.
    pub fn package(&self) -> &str {
        self.plugin.package.as_str()
    }
}

/// What the readers below hang on.
struct Context<'c, 'r> {
    resolver: &'c mut Resolver<'r>,
    found: Vec<Diagnostic>,
}

/// Reads the whole section. A plugin with mistakes is left out.
pub(super) fn read(node: Option<&Node>, resolver: &mut Resolver<'_>) -> Vec<PluginDeclaration> {
    let Some(node) = node.filter(|node| !node.is_null()) else { return Vec::new() };
    let mut context = Context { resolver, found: Vec::new() };
    let mut plugins = Vec::new();
    match node.as_sequence() {
        Some(items) => {
            let mut names: BTreeMap<String, Span> = BTreeMap::new();
            for (index, item) in items.iter().enumerate() {
                plugins.extend(context.plugin(index + 1, item, &mut names));
            }
        }
        None => context.found.push(
            Diagnostic::error(PLUGIN, node.span, "plugins must be a list")
                .help("write `plugins:` and below it `- name: …` for each plugin"),
        ),
    }
    let found = context.found;
    resolver.diagnostics.extend(found);
    plugins
}

impl Context<'_, '_> {
    fn reader(&mut self) -> Reader<'_> {
        Reader::new(&mut self.found)
    }

    fn fault(&mut self, span: Span, summary: String) {
        self.found.push(Diagnostic::error(PLUGIN, span, summary));
    }

    fn plugin(&mut self, number: usize, node: &Node, names: &mut BTreeMap<String, Span>) -> Option<PluginDeclaration> {
        let errors_before = self.errors();
        let section = self.reader().mapping(node, &format!("plugin #{number}")).or_else(|| {
            if node.is_null() {
                self.fault(node.span, format!("plugin #{number}: name is required"));
            }
            None
        })?;
        self.reader().only_keys(section, &KEYS, "a plugin");
        let Some((name, name_span)) = self.reader().text_at(section, "name").filter(|(name, _)| !name.is_empty())
        else {
            self.fault(section.span, format!("plugin #{number}: name is required"));
            return None;
        };
        let parsed_name = self.check_name(&name, name_span, names);
        let package = self.package(&name, section);
        let enabled = self.reader().boolean(section, "enabled").unwrap_or(true);
        let source = self.source(&name, section);
        let (config, used) = self.config(section);
        let pass_env = self.reader().texts(section, "passEnv").into_iter().map(|(name, _)| name).collect();
        let init_secrets = self.init_secrets(&name, section);
        let secrets = self.secrets(&name, init_secrets, used);
        let start_timeout = self.start_timeout(&name, section);
        if self.errors() > errors_before {
            return None;
        }
        let parsed_name = parsed_name?;
        let mut plugin = PluginConfig::new(parsed_name.clone(), source?);
        plugin.package = package.unwrap_or(parsed_name);
        plugin.enabled = enabled;
        plugin.config = match values::plain(&config) {
            PropertyValue::Map(map) => map,
            _ => return None,
        };
        plugin.pass_env = pass_env;
        plugin.init_secrets = init_secrets;
        plugin.start_timeout = start_timeout;
        Some(PluginDeclaration { plugin, name_span, config, secrets })
    }

    fn errors(&self) -> usize {
        self.found
            .iter()
            .chain(&self.resolver.diagnostics)
            .filter(|d| d.severity == crate::diagnostics::Severity::Error)
            .count()
    }

    fn check_name(&mut self, name: &str, span: Span, names: &mut BTreeMap<String, Span>) -> Option<PluginName> {
        let parsed = name.parse::<PluginName>();
        match &parsed {
            Err(PluginValueError::ReservedName(_)) => self.fault(span, format!("plugin {name:?}: name is reserved")),
            Err(_) => self.found.push(
                Diagnostic::error(PLUGIN, span, format!("plugin {name:?}: invalid name"))
                    .help("a name begins with a lower-case letter; lower-case letters, digits and `-` follow"),
            ),
            Ok(_) => {}
        }
        if let Some(first) = names.get(name) {
            self.found.push(
                Diagnostic::error(PLUGIN, span, format!("plugin {name:?} is declared more than once"))
                    .also(*first, "first declared here"),
            );
        } else {
            names.insert(name.to_owned(), span);
        }
        parsed.ok()
    }

    fn package(&mut self, name: &str, section: Section<'_>) -> Option<PluginName> {
        let (package, span) = self.reader().text_at(section, "package")?;
        let parsed = package.parse();
        if parsed.is_err() {
            self.fault(span, format!("plugin {name:?}: invalid package {package:?}"));
        }
        parsed.ok()
    }

    fn config(&mut self, section: Section<'_>) -> (Node, Used) {
        let before = std::mem::take(&mut self.resolver.used);
        let config = match self.reader().section(section, "config", "config").and_then(|_| section.get("config")) {
            Some(node) => {
                values::check(node, &mut self.found);
                self.resolver.tree(node, References::Refused)
            }
            None => Node { value: Value::Mapping(Mapping::default()), span: section.span },
        };
        (config, std::mem::replace(&mut self.resolver.used, before))
    }

    fn init_secrets(&mut self, name: &str, section: Section<'_>) -> InitSecrets {
        let Some((text, span)) = self.reader().text_at(section, "initSecrets") else { return InitSecrets::default() };
        match text.as_str() {
            "referenced" => InitSecrets::Referenced,
            "all" => InitSecrets::All,
            _ => {
                self.found.push(
                    Diagnostic::error(PLUGIN, span, format!("plugin {name:?}: unknown initSecrets {text:?}"))
                        .help("it is `referenced` (what `config` names) or `all`"),
                );
                InitSecrets::Referenced
            }
        }
    }

    /// What its configuration refers to, and the auth entry of its own name; or everything.
    fn secrets(&self, name: &str, init_secrets: InitSecrets, used: Used) -> PluginSecrets {
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

    fn start_timeout(&mut self, name: &str, section: Section<'_>) -> Duration {
        let Some((text, span)) = self.reader().text_at(section, "startTimeout") else {
            return PluginConfig::START_TIMEOUT;
        };
        pulumi_proto::duration::parse(&text).filter(|timeout| !timeout.is_zero()).unwrap_or_else(|| {
            self.found.push(
                Diagnostic::error(PLUGIN, span, format!("plugin {name:?}: invalid startTimeout {text:?}"))
                    .help("write a duration such as `90s` or `2m`"),
            );
            PluginConfig::START_TIMEOUT
        })
    }

    fn source(&mut self, name: &str, plugin: Section<'_>) -> Option<PluginSource> {
        let missing = |context: &mut Self, span| {
            context.found.push(
                Diagnostic::error(PLUGIN, span, format!("plugin {name:?}: source.type is required"))
                    .help(format!("the types are {}", SOURCE_TYPES.join(", "))),
            );
        };
        let Some(node) = plugin.get("source") else {
            missing(self, plugin.span);
            return None;
        };
        let node = self.resolver.tree(node, References::Refused);
        let section = self.reader().mapping(&node, "`source`")?;
        self.reader().only_keys(section, &SOURCE_KEYS, "`source`");
        let Some((kind, kind_span)) = self.reader().text_at(section, "type").filter(|(kind, _)| !kind.is_empty())
        else {
            missing(self, section.span);
            return None;
        };
        if !SOURCE_TYPES.contains(&kind.as_str()) {
            self.found.push(
                Diagnostic::error(PLUGIN, kind_span, format!("plugin {name:?}: unknown source type {kind:?}"))
                    .did_you_mean(&kind, SOURCE_TYPES)
                    .help(format!("the types are {}", SOURCE_TYPES.join(", "))),
            );
            return None;
        }
        SourceReader { context: self, name, section, kind }.read()
    }
}

/// Reads one `source` whose type is known.
struct SourceReader<'s, 'c, 'r> {
    context: &'s mut Context<'c, 'r>,
    name: &'s str,
    section: Section<'s>,
    kind: String,
}

impl SourceReader<'_, '_, '_> {
    fn read(mut self) -> Option<PluginSource> {
        if self.kind == "local" {
            return self.local();
        }
        let location = self.one_of("path", "repository");
        let revision = self.one_of("ref", "version");
        let platform = self.platform();
        let checksum = self.checksum();
        let (location, location_span) = self.required(location, "repository")?;
        let (revision, revision_span) = self.required(revision, "version")?;
        let token = self.context.reader().secret_at(self.section, "token");
        let token = token.and_then(|token| SourceToken::new(token.expose().to_owned()));
        let mut text = |key: &str| self.text(key).map(|(text, _)| text);
        let (asset, api_url, subdir) = (text("asset"), text("apiUrl"), text("subdir"));
        if self.kind == "git" {
            let subdir = subdir.map(PathBuf::from).unwrap_or_default();
            return Some(PluginSource::Git(GitSource { url: location, revision, subdir, platform, checksum, token }));
        }
        if !is_github_repository(&location) {
            return self.fault(location_span, "source.repository must be `owner/name` or an https URL of a repository");
        }
        if revision == "latest" && checksum.is_some() {
            return self
                .fault(revision_span, "source.version `latest` cannot have a checksum: name the version it is of");
        }
        let repository = location;
        let version = revision;
        Some(PluginSource::GithubRelease(GithubReleaseSource {
            repository,
            version,
            platform,
            checksum,
            asset,
            token,
            api_url,
        }))
    }

    fn local(mut self) -> Option<PluginSource> {
        for key in ["ref", "version"] {
            if let Some(entry) = self.section.mapping.entry(key) {
                let summary = format!("plugin {:?}: source.{key} is ignored for source type \"local\"", self.name);
                self.context.found.push(Diagnostic::warning(PLUGIN, entry.key_span, summary));
            }
        }
        let path = self.text("path");
        let checksum = self.checksum();
        let (path, _) = self.required(path, "path")?;
        Some(PluginSource::Local(LocalSource { path: path.into(), checksum }))
    }

    fn fault<T>(&mut self, span: Span, text: &str) -> Option<T> {
        self.context.fault(span, format!("plugin {:?}: {text}", self.name));
        None
    }

    /// A text that is there and not empty.
    fn text(&mut self, key: &str) -> Option<(String, Span)> {
        self.context.reader().text_at(self.section, key).filter(|(text, _)| !text.is_empty())
    }

    fn one_of(&mut self, first: &str, second: &str) -> Option<(String, Span)> {
        match (self.text(first), self.text(second)) {
            (Some((a, _)), Some((b, span))) if a != b => {
                self.fault(span, &format!("source.{first} and source.{second} disagree"))
            }
            (a, b) => a.or(b),
        }
    }

    fn required(&mut self, found: Option<(String, Span)>, key: &str) -> Option<(String, Span)> {
        let spellings = match key {
            "repository" => ["path", "repository"],
            "version" => ["ref", "version"],
            other => [other; 2],
        };
        // What is written and was refused has been told already.
        let written = |key: &&str| {
            self.section.get(key).is_some_and(|node| node.as_scalar().is_none_or(|scalar| !scalar.text.is_empty()))
        };
        if found.is_none() && !spellings.iter().any(written) {
            let text = format!("source.{key} is required for source type {:?}", self.kind);
            return self.fault(self.section.span, &text);
        }
        found
    }

    fn platform(&mut self) -> Option<Platform> {
        let (platform, span) = self.text("platform").filter(|(platform, _)| platform != "auto")?;
        platform.parse().ok().or_else(|| self.fault(span, &format!("unsupported platform {platform:?}")))
    }

    fn checksum(&mut self) -> Option<Checksum> {
        let node = self.section.get("checksum")?;
        let Some(platforms) = node.as_mapping() else { return self.digest(node).map(Checksum::One) };
        let mut digests = BTreeMap::new();
        for entry in platforms {
            match entry.key.parse::<Platform>() {
                Ok(platform) => {
                    digests.extend(self.digest(&entry.value).map(|digest| (platform, digest)));
                }
                Err(_) => {
                    self.fault::<()>(entry.key_span, &format!("unsupported platform {:?}", entry.key));
                }
            }
        }
        Some(Checksum::ByPlatform(digests))
    }

    fn digest(&mut self, node: &Node) -> Option<Sha256Digest> {
        let digest = node.as_scalar().and_then(|scalar| scalar.text.parse().ok());
        if digest.is_none() {
            self.invalid_checksum(node.span);
        }
        digest
    }

    fn invalid_checksum(&mut self, span: Span) {
        self.context.found.push(
            Diagnostic::error(PLUGIN, span, format!("plugin {:?}: invalid checksum", self.name))
                .help("a checksum is `sha256:` and 64 hexadecimal digits"),
        );
    }
}

/// `owner/name`, or an https URL of a repository.
fn is_github_repository(text: &str) -> bool {
    let path = match text.strip_prefix("https://") {
        Some(rest) => rest.split_once('/').filter(|(host, _)| !host.is_empty()).map(|(_, path)| path),
        None => Some(text),
    };
    let path = path.map(|path| path.strip_suffix('/').unwrap_or(path));
    let word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    path.and_then(|path| path.split_once('/')).is_some_and(|(owner, name)| word(owner) && word(name))
}
