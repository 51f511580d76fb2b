//! Checks that the shapes of the fake clouds' inputs are those of the SDK packages on PyPI.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tests::sdks::{python_venv, run};

#[test]
fn recorded_shapes_match_sdk_packages() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The packages are read, not run, so their dependencies are not installed.
    let venv = python_venv("clouds", &["--no-deps", "pulumi-aws==6.83.4", "pulumi-gcp==8.41.1"]).unwrap();
    let mut packages = Command::new(venv.python());
    let packages = run(packages.args(["-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"])).unwrap();
    let packages = String::from_utf8(packages).unwrap();
    for package in ["aws", "gcp"] {
        let recorded = fs::read_to_string(here.join(format!("goldens/clouds/{package}.json"))).unwrap();
        let shapes: Value = serde_json::from_str(&recorded).unwrap();
        let mut command = Command::new(venv.python());
        command.arg(here.join("tests/interop_clouds/shapes.py")).args([packages.trim(), package]);
        let printed = run(command.args(shapes["resources"].as_object().unwrap().keys())).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&printed).unwrap(), shapes, "{package}");
    }
}
