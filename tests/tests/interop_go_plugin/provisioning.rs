//! A provider behind the unmodified library, provisioned by the program `sc`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use tests::binaries;
use tests::sdks::go_program;

/// Runs a command, and returns its exit code and its output.
fn sc(folder: &Path, command: &str) -> (Option<i32>, String) {
    let output = Command::new(binaries::sc().unwrap())
        .args(command.split(' '))
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder.join("home"))
        .env("PATH", "/usr/bin:/bin")
        .env("REC_DIR", folder.join("rec"))
        .output()
        .unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), text)
}

/// Returns the number of processes that have the folder of a repository in their environment.
fn processes_of(folder: &Path) -> usize {
    let folder = folder.join("rec").into_os_string().into_encoded_bytes();
    let environments =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("environ")).ok());
    environments.filter(|text| text.windows(folder.len()).any(|part| part == folder)).count()
}

/// Writes a repository whose plugin is started with these arguments and settings, and returns its folder.
fn repository(arguments: &str, settings: &str) -> tempfile::TempDir {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_go_plugin/provider");
    let program = go_program("goplugin-provider", &sources).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for path in [".git", ".sc/stacks/dev", "rec", "home", "backend"] {
        fs::create_dir_all(folder.path().join(path)).unwrap();
    }
    let script = folder.path().join("plugin.sh");
    fs::write(&script, format!("#!/bin/sh\nexec '{}' {arguments}\n", program.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.path().join(".sc/cfg.default.yaml"), "projectName: golden\n").unwrap();
    let server = format!(
        "schemaVersion: 1.0
provisioner:
  type: pulumi
  config:
    state-storage: {{ type: fs, config: {{ path: file://backend }} }}
    secrets-provider: {{ type: passphrase, config: {{ passPhrase: hush }} }}
plugins:
  - {{ name: rec, source: {{ type: local, path: plugin.sh }}, passEnv: [REC_DIR], {settings} }}
resources:
  resources:
    prod:
      resources:
        a: {{ type: rec:index:Thing, config: {{ v: 1 }} }}
"
    );
    fs::write(folder.path().join(".sc/stacks/dev/server.yaml"), server).unwrap();
    folder
}

#[test]
fn provider_behind_go_plugin_is_provisioned_with_and_without_tls() {
    for tls in ["auto", "none"] {
        let settings = format!(
            "protocol: go-plugin, goPlugin: {{ cookieKey: GOPLUGIN_GOLDEN, cookieValue: provider, tls: {tls} }}"
        );
        let repository = repository("", &settings);
        for (command, expected) in [
            ("preview", "3 to create"),
            ("provision", "3 created"),
            ("provision --expect-no-changes", "3 unchanged"),
            ("refresh --yes", "3 unchanged"),
            ("destroy --parent --yes", "3 deleted"),
        ] {
            let (code, output) = sc(repository.path(), command);
            assert_eq!(code, Some(0), "{command} with tls: {tls}: {output}");
            assert!(output.contains(expected), "{command} with tls: {tls}: {output}");
        }
    }
}

#[test]
fn provider_logs_by_the_engine_behind_the_broker() {
    for tls in ["auto", "none"] {
        let settings = format!(
            "protocol: go-plugin, goPlugin: {{ cookieKey: GOPLUGIN_GOLDEN, cookieValue: provider, tls: {tls} }}"
        );
        let repository = repository("-engine-log", &settings);
        let (code, output) = sc(repository.path(), "provision");
        assert_eq!(code, Some(0), "tls: {tls}: {output}");
        // The preview has no id of the provider yet, so a second process is configured.
        assert_eq!(output.matches("configured by way of the broker").count(), 2, "tls: {tls}: {output}");
        let (code, output) = sc(repository.path(), "provision --expect-no-changes");
        assert_eq!((code, output.matches("configured by way of the broker").count()), (Some(0), 1), "{output}");
        assert_eq!(processes_of(repository.path()), 0, "tls: {tls}: a process is left");
    }
}

#[test]
fn go_plugin_with_other_settings_than_declared_is_refused_with_the_line_to_write() {
    for (settings, expected) in [
        ("enabled: true", "protocol: go-plugin"),
        ("protocol: go-plugin", "cookieKey"),
        (
            "protocol: go-plugin, goPlugin: { cookieKey: GOPLUGIN_GOLDEN, cookieValue: provider, versions: [2] }",
            "version",
        ),
    ] {
        let repository = repository("", settings);
        let (code, output) = sc(repository.path(), "preview");
        assert_eq!(code, Some(1), "{settings}: {output}");
        assert!(output.contains(expected), "{settings}: {output}");
    }
}

#[test]
fn each_flag_of_the_provider_has_its_verdict_and_leaves_no_process() {
    let settings = |more: &str| {
        format!("protocol: go-plugin, goPlugin: {{ cookieKey: GOPLUGIN_GOLDEN, cookieValue: provider{more} }}")
    };
    for (arguments, more, code, expected) in [
        ("-banner 'one\\ntwo\\n'", "", 0, "to create"),
        ("-late later", "", 0, "to create"),
        ("-ignore-sigterm", "", 0, "to create"),
        ("-grandchild 60", "", 0, "to create"),
        ("-versions 2,1", "", 0, "to create"),
        ("-no-mtls", ", tls: none", 0, "to create"),
        ("-no-mtls", "", 1, "it offers no TLS, which goPlugin.tls requests"),
        ("-netrpc", "", 1, "rebuild the plugin with gRPC"),
        ("-versions 3", "", 1, "it serves protocol version 3, but goPlugin.versions declares 1"),
        ("-own-tls error", "", 1, "it ended without a handshake line"),
    ] {
        let repository = repository(arguments, &settings(more));
        let (exit, output) = sc(repository.path(), "preview");
        assert_eq!(exit, Some(code), "{arguments}: {output}");
        assert!(output.contains(expected), "{arguments}: {output}");
        assert_eq!(processes_of(repository.path()), 0, "{arguments}: a process is left");
    }
}
