//! `plugins` of server.yaml (docs/spec/simple-container.md#2.5).

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bridge::message_text::MessageText;
use bridge::plugin::{InitSecrets, Keep, Parameters, PluginConfig, PluginName, PluginValueError, Retry};
use pulumi_proto::property::PropertyValue;

use crate::asset_function::AssetRule;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::placeholder::{ReferenceRule, Resolver, UsedSecrets};
use crate::reader::{Reader, Section};
use crate::secret_text::SecretText;
use crate::secrets::{Auth, Secrets};
use crate::tree::{Mapping, Node, Value};
use crate::{asset_function, plugin_dialect, plugin_sandbox, values};

const PLUGIN: Code = Code("plugin");
const KEYS: [&str; 18] = [
    "name",
    "enabled",
    "source",
    "parameters",
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
    /// Names of the values of `config` that come from `${env:…}`, `${secret:…}` or `${auth:…}`: a saved plan does not bind them.
    pub renewed: BTreeSet<String>,
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

/// Returns the names of the members of a mapping that have placeholders whose values may change from run to run.
fn renewed_values(config: &Node) -> BTreeSet<String> {
    fn is_renewed(node: &Node) -> bool {
        match &node.value {
            Value::Scalar(scalar) => {
                ["${env:", "${secret:", "${auth:"].into_iter().any(|start| scalar.text.contains(start))
            }
            Value::Sequence(items) => items.iter().any(is_renewed),
            Value::Mapping(Mapping(entries)) => entries.iter().any(|entry| is_renewed(&entry.value)),
            Value::Interpolated(_) => false,
        }
    }
    let Value::Mapping(Mapping(entries)) = &config.value else { return BTreeSet::new() };
    entries.iter().filter(|entry| is_renewed(&entry.value)).map(|entry| entry.key.clone()).collect()
}

/// State of the readers: resolver and collected diagnostics.
struct PluginsReader<'c, 'r> {
    resolver: &'c mut Resolver<'r>,
    diagnostics: Vec<Diagnostic>,
}

/// Reads the section. Leaves out invalid plugins and reports them.
pub(super) fn read(node: Option<&Node>, resolver: &mut Resolver<'_>) -> Vec<PluginDeclaration> {
    let Some(node) = node.filter(|node| !node.is_null()) else { return Vec::new() };
    let mut context = PluginsReader { resolver, diagnostics: Vec::new() };
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

impl PluginsReader<'_, '_> {
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
        let source = source::read(&name, section, self.resolver, &mut self.diagnostics);
        let parameters = self.read_parameters(&name, section);
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
        let (parsed_name, parameters) = (parsed_name?, parameters?);
        let mut plugin = PluginConfig::new(parsed_name.clone(), source?);
        plugin.package = package.unwrap_or(parsed_name);
        if !parameters.is_empty() {
            plugin.parameters = Some(Parameters::new(parameters, &plugin.source, &plugin.package));
        }
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
        let renewed = section.get("config").map(renewed_values).unwrap_or_default();
        Some(PluginDeclaration { plugin, name_span, config, secrets, renewed })
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

    /// Reads the parameters, as they are written; empty without the key. Reports their errors, and returns `None` if there is one, or
    /// if a parameter is not known in this process.
    fn read_parameters(&mut self, name: &str, section: Section<'_>) -> Option<Vec<String>> {
        let Some(node) = section.get("parameters") else { return Some(Vec::new()) };
        let node = self.resolver.resolve(node, ReferenceRule::Rejected);
        let Some(items) = node.as_sequence() else {
            self.diagnostics.push(
                Diagnostic::error(PLUGIN, node.span, format_args!("plugin {name:?}: parameters must be a list"))
                    .help("write the arguments that the plugin takes: `parameters: [honeycombio/honeycombio, 0.27.1]`"),
            );
            return None;
        };
        if items.is_empty() {
            self.diagnostics.push(
                Diagnostic::error(PLUGIN, node.span, format_args!("plugin {name:?}: parameters is an empty list"))
                    .help("remove the key for a plugin that takes no parameters"),
            );
        }
        let items: Vec<_> = items.iter().map(|item| self.read_parameter(name, item)).collect();
        items.into_iter().collect()
    }

    fn read_parameter(&mut self, name: &str, item: &Node) -> Option<String> {
        if item.is_null() {
            self.diagnostics.push(
                Diagnostic::error(PLUGIN, item.span, format_args!("plugin {name:?}: a parameter is empty"))
                    .help("write `\"\"` for an empty text"),
            );
            return None;
        }
        self.reader().text(item, "a parameter")
    }

    fn read_config(&mut self, section: Section<'_>) -> (Node, UsedSecrets) {
        let before = std::mem::take(&mut self.resolver.used);
        let config = match self.reader().section(section, "config", "config").and_then(|_| section.get("config")) {
            Some(node) => {
                values::check(node, &mut self.diagnostics);
                asset_function::check(node, AssetRule::Rejected, &mut self.diagnostics);
                self.resolver.resolve(node, ReferenceRule::KnownBefore)
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
}

/// Returns names and packages of the plugins that were left out because their declaration is invalid.
pub(super) fn invalid_plugins(node: Option<&Node>, read: &[PluginDeclaration]) -> Vec<String> {
    let items = node.and_then(Node::as_sequence).unwrap_or_default();
    let text = |item: &Node, key: &str| Some(item.as_mapping()?.get_non_null(key)?.as_scalar()?.text.clone());
    let packages = items.iter().flat_map(|item| [text(item, "package"), text(item, "name")]).flatten();
    packages.filter(|name| !read.iter().any(|plugin| plugin.name() == *name || plugin.package() == *name)).collect()
}
