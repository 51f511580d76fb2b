//! The example of a provider behind go-plugin in `plugins-example`, with the cookie of `sc`.

use std::path::Path;

use tests::sdks::go_program;

use crate::repository::Repository;

/// Shows: plugin-authoring.md#go-plugin "is a complete minimal provider"
/// Shows: plugin-authoring.md#go-plugin "so that the plugin opens and dials no port"
#[test]
fn example_is_provisioned_with_and_logs_by_the_engine_behind_the_broker() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins-example/go-plugin");
    let program = go_program("pulumi-resource-greeting", &sources).unwrap();
    let repository = Repository::write(
        &program,
        "",
        "name: greeting, protocol: go-plugin",
        "type: greeting:index:Greeting, config: { name: World }",
    );
    let (code, output) = repository.sc("provision");
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("3 created") && output.contains("greeting World"), "{output}");
    let commands = [
        ("provision --expect-no-changes", "all 3 resources of dev are unchanged"),
        ("refresh --yes", "all 3 resources of dev are as recorded"),
        ("destroy --parent --yes", "3 deleted"),
    ];
    repository.run_all("the example", &commands);
    assert!(repository.socket_folders().is_empty());
}
