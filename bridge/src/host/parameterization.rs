//! Parameterize with declared parameters (docs/spec/provider-protocol.md#3.5): a new instance says which package the plugin
//! serves with them, and the schema of that package has the value with which later instances are started.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;

use super::instance::{Instance, RunId};
use super::json_object::JsonObject;
use super::subpackage::Subpackage;
use crate::error::Hint;
use crate::message_text::MessageText;
use crate::plugin::PluginConfig;
use crate::provider::{ParameterizeReply, ParameterizeRequest, Provider as _, ProviderError, SchemaRequest};

/// Reason why a plugin does not serve a package with its declared parameters.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParametersError {
    #[error("it takes no parameters")]
    NotSupported,
    #[error("it does not accept its parameters")]
    Rejected(#[source] ProviderError),
    #[error("with its parameters it serves the package {served:?}, and it is declared as {declared:?}")]
    OtherPackage { served: String, declared: String, has_package: bool },
    #[error("its reply to Parameterize has {version:?} as version of the package {name}, which is no semantic version")]
    InvalidVersion { name: String, version: String },
    #[error("it returns no schema of the package {package}")]
    NoSchema {
        package: String,
        #[source]
        source: Option<ProviderError>,
    },
    #[error("its schema of the package {package} is invalid")]
    InvalidSchema {
        package: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("its schema of the package {package} does not say with which value the plugin is started")]
    NoValue { package: String },
    #[error("the value of the parameters in its schema of the package {package} is not base64")]
    InvalidValue {
        package: String,
        #[source]
        source: base64::DecodeError,
    },
}

impl Hint for ParametersError {
    fn hint(&self) -> Option<MessageText> {
        match self {
            Self::NotSupported => Some("remove `parameters` from its declaration".into()),
            Self::OtherPackage { served, has_package: false, .. } => {
                Some(MessageText::new(format_args!("write `name: {served}`, or `package: {served}` beside the name")))
            }
            Self::OtherPackage { served, has_package: true, .. } => {
                Some(MessageText::new(format_args!("write `package: {served}`")))
            }
            Self::InvalidVersion { .. }
            | Self::NoSchema { .. }
            | Self::InvalidSchema { .. }
            | Self::NoValue { .. }
            | Self::InvalidValue { .. } => Some("report this to the author of the plugin".into()),
            Self::Rejected(_) => None,
        }
    }
}

/// Part of a schema that describes the parameters of its package.
#[derive(Deserialize)]
struct ParameterizedSchema {
    #[serde(default)]
    parameterization: Option<JsonObject<Parameterization>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parameterization {
    base_provider: JsonObject<BaseProvider>,
    /// Value in base64. `null` is an empty value.
    #[serde(default)]
    parameter: Option<String>,
}

#[derive(Deserialize)]
struct BaseProvider {
    name: String,
    #[serde(default)]
    version: Option<String>,
}

/// Checks that a package is the one that a plugin is declared for.
///
/// # Errors
/// [`ParametersError::OtherPackage`].
pub(super) fn check_declared(served: &str, plugin: &PluginConfig) -> Result<(), ParametersError> {
    if served == plugin.package.as_str() {
        return Ok(());
    }
    let has_package = plugin.package != plugin.name;
    Err(ParametersError::OtherPackage { served: served.to_owned(), declared: plugin.package.to_string(), has_package })
}

/// Makes a new instance serve the package of a plugin's parameters, and returns the package with its schema. The instance serves
/// nothing else from then on.
///
/// # Errors
/// [`ParametersError`].
pub(super) async fn parameterize(
    instance: &Arc<Instance>,
    arguments: ParameterizeRequest,
    plugin: &PluginConfig,
    run: RunId,
) -> Result<(Subpackage, String), ParametersError> {
    let reply = instance.parameterize(arguments, run).await;
    let reply = reply.map_err(|error| match error {
        ProviderError::Unimplemented { .. } => ParametersError::NotSupported,
        error => ParametersError::Rejected(error),
    })?;
    let ParameterizeReply { name, version } = reply;
    check_declared(&name, plugin)?;
    let version = version.unwrap_or_default();
    if semver::Version::parse(&version).is_err() {
        return Err(ParametersError::InvalidVersion { name, version });
    }
    let request = SchemaRequest { subpackage_name: Some(name.clone()), subpackage_version: Some(version.clone()) };
    let schema = instance.call(instance.provider.schema(request)).await;
    let no_schema = |source| ParametersError::NoSchema { package: name.clone(), source };
    let schema = schema.map_err(|error| no_schema(Some(error)))?.ok_or_else(|| no_schema(None))?;
    Ok((read(&name, &version, &schema)?, schema))
}

/// Reads what a schema says about the parameters of its package.
fn read(name: &str, version: &str, schema: &str) -> Result<Subpackage, ParametersError> {
    let package = || name.to_owned();
    let parsed: Result<JsonObject<ParameterizedSchema>, _> = serde_json::from_str(schema);
    let JsonObject(parsed) = parsed.map_err(|source| ParametersError::InvalidSchema { package: package(), source })?;
    let Some(JsonObject(Parameterization { base_provider: JsonObject(base), parameter })) = parsed.parameterization
    else {
        return Err(ParametersError::NoValue { package: package() });
    };
    let value = BASE64.decode(parameter.unwrap_or_default());
    Ok(Subpackage {
        name: package(),
        version: version.to_owned(),
        base_name: base.name,
        base_version: base.version.filter(|version| !version.is_empty()),
        value: value.map_err(|source| ParametersError::InvalidValue { package: package(), source })?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::chain;

    #[test]
    fn schema_says_with_which_value_its_package_is_served() {
        let base = r#""baseProvider": {"name": "many", "version": "1.2.3"}"#;
        let coral = Subpackage {
            name: "reef".to_owned(),
            version: "0.27.1".to_owned(),
            base_name: "many".to_owned(),
            base_version: Some("1.2.3".to_owned()),
            value: b"coral".to_vec(),
        };
        let read = |parameterization: &str| {
            let schema = format!(r#"{{"name": "reef", "parameterization": {parameterization}, "resources": {{}}}}"#);
            read("reef", "0.27.1", &schema)
        };
        assert_eq!(read(&format!(r#"{{{base}, "parameter": "Y29yYWw="}}"#)).unwrap(), coral);
        let without_version = read(r#"{"baseProvider": {"name": "many"}, "parameter": null}"#).unwrap();
        assert_eq!(without_version, Subpackage { base_version: None, value: Vec::new(), ..coral });
        for (parameterization, expected) in [
            ("null", "its schema of the package reef does not say with which value the plugin is started"),
            ("{}", "its schema of the package reef is invalid: missing field `baseProvider`"),
            ("[]", "its schema of the package reef is invalid: "),
            (r#"{"baseProvider": {}}"#, "its schema of the package reef is invalid: missing field `name`"),
            (&format!(r#"{{{base}, "parameter": "-"}}"#), "the value of the parameters in its schema"),
        ] {
            let error = read(parameterization).unwrap_err();
            assert!(chain(&error).starts_with(expected), "{parameterization}: {}", chain(&error));
        }
    }
}
