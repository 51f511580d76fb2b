//! Assets and archives in server.yaml: what the provider receives, what is recorded, and what a change is.

use crate::repository::{REC, Repository, Sections};

/// Shows: server-yaml.md#assets-and-archives "A resource changes if the hash does: a renamed file with the same content is no change."
#[test]
fn resource_changes_with_the_content_of_its_asset() {
    let resources =
        |file: &str| format!("a: {{ type: rec:index:Thing, config: {{ v: {{ fn::fileAsset: {file} }} }} }}");
    let write = |repository: &Repository, file: &str| {
        repository.write_sections(Sections { plugins: REC, resources: &resources(file), ..Sections::default() });
    };
    let repository = Repository::new(Sections { plugins: REC, resources: &resources("pages/a.txt"), outputs: "" });
    repository.write("pages/a.txt", "a test asset");
    assert!(repository.expect_exit(0, "validate").contains("no mistakes"));
    let printed = repository.expect_exit(0, "provision --diff");
    assert!(printed.contains("<asset pages/a.txt, e34c7452>"), "{printed}");
    let mut seen = 0;
    assert_eq!(repository.change_calls(&mut seen), ["Create a--prod"]);
    let recorded = repository.state().to_string();
    assert!(
        recorded.contains("e34c74529110661faae4e121e57165ff4cb4dbdde1ef9770098aa3695e6b6704")
            && recorded.contains("\"path\":\"pages/a.txt\""),
        "{recorded}"
    );
    repository.expect_exit(0, "provision");
    assert_eq!(repository.change_calls(&mut seen), [""; 0]);
    repository.write("pages/b.txt", "a test asset");
    write(&repository, "pages/b.txt");
    repository.expect_exit(0, "provision");
    assert_eq!(repository.change_calls(&mut seen), [""; 0], "the content is the same");
    repository.write("pages/b.txt", "another test asset");
    repository.expect_exit(0, "provision");
    assert_eq!(repository.change_calls(&mut seen), ["Update a--prod"]);
    write(&repository, "pages/c.txt");
    for arguments in ["validate", "preview", "provision", "provision -S"] {
        let printed = repository.expect_exit(1, arguments);
        assert!(printed.contains("error[asset]: `fn::fileAsset`: cannot read pages/c.txt"), "{arguments}: {printed}");
    }
    assert_eq!(repository.change_calls(&mut seen), [""; 0]);
    // What is deleted needs no file.
    repository.expect_exit(0, "destroy --parent --yes");
    assert_eq!(repository.change_calls(&mut seen), ["Delete a--prod"]);
}
