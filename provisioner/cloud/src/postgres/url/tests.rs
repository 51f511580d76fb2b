use super::*;
use crate::postgres::tls::SslMode;

fn parse_in(url: &str, environment: &[(&str, &str)]) -> Result<PostgresUrl, PostgresUrlError> {
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    PostgresUrl::parse(url, &environment, Some(Path::new("/home/ada")))
}

fn parse(url: &str) -> PostgresUrl {
    parse_in(url, &[]).unwrap()
}

fn refused(url: &str) -> String {
    parse_in(url, &[]).unwrap_err().to_string()
}

fn servers(url: &PostgresUrl) -> Vec<String> {
    let server = |host: &Host| format!("{} {:?} {}", host.name, host.address, host.port);
    url.hosts.iter().map(server).collect()
}

#[test]
fn path_is_the_database_and_the_start_of_every_key() {
    let url = parse("postgres://ada:s%3Acr%40t@db.example.com/reef");
    assert_eq!((url.database.as_deref(), &*url.prefix), (Some("reef"), "reef/"));
    assert_eq!(url.user.as_deref(), Some("ada"));
    assert_eq!(url.password.as_ref().unwrap().reveal(), "s:cr@t");
    assert_eq!(url.table, "pulumi_state");
    assert_eq!(servers(&url), ["db.example.com None 5432"]);
    let url = parse("postgres://ada@/re%20ef/sub/?table=My_State");
    assert_eq!((url.database.as_deref(), &*url.prefix, &*url.table), (Some("re ef/sub/"), "re ef/sub/", "my_state"));
    let url = parse("postgres://");
    assert_eq!(
        (url.database, &*url.prefix, servers(&parse("postgres://"))),
        (None, "", vec!["localhost None 5432".into()])
    );
}

#[test]
fn location_has_no_login_and_is_unique() {
    let rows = [
        ("postgres://ada:pw@localhost/reef", "postgres://localhost:5432/reef?table=pulumi_state"),
        ("postgres://h:1/reef?table=T&sslmode=disable", "postgres://h:1/reef?table=t"),
        ("postgres://h1,h2/reef?port=1,2", "postgres://h1:1,h2:2/reef?table=pulumi_state"),
        ("postgres://[::1]:7/reef", "postgres://[::1]:7/reef?table=pulumi_state"),
        ("postgres:///reef?host=/run/pg", "postgres:///reef?host=/run/pg&port=5432&table=pulumi_state"),
        ("postgres://h?dbname=reef", "postgres://h:5432?dbname=reef&table=pulumi_state"),
    ];
    for (url, expected) in rows {
        assert_eq!(parse(url).location(), expected, "{url}");
    }
    let from_environment = parse_in("postgres://", &[("PGHOST", "db"), ("PGDATABASE", "reef")]).unwrap();
    assert_eq!(from_environment.location(), "postgres://db:5432?dbname=reef&table=pulumi_state");
}

#[test]
fn debug_shows_no_password() {
    let url = parse_in("postgres://ada:hunter2@h/reef?sslkey=inline-secret&sslinline=true", &[]).unwrap();
    let text = format!("{url:?}");
    assert!(!text.contains("hunter2") && !text.contains("inline-secret"), "{text}");
    assert!(text.contains("[password]"), "{text}");
}

#[test]
fn environment_fills_in_what_the_url_does_not_contain() {
    let environment = [
        ("PGHOST", "env-host"),
        ("PGPORT", "6000"),
        ("PGUSER", "env-user"),
        ("PGPASSWORD", "env-password"),
        ("PGDATABASE", "env-database"),
        ("PGSSLMODE", "disable"),
        ("PGAPPNAME", "env-name"),
        ("PGPASSFILE", "/pass"),
        ("USER", "login"),
    ];
    let url = parse_in("postgres://", &environment).unwrap();
    assert_eq!(servers(&url), ["env-host None 6000"]);
    assert_eq!(url.user.as_deref(), Some("env-user"));
    assert_eq!(url.password.as_ref().unwrap().reveal(), "env-password");
    assert_eq!(url.database.as_deref(), Some("env-database"));
    assert_eq!(url.tls.mode, SslMode::Disable);
    assert_eq!((&*url.application_name, url.password_file.unwrap()), ("env-name", PathBuf::from("/pass")));

    let url = parse_in("postgres://ada:pw@h:1/reef?sslmode=verify-full&application_name=own", &environment).unwrap();
    assert_eq!(servers(&url), ["h None 1"]);
    assert_eq!((url.user.as_deref(), url.database.as_deref()), (Some("ada"), Some("reef")));
    assert_eq!((url.tls.mode, &*url.application_name), (SslMode::VerifyFull, "own"));
    let url = parse_in("postgres://h/reef", &[("USER", "login")]).unwrap();
    assert_eq!((url.user.as_deref(), url.password), (Some("login"), None));
    assert_eq!(url.password_file.unwrap(), PathBuf::from("/home/ada/.pgpass"));
}

#[test]
fn encryption_is_required_unless_the_url_has_another_mode() {
    let rows = [
        ("", SslMode::Require),
        ("?sslmode=", SslMode::Require),
        ("?sslmode=disable", SslMode::Disable),
        ("?sslmode=allow", SslMode::Allow),
        ("?sslmode=prefer", SslMode::Prefer),
        ("?sslmode=require", SslMode::Require),
        ("?sslmode=verify-ca", SslMode::VerifyCa),
        ("?sslmode=verify-full", SslMode::VerifyFull),
        ("?sslrootcert=system", SslMode::VerifyFull),
        ("?sslrootcert=/ca.crt", SslMode::Require),
        ("?host=/run/postgresql&sslmode=require", SslMode::Disable),
    ];
    for (query, expected) in rows {
        assert_eq!(parse(&format!("postgres:///reef{query}")).tls.mode, expected, "{query}");
    }
}

