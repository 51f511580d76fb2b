//! Packages that component plugins register (RegisterPackage), and name in later requests
//! (docs/spec/provider-protocol.md#2.3).

use std::sync::{Arc, Mutex, PoisonError};

use pulumi_proto::rpc::RegisterPackageRequest;
use tonic::Status;
use uuid::Uuid;

use super::monitor::ProviderSelection;
use super::monitor_messages::non_empty;
use super::subpackage::Subpackage;

/// Packages that the plugins of a deployment have registered, each with its reference. Equal packages have one reference.
#[derive(Debug, Default)]
pub(super) struct RegisteredPackages(Mutex<Vec<(String, ProviderSelection)>>);

impl RegisteredPackages {
    /// Registers a package, and returns its reference.
    ///
    /// # Errors
    /// Status that names the invalid field.
    pub(super) fn register(&self, request: RegisterPackageRequest) -> Result<String, Status> {
        let selection = selection(request)?;
        let mut packages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((reference, _)) = packages.iter().find(|(_, known)| *known == selection) {
            return Ok(reference.clone());
        }
        let reference = Uuid::new_v4().to_string();
        packages.push((reference.clone(), selection));
        Ok(reference)
    }

    /// Returns the default provider of the package with a reference.
    ///
    /// # Errors
    /// Status for a reference that was not registered.
    pub(super) fn get(&self, reference: &str) -> Result<ProviderSelection, Status> {
        let packages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = packages.iter().find(|(known, _)| known == reference).map(|(_, selection)| selection.clone());
        found.ok_or_else(|| Status::invalid_argument(format!("packageRef: {reference:?} is not registered")))
    }
}

/// Returns the default provider of a package. The request names the plugin, and beside it the package that the plugin serves
/// with parameters, if it is not its own.
fn selection(request: RegisterPackageRequest) -> Result<ProviderSelection, Status> {
    let RegisterPackageRequest { name, version, download_url, parameterization, .. } = request;
    if name.is_empty() {
        return Err(Status::invalid_argument("name: missing"));
    }
    let check = |field: &str, version: &str| match semver::Version::parse(version) {
        Ok(_) => Ok(()),
        Err(error) => Err(Status::invalid_argument(format!("{field}: {error}"))),
    };
    let version = non_empty(version);
    version.iter().try_for_each(|version| check("version", version))?;
    let download_url = non_empty(download_url.trim_end_matches('/').to_owned());
    let Some(parameterization) = parameterization else {
        return Ok(ProviderSelection { version, download_url, ..ProviderSelection::default() });
    };
    check("parameterization.version", &parameterization.version)?;
    let subpackage = Subpackage {
        name: parameterization.name,
        version: parameterization.version.clone(),
        base_name: name,
        base_version: version,
        value: parameterization.value,
    };
    Ok(ProviderSelection {
        provider: None,
        version: Some(parameterization.version),
        download_url,
        subpackage: Some(Arc::new(subpackage)),
    })
}
