//! Tests that secrets are written only to their destination.

use crate::repository::{FILES, REC, Repository, Running, Sections};

const SECRET: &str = "swordfish-7f3a";

const RESOURCES: &str = "
    thing: { type: rec:index:Thing, config: { v: '${secret:token}', w: { deep: ['x${secret:token}y'] } } }
    heir: { type: rec:index:Thing, config: { v: '${resource:thing.out}' } }
    page: { type: files:fs:File, config: { path: a, content: 'key=${secret:token}' } }
    pw: { type: files:random:Password, config: { length: 24 } }
    copy: { type: files:fs:File, config: { path: b, content: '${resource:pw.result}' } }
    open: { type: files:fs:File, config: { path: c, content: open }, options: { additionalSecretOutputs: [sha256] } }";
const OUTPUTS: &str = "
    token: '${secret:token}'
    password: '${resource:prod/pw.result}'
    inherited: '${resource:prod/heir.out}'
    marked: '${resource:prod/open.sha256}'
    clear: '${resource:prod/open.path}'";
const TEMPLATES: &str = "
templates: { web: { type: aws-lambda, config: { region: north, accessKey: '${secret:token}' } } }\n";

fn repository() -> Repository {
    let plugins = format!("{FILES}\n{}", REC.replace("passEnv", "config: { token: '${secret:token}' }, passEnv"));
    let repository = Repository::new(Sections { plugins: &plugins, resources: RESOURCES, outputs: OUTPUTS });
    let server = ".sc/stacks/reef/server.yaml";
    repository.write(server, &(repository.read(server) + TEMPLATES));
    repository.write(".sc/stacks/reef/secrets.yaml", &format!("schemaVersion: 1.0\nvalues:\n  token: {SECRET}\n"));
    repository
}

/// Returns the output of a command and the content of the state storage and the home, including secrets.
fn written(repository: &Repository, running: Running<'_>) -> String {
    let ended = running.wait();
    let mut all = format!("{}{}", ended.stdout, ended.stderr);
    for (path, bytes) in repository.files("backend").into_iter().chain(repository.files("home")) {
        all.push_str(&format!("\n{path}\n{}", String::from_utf8_lossy(&bytes)));
    }
    all
}

fn assert_hidden(repository: &Repository, command: &str, secrets: &[&str]) {
    let all = written(repository, repository.start(command));
    for secret in secrets {
        let found = all.lines().find(|line| line.contains(secret));
        assert!(found.is_none(), "{command} shows a secret: {found:?}");
    }
}

#[test]
fn no_command_shows_or_stores_secrets_in_plaintext() {
    let repository = repository();
    let secrets = [SECRET];
    assert_hidden(&repository, "preview", &secrets);
    assert_hidden(&repository, "provision -v", &secrets);
    let password = repository.read("site/b");
    assert_eq!(password.len(), 24);
    assert_eq!(repository.read("site/a"), format!("key={SECRET}"));
    let digest = repository.sc("stack outputs --show-secrets");
    let digest = digest.split("\"marked\":\"").nth(1).unwrap();
    let secrets = [SECRET, &password, &digest[..64]];
    for command in ["provision --json -v", "preview --json", "stack outputs", "stack export", "refresh --yes"] {
        assert_hidden(&repository, command, &secrets);
    }
    repository.write("site/a", "key=swordfish-7f3a, tampered");
    repository.write("site/b", &format!("{password}!"));
    for command in ["preview -v", "provision --diff -v", "provision --json", "destroy --parent --yes -v"] {
        assert_hidden(&repository, command, &secrets);
    }
}

