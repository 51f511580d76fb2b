//! Tests of the guards of `provision` and `destroy`: nothing is deleted by a slip in the file, or without a question where
//! somebody can be asked. The files that the plugin has created are the record of what exists.

use serde_json::json;

use crate::repository::{FILES, PROVISIONER, REC, Repository, Sections};
use crate::terminal::Terminal;

const PAGES: &str = "
a: { type: files:fs:File, config: { path: a, content: one } }
b: { type: files:fs:File, config: { path: b, content: one } }
";
/// The resources without `b`.
const ONLY_A: &str = "a: { type: files:fs:File, config: { path: a, content: one } }";

fn sections(resources: &str) -> Sections<'_> {
    Sections { plugins: FILES, resources, outputs: "" }
}

/// Returns a repository whose resources `a` and `b` exist, and whose server.yaml has these resources.
fn provisioned_and_changed(resources: &str) -> Repository {
    let repository = Repository::new(sections(PAGES));
    repository.expect_exit(0, "provision");
    repository.write_sections(sections(resources));
    repository
}

/// Returns the files that the plugin has created.
fn created_files(repository: &Repository) -> Vec<String> {
    repository.names("site").iter().filter_map(|path| path.strip_prefix("site/")).map(str::to_owned).collect()
}

/// Waits for the end of the command, and returns its exit code and the screen. The terminal is closed then.
fn ended(mut terminal: Terminal) -> (i32, String) {
    (terminal.wait(), terminal.screen())
}

