//! `postgres://` URLs of stores (docs/spec/state-and-secrets.md#1).
//!
//! The text is read as Go's `net/url` and github.com/lib/pq read it, which Pulumi uses: a host list and the folder of a
//! Unix socket are possible, and the environment variables of PostgreSQL fill in what the URL does not contain.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use url::form_urlencoded;

use super::parameters::Parameters;
use super::password::Password;
use super::tls::TlsSettings;
use super::url_error::PostgresUrlError;

/// Name of the table unless the URL names another one.
const DEFAULT_TABLE: &str = "pulumi_state";
const DEFAULT_PORT: u16 = 5432;
/// Longest name in PostgreSQL, in bytes.
const MAX_NAME: usize = 63;
/// Characters of a location that are written as `%XX`.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'&').add(b'<').add(b'>').add(b'?');

/// Place of a store in a database, and how to connect to it. `Debug` shows no password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresUrl {
    /// Servers in the order in which they are tried; at least one.
    pub(super) hosts: Vec<Host>,
    pub(super) shuffle_hosts: bool,
    pub(super) requires_primary: bool,
    pub(super) database: Option<String>,
    pub(super) user: Option<String>,
    pub(super) password: Option<Password>,
    pub(super) password_file: Option<PathBuf>,
    pub(super) tls: TlsSettings,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) application_name: String,
    /// Command-line options of the server process, with the settings of the session.
    pub(super) options: Option<String>,
    /// Name of the table in lower case, without schema.
    pub(super) table: String,
    /// Start of every key: empty, or the path of the URL with a slash at its end.
    pub(super) prefix: String,
    location: String,
}

/// Server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// Name, address or folder of a Unix socket.
    pub(super) name: String,
    /// Address to connect to instead of the one that the name has.
    pub(super) address: Option<IpAddr>,
    pub(super) port: u16,
}

impl PostgresUrl {
    /// Parses a URL. `environment` is that of the program; `home` has `.pgpass` and `.postgresql`.
    ///
    /// # Errors
    /// [`PostgresUrlError`].
    pub fn parse(
        url: &str,
        environment: &BTreeMap<String, String>,
        home: Option<&Path>,
    ) -> Result<Self, PostgresUrlError> {
        let (parameters, path) = split(url)?;
        let prefix = match path.trim_start_matches('/') {
            "" => String::new(),
            path if path.ends_with('/') => path.to_owned(),
            path => format!("{path}/"),
        };
        let mut parameters = Parameters::new(parameters, environment)?;
        let table = table(parameters.take_text("table"))?;
        refuse_unsupported(&mut parameters)?;
        let hosts = hosts(&mut parameters)?;
        let dbname = parameters.take_text("dbname");
        let database = parameters.take_text("database").or(dbname);
        let user = parameters.take_text("user").or_else(|| environment.get("USER").cloned());
        let password = parameters.take_text("password").map(Password::new);
        let password_file = parameters.take_text("passfile").map(PathBuf::from);
        let password_file = password_file.or_else(|| Some(home?.join(".pgpass")));
        let is_socket = hosts.first().is_some_and(|host| host.name.starts_with('/') && host.address.is_none());
        let tls = TlsSettings::take(&mut parameters, home, is_socket)?;
        let connect_timeout = connect_timeout(&mut parameters)?;
        let fallback_name = parameters.take_text("fallback_application_name").unwrap_or_else(|| "sc".to_owned());
        let application_name = parameters.take_text("application_name").unwrap_or(fallback_name);
        let balance = [("disable", false), ("random", true)];
        let shuffle_hosts = parameters.take_word("load_balance_hosts", &balance)?.unwrap_or(false);
        let attributes = [("any", false), ("read-write", true), ("primary", true)];
        let requires_primary = parameters.take_word("target_session_attrs", &attributes)?.unwrap_or(false);
        let options = options(parameters);
        let location = location(&hosts, database.as_deref(), &prefix, &table);
        Ok(Self {
            hosts,
            shuffle_hosts,
            requires_primary,
            database,
            user,
            password,
            password_file,
            tls,
            connect_timeout,
            application_name,
            options,
            table,
            prefix,
            location,
        })
    }

    /// Returns the place without user, password and the settings of the connection, such as
    /// `postgres://localhost:5432/reef?table=pulumi_state`.
    pub fn location(&self) -> &str {
        &self.location
    }
}

