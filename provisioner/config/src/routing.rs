//! Selection of the plugin or core type that manages a resource (docs/spec/simple-container.md#10.5).

use bridge::error::closest;
use bridge::message_text::MessageText;

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::plugins::PluginDeclaration;
use crate::stack::ResourceImplementation;
use crate::tree::Node;
use crate::types::TypeTable;

const UNKNOWN_TYPE: Code = Code("unknown-resource-type");
const UNKNOWN_FUNCTION: Code = Code("unknown-function");

/// Declared plugins and known core types.
#[derive(Clone, Copy)]
pub(super) struct RoutingContext<'a> {
    pub(super) plugins: &'a [PluginDeclaration],
    /// Names and packages of plugins whose declaration is invalid. Their resources are skipped without an error.
    pub(super) invalid_plugins: &'a [String],
    pub(super) types: &'a TypeTable,
    pub(super) has_registrar: bool,
}

/// Number of packages that an unknown one is compared with, for a suggestion.
const MAX_COMPARED: usize = 100;

/// Request to select the plugin or core type of one resource.
#[derive(Clone, Copy)]
pub(super) struct RoutingRequest<'a> {
    pub(super) resource: &'a str,
    pub(super) environment: &'a str,
    /// The type as written; not empty.
    pub(super) text: &'a str,
    pub(super) span: Span,
    /// `options.provider`.
    pub(super) provider: Option<&'a Node>,
}

