//! Plugins that the `pulumi` command line has installed, in its own folder. They are only read.

use std::path::{Path, PathBuf};

use crate::fs::{TrustError, check_trusted_target, check_trusted_tree};
use crate::plugin::{PluginManifest, PluginName, PluginVersion};

/// Returns the folder of a plugin in the folder of plugins of the `pulumi` command line; `None` if the plugin is missing
/// there, or if its installation is not complete.
///
/// # Errors
/// [`TrustError`] if another user could have changed the plugin, or a file beside it.
pub fn find_in_pulumi_folder(
    plugins: &Path,
    package: &PluginName,
    version: &PluginVersion,
) -> Result<Option<PathBuf>, TrustError> {
    let name = format!("resource-{package}-v{version}");
    let folder = plugins.join(&name);
    // The command line creates this file before it unpacks a plugin, and removes it afterwards.
    let is_partial = plugins.join(format!("{name}.partial")).exists();
    let program = [package.executable(), PluginManifest::FILE_NAME.to_owned()];
    let program = program.into_iter().map(|name| folder.join(name)).find(|path| path.is_file());
    let Some(program) = program.filter(|_| !is_partial) else { return Ok(None) };
    check_trusted_target(&program)?;
    // The program loads files beside it: libraries, modules, a virtual environment.
    check_trusted_tree(&folder)?;
    Ok(Some(folder))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Shows: plugins.md#packages-of-core-types "A plugin there that another account can change, or a file beside its
    ///   program, is not used"
    /// Shows: plugins.md#packages-of-core-types "or `~/.pulumi/plugins`, in exactly this version. It is only read."
    #[test]
    fn complete_plugin_of_exactly_this_version_is_found() {
        let plugins = tempfile::tempdir().unwrap();
        let find = |package: &str, version: &str| {
            find_in_pulumi_folder(plugins.path(), &package.parse().unwrap(), &version.parse().unwrap())
        };
        let folder = plugins.path().join("resource-sea-v1.2.3");
        fs::create_dir(&folder).unwrap();
        assert_eq!(find("sea", "1.2.3").unwrap(), None);
        let program = folder.join("pulumi-resource-sea");
        fs::write(&program, "").unwrap();
        assert_eq!(find("sea", "1.2.3").unwrap().as_ref(), Some(&folder));
        for (package, version) in [("sea", "1.2.4"), ("sea", "1.2.3-rc.1"), ("lake", "1.2.3")] {
            assert_eq!(find(package, version).unwrap(), None, "{package} {version}");
        }
        let partial = plugins.path().join("resource-sea-v1.2.3.partial");
        fs::write(&partial, "").unwrap();
        assert_eq!(find("sea", "1.2.3").unwrap(), None);
        fs::remove_file(&partial).unwrap();
        let beside = folder.join("lib/module.js");
        fs::create_dir(folder.join("lib")).unwrap();
        fs::write(&beside, "").unwrap();
        fs::set_permissions(&beside, Permissions::from_mode(0o666)).unwrap();
        let error = find("sea", "1.2.3").unwrap_err();
        assert!(matches!(&error, TrustError::WritableByOthers { path, .. } if *path == beside), "{error}");
        fs::remove_file(&beside).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(find("sea", "1.2.3"), Err(TrustError::WritableByOthers { .. })));
    }
}
