//! Tests of saved plans: a plan that was reviewed is what happens, or nothing happens.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::repository::{FILES, REC, Repository, Sections};

/// Resources `a` and `b`, `b` with a value of `a` that is not known before the run.
fn resources(value: &str) -> String {
    format!(
        "a: {{ type: rec:index:Thing, config: {{ v: \"{value}\" }} }}
b: {{ type: rec:index:Thing, config: {{ v: \"${{resource:a.id}}\", w: \"${{secret:db}}\" }} }}"
    )
}

fn write(repository: &Repository, value: &str) {
    let outputs = "a: ${resource:prod/a.v}";
    repository.write_sections(Sections { plugins: REC, resources: &resources(value), outputs });
    let secrets = "schemaVersion: 1.0\nauth: {}\nvalues: { db: hunter2-hunter2 }\n";
    repository.write(".sc/stacks/reef/secrets.yaml", secrets);
}

/// Returns a repository whose stack was provisioned, and a plan that updates `a`.
fn planned() -> Repository {
    let repository = Repository::new(Sections::default());
    write(&repository, "one");
    repository.expect_exit(0, "provision -S");
    write(&repository, "two");
    let printed = repository.expect_exit(0, "preview --save-plan p.plan");
    assert!(printed.contains("the plan is saved in ./p.plan until "), "{printed}");
    repository
}

/// Shows: plans.md#saved-plans "A plan is encrypted with the key of its stack"
/// Shows: plans.md#saved-plans "A plan is good once"
#[test]
fn plan_is_saved_for_its_owner_and_carried_out_once() {
    let repository = planned();
    let mode = fs::metadata(repository.path("p.plan")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = repository.read("p.plan");
    assert!(!text.contains("hunter2") && !text.contains("Thing") && text.contains("\"stack\":\"reef\""), "{text}");
    let mut seen = repository.calls().len();
    let printed = repository.expect_exit(0, "provision --plan p.plan");
    assert!(printed.contains("a--prod"), "{printed}");
    assert_eq!(repository.change_calls(&mut seen), ["Update a--prod"]);
    assert!(!repository.calls()[seen - 3..].iter().any(|call| call.starts_with("Read ")), "there is no refresh");
    assert_eq!(repository.names("backend/.sc/plans/tank/reef").len(), 1);
    let printed = repository.expect_rejected("provision --plan p.plan");
    assert!(printed.starts_with("exit 1\n") && printed.contains("the plan was used at "), "{printed}");
    assert!(printed.contains("hint: make a new plan with `sc preview --save-plan FILE`"), "{printed}");
}

#[test]
fn new_stack_is_created_by_its_plan() {
    let repository = Repository::new(Sections::default());
    write(&repository, "one");
    repository.expect_exit(0, "provision --preview --save-plan p.plan");
    assert_eq!(repository.names("backend/.pulumi/stacks"), [""; 0]);
    repository.expect_exit(0, "provision --plan p.plan");
    let mut seen = 0;
    assert_eq!(repository.change_calls(&mut seen), ["Create a--prod", "Create b--prod"]);
}

/// Shows: plans.md#what-a-run-compares "Before the first change, the run compares"
#[test]
fn changes_since_the_plan_are_named_and_refused() {
    type Change = fn(&Repository);
    let table: [(Change, &str); 7] = [
        (
            |repository| drop(repository.expect_exit(0, "state protect -s reef --yes a--prod")),
            "the recorded state has changed",
        ),
        (|repository| write(repository, "three"), "the file .sc/stacks/reef/server.yaml has changed"),
        (
            |repository| {
                let path = ".sc/stacks/reef/secrets.yaml";
                repository.write(path, &repository.read(path).replace("hunter2-", "hunter3-"));
            },
            "the file .sc/stacks/reef/secrets.yaml has changed",
        ),
        (
            |repository| repository.write(".sc/cfg.default.yaml", "projectName: tank\n# changed\n"),
            "the file .sc/cfg.default.yaml has changed",
        ),
        (
            |repository| repository.write("Pulumi.reef.yaml", "config:\n  tank:size: \"2\"\n"),
            "the file Pulumi.reef.yaml is new",
        ),
        (
            |repository| repository.write(".sc/cfg.default.yaml", "projectName: pond\n"),
            "the plan is for stack reef of project tank in ",
        ),
        (
            |repository| {
                let path = ".sc/stacks/reef/server.yaml";
                repository.write(path, &repository.read(path).replace("passPhrase: hush", "passPhrase: loud"));
            },
            "passphrase",
        ),
    ];
    for (change, reason) in table {
        let repository = planned();
        change(&repository);
        let seen = repository.calls().len();
        let printed = repository.expect_rejected("provision --plan p.plan");
        assert!(printed.starts_with("exit 1\n") && printed.contains(reason), "{reason}: {printed}");
        let printed = repository.expect_exit(1, "plan check p.plan");
        assert!(printed.contains(reason), "{reason}: {printed}");
        assert_eq!(repository.calls().len(), seen, "no plugin was called");
    }
}

#[test]
fn file_that_is_not_the_plan_is_refused() {
    let repository = planned();
    let text = repository.read("p.plan");
    let swapped = |at: usize| {
        let mut bytes = text.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).unwrap()
    };
    let sealed = text.find("\"sealed\":\"").unwrap();
    let year = text.find("\"expires\":\"").unwrap() + "\"expires\":\"".len();
    let expires = |year_of_expiry: &str| format!("{}{year_of_expiry}{}", &text[..year], &text[year + 4..]);
    let table = [
        (text[..text.len() / 2].to_owned(), "the file is not a plan, or not a whole one"),
        ("{}".to_owned(), "the file is not a plan, or not a whole one"),
        (text.replace("\"format\":1", "\"format\":2"), "the plan has format 2, and this version of sc reads format 1"),
        (swapped(sealed + 60), "was changed after it was made"),
        (expires("2999"), "was changed after it was made"),
        (expires("1999"), "the plan has expired at 1999-"),
        (text.replace("\"version\":\"", "\"version\":\"9"), "the plan was made by sc 9"),
        (text.replace("\"stack\":\"reef\"", "\"stack\":\"rock\""), "there is no stack rock"),
    ];
    for (text, reason) in table {
        repository.write("other.plan", &text);
        let printed = repository.expect_rejected("provision --plan other.plan");
        assert!(printed.contains(reason), "{reason}: {printed}");
    }
    let printed = repository.expect_rejected("provision --plan missing.plan");
    assert!(printed.contains("the plan cannot be read or written"), "{printed}");
    let printed = repository.expect_rejected("provision --plan p.plan --profile other");
    assert!(printed.contains("the plan was made with the profile default"), "{printed}");
    for option in ["--target a--prod", "--replace a--prod"] {
        let printed = repository.expect_rejected(&format!("provision --plan p.plan {option}"));
        assert!(printed.starts_with("exit 2\n") && printed.contains("cannot be given with --plan"), "{printed}");
    }
    for options in ["--plan p.plan -s reef", "--plan p.plan --preview", "--allow-fewer", "--save-plan p.plan"] {
        let printed = repository.expect_rejected(&format!("provision {options}"));
        assert!(printed.starts_with("exit 2\n"), "{options}: {printed}");
    }
    repository.expect_exit(0, "provision --plan p.plan");
}

#[test]
fn plan_expires() {
    let repository = planned();
    repository.expect_exit(0, "preview --save-plan p.plan --plan-expires 1ms");
    let printed = repository.expect_rejected("provision --plan p.plan");
    assert!(printed.contains("the plan has expired at "), "{printed}");
    let printed = repository.expect_exit(0, "plan show p.plan");
    assert!(printed.contains("a--prod"), "{printed}");
}

#[test]
fn names_of_the_plan_are_those_of_the_run() {
    let autonaming = "config:\n  pulumi:autonaming: { pattern: '${name}-${hex(8)}' }\n";
    let repository = Repository::new(Sections::default());
    repository.script(json!({ "provider": { "autonaming": true } }));
    repository.write("Pulumi.reef.yaml", autonaming);
    write(&repository, "one");
    let proposed = |repository: &Repository, from: usize| -> Vec<String> {
        let text = fs::read_to_string(repository.path("rec/calls.jsonl")).unwrap();
        let calls = text.lines().skip(from).map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let name = |call: serde_json::Value| call["request"]["autonaming"]["proposedName"].as_str().map(str::to_owned);
        let mut names: Vec<String> = calls.filter(|call| call["rpc"] == "Check").filter_map(name).collect();
        names.sort();
        names.dedup();
        names
    };
    repository.expect_exit(0, "preview --save-plan p.plan");
    let (of_plan, seen) = (proposed(&repository, 0), repository.calls().len());
    assert_eq!(of_plan.len(), 2, "{of_plan:?}");
    repository.expect_exit(0, "provision --plan p.plan");
    assert_eq!(proposed(&repository, seen), of_plan);
    // The preview and the update of one command have the same names, too.
    let repository = Repository::new(Sections::default());
    repository.script(json!({ "provider": { "autonaming": true } }));
    repository.write("Pulumi.reef.yaml", autonaming);
    write(&repository, "one");
    repository.expect_exit(0, "provision");
    assert_eq!(proposed(&repository, 0).len(), 2);
}

#[test]
fn asset_that_has_changed_is_named() {
    let resources = "a: { type: rec:index:Thing, config: { v: { fn::fileAsset: pages/a.txt } } }";
    let repository = Repository::new(Sections { plugins: REC, resources, outputs: "" });
    repository.write("pages/a.txt", "one");
    repository.expect_exit(0, "preview --save-plan p.plan");
    repository.write("pages/a.txt", "two");
    let printed = repository.expect_rejected("provision --plan p.plan");
    assert!(printed.contains("the content of an asset of a--prod has changed: its property v"), "{printed}");
    repository.write("pages/a.txt", "one");
    repository.expect_exit(0, "provision --plan p.plan");
}

/// Shows: plans.md#what-a-run-compares "are taken anew and not compared"
#[test]
fn values_of_the_environment_in_the_configuration_of_a_plugin_are_taken_anew() {
    let declared = |region: &str| {
        format!(
            "- {{ name: rec, source: {{ type: local, path: $REC }}, passEnv: [REC_DIR], config: {{ token: '${{env:TOKEN}}', region: '{region}' }} }}"
        )
    };
    let with_token = |repository: &Repository, token: &str, arguments: &str| {
        let mut command = repository.command(arguments);
        command.env("TOKEN", token);
        repository.start_command(command).output()
    };
    let resources = "a: { type: rec:index:Thing, config: { v: '${env:TAG:none}' } }";
    let repository = Repository::new(Sections { plugins: &declared("north"), resources, outputs: "" });
    let printed = with_token(&repository, "one", "preview --save-plan p.plan");
    assert!(printed.starts_with("exit 0\n"), "{printed}");
    let mut command = repository.command("provision --plan p.plan");
    command.env("TOKEN", "two").env("TAG", "other");
    let printed = repository.start_command(command).output();
    assert!(printed.starts_with("exit 1\n"), "{printed}");
    assert!(printed.contains("a--prod is not as planned: v is \"other\" (planned: \"none\")"), "{printed}");
    let printed = with_token(&repository, "one", "preview --save-plan q.plan");
    assert!(printed.starts_with("exit 0\n"), "{printed}");
    let printed = with_token(&repository, "two", "provision --plan q.plan");
    assert!(printed.starts_with("exit 0\n"), "{printed}");
}

/// Shows: plans.md#saved-plans "no plan is saved if the refresh of the preview finds changes"
#[test]
fn plan_binds_the_recorded_state_and_not_what_a_refresh_has_found() {
    let resources = "a: { type: files:fs:File, config: { path: a, content: one } }";
    let repository = Repository::new(Sections { plugins: FILES, resources, outputs: "" });
    repository.expect_exit(0, "provision");
    repository.write("site/a", "changed by hand");
    let printed = repository.expect_exit(1, "preview --save-plan p.plan");
    assert!(printed.contains("no plan was saved: outside of sc, a--prod of stack reef changed"), "{printed}");
    assert!(!repository.path("p.plan").exists());
    repository.expect_exit(0, "preview --save-plan p.plan --skip-refresh");
    assert!(repository.path("p.plan").exists());
}

#[test]
fn plan_is_shown_as_its_preview_and_as_markdown() {
    let repository = planned();
    let seen = repository.calls().len();
    let printed = repository.expect_exit(0, "plan show p.plan");
    assert!(printed.contains("~ ") && printed.contains("a--prod") && printed.contains("\"two\""), "{printed}");
    assert!(!printed.contains("hunter2"), "{printed}");
    let printed = repository.expect_exit(0, "plan show p.plan --json");
    assert!(printed.contains("a--prod") && !printed.contains("hunter2"), "{printed}");
    let printed = repository.expect_exit(0, "plan show p.plan --markdown");
    assert!(printed.contains("- stack `reef`: **1** to update"), "{printed}");
    assert!(
        printed.contains("- `a--prod` (`rec:index:Thing`)") && printed.contains("`\"one\"` → `\"two\"`"),
        "{printed}"
    );
    let printed = repository.expect_exit(0, "plan check p.plan");
    assert!(printed.contains("the plan can be carried out until "), "{printed}");
    assert_eq!(repository.calls().len(), seen, "no plugin was called");
    // Without a verb, the command is the preview.
    let printed = repository.expect_exit(0, "plan -s reef");
    assert!(printed.contains("a--prod"), "{printed}");
}
