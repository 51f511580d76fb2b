//! Provider resources of a program, found without a deployment.

use engine::ProgramProviders as _;
use pulumi_proto::property::PropertyValue;

use crate::fake::StackProgram;

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
    let goals = StackProgram::with_secrets(server, secrets).program.provider_goals().await;
    let tokens: Vec<_> = goals.iter().map(|goal| goal.type_token.as_str()).collect();
    assert_eq!(tokens, ["pulumi:providers:p", "pulumi:providers:aws"]);
    assert_eq!(goals[1].inputs["accessKey"].without_wrappers(), PropertyValue::from("AK"));
    assert_eq!(goals[1].inputs["secretKey"].without_wrappers(), PropertyValue::from("SK"));
}
