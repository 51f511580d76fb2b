//! A provider behind the unmodified library, provisioned by the program `sc`.

use tests::sdks::{go_program, go_program_with};

use crate::repository::{PLAIN, Repository, SETTINGS, provider_sources};

/// Commands of the life of a stack, each with a part of its output.
const LIFE: [(&str, &str); 5] = [
    ("preview", "3 to create"),
    ("provision", "3 created"),
    ("provision --expect-no-changes", "all 3 resources of dev are unchanged"),
    ("refresh --yes", "all 3 resources of dev are as recorded"),
    ("destroy --parent --yes", "3 deleted"),
];

/// Message that the provider logs with the flag `-engine-log`.
const LOGGED: &str = "configured by way of the broker";

/// Shows: hosting.md#start-protocols "mutual TLS unless `goPlugin.tls: none`"
#[test]
fn provider_behind_go_plugin_is_provisioned_with_and_without_tls() {
    for settings in [SETTINGS, PLAIN] {
        Repository::new("", settings).run_all(settings, &LIFE);
    }
}

/// Shows: hosting.md#sandbox "so do go-plugin servers, with and without TLS"
#[test]
fn provider_behind_go_plugin_works_in_a_strict_sandbox_with_and_without_tls() {
    let program = go_program("goplugin-provider", &provider_sources()).unwrap();
    let outside = program.parent().unwrap().display();
    for settings in [SETTINGS, PLAIN] {
        let strict = format!("{settings}, sandbox: strict, readable: ['{outside}'], ports: []");
        let writable = format!("{strict}, writable: [rec]");
        let repository = Repository::with_program(&program, "-engine-log", &writable);
        let (code, output) = repository.sc("preview");
        assert!(code == Some(0) && output.contains(LOGGED), "{writable}: {output}");
        repository.run_all(&writable, &LIFE);
        repository.run_all(&writable, &[("plugin ls", "strict")]);
        assert_ne!(repository.calls("Create"), 0, "{writable}");
        assert_eq!((repository.processes(), repository.socket_folders()), (0, vec![]), "{writable}");

        // The provider cannot record its calls in a folder that it may not change.
        let repository = Repository::with_program(&program, "", &strict);
        repository.run_all(&strict, &LIFE);
        assert_eq!(repository.calls("Create"), 0, "{strict}");
    }
}

/// Shows: hosting.md#start-protocols "`sc` works with each release of the library from 1.4.3."
/// Shows: hosting.md#start-protocols "Plugins built with a release before 1.4.4 reach the Engine this way in plain text
///   only"
#[test]
fn each_release_of_the_library_is_provisioned_with_and_reaches_the_engine() {
    for release in ["v1.4.3", "v1.4.8", "v1.6.3", "v1.7.0", "v1.8.0"] {
        let module = format!("github.com/hashicorp/go-plugin@{release}");
        let program = go_program_with("goplugin-provider", &provider_sources(), &module).unwrap();
        for (settings, tls) in [(SETTINGS, "auto"), (PLAIN, "none")] {
            let name = format!("{release} with tls: {tls}");
            // Before 1.4.4, the library does not trust the certificate of the host when it dials a brokered service.
            let reaches_engine = (release, tls) != ("v1.4.3", "auto");
            let arguments = if reaches_engine { "-engine-log" } else { "" };
            let repository = Repository::with_program(&program, arguments, settings);
            let (code, output) = repository.sc("preview");
            assert_eq!((code, output.contains(LOGGED)), (Some(0), reaches_engine), "{name}: {output}");
            if !reaches_engine {
                let (code, output) = Repository::with_program(&program, "-engine-log", settings).sc("preview");
                assert!(code == Some(1) && output.contains("certificate"), "{name}: {output}");
            }
            repository.run_all(&name, &LIFE);
            assert_eq!((repository.processes(), repository.socket_folders()), (0, vec![]), "{name}");
        }
    }
}

/// Shows: hosting.md#start-protocols "offers its Engine and ResourceStatus services under the number 1 of the library's
///   broker"
#[test]
fn provider_logs_by_the_engine_behind_the_broker() {
    for settings in [SETTINGS, PLAIN] {
        let repository = Repository::new("-engine-log", settings);
        let (code, output) = repository.sc("provision");
        assert_eq!(code, Some(0), "{settings}: {output}");
        // The preview has no id of the provider yet, so a second process is configured.
        assert_eq!(output.matches(LOGGED).count(), 2, "{settings}: {output}");
        let (code, output) = repository.sc("provision --expect-no-changes");
        assert_eq!((code, output.matches(LOGGED).count()), (Some(0), 1), "{settings}: {output}");
        assert_eq!(repository.processes(), 0, "{settings}: a process is left");
    }
}

/// Shows: hosting.md#start-protocols "A go-plugin server says nothing unless it gets its cookie, so it is declared"
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
        let (code, output) = Repository::new("", settings).sc("preview");
        assert_eq!(code, Some(1), "{settings}: {output}");
        assert!(output.contains(expected), "{settings}: {output}");
    }
}

/// Shows: hosting.md#start-protocols "Cancel, Shutdown of its controller, SIGTERM, SIGKILL"
/// Shows: hosting.md#start-protocols "Of the library's net/rpc and its multiplexed broker `sc` supports neither."
#[test]
fn each_flag_of_the_provider_has_its_verdict_and_leaves_no_process() {
    for (arguments, settings, code, expected) in [
        ("-banner 'one\\ntwo\\n'", SETTINGS, 0, "to create"),
        ("-late later", SETTINGS, 0, "to create"),
        ("-ignore-sigterm", SETTINGS, 0, "to create"),
        ("-linger 60s", SETTINGS, 0, "to create"),
        ("-linger 60s -ignore-sigterm", SETTINGS, 0, "to create"),
        ("-eof-exit", SETTINGS, 0, "to create"),
        ("-no-mux", SETTINGS, 0, "to create"),
        ("-delay 300ms", SETTINGS, 0, "to create"),
        ("-limit 4", SETTINGS, 0, "to create"),
        ("-log-name my.name", SETTINGS, 0, "to create"),
        ("-grandchild 60", SETTINGS, 0, "to create"),
        ("-versions 2,1", SETTINGS, 0, "to create"),
        ("-no-mtls", PLAIN, 0, "to create"),
        ("-no-mtls", SETTINGS, 1, "it offers no TLS, which goPlugin.tls requests"),
        ("-netrpc", SETTINGS, 1, "rebuild the plugin with gRPC"),
        ("-versions 3", SETTINGS, 1, "it serves protocol version 3, but goPlugin.versions declares 1"),
        ("-own-tls error", SETTINGS, 1, "it ended without a handshake line"),
    ] {
        let repository = Repository::new(arguments, settings);
        let (exit, output) = repository.sc("preview");
        assert_eq!(exit, Some(code), "{arguments}: {output}");
        assert!(output.contains(expected), "{arguments}: {output}");
        assert_eq!(repository.processes(), 0, "{arguments}: a process is left");
        assert!(repository.socket_folders().is_empty(), "{arguments}: a folder of sockets is left");
    }
}
