//! Tests of several stacks in one command: the order that their outputs give, and what one reads of another.

use rustix::process::Signal;

use crate::crashes::RECREATES;
use crate::processes::{signal, wait_until};
use crate::repository::{FILES, PROVISIONER, REC, Repository, Sections, provisioner_with};

/// Declares a resource of the plugin `files`.
fn file(key: &str, path: &str, content: &str) -> String {
    format!("{key}: {{ type: files:fs:File, config: {{ path: {path}, content: '{content}' }} }}\n")
}

/// Returns a repository of three stacks: `reef` reads `shore`, which reads `atoll`.
fn chain() -> Repository {
    let write = |repository: &Repository, stack: &str, resources: &str, outputs: &str| {
        repository.write_stack(stack, PROVISIONER, Sections { plugins: FILES, resources, outputs });
    };
    let resources = file("page", "reef", "${output:shore.path} ${output:atoll.password}");
    let repository = Repository::new(Sections { plugins: FILES, resources: &resources, outputs: "" });
    let password = "password: { type: files:random:Password, config: { length: 8 } }\n";
    let atoll = file("page", "atoll", "first") + password;
    write(&repository, "atoll", &atoll, "path: '${resource:page.path}'\npassword: '${resource:password.result}'");
    write(&repository, "shore", &file("page", "shore", "after ${output:atoll.path}"), "path: '${resource:page.path}'");
    repository
}

/// Shows: server-yaml.md#outputs-of-other-stacks "A secret output stays secret"
/// Shows: server-yaml.md#several-stacks "a stack begins once all that it depends on have succeeded"
#[test]
fn stacks_run_in_the_order_in_which_they_read_each_other() {
    let repository = chain();
    let output = repository.expect_exit(0, "preview");
    assert!(output.contains("3 stacks done"), "{output}");
    repository.expect_exit(0, "provision");
    assert_eq!(repository.read("site/shore"), "after atoll");
    let page = repository.read("site/reef");
    assert!(page.starts_with("shore ") && page.len() == "shore ".len() + 8, "{page}");
    let state = repository.state().to_string();
    assert!(!state.contains(&page), "the password of the other stack is encrypted: {state}");
    repository.expect_exit(0, "provision --expect-no-changes");
    // Alone, a stack reads what is recorded.
    repository.expect_exit(0, "provision -s reef --expect-no-changes");
    let output = repository.expect_exit(0, "destroy --parent -s atoll,reef,shore --yes");
    let order: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix("Destroying ")).collect();
    assert_eq!(order, ["reef", "shore", "atoll"], "{output}");
}