/// A value at a path where nothing says that it is a secret.
///
/// Shows: engine.md#secrets "Such a value, of an input or an output, is masked where it is shown if it equals a secret
///   that the run knows."
#[test]
fn no_command_shows_a_value_that_equals_a_secret() {
    let resources = format!(
        "
    page: {{ type: files:fs:File, config: {{ path: a, content: '${{secret:token}}' }} }}
    echo: {{ type: files:fs:File, config: {{ path: b, content: {SECRET} }} }}"
    );
    let outputs = format!("\n    echo: {SECRET}\n    list: [{SECRET}, open]");
    let repository = Repository::new(Sections { plugins: FILES, resources: &resources, outputs: &outputs });
    repository.write(".sc/stacks/reef/secrets.yaml", &format!("schemaVersion: 1.0\nvalues:\n  token: {SECRET}\n"));
    let show = ["state show echo--prod", "state show echo --json"];
    let outputs = ["stack outputs", "stack outputs echo", "stack outputs list --json"];
    let runs = ["preview --diff -v", "preview --json", "provision --json -v"];
    for command in runs.iter().chain(&show).chain(&outputs).chain(&["provision --diff -v", "refresh --yes --diff"]) {
        let ended = repository.start(command).wait();
        let shown = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!shown.contains(SECRET), "{command}: {shown}");
    }
    for command in show.iter().chain(&outputs) {
        let shown = repository.sc(&format!("{command} --show-secrets"));
        assert!(shown.contains(SECRET), "{command}: {shown}");
    }
}

/// Returns what a command prints, without times.
fn printed(repository: &Repository, command: &str) -> String {
    let ended = repository.start(command).wait();
    let without_times =
        |line: &str| match line.split_once("\"time\":\"").map(|(head, rest)| (head, rest.split_once('"'))) {
            Some((head, Some((_, rest)))) => format!("{head}{rest}\n"),
            _ => format!("{line}\n"),
        };
    ended.stdout.lines().chain(ended.stderr.lines()).map(without_times).collect()
}

/// Shows: events.md#secrets-in-texts "A literal of `sc` itself is not masked, also if a secret has the same words"
#[test]
fn passphrase_that_is_a_word_of_the_program_is_masked_in_texts_from_outside_only() {
    const OUTSIDE: &str = "secret error resource created plugin";
    let rude = "- { name: rude, source: { type: local, path: rude.sh } }";
    let repository = Repository::new(Sections { plugins: rude, ..Sections::default() });
    repository.write_script("rude.sh", &format!("echo '{OUTSIDE}' >&2\nexit 1\n"));
    let mistakes = "
    a: { type: 'nobody:index:Thing' }
    b: { type: files:fs:File, config: { path: '${resource:nothing.id}' }, options: { protcet: true } }";
    let server = ".sc/stacks/reef/server.yaml";
    let (valid, faulty) = {
        let valid = repository.read(server);
        repository.write_sections(Sections { plugins: FILES, resources: mistakes, ..Sections::default() });
        (valid, repository.read(server))
    };
    let commands = [
        (&faulty, "preview"),
        (&faulty, "preview --json"),
        (&valid, "provision"),
        (&valid, "preview --json"),
        (&valid, "stack rm"),
        (&valid, "stack rm --json"),
        (&valid, "stack rename other"),
        (&valid, "stack outputs"),
        (&valid, "state rm nothing --json"),
        (&valid, "provision -s nothing"),
        (&valid, "destroy"),
    ];
    let all = |passphrase: &str| {
        commands.map(|(text, command)| {
            repository.write(server, &text.replace("passPhrase: hush", &format!("passPhrase: {passphrase}")));
            printed(&repository, command)
        })
    };
    let unmasked = all("nowhere-in-it");
    assert!(unmasked.iter().any(|text| text.contains(OUTSIDE)) && unmasked.iter().all(|text| text.contains("error")));
    for word in OUTSIDE.split(' ') {
        for ((printed, unmasked), (_, command)) in all(word).iter().zip(&unmasked).zip(commands) {
            assert_eq!(*printed, unmasked.replace(OUTSIDE, &OUTSIDE.replace(word, "[secret]")), "{word}: {command}");
        }
    }
}

