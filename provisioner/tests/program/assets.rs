//! Tests of assets and archives in the `config` of plugin resources.

use std::collections::BTreeMap;
use std::fs;

use bridge::host::{InputInfo, PackageTypes, TypeInfo, ValueKind};
use engine::ProgramEnd;
use pulumi_proto::property::{AssetContent, PropertyValue};

use crate::fake::{FakeDeployment, StackProgram};

fn types() -> BTreeMap<String, PackageTypes> {
    let input = |name: &str, kind| (name.to_owned(), InputInfo { kind, ..InputInfo::default() });
    let inputs = [
        input("source", Some(ValueKind::Asset)),
        input("code", Some(ValueKind::Archive)),
        input("files", Some(ValueKind::List(ValueKind::Asset.into()))),
        input("name", Some(ValueKind::Text)),
        input("any", None),
    ];
    let function = TypeInfo { inputs: inputs.into(), ..TypeInfo::default() };
    [("p".to_owned(), [("p:m:F".to_owned(), function)].into_iter().collect())].into()
}

/// Shows: server-yaml.md#assets-and-archives "A text where the schema has an asset is a mistake"
#[test]
fn kinds_of_values_are_checked_where_the_schema_has_assets() {
    let subject = StackProgram::resources(
        "
a: { type: 'p:m:F', config: { source: a.txt, code: { fn::fileAsset: a.txt }, files: [{ fn::stringAsset: x }, b], name: { fn::fileAsset: a } } }
b: { type: 'p:m:F', config: { source: { path: a.txt }, code: '${resource:a.code}' } }
c: { type: 'p:m:F', config: { source: { fn::fileArchive: dist }, code: ~, any: { fn::fileAsset: a.txt } } }
",
        "",
    );
    let errors = subject.program.check_types(&types()).errors;
    let found: Vec<String> = errors.iter().map(|error| error.summary.to_string()).collect();
    assert_eq!(
        found,
        [
            r#"the property "source" of the type p:m:F is an asset or an archive"#,
            r#"the property "code" of the type p:m:F is an archive"#,
            r#"the property "files[1]" of the type p:m:F is an asset or an archive"#,
            r#"the property "name" of the type p:m:F is a text, no asset"#,
            r#"the property "source" of the type p:m:F is an asset or an archive"#,
        ]
    );
    insta::assert_snapshot!(subject.render(&errors[..1]), @r#"
    error[asset]: the property "source" of the type p:m:F is an asset or an archive
     --> .sc/stacks/s/server.yaml:7:47
      |
    7 | ...   a: { type: 'p:m:F', config: { source: a.txt, code: { fn::fileAsset: a.txt }, files: [{ fn::stringAsset: x }, b], name: { fn::fi...
      |                                             ^^^^^
      |
      = hint: write `{ fn::fileAsset: PATH }`, with a path below the repository
      = hint: or `{ fn::stringAsset: TEXT }` for the content itself
    "#);
}

/// Shows: server-yaml.md#assets-and-archives "A file that is missing, or of another kind, is a mistake at its line before
///   anything is changed."
#[tokio::test]
async fn files_are_checked_before_the_run_and_hashed_in_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "a test asset").unwrap();
    let subject = StackProgram::resources(
        "
a: { type: 'p:m:F', config: { source: { fn::fileAsset: a.txt }, files: [{ fn::stringAsset: '${secret:s}' }] } }
b: { type: 'p:m:F', config: { source: { fn::fileAsset: '${resource:a.place}' } } }
c: { type: 'p:m:F', config: { source: { fn::fileAsset: dist/none.txt } } }
",
        "",
    );
    let program = subject.program.clone().in_folder(folder.path());
    insta::assert_snapshot!(subject.render(&program.check_before_plugins()), @r#"
    error[asset]: `fn::fileAsset`: cannot read dist/none.txt: No such file or directory (os error 2)
     --> .sc/stacks/s/server.yaml:9:64
      |
    9 |         c: { type: 'p:m:F', config: { source: { fn::fileAsset: dist/none.txt } } }
      |                                                                ^^^^^^^^^^^^^
      |
      = hint: paths start at the root of the repository; build or fetch the file before the run
    "#);
    fs::create_dir(folder.path().join("dist")).unwrap();
    fs::write(folder.path().join("dist/none.txt"), "").unwrap();
    assert_eq!(program.check_before_plugins(), []);
    let deployment = FakeDeployment { types: types(), ..FakeDeployment::default() }.with("a--e", "place", "a.txt");
    assert_eq!(program.run(&deployment, &deployment).await.end, ProgramEnd::Completed);
    let hash = Some("e34c74529110661faae4e121e57165ff4cb4dbdde1ef9770098aa3695e6b6704");
    for name in ["a--e", "b--e"] {
        let PropertyValue::Asset(asset) = &deployment.goal(name).inputs["source"] else { panic!() };
        assert_eq!((asset.hash.as_deref(), &asset.content), (hash, &AssetContent::Path("a.txt".to_owned())));
    }
    let PropertyValue::List(files) = &deployment.goal("a--e").inputs["files"] else { panic!() };
    assert!(matches!(&files[0], PropertyValue::Secret(secret) if matches!(secret.expose(), PropertyValue::Asset(_))));
    let deployment = FakeDeployment { types: types(), ..FakeDeployment::default() }.with("a--e", "place", "gone.txt");
    let result = program.run(&deployment, &deployment).await;
    assert_eq!(result.end, ProgramEnd::Failed);
    insta::assert_snapshot!(subject.render(&result.diagnostics), @r#"
    error[asset]: `source`: cannot read gone.txt: No such file or directory (os error 2)
     --> .sc/stacks/s/server.yaml:8:39
      |
    8 |         b: { type: 'p:m:F', config: { source: { fn::fileAsset: '${resource:a.place}' } } }
      |                                       ^^^^^^
    "#);
}