/// Shows: server-yaml.md#outputs-of-other-stacks "A stack that has not been provisioned, or an output that does not exist, is a mistake"
#[test]
fn outputs_that_are_not_there_are_told_at_their_lines() {
    let repository = chain();
    insta::assert_snapshot!(repository.expect_rejected("provision -s shore"), @r#"
    exit 1
    --- out
    --- err
    error[unknown-output]: the stack "atoll" has not been provisioned, so it has no outputs
      --> .sc/stacks/shore/server.yaml:13:77
       |
    13 |         page: { type: files:fs:File, config: { path: shore, content: 'after ${output:atoll.path}' } }
       |                                                                             ^^^^^^^^^^^^^^^^^^^^
       |
       = hint: provision it first, or in the same command; a default counts until then: `${output:STACK.NAME:DEFAULT}`

    error: outputs of other stacks cannot be read; nothing was changed
    "#);
    repository.expect_exit(0, "provision -s atoll");
    let path = ".sc/stacks/shore/server.yaml";
    repository.write(path, &repository.read(path).replace("output:atoll.path", "output:atoll.pth"));
    let output = repository.expect_exit(1, "provision");
    assert!(output.contains("the stack \"atoll\" has no output \"pth\""), "{output}");
    assert!(output.contains("stack reef is left out, because shore did not succeed"), "{output}");
    repository.write(path, &repository.read(path).replace("output:atoll.pth", "output:reef.x"));
    let output = repository.expect_exit(1, "validate");
    assert!(
        output.contains("error[stack-cycle]: the stacks depend on each other in a cycle: reef -> shore -> reef"),
        "{output}"
    );
}

/// Shows: server-yaml.md#several-stacks "is left out, and named; the other stacks go on"
#[test]
fn stack_that_fails_leaves_out_only_what_depends_on_it() {
    let repository = chain();
    let bad = file("page", "../../atoll", "first");
    let sections = Sections { plugins: FILES, resources: &bad, outputs: "path: x\npassword: y" };
    repository.write_stack("atoll", PROVISIONER, sections);
    let alone = file("page", "alone", "alone");
    repository.write_stack("cay", PROVISIONER, Sections { plugins: FILES, resources: &alone, outputs: "" });
    let output = repository.expect_exit(1, "provision");
    let left_out = ["stacks reef, shore", "stacks shore, reef"]
        .map(|stacks| format!("{stacks} are left out, because atoll did not succeed"));
    assert!(left_out.iter().any(|text| output.contains(text)), "{output}");
    assert_eq!(repository.read("site/alone"), "alone");
    assert!(output.contains("2 stacks ended"), "{output}");
}

/// Shows: server-yaml.md#several-stacks "work on several stacks at the same time"
#[test]
fn stacks_that_do_not_depend_on_each_other_run_at_the_same_time() {
    let thing = "a: { type: rec:index:Thing, config: { v: x } }";
    let repository = Repository::new(Sections { plugins: REC, resources: thing, outputs: "" });
    repository.write_stack("shore", PROVISIONER, Sections { plugins: REC, resources: thing, outputs: "" });
    repository.script(serde_json::json!({ "resources": { "a--prod": { "hang": "create" } } }));
    let running = repository.start("provision -S");
    // Each Create waits for the end of the command.
    let creates = || repository.calls().iter().filter(|call| *call == "Create a--prod").count();
    wait_until("both stacks create", || creates() == 2);
    signal(running.pid(), Signal::INT);
    let output = running.output();
    assert!(output.starts_with("exit 130\n") && output.contains("2 stacks ended"), "{output}");
    repository.script(serde_json::json!({}));
    let running = repository.start("provision -S --parallel-stacks 1 --clear-pending-creates -s reef");
    assert!(running.output().starts_with("exit 0\n"));
}

/// Shows: server-yaml.md#outputs-of-other-stacks "is decided once that stack is provisioned"
#[test]
fn preview_keeps_what_an_output_that_is_not_known_decides() {
    let repository = chain();
    let each = "page: { type: files:fs:File, forEach: '${output:atoll.names}', config: { path: '${each:key}', content: x } }\n";
    let sections = |resources| Sections { plugins: FILES, resources, outputs: "" };
    repository.write_stack("shore", PROVISIONER, sections(each));
    repository.write_stack("reef", PROVISIONER, sections(""));
    let atoll = file("page", "atoll", "first") + "p: { type: files:random:Password, config: { length: 8 } }\n";
    let with = |names: &str| {
        let outputs = format!("names: {names}");
        repository.write_stack("atoll", PROVISIONER, Sections { plugins: FILES, resources: &atoll, outputs: &outputs });
    };
    with("[a, b]");
    repository.expect_exit(0, "provision");
    repository.write_stack(
        "atoll",
        PROVISIONER,
        Sections {
            plugins: FILES,
            resources: &atoll.replace("length: 8", "length: 9"),
            outputs: "names: ['${resource:p.id}']",
        },
    );
    let output = repository.expect_exit(0, "preview");
    assert!(output.contains("info: page of env prod: decided once atoll is provisioned"), "{output}");
    assert!(!output.contains("to delete"), "{output}");
}

/// Shows: server-yaml.md#outputs-of-other-stacks "what an entry does not say is that of the stack itself"
#[test]
fn stack_of_another_project_and_store_is_read() {
    let other = chain();
    other.expect_exit(0, "provision -s atoll");
    let resources = file("page", "p", "${output:net.path} ${output:net.password}");
    let repository = Repository::new(Sections { plugins: FILES, resources: &resources, outputs: "" });
    let path = ".sc/stacks/reef/server.yaml";
    let url = format!("file://{}", other.path("backend").display());
    let references = |more: &str| {
        let entry = format!(
            "{{ name: net, project: tank, stack: atoll, state-storage: {{ type: fs, config: {{ path: '{url}' }} }}{more} }}"
        );
        format!("{}\nreferences: [{entry}]\n", repository.read(path).split("\nreferences:").next().unwrap())
    };
    repository.write(path, &references(""));
    repository.expect_exit(0, "provision");
    assert!(repository.read("site/p").starts_with("atoll "));
    let foreign = ", secrets-provider: { type: passphrase, config: { passPhrase: other } }";
    repository.write(path, &references(foreign));
    let output = repository.expect_exit(1, "provision");
    assert!(output.contains("error[unknown-output]: the outputs of the stack \"net\" cannot be read"), "{output}");
    assert!(output.contains("passphrase"), "{output}");
}

/// Two stacks of one command give the same name to different stacks.
///
/// Shows: server-yaml.md#outputs-of-other-stacks "what an entry does not say is that of the stack itself"
#[test]
fn name_of_a_reference_counts_in_its_own_stack() {
    let other = chain();
    other.expect_exit(0, "provision -s atoll,shore");
    let url = format!("file://{}", other.path("backend").display());
    let repository = Repository::new(Sections { plugins: FILES, resources: &file("page", "reef", ""), outputs: "" });
    for (stack, read) in [("bay", "atoll"), ("cove", "shore")] {
        let resources = file("page", stack, "${output:net.path}");
        repository.write_stack(stack, PROVISIONER, Sections { plugins: FILES, resources: &resources, outputs: "" });
        let path = format!(".sc/stacks/{stack}/server.yaml");
        let storage = format!("state-storage: {{ type: fs, config: {{ path: '{url}' }} }}");
        let references = format!("\nreferences: [{{ name: net, project: tank, stack: {read}, {storage} }}]\n");
        repository.write(&path, &(repository.read(&path) + &references));
    }
    for parallel in [1, 2] {
        repository.expect_exit(0, &format!("provision -s bay,cove --parallel-stacks {parallel}"));
        assert_eq!(repository.read("site/bay"), "atoll");
        assert_eq!(repository.read("site/cove"), "shore");
    }
}

/// Three stacks that read each other, whose plugin kills `sc` at a call. By default only some calls are tested; `SC_CRASH_EVERY=1`
/// tests all.
///
/// Shows: server-yaml.md#several-stacks "a stack begins once all that it depends on have succeeded"
#[test]
fn stacks_that_are_killed_at_any_call_go_on_with_the_next_run() {
    let every = std::env::var("SC_CRASH_EVERY").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    for parallel in [1, 16] {
        let moments = (1..).step_by(every).take_while(|call| is_killed_and_goes_on(*call, parallel)).count();
        assert!(moments * every > 6, "{moments} moments with {parallel} at once");
    }
}

/// Returns false if the run ended before the call.
fn is_killed_and_goes_on(call: usize, parallel: usize) -> bool {
    let plugin = "- { name: rec, source: { type: local, path: $REC }, passEnv: [REC_DIR, REC_KILL] }";
    let provisioner = provisioner_with(RECREATES);
    let repository = Repository::new(Sections::default());
    std::fs::create_dir(repository.path("rec/ledger")).unwrap();
    let write = |stack: &str, value: &str| {
        let resources = format!(
            "{stack}a: {{ type: rec:index:Thing, config: {{ v: '{value}' }} }}\n{stack}b: {{ type: rec:index:Thing, config: {{ v: '${{resource:{stack}a.v}}' }} }}\n"
        );
        let outputs = format!("v: '${{resource:{stack}b.v}}'");
        repository.write_stack(
            stack,
            &provisioner,
            Sections { plugins: plugin, resources: &resources, outputs: &outputs },
        );
    };
    write("atoll", "x");
    write("reef", "${output:atoll.v}-${output:shore.v}");
    write("shore", "${output:atoll.v}y");
    let mut command = repository.command(&format!("provision -S --parallel-stacks {parallel}"));
    command.env("REC_KILL", format!("{call}:after"));
    let ended = repository.start_command(command).wait();
    if ended.status == "exit 0" {
        return false;
    }
    assert_eq!(ended.status, "killed by signal 9", "call {call}: {}", ended.stderr);
    for stack in ["atoll", "reef", "shore"] {
        repository.start(&format!("cancel --yes -s {stack}")).wait();
    }
    repository.expect_exit(0, &format!("provision -S --parallel-stacks {parallel}"));
    repository.expect_exit(0, "provision -S --expect-no-changes");
    let states =
        ["atoll", "reef", "shore"].map(|stack| repository.read(&format!("backend/.pulumi/stacks/tank/{stack}.json")));
    assert!(states[1].contains(r#""v":"x-xy""#), "call {call}: {}", states[1]);
    // What was created and not recorded, because the reply was lost, is created again: no other resource exists twice.
    let existing = repository.names("rec/ledger");
    let unrecorded = existing.iter().filter(|path| {
        let id = path.rsplit('/').next().unwrap();
        !states.iter().any(|state| state.contains(&format!("\"{id}\"")))
    });
    assert!(unrecorded.count() <= parallel.min(3), "call {call}: {existing:?}");
    true
}
