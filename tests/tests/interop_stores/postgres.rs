//! Store in a table, against PostgreSQL.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cloud::postgres::{PostgresObjects, PostgresUrl, TimeLimits};
use futures_util::future::join_all;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};
use state::store::{Durability, ObjectError, ObjectErrorKind, Objects, OutageReport, WriteCondition, WriteError};
use tests::postgres_server::PostgresServer;
use tests::sdks::go_program;

use crate::objects::check_objects;

const PASSWORD: &str = "r%ef:p@ss/word";
const LIMIT: u64 = 1024 * 1024;

/// Starts a server with a database `reef` and its owner `ada`.
pub(crate) fn start(settings: &[&str]) -> PostgresServer {
    let server = PostgresServer::start(settings).unwrap();
    server.sql("postgres", &format!("CREATE ROLE ada LOGIN PASSWORD '{PASSWORD}'")).unwrap();
    server.sql("postgres", "CREATE DATABASE reef OWNER ada").unwrap();
    server
}

/// Returns the URL of a database for a role with the password.
pub(crate) fn url(server: &PostgresServer, role: &str, database: &str, query: &str) -> String {
    url_at(server.port(), role, database, query)
}

/// Returns the URL of a database at a port of this machine.
pub(crate) fn url_at(port: u16, role: &str, database: &str, query: &str) -> String {
    format!("postgres://{role}:r%25ef%3Ap%40ss%2Fword@localhost:{port}/{database}?{query}")
}

pub(crate) fn open(url: &str) -> PostgresObjects {
    // A test does not wait for a server that does not come.
    let limits = TimeLimits { repeat_first_connection: Duration::ZERO, ..TimeLimits::default() };
    open_with(url, limits)
}

fn open_with(url: &str, limits: TimeLimits) -> PostgresObjects {
    let url = PostgresUrl::parse(url, &BTreeMap::new(), Some(Path::new("/nonexistent"))).unwrap();
    PostgresObjects::with_time_limits(url, limits, OutageReport::default())
}

async fn write(objects: &dyn Objects, key: &str, text: &str, condition: &WriteCondition) -> Result<(), WriteError> {
    objects.write(key, text.as_bytes().to_vec().into(), condition, Durability::Immediate).await.map(drop)
}

async fn failure(objects: &dyn Objects) -> ObjectError {
    objects.read(".pulumi/meta.yaml", LIMIT).await.unwrap_err()
}

/// Returns an error and its causes, with the port as `PORT`, and checks that neither has the password.
fn text(server: &PostgresServer, error: &ObjectError) -> String {
    let causes = std::iter::successors(Some(error as &dyn Error), |&cause| cause.source());
    let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    assert!(!text.contains(PASSWORD) && !format!("{error:?}").contains(PASSWORD), "{error:?}");
    text.replace(&server.port().to_string(), "PORT")
}

#[tokio::test(flavor = "multi_thread")]
async fn store_in_a_database_has_the_properties_of_a_store() {
    let server = start(&[]);
    let url = url(&server, "ada", "reef", "sslmode=disable");
    check_objects(Arc::new(open(&url))).await;
    let keys = "SELECT count(*), count(*) FILTER (WHERE key LIKE 'reef/%') FROM pulumi_state";
    let counts = server.sql("reef", keys).unwrap();
    let (all, prefixed) = counts.split_once('|').unwrap();
    assert_eq!(all, prefixed);

    // The same over the socket and without a prefix.
    let folder = server.socket_folder().display();
    let url = format!("postgres://ada@?host={folder}&port={}&dbname=reef&table=Other", server.port());
    check_objects(Arc::new(open(&url))).await;
    assert_eq!(server.sql("reef", "SELECT count(*) FROM other WHERE key LIKE 'reef/%'").unwrap(), "0");
}

