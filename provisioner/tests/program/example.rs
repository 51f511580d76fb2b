//! Test of the example repository: its registrations equal those in its table of URNs.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use engine::ProgramEnd;
use provisioner::program::Program;
use provisioner::registry::recipes;
use pulumi_proto::property::PropertyValue;

use crate::fake::{FakeDeployment, read};

/// Reads the rows of the table: URN, name of the provider, names of the dependencies.
fn expected_registrations(folder: &Path) -> BTreeSet<(String, String, BTreeSet<String>)> {
    let table = std::fs::read_to_string(folder.join("urns.tsv")).unwrap();
    let rows = table.lines().skip(1).filter(|line| !line.is_empty()).map(|line| {
        let mut cells = line.split('\t').map(str::to_owned);
        let mut cell = || cells.next().unwrap_or_default();
        (cell(), cell(), cell().split_whitespace().map(str::to_owned).collect())
    });
    rows.collect()
}

#[tokio::test]
async fn registrations_of_example_match_its_table() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/example");
    let (stack, _) = read(&folder.join("repo"), "aquarium", &recipes::built_in_types());
    let deployment = FakeDeployment::default()
        .with("media--staging", "region", "eu-north-1")
        .with("media--production", "region", "eu-north-1")
        .with("admin-password--production", "result", PropertyValue::secret("pw".into()))
        .with("host-key--production", "privateKeyPem", PropertyValue::secret("pem".into()))
        .with("site-cert--production", "certPem", "cert");
    let result = Program::new(Arc::new(stack), recipes::core_types()).run(&deployment, &deployment).await;
    assert_eq!((result.end, result.diagnostics), (ProgramEnd::Completed, vec![]));

    let goals = deployment.goals.lock().unwrap().clone();
    let registered: BTreeSet<_> = goals
        .iter()
        .map(|goal| {
            let urn = format!("urn:pulumi:aquarium::tidepool::{}::{}", goal.type_token, goal.name);
            let provider = goal.provider.as_ref().map_or(String::new(), |provider| provider.urn.name().to_owned());
            (urn, provider, goal.dependencies.iter().map(|urn| urn.name().to_owned()).collect())
        })
        .collect();
    assert_eq!(registered, expected_registrations(&folder));

    let text = |name: &str, property: &str| deployment.goal(name).inputs[property].clone();
    assert_eq!(text("index--staging", "content"), "Tide pool (aquarium)\nmedia: media--staging in eu-north-1\n".into());
    assert_eq!(text("admin-file--production", "content"), PropertyValue::secret("admin:pw\n".into()));
    assert_eq!(text("admin-file--production", "mode"), "0600".into());
    assert_eq!(text("admin-password--production", "length"), 24.0.into());
    let list = |items: &[&str]| PropertyValue::List(items.iter().map(|item| (*item).into()).collect());
    let cors = PropertyValue::Map(
        [
            ("allowedOrigins".to_owned(), list(&["https://staging.reef.example"])),
            ("allowedMethods".to_owned(), list(&["GET", "HEAD"])),
            ("allowedHeaders".to_owned(), list(&["*"])),
        ]
        .into(),
    );
    assert_eq!(text("media--staging-cors", "corsRules"), vec![cors].into());
    assert_eq!(deployment.output("adminPassword"), PropertyValue::secret("pw".into()));
    assert_eq!(deployment.output("indexes"), vec!["staging/index.txt".into(), "production/index.txt".into()].into());
    let (files, tls) = (deployment.goal("files"), deployment.goal("tls"));
    assert_eq!(*files.inputs, [("root".to_owned(), "site".into())].into());
    assert_eq!((files.version, tls.version.as_deref()), (None, Some("5.2.2")));
    assert_eq!(tls.plugin_download_url, None, "Pulumi's tools use their default URL");
    assert!(tls.inputs["proxy"].as_map().unwrap()["password"].is_secret());
    assert_eq!(tls.property_dependencies.keys().collect::<Vec<_>>(), ["proxy"]);
}
