//! Compares the files in `provisioner/src/registry/sdk` with what the SDK packages say.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tests::commands::run;

use crate::installed;

/// Shows: architecture.md#inside-the-other-crates "what Pulumi's SDKs add: data, made from the packages on PyPI"
#[test]
fn files_about_sdks_are_what_the_script_makes_of_the_packages() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (script, list) = ("tests/interop_clouds/sdk_data.py", "tests/interop_clouds/core_types.json");
    let (script, list) = (here.join(script), here.join(list));
    let content: Value = serde_json::from_str(&fs::read_to_string(&list).unwrap()).unwrap();
    let listed = content["packages"].as_object().unwrap();
    let version = |package: &Value| package["version"].as_str().unwrap().to_owned();
    let packages: Vec<String> =
        listed.iter().map(|(name, package)| format!("pulumi-{name}=={}", version(package))).collect();
    let (venv, folder) = installed("core-types", &packages.iter().map(String::as_str).collect::<Vec<_>>());

    let made = tempfile::tempdir().unwrap();
    run(Command::new(venv.python()).arg(&script).arg(&folder).arg(&list).arg(made.path())).unwrap();

    let committed = here.join("../provisioner/src/registry/sdk").canonicalize().unwrap();
    let words = [&venv.python(), &script, Path::new(&folder), &list, &committed];
    let update = words.map(|word| word.display().to_string()).join(" ");
    let json_files = |folder: &Path| {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".json")).collect::<BTreeSet<_>>()
    };
    assert_eq!(json_files(&committed), json_files(made.path()), "update them: {update}");
    for name in json_files(&committed) {
        let read = |folder: &Path| fs::read_to_string(folder.join(&name)).unwrap();
        let (old, new) = (read(&committed), read(made.path()));
        let at = old.lines().zip(new.lines()).position(|(old, new)| old != new);
        assert!(
            old == new,
            "{name} differs from its package, first in line {:?}; update it: {update}",
            at.map(|at| at + 1)
        );
    }
}
