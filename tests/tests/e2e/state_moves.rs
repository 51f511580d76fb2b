//! Tests of `sc state move`: resources that get another stack.

use crate::repository::{REC, Repository, Sections, provisioner_with};

const THREE: &str = "
    bed: { type: rec:index:Thing, config: { v: '1' } }
    plant: { type: rec:index:Thing, config: { v: '${resource:bed.out}' } }
    stone: { type: rec:index:Thing, config: { v: '1' }, options: { protect: true } }";
const OTHER: &str = "shell: { type: rec:index:Thing, config: { v: '1' } }";

/// Returns a repository with the provisioned stack reef, and the stack shore, which is not provisioned.
fn repository() -> Repository {
    let repository = Repository::new(Sections { plugins: REC, resources: THREE, outputs: "" });
    repository.expect_exit(0, "provision -S");
    write_shore(&repository, OTHER);
    repository
}

fn write_shore(repository: &Repository, resources: &str) {
    repository.write_stack("shore", &provisioner_with(""), Sections { plugins: REC, resources, outputs: "" });
}

/// Returns the names of the resources of a stack.
fn things(repository: &Repository, stack: &str) -> Vec<String> {
    let exported = repository.start(&format!("stack export -s {stack}")).wait();
    let exported: serde_json::Value = serde_json::from_str(&exported.stdout).unwrap_or_default();
    let resources = exported["deployment"]["resources"].as_array().cloned().unwrap_or_default();
    let things = resources.iter().filter(|resource| resource["type"] == "rec:index:Thing");
    things.map(|thing| thing["urn"].as_str().unwrap().rsplit("::").next().unwrap().to_owned()).collect()
}

/// Shows: state.md#moves-of-resources "moves resources from one stack of the repository to another, without a change of them"
/// Shows: state.md#moves-of-resources "It need not be provisioned yet"
#[test]
fn moved_resources_have_no_changes_in_either_stack_once_their_declarations_have_moved() {
    for is_provisioned in [false, true] {
        let repository = repository();
        if is_provisioned {
            repository.expect_exit(0, "provision -S -s shore");
        }
        let mut seen = repository.calls().len();
        let output = repository.expect_exit(0, "state move -s reef plant prod/bed --to-stack shore --yes");
        for expected in [
            "move bed--prod (rec:index:Thing) to shore",
            "move plant--prod (rec:index:Thing) to shore",
            "moved 2 resources from reef to shore",
            "warning: move the declarations to the server.yaml of shore before the next provision",
        ] {
            assert!(output.contains(expected), "{output}");
        }
        assert_eq!(output.contains("copy rec (pulumi:providers:rec) to shore"), !is_provisioned, "{output}");
        assert_eq!(repository.change_calls(&mut seen), [""; 0]);
        assert_eq!(things(&repository, "reef"), ["stone--prod"]);
        let (bed, stone) = THREE.split_at(THREE.find("    stone").unwrap());
        repository.write_sections(Sections { plugins: REC, resources: stone, outputs: "" });
        let others = if is_provisioned { format!("{bed}    {OTHER}") } else { bed.to_owned() };
        write_shore(&repository, &others);
        repository.expect_exit(0, "provision -S --expect-no-changes -s reef");
        repository.expect_exit(0, "provision -S --expect-no-changes -s shore");
        assert!(!repository.is_locked());
    }
}

/// Shows: state.md#moves-of-resources "with the names of those to move as well"
#[test]
fn move_that_would_break_a_state_is_refused() {
    let repository = repository();
    let before = repository.files("backend");
    let table = [
        ("plant --to-stack shore", "plant--prod has the dependency bed--prod"),
        ("plant --to-stack shore", "hint: move these as well: bed--prod"),
        ("rec --to-stack shore", "rec is a provider resource, which moves with the resources that use it"),
        ("pebble --to-stack shore", "no resource of this stack is called pebble"),
        ("bed --to-stack reef", "reef is the stack that has the resources"),
        ("bed --to-stack sea", "there is no stack sea"),
    ];
    for (arguments, expected) in table {
        let output = repository.sc(&format!("state move -s reef {arguments} --yes"));
        assert!(!output.starts_with("exit 0") && output.contains(expected), "{arguments}: {output}");
    }
    let output = repository.expect_exit(2, "state move -s reef bed --to-stack shore");
    assert!(output.contains("prune plant--prod (rec:index:Thing) loses its dependency bed--prod"), "{output}");
    assert!(repository.files("backend") == before);
}

/// Shows: state.md#moves-of-resources "the next command of `sc` on either stack takes the locks of both, as those of [other runs that have ended](#locks), and reports what it does"
#[test]
fn interrupted_move_is_ended_by_the_next_command_on_either_stack() {
    for (is_moved, via) in [(false, "reef"), (false, "shore"), (true, "reef"), (true, "shore")] {
        let repository = repository();
        repository.expect_exit(0, "provision -S -s shore");
        if is_moved {
            repository.expect_exit(0, "state move -s reef stone --to-stack shore --yes");
        }
        let backend = std::fs::canonicalize(repository.path("backend")).unwrap();
        for (stack, other, side) in [("reef", "shore", "source"), ("shore", "reef", "target")] {
            let mut record = serde_json::json!({
                "version": 2, "id": "m", "side": side, "other": { "project": "tank", "stack": other },
                "location": format!("file://{}", backend.display()), "resources": ["urn:pulumi:reef::tank::rec:index:Thing::stone--prod"],
                "before": "b", "after": "a", "time": "2026-01-01T00:00:00Z", "user": "ada", "host": "reefbox",
            });
            if side == "source" {
                record["checkpoint"] = "{}".into();
            }
            repository.write(&format!("backend/.sc/moved/tank/{stack}.json"), &record.to_string());
        }
        let output = repository.expect_exit(0, &format!("state ls -s {via}"));
        let done = if is_moved { "completed" } else { "undid" };
        let expected = format!(
            "warning: {done} an interrupted move of a resource from organization/tank/reef to organization/tank/shore"
        );
        assert!(output.contains(&expected), "{output}");
        assert_eq!(things(&repository, "reef").contains(&"stone--prod".to_owned()), !is_moved);
        assert_eq!(things(&repository, "shore").contains(&"stone--prod".to_owned()), is_moved);
        assert!(!repository.expect_exit(0, "state ls -s shore").contains("interrupted"));
        assert!(!repository.is_locked());
    }
}
