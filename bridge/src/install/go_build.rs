//! Builds of plugins that are programs in Go. That of a fetched package is kept: the package, its `go.sum` and the toolchain decide what it
//! is.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::cache_key::CacheKey;
use super::file_digests::FileDigests;
use super::fingerprint::FileTime;
use super::package_cache::{CachedPackage, Lookup};
use super::package_use::PackageUse;
use super::runtime_context::RuntimeContext;
use super::{FetchEvent, InstallError, run_blocking};
use crate::fs::{FileError, ScratchFolder, create_private_folders};
use crate::plugin::Sha256Digest;
use crate::process::{OutputStream, ProcessSandbox, ProcessSpec};

/// Settings of the toolchain that decide what it builds.
const SETTINGS: [&str; 14] = [
    "GOVERSION",
    "GOOS",
    "GOARCH",
    "GOAMD64",
    "GOARM64",
    "GOFLAGS",
    "GOEXPERIMENT",
    "GOFIPS140",
    "CGO_ENABLED",
    "CC",
    "CXX",
    "CGO_CFLAGS",
    "CGO_CPPFLAGS",
    "CGO_LDFLAGS",
];

/// Build of a plugin in Go.
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
    /// Builds the program into a private folder, which is removed when it is dropped.
    pub(super) async fn run(&self) -> Result<(PathBuf, ScratchFolder), InstallError> {
        let built = self.context.cache.scratch()?;
        let folder = fs::canonicalize(built.path()).map_err(FileError::of("find", built.path()))?.join("build");
        create_private_folders(&folder)?;
        let program = folder.join(self.program);
        self.context.events.emit(FetchEvent::Building);
        self.context.run(self.command(vec!["build".into(), "-o".into(), program.clone().into(), ".".into()])).await?;
        Ok((program, built))
    }

    /// Returns the program that was built for a fetched package, from the cache, or builds it now. Waits if another run builds it.
    pub(super) async fn kept(
        &self,
        package: &Path,
        digest: Sha256Digest,
    ) -> Result<(PathBuf, Option<PackageUse>), InstallError> {
        let inside = self.folder.strip_prefix(package).unwrap_or(self.folder).to_string_lossy();
        let settings = self.settings().await?;
        let key = CacheKey::new(["go build", &digest.to_hex(), &inside, self.program, &settings]);
        let program_in = |cached: CachedPackage| (cached.folder.join(self.program), cached.package_use);
        if let Lookup::Valid(_, cached) = self.open(&key).await? {
            return Ok(program_in(cached));
        }
        let _lock = self.context.cache.lock(&key, || self.context.events.emit(FetchEvent::Waiting)).await?;
        match self.open(&key).await? {
            Lookup::Valid(_, cached) => return Ok(program_in(cached)),
            Lookup::Damaged => {
                let text = "the program in the cache is damaged; it is built again";
                self.context.events.emit(FetchEvent::Warning(text.to_owned()));
            }
            Lookup::Missing => {}
        }
        let (program, built) = self.run().await?;
        let cache = self.context.cache.clone();
        run_blocking(move || {
            fs::set_permissions(&program, Permissions::from_mode(0o500))
                .map_err(FileError::of("make private", &program))?;
            let folder = program.parent().unwrap_or(&program);
            let (begun, _) = FileTime::after_changes_of(folder, None, built.path())?;
            let published = cache.publish(folder, FileDigests::of(folder)?, begun, None)?;
            let entry = key.new_entry(&digest.to_string(), None, published.files.cache_digest());
            cache.write_entry(&key, &entry)?;
            drop(built);
            Ok(published)
        })
        .await
        .map(program_in)
    }

    /// Finds the package with the kept program of a key.
    async fn open(&self, key: &CacheKey) -> Result<Lookup, InstallError> {
        let (cache, key, verification) = (self.context.cache.clone(), key.clone(), self.context.verification);
        run_blocking(move || cache.open(&key, verification)).await
    }

    /// Returns the settings of the toolchain as it has them in the folder of the plugin.
    async fn settings(&self) -> Result<String, InstallError> {
        let names = SETTINGS.iter().map(OsString::from);
        let command = self.command(std::iter::once("env".into()).chain(names).collect());
        let process = self.context.run(command).await?;
        Ok(process.last_lines(OutputStream::Stdout).join("\n"))
    }

    fn command(&self, arguments: Vec<OsString>) -> ProcessSpec {
        let environment = self.context.environment;
        ProcessSpec {
            program: self.go.clone(),
            arguments,
            directory: self.folder.to_owned(),
            environment: environment
                .select(["PATH", "HOME", "TMPDIR", "LANG", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"])
                .chain(environment.with_prefix("GO"))
                .chain(environment.with_prefix("CGO_"))
                .collect(),
            sandbox: ProcessSandbox::None,
        }
    }
}