/// Splits a URL into its parameters, among which are the parts of the authority and the database, and the path without
/// escapes.
fn split(url: &str) -> Result<(BTreeMap<String, String>, String), PostgresUrlError> {
    let rest = url.strip_prefix("postgres://").ok_or(PostgresUrlError::Malformed("scheme"))?;
    let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let (login, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    if host.contains('%') {
        let hint = "write the folder of the socket as the parameter host: postgres:///database?host=/run/postgresql";
        return Err(PostgresUrlError::Unsupported { setting: "a host with %".to_owned(), hint });
    }
    // The colons of an IPv6 address are in brackets.
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (host, ""),
    };
    if !port.chars().all(|c| c.is_ascii_digit()) || (host.contains(':') && !host.starts_with('[')) {
        return Err(PostgresUrlError::Malformed("port"));
    }
    let path = decode(path, "path")?;
    let parts = [
        ("user", decode(user, "user")?),
        ("password", decode(password, "password")?),
        ("host", host.trim_matches(['[', ']']).to_owned()),
        ("port", port.to_owned()),
        ("dbname", path.strip_prefix('/').unwrap_or_default().to_owned()),
    ];
    let parts = parts.map(|(name, value)| (name.to_owned(), value)).into_iter();
    let query = form_urlencoded::parse(query.as_bytes()).map(|(name, value)| (name.into_owned(), value.into_owned()));
    let mut parameters = BTreeMap::new();
    for (name, value) in parts.chain(query).filter(|(_, value)| !value.is_empty()) {
        if parameters.insert(name.clone(), value).is_some() {
            return Err(PostgresUrlError::Twice(name));
        }
    }
    Ok((parameters, path))
}

fn decode(text: &str, part: &'static str) -> Result<String, PostgresUrlError> {
    let malformed = PostgresUrlError::Malformed(part);
    let is_escape = |rest: &str| rest.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
    if !text.split('%').skip(1).all(is_escape) {
        return Err(malformed);
    }
    percent_decode_str(text).decode_utf8().map(String::from).map_err(|_| malformed)
}

/// Returns the name of the table. Pulumi writes it into its statements as it is, so it can only be a plain name, and
/// PostgreSQL converts it to lower case.
fn table(text: Option<String>) -> Result<String, PostgresUrlError> {
    let text = text.unwrap_or_else(|| DEFAULT_TABLE.to_owned());
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
        && text.len() <= MAX_NAME;
    if is_plain {
        return Ok(text.to_ascii_lowercase());
    }
    let expected = "a name of at most 63 letters, digits, _ and $ that does not begin with a digit; \
                    write a schema as search_path=NAME"
        .to_owned();
    Err(PostgresUrlError::Value { setting: "table", value: text, expected })
}

/// Refuses parameters whose effect this client does not have, and drops those that concern the driver of Pulumi only.
fn refuse_unsupported(parameters: &mut Parameters) -> Result<(), PostgresUrlError> {
    let refused = [
        ("service", "write the settings of the service into the URL"),
        ("krbsrvname", "log in with a password or a client certificate"),
        ("krbspn", "log in with a password or a client certificate"),
    ];
    for (name, hint) in refused {
        if let Some(parameter) = parameters.take(name) {
            return Err(PostgresUrlError::Unsupported { setting: parameter.setting.to_owned(), hint });
        }
    }
    parameters.take_bool("binary_parameters")?;
    parameters.take_bool("disable_prepared_binary_result")?;
    parameters.take_word("datestyle", &[("ISO, MDY", ())])?;
    parameters.take_word("min_protocol_version", &[("3.0", ())])?;
    parameters.take_word("max_protocol_version", &[("3.0", ()), ("3.2", ()), ("latest", ())])?;
    if let Some(encoding) = parameters.take("client_encoding") {
        let letters = encoding.value.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
        if !["utf8", "unicode"].contains(&letters.to_ascii_lowercase().as_str()) {
            return Err(encoding.refuse("UTF8".to_owned()));
        }
    }
    Ok(())
}

