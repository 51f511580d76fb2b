//! Builds of local plugins that are programs in Go, outside of their folder. A program is kept if the files of the folder, `go.sum` and the
//! toolchain alone decide what it is.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::build_recipe::GO_RESULT;
use super::cache_key::CacheKey;
use super::file_digests::FileDigests;
use super::fingerprint::FileTime;
use super::local_files::LocalFiles;
use super::package_cache::{CachedPackage, Lookup};
use super::package_use::BuiltProgram;
use super::runtime_context::RuntimeContext;
use super::{FetchEvent, InstallError, run_blocking};
use crate::fs::{FileError, MAX_DOCUMENT_BYTES, ScratchFolder, create_private_folders, read_if_exists};
use crate::plugin::Sha256Digest;
use crate::process::{ProcessSandbox, ProcessSpec};

/// Build of a local plugin in Go.
pub(super) struct GoBuild<'a> {
    pub(super) context: &'a RuntimeContext<'a>,
    /// Program of the toolchain.
    pub(super) go: PathBuf,
    /// Folder of the main package.
    pub(super) folder: &'a Path,
    /// Name of the program to build.
    pub(super) program: &'a str,
}

impl GoBuild<'_> {
    /// Returns the program: from the cache, or built now.
    pub(super) async fn program(&self) -> Result<(PathBuf, BuiltProgram), InstallError> {
        let Some(key) = self.key().await? else {
            let (program, built) = self.run().await?;
            return Ok((program, BuiltProgram::Private { _folder: built }));
        };
        let kept = |cached: CachedPackage| {
            (cached.folder.join(self.program), BuiltProgram::Kept { _package_use: cached.package_use })
        };
        if let Lookup::Valid(_, cached) = self.open(&key).await? {
            return Ok(kept(cached));
        }
        let _lock = self.context.cache.lock(&key, || self.context.events.emit(FetchEvent::Waiting)).await?;
        match self.open(&key).await? {
            Lookup::Valid(_, cached) => return Ok(kept(cached)),
            Lookup::Damaged => {
                let text = "the program in the cache is damaged; it is built again";
                self.context.events.emit(FetchEvent::Warning(text.to_owned()));
            }
            Lookup::Missing => {}
        }
        let (program, built) = self.run().await?;
        let cache = self.context.cache.clone();
        let published = run_blocking(move || {
            fs::set_permissions(&program, Permissions::from_mode(0o500))
                .map_err(FileError::of("make private", &program))?;
            let folder = program.parent().unwrap_or(&program);
            let (begun, _) = FileTime::after_changes_of(folder, None, built.path())?;
            let published = cache.publish(folder, FileDigests::of(folder)?, begun, None)?;
            let digest = published.files.cache_digest();
            cache.write_entry(&key, &key.new_entry(&digest.to_string(), None, digest))?;
            drop(built);
            Ok(published)
        });
        published.await.map(kept)
    }

    /// Returns the key of the program in the cache; `None` if files elsewhere decide on it, too: those of a workspace, of a module that
    /// lies in another folder, or of a module that is replaced by one.
    async fn key(&self) -> Result<Option<CacheKey>, InstallError> {
        let module = read_if_exists(&self.folder.join("go.mod"), MAX_DOCUMENT_BYTES)?.unwrap_or_default();
        if module.is_empty() || is_replaced_by_a_folder(&String::from_utf8_lossy(&module)) {
            return Ok(None);
        }
        let names: Vec<&str> = GO_RESULT.iter().copied().chain(["GOWORK"]).collect();
        let settings = self.context.go_settings(&self.go, &names, self.folder).await?;
        if settings.iter().any(|(name, value)| *name == "GOWORK" && !value.is_empty() && value != "off") {
            return Ok(None);
        }
        let Some(digest) = self.digest().await? else { return Ok(None) };
        let settings = settings.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("\n");
        Ok(Some(CacheKey::new(["go build", &digest.to_hex(), self.program, &settings])))
    }

    /// Returns the digest of the folder; `None` if it has what cannot be hashed.
    async fn digest(&self) -> Result<Option<Sha256Digest>, InstallError> {
        let (cache, folder, verification) =
            (self.context.cache.clone(), self.folder.to_owned(), self.context.verification);
        let digest = run_blocking(move || {
            let files = LocalFiles { cache: &cache, folder: &folder, file: None, verification };
            Ok(files.digests()?.checksum_digest())
        });
        match digest.await {
            Err(InstallError::NotHashable { .. }) => Ok(None),
            digest => digest.map(Some),
        }
    }

    /// Builds the program into a private folder, which is removed when it is dropped.
    async fn run(&self) -> Result<(PathBuf, ScratchFolder), InstallError> {
        let built = self.context.cache.scratch()?;
        let folder = fs::canonicalize(built.path()).map_err(FileError::of("find", built.path()))?.join("build");
        create_private_folders(&folder)?;
        let program = folder.join(self.program);
        self.context.events.emit(FetchEvent::Building);
        let environment = self.context.environment;
        let spec = ProcessSpec {
            program: self.go.clone(),
            arguments: vec![OsString::from("build"), "-o".into(), program.clone().into(), ".".into()],
            directory: self.folder.to_owned(),
            environment: environment
                .select(["PATH", "HOME", "TMPDIR", "LANG", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"])
                .chain(environment.with_prefix("GO"))
                .chain(environment.with_prefix("CGO_"))
                .collect(),
            sandbox: ProcessSandbox::None,
        };
        self.context.run(spec, true).await?;
        Ok((program, built))
    }

    /// Finds the kept program of a key.
    async fn open(&self, key: &CacheKey) -> Result<Lookup, InstallError> {
        let (cache, key, verification) = (self.context.cache.clone(), key.clone(), self.context.verification);
        run_blocking(move || cache.open(&key, verification)).await
    }
}

/// Returns whether a `go.mod` replaces a module by a folder: its path begins with `.` or `/`.
fn is_replaced_by_a_folder(module: &str) -> bool {
    let targets = module.lines().filter_map(|line| line.split_once("=>")).map(|(_, target)| target.trim());
    targets.into_iter().any(|target| target.trim_start_matches('"').starts_with(['.', '/']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacement_by_a_folder_is_found() {
        for (module, expected) in [
            ("module x\n\nreplace a.example/b => ../b\n", true),
            ("replace (\n\ta.example/b v1.0.0 => /src/b\n)\n", true),
            ("replace a.example/b => a.example/c v1.0.0\n", false),
            ("module x\nrequire a.example/b v1.0.0\n", false),
        ] {
            assert_eq!(is_replaced_by_a_folder(module), expected, "{module}");
        }
    }
}
