//! Verified Terraform providers, and their places in the folder in which Pulumi's bridge of Terraform providers looks for them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::InstallError;
use super::copies::platform_folder;
use super::package_cache::rename;
use super::package_use::PackageUse;
use crate::fs::{FileError, create_private_folders, place_below};
use crate::plugin::{Platform, Sha256Digest, TerraformProvider};

/// Terraform provider in the cache whose archive was verified. It is not removed from the cache while this value exists.
#[derive(Debug)]
pub struct TerraformProviderFolder {
    pub(super) provider: TerraformProvider,
    pub(super) version: String,
    pub(super) platform: Platform,
    pub(super) digest: Option<Sha256Digest>,
    pub(super) folder: PathBuf,
    pub(super) program: PathBuf,
    pub(super) _package_use: Option<PackageUse>,
}

impl TerraformProviderFolder {
    /// The address of the provider.
    pub fn provider(&self) -> &TerraformProvider {
        &self.provider
    }

    /// Returns the version, such as `3.6.0`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the digest of the archive.
    pub fn digest(&self) -> Option<Sha256Digest> {
        self.digest
    }

    /// Returns the folder with its files, in the cache of packages. Whoever starts the provider must be able to read and execute them there.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of its program, in that folder.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Places the provider below a folder, as `HOST/NAMESPACE/NAME/VERSION/OS_ARCH`: where Pulumi's bridge takes it without a connection, if
    /// `PULUMI_DYNAMIC_TF_PLUGIN_CACHE_DIR` names the folder. The place is a link to the cache of packages, since the bridge follows one
    /// there; a copy would cost as much room again, and a hard link would change the times that the fingerprint of the package has.
    /// Replaces a link, never a folder. Returns the place.
    ///
    /// # Errors
    /// [`InstallError::Path`], also if another link leads out of the folder.
    pub fn place(&self, below: &Path) -> Result<PathBuf, InstallError> {
        create_private_folders(below)?;
        let path = terraform_provider_place(&self.provider, &self.version, self.platform);
        let parent = place_below(below, path.parent().unwrap_or(&path))?;
        create_private_folders(&parent)?;
        let name = path.file_name().unwrap_or_default().display();
        let place = parent.join(name.to_string());
        if fs::read_link(&place).is_ok_and(|target| target == self.folder) {
            return Ok(place);
        }
        // Another run may create the same link: each is made whole, and the last one counts.
        let new = parent.join(format!(".{name}-{}", uuid::Uuid::new_v4()));
        symlink(&self.folder, &new).map_err(FileError::of("create link", &new))?;
        rename(&new, &place).map_err(|error| {
            fs::remove_file(&new).ok();
            FileError::of("create link", &place)(error)
        })?;
        Ok(place)
    }
}

/// Returns the path of a provider in the folder in which the bridge looks: `HOST/NAMESPACE/NAME/VERSION/OS_ARCH`.
pub fn terraform_provider_place(provider: &TerraformProvider, version: &str, platform: Platform) -> PathBuf {
    PathBuf::from(provider.to_string()).join(version).join(platform_folder(platform))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(folder: &Path) -> TerraformProviderFolder {
        TerraformProviderFolder {
            provider: "tf.example:8443/acme/reef".parse().unwrap(),
            version: "1.2.0".to_owned(),
            platform: "linux-amd64".parse().unwrap(),
            digest: None,
            folder: folder.to_owned(),
            program: folder.join("terraform-provider-reef_v1.2.0"),
            _package_use: None,
        }
    }

    #[test]
    fn place_is_a_link_where_the_bridge_looks() {
        let root = tempfile::tempdir().unwrap();
        let (first, second) = (root.path().join("first"), root.path().join("second"));
        for folder in [&first, &second] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("terraform-provider-reef_v1.2.0"), "").unwrap();
        }
        let below = root.path().join("cache");
        let expected = below.join("tf.example:8443/acme/reef/1.2.0/linux_amd64");
        for folder in [&first, &first, &second] {
            let place = provider(folder).place(&below).unwrap();
            assert_eq!(place.canonicalize().unwrap(), folder.canonicalize().unwrap());
            assert_eq!(place, expected.parent().unwrap().canonicalize().unwrap().join("linux_amd64"));
            assert!(expected.join("terraform-provider-reef_v1.2.0").is_file());
        }
        assert_eq!(fs::read_dir(expected.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn folder_stays_and_a_link_that_leads_out_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let (below, package) = (root.path().join("cache"), root.path().join("package"));
        fs::create_dir(&package).unwrap();
        let place = below.join("tf.example:8443/acme/reef/1.2.0/linux_amd64");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("file"), "kept").unwrap();
        assert!(provider(&package).place(&below).is_err());
        assert_eq!(fs::read_to_string(place.join("file")).unwrap(), "kept");
        assert_eq!(fs::read_dir(place.parent().unwrap()).unwrap().count(), 1);
        fs::remove_dir_all(&below).unwrap();
        fs::create_dir_all(below.join("tf.example:8443")).unwrap();
        symlink(root.path(), below.join("tf.example:8443/acme")).unwrap();
        assert!(provider(&package).place(&below).is_err());
    }
}
