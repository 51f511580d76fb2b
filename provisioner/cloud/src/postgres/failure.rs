//! Failures of requests: kind, whether the server may have carried the request out, and the server's own words.

use std::error::Error;
use std::fmt;
use std::io;

use state::store::ObjectErrorKind;
use tokio_postgres::error::{DbError, SqlState};

use super::received::Unusable;
use super::tls::is_tls_error;

/// Failed request or connection. Its text has the words of the server, and what to do.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) kind: ObjectErrorKind,
    /// The same request may succeed later.
    pub(super) is_transient: bool,
    /// The server may have carried the request out.
    pub(super) may_have_effect: bool,
    /// The connection cannot be used again.
    pub(super) ends_connection: bool,
    /// The server itself reported it.
    pub(super) is_reply: bool,
    words: String,
    hint: Option<&'static str>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)?;
        self.hint.map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl Error for Failure {}

impl Failure {
    /// Failure that does not pass by itself.
    pub(super) fn lasting(kind: ObjectErrorKind, words: impl Into<String>, hint: Option<&'static str>) -> Self {
        let words = words.into();
        Self { kind, is_transient: false, may_have_effect: false, ends_connection: false, is_reply: false, words, hint }
    }

    /// Request without a reply in time.
    pub(super) fn timeout(words: impl Into<String>) -> Self {
        let failure = Self::lasting(ObjectErrorKind::Unreachable, words, None);
        Self { is_transient: true, may_have_effect: true, ends_connection: true, ..failure }
    }

    /// Server to which there is no connection.
    pub(super) fn no_connection(words: impl Into<String>) -> Self {
        let hint = Some("check the host and the port of the URL, and the network");
        Self { hint, ..Self::timeout(words) }
    }

    /// Classifies an error of the client. `end` is the failure that has ended the connection.
    pub(super) fn of(error: &tokio_postgres::Error, end: Option<&Self>) -> Self {
        if let Some(reply) = error.as_db_error() {
            return Self::of_reply(reply);
        }
        if Unusable::is_cause_of(error) {
            let hint = "check the host and the port of the URL, and a proxy on the way";
            return Self::unusable(ObjectErrorKind::Other, last_cause(error), Some(hint));
        }
        let words = chain(error);
        let begins = |text: &str| words.starts_with(text);
        if std::iter::successors(error.source(), |&cause| cause.source()).any(is_tls_error) {
            let hint = "name the certificate of its authority with sslrootcert, or the host that the certificate has";
            return Self::lasting(ObjectErrorKind::Other, words, Some(hint));
        }
        let is_io = error.source().is_some_and(|cause| cause.is::<io::Error>());
        if is_handshake(error) && !is_io {
            let hint = "if the network between is trusted, write sslmode=disable into the URL";
            return Self::lasting(ObjectErrorKind::Other, words, Some(hint));
        }
        if begins("invalid configuration: password missing") {
            let words = "the server asks for a password";
            let hint = "write it into the URL, into PGPASSWORD or into the file ~/.pgpass";
            return Self::lasting(ObjectErrorKind::Credentials, words, Some(hint));
        }
        if begins("authentication error") {
            return Self::lasting(ObjectErrorKind::Credentials, words, None);
        }
        let is_network = error.is_closed() || is_io || begins("unexpected message");
        if !is_network {
            return Self::lasting(ObjectErrorKind::Other, words, None);
        }
        if begins("error connecting") {
            return Self::no_connection(words);
        }
        match end {
            Some(end) if !end.is_transient && !end.is_reply => end.clone(),
            Some(end) => Self::timeout(end.to_string()),
            None => Self::timeout(words),
        }
    }

    /// Reply that no server of a store sends. The request may have been carried out.
    pub(super) fn unusable(kind: ObjectErrorKind, words: impl Into<String>, hint: Option<&'static str>) -> Self {
        let failure = Self::lasting(kind, words, hint);
        Self { may_have_effect: true, ends_connection: true, ..failure }
    }

    /// The same failure before a request was sent.
    pub(super) fn without_effect(self) -> Self {
        Self { may_have_effect: false, ..self }
    }

    /// Classifies an error that the server replied with.
    fn of_reply(reply: &DbError) -> Self {
        let code = reply.code();
        let (kind, hint) = kind(code);
        let class = code.code().get(..2).unwrap_or_default();
        let is_aborted = matches!(*code, SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED);
        // After a failover the server that was the primary refuses writes; its successor has the same name.
        let is_demoted = *code == SqlState::READ_ONLY_SQL_TRANSACTION;
        let is_lost = class == "08" || (class == "57" && *code != SqlState::QUERY_CANCELED);
        Self {
            kind,
            is_transient: kind == ObjectErrorKind::Unreachable || is_aborted || is_demoted,
            may_have_effect: is_lost,
            ends_connection: is_lost || is_demoted,
            is_reply: true,
            words: words(reply),
            hint,
        }
    }
}