/// Returns the last lines of the screen.
fn last_lines(terminal: &Terminal, count: usize) -> String {
    let screen = terminal.screen();
    let lines: Vec<&str> = screen.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[test]
fn slips_in_the_levels_of_the_file_delete_nothing() {
    let repository = provisioned_and_changed(PAGES);
    let path = ".sc/stacks/reef/server.yaml";
    let good = repository.read(path);
    let levels = "resources:\n  resources:\n    prod:\n      resources:\n";
    assert!(good.contains(levels));
    for slip in [
        "resources:\n  prod:\n    resources:\n",
        "resource:\n  resources:\n    prod:\n      resources:\n",
        "resources:\n  resource:\n    prod:\n      resources:\n",
        "resources:\n  resources:\n    prod:\n      resource:\n",
        "resources:\n  resources:\n    resources:\n",
        "resources:\n",
        "environments:\n  prod:\n    resources:\n",
    ] {
        repository.write(path, &good.replace(levels, slip));
        let output = repository.expect_rejected("provision");
        assert!(output.contains("server.yaml:"), "{slip}: {output}");
        assert_eq!(created_files(&repository), ["a", "b"], "{slip}");
    }
}

/// Shows: server-yaml.md#guards "on a terminal it asks before it deletes or replaces resources"
/// Shows: server-yaml.md#guards "A declined question ends the run with exit code 1, and nothing is changed."
#[test]
fn deletes_are_asked_for_on_a_terminal() {
    let repository = provisioned_and_changed(ONLY_A);
    let question = "These changes delete 1 resource. Apply them to stack reef? [y/N]";

    let mut terminal = repository.start_on_terminal("provision");
    terminal.wait_until_shown(question);
    assert!(terminal.screen().contains("- └─ b--prod  files:fs:File  delete"), "{}", terminal.screen());
    terminal.type_line("n");
    assert_eq!(terminal.wait(), 1, "{}", terminal.screen());
    assert_eq!(last_lines(&terminal, 2), format!("{question} n\nnothing was changed"));
    assert_eq!(created_files(&repository), ["a", "b"]);
    assert!(!repository.is_locked());

    let mut terminal = repository.start_on_terminal("provision");
    terminal.wait_until_shown(question);
    terminal.press_ctrl_c();
    assert_eq!(terminal.wait(), 130, "{}", terminal.screen());
    assert_eq!(created_files(&repository), ["a", "b"]);
    assert!(!repository.is_locked());

    let mut terminal = repository.start_on_terminal("provision");
    terminal.wait_until_shown(question);
    terminal.type_line("y");
    assert_eq!(terminal.wait(), 0, "{}", terminal.screen());
    assert_eq!(created_files(&repository), ["a"]);
}

#[test]
fn replacements_are_asked_for_on_a_terminal() {
    let repository = provisioned_and_changed(&PAGES.replace("path: b", "path: c"));
    let mut terminal = repository.start_on_terminal("provision");
    terminal.wait_until_shown("These changes replace 1 resource. Apply them to stack reef? [y/N]");
    terminal.type_line("");
    assert_eq!(terminal.wait(), 1);
    assert_eq!(created_files(&repository), ["a", "b"]);
}

#[test]
fn question_is_omitted_without_need() {
    // The change of a content is an update, and not a replacement.
    let updated = PAGES.replace("one", "two");
    let table: [(&str, &str, &[&str]); 5] = [
        (&updated, "provision", &["a", "b"]),
        (ONLY_A, "provision --yes", &["a"]),
        (ONLY_A, "provision -S", &["a"]),
        ("", "provision -y --max-deletes 2", &[]),
        (PAGES, "provision --max-deletes 0", &["a", "b"]),
    ];
    for (resources, command, expected) in table {
        let repository = provisioned_and_changed(resources);
        let mut terminal = repository.start_on_terminal(command);
        assert_eq!(terminal.wait(), 0, "{command}: {}", terminal.screen());
        assert!(!terminal.screen().contains("[y/N]"), "{command}: {}", terminal.screen());
        assert_eq!(created_files(&repository), *expected, "{command}");
    }
    // In a pipeline, and without a terminal.
    let repository = provisioned_and_changed(ONLY_A);
    let mut command = repository.command("provision");
    command.env("CI", "true");
    let mut terminal = Terminal::start(&command);
    assert_eq!(terminal.wait(), 0, "{}", terminal.screen());
    assert_eq!(created_files(&repository), ["a"]);
    let repository = provisioned_and_changed(ONLY_A);
    repository.expect_exit(0, "provision");
    assert_eq!(created_files(&repository), ["a"]);
}

/// Shows: server-yaml.md#guards "Four settings of `provisioner.config` make it stricter or more lenient"
#[test]
fn provisioner_decides_what_is_asked_for() {
    let with = |setting: &str| {
        let repository = Repository::new(sections(PAGES));
        repository.expect_exit(0, "provision");
        let provisioner = PROVISIONER.replace("  config:\n", &format!("  config:\n    {setting}\n"));
        repository.write_stack("reef", &provisioner, sections(ONLY_A));
        repository
    };
    let repository = with("confirm: never");
    let (code, screen) = ended(repository.start_on_terminal("provision"));
    assert_eq!(code, 0, "{screen}");
    assert_eq!(created_files(&repository), ["a"]);

    let repository = with("confirm: always");
    insta::assert_snapshot!(repository.expect_rejected("provision -S"), @"
    exit 2
    --- out
    --- err
    error: stack reef demands a confirmation (`confirm: always`), and nobody can be asked
      hint: give --yes to apply the changes without a question
    ");
    let mut terminal = repository.start_on_terminal("provision");
    terminal.wait_until_shown("These changes delete 1 resource. Apply them to stack reef? [y/N]");
    terminal.type_line("y");
    let (code, screen) = ended(terminal);
    assert_eq!(code, 0, "{screen}");
    let (code, screen) = ended(repository.start_on_terminal("provision"));
    assert_eq!(code, 0, "there is nothing to change: {screen}");
    repository.expect_exit(0, "provision --yes");
    assert_eq!(created_files(&repository), ["a"]);

    let repository = with("maxDeletes: 0");
    insta::assert_snapshot!(repository.sc("provision --yes -S"), @r#"
    exit 1
    --- out
      tank-reef   Stack
    - └─ b--prod  files:fs:File  delete
            - content: "one"
            - mode: "0644"
            - path: "b"

    Preview of reef done in [time]: 1 to delete, 3 unchanged
    --- err
    info: Loaded plugin: files v0.1.0
    Previewing update of reef
    error: the changes of stack reef would delete 1 resource, more than maxDeletes 0 (.sc/stacks/reef/server.yaml:5:17) allows; nothing was changed
      hint: if this is what you want, give --max-deletes 1
    "#);
    assert_eq!(created_files(&repository), ["a", "b"]);
    repository.expect_exit(0, "provision --yes -S --max-deletes 1");
    assert_eq!(created_files(&repository), ["a"]);
}

/// The provider changes its answer between the preview and the update, as an output does that the preview does not know.
#[test]
fn run_that_would_replace_more_than_its_preview_has_shown_replaces_nothing() {
    let thing = |v: &str| format!("t: {{ type: rec:index:Thing, config: {{ v: {v} }} }}");
    let provisioner = PROVISIONER.replace("  config:\n", "  config:\n    confirm: always\n");
    let (before, after) = (thing("1"), thing("2"));
    let written = |resources| Sections { plugins: REC, resources, outputs: "" };
    let repository = Repository::new(written(&before));
    repository.expect_exit(0, "provision");
    repository.write_stack("reef", &provisioner, written(&after));
    let mut terminal = repository.start_on_terminal("provision");
    terminal.wait_until_shown("Apply these changes to stack reef? [y/N]");
    repository.script(json!({"resources": {"t--prod": {"diff": "replace"}}}));
    terminal.type_line("y");
    let (code, screen) = ended(terminal);
    assert_eq!(code, 1, "{screen}");
    let text = "t--prod would be replaced: the preview has not shown that t--prod is deleted or replaced";
    assert!(screen.replace(['\n', '\r'], " ").replace("  ", " ").contains(text), "{screen}");
    assert!(!repository.calls().contains(&"Delete t--prod".to_owned()), "{screen}");

    let mut terminal = repository.start_on_terminal("provision");
    terminal.wait_until_shown("These changes replace 1 resource. Apply them to stack reef? [y/N]");
    terminal.type_line("y");
    assert_eq!(ended(terminal).0, 0);
}

/// Returns a repository whose resources exist, and whose provider finds none of them.
fn provisioned_and_missing(setting: &str, resources: &str) -> Repository {
    let repository = Repository::new(sections(resources));
    let provisioner = PROVISIONER.replace("  config:\n", &format!("  config:\n{setting}"));
    repository.write_stack("reef", &provisioner, sections(resources));
    repository.expect_exit(0, "provision");
    for file in created_files(&repository) {
        std::fs::remove_file(repository.path(&format!("site/{file}"))).unwrap();
    }
    repository
}

/// Shows: server-yaml.md#missing-resources "nothing of the refresh is recorded unless the resources are accepted"
#[test]
fn resources_that_are_all_missing_leave_the_state_only_if_that_is_accepted() {
    let repository = provisioned_and_missing("", PAGES);
    let before = repository.expect_exit(0, "stack export");
    let output = repository.expect_exit(1, "provision --yes");
    let described =
        "warning: the refresh of stack reef did not find any of the 2 resources of provider files: a--prod, b--prod";
    assert!(output.contains(described) && output.contains("give --accept-missing"), "{output}");
    assert!(output.contains("─ a--prod  files:fs:File  missing") && !output.contains("deleted"), "{output}");
    for command in ["provision -S", "provision --yes --run-program", "provision -S --run-program", "refresh --yes"] {
        let output = repository.expect_exit(1, command);
        assert!(output.contains("error: missing resources of stack reef would leave the state"), "{command}: {output}");
    }
    for command in ["refresh --run-program", "destroy --parent --yes", "destroy --parent --yes -S --run-program"] {
        let output = repository.expect_exit(1, command);
        assert!(output.contains("error: missing resources of stack reef would leave the state"), "{command}: {output}");
    }
    assert_eq!(repository.expect_exit(0, "stack export"), before, "nothing of a refused refresh is recorded");
    assert_eq!((created_files(&repository).len(), repository.is_locked()), (0, false));
    for command in ["preview", "provision -P", "refresh -P", "destroy --parent -P", "preview --run-program"] {
        let output = repository.expect_exit(0, command);
        assert!(output.contains("warning: the refresh of stack reef did not find any of the 2 resources"), "{output}");
    }
    let output = repository.expect_exit(1, "provision --accept-missing --max-deletes 1");
    assert!(output.contains("did not find 2 resources, more than --max-deletes 1 allows"), "{output}");
    assert_eq!(repository.expect_exit(0, "stack export"), before);
    repository.expect_exit(0, "provision --accept-missing --max-deletes 2");
    assert_eq!(created_files(&repository), ["a", "b"]);
}

#[test]
fn server_yaml_accepts_missing_resources() {
    let repository = provisioned_and_missing("    acceptMissing: true\n", PAGES);
    repository.expect_exit(0, "provision");
    assert_eq!(created_files(&repository), ["a", "b"]);
}

#[test]
fn missing_resources_are_asked_for_on_a_terminal() {
    let repository = provisioned_and_missing("", PAGES);
    let question = "Remove the missing resources from the state of stack reef? [y/N]";
    let mut terminal = repository.start_on_terminal("provision --yes");
    terminal.wait_until_shown(question);
    assert!(terminal.screen().contains("did not find any of the 2 resources"), "{}", terminal.screen());
    terminal.type_line("n");
    assert_eq!(terminal.wait(), 1, "{}", terminal.screen());
    assert!(terminal.screen().contains("nothing was changed"), "{}", terminal.screen());
    let mut terminal = repository.start_on_terminal("provision -S");
    terminal.wait_until_shown(question);
    terminal.press_ctrl_c();
    assert_eq!(terminal.wait(), 130, "{}", terminal.screen());
    assert_eq!((created_files(&repository).len(), repository.is_locked()), (0, false));
    let mut terminal = repository.start_on_terminal("provision -S");
    terminal.wait_until_shown(question);
    terminal.type_line("y");
    assert_eq!(terminal.wait(), 0, "{}", terminal.screen());
    assert_eq!(created_files(&repository), ["a", "b"]);
}

#[test]
fn destroy_says_that_it_found_nothing() {
    let repository = provisioned_and_missing("", PAGES);
    let output = repository.expect_exit(0, "destroy --parent --yes --accept-missing");
    assert!(
        output.contains("warning: nothing was found: the refresh of stack reef found none of its 2 resources"),
        "{output}"
    );
}

#[test]
fn missing_resource_counts_with_the_deletes() {
    let repository = provisioned_and_changed(ONLY_A);
    std::fs::remove_file(repository.path("site/a")).unwrap();
    let output = repository.expect_exit(1, "provision --max-deletes 1");
    assert!(
        output.contains("would delete 1 resource, and the refresh did not find 1, more than --max-deletes 1 allows"),
        "{output}"
    );
    // Nothing of the refresh was recorded, so the next run counts the same.
    repository.expect_exit(1, "provision --max-deletes 1");
    repository.expect_exit(0, "provision --max-deletes 2");
    assert_eq!(created_files(&repository), ["a"]);
}

#[test]
fn retained_resource_is_shown_as_retained_and_not_counted() {
    let retained = PAGES.replace("content: one }", "content: one }, options: { retainOnDelete: true }");
    let repository = Repository::new(sections(&retained));
    repository.expect_exit(0, "provision");
    repository.write_sections(sections(""));
    let output = repository.expect_exit(0, "preview");
    assert!(output.contains("b--prod  files:fs:File  retain") && output.contains("2 to retain"), "{output}");
    let output = repository.expect_exit(0, "provision --max-deletes 0");
    assert!(output.contains("- retained b--prod (files:fs:File)") && output.contains("2 retained"), "{output}");
    assert!(!output.contains("deleted") && !output.contains("to delete"), "{output}");
    assert_eq!(created_files(&repository), ["a", "b"]);
}

#[test]
fn destroy_without_a_question_fails_before_it_deletes_if_a_resource_is_protected() {
    let repository = Repository::new(sections(
        &PAGES.replace("path: a, content: one } }", "path: a, content: one }, options: { protect: true } }"),
    ));
    repository.expect_exit(0, "provision");
    let output = repository.expect_exit(1, "destroy --parent --yes");
    assert!(output.contains("error: a--prod (files:fs:File): a--prod is protected and cannot be deleted"), "{output}");
    assert_eq!(created_files(&repository), ["a", "b"]);
}

#[test]
fn stack_that_a_guard_refuses_does_not_stop_the_others() {
    let repository = Repository::new(sections(PAGES));
    let page = "z: { type: files:fs:File, config: { path: z, content: one } }\n";
    repository.write_stack("atoll", PROVISIONER, sections(page));
    repository.expect_exit(0, "provision -s atoll");
    repository.write_stack("atoll", PROVISIONER, sections(""));
    let output = repository.expect_exit(1, "provision --max-deletes 0");
    assert!(!output.contains("left out") && output.contains("more than --max-deletes 0 allows"), "{output}");
    assert_eq!(created_files(&repository), ["a", "b", "z"]);
    let output = repository.expect_exit(2, "provision -s reef,");
    assert!(output.contains("error: the name of a stack is empty"), "{output}");
}
