//! Default providers: registered once for each package, version and download URL (docs/spec/engine-semantics.md#2.2).

use std::sync::Arc;

use bridge::host::Subpackage;
use bridge::message_text::MessageText;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use super::register::{prepare, register_prepared};
use crate::context::{Context, ProviderKey};
use crate::events::{Message, Severity, SourceRef};
use crate::goal::{BUILT_IN, Goal, VERSION_KEY};
use crate::registrar::{Halted, Registered};
use crate::step_generator::GoalOrigin;

/// Package that a default provider serves. Without a version, any version serves; without a URL, the package comes from
/// the default source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Package<'a> {
    pub(super) name: &'a str,
    pub(super) version: Option<&'a str>,
    pub(super) download_url: Option<&'a str>,
    /// The package, if its plugin serves it after Parameterize.
    pub(super) subpackage: Option<&'a Arc<Subpackage>>,
}

impl<'a> Package<'a> {
    /// Returns the package of a type, with the version and the source that a program names, or the one that a plugin serves after
    /// Parameterize.
    pub(super) fn of(
        type_token: &'a TypeToken,
        version: Option<&'a str>,
        download_url: Option<&'a str>,
        subpackage: Option<&'a Arc<Subpackage>>,
    ) -> Self {
        let name = subpackage.map_or(type_token.package(), |subpackage| subpackage.name.as_str());
        Self { name, version, download_url, subpackage }
    }
}

/// Returns the default provider of a package. The first resource that needs it registers it.
///
/// # Errors
/// [`Halted`] if the configuration disables the default provider, or its registration fails.
pub(super) async fn default_provider(
    ctx: &Arc<Context>,
    urn: &Urn,
    package: Package<'_>,
    source: Option<SourceRef>,
) -> Result<ProviderReference, Halted> {
    if let Some(refusal) = refusal(ctx, package.name) {
        return Err(ctx.report_fatal(urn, source, refusal).into());
    }
    let Package { name, version, download_url, subpackage: _ } = package;
    let key = ProviderKey::Default {
        package: name.to_owned(),
        version: version.map(str::to_owned),
        download_url: download_url.map(str::to_owned),
    };
    let cell = ctx.once_registered(key);
    let registered = cell.get_or_init(|| Box::pin(register(ctx, package))).await;
    registered.as_ref().map(Registered::as_provider_reference).map_err(|halted| *halted)
}

async fn register(ctx: &Arc<Context>, package: Package<'_>) -> Result<Registered, Halted> {
    let Package { name, version, download_url, subpackage } = package;
    let entries = ctx.request.config.iter().filter(|entry| entry.namespace == name);
    let inputs = entries.map(|entry| {
        let value = PropertyValue::from(entry.value.as_str());
        (entry.name.clone(), if entry.secret { PropertyValue::secret(value) } else { value })
    });
    let mut inputs: PropertyMap = inputs.collect();
    if let Some(version) = version {
        inputs.insert(VERSION_KEY.to_owned(), version.into());
    }
    let mut goal = Goal::custom(TypeToken::provider(name), default_name(version, download_url), inputs);
    goal.plugin_download_url = download_url.map(str::to_owned);
    goal.subpackage = subpackage.cloned();
    let urn = prepare(ctx, &mut goal)?;
    let guard = &ctx.request.guard;
    if guard.approves_steps()
        && let Err(message) = guard.approve_default_provider(&urn).await
    {
        return Err(ctx.report_fatal(&urn, None, *message).into());
    }
    ctx.add_secrets(&goal.inputs);
    Box::pin(register_prepared(ctx, goal, urn, GoalOrigin::Engine)).await
}

/// Returns the reason that a package has no default provider, if it can have none.
fn refusal(ctx: &Context, package: &str) -> Option<Message> {
    let (text, hint) = if package == BUILT_IN {
        let text = "the package pulumi (StackReference, Stash) is not supported".into();
        (text, "change the component so that it does not use it, or provision this stack with Pulumi")
    } else {
        match is_disabled(ctx, package) {
            Ok(false) => return None,
            Ok(true) => {
                let text = MessageText::new(format_args!(
                    "default providers of {package} are disabled by pulumi:disable-default-providers"
                ));
                (text, "name a provider with the option `provider`")
            }
            Err(error) => {
                let text = MessageText::new(format_args!("pulumi:disable-default-providers cannot be used: {error}"));
                (text, "set it to a JSON list of package names, such as '[\"aws\"]', or '[\"*\"]'")
            }
        }
    };
    Some(Message { hint: Some(hint.into()), ..Message::new(Severity::Error, text) })
}

fn is_disabled(ctx: &Context, package: &str) -> Result<bool, serde_json::Error> {
    let disabled = ctx
        .request
        .config
        .iter()
        .find(|entry| entry.namespace == "pulumi" && entry.name == "disable-default-providers");
    // An empty list may be an empty string.
    let names: Vec<String> = match disabled.filter(|entry| !entry.value.is_empty()) {
        Some(entry) => serde_json::from_str(&entry.value)?,
        None => Vec::new(),
    };
    Ok(names.iter().map(|name| name.trim()).any(|name| name == "*" || name == package))
}

/// Returns the name of a default provider: `default`, the parts of the version, and the download URL with its special
/// characters replaced.
pub(super) fn default_name(version: Option<&str>, download_url: Option<&str>) -> String {
    let mut name = "default".to_owned();
    let version = version.unwrap_or_default();
    let (version, build) = version.split_once('+').unwrap_or((version, ""));
    let (core, pre) = version.split_once('-').unwrap_or((version, ""));
    for part in [core, pre, build].into_iter().flat_map(|parts| parts.split('.')).filter(|part| !part.is_empty()) {
        name.push('_');
        name.push_str(part);
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let segments = download_url.unwrap_or_default().split('/').filter(|segment| !segment.is_empty());
    // Each byte of a special character becomes one underscore.
    let escaped = |byte: u8| if is_plain(char::from(byte)) { char::from(byte) } else { '_' };
    let segments: Vec<String> = segments.map(|segment| segment.bytes().map(escaped).collect()).collect();
    if !segments.is_empty() {
        name.push('_');
        name.push_str(&segments.join("/"));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_provider_name_contains_version_and_download_url() {
        let rows = [
            (None, None, "default"),
            (Some("1.2.3"), None, "default_1_2_3"),
            (Some("1.2.3-alpha.1"), None, "default_1_2_3_alpha_1"),
            (Some("1.2.3-alpha-x.1+abc.7"), None, "default_1_2_3_alpha-x_1_abc_7"),
            (None, Some("github://api.github.com/acme"), "default_github_/api.github.com/acme"),
            (Some("1.2.3"), Some("https://example.com/p?x=1"), "default_1_2_3_https_/example.com/p_x_1"),
        ];
        for (version, url, name) in rows {
            assert_eq!(default_name(version, url), name);
        }
    }
}
