//! Layout of a plugin's folder: one executable with the name of the plugin, or a `PulumiPlugin.yaml` and its files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::InstallError;
use super::content::{is_program, read_head};
use super::file_digests::FileKind;
use crate::fs::{FileError, MAX_DOCUMENT_BYTES, open_regular, read_if_exists, utf8};
use crate::plugin::{PluginManifest, PluginNames, PluginVersion, TerraformProvider, VersionRange};

/// Accepted names of a plugin's executable.
#[derive(Clone, Debug)]
pub(super) struct ExecutableNames {
    /// Name derived from the name of the plugin. Takes precedence.
    pub(super) of_plugin: String,
    /// Name derived from the package of the plugin.
    pub(super) of_package: String,
    /// True if the only program at the top of the package counts where none has a name: in an archive of a release, and in the
    /// package of a plugin with parameters.
    accepts_only_program: bool,
    /// True for a Terraform provider: its name may be followed by `_` or `.` and more.
    is_provider: bool,
}

impl ExecutableNames {
    /// Returns the accepted names for a plugin.
    pub(super) fn new(names: PluginNames<'_>) -> Self {
        let (of_plugin, of_package) = (names.plugin.executable(), names.package.executable());
        Self { of_plugin, of_package, accepts_only_program: names.accepts_only_program, is_provider: false }
    }

    /// Returns the name of the program of a Terraform provider, to which its author may add `_` or `.` and more.
    pub(super) fn of_terraform_provider(provider: &TerraformProvider) -> Self {
        let name = provider.executable();
        Self { of_plugin: name.clone(), of_package: name, accepts_only_program: false, is_provider: true }
    }

    /// Returns the names, where the only program at the top of the package counts if none has a name.
    pub(super) fn or_only_program(self) -> Self {
        Self { accepts_only_program: true, ..self }
    }

    /// Returns whether the only program at the top of the package counts if none has a name.
    pub(super) fn accepts_only_program(&self) -> bool {
        self.accepts_only_program
    }

    /// Returns the names in the order of their precedence.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        [self.of_plugin.as_str(), self.of_package.as_str()].into_iter()
    }
}

/// Kind of plugin that a folder contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Located {
    /// Executable in the folder.
    Executable(PathBuf),
    /// Plugin with a manifest that names its runtime.
    Manifest,
}

/// Finds the manifest of a folder, or else its executable.
pub(super) fn locate(names: &ExecutableNames, folder: &Path) -> Result<Located, InstallError> {
    let none = || InstallError::NoPlugin { folder: folder.to_owned(), executable: names.of_plugin.clone() };
    if names.is_provider {
        return provider_program(&names.of_plugin, folder)?.map(Located::Executable).ok_or_else(none);
    }
    if folder.join(PluginManifest::FILE_NAME).is_file() {
        return Ok(Located::Manifest);
    }
    let found = names.iter().map(|name| folder.join(name)).find(|executable| executable.is_file());
    let found = match found {
        None if names.accepts_only_program => only_program(folder)?,
        found => found,
    };
    found.map(Located::Executable).ok_or_else(none)
}

/// Returns the program of a Terraform provider in a folder: the first one in the order of names, as Pulumi's bridge finds it.
fn provider_program(name: &str, folder: &Path) -> Result<Option<PathBuf>, InstallError> {
    let mut found = None;
    for member in fs::read_dir(folder).map_err(FileError::of("list", folder))? {
        let path = member.map_err(FileError::of("list", folder))?.path();
        let rest = path.file_name().and_then(|file| file.to_str()?.strip_prefix(name));
        let is_named = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '.']));
        if is_named && path.is_file() && found.as_ref().is_none_or(|found| path < *found) {
            found = Some(path);
        }
    }
    Ok(found)
}

/// Returns the only program in a folder; `None` if there is none, or if there are several.
fn only_program(folder: &Path) -> Result<Option<PathBuf>, InstallError> {
    let mut programs = Vec::new();
    for member in fs::read_dir(folder).map_err(FileError::of("list", folder))? {
        let path = member.map_err(FileError::of("list", folder))?.path();
        let metadata = path.symlink_metadata().map_err(FileError::of("read", &path))?;
        if !metadata.is_file() || FileKind::of_mode(metadata.permissions().mode()) != FileKind::Executable {
            continue;
        }
        let head = open_regular(&path).and_then(|file| read_head(&file)).map_err(FileError::of("read", &path))?;
        if is_program(&head, None) {
            programs.push(path);
        }
    }
    Ok(programs.pop().filter(|_| programs.is_empty()))
}

/// Returns the paths of the files below a folder, sorted, for a message. Leaves out what cannot be read.
pub(super) fn files_in(root: &Path) -> Vec<String> {
    let (mut folders, mut files) = (vec![root.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for member in fs::read_dir(folder).into_iter().flatten().flatten() {
            match member.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(member.path()),
                _ => files.extend(member.path().strip_prefix(root).map(|path| path.display().to_string())),
            }
        }
    }
    files.sort();
    files
}

/// Reads the manifest of a folder. Returns an error if it requires another version of Pulumi.
pub(super) fn read_manifest(folder: &Path) -> Result<PluginManifest, InstallError> {
    let path = folder.join(PluginManifest::FILE_NAME);
    let content = read_if_exists(&path, MAX_DOCUMENT_BYTES)?.unwrap_or_default();
    let text = utf8(content).map_err(FileError::of("read", &path))?;
    let manifest = PluginManifest::parse(&text);
    let manifest = manifest.map_err(|source| InstallError::Manifest { path, source })?;
    if let Some(range) = &manifest.required_pulumi_version {
        let required: VersionRange = range.parse().map_err(InstallError::RequiredVersion)?;
        if !required.matches(&PluginVersion::of_pulumi()) {
            return Err(InstallError::RequiresPulumi { range: range.clone() });
        }
    }
    Ok(manifest)
}
