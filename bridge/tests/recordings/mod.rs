//! Recordings of HashiCorp's go-plugin, for several suites.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Returns the recordings with this name: that of the tree, and that in the folder `SC_GO_PLUGIN_GOLDENS`.
pub(crate) fn recordings(name: &str) -> Vec<Value> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/go-plugin");
    let further = std::env::var_os("SC_GO_PLUGIN_GOLDENS").map(PathBuf::from);
    let files = [Some(tree), further].into_iter().flatten().map(|folder| folder.join(name));
    let files: Vec<PathBuf> = files.filter(|file| file.exists()).collect();
    assert!(!files.is_empty(), "{name} is missing");
    files.iter().map(|file| serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()).collect()
}
