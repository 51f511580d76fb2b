//! Objects in rows. An object is one row: its key, JSON with the content in base64, and the time of the last write.
//!
//! Every request is one statement, so the server carries it out whole or not at all. A conditional write is an `UPDATE`
//! that selects the row by its version: PostgreSQL locks the row, and compares again if it has waited for the lock.

use std::collections::BTreeMap;
use std::time::SystemTime;

use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use jiff::Timestamp;
use state::store::{
    Durability, ListedNames, ListedObject, MAX_NAME_BYTES, MAX_NAMES, ObjectError, ObjectErrorKind, ObjectVersion,
    Objects, OutageReport, StoredObject, WriteCondition, WriteError,
};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::failure::Failure;
use super::received::SMALL;
use super::requests::{Repetition, Requests, Statement, TimeLimits, unexpected_data};
use super::schema::quote;
use super::url::PostgresUrl;

/// Digest of the content. The member is compared, not the JSON: its white space does not matter.
const DIGEST: &str = "encode(sha256(convert_to(t.data ->> 'data', 'UTF8')), 'hex')";

/// Bytes of the reply to a listing: the names, and what surrounds each of them.
const LISTING: u64 = (MAX_NAME_BYTES + 64 * (MAX_NAMES + 1)) as u64 + SMALL;

/// Start of the keys of journals.
const JOURNALS: &str = ".sc/journal/";

type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Store in a table of a PostgreSQL database.
pub struct PostgresObjects {
    requests: Requests,
    /// Connection for new objects of a journal, which a run waits for: they must not stand behind a large checkpoint. It is made
    /// for the first of them.
    journal: Requests,
    statements: Statements,
}

/// SQL with the name of the table.
struct Statements {
    read: String,
    write: String,
    insert: String,
    update: String,
    copy: String,
    remove: String,
    list: String,
    list_all: String,
}

impl Statements {
    fn new(table: &str) -> Self {
        let table = quote(table);
        // Time of this statement, and later than that of the row: two writes within a microsecond differ as well.
        let later = "(SELECT CASE WHEN clock.now = t.updated_at THEN clock.now + interval '1 microsecond' ELSE clock.now \
                     END FROM (SELECT clock_timestamp() AS now) AS clock)";
        let replace = format!("ON CONFLICT (key) DO UPDATE SET data = EXCLUDED.data, updated_at = {later}");
        let version = format!("RETURNING t.updated_at, {DIGEST}");
        let insert =
            format!("INSERT INTO {table} AS t (key, data, updated_at) VALUES ($1, $2::json, clock_timestamp())");
        let list = format!("SELECT t.key, t.updated_at FROM {table} AS t WHERE t.key LIKE $1");
        Self {
            read: format!(
                "SELECT CASE WHEN octet_length(t.data ->> 'data') <= $2 THEN t.data ->> 'data' END, \
                 octet_length(t.data ->> 'data')::bigint, t.updated_at, {DIGEST}, t.key FROM {table} AS t \
                 WHERE t.key = ANY($1)"
            ),
            write: format!("{insert} {replace} {version}"),
            insert: format!("{insert} ON CONFLICT (key) DO NOTHING {version}"),
            update: format!(
                "UPDATE {table} AS t SET data = $2::json, updated_at = {later} \
                 WHERE t.key = $1 AND t.updated_at = $3 AND {DIGEST} = $4 {version}"
            ),
            copy: format!(
                "INSERT INTO {table} AS t (key, data, updated_at) \
                 SELECT $2, s.data, clock_timestamp() FROM {table} AS s WHERE s.key = $1 {replace} RETURNING 1"
            ),
            remove: format!("DELETE FROM {table} AS t WHERE t.key = $1"),
            list: format!("{list} AND position('/' IN substr(t.key, $2)) = 0"),
            list_all: list,
        }
    }
}

impl PostgresObjects {
    /// Opens a store. Connects on first use.
    pub fn new(url: PostgresUrl, outages: OutageReport) -> Self {
        Self::with_time_limits(url, TimeLimits::default(), outages)
    }