/// Shows: state.md#in-postgresql "the content in base64 and the time of the last write"
/// Shows: state.md#in-postgresql "so each write, also one of `pulumi` or of `psql`, makes the version that was read
///   invalid"
#[tokio::test(flavor = "multi_thread")]
async fn rows_are_those_of_pulumi() {
    let server = start(&[]);
    let objects = open(&url(&server, "ada", "reef", "sslmode=disable"));
    write(&objects, ".pulumi/meta.yaml", "version: 1\n", &WriteCondition::Missing).await.unwrap();
    let row = "SELECT key, data, updated_at > now() - interval '1 minute' FROM pulumi_state";
    assert_eq!(server.sql("reef", row).unwrap(), r#"reef/.pulumi/meta.yaml|{"data":"dmVyc2lvbjogMQo="}|t"#);
    let columns = "SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns \
                   WHERE table_name = 'pulumi_state' ORDER BY ordinal_position";
    let expected = "key|text|NO|\ndata|json|NO|\nupdated_at|timestamp with time zone|NO|now()";
    assert_eq!(server.sql("reef", columns).unwrap(), expected);
    let indexes = "SELECT replace(indexdef, 'public.', '') FROM pg_indexes WHERE tablename = 'pulumi_state' ORDER BY 1";
    let expected = "CREATE INDEX pulumi_state_key_prefix_idx ON pulumi_state USING btree (key text_pattern_ops)\n\
                    CREATE UNIQUE INDEX pulumi_state_pkey ON pulumi_state USING btree (key)";
    assert_eq!(server.sql("reef", indexes).unwrap(), expected);

    // Pulumi's own statement ends the version that was read.
    let read = objects.read(".pulumi/meta.yaml", LIMIT).await.unwrap().unwrap();
    let upsert = r#"INSERT INTO pulumi_state (key, data) VALUES ('reef/.pulumi/meta.yaml', '{"data":"dmVyc2lvbjogMQo="}')
                    ON CONFLICT (key) DO UPDATE SET data = EXCLUDED.data, updated_at = now()"#;
    server.sql("reef", upsert).unwrap();
    let lost = write(&objects, ".pulumi/meta.yaml", "x", &WriteCondition::Unchanged(read.version)).await;
    assert!(matches!(lost, Err(WriteError::Condition)), "{lost:?}");
    // So does a change that leaves the time as it was.
    let read = objects.read(".pulumi/meta.yaml", LIMIT).await.unwrap().unwrap();
    server.sql("reef", r#"UPDATE pulumi_state SET data = '{"data":"eA=="}'"#).unwrap();
    let lost = write(&objects, ".pulumi/meta.yaml", "x", &WriteCondition::Unchanged(read.version)).await;
    assert!(matches!(lost, Err(WriteError::Condition)), "{lost:?}");

    // A row that no store has written.
    server.sql("reef", "UPDATE pulumi_state SET data = '[]'").unwrap();
    let error = text(&server, &failure(&objects).await);
    insta::assert_snapshot!(error, @r#"cannot read .pulumi/meta.yaml in postgres://localhost:PORT/reef?table=pulumi_state: column data has no member "data" with text"#);
}

/// Runs a command on the bucket of Pulumi itself; see `pulumi_bucket/main.go`.
fn pulumi(url: &str, arguments: &[&str], content: &str) -> Result<String, String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop_stores/pulumi_bucket");
    let mut command = Command::new(go_program("bucket", &sources).unwrap());
    command.env_clear().arg(url).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// Shows: state.md#in-postgresql "names a table, which is the one that `pulumi` uses"
#[tokio::test(flavor = "multi_thread")]
async fn pulumi_and_we_use_the_same_rows_in_turn() {
    let server = start(&[]);
    let url = url(&server, "ada", "reef", "table=States&sslmode=disable&search_path=public");
    let objects = open(&url);
    let pulumi = |arguments: &[&str], content: &str| pulumi(&url, arguments, content).unwrap();
    let (ours, theirs) = (".pulumi/stacks/reef/coral.json", ".pulumi/stacks/reef/kelp.json");
    // Whoever comes first creates the table.
    write(&objects, ours, "{\"é\":1}\n", &WriteCondition::Missing).await.unwrap();
    assert_eq!(pulumi(&["get", ours], ""), "{\"é\":1}\n");
    pulumi(&["put", theirs], "theirs");
    let read = objects.read(theirs, LIMIT).await.unwrap().unwrap();
    assert_eq!(read.content, b"theirs");
    pulumi(&["copy", ours, ".pulumi/stacks/reef/coral.json.bak"], "");
    assert!(objects.copy(theirs, ".pulumi/stacks/reef/kelp.json.bak").await.unwrap());
    let names = ["coral.json", "coral.json.bak", "kelp.json", "kelp.json.bak"];
    let listed = objects.list(".pulumi/stacks/reef").await.unwrap();
    assert!(listed.iter().map(|object| object.name.as_str()).eq(names), "{listed:?}");
    let expected = names.map(|name| format!(".pulumi/stacks/reef/{name}\n")).concat();
    assert_eq!(pulumi(&["list", ".pulumi/stacks/reef/"], ""), expected);

    // Each write of Pulumi ends the version that was read, even if it writes the same content.
    pulumi(&["put", theirs], "theirs");
    let unchanged = WriteCondition::Unchanged(read.version);
    let lost = write(&objects, theirs, "ours", &unchanged).await;
    assert!(matches!(lost, Err(WriteError::Condition)), "{lost:?}");
    pulumi(&["delete", theirs], "");
    assert!(objects.read(theirs, LIMIT).await.unwrap().is_none());

    let url = url.replace("States", "first");
    self::pulumi(&url, &["put", "a"], "1").unwrap();
    assert_eq!(open(&url).read("a", LIMIT).await.unwrap().unwrap().content, b"1");
}

/// Shows: state.md#in-postgresql "names a table, which is the one that `pulumi` uses"
#[tokio::test(flavor = "multi_thread")]
async fn url_has_the_same_meaning_for_pulumi() {
    let server = start(&[]);
    let folder = server.socket_folder().display();
    let port = server.port();
    let plain = url(&server, "ada", "reef", "sslmode=disable");
    let urls = [
        plain.clone(),
        url(&server, "ada", "reef", ""),
        url(&server, "ada", "reef", "sslmode=require"),
        url(&server, "ada", "reef", "sslmode=prefer"),
        url(&server, "ada", "reef", "sslmode=allow"),
        url(&server, "ada", "reef", "sslmode=maybe"),
        url(&server, "ada", "reef", "sslmode=disable&connect_timeout=5&application_name=x&tz=UTC"),
        url(&server, "ada", "reef", "sslmode=disable&options=-c%20work_mem%3D8MB"),
        url(&server, "ada", "reef", "sslmode=disable&keepalives_idle=1"),
        url(&server, "ada", "reef", "sslmode=disable&table=a.b"),
        url(&server, "ada", "reef", "sslmode=disable&search_path=missing"),
        url(&server, "ada", "missing", "sslmode=disable"),
        plain.replace("r%25ef", "wrong"),
        plain.replace("@localhost", "@%2Ftmp"),
        format!("postgres://ada@/reef?host={folder}&port={port}"),
        format!("postgres://ada@?database=reef&host={folder}&port={port}"),
    ];
    for url in urls {
        let theirs = pulumi(&url, &["put", "a"], "1");
        let ours = match PostgresUrl::parse(&url, &BTreeMap::new(), None) {
            Ok(_) => open(&url).read("a", LIMIT).await.map(|_| ()).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{url}\n{ours:?}\n{theirs:?}");
    }
}

/// Shows: state.md#in-postgresql "While the server is away, requests are repeated for a minute"
/// Shows: state.md#in-postgresql "a conditional write whose reply was lost is not"
#[tokio::test(flavor = "multi_thread")]
async fn restarted_server_is_used_again() {
    let server = start(&[]);
    let objects = Arc::new(open(&url(&server, "ada", "reef", "sslmode=disable")));
    write(&*objects, "a", "1", &WriteCondition::None).await.unwrap();
    let version = objects.read("a", LIMIT).await.unwrap().unwrap().version;
    server.stop().unwrap();

    // Requests that begin while the server is down wait for it.
    let requests = (0..8).map(|number| {
        let objects = Arc::clone(&objects);
        let version = version.clone();
        async move {
            match number % 4 {
                0 => write(&*objects, &format!("b{number}"), "2", &WriteCondition::None).await.unwrap(),
                1 => assert_eq!(objects.read("a", LIMIT).await.unwrap().unwrap().content, b"1"),
                2 => assert_eq!(objects.list("").await.unwrap()[0].name, "a"),
                // Not sent before the server is there, so the reply is certain.
                _ if number == 3 => write(&*objects, "c", "3", &WriteCondition::Missing).await.unwrap(),
                _ => write(&*objects, "a", "1", &WriteCondition::Unchanged(version)).await.unwrap(),
            }
        }
    });
    let resume =
        async { tokio::task::spawn_blocking(move || server.resume().map(|()| server)).await.unwrap().unwrap() };
    let (server, _) = tokio::join!(resume, join_all(requests));
    drop(server);
}

/// Shows: state.md#in-postgresql "While the server is away, requests are repeated for a minute"
/// Shows: state.md#in-postgresql "a conditional write whose reply was lost is not"
#[tokio::test(flavor = "multi_thread")]
async fn conditional_write_whose_reply_is_lost_is_not_repeated() {
    let server = start(&[]);
    let objects = Arc::new(open(&url(&server, "ada", "reef", "sslmode=disable")));
    write(&*objects, "a", "1", &WriteCondition::None).await.unwrap();
    let version = objects.read("a", LIMIT).await.unwrap().unwrap().version;
    // A function of a trigger ends the connection in the middle of the statement, once.
    let trigger = "CREATE SEQUENCE updates; \
                   CREATE FUNCTION end_connection() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
                   IF nextval('updates') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; \
                   RETURN NEW; END $$; \
                   CREATE TRIGGER ends BEFORE UPDATE ON pulumi_state FOR EACH ROW EXECUTE FUNCTION end_connection()";
    server.sql("reef", trigger).unwrap();
    let unchanged = WriteCondition::Unchanged(version);
    let Err(WriteError::Request(error)) = write(&*objects, "a", "2", &unchanged).await else {
        panic!("it was written")
    };
    assert_eq!(error.kind, ObjectErrorKind::Unreachable);
    insta::assert_snapshot!(text(&server, &error), @"cannot write a in postgres://localhost:PORT/reef?table=pulumi_state: the server replied: terminating connection due to administrator command (SQLSTATE 57P01)");
    assert_eq!(objects.read("a", LIMIT).await.unwrap().unwrap().content, b"1");
    write(&*objects, "a", "2", &unchanged).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn locked_row_ends_in_an_error_within_the_time_limit() {
    let server = start(&[]);
    let url = url(&server, "ada", "reef", "sslmode=disable");
    let seconds = Duration::from_secs;
    let limits = TimeLimits { request: seconds(6), repeat: Duration::ZERO, ..TimeLimits::default() };
    let objects = open_with(&url, limits);
    write(&objects, "a", "1", &WriteCondition::None).await.unwrap();
    // A transaction of another program that stays open.
    let hold = "BEGIN; SELECT 1 FROM pulumi_state FOR UPDATE; SELECT pg_notify('held', ''); SELECT pg_sleep(60)";
    let server = Arc::new(server);
    let holder = {
        let server = Arc::clone(&server);
        std::thread::spawn(move || server.sql("reef", hold))
    };
    let held = "SELECT count(*) FROM pg_locks WHERE mode = 'RowShareLock' AND relation = 'pulumi_state'::regclass";
    while server.sql("reef", held).unwrap() == "0" {
        tokio::task::yield_now().await;
    }
    let Err(WriteError::Request(error)) = write(&objects, "a", "2", &WriteCondition::None).await else { panic!() };
    assert_eq!(error.kind, ObjectErrorKind::Unreachable);
    insta::assert_snapshot!(text(&server, &error), @"cannot write a in postgres://localhost:PORT/reef?table=pulumi_state: the server replied: canceling statement due to statement timeout (SQLSTATE 57014)");
    server.sql("reef", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()").unwrap();
    assert!(holder.join().unwrap().is_err());
}

/// Shows: state.md#in-postgresql "The role that runs `sc` needs no right to create anything once its owner has run `sc`
///   or `pulumi` once"
#[tokio::test(flavor = "multi_thread")]
async fn role_with_the_documented_grants_needs_no_others() {
    let server = start(&[]);
    let admin = open(&url(&server, "ada", "reef", "sslmode=disable"));
    // The owner creates the table; the role of the runs cannot create any.
    assert!(admin.list("").await.unwrap().is_empty());
    server
        .sql(
            "reef",
            &format!(
                "CREATE ROLE deployer LOGIN PASSWORD '{PASSWORD}'; REVOKE ALL ON DATABASE reef FROM PUBLIC; \
                 REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT CONNECT ON DATABASE reef TO deployer; \
                 GRANT USAGE ON SCHEMA public TO deployer; \
                 GRANT SELECT, INSERT, UPDATE, DELETE ON pulumi_state TO deployer"
            ),
        )
        .unwrap();
    let url = url(&server, "deployer", "reef", "sslmode=disable");
    check_objects(Arc::new(open(&url))).await;

    // Pulumi's statements need more, though table and index exist.
    let create = [
        "TABLE IF NOT EXISTS pulumi_state (key TEXT)",
        "INDEX IF NOT EXISTS pulumi_state_key_prefix_idx ON pulumi_state (key)",
    ];
    for create in create {
        let error = server.sql("reef", &format!("SET ROLE deployer; CREATE {create}")).unwrap_err().to_string();
        assert!(error.contains("permission denied") || error.contains("must be owner"), "{error}");
    }

    let mut messages = Vec::new();
    for grant in ["SELECT", "INSERT", "UPDATE", "DELETE"] {
        server.sql("reef", &format!("REVOKE {grant} ON pulumi_state FROM deployer")).unwrap();
        let objects = open(&url);
        let error = match grant {
            "DELETE" => objects.remove("a").await.unwrap_err(),
            _ => match write(&objects, "a", "1", &WriteCondition::None).await {
                Err(WriteError::Request(error)) => error,
                other => panic!("{other:?}"),
            },
        };
        assert_eq!(error.kind, ObjectErrorKind::Denied, "{grant}: {error:?}");
        messages.push(text(&server, &error));
        server.sql("reef", &format!("GRANT {grant} ON pulumi_state TO deployer")).unwrap();
    }
    let missing = open(&format!("{url}&table=missing"));
    let error = failure(&missing).await;
    assert_eq!(error.kind, ObjectErrorKind::Denied);
    messages.push(text(&server, &error));
    insta::assert_snapshot!(messages.join("\n"), @"
    cannot write a in postgres://localhost:PORT/reef?table=pulumi_state: the server replied: permission denied for table pulumi_state (SQLSTATE 42501); the role needs CONNECT on the database, USAGE on the schema, and SELECT, INSERT, UPDATE and DELETE on the table; to create the table, CREATE on the schema
    cannot write a in postgres://localhost:PORT/reef?table=pulumi_state: the server replied: permission denied for table pulumi_state (SQLSTATE 42501); the role needs CONNECT on the database, USAGE on the schema, and SELECT, INSERT, UPDATE and DELETE on the table; to create the table, CREATE on the schema
    cannot write a in postgres://localhost:PORT/reef?table=pulumi_state: the server replied: permission denied for table pulumi_state (SQLSTATE 42501); the role needs CONNECT on the database, USAGE on the schema, and SELECT, INSERT, UPDATE and DELETE on the table; to create the table, CREATE on the schema
    cannot remove a in postgres://localhost:PORT/reef?table=pulumi_state: the server replied: permission denied for table pulumi_state (SQLSTATE 42501); the role needs CONNECT on the database, USAGE on the schema, and SELECT, INSERT, UPDATE and DELETE on the table; to create the table, CREATE on the schema
    cannot read .pulumi/meta.yaml in postgres://localhost:PORT/reef?table=missing: the server replied: permission denied for schema public (SQLSTATE 42501); the role needs CONNECT on the database, USAGE on the schema, and SELECT, INSERT, UPDATE and DELETE on the table; to create the table, CREATE on the schema
    ");
}

/// Shows: state.md#in-postgresql "refuses a table with other columns before it writes to it"
#[tokio::test(flavor = "multi_thread")]
async fn table_of_another_program_is_refused_and_left_alone() {
    let server = start(&[]);
    server.sql("reef", "CREATE TABLE pulumi_state (id serial PRIMARY KEY, key uuid, data json)").unwrap();
    server.sql("reef", "GRANT ALL ON pulumi_state TO ada").unwrap();
    let objects = open(&url(&server, "ada", "reef", "sslmode=disable"));
    let error = failure(&objects).await;
    insta::assert_snapshot!(text(&server, &error), @r#"cannot read .pulumi/meta.yaml in postgres://localhost:PORT/reef?table=pulumi_state: the table "pulumi_state" was not made for states: column key has the type uuid, not text, there is no column updated_at; name another table with table=NAME in the URL; it is created if it does not exist"#);
    assert!(matches!(
        write(&objects, "a", "1", &WriteCondition::None).await,
        Err(WriteError::Request(ObjectError { kind: ObjectErrorKind::Other, .. }))
    ));
    assert_eq!(server.sql("reef", "SELECT count(*) FROM pulumi_state").unwrap(), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_connection_has_a_kind_and_the_words_of_the_server() {
    use ObjectErrorKind::{Credentials, NoStore, Other, Unreachable};
    let server = start(&["max_connections = 4", "superuser_reserved_connections = 3"]);
    server.sql("postgres", "CREATE ROLE bob NOLOGIN PASSWORD 'x'").unwrap();
    let port = server.port();
    let good = url(&server, "ada", "reef", "sslmode=disable");
    let holder = open(&good);
    let rows = [
        (good.replace("r%25ef", "wrong"), Credentials),
        (format!("postgres://ada@localhost:{port}/reef?sslmode=disable"), Credentials),
        (url(&server, "nobody", "reef", "sslmode=disable"), Credentials),
        (url(&server, "ada", "missing", "sslmode=disable"), NoStore),
        (url(&server, "ada", "reef", "sslmode=disable&search_path=missing"), NoStore),
        (url(&server, "ada", "reef", "sslmode=disable&keepalives_idle=1"), Other),
        (url(&server, "ada", "reef", ""), Other),
        (good.replace("@localhost", "@store.invalid"), Unreachable),
        (good.replace(&port.to_string(), "1"), Unreachable),
    ];
    let mut messages = Vec::new();
    for (url, kind) in rows {
        let error = failure(&open(&url)).await;
        assert_eq!(error.kind, kind, "{error:?}");
        messages.push(text(&server, &error));
    }
    assert!(holder.list("").await.unwrap().is_empty());
    let limits = TimeLimits { repeat: Duration::ZERO, ..TimeLimits::default() };
    let error = failure(&open_with(&good, limits)).await;
    assert_eq!(error.kind, Unreachable);
    messages.push(text(&server, &error));
    insta::assert_snapshot!(messages.join("\n"), @r#"
    cannot read .pulumi/meta.yaml in postgres://localhost:PORT/reef?table=pulumi_state: the server replied: password authentication failed for user "ada" (SQLSTATE 28P01); correct the user and the password in the URL, in PGUSER and PGPASSWORD or in the file ~/.pgpass
    cannot read .pulumi/meta.yaml in postgres://localhost:PORT/reef?table=pulumi_state: the server asks for a password; write it into the URL, into PGPASSWORD or into the file ~/.pgpass
    cannot read .pulumi/meta.yaml in postgres://localhost:PORT/reef?table=pulumi_state: the server replied: password authentication failed for user "nobody" (SQLSTATE 28P01); correct the user and the password in the URL, in PGUSER and PGPASSWORD or in the file ~/.pgpass
    cannot read .pulumi/meta.yaml in postgres://localhost:PORT/missing?table=pulumi_state: the server replied: database "missing" does not exist (SQLSTATE 3D000); create the database, or correct its name, which is the path of the URL
    cannot read .pulumi/meta.yaml in postgres://localhost:PORT/reef?table=pulumi_state: the server replied: no schema has been selected to create in (SQLSTATE 3F000); create the schema, or name another one with search_path=NAME in the URL
    cannot read .pulumi/meta.yaml in postgres://localhost:PORT/reef?table=pulumi_state: the server replied: unrecognized configuration parameter "keepalives_idle" (SQLSTATE 42704); parameters of the URL that do not concern the connection are settings of the session: correct or remove it
    cannot read .pulumi/meta.yaml in postgres://localhost:PORT/reef?table=pulumi_state: error performing TLS handshake: server does not support TLS; if the network between is trusted, write sslmode=disable into the URL
    cannot read .pulumi/meta.yaml in postgres://store.invalid:PORT/reef?table=pulumi_state: error connecting to server: failed to lookup address information: Name or service not known; check the host and the port of the URL, and the network
    cannot read .pulumi/meta.yaml in postgres://localhost:1/reef?table=pulumi_state: error connecting to server: Connection refused (os error 111); check the host and the port of the URL, and the network
    cannot read .pulumi/meta.yaml in postgres://localhost:PORT/reef?table=pulumi_state: the server replied: remaining connection slots are reserved for non-replication superuser connections (SQLSTATE 53300)
    "#);
}

/// Returns the certificate and the key of a server for `localhost` that has signed its certificate itself.
fn self_signed(is_authority: bool) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(["localhost".to_owned()]).unwrap();
    parameters.distinguished_name.push(DnType::CommonName, "reef");
    if is_authority {
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    (parameters.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// Shows: state.md#in-postgresql "default of `sslmode` is `require`, which encrypts and does not verify the server; use
///   `verify-full`, with `sslrootcert`"
#[tokio::test(flavor = "multi_thread")]
async fn certificate_is_trusted_by_the_mode_and_the_root_certificate() {
    let server = start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root.crt");
    let other = folder.path().join("other.crt");
    std::fs::write(&other, self_signed(true).0).unwrap();
    let (root, other) = (root.to_str().unwrap(), other.to_str().unwrap());
    server.sql("postgres", "ALTER SYSTEM SET ssl = on").unwrap();
    let hba = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
    server.write_file("pg_hba.conf", hba).unwrap();
    let mut messages = Vec::new();
    for is_authority in [false, true] {
        let (certificate, key) = self_signed(is_authority);
        std::fs::write(root, &certificate).unwrap();
        server.write_file("server.crt", &certificate).unwrap();
        server.write_file("server.key", &key).unwrap();
        server.stop().unwrap();
        server.resume().unwrap();
        let rows = [
            ("", true),
            ("sslmode=require", true),
            ("sslmode=prefer", true),
            ("sslmode=allow", true),
            ("sslmode=disable", false),
            ("sslmode=verify-ca", false),
            ("sslmode=verify-full", false),
            ("sslrootcert=system", false),
            (&format!("sslrootcert={root}"), true),
            (&format!("sslmode=verify-ca&sslrootcert={root}"), true),
            (&format!("sslmode=verify-full&sslrootcert={root}"), true),
            (&format!("sslmode=verify-full&sslrootcert={root}&ssl_max_protocol_version=TLSv1.2"), true),
            (&format!("sslmode=verify-ca&sslrootcert={other}"), false),
            (&format!("sslmode=verify-full&sslrootcert={other}"), false),
            ("sslmode=verify-full&sslrootcert=/nonexistent/root.crt", false),
        ];
        for (query, is_accepted) in rows {
            let url = url(&server, "ada", "reef", query);
            assert_eq!(pulumi(&url, &["list", ""], "").is_ok(), is_accepted, "{query}");
            match open(&url).list("").await {
                Ok(_) => assert!(is_accepted, "{query}"),
                Err(error) => {
                    assert!(!is_accepted, "{query}: {error:?}");
                    messages.push(text(&server, &error).replace(folder.path().to_str().unwrap(), "FOLDER"));
                }
            }
        }
        // The certificate is not for this name.
        for (mode, is_accepted) in [("verify-ca", true), ("verify-full", false)] {
            let url = url(&server, "ada", "reef", &format!("sslmode={mode}&sslrootcert={root}"));
            let url = url.replace("@localhost", "@127.0.0.1");
            assert_eq!(pulumi(&url, &["list", ""], "").is_ok(), is_accepted, "{mode}");
            match open(&url).list("").await {
                Ok(_) => assert!(is_accepted, "{mode}"),
                Err(error) => {
                    assert!(!is_accepted, "{mode}: {error:?}");
                    messages.push(text(&server, &error));
                }
            }
        }
    }
    messages.sort();
    messages.dedup();
    insta::assert_snapshot!(messages.join("\n"), @r#"
    cannot list postgres://127.0.0.1:PORT/reef?table=pulumi_state: error performing TLS handshake: invalid peer certificate: certificate not valid for name "127.0.0.1"; certificate is only valid for DnsName("localhost"); name the certificate of its authority with sslrootcert, or the host that the certificate has
    cannot list postgres://localhost:PORT/reef?table=pulumi_state: cannot read /nonexistent/root.crt: No such file or directory (os error 2)
    cannot list postgres://localhost:PORT/reef?table=pulumi_state: error performing TLS handshake: invalid peer certificate: BadSignature; name the certificate of its authority with sslrootcert, or the host that the certificate has
    cannot list postgres://localhost:PORT/reef?table=pulumi_state: error performing TLS handshake: invalid peer certificate: Other(OtherError(CaUsedAsEndEntity)); name the certificate of its authority with sslrootcert, or the host that the certificate has
    cannot list postgres://localhost:PORT/reef?table=pulumi_state: error performing TLS handshake: invalid peer certificate: UnknownIssuer; name the certificate of its authority with sslrootcert, or the host that the certificate has
    cannot list postgres://localhost:PORT/reef?table=pulumi_state: the server replied: no pg_hba.conf entry for host "127.0.0.1", user "ada", database "reef", no encryption (SQLSTATE 28000); allow the role to log in (LOGIN), and its address in the server's pg_hba.conf; `no encryption` asks for sslmode=require in the URL
    "#);
}