impl RoutingRequest<'_> {
    /// Returns the plugin or core type; `None` if the declaration of the plugin is invalid.
    pub(super) fn select_implementation(
        self,
        context: RoutingContext<'_>,
    ) -> Result<Option<ResourceImplementation>, Box<Diagnostic>> {
        if self.text.contains("${") {
            return Err(self.unknown_type_error().help("placeholders in `type` are not resolved").into());
        }
        if self.text.contains(':') {
            return self.select_plugin(context);
        }
        if context.types.get(self.text).is_some() {
            return Ok(Some(ResourceImplementation::Core { type_name: self.text.to_owned() }));
        }
        Err(self.unknown_core_type_error(context).into())
    }

    /// Returns the index of the plugin that serves a function; `None` if the declaration of the plugin is invalid. `resource` is
    /// the name of the function, `text` the function itself.
    pub(super) fn select_plugin_of_function(
        self,
        context: RoutingContext<'_>,
    ) -> Result<Option<usize>, Box<Diagnostic>> {
        let invalid =
            || Diagnostic::error(UNKNOWN_FUNCTION, self.span, format_args!("invalid function {:?}", self.text));
        let segments: Vec<&str> = self.text.split(':').collect();
        if self.text.contains("${") {
            return Err(invalid().help("placeholders in `function` are not resolved").into());
        }
        if !matches!(segments[..], [_, _] | [_, _, _]) || segments.iter().any(|segment| segment.is_empty()) {
            return Err(invalid().help("a function of a plugin is `plugin:module:name` or `plugin:name`").into());
        }
        self.select_serving_plugin("function", UNKNOWN_FUNCTION, context)
    }

    fn unknown_type_error(self) -> Diagnostic {
        unknown_type(self.text, self.resource, self.environment, self.span)
    }

    fn unknown_core_type_error(self, context: RoutingContext<'_>) -> Diagnostic {
        let unknown = self.unknown_type_error();
        if context.types.unsupported().contains(&self.text) {
            return Diagnostic::error(
                UNKNOWN_TYPE,
                self.span,
                format_args!("the core type {:?} is not supported yet", self.text),
            )
            .help("a plugin can serve its resources: declare it in `plugins` and use `plugin:module:Type`");
        }
        if context.plugins.iter().any(|plugin| plugin.package() == self.text) {
            return unknown.help(format_args!("write the whole type, `{0}:module:Type` or `{0}:Type`", self.text));
        }
        unknown.did_you_mean(self.text, context.types.names().chain(context.types.unsupported().iter().copied()))
    }

    fn select_plugin(self, context: RoutingContext<'_>) -> Result<Option<ResourceImplementation>, Box<Diagnostic>> {
        let segments: Vec<&str> = self.text.split(':').collect();
        let ([_, _] | [_, _, _]) = segments[..] else {
            return Err(self.invalid_type_error().into());
        };
        if segments.iter().any(|segment| segment.is_empty()) {
            return Err(self.invalid_type_error().into());
        }
        if let ["pulumi", "providers", provider] = segments[..] {
            return Err(self.provider_type_error(provider).into());
        }
        let plugin = self.select_serving_plugin("resource type", UNKNOWN_TYPE, context)?;
        Ok(plugin.map(|plugin| ResourceImplementation::Plugin { type_text: self.text.to_owned(), plugin }))
    }

    /// Returns the index of the plugin of the package that the text begins with, by the option `provider` if there are several.
    fn select_serving_plugin(
        self,
        what: &str,
        code: Code,
        context: RoutingContext<'_>,
    ) -> Result<Option<usize>, Box<Diagnostic>> {
        let package = self.text.split(':').next().unwrap_or_default();
        let serving: Vec<usize> = (0..context.plugins.len())
            .filter(|index| context.plugins[*index].plugin.enabled && context.plugins[*index].package() == package)
            .collect();
        if self.provider.is_some_and(Node::is_unknown)
            && let Some(first) = serving.first()
        {
            return Ok(Some(*first));
        }
        if let Some((wanted, span)) = self.provider.and_then(|node| Some((node.as_scalar()?.text.as_str(), node.span)))
        {
            return match serving.iter().find(|index| context.plugins[**index].name() == wanted) {
                Some(plugin) => Ok(Some(*plugin)),
                None if context.invalid_plugins.iter().any(|invalid| invalid == wanted) => Ok(None),
                None => Err(self.unknown_provider_error(wanted, span, package, &serving, context).into()),
            };
        }
        match serving[..] {
            [plugin] => Ok(Some(plugin)),
            [] if context.invalid_plugins.iter().any(|invalid| invalid == package) => Ok(None),
            [] => Err(self.no_plugin_error(package, what, code, context).into()),
            [..] => {
                let names = names(&serving, context);
                let summary = MessageText::new(format_args!("several plugins serve {:?}: {names}", self.text));
                Err(Diagnostic::error(code, self.span, summary).help("select one with `options.provider`").into())
            }
        }
    }

    fn invalid_type_error(self) -> Diagnostic {
        Diagnostic::error(UNKNOWN_TYPE, self.span, format_args!("invalid plugin resource type {:?}", self.text))
            .help("the type of a plugin is `plugin:module:Type` or `plugin:Type`")
    }

    fn provider_type_error(self, provider: &str) -> Diagnostic {
        let summary = MessageText::new(format_args!("a resource cannot have the provider type {:?}", self.text));
        Diagnostic::error(UNKNOWN_TYPE, self.span, summary).help(format_args!(
            "each plugin declares one provider: declare a plugin with `package: {provider}` in `plugins`, and select it \
             with `options.provider`"
        ))
    }

    fn no_plugin_error(self, package: &str, what: &str, code: Code, context: RoutingContext<'_>) -> Diagnostic {
        let summary = MessageText::new(format_args!(
            "unknown {what} {:?}: no enabled plugin serves the package {package:?}",
            self.text
        ));
        let diagnostic = Diagnostic::error(code, self.span, summary);
        if let Some(disabled) = context.plugins.iter().find(|plugin| plugin.package() == package) {
            return diagnostic
                .label(disabled.name_span, "this plugin is disabled")
                .help("set `enabled: true` to use it");
        }
        let packages = context.plugins.iter().filter(|plugin| plugin.plugin.enabled).map(|plugin| plugin.package());
        let packages = packages.take(MAX_COMPARED);
        match closest(package, packages) {
            Some(candidate) => {
                diagnostic.help(format_args!("did you mean `{}`?", self.text.replacen(package, candidate, 1)))
            }
            None => diagnostic.help(format_args!("declare a plugin with `name: {package}` in `plugins`")),
        }
    }

    fn unknown_provider_error(
        self,
        wanted: &str,
        span: Span,
        package: &str,
        serving: &[usize],
        context: RoutingContext<'_>,
    ) -> Diagnostic {
        let summary =
            MessageText::new(format_args!("the provider {wanted:?} is not an enabled plugin of package {package:?}"));
        let diagnostic = Diagnostic::error(Code("unknown-provider"), span, summary)
            .did_you_mean(wanted, serving.iter().map(|index| context.plugins[*index].name()));
        if serving.is_empty() {
            diagnostic
        } else {
            diagnostic.help(format_args!("it has {}", names(serving, context)))
        }
    }
}

/// Reports a resource without a type.
pub(super) fn missing_type_error(resource: &str, environment: &str, span: Span) -> Diagnostic {
    unknown_type("", resource, environment, span).help("add `type`: a core type, or `plugin:module:Type`")
}

fn unknown_type(text: &str, resource: &str, environment: &str, span: Span) -> Diagnostic {
    let detail =
        MessageText::new(format_args!("unknown type {text:?} for resource {resource:?} of env {environment:?}"));
    Diagnostic::error(UNKNOWN_TYPE, span, format_args!("unknown resource type {text:?}")).detail(detail)
}

fn names(plugins: &[usize], context: RoutingContext<'_>) -> String {
    plugins.iter().map(|index| context.plugins[*index].name()).collect::<Vec<_>>().join(", ")
}
