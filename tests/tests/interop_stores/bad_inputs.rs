//! Stores, locks and keys that cannot be used: each ends a run with an error and its exit code, and nothing is lost.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tests::moto::MotoServer;
use tests::store_proxy::{Conditions, Fault, StoreProxy};

use crate::life::{Repository, lead_a_whole_life};
use crate::versions::{CHANGE, Versions};
use crate::{postgres, s3};

/// Lock of a run elsewhere, with a lease.
const LEASED: &str = r#"{"pid":7,"username":"ada","hostname":"reefbox","timestamp":"2026-09-01T08:00:00Z","sc":{"run":"r","leaseSeconds":60,"renewals":3}}"#;

/// Runs `sc` and returns its exit code and what it printed to standard error, without what differs between runs.
fn run(repository: &Repository, arguments: &str, hosts: &[u16]) -> String {
    let Output { status, stderr, .. } = repository.command(arguments).output().unwrap();
    let mut printed = String::from_utf8_lossy(&stderr).replace(repository.path("").to_str().unwrap(), "[repo]/");
    for port in hosts {
        for host in ["127.0.0.1", "localhost"] {
            printed = printed.replace(&format!("{host}:{port}"), "HOST");
        }
    }
    format!("exit {}\n{printed}", status.code().unwrap())
}

