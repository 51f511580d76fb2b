//! Requests of a provider resource to the host that starts its plugin (docs/spec/provider-protocol.md#8.3).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bridge::host::{HostError, ProviderRequest, Subpackage};
use bridge::provider::{ParameterizeRequest, Provider};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{TypeToken, Urn};
use state::ResourceState;

use crate::goal::{INTERNAL_KEY, VERSION_KEY};

/// Internal input with the name of the plugin.
const NAME_KEY: &str = "name";
/// Internal input with the value of the parameters, in base64.
const PARAMETERIZATION_KEY: &str = "parameterization";

/// Returns the package of a provider resource.
pub(super) fn package(urn: &Urn) -> String {
    TypeToken::new(urn.type_token()).provider_package().unwrap_or_default().to_owned()
}

/// Returns the inputs that concern the engine alone. Old states hold their keys at the root.
pub(super) fn internal(inputs: &PropertyMap) -> &PropertyMap {
    inputs.get(INTERNAL_KEY).and_then(PropertyValue::as_map).unwrap_or(inputs)
}

fn text(map: &PropertyMap, key: &str) -> Option<String> {
    map.get(key).and_then(PropertyValue::as_str).map(str::to_owned)
}

/// Returns the inputs that make a plugin serve a package, as Pulumi's engine writes them. The version at the root is that of the
/// package.
pub(crate) fn internal_inputs(subpackage: &Subpackage) -> PropertyMap {
    let Subpackage { base_name, base_version, value, .. } = subpackage;
    let version = base_version.as_deref().map_or(PropertyValue::Null, PropertyValue::from);
    let inputs = [
        (NAME_KEY, base_name.as_str().into()),
        (VERSION_KEY, version),
        (PARAMETERIZATION_KEY, BASE64.encode(value).into()),
    ];
    inputs.map(|(key, value)| (key.to_owned(), value)).into()
}

/// Returns the package that the plugin of a provider resource serves without parameters; `None` if the plugin serves only its own.
pub fn base_package(provider: &ResourceState) -> Option<&str> {
    let internal = internal(&provider.inputs);
    internal.get(PARAMETERIZATION_KEY)?;
    internal.get(NAME_KEY)?.as_str()
}

/// Returns the parameters with which a plugin serves one package of many; `None` if the plugin serves only one.
pub(super) fn parameters(urn: &Urn, inputs: &PropertyMap) -> Result<Option<ParameterizeRequest>, HostError> {
    let Some(encoded) = text(internal(inputs), PARAMETERIZATION_KEY) else { return Ok(None) };
    let value = BASE64.decode(encoded).map_err(|error| {
        HostError::new(format_args!("the parameters of the provider {} are not base64", urn.name())).with_source(error)
    })?;
    let version = text(inputs, VERSION_KEY);
    Ok(Some(ParameterizeRequest::Value { name: package(urn), version, value }))
}

/// Calls Parameterize, after which a plugin serves one package.
pub(super) async fn parameterize(
    provider: &dyn Provider,
    package: &str,
    parameters: ParameterizeRequest,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let reply = provider.parameterize(parameters).await?;
    if reply.name == package { Ok(()) } else { Err(format!("it serves {:?} instead", reply.name).into()) }
}

/// Returns the request to start the plugin of a provider resource. `of_many`: the plugin serves many packages.
pub(super) fn provider_request(urn: &Urn, inputs: &PropertyMap, of_many: bool) -> ProviderRequest {
    let internal = internal(inputs);
    let (name, version) = if of_many { (text(internal, NAME_KEY), text(internal, VERSION_KEY)) } else { (None, None) };
    let checksums = internal.get("pluginChecksums").and_then(PropertyValue::as_map);
    ProviderRequest {
        package: name.unwrap_or_else(|| package(urn)),
        subpackage: of_many.then(|| package(urn)),
        name: urn.name().to_owned(),
        version: if of_many { version } else { text(inputs, VERSION_KEY) },
        download_url: text(internal, "pluginDownloadURL"),
        checksums: checksums
            .into_iter()
            .flatten()
            .filter_map(|(platform, digest)| Some((platform.clone(), digest.as_str()?.to_owned())))
            .collect(),
    }
}