/// Returns whether TLS could not be started.
pub(super) fn is_handshake(error: &tokio_postgres::Error) -> bool {
    // The kinds of this error are private.
    error.to_string().starts_with("error performing TLS handshake")
}

/// Returns the kind of an error of the server, and what to do.
fn kind(code: &SqlState) -> (ObjectErrorKind, Option<&'static str>) {
    let (kind, hint) = match *code {
        SqlState::INVALID_CATALOG_NAME => {
            let hint = "create the database, or correct its name, which is the path of the URL";
            (ObjectErrorKind::NoStore, hint)
        }
        SqlState::DATABASE_DROPPED => (ObjectErrorKind::NoStore, "create the database again"),
        SqlState::UNDEFINED_TABLE => (ObjectErrorKind::NoStore, "the table was dropped meanwhile: restore it"),
        SqlState::INVALID_SCHEMA_NAME => {
            (ObjectErrorKind::NoStore, "create the schema, or name another one with search_path=NAME in the URL")
        }
        SqlState::INVALID_PASSWORD => {
            let hint =
                "correct the user and the password in the URL, in PGUSER and PGPASSWORD or in the file ~/.pgpass";
            (ObjectErrorKind::Credentials, hint)
        }
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            let hint = "allow the role to log in (LOGIN), and its address in the server's pg_hba.conf; `no encryption` \
                        asks for sslmode=require in the URL";
            (ObjectErrorKind::Credentials, hint)
        }
        SqlState::UNDEFINED_OBJECT => {
            let hint = "parameters of the URL that do not concern the connection are settings of the session: correct \
                        or remove it";
            (ObjectErrorKind::Other, hint)
        }
        SqlState::INSUFFICIENT_PRIVILEGE => {
            let hint = "the role needs CONNECT on the database, USAGE on the schema, and SELECT, INSERT, UPDATE and \
                        DELETE on the table; to create the table, CREATE on the schema";
            (ObjectErrorKind::Denied, hint)
        }
        SqlState::READ_ONLY_SQL_TRANSACTION => {
            (ObjectErrorKind::Denied, "connect to the primary server: target_session_attrs=read-write")
        }
        _ => return (kind_of_class(code), None),
    };
    (kind, Some(hint))
}

fn kind_of_class(code: &SqlState) -> ObjectErrorKind {
    let is_aborted = matches!(
        *code,
        SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED | SqlState::LOCK_NOT_AVAILABLE
    );
    match code.code().get(..2) {
        // Connection, resources, intervention of an operator.
        Some("08" | "53" | "57") => ObjectErrorKind::Unreachable,
        _ if is_aborted => ObjectErrorKind::Unreachable,
        Some("28") => ObjectErrorKind::Credentials,
        _ => ObjectErrorKind::Other,
    }
}

/// Returns the words of the server in one line.
fn words(reply: &DbError) -> String {
    let lines = [("", Some(reply.message())), (": ", reply.detail()), (": ", reply.hint())];
    let text = lines.into_iter().filter_map(|(separator, line)| Some(format!("{separator}{}", line?)));
    let text = text.collect::<String>().replace('\n', " ");
    format!("the server replied: {text} (SQLSTATE {})", reply.code().code())
}

/// Returns the text of the last cause of an error.
fn last_cause(error: &dyn Error) -> String {
    std::iter::successors(Some(error), |&cause| cause.source()).last().map(ToString::to_string).unwrap_or_default()
}

/// Returns an error and its causes in one line.
fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |&cause| cause.source());
    let mut words = causes.map(ToString::to_string).collect::<Vec<_>>();
    words.dedup();
    words.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_the_server_decides_the_kind() {
        use ObjectErrorKind::{Credentials, Denied, NoStore, Other, Unreachable};
        let rows = [
            ("3D000", NoStore),
            ("3F000", NoStore),
            ("42P01", NoStore),
            ("57P04", NoStore),
            ("28P01", Credentials),
            ("28000", Credentials),
            ("42501", Denied),
            ("25006", Denied),
            ("08006", Unreachable),
            ("53300", Unreachable),
            ("53100", Unreachable),
            ("57P01", Unreachable),
            ("57P03", Unreachable),
            ("57014", Unreachable),
            ("40001", Unreachable),
            ("40P01", Unreachable),
            ("55P03", Unreachable),
            ("42601", Other),
            ("22P02", Other),
        ];
        for (code, expected) in rows {
            assert_eq!(kind(&SqlState::from_code(code)).0, expected, "{code}");
        }
    }
}