#[test]
fn journal_of_a_killed_run_contains_no_secret() {
    let repository = repository();
    repository.script(serde_json::json!({"resources": {"heir--prod": {"hang": "create"}}}));
    let running = repository.start("provision -S --parallel 1");
    repository.wait_until_called("Create heir--prod");
    running.signal(rustix::process::Signal::KILL);
    let all = written(&repository, running);
    assert!(!all.contains(SECRET));
    assert!(repository.names("backend").iter().any(|name| name.contains(".sc/journal/tank/reef/")));
    repository.expect_exit(0, "cancel --yes");
    repository.script(serde_json::json!({}));
    assert_hidden(&repository, "provision", &[SECRET]);
}

#[test]
fn shown_plugin_output_contains_no_secret() {
    let repository = repository();
    let script = format!("echo the token is {SECRET} >&2\nexit 1\n");
    repository.write_script("rude.sh", &script);
    let plugins = "- { name: rude, source: { type: local, path: rude.sh }, config: { token: '${secret:token}' } }";
    repository.write_sections(Sections { plugins, ..Sections::default() });
    assert_hidden(&repository, "provision", &[SECRET]);
}

/// Secret with quotes and several lines, and texts in which it is spelt in different ways.
const SPELT_SECRET: &str = "trout\"zander & <marlin>\nlines of perch";
const SPELLINGS: [&str; 6] = [
    r#"{"token":"trout\"zander \u0026 \u003cmarlin\u003e\nlines of perch"}"#,
    r#"{\"token\":\"trout\\\"zander & <marlin>\\nlines of perch\"}"#,
    "?token=trout%22zander+%26+%3Cmarlin%3E%0Alines+of+perch",
    "Basic dXNlcjp0cm91dCJ6YW5kZXIgJiA8bWFybGluPgpsaW5lcyBvZiBwZXJjaA==",
    "error in: lines of perch",
    "trout&quot;zander &amp; &lt;marlin&gt;&#10;lines of perch",
];
/// Parts of these texts that belong to the secret.
const SPELT_PARTS: [&str; 6] = ["trout", "zander", "marlin", "perch", "91dCJ6YW", "cyBvZiBwZX"];

fn repository_with_spelt_secret(secret: &str) -> Repository {
    let repository = repository();
    let text = format!("schemaVersion: 1.0\nvalues:\n  token: {}\n", serde_json::Value::from(secret));
    repository.write(".sc/stacks/reef/secrets.yaml", &text);
    repository
}

/// Shows: events.md#secrets-in-texts "`sc` masks the secrets that it knows in every such text"
#[test]
fn spelt_secret_in_texts_of_plugins_is_neither_shown_nor_recorded() {
    for spelling in SPELLINGS {
        let repository = repository_with_spelt_secret(SPELT_SECRET);
        let behaviour = serde_json::json!({ "create": "partial", "initError": spelling });
        repository.script(serde_json::json!({ "resources": { "thing--prod": behaviour } }));
        let assert_hidden = |command: &str| {
            let all = written(&repository, repository.start(command));
            assert!(all.contains("[secret]"), "{all}");
            for part in SPELT_PARTS {
                assert!(!all.contains(part), "{command} shows {part} of {spelling}: {all}");
            }
        };
        assert_hidden("provision -S --json -v");
        let state = repository.sc("stack export");
        assert!(state.contains("initErrors") && !state.contains("rec: not ready"), "{state}");
        repository.script(serde_json::json!({ "resources": { "thing--prod": { "checkFailures": [spelling] } } }));
        assert_hidden("preview -v");
    }
}

/// Shows: events.md#secrets-in-texts "`sc` masks the secrets that it knows in every such text"
#[test]
fn spelt_secret_in_the_error_of_a_command_is_masked() {
    let repository = repository_with_spelt_secret(SPELT_SECRET);
    let lines = SPELLINGS.map(|spelling| format!("cat >&2 <<'EOF'\n{spelling}\nEOF\n"));
    repository.write_script("rude.sh", &(lines.concat() + "exit 1\n"));
    let plugins = "- { name: rude, source: { type: local, path: rude.sh }, config: { token: '${secret:token}' } }";
    repository.write_sections(Sections { plugins, ..Sections::default() });
    for command in ["provision", "provision --json -v", "preview --show-secrets", "schema-gen schemas"] {
        assert_hidden(&repository, command, &SPELT_PARTS);
    }
}