#[test]
fn other_parameters_are_settings_of_the_session() {
    let url = parse("postgres://h/reef?search_path=a%20b,public&options=-c%20work_mem=1MB&tz=UTC");
    assert_eq!(url.options.as_deref(), Some(r"-c work_mem=1MB -c TimeZone=UTC -c search_path=a\ b,public"));
    assert_eq!(parse("postgres://h/reef").options, None);
    let url = parse("postgres://h/reef?connect_timeout=7&target_session_attrs=read-write&load_balance_hosts=random");
    assert_eq!(url.connect_timeout, Some(Duration::from_secs(7)));
    assert!(url.requires_primary && url.shuffle_hosts);
    assert_eq!(parse("postgres://h/reef?connect_timeout=0").connect_timeout, None);
}

#[test]
fn list_of_hosts_has_addresses_and_ports_in_the_same_order() {
    let url = parse("postgres:///reef?host=a,b&hostaddr=10.0.0.1,10.0.0.2&port=1");
    assert_eq!(servers(&url), ["a Some(10.0.0.1) 1", "b Some(10.0.0.2) 1"]);
    assert_eq!(servers(&parse("postgres://a,/reef")), ["a None 5432", "localhost None 5432"]);
}

#[test]
fn invalid_url_is_refused_without_its_login() {
    let urls = [
        "postgresql://ada:pw@h/reef",
        "postgres://ada:p%w@h/reef",
        "postgres://ada:pw@h:port/reef",
        "postgres://ada:pw@%2Frun%2Fpostgresql/reef",
        "postgres://ada:pw@h/reef?user=bob",
        "postgres://ada:pw@h/reef?table=a.b",
        "postgres://ada:pw@h/reef?table=1a",
        "postgres://ada:pw@h/reef?sslmode=maybe",
        "postgres://ada:pw@h/reef?sslmode=require&sslrootcert=system",
        "postgres://ada:pw@h/reef?sslmode=prefer&sslnegotiation=direct",
        "postgres://ada:pw@h/reef?ssl_min_protocol_version=TLSv1.3&ssl_max_protocol_version=TLSv1.2",
        "postgres://ada:pw@h/reef?connect_timeout=soon",
        "postgres://ada:pw@h/reef?target_session_attrs=standby",
        "postgres://ada:pw@h/reef?service=prod",
        "postgres://ada:pw@h/reef?client_encoding=LATIN1",
        "postgres://ada:pw@/reef?host=a,b&port=1,2,3",
    ];
    let mut messages = urls.map(refused).to_vec();
    messages.push(parse_in("postgres://ada:pw@h/reef", &[("PGCHANNELBINDING", "require")]).unwrap_err().to_string());
    messages.push(parse_in("postgres://ada:pw@h/reef", &[("PGSSLMODE", "x")]).unwrap_err().to_string());
    assert!(messages.iter().all(|message| !message.contains("ada") && !message.contains("pw")), "{messages:#?}");
    insta::assert_snapshot!(messages.join("\n"), @r#"
    the postgres:// URL has an invalid scheme: expected postgres://user:password@host:port/database?table=name, with special characters of the user and the password as %XX
    the postgres:// URL has an invalid password: expected postgres://user:password@host:port/database?table=name, with special characters of the user and the password as %XX
    the postgres:// URL has an invalid port: expected postgres://user:password@host:port/database?table=name, with special characters of the user and the password as %XX
    a host with % is not supported for a postgres:// URL; write the folder of the socket as the parameter host: postgres:///database?host=/run/postgresql
    the postgres:// URL has user twice: keep one of them
    table cannot be "a.b" for a postgres:// URL: expected a name of at most 63 letters, digits, _ and $ that does not begin with a digit; write a schema as search_path=NAME
    table cannot be "1a" for a postgres:// URL: expected a name of at most 63 letters, digits, _ and $ that does not begin with a digit; write a schema as search_path=NAME
    sslmode cannot be "maybe" for a postgres:// URL: expected one of disable, allow, prefer, require, verify-ca, verify-full
    sslrootcert cannot be "system" for a postgres:// URL: expected a file unless sslmode is verify-full
    sslnegotiation=direct is not supported for a postgres:// URL; use it with sslmode=require, verify-ca or verify-full
    ssl_max_protocol_version cannot be "TLSv1.2" for a postgres:// URL: expected at least ssl_min_protocol_version
    connect_timeout cannot be "soon" for a postgres:// URL: expected a number of seconds
    target_session_attrs cannot be "standby" for a postgres:// URL: expected one of any, read-write, primary
    service is not supported for a postgres:// URL; write the settings of the service into the URL
    client_encoding cannot be "LATIN1" for a postgres:// URL: expected UTF8
    host, hostaddr and port of the postgres:// URL are lists of different lengths: write a port for each host, or one port
    PGCHANNELBINDING is not supported for a postgres:// URL; unset it for this command
    PGSSLMODE cannot be "x" for a postgres:// URL: expected one of disable, allow, prefer, require, verify-ca, verify-full
    "#);
}
