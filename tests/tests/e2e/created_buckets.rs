//! Bucket for states that `sc` creates.

use tests::gcs_server::GcsServer;

use crate::repository::{FILES, PROVISIONER, Repository, Sections};

const TOKEN: &str = "ya29.hidden-token";
const PAGE: &str = "page: { type: files:fs:File, config: { path: a, content: b } }";

struct Reef {
    repository: Repository,
    server: GcsServer,
}

impl Reef {
    async fn new(settings: &str) -> Self {
        let server = GcsServer::start(Some(TOKEN)).await.unwrap();
        server.remove_bucket();
        let repository = Repository::new(Sections::default());
        let storage = format!("{{ type: gcp-bucket, config: {{ bucketName: reef, {settings} }} }}");
        let provisioner = PROVISIONER.replace("{ type: fs, config: { path: file://backend } }", &storage);
        assert_ne!(provisioner, PROVISIONER);
        repository.write_stack("reef", &provisioner, Sections { plugins: FILES, resources: PAGE, outputs: "" });
        Self { repository, server }
    }

    fn run(&self, arguments: &str) -> String {
        let mut command = self.repository.command(arguments);
        command.env("STORAGE_EMULATOR_HOST", self.server.url()).env("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN);
        self.repository.start_command(command).output()
    }

    /// Returns how often a bucket was to be created, and with what.
    fn creations(&self) -> Vec<String> {
        let requests = self.server.requests();
        let creations = requests.iter().filter(|request| request.method == "POST" && request.path.contains("/b?"));
        creations.map(|request| String::from_utf8_lossy(&request.body).into_owned()).collect()
    }
}

/// Shows: server-yaml.md#sections "the first `sc provision` or import creates the bucket if there is none, with the
///   requests of Simple Container"
#[tokio::test(flavor = "multi_thread")]
async fn bucket_is_created_by_the_first_command_that_changes_something() {
    let reef = Reef::new("projectId: tide-7, location: EU, provision: true").await;
    for command in ["preview", "provision --preview", "stack outputs", "refresh --yes"] {
        let output = reef.run(command);
        assert!(output.starts_with("exit 1\n") && output.contains("there is no bucket `reef`"), "{command}: {output}");
    }
    assert_eq!(reef.creations(), [""; 0]);
    let output = reef.run("provision");
    assert!(output.starts_with("exit 0\n"), "{output}");
    assert!(output.contains("created the bucket gs://reef for the state of reef"), "{output}");
    let created = [r#"{"name":"reef","location":"EU"}"#];
    assert_eq!(reef.creations(), created);
    assert!(reef.server.object(".pulumi/stacks/tank/reef.json").is_some());
    let output = reef.run("provision --expect-no-changes");
    assert!(output.starts_with("exit 0\n") && !output.contains("created the bucket"), "{output}");
    assert_eq!(reef.creations(), created);
}

#[tokio::test(flavor = "multi_thread")]
async fn bucket_must_exist_without_provision() {
    for settings in ["projectId: tide-7", "projectId: tide-7, provision: false"] {
        let reef = Reef::new(settings).await;
        let output = reef.run("provision");
        assert!(output.starts_with("exit 1\n") && output.contains("there is no bucket `reef`"), "{output}");
        assert_eq!(reef.creations(), [""; 0]);
    }
    let reef = Reef::new("provision: true").await;
    let output = reef.run("provision");
    assert!(output.starts_with("exit 1\n") && output.contains("`projectId` is missing"), "{output}");
}
