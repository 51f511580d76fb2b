//! Guarantees that a run waits for, and the loss of a machine without them.

use std::fs;

use crate::life::Repository;
use crate::{postgres, s3};

/// Table and trigger that record the setting with which each row was written.
const RECORDED: &str = "\
CREATE TABLE writes (key text, synchronous_commit text);
CREATE FUNCTION record_write() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO writes VALUES (NEW.key, current_setting('synchronous_commit'));
  RETURN NEW;
END $$;
CREATE TRIGGER record_write BEFORE INSERT OR UPDATE ON pulumi_state FOR EACH ROW EXECUTE FUNCTION record_write();";

/// Shows: state.md#in-postgresql "If `synchronous_commit` is `off` for the database, the role or the URL, `sc` sets it to
///   `on` for its sessions"
#[test]
fn rows_are_on_the_disk_of_a_server_that_does_not_wait_for_it() {
    let server = postgres::start(&["synchronous_commit=off"]);
    let repository = Repository::in_postgres(server.port());
    repository.write_things(&[("a", "1")]);
    repository.sc(0, "provision -S");
    server.sql("reef", RECORDED).unwrap();
    repository.write_things(&[("a", "1"), ("b", "1")]);
    repository.sc(0, "provision -S");
    let kinds = "SELECT DISTINCT synchronous_commit, key LIKE '%.sc/journal%' FROM writes ORDER BY 2";
    assert_eq!(server.sql("reef", kinds).unwrap(), "on|f\non|t");
}

/// Shows: state.md#stores "what the run had created since its last save is in no state. The run says so at its start"
#[test]
fn machine_that_is_lost_with_its_local_journal_loses_what_it_has_created() {
    let server = s3::with_bucket("reef");
    let machine = Repository::in_s3(server.url());
    fs::create_dir(machine.path("rec/ledger")).unwrap();
    let things: Vec<_> = (0..4).map(|number| (format!("thing{number}"), "1")).collect();
    let things: Vec<(&str, &str)> = things.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    machine.write_things(&things);
    let mut command = machine.command("provision -S -R --parallel 1 --journal local");
    // Four calls about the provider, then a Check and a Create for each resource.
    let output = command.env("REC_KILL", "9:after").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("the journal of this run is on this machine alone"), "{printed}");
    let existing = || fs::read_dir(machine.path("rec/ledger")).unwrap().count();
    assert!((1..4).contains(&existing()), "{printed}");
    // The machine itself finds its journal.
    machine.expect(0, "state ls", "thing0");
    let other = machine.elsewhere();
    other.write_things(&things);
    other.expect(1, "state ls", "reef has not been provisioned yet");
}
