//! Connection to a database: TLS, login, check of the table, and the task that carries it.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use state::store::ObjectErrorKind;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio_postgres::config::{LoadBalanceHosts, SslMode as ClientMode, SslNegotiation, TargetSessionAttrs};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failure::{Failure, is_handshake};
use super::password::{Login, Password, read_password};
use super::received::{Allowance, PlainConnector, TlsConnector};
use super::schema::{COLUMNS, Column, check, create, quote};
use super::tls::SslMode;
use super::url::PostgresUrl;

/// Time after which an idle connection is probed.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Connection whose table has been checked. Dropping it closes it.
pub(super) struct Connection {
    client: Client,
    /// Bytes that the server may send.
    pub(super) allowance: Allowance,
    /// Reason why the connection has ended.
    end: Arc<OnceLock<Failure>>,
    /// Carries the messages between client and server.
    _task: JoinSet<()>,
}

impl Connection {
    /// Connects, and creates the table if there is none. `request_limit` is the time that a statement may take.
    pub(super) async fn open(url: &PostgresUrl, request_limit: Duration) -> Result<Self, Failure> {
        let (config, connector) = prepare(url).await?;
        let connection = connect(url, config, connector).await?;
        connection.set_up(&url.table, request_limit).await?;
        Ok(connection)
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Classifies an error of a request on this connection.
    pub(super) fn failure(&self, error: &tokio_postgres::Error) -> Failure {
        Failure::of(error, self.end.get())
    }

    /// Checks the table, and limits the time of statements unless the URL or the role does: one round trip. Creates the table if
    /// there is none.
    async fn set_up(&self, table: &str, request_limit: Duration) -> Result<(), Failure> {
        let mut columns = self.columns(table, request_limit).await?;
        if columns.is_empty() {
            let created = self.client.batch_execute(&create(table)).await.map_err(|error| self.failure(&error));
            columns = self.columns(table, request_limit).await?;
            // Two programs that create the table at the same time may fail with an error about a duplicate.
            if columns.is_empty() {
                return created;
            }
        }
        check(table, &columns)
    }

    async fn columns(&self, table: &str, request_limit: Duration) -> Result<Vec<Column>, Failure> {
        let (name, limit) = (quote(table), request_limit.as_millis().to_string());
        let rows = self.client.query_typed(COLUMNS, &[(&name, Type::TEXT), (&limit, Type::TEXT)]).await;
        let columns = rows.and_then(|rows| rows.iter().map(Column::from_row).collect());
        columns.map_err(|error| self.failure(&error))
    }
}

/// Returns the configuration of the client, for which files may be read.
async fn prepare(url: &PostgresUrl) -> Result<(Config, Option<MakeRustlsConnect>), Failure> {
    let (tls, login) = (url.tls.clone(), url.clone());
    let read = move || {
        let connector = (tls.mode != SslMode::Disable).then(|| tls.client_config().map(MakeRustlsConnect::new));
        let connector = connector.transpose().map_err(|error| unusable(&error))?;
        let password = password(&login).map_err(|error| unusable(&error))?;
        Ok((connector, password))
    };
    let thread = tokio::task::spawn_blocking(read).await;
    let (connector, password) = thread.unwrap_or_else(|error| Err(unusable(&error)))?;
    Ok((config(url, password.as_ref()), connector))
}

fn unusable(error: &dyn std::error::Error) -> Failure {
    let causes = std::iter::successors(Some(error), |&cause| cause.source()).map(ToString::to_string);
    Failure::lasting(ObjectErrorKind::Other, causes.collect::<Vec<_>>().join(": "), None)
}

/// Returns the password of the URL or of the password file. Only the first host is looked up there.
fn password(url: &PostgresUrl) -> Result<Option<Password>, bridge::fs::FileError> {
    let file: Option<&PathBuf> = url.password_file.as_ref();
    let (Some(file), None, Some(host)) = (file, &url.password, url.hosts.first()) else {
        return Ok(url.password.clone());
    };
    let user = url.user.as_deref().unwrap_or_default();
    let database = url.database.as_deref().unwrap_or_default();
    read_password(file, Login { host: &host.name, port: host.port, database, user })
}

fn config(url: &PostgresUrl, password: Option<&Password>) -> Config {
    let mut config = Config::new();
    let has_addresses = url.hosts.iter().all(|host| host.address.is_some());
    for host in &url.hosts {
        match host.address {
            Some(address) if !has_addresses => config.host(address.to_string()),
            _ => config.host(&host.name),
        };
        config.port(host.port);
        if let Some(address) = host.address.filter(|_| has_addresses) {
            config.hostaddr(address);
        }
    }
    if url.shuffle_hosts {
        config.load_balance_hosts(LoadBalanceHosts::Random);
    }
    if url.requires_primary {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    if let Some(database) = &url.database {
        config.dbname(database);
    }
    if let Some(user) = &url.user {
        config.user(user);
    }
    if let Some(options) = &url.options {
        config.options(options);
    }
    if let Some(password) = password {
        config.password(password.reveal());
    }
    config.application_name(&url.application_name);
    config.keepalives_idle(KEEPALIVE);
    config
}

/// Connects with and without TLS in the order that the mode asks for.
async fn connect(
    url: &PostgresUrl,
    mut config: Config,
    connector: Option<MakeRustlsConnect>,
) -> Result<Connection, Failure> {
    let failure = |error: tokio_postgres::Error| Failure::of(&error, None);
    let Some(connector) = connector else {
        return start_plain(url, &mut config).await.map_err(failure);
    };
    match url.tls.mode {
        SslMode::Allow => match start_plain(url, &mut config).await {
            Err(error) if error.as_db_error().is_some() || error.is_closed() => {
                start_tls(url, &mut config, connector).await.map_err(failure)
            }
            started => started.map_err(failure),
        },
        // A server without TLS is one whose handshake fails.
        SslMode::Prefer => match start_tls(url, &mut config, connector).await {
            Err(error) if is_handshake(&error) => start_plain(url, &mut config).await.map_err(failure),
            started => started.map_err(failure),
        },
        SslMode::Disable | SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => {
            start_tls(url, &mut config, connector).await.map_err(failure)
        }
    }
}

/// Connects without TLS. What a server behind a Unix socket sends is not counted: it runs on this machine.
async fn start_plain(url: &PostgresUrl, config: &mut Config) -> Result<Connection, tokio_postgres::Error> {
    let allowance = Allowance::new();
    if url.hosts.iter().any(|host| host.name.starts_with('/') && host.address.is_none()) {
        return start(config.ssl_mode(ClientMode::Disable), NoTls, allowance).await;
    }
    // The connector gets the stream at once, and returns it without a handshake.
    config.ssl_mode(ClientMode::Require).ssl_negotiation(SslNegotiation::Direct);
    start(config, PlainConnector(allowance.clone()), allowance).await
}

async fn start_tls(
    url: &PostgresUrl,
    config: &mut Config,
    connector: MakeRustlsConnect,
) -> Result<Connection, tokio_postgres::Error> {
    let negotiation = if url.tls.is_direct { SslNegotiation::Direct } else { SslNegotiation::Postgres };
    config.ssl_mode(ClientMode::Require).ssl_negotiation(negotiation);
    let allowance = Allowance::new();
    start(config, TlsConnector(connector, allowance.clone()), allowance).await
}

async fn start<T>(config: &Config, connector: T, allowance: Allowance) -> Result<Connection, tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (client, mut connection) = config.connect(connector).await?;
    let end = Arc::new(OnceLock::new());
    let mut task = JoinSet::new();
    let ended = Arc::clone(&end);
    task.spawn(async move {
        if let Err(error) = (&mut connection).await {
            // Set before the connection is dropped, which ends the waiting requests.
            let _first = ended.set(Failure::of(&error, None));
        }
    });
    Ok(Connection { client, allowance, end, _task: task })
}
