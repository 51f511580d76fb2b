//! Checks against the SDK packages on PyPI: the files about them that core types and fake clouds use, the forms of
//! resource types that Pulumi documents, and the stacks in the documentation. Checks of what reaches a cluster of
//! Kubernetes.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic at the first failure")]

mod caddy;
mod documented_stacks;
mod host_rule;
mod sdk_data;

use std::path::Path;
use std::process::Command;

use bridge::host::{PackageTypes, TypeInfo};
use pulumi_proto::urn::TypeToken;
use serde::Deserialize;
use tests::commands::run;
use tests::sdks::{PythonVenv, python_venv};

/// Returns an environment with the SDK packages of documented stacks, and their folder.
fn sdk_packages() -> (PythonVenv, String) {
    let packages = ["pulumi-aws==6.83.4", "pulumi-gcp==8.41.1", "pulumi-kubernetes==4.22.1", "pulumi-random==4.16.7"];
    installed("clouds", &packages)
}

/// Returns an environment with packages, and their folder.
fn installed(name: &str, packages: &[&str]) -> (PythonVenv, String) {
    // The packages are read, not run, so their dependencies are not installed.
    let venv = python_venv(name, &[&["--no-deps"], packages].concat()).unwrap();
    let mut folder = Command::new(venv.python());
    let folder = run(folder.args(["-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"])).unwrap();
    (venv, String::from_utf8(folder).unwrap().trim().to_owned())
}

/// Resource type of an SDK package.
#[derive(Deserialize)]
struct SdkType {
    token: String,
    /// Folder of its module: `s3`, `core/v1`; empty for the module `index`.
    folder: String,
    /// Former types.
    former: Vec<String>,
}

/// Returns the resource types of an SDK package.
fn sdk_types(python: &Path, packages: &str, package: &str) -> Vec<SdkType> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_clouds/resource_types.py");
    serde_json::from_slice(&run(Command::new(python).arg(script).args([packages, package])).unwrap()).unwrap()
}

/// Returns the types that the schema of a package has, as far as an SDK package tells.
fn types_of(sdk_types: &[SdkType]) -> PackageTypes {
    let info = |sdk_type: &SdkType| TypeInfo { former_types: sdk_type.former.clone(), ..TypeInfo::default() };
    sdk_types.iter().map(|known| (known.token.clone(), info(known))).collect()
}

#[test]
fn every_documented_form_of_a_type_resolves_to_its_token() {
    let (venv, packages) = sdk_packages();
    for (package, at_least) in [("aws", 1_500), ("gcp", 1_200), ("kubernetes", 400), ("random", 8)] {
        let sdk_types = sdk_types(&venv.python(), &packages, package);
        assert!(sdk_types.len() >= at_least, "{package}: {}", sdk_types.len());
        let types = types_of(&sdk_types);
        for SdkType { token, folder, former } in &sdk_types {
            let name = token.rsplit(':').next().unwrap();
            let documented = match folder.as_str() {
                // The folders omit the domain of an API group: the documentation has the token.
                _ if package == "kubernetes" => token.clone(),
                "" => format!("{package}:{name}"),
                module => format!("{package}:{module}:{name}"),
            };
            assert_eq!(TypeToken::new(token).short_form(), documented);
            assert_eq!(types.resolve(&documented), Some(token.as_str()), "{documented}");
            assert_eq!(types.resolve(token), Some(token.as_str()));
            for former in former.iter().filter(|former| types.get(former).is_none()) {
                let successors = sdk_types.iter().filter(|known| known.former.contains(former)).count();
                assert_eq!(types.resolve(former), (successors == 1).then_some(token.as_str()), "{former}");
            }
        }
    }
}