#[test]
fn secret_outputs_are_masked_unless_show_secrets() {
    let repository = repository();
    repository.expect_exit(0, "provision");
    insta::assert_snapshot!(repository.sc("stack outputs"), @r#"
    exit 0
    --- out
    {"stackName":"organization/tank/reef","outputs":{"/tank/reef/web":"[secret]","clear":"c","inherited":"[secret]","marked":"[secret]","password":"[secret]","token":"[secret]"}}
    --- err
    "#);
    let shown = repository.start("stack outputs --show-secrets").wait().stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["outputs"]["token"], SECRET);
    let template = shown["outputs"]["/tank/reef/web"].as_str().unwrap();
    assert!(template.contains(&format!("\n    accessKey: {SECRET}\n")), "{template}");
    assert_eq!(shown["outputs"]["inherited"], format!("o:\"o:\\\"{SECRET}\\\"\""));
    assert_eq!(shown["outputs"]["password"], repository.read("site/b"));
}

#[test]
fn check_failures_contain_no_secret() {
    let repository = repository();
    // The name of the property is a text of the provider, too.
    repository.script(serde_json::json!({ "resources": { "thing--prod": { "checkFailures": [SECRET] } } }));
    for command in ["preview", "preview --json", "provision -S"] {
        let all = written(&repository, repository.start(command));
        assert!(all.contains("rec: not allowed") && all.contains("[secret]"), "{all}");
        assert!(!all.contains(SECRET), "{all}");
    }
}

/// Names of properties in the file, in replies of the plugin, and in the paths that it names.
#[test]
fn no_command_shows_a_name_of_a_property_that_contains_a_secret() {
    let sections = |value: u32| {
        let resources = format!(
            "
    keeper: {{ type: rec:index:Thing, config: {{ v: '${{secret:token}}' }} }}
    echo: {{ type: rec:index:Thing, config: {{ w: {{ {SECRET}: {value}, x-{SECRET}: {value}, open: {value} }} }} }}"
        );
        (resources, format!("\n    names: {{ {SECRET}: {value} }}"))
    };
    let (resources, outputs) = sections(1);
    let repository = Repository::new(Sections { plugins: REC, resources: &resources, outputs: &outputs });
    repository.write(".sc/stacks/reef/secrets.yaml", &format!("schemaVersion: 1.0\nvalues:\n  token: {SECRET}\n"));
    let run = |commands: &[&str]| {
        for command in commands {
            let ended = repository.start(command).wait();
            let shown = format!("{}{}", ended.stdout, ended.stderr);
            assert!(!shown.contains(SECRET), "{command}: {shown}");
            assert!(shown.contains("[secret]"), "{command}: {shown}");
        }
    };
    run(&["preview --diff", "preview --json", "provision --json -v"]);
    let show = ["state show echo--prod", "state show echo --json", "stack outputs", "stack outputs names --json"];
    run(&show);
    for command in show {
        let shown = repository.sc(&format!("{command} --show-secrets"));
        assert!(shown.contains(SECRET), "{command}: {shown}");
    }

    let (resources, outputs) = sections(2);
    repository.write_sections(Sections { plugins: REC, resources: &resources, outputs: &outputs });
    let detail = serde_json::json!({
        format!("w.{SECRET}"): "UPDATE",
        format!("w[\"x-{SECRET}\"]"): "UPDATE_REPLACE",
        format!("{SECRET}.none"): "DELETE",
    });
    repository.script(serde_json::json!({ "resources": { "echo--prod": { "detail": detail } } }));
    run(&["preview", "preview --diff", "preview --json", "provision --diff -v"]);
    let failure = format!("w[\"{SECRET}\"].deep");
    repository.script(serde_json::json!({ "resources": { "echo--prod": { "checkFailures": [failure] } } }));
    run(&["preview", "preview --json", "provision -S", "provision -S --json"]);
    repository.script(serde_json::json!({}));
    run(&["destroy --parent --yes --json"]);
}
