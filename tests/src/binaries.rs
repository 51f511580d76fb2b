//! Programs of this workspace: `sc` and the example plugin.
//!
//! Input: none. Output: the path of a program, built with the profile of the calling test. Excluded: running it.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::commands::run;

/// Builds the programs, once in each test process, and returns the path of `sc`.
///
/// # Errors
/// Returns the error of the build.
pub fn sc() -> io::Result<PathBuf> {
    Ok(binaries_folder()?.join("sc"))
}

/// Builds the programs, once in each test process, and returns the path of the plugin `files`.
///
/// # Errors
/// Returns the error of the build.
pub fn files_plugin() -> io::Result<PathBuf> {
    Ok(binaries_folder()?.join("pulumi-resource-files"))
}

/// Returns the folder of the programs.
fn binaries_folder() -> io::Result<PathBuf> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    FOLDER.get_or_init(|| build().map_err(|error| error.to_string())).clone().map_err(io::Error::other)
}

fn build() -> io::Result<PathBuf> {
    // The path of a test is `target/<folder of the profile>/deps/<test>`.
    let test = std::env::current_exe()?;
    let outside = || io::Error::other(format!("{} is in no target folder", test.display()));
    let folder = test.parent().and_then(|deps| deps.parent()).ok_or_else(outside)?;
    let target = folder.parent().ok_or_else(outside)?;
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "provisioner", "--package", "plugins-example", "--bins"]);
    cargo.args(["--profile", profile, "--target-dir"]).arg(target);
    run(cargo.current_dir(env!("CARGO_MANIFEST_DIR")))?;
    Ok(folder.to_owned())
}