/// Runs a stack that cannot be run, and checks that no plugin was asked to create anything.
fn refused(repository: &Repository, hosts: &[u16]) -> String {
    repository.write_things(&[("a", "1")]);
    let printed = run(repository, "provision -S", hosts);
    let calls = fs::read_to_string(repository.path("rec/calls.jsonl")).unwrap_or_default();
    assert!(!calls.contains(r#""rpc":"Create""#), "{printed}{calls}");
    // An outage is announced after five seconds, which the pauses between the attempts may or may not take.
    let is_announcement =
        |line: &str| line.starts_with("warning: cannot ") && line.contains("the request is tried for up to");
    printed.lines().filter(|line| !is_announcement(line)).map(|line| format!("{line}\n")).collect()
}

/// Writes an object into the bucket.
fn put(server: &MotoServer, key: &str, content: &str) {
    server.python(&format!("client('s3').put_object(Bucket='reef', Key={key:?}, Body={content:?})")).unwrap();
}

/// Situation before a run whose state is below `reef/PREFIX`.
type Prepare = fn(&MotoServer, &StoreProxy, &str);

/// Shows: state.md#in-s3 "A service that replies that it has no conditional writes is refused, and so is one that
///   ignores conditions"
/// Shows: state.md#a-run "A store, a lock or a key that cannot be used ends a run before anything is changed."
#[test]
fn unusable_buckets_and_locks_end_a_run_with_an_error() {
    let server = s3::with_bucket("reef");
    let proxy = StoreProxy::in_front_of(server.url()).unwrap();
    let rows: [(&str, Prepare); 12] = [
        ("missing bucket", |_, proxy, _| proxy.fail_from(0, Fault::Refused(404, "NoSuchBucket"))),
        ("forbidden bucket", |_, proxy, _| proxy.fail_from(0, Fault::Refused(403, "AccessDenied"))),
        ("bucket in another region", |_, proxy, _| proxy.fail_from(0, Fault::Refused(301, "PermanentRedirect"))),
        ("store that ignores conditions", |_, proxy, _| proxy.set_conditions(Conditions::Ignored)),
        ("expired credentials", |_, proxy, _| proxy.fail_from(0, Fault::Refused(400, "ExpiredToken"))),
        ("clock of the store an hour ahead", |_, proxy, _| {
            proxy.check_request_times();
            proxy.shift_clock(3600);
        }),
        ("clock of the store an hour behind", |_, proxy, _| {
            proxy.check_request_times();
            proxy.shift_clock(-3600);
        }),
        ("half a reply, always", |_, proxy, _| proxy.fail_from(1, Fault::CutReply)),
        ("layout without projects", |server, _, prefix| {
            put(server, &format!("{prefix}/.pulumi/stacks/reef.json"), "{}");
        }),
        ("lock file of another program", |server, _, prefix| {
            put(server, &format!("{prefix}/.pulumi/locks/organization/tank/reef/notes.txt"), "hands off");
        }),
        ("lock whose JSON does not parse", |server, _, prefix| {
            put(server, &format!("{prefix}/.pulumi/locks/organization/tank/reef/a.json"), "{\"pid\":");
        }),
        ("lock of pulumi, without a lease", |server, _, prefix| {
            let lock = r#"{"pid":7,"username":"ada","hostname":"reefbox","timestamp":"2026-09-01T08:00:00Z"}"#;
            put(server, &format!("{prefix}/.pulumi/locks/organization/tank/reef/b.json"), lock);
        }),
    ];
    let mut printed = String::new();
    for (number, (name, prepare)) in rows.into_iter().enumerate() {
        let prefix = format!("row{number}");
        let repository = Repository::in_bucket(&format!("reef/{prefix}"), &proxy.url());
        proxy.forget_requests();
        prepare(&server, &proxy, &prefix);
        printed += &format!("# {name}: {}\n", refused(&repository, &[proxy.port()]));
        proxy.recover();
        if name.starts_with("lock ") {
            repository.sc(0, "cancel --yes");
        }
        if !name.starts_with("layout") {
            // Nothing was lost: the same run succeeds once the cause is gone.
            repository.sc(0, "provision -S");
            repository.sc(0, "provision -S --expect-no-changes");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let untrusted = s3::with_certificate(folder.path());
    let port = untrusted.url().rsplit_once(':').unwrap().1.parse().unwrap();
    printed += &format!("# untrusted certificate: {}", refused(&Repository::in_s3(untrusted.url()), &[port]));
    insta::assert_snapshot!(printed, @r##"
    # missing bucket: exit 1
    error: the backend of stack reef cannot be opened
      caused by: cannot read s3://reef/row0/.pulumi/meta.yaml
      caused by: there is no bucket `reef` at HOST: create it, or correct the URL (NoSuchBucket: Refused by the test.)

    # forbidden bucket: exit 1
    error: the backend of stack reef cannot be opened
      caused by: cannot read s3://reef/row1/.pulumi/meta.yaml
      caused by: the credentials of AWS (environment, profile `default`) do not allow it: it needs s3:GetObject and s3:ListBucket (AccessDenied: Refused by the test.)

    # bucket in another region: exit 1
    error: the backend of stack reef cannot be opened
      caused by: cannot read s3://reef/row2/.pulumi/meta.yaml
      caused by: the bucket `reef` is in the region `eu-west-1`, not in `us-east-1`: add `region=eu-west-1` to its URL (PermanentRedirect: Refused by the test.)

    # store that ignores conditions: exit 1
    info: Loaded plugin: rec v1.0.0
    error: cannot write s3://reef/row3/.pulumi/meta.yaml
      caused by: the store ignores the conditions of writes, so that two runs could overwrite the state of each other: use another store

    # expired credentials: exit 1
    error: the backend of stack reef cannot be opened
      caused by: cannot read s3://reef/row4/.pulumi/meta.yaml
      caused by: the credentials of AWS (environment, profile `default`) have expired (ExpiredToken: Refused by the test.)

    # clock of the store an hour ahead: exit 1
    error: the backend of stack reef cannot be opened
      caused by: cannot read s3://reef/row5/.pulumi/meta.yaml
      caused by: the clock of this machine is wrong: set it (RequestTimeTooSkewed: Refused by the test.)

    # clock of the store an hour behind: exit 1
    error: the backend of stack reef cannot be opened
      caused by: cannot read s3://reef/row6/.pulumi/meta.yaml
      caused by: the clock of this machine is wrong: set it (RequestTimeTooSkewed: Refused by the test.)

    # half a reply, always: exit 1
    error: the backend of stack reef cannot be opened
      caused by: cannot list s3://reef/row7/.pulumi/stacks
      caused by: the connection to HOST failed: end of file before message length reached; check the network and the endpoint of the bucket

    # layout without projects: exit 1
    error: the backend of stack reef cannot be opened
      caused by: s3://reef/row8?endpoint=http://HOST has the old layout without projects
      hint: `pulumi state upgrade` converts it to the current layout; to use it unchanged, set PULUMI_DIY_BACKEND_IGNORE_DEPRECATION_ERROR=1, which the upgrade needs as well

    # lock file of another program: exit 4
    info: Loaded plugin: rec v1.0.0
    error: organization/tank/reef: the stack is currently locked by 1 lock(s)
        notes.txt: created by an unknown holder
      hint: wait for that run to end; if it was interrupted, remove its lock with `sc cancel -s reef`

    # lock whose JSON does not parse: exit 4
    info: Loaded plugin: rec v1.0.0
    error: organization/tank/reef: the stack is currently locked by 1 lock(s)
        a.json: created by an unknown holder
      hint: wait for that run to end; if it was interrupted, remove its lock with `sc cancel -s reef`

    # lock of pulumi, without a lease: exit 4
    info: Loaded plugin: rec v1.0.0
    error: organization/tank/reef: the stack is currently locked by 1 lock(s)
        b.json: created by ada@reefbox (pid 7) at 2026-09-01T08:00:00Z
      hint: wait for that run to end; if it was interrupted, remove its lock with `sc cancel -s reef`

    # untrusted certificate: exit 1
    error: the backend of stack reef cannot be opened
      caused by: cannot read s3://reef/team/.pulumi/meta.yaml
      caused by: the certificate of HOST is not trusted: invalid peer certificate: UnknownIssuer; name the file of its issuer in AWS_CA_BUNDLE, if it is your own
    "##);
}

/// Shows: state.md#a-run "A store, a lock or a key that cannot be used ends a run before anything is changed."
#[test]
fn unusable_tables_and_locks_end_a_run_with_an_error() {
    let server = postgres::start(&[]);
    let url = |query: &str| postgres::url_at(server.port(), "ada", "reef", &format!("sslmode=disable{query}"));
    let at = |url: String| Repository::new(&format!("{{ type: fs, config: {{ path: \"{url}\" }} }}"), &[]);
    let refused = |url: String| refused(&at(url), &[server.port()]);
    server.sql("reef", "CREATE TABLE orders (id INTEGER PRIMARY KEY, data TEXT NOT NULL)").unwrap();
    let mut printed = format!("# table of another program: {}\n", refused(url("&table=orders")));
    assert_eq!(server.sql("reef", "SELECT count(*) FROM orders").unwrap(), "0");
    printed += &format!("# missing database: {}\n", refused(url("").replace("/reef?", "/shore?")));
    printed += &format!("# wrong password: {}\n", refused(url("").replace("r%25ef", "reef")));
    printed += &format!("# another port: {}\n", refused(url("").replace(&format!(":{}", server.port()), ":1")));

    // The row of the lock is from the future, by the clock of the store.
    let repository = at(url(""));
    repository.write_things(&[("a", "1")]);
    repository.sc(0, "provision -S");
    let key = "reef/.pulumi/locks/organization/tank/reef/c.json";
    let data =
        format!("json_build_object('data', translate(encode(convert_to('{LEASED}', 'UTF8'), 'base64'), E'\\n', ''))");
    let insert = format!("INSERT INTO pulumi_state VALUES ('{key}', {data}, now() + interval '1 hour')");
    server.sql("reef", &insert).unwrap();
    printed += &format!("# lease from the future: {}", run(&repository, "provision -S", &[]));
    server
        .sql("reef", &format!("UPDATE pulumi_state SET updated_at = now() - interval '1 hour' WHERE key = '{key}'"))
        .unwrap();
    let taken_over = repository.sc(0, "provision -S");
    assert!(
        taken_over.contains("took over the lock of organization/tank/reef: its run has not renewed it for 360"),
        "{taken_over}"
    );
    insta::assert_snapshot!(printed, @r##"
    # table of another program: exit 1
    error: the backend of stack reef cannot be opened
      caused by: cannot read .pulumi/meta.yaml in postgres://HOST/reef?table=orders
      caused by: the table "orders" was not made for states: there is no column key, column data has the type text, not json, there is no column updated_at, column id needs a value; name another table with table=NAME in the URL; it is created if it does not exist

    # missing database: exit 1
    error: the backend of stack reef cannot be opened
      caused by: cannot read .pulumi/meta.yaml in postgres://HOST/shore?table=pulumi_state
      caused by: the server replied: database "shore" does not exist (SQLSTATE 3D000); create the database, or correct its name, which is the path of the URL

    # wrong password: exit 1
    error: the backend of stack reef cannot be opened
      caused by: cannot read .pulumi/meta.yaml in postgres://HOST/reef?table=pulumi_state
      caused by: the server replied: password authentication failed for user "ada" (SQLSTATE 28P01); correct the user and the password in the URL, in PGUSER and PGPASSWORD or in the file ~/.pgpass

    # another port: exit 1
    error: the backend of stack reef cannot be opened
      caused by: cannot read .pulumi/meta.yaml in postgres://localhost:1/reef?table=pulumi_state
      caused by: error connecting to server: Connection refused (os error 111); check the host and the port of the URL, and the network

    # lease from the future: exit 4
    info: Loaded plugin: rec v1.0.0
    error: organization/tank/reef: the stack is currently locked by 1 lock(s)
        c.json: created by ada@reefbox (pid 7) at 2026-09-01T08:00:00Z
      hint: wait for that run to end; if it was interrupted, the next command takes over its lock 120 s after its last renewal, unless `lock.takeover` is false, or `sc cancel -s reef` removes it
    "##);
}

/// Writes Python that changes the locks of the bucket as if their processes ran on another machine.
const MOVE_LOCKS: &str = "
s3 = client('s3')
for entry in s3.list_objects_v2(Bucket='reef', Prefix='team/.pulumi/locks/')['Contents']:
    text = s3.get_object(Bucket='reef', Key=entry['Key'])['Body'].read().decode()
    s3.put_object(Bucket='reef', Key=entry['Key'], Body=text.replace('\"bootId\":\"', '\"bootId\":\"of-another-'))
";

/// Stops a run, and takes its lock over once the lease has ended, whatever the clock of the store shows.
fn check_takeover(clock_shift: i64) {
    let server = s3::with_bucket("reef");
    let proxy = StoreProxy::in_front_of(server.url()).unwrap();
    proxy.shift_clock(clock_shift);
    let repository = Repository::in_s3(&proxy.url());
    repository.write_things(&[("a", "1")]);
    repository.script(&serde_json::json!({ "resources": { "a--prod": { "hang": "create" } } }));
    let mut command = repository.command("provision -S");
    let stopped = repository.start_until(command.env("SC_LOCK_LEASE_SECONDS", "3"), "Create is called", || {
        repository.calls().iter().any(|call| call["rpc"] == "Create")
    });
    let signal = |name: &str| {
        let pid = stopped.id().to_string();
        let mut kill = Command::new("kill");
        assert!(kill.args([name, &pid]).status().unwrap().success());
    };
    signal("-STOP");
    server.python(MOVE_LOCKS).unwrap();
    let started = Instant::now();
    let refused = repository.sc(4, "provision -S");
    assert!(refused.contains("the next command takes over its lock 6 s after its last renewal"), "{refused}");
    repository.script(&serde_json::json!({}));
    let taken_over = repository.sc(0, "provision -S --lock-timeout 1m");
    let waited = started.elapsed().as_secs();
    assert!(taken_over.contains("took over the lock of organization/tank/reef"), "{taken_over}");
    assert!((3..30).contains(&waited), "taken over after {waited} s: {taken_over}");
    signal("-CONT");
    let output = stopped.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    // The stopped run has recorded what it had created, although the other one has created it again: both are named.
    for _ in 0..2 {
        let named = repository.sc(0, "provision -S");
        assert!(named.contains("a--prod exists twice: the state has a--prod-2"), "{named}");
        assert!(named.contains("has created a--prod-1"), "{named}");
    }
    repository.sc(0, "state journal discard --yes");
    assert!(!repository.sc(0, "provision -S").contains("exists twice"));
}

/// Shows: state.md#locks "by the clock of the store: the time at which the lock was written, compared with the time at
///   which a new file is written"
#[test]
fn lease_ends_by_the_clock_of_a_store_that_is_an_hour_ahead() {
    check_takeover(3600);
}

/// Shows: state.md#locks "by the clock of the store: the time at which the lock was written, compared with the time at
///   which a new file is written"
#[test]
fn lease_ends_by_the_clock_of_a_store_that_is_an_hour_behind() {
    check_takeover(-3600);
}

/// Shows: state.md#stores "Other files in the bucket and its versions are left alone."
#[test]
fn versioned_bucket_with_five_thousand_other_keys_is_a_store() {
    let server = MotoServer::start().unwrap();
    server
        .python(
            "s3 = client('s3')\ns3.create_bucket(Bucket='reef')\n\
             s3.put_bucket_versioning(Bucket='reef', VersioningConfiguration={'Status': 'Enabled'})\n\
             for number in range(2500):\n    \
             s3.put_object(Bucket='reef', Key=f'team/.pulumi/stacks/tank/other-{number}.json.bak', Body='{}')\n    \
             s3.put_object(Bucket='reef', Key=f'team/.pulumi/history/tank/reef/note-{number}', Body='{}')",
        )
        .unwrap();
    let proxy = StoreProxy::in_front_of(server.url()).unwrap();
    lead_a_whole_life(&Repository::in_s3(&proxy.url()));
    let pages = proxy.requests().into_iter().filter(|request| request.path.contains("continuation-token"));
    assert!(pages.count() >= 2, "a page of a listing has 1,000 keys at most");
    let left = server.python(
        "pages = client('s3').get_paginator('list_objects_v2').paginate(Bucket='reef')\n\
                              print(sum(1 for page in pages for key in page['Contents'] if 'other-' in key['Key']))",
    );
    assert_eq!(left.unwrap().trim(), "2500");
}

/// Shows: state.md#stores "a request that can be repeated is repeated for a minute"
#[test]
fn run_goes_on_after_a_restart_of_the_database() {
    let server = postgres::start(&[]);
    let proxy = StoreProxy::in_front_of_postgres(server.port()).unwrap();
    let versions = Versions::new(Repository::in_postgres(proxy.port()));
    // During the lock, before the load, and during the save.
    for number in [3, 6, 9, 12] {
        versions.change();
        proxy.forget_requests();
        proxy.fail_at(number, Fault::HeldBefore);
        let mut run = versions.repository.command(CHANGE).spawn().unwrap();
        assert!(proxy.wait_until_held(|| run.try_wait().unwrap().is_some()), "request {number}");
        server.stop().unwrap();
        server.resume().unwrap();
        proxy.recover();
        let output = run.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        println!("restarted at request {number}: {:?}: {printed}", output.status.code());
        assert!(matches!(output.status.code(), Some(0 | 1)), "{printed}");
        versions.check_recorded("restart");
        versions.check_next_run("restart");
    }
}

/// Time for which the store is busy: nearly a minute, after which requests are not repeated, if all moments are tested.
fn busy_time() -> Duration {
    Duration::from_secs(if std::env::var_os("SC_CRASH_EVERY").is_some() { 50 } else { 10 })
}

/// Shows: state.md#stores "a request that can be repeated is repeated for a minute"
#[test]
fn run_waits_for_a_store_that_is_busy_for_a_while() {
    let server = s3::with_bucket("reef");
    let proxy = StoreProxy::in_front_of(server.url()).unwrap();
    let versions = Versions::new(Repository::in_s3(&proxy.url()));
    versions.change();
    proxy.forget_requests();
    proxy.fail_from(7, Fault::BUSY);
    let mut command = versions.repository.command(CHANGE);
    let run = versions.repository.start_until(&mut command, "a request is refused", || proxy.requests().len() >= 8);
    std::thread::sleep(busy_time());
    proxy.recover();
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    versions.check_next_run("busy");
}

/// Shows: state.md#a-run "A store, a lock or a key that cannot be used ends a run before anything is changed."
#[test]
fn unusable_keys_end_a_run_with_an_error() {
    let server = s3::with_bucket("reef");
    server
        .python(
            "key = client('kms').create_key()['KeyMetadata']['KeyId']\n\
             client('kms').create_alias(AliasName='alias/reef', TargetKeyId=key)",
        )
        .unwrap();
    let proxy = StoreProxy::in_front_of(server.url()).unwrap();
    let key = |parameters: &str| format!("awskms://alias/reef?region=us-east-1&endpoint={}{parameters}", proxy.url());
    let entry = |url: &str| format!("{{ type: aws-kms, config: {{ keyName: \"{url}\" }} }}");
    let repository = Repository::in_s3(server.url()).with_secrets_provider(&entry(&key("")));
    repository.write_things(&[("a", "1")]);
    repository.sc(0, "provision -S");
    repository.write_things(&[("a", "2")]);
    let mut printed = String::new();
    let calls = || fs::read_to_string(repository.path("rec/calls.jsonl")).unwrap();
    for (name, fault) in [
        ("disabled key", Fault::Refused(400, "DisabledException")),
        ("denied key", Fault::Refused(400, "AccessDeniedException")),
        ("key in another region", Fault::Refused(400, "NotFoundException")),
        ("data key of another key", Fault::Refused(400, "InvalidCiphertextException")),
        ("expired credentials", Fault::Refused(400, "ExpiredTokenException")),
    ] {
        proxy.forget_requests();
        proxy.fail_from(0, fault);
        printed += &format!("# {name}: {}\n", run(&repository, "provision -S", &[proxy.port()]));
        proxy.recover();
    }
    assert!(!calls().contains(r#""rpc":"Update""#), "{}", calls());
    repository.sc(0, "provision -S");
    assert!(calls().contains(r#""rpc":"Update""#), "{}", calls());
    insta::assert_snapshot!(printed, @r##"
    # disabled key: exit 1
    info: Loaded plugin: rec v1.0.0
    Updating reef
    error: a--prod (rec:Thing): the state could not be written: the data key of stack organization/tank/reef cannot be decrypted with the key awskms://alias/reef?region=us-east-1&endpoint=http://HOST: the key is disabled: DisabledException: Refused by the test.
      at .sc/stacks/reef/server.yaml:14:9
         |
      14 |         a: { type: rec:index:Thing, config: { v: '2' } }
         |         ^
      hint: enable the key, or cancel its deletion; the secrets cannot be read without it

    # denied key: exit 1
    info: Loaded plugin: rec v1.0.0
    Updating reef
    error: a--prod (rec:Thing): the state could not be written: the data key of stack organization/tank/reef cannot be decrypted with the key awskms://alias/reef?region=us-east-1&endpoint=http://HOST: access to the key is denied: AccessDeniedException: Refused by the test.
      at .sc/stacks/reef/server.yaml:14:9
         |
      14 |         a: { type: rec:index:Thing, config: { v: '2' } }
         |         ^
      hint: the account needs kms:Encrypt and kms:Decrypt, the role roles/cloudkms.cryptoKeyEncrypterDecrypter, or in Azure the role `Key Vault Crypto User`; AWS also refuses a data key that was encrypted in another region

    # key in another region: exit 1
    info: Loaded plugin: rec v1.0.0
    Updating reef
    error: a--prod (rec:Thing): the state could not be written: the data key of stack organization/tank/reef cannot be decrypted with the key awskms://alias/reef?region=us-east-1&endpoint=http://HOST: there is no such key: NotFoundException: Refused by the test.
      at .sc/stacks/reef/server.yaml:14:9
         |
      14 |         a: { type: rec:index:Thing, config: { v: '2' } }
         |         ^
      hint: check the id, the account, project or vault, and the region of the key

    # data key of another key: exit 1
    info: Loaded plugin: rec v1.0.0
    Updating reef
    error: a--prod (rec:Thing): the state could not be written: the data key of stack organization/tank/reef cannot be decrypted with the key awskms://alias/reef?region=us-east-1&endpoint=http://HOST: the data key was encrypted with another key or in another context: InvalidCiphertextException: Refused by the test.
      at .sc/stacks/reef/server.yaml:14:9
         |
      14 |         a: { type: rec:index:Thing, config: { v: '2' } }
         |         ^
      hint: check the region, the account, the version and the `context_` parameters of the key's URL; `sc stack restore` returns to a state with the earlier key

    # expired credentials: exit 1
    info: Loaded plugin: rec v1.0.0
    Updating reef
    error: a--prod (rec:Thing): the state could not be written: the data key of stack organization/tank/reef cannot be decrypted with the key awskms://alias/reef?region=us-east-1&endpoint=http://HOST: there are no valid credentials: ExpiredTokenException: Refused by the test.
      at .sc/stacks/reef/server.yaml:14:9
         |
      14 |         a: { type: rec:index:Thing, config: { v: '2' } }
         |         ^
      hint: log in again, or set the credentials of the secrets provider in server.yaml; those of Azure are variables of the environment, such as AZURE_CLIENT_ID
    "##);
}

/// Shows: state.md#a-run "A store, a lock or a key that cannot be used ends a run before anything is changed."
#[test]
fn run_with_a_passphrase_that_was_replaced_meanwhile_fails_and_changes_nothing() {
    let server = s3::with_bucket("reef");
    let repository = Repository::in_s3(server.url());
    repository.write_things(&[("a", "1")]);
    repository.sc(0, "provision -S");
    let elsewhere = repository.elsewhere();
    elsewhere.write_things(&[("a", "1")]);
    link_rec(&repository, &elsewhere);
    let mut change = elsewhere.command("stack change-secrets-provider --yes");
    let mut change = change.stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut change.stdin.take().unwrap(), b"quiet\n").unwrap();
    let changed = change.wait_with_output().unwrap();
    assert!(changed.status.success(), "{}", String::from_utf8_lossy(&changed.stderr));
    let has_updated = || fs::read_to_string(repository.path("rec/calls.jsonl")).unwrap().contains(r#""rpc":"Update""#);
    repository.write_things(&[("a", "2")]);
    let printed = run(&repository, "provision -S", &[]);
    assert!(printed.starts_with("exit 1\n") && printed.contains("incorrect passphrase"), "{printed}");
    assert!(!has_updated(), "{printed}");
    let quiet = repository.with_secrets_provider("{ type: passphrase, config: { passPhrase: quiet } }");
    quiet.write_things(&[("a", "2")]);
    quiet.sc(0, "provision -S");
}

/// Gives two clones of a repository the same provider.
fn link_rec(repository: &Repository, elsewhere: &Repository) {
    fs::remove_dir_all(elsewhere.path("rec")).unwrap();
    let link: &Path = &elsewhere.path("rec");
    std::os::unix::fs::symlink(repository.path("rec"), link).unwrap();
}
