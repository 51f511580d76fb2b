//! Goals of a program, found without a deployment.

use engine::ProgramGoals as _;
use pulumi_proto::property::PropertyValue;

use crate::fake::StackProgram;

/// Shows: engine.md#differences-from-pulumi "A refresh whose recorded configuration does not work any more is repeated
///   with that of the program, if DiffConfig calls the difference no replacement."
#[tokio::test]
async fn program_has_the_configurations_of_plugins_and_core_types() {
    let secrets = "
auth:
  reef: { type: aws-token, config: { account: '0042', accessKey: AK, secretAccessKey: SK, region: eu-north-1 } }
";
    let server = "
resources:
  resources:
    staging:
      resources:
        media: { type: s3-bucket, config: { credentials: '${auth:reef}' } }
        thing: { type: 'p:index:Thing', config: { of: '${resource:media.bucket}' } }
";
    let goals = StackProgram::with_secrets(server, secrets).program.goals().await;
    let providers: Vec<_> = goals.iter().filter(|goal| goal.type_token.provider_package().is_some()).collect();
    let tokens: Vec<_> = providers.iter().map(|goal| goal.type_token.as_str()).collect();
    assert_eq!(tokens, ["pulumi:providers:p", "pulumi:providers:aws"]);
    assert_eq!(providers[1].inputs["accessKey"].without_wrappers(), PropertyValue::from("AK"));
    assert_eq!(providers[1].inputs["secretKey"].without_wrappers(), PropertyValue::from("SK"));
}

#[tokio::test]
async fn program_has_the_secrets_of_resources_also_beside_references() {
    let secrets = "
values: { word: hush-hush }
";
    let server = "
resources:
  resources:
    staging:
      resources:
        first: { type: 'p:index:Thing' }
        second:
          type: 'p:index:Thing'
          config: { of: '${resource:first.id}', login: { word: '${secret:word}', name: me } }
";
    let goals = StackProgram::with_secrets(server, secrets).program.goals().await;
    let second = goals.iter().find(|goal| goal.name == "second--staging").unwrap();
    let login = second.inputs["login"].as_map().unwrap();
    assert!(second.inputs["of"].contains_unknowns());
    assert_eq!((&login["word"], &login["name"]), (&PropertyValue::secret("hush-hush".into()), &"me".into()));
}