/// Returns the servers: lists of names, addresses and ports, separated by commas, where one port is that of all.
fn hosts(parameters: &mut Parameters) -> Result<Vec<Host>, PostgresUrlError> {
    let name_list = parameters.take_text("host").unwrap_or_default();
    let names = name_list.split(',').collect::<Vec<_>>();
    let addresses = parameters.take("hostaddr");
    let addresses = addresses.map(|list| {
        let parse = |text: &str| (!text.is_empty()).then(|| text.parse::<IpAddr>()).transpose();
        let parsed = list.value.split(',').map(parse).collect::<Result<Vec<_>, _>>();
        parsed.map_err(|_| list.refuse("IP addresses separated by commas".to_owned()))
    });
    let addresses = addresses.transpose()?.unwrap_or_default();
    let ports = parameters.take("port");
    let ports = ports.map(|list| {
        let parse = |text: &str| if text.is_empty() { Ok(DEFAULT_PORT) } else { text.parse() };
        let parsed = list.value.split(',').map(parse).collect::<Result<Vec<_>, _>>();
        parsed.map_err(|_| list.refuse("ports separated by commas".to_owned()))
    });
    let ports = ports.transpose()?.unwrap_or_else(|| vec![DEFAULT_PORT]);

    let count = names.len().max(addresses.len());
    let fits = |length: usize| length <= 1 || length == count;
    if !fits(names.len()) || !fits(addresses.len()) || !fits(ports.len()) {
        return Err(PostgresUrlError::Hosts);
    }
    let host = |index: usize| Host {
        name: names
            .get(index)
            .filter(|name| !name.is_empty())
            .map_or_else(|| "localhost".to_owned(), |n| (*n).to_owned()),
        address: addresses.get(index).copied().flatten(),
        port: ports.get(index).or(ports.first()).copied().unwrap_or(DEFAULT_PORT),
    };
    Ok((0..count).map(host).collect())
}

fn connect_timeout(parameters: &mut Parameters) -> Result<Option<Duration>, PostgresUrlError> {
    let Some(parameter) = parameters.take("connect_timeout") else { return Ok(None) };
    let seconds = parameter.value.parse::<i64>();
    let seconds = seconds.map_err(|_| parameter.refuse("a number of seconds".to_owned()))?;
    // Zero and negative numbers are no limit in the URL; the client has its own then.
    Ok(u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs))
}

/// Returns the command-line options: those of the URL, then the settings of the session, which have priority.
fn options(mut parameters: Parameters) -> Option<String> {
    let own = parameters.take_text("options");
    let time_zone = parameters.take_text("tz").map(|value| ("TimeZone".to_owned(), value));
    let geqo = parameters.take_text("geqo").map(|value| ("geqo".to_owned(), value));
    let settings = time_zone.into_iter().chain(geqo).chain(parameters.into_rest());
    let settings = settings.map(|(name, value)| format!("-c {}={}", quote(&name), quote(&value)));
    let options = own.into_iter().chain(settings).collect::<Vec<_>>();
    (!options.is_empty()).then(|| options.join(" "))
}

/// Quotes a part of an option: the server splits options at spaces.
fn quote(text: &str) -> String {
    text.chars().fold(String::new(), |mut quoted, c| {
        if c == '\\' || c.is_ascii_whitespace() {
            quoted.push('\\');
        }
        quoted.push(c);
        quoted
    })
}

/// Returns the place of a table, the same for every run: the database is in the query unless it is the path.
fn location(hosts: &[Host], database: Option<&str>, prefix: &str, table: &str) -> String {
    let escape = |text: &str| utf8_percent_encode(text, ESCAPED).to_string();
    let path = prefix.trim_end_matches('/');
    let is_socket = hosts.iter().any(|host| host.name.starts_with(['/', '@']));
    let authority = |host: &Host| match host.name.contains(':') {
        true => format!("[{}]:{}", host.name, host.port),
        false => format!("{}:{}", host.name, host.port),
    };
    let list = |part: &dyn Fn(&Host) -> String| hosts.iter().map(part).collect::<Vec<_>>().join(",");
    let mut location = "postgres://".to_owned();
    if !is_socket {
        location.push_str(&list(&authority));
    }
    if !path.is_empty() || is_socket {
        location.push('/');
        location.push_str(&escape(path));
    }
    let sockets = is_socket.then(|| {
        let names = list(&|host| escape(&host.name));
        let ports = list(&|host| host.port.to_string());
        format!("host={names}&port={ports}")
    });
    let named = database.filter(|database| *database != path).map(|database| format!("dbname={}", escape(database)));
    let query = sockets.into_iter().chain(named).chain([format!("table={table}")]).collect::<Vec<_>>();
    location.push('?');
    location.push_str(&query.join("&"));
    location
}

#[cfg(test)]
mod tests;
