//! The whole example repository: every registration is the one that its table of URNs promises.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use provisioner::config::yaml::de::TextHandle;
use provisioner::program::{End, Program};
use provisioner::registry::provision::{
    CoreResource, Inputs, Provision, ProvisionError, ProvisionTable, Provisioned, output,
};
use provisioner::registry::types::{CoreConfig, CoreType, TypeTable};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::fake::{FakeDeployment, read};

/// Stands in for the real `s3-bucket`: only the bucket itself and its provider.
#[derive(Deserialize, JsonSchema)]
struct BucketConfig {
    credentials: TextHandle,
}

impl CoreConfig for BucketConfig {
    const TYPE: &'static str = "s3-bucket";
    const OUTPUTS: &'static [&'static str] = &["bucket", "region", "access-key", "secret-key"];
}

struct Bucket;

#[async_trait]
impl Provision for Bucket {
    async fn provision(&self, resource: CoreResource<'_>) -> Result<Provisioned, ProvisionError> {
        let config = resource.decode::<BucketConfig>()?;
        let credentials = resource.text(&config, config.config.credentials)?;
        assert!(credentials.value.is_secret());
        let environment = resource.environment;
        let name =
            format!("{}--s3-bucket--{}--provider--{environment}", resource.stack, resource.qualified(resource.name));
        let goal = resource.provider_goal("aws", "6.83.4", &name, Inputs::default().plain("region", "eu-north-1"));
        let provider = resource.register(goal).await?.as_provider_reference();
        let name = resource.qualified(resource.name);
        let inputs = Inputs::default().plain("bucket", name.clone()).plain("region", "eu-north-1");
        let bucket = resource.register(resource.goal("aws:s3/bucket:Bucket", &name, inputs, Some(provider))).await?;
        Ok(Provisioned {
            values: [("bucket", output(&bucket, "bucket")), ("region", output(&bucket, "region"))].into(),
            registered: vec![bucket.urn],
            exports: PropertyMap::new(),
        })
    }
}

/// The rows of the table: URN, name of the provider, names of the dependencies. Of the bucket's parts only those that
/// the stand-in registers.
fn promised(folder: &Path) -> BTreeSet<(String, String, BTreeSet<String>)> {
    let table = std::fs::read_to_string(folder.join("urns.tsv")).unwrap();
    let rows = table.lines().skip(1).filter(|line| !line.is_empty()).map(|line| {
        let mut cells = line.split('\t').map(str::to_owned);
        let mut cell = || cells.next().unwrap_or_default();
        (cell(), cell(), cell().split_whitespace().map(str::to_owned).collect())
    });
    rows.filter(|(urn, ..)| !urn.contains("::aws:") || urn.contains("::aws:s3/bucket:Bucket::")).collect()
}

#[tokio::test]
async fn every_registration_of_the_example_is_the_one_promised() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/example");
    let types = TypeTable::new([CoreType::of::<BucketConfig>()]);
    let (stack, _) = read(&folder.join("repo"), "aquarium", &types);
    let core = ProvisionTable::new([("s3-bucket", Arc::new(Bucket) as Arc<dyn Provision>)]);
    let deployment = FakeDeployment::default()
        .with("admin-password--production", "result", PropertyValue::secret("pw".into()))
        .with("host-key--production", "privateKeyPem", PropertyValue::secret("pem".into()))
        .with("site-cert--production", "certPem", "cert");
    let ended = Program::new(Arc::new(stack), core).run(&deployment).await;
    assert_eq!((ended.end, ended.diagnostics), (End::Complete, vec![]));

    let goals = deployment.goals.lock().unwrap().clone();
    let registered: BTreeSet<_> = goals
        .iter()
        .map(|goal| {
            let urn = format!("urn:pulumi:aquarium::tidepool::{}::{}", goal.type_token, goal.name);
            let provider = goal.provider.as_ref().map_or(String::new(), |provider| provider.urn.name().to_owned());
            (urn, provider, goal.dependencies.iter().map(|urn| urn.name().to_owned()).collect())
        })
        .collect();
    assert_eq!(registered, promised(&folder));

    let text = |name: &str, property: &str| deployment.goal(name).inputs[property].clone();
    assert_eq!(text("index--staging", "content"), "Tide pool (aquarium)\nmedia: media--staging in eu-north-1\n".into());
    assert_eq!(text("admin-file--production", "content"), PropertyValue::secret("admin:pw\n".into()));
    assert_eq!(text("admin-file--production", "mode"), "0600".into());
    assert_eq!(text("admin-password--production", "length"), 24.0.into());
    assert_eq!(deployment.output("adminPassword"), PropertyValue::secret("pw".into()));
    assert_eq!(deployment.output("indexes"), vec!["staging/index.txt".into(), "production/index.txt".into()].into());
    let (files, tls) = (deployment.goal("files"), deployment.goal("tls"));
    assert_eq!(files.inputs, [("root".to_owned(), "site".into())].into());
    assert_eq!((files.version.as_str(), tls.version.as_str()), ("", "5.2.2"));
    assert_eq!(tls.plugin_download_url, "", "Pulumi's tools find it where it is");
    assert!(tls.inputs["proxy"].as_map().unwrap()["password"].is_secret());
    assert_eq!(tls.property_dependencies.keys().collect::<Vec<_>>(), ["proxy"]);
}
