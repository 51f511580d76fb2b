//! Life of a stack that moves from store to store.

use tests::azurite::Azurite;

use crate::life::Repository;
use crate::{azblob, postgres, s3};

/// Password of the database, as the URL and as the server have it.
const PASSWORDS: [&str; 2] = ["r%25ef%3Ap%40ss%2Fword", "r%ef:p@ss/word"];

fn storage(url: &str) -> String {
    format!("{{ type: fs, config: {{ path: \"{url}\" }} }}")
}

/// Shows: state.md#migration-to-another-store "Tags, history, backups and retained checkpoints are copied, then the
///   checkpoint"
/// Shows: state.md#migration-to-another-store "To move a stack back, let server.yaml name the new store, and migrate to
///   the old one."
#[test]
fn stack_moves_from_a_folder_to_s3_to_azure_to_postgres_and_back() {
    let (bucket, database) = (s3::with_bucket("reef"), postgres::start(&[]));
    let container = Azurite::start("reef").unwrap();
    let in_container = azblob::url("reef/team", container.host());
    let in_bucket = format!("s3://reef/team?endpoint={}&s3ForcePathStyle=true&region=us-east-1", bucket.url());
    let in_database = postgres::url(&database, "ada", "reef", "sslmode=disable");
    let in_folder = "file://state?create_dir=true".to_owned();
    let keys = [("AWS_ACCESS_KEY_ID", "AKIATEST"), ("AWS_SECRET_ACCESS_KEY", "test"), azblob::KEYS[0], azblob::KEYS[1]];
    let mut repository = Repository::new(&storage(&in_folder), &keys);
    repository.write_things(&[("a", "0")]);
    repository.expect(0, "provision -S", "created");
    repository.sc(0, "stack tag set owner ada");
    let mut updates = 1;
    for (url, value) in [(in_bucket, "1"), (in_container, "2"), (in_database, "3"), (in_folder, "4")] {
        let moved = repository.sc(0, &format!("stack migrate --yes --to {url}"));
        assert!(moved.contains("moved organization/tank/reef to "), "{moved}");
        let refused = repository.sc(1, "provision -S");
        assert!(refused.contains("organization/tank/reef has moved to "), "{refused}");
        let listed = repository.sc(0, "stack ls");
        for printed in [moved, refused, listed] {
            assert!(!PASSWORDS.iter().any(|password| printed.contains(password)), "{printed}");
        }
        repository.use_storage(&storage(&url));
        repository.write_things(&[("a", &(updates - 1).to_string())]);
        repository.expect(0, "provision --expect-no-changes", "unchanged");
        repository.write_things(&[("a", value)]);
        repository.expect(0, "provision -S", "1 updated");
        updates += 1;
        repository.expect(0, "stack tag ls", "ada");
        let history = repository.sc(0, "stack history --json");
        // Each store had an update without changes and one with a change.
        assert_eq!(history.matches(r#""kind":"update""#).count(), 2 * updates - 1, "{history}");
    }
    repository.sc(0, "destroy --parent --yes");
}
