//! Tests of fetched packages with a manifest, which may name only files of the package.

use std::path::Path;

use bridge::error::Hint as _;
use tests::releases::{Entry, ReleaseServer, tar_gz};

use super::{Machine, asset_name, plugin, release_source, run, script, write};

/// Installs a release with these files beside a script `inside`, from a machine that has a script `outside`.
async fn install(machine: &Machine, files: &[(&str, &str)]) -> Result<String, String> {
    for path in ["outside", "venv/bin/python", "index.js"] {
        write(&machine.path("cache/packages").join(path), &script("outside"), 0o755);
    }
    let server = ReleaseServer::start().await.unwrap();
    let inside = script("inside");
    let mut entries = vec![("inside", Entry::File(0o755, &inside)), ("venv/bin/python", Entry::File(0o755, &inside))];
    entries.extend(files.iter().map(|(path, text)| (*path, Entry::File(0o644, text.as_bytes()))));
    server.publish("acme/pulumi-reef", "v1.0.0", &[(&asset_name("1.0.0"), &tar_gz(&entries).unwrap())]);
    match machine.install(&plugin(release_source(&server.api_url(), "v1.0.0"))).await {
        Ok(package) => Ok(run(&package).await),
        Err(error) => {
            let hint = error.hint().map(|hint| hint.into_string()).unwrap_or_default();
            assert!(hint.contains("declared with a source of type local"), "{error}: {hint}");
            Err(error.to_string())
        }
    }
}

fn manifest(runtime: &str) -> String {
    format!("runtime: {runtime}\n")
}

/// Shows: plugins.md#what-is-checked "may name only files of the package: an absolute path or `..` in `binary`,
///   `virtualenv` or `main` is refused"
#[tokio::test]
async fn manifest_of_a_fetched_package_names_only_files_of_the_package() {
    let absolute = Machine::new();
    let outside = absolute.path("cache/packages/outside").display().to_string();
    let go = |binary: &str| manifest(&format!("{{ name: go, options: {{ binary: '{binary}' }} }}"));
    let python = |folder: &str| manifest(&format!("{{ name: python, options: {{ virtualenv: '{folder}' }} }}"));
    for (binary, runs) in
        [("inside", true), ("./inside", true), ("../outside", false), ("/bin/sh", false), (&*outside, false)]
    {
        let machine = Machine::new();
        let result = install(&machine, &[("PulumiPlugin.yaml", &go(binary))]).await;
        let refused = format!("binary in PulumiPlugin.yaml names {binary}, which is outside of the package");
        assert_eq!(result, if runs { Ok("inside".to_owned()) } else { Err(refused) });
    }
    for (virtualenv, runs) in [("venv", true), ("../venv", false), ("x/../../venv", false), ("/usr", false)] {
        let machine = Machine::new();
        let files = [("PulumiPlugin.yaml", &*python(virtualenv)), ("__main__.py", "")];
        let refused = format!("virtualenv in PulumiPlugin.yaml names {virtualenv}, which is outside of the package");
        assert_eq!(install(&machine, &files).await, if runs { Ok("inside".to_owned()) } else { Err(refused) });
    }
}

#[tokio::test]
async fn main_file_of_a_fetched_package_is_inside_the_package() {
    for main in ["../index.js", "..", "/etc/passwd"] {
        let mut machine = Machine::new();
        write(&machine.path("bin/node"), &script("node"), 0o755);
        machine.programs = Some(machine.path("bin"));
        let package = format!("{{\"main\": \"{main}\"}}");
        let files = [("PulumiPlugin.yaml", &*manifest("nodejs")), ("package.json", &*package)];
        let refused = format!("main in package.json names {main}, which is outside of the package");
        assert_eq!(install(&machine, &files).await, Err(refused));
        let inside = [("PulumiPlugin.yaml", &*manifest("nodejs")), ("package.json", "{}"), ("index.js", "")];
        let machine = Machine { programs: machine.programs.clone(), ..Machine::new() };
        assert_eq!(install(&machine, &inside).await, Ok("node".to_owned()));
        assert!(Path::new("/etc/passwd").exists(), "so that only the check refuses it");
    }
}