    /// Opens a store whose requests have other time limits.
    pub fn with_time_limits(url: PostgresUrl, limits: TimeLimits, outages: OutageReport) -> Self {
        let statements = Statements::new(&url.table);
        let journal = Requests::new(url.clone(), limits, outages.clone());
        Self { requests: Requests::new(url, limits, outages), journal, statements }
    }

    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.requests.url().prefix)
    }

    fn error(&self, operation: &'static str, key: &str, failure: Failure) -> ObjectError {
        ObjectError {
            operation,
            location: self.requests.location_of(key),
            kind: failure.kind,
            effect: failure.kind.effect(),
            source: Box::new(failure),
        }
    }

    /// Returns the objects whose key begins with a folder, by a statement that selects them.
    async fn find(&self, folder: &str, is_deep: bool) -> Result<Vec<ListedObject>, Failure> {
        let folder = folder.trim_end_matches('/');
        let start = if folder.is_empty() { self.key("") } else { self.key(&format!("{folder}/")) };
        let pattern = format!("{}%", escape(&start));
        let rest = i32::try_from(start.chars().count() + 1).unwrap_or(i32::MAX);
        let parameters: [Parameter<'_>; 2] = [(&pattern, Type::TEXT), (&rest, Type::INT4)];
        let (text, parameters) = if is_deep {
            (&self.statements.list_all, &parameters[..1])
        } else {
            (&self.statements.list, &parameters[..])
        };
        let statement = Statement { reply: LISTING, ..statement("list", folder, text) };
        let rows = self.requests.query(statement, parameters).await?;
        let mut names = ListedNames::default();
        let listed = |row: &Row| {
            let object = listed(row, &start)?;
            let counted = names.add(&object.name);
            counted.map_err(|reason| Failure::lasting(ObjectErrorKind::TooLarge, reason.to_string(), None))?;
            Ok(object)
        };
        let mut objects = rows.iter().map(listed).collect::<Result<Vec<_>, Failure>>()?;
        objects.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(objects)
    }

    /// Returns several objects by one statement, in the order of the keys.
    async fn load(&self, keys: &[&str], limit: u64) -> Result<Vec<Option<StoredObject>>, ObjectError> {
        let stored_keys: Vec<String> = keys.iter().map(|key| self.key(key)).collect();
        // Length of the content in base64.
        let encoded_limit = i32::try_from(limit.div_ceil(3).saturating_mul(4)).unwrap_or(i32::MAX);
        let parameters: [Parameter<'_>; 2] = [(&stored_keys, Type::TEXT_ARRAY), (&encoded_limit, Type::INT4)];
        let first = keys.first().copied().unwrap_or_default();
        let reply = (u64::from(encoded_limit.unsigned_abs())).saturating_mul(keys.len() as u64).saturating_add(SMALL);
        let statement = Statement { reply, ..statement("read", first, &self.statements.read) };
        let rows = self.requests.query(statement, &parameters).await;
        let rows = rows.map_err(|failure| self.error("read", first, failure))?;
        let mut found = BTreeMap::new();
        for row in &rows {
            let key: String =
                row.try_get(4).map_err(|_| self.error("read", first, unexpected_data("a key is not a text")))?;
            found.insert(key, row);
        }
        let read = |(key, stored_key): (&&str, &String)| {
            let object = found.get(stored_key).map(|row| stored(row, limit)).transpose();
            object.map_err(|failure| self.error("read", key, failure))
        };
        keys.iter().zip(&stored_keys).map(read).collect()
    }

    async fn save(
        &self,
        key: &str,
        content: &[u8],
        condition: &WriteCondition,
    ) -> Result<Option<ObjectVersion>, Failure> {
        let full_key = self.key(key);
        let data = format!(r#"{{"data":"{}"}}"#, BASE64_STANDARD.encode(content));
        let (text, repetition) = match condition {
            WriteCondition::None => (&self.statements.write, Repetition::Allowed),
            WriteCondition::Missing => (&self.statements.insert, Repetition::IfWithoutEffect),
            WriteCondition::Unchanged(_) => (&self.statements.update, Repetition::IfWithoutEffect),
        };
        let mut parameters: Vec<Parameter<'_>> = vec![(&full_key, Type::TEXT), (&data, Type::TEXT)];
        let time;
        if let WriteCondition::Unchanged(version) = condition {
            // The version of another store is not that of a row.
            let Some(parsed) = parse_time(version) else { return Ok(None) };
            time = parsed;
            parameters.push((&time, Type::TIMESTAMPTZ));
            parameters.push((&version.tag, Type::TEXT));
        }
        let statement = Statement { repetition, size: data.len(), ..statement("write", key, text) };
        let is_journal = matches!(condition, WriteCondition::Missing) && key.starts_with(JOURNALS);
        let requests = if is_journal { &self.journal } else { &self.requests };
        let rows = requests.query(statement, &parameters).await?;
        rows.first().map(|row| row_version(row, 0).map(|(version, _)| version)).transpose()
    }
}

#[async_trait]
impl Objects for PostgresObjects {
    fn location(&self) -> String {
        self.requests.url().location().to_owned()
    }

    fn location_of(&self, key: &str) -> String {
        self.requests.location_of(key)
    }

    async fn read(&self, key: &str, limit: u64) -> Result<Option<StoredObject>, ObjectError> {
        Ok(self.load(&[key], limit).await?.pop().flatten())
    }

    async fn read_all(&self, keys: &[&str], limit: u64) -> Result<Vec<Option<StoredObject>>, ObjectError> {
        self.load(keys, limit).await
    }

    async fn write(
        &self,
        key: &str,
        content: Bytes,
        condition: &WriteCondition,
        _: Durability,
    ) -> Result<ObjectVersion, WriteError> {
        let saved = self.save(key, &content, condition).await;
        saved.map_err(|failure| self.error("write", key, failure))?.ok_or(WriteError::Condition)
    }

    async fn copy(&self, from: &str, to: &str) -> Result<bool, ObjectError> {
        let (source, target) = (self.key(from), self.key(to));
        let parameters: [Parameter<'_>; 2] = [(&source, Type::TEXT), (&target, Type::TEXT)];
        let copied = self.requests.query(statement("copy", from, &self.statements.copy), &parameters).await;
        copied.map(|rows| !rows.is_empty()).map_err(|failure| self.error("copy", from, failure))
    }

    async fn remove(&self, key: &str) -> Result<(), ObjectError> {
        let full_key = self.key(key);
        let parameters: [Parameter<'_>; 1] = [(&full_key, Type::TEXT)];
        let removed = self.requests.query(statement("remove", key, &self.statements.remove), &parameters).await;
        removed.map(|_rows| ()).map_err(|failure| self.error("remove", key, failure))
    }

    async fn list(&self, folder: &str) -> Result<Vec<ListedObject>, ObjectError> {
        self.find(folder, false).await.map_err(|failure| self.error("list", folder, failure))
    }

    async fn list_all(&self, folder: &str) -> Result<Vec<ListedObject>, ObjectError> {
        self.find(folder, true).await.map_err(|failure| self.error("list", folder, failure))
    }
}

/// Describes a statement that may be repeated, and whose reply is short.
fn statement<'s>(operation: &'static str, key: &'s str, text: &'s str) -> Statement<'s> {
    Statement { operation, key, text, repetition: Repetition::Allowed, size: 0, reply: SMALL }
}

/// Escapes the wildcards of `LIKE`.
fn escape(text: &str) -> String {
    text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_")
}

fn stored(row: &Row, limit: u64) -> Result<StoredObject, Failure> {
    let (version, modified) = row_version(row, 2)?;
    let encoded: Option<&str> = row.try_get(0).map_err(|error| Failure::of(&error, None))?;
    let length: Option<i64> = row.try_get(1).map_err(|error| Failure::of(&error, None))?;
    let too_large = || Failure::lasting(ObjectErrorKind::TooLarge, format!("it has more than {limit} bytes"), None);
    let encoded = match (encoded, length) {
        (Some(encoded), _) => encoded,
        (None, Some(_)) => return Err(too_large()),
        (None, None) => return Err(unexpected_data("column data has no member \"data\" with text")),
    };
    let content = BASE64_STANDARD.decode(encoded);
    let content = content.map_err(|error| unexpected_data(format!("column data is not base64: {error}")))?;
    if u64::try_from(content.len()).is_ok_and(|length| length > limit) {
        return Err(too_large());
    }
    Ok(StoredObject { content, version, modified })
}

fn listed(row: &Row, start: &str) -> Result<ListedObject, Failure> {
    let key: &str = row.try_get(0).map_err(|error| Failure::of(&error, None))?;
    let name = key.strip_prefix(start).unwrap_or(key).to_owned();
    Ok(ListedObject { name, modified: timestamp(row, 1)? })
}

/// Returns the version that begins at a column, and its time.
fn row_version(row: &Row, column: usize) -> Result<(ObjectVersion, Timestamp), Failure> {
    let modified = timestamp(row, column)?;
    let tag: Option<String> = row.try_get(column + 1).map_err(|error| Failure::of(&error, None))?;
    Ok((ObjectVersion { tag, generation: Some(modified.to_string()) }, modified))
}

fn timestamp(row: &Row, column: usize) -> Result<Timestamp, Failure> {
    let time: SystemTime = row.try_get(column).map_err(|error| Failure::of(&error, None))?;
    Timestamp::try_from(time).map_err(|error| unexpected_data(format!("column updated_at: {error}")))
}

fn parse_time(version: &ObjectVersion) -> Option<SystemTime> {
    version.generation.as_ref()?.parse::<Timestamp>().ok().map(SystemTime::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_of_a_prefix_are_escaped() {
        assert_eq!(escape(r"my_reef/50%\x/"), r"my\_reef/50\%\\x/");
    }

    #[test]
    fn version_is_the_exact_time_of_the_row() {
        let generation = Some("2026-09-01T08:00:00.123457Z".to_owned());
        let version = ObjectVersion { tag: None, generation: generation.clone() };
        let parsed = parse_time(&version).unwrap();
        assert_eq!(Some(Timestamp::try_from(parsed).unwrap().to_string()), generation);
        assert!(parse_time(&ObjectVersion { tag: None, generation: Some("1790000000000001".to_owned()) }).is_none());
    }
}
