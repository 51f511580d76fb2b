//! Crates of the workspace as Cargo reports them, and the texts of their source files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

/// Crate: the library or a program of a package.
#[derive(Clone, Debug)]
pub(crate) struct Crate {
    /// Name in paths, such as `pulumi_proto`.
    pub(crate) name: String,
    pub(crate) package: String,
    /// Path of the root file, relative to the root of the workspace.
    pub(crate) root: String,
    /// Names with which a path of this crate to another crate can start.
    pub(crate) externs: BTreeSet<String>,
}

/// Package, and the packages of the workspace that it depends on, without dev-dependencies.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dependencies: BTreeSet<String>,
}

/// Workspace that the rules are applied to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
    pub(crate) crates: Vec<Crate>,
    /// Texts by path, relative to the root of the workspace.
    pub(crate) files: BTreeMap<String, String>,
}

/// Crates that no manifest lists.
const STANDARD: [&str; 3] = ["std", "core", "alloc"];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the crate lies below the root of the workspace")
        .to_path_buf()
}

/// Returns the product code: the crates below `src/` of every member of the workspace but `tests`.
pub(crate) fn product() -> &'static Workspace {
    static PRODUCT: OnceLock<Workspace> = OnceLock::new();
    PRODUCT.get_or_init(read)
}

fn read() -> Workspace {
    let metadata = metadata();
    let mut workspace = Workspace::default();
    for package in list(&metadata["packages"]) {
        let name = text(&package["name"]);
        let folder = Path::new(text(&package["manifest_path"])).parent().expect("a manifest lies in a folder");
        let production = list(&package["dependencies"]).iter().filter(|dependency| dependency["kind"] != "dev");
        workspace.packages.push(Package {
            name: name.to_owned(),
            dependencies: production
                .filter(|dependency| dependency["path"].is_string())
                .map(|dependency| text(&dependency["name"]).to_owned())
                .collect(),
        });
        if name == "tests" {
            continue;
        }
        let source = folder.join("src");
        read_files(&source, &mut workspace.files);
        workspace.crates.extend(
            list(&package["targets"])
                .iter()
                .filter(|target| Path::new(text(&target["src_path"])).starts_with(&source))
                .map(|target| crate_of(package, target)),
        );
    }
    workspace
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("Cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("Cargo writes JSON")
}

fn crate_of(package: &Value, target: &Value) -> Crate {
    let in_paths = |name: &str| name.replace('-', "_");
    // The name of a library may differ from that of its package, but Cargo's metadata without dependencies only has it
    // for members: `md-5` is `md5`.
    let mut externs: BTreeSet<String> = list(&package["dependencies"])
        .iter()
        .map(|dependency| dependency["rename"].as_str().unwrap_or_else(|| text(&dependency["name"])))
        .flat_map(|name| [in_paths(name), name.replace('-', "")])
        .chain(STANDARD.map(str::to_owned))
        .collect();
    if !list(&target["kind"]).iter().any(|kind| kind == "lib") {
        externs.insert(in_paths(text(&package["name"])));
    }
    Crate {
        name: in_paths(text(&target["name"])),
        package: text(&package["name"]).to_owned(),
        root: relative(Path::new(text(&target["src_path"]))),
        externs,
    }
}

fn read_files(folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a source folder can be read") {
        let path = entry.expect("a source folder can be read").path();
        if path.is_dir() {
            read_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.insert(relative(&path), fs::read_to_string(&path).expect("a source file can be read"));
        }
    }
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).expect("sources lie below the root of the workspace").to_string_lossy().into_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("Cargo's metadata has text here")
}

/// Returns a workspace for tests of the rules: one crate, `app`, with the given files below its `src/`.
pub(crate) fn test_workspace(files: &[(&str, &str)]) -> Workspace {
    let krate = Crate {
        name: "app".to_owned(),
        package: "app".to_owned(),
        root: "lib.rs".to_owned(),
        externs: ["std", "tokio", "tracing", "uuid"].map(str::to_owned).into(),
    };
    Workspace {
        packages: vec![Package { name: "app".to_owned(), dependencies: BTreeSet::new() }],
        crates: vec![krate],
        files: files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect(),
    }
}

#[test]
fn all_workspace_members_are_read() {
    let product = product();
    let read: BTreeSet<&str> = product.crates.iter().map(|krate| krate.package.as_str()).collect();
    let expected = product.packages.iter().map(|package| package.name.as_str()).filter(|name| *name != "tests");
    assert_eq!(read, expected.collect());
}
