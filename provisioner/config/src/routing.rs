//! Which plugin or core type serves a resource (simple-container §10.5).

use crate::diagnostics::{Code, Diagnostic, Span, closest};
use crate::plugins::PluginDeclaration;
use crate::stack::Target;
use crate::tree::Node;
use crate::types::TypeTable;

const UNKNOWN_TYPE: Code = Code("unknown-resource-type");

/// Resource types of the Go program (simple-container §7.1): named even where they cannot be provisioned yet.
pub(super) const GO_TYPES: [&str; 18] = [
    "s3-bucket",
    "ecr-repository",
    "aws-rds-postgres",
    "aws-rds-mysql",
    "aws-cloudtrail-security-alerts",
    "gcp-bucket",
    "gcp-artifact-registry",
    "gcp-docker-image-push",
    "gcp-cloudsql-postgres",
    "gcp-redis",
    "gcp-pubsub",
    "gcp-gke-autopilot-cluster",
    "kubernetes-caddy",
    "kubernetes-helm-postgres-operator",
    "kubernetes-helm-mongodb-operator",
    "kubernetes-helm-rabbitmq-operator",
    "kubernetes-helm-redis-operator",
    "mongodb-atlas",
];

/// What a resource is read against.
#[derive(Clone, Copy)]
pub(super) struct Against<'a> {
    pub(super) plugins: &'a [PluginDeclaration],
    /// Names of plugins whose declaration has mistakes: what they serve is not judged.
    pub(super) broken_plugins: &'a [String],
    pub(super) types: &'a TypeTable,
}

/// One question.
#[derive(Clone, Copy)]
pub(super) struct Route<'a> {
    pub(super) resource: &'a str,
    pub(super) environment: &'a str,
    /// The type as written; not empty.
    pub(super) text: &'a str,
    pub(super) span: Span,
    /// `options.provider`.
    pub(super) provider: Option<&'a Node>,
}

impl Route<'_> {
    /// What serves the resource; `None` where the plugin that would has mistakes of its own.
    pub(super) fn target(self, against: Against<'_>) -> Result<Option<Target>, Box<Diagnostic>> {
        if self.text.contains("${") {
            return Err(self.unknown().help("placeholders in `type` are not resolved").into());
        }
        if self.text.contains(':') {
            return self.plugin(against);
        }
        if against.types.get(self.text).is_some() {
            return Ok(Some(Target::Core { type_name: self.text.to_owned() }));
        }
        Err(self.unknown_core(against).into())
    }

    fn unknown(self) -> Diagnostic {
        unknown_type(self.text, self.resource, self.environment, self.span)
    }

    fn unknown_core(self, against: Against<'_>) -> Diagnostic {
        let unknown = self.unknown();
        if GO_TYPES.contains(&self.text) {
            return Diagnostic::error(
                UNKNOWN_TYPE,
                self.span,
                format!("the core type {:?} is not supported yet", self.text),
            )
            .help("a plugin can serve its resources: declare it in `plugins` and use `plugin:module:Type`");
        }
        if against.plugins.iter().any(|plugin| plugin.package() == self.text) {
            return unknown.help(format!("write the whole type, `{}:module:Type`", self.text));
        }
        unknown.did_you_mean(self.text, against.types.names().chain(GO_TYPES))
    }

    fn plugin(self, against: Against<'_>) -> Result<Option<Target>, Box<Diagnostic>> {
        let segments: Vec<&str> = self.text.split(':').collect();
        let [package, module, name] = segments[..] else { return Err(self.invalid().into()) };
        if [package, module, name].iter().any(|segment| segment.is_empty()) {
            return Err(self.invalid().into());
        }
        let serving: Vec<usize> = (0..against.plugins.len())
            .filter(|index| against.plugins[*index].plugin.enabled && against.plugins[*index].package() == package)
            .collect();
        let target = |plugin| Ok(Some(Target::Plugin { token: self.text.to_owned(), plugin }));
        if let Some((wanted, span)) = self.provider.and_then(|node| Some((node.as_scalar()?.text.as_str(), node.span)))
        {
            return match serving.iter().find(|index| against.plugins[**index].name() == wanted) {
                Some(plugin) => target(*plugin),
                None if against.broken_plugins.iter().any(|broken| broken == wanted) => Ok(None),
                None => Err(self.wrong_provider(wanted, span, package, &serving, against).into()),
            };
        }
        match serving[..] {
            [plugin] => target(plugin),
            [] if against.broken_plugins.iter().any(|broken| broken == package) => Ok(None),
            [] => Err(self.no_plugin(package, against).into()),
            [..] => {
                let names = names(&serving, against);
                let summary = format!("several plugins serve {:?}: {names}", self.text);
                Err(Diagnostic::error(UNKNOWN_TYPE, self.span, summary)
                    .help("say which one with `options.provider`")
                    .into())
            }
        }
    }

    fn invalid(self) -> Diagnostic {
        Diagnostic::error(UNKNOWN_TYPE, self.span, format!("invalid plugin resource type {:?}", self.text))
            .help("a plugin type has three parts: `plugin:module:Type`")
    }

    fn no_plugin(self, package: &str, against: Against<'_>) -> Diagnostic {
        let summary = format!("unknown resource type {:?}: no enabled plugin named {package:?}", self.text);
        let diagnostic = Diagnostic::error(UNKNOWN_TYPE, self.span, summary);
        if let Some(disabled) = against.plugins.iter().find(|plugin| plugin.package() == package) {
            return diagnostic
                .also(disabled.name_span, "this plugin is disabled")
                .help("set `enabled: true` to use it");
        }
        let packages = against.plugins.iter().filter(|plugin| plugin.plugin.enabled).map(|plugin| plugin.package());
        match closest(package, packages) {
            Some(meant) => diagnostic.help(format!("did you mean `{}`?", self.text.replacen(package, meant, 1))),
            None => diagnostic.help(format!("declare a plugin with `name: {package}` in `plugins`")),
        }
    }

    fn wrong_provider(
        self,
        wanted: &str,
        span: Span,
        package: &str,
        serving: &[usize],
        against: Against<'_>,
    ) -> Diagnostic {
        let summary = format!("the provider {wanted:?} is no enabled plugin of package {package:?}");
        let diagnostic = Diagnostic::error(Code("unknown-provider"), span, summary)
            .did_you_mean(wanted, serving.iter().map(|index| against.plugins[*index].name()));
        if serving.is_empty() { diagnostic } else { diagnostic.help(format!("it has {}", names(serving, against))) }
    }
}

/// Reports a resource without a type.
pub(super) fn missing_type(resource: &str, environment: &str, span: Span) -> Diagnostic {
    unknown_type("", resource, environment, span).help("add `type`: a core type, or `plugin:module:Type`")
}

fn unknown_type(text: &str, resource: &str, environment: &str, span: Span) -> Diagnostic {
    let detail = format!("unknown type {text:?} for resource {resource:?} of env {environment:?}");
    Diagnostic::error(UNKNOWN_TYPE, span, format!("unknown resource type {text:?}")).detail(detail)
}

fn names(plugins: &[usize], against: Against<'_>) -> String {
    plugins.iter().map(|index| against.plugins[*index].name()).collect::<Vec<_>>().join(", ")
}
