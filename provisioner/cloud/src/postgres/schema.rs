//! Table of a store: Pulumi's columns, checked before it is used, and created if there is none.

use state::store::ObjectErrorKind;
use tokio_postgres::Row;

use super::failure::Failure;

/// Returns the columns of the table `$1`, with what makes an insertion of Pulumi's three possible. If the table exists, limits
/// the time of later statements to `$2` unless they have a limit: one statement is one request. A write that has ended is on the
/// disk of the server, whatever the database or the role have set: what a call waits for must not be lost with the power.
pub(super) const COLUMNS: &str = "\
SELECT a.attname::text, \
       format_type(a.atttypid, NULL), \
       a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS is_required, \
       EXISTS (SELECT FROM pg_catalog.pg_index i \
               WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indimmediate AND i.indisvalid \
                 AND i.indpred IS NULL AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum) AS is_unique, \
       (SELECT set_config('statement_timeout', $2, false) WHERE current_setting('statement_timeout') = '0'), \
       (SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off') \
FROM pg_catalog.pg_attribute a \
WHERE a.attrelid = pg_catalog.to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped \
ORDER BY a.attnum";

/// Column of an existing table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    name: String,
    kind: String,
    is_required: bool,
    is_unique: bool,
}

impl Column {
    /// Reads a row of [`COLUMNS`].
    pub(super) fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            name: row.try_get(0)?,
            kind: row.try_get(1)?,
            is_required: row.try_get(2)?,
            is_unique: row.try_get(3)?,
        })
    }
}

/// Quotes a name.
pub(super) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns the statements with which Pulumi creates the table and its index (docs/spec/state-and-secrets.md#1).
pub(super) fn create(table: &str) -> String {
    let (table, index) = (quote(table), quote(&format!("{table}_key_prefix_idx")));
    format!(
        "CREATE TABLE IF NOT EXISTS {table} (key TEXT PRIMARY KEY, data JSON NOT NULL, updated_at TIMESTAMP WITH TIME \
         ZONE NOT NULL DEFAULT now()); CREATE INDEX IF NOT EXISTS {index} ON {table} (key text_pattern_ops)"
    )
}

/// Verifies that a table is one that Pulumi could have made: its three columns, a unique key, and no other column that
/// needs a value.
///
/// # Errors
/// [`Failure`] that lists the differences.
pub(super) fn check(table: &str, columns: &[Column]) -> Result<(), Failure> {
    let expected: [(&str, &[&str]); 3] = [
        ("key", &["text", "character varying"]),
        ("data", &["json", "jsonb"]),
        ("updated_at", &["timestamp with time zone"]),
    ];
    let mut differences = Vec::new();
    for (name, kinds) in expected {
        match columns.iter().find(|column| column.name == name) {
            None => differences.push(format!("there is no column {name}")),
            Some(column) if !kinds.contains(&&*column.kind) => {
                let kind = kinds.first().copied().unwrap_or_default();
                differences.push(format!("column {name} has the type {}, not {kind}", column.kind));
            }
            Some(column) if name == "key" && !column.is_unique => {
                differences.push("column key is not unique".to_owned());
            }
            Some(_) => {}
        }
    }
    let is_known = |column: &&Column| expected.iter().any(|(name, _)| *name == column.name);
    for column in columns.iter().filter(|column| column.is_required && !is_known(column)) {
        differences.push(format!("column {} needs a value", column.name));
    }
    if differences.is_empty() {
        return Ok(());
    }
    let words = format!("the table {} was not made for states: {}", quote(table), differences.join(", "));
    let hint = "name another table with table=NAME in the URL; it is created if it does not exist";
    Err(Failure::lasting(ObjectErrorKind::Other, words, Some(hint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: &str, is_required: bool, is_unique: bool) -> Column {
        Column { name: name.to_owned(), kind: kind.to_owned(), is_required, is_unique }
    }

    fn pulumi() -> Vec<Column> {
        vec![
            column("key", "text", true, true),
            column("data", "json", true, false),
            column("updated_at", "timestamp with time zone", false, false),
        ]
    }

    fn differences(columns: &[Column]) -> String {
        check("reef", columns).map_or_else(|failure| failure.to_string(), |()| "none".to_owned())
    }

    #[test]
    fn table_with_the_columns_of_pulumi_is_accepted() {
        assert_eq!(differences(&pulumi()), "none");
        let mut more = pulumi();
        more.push(column("comment", "text", false, false));
        more[1].kind = "jsonb".to_owned();
        assert_eq!(differences(&more), "none");
    }

    #[test]
    fn table_of_another_program_is_refused_with_each_difference() {
        type Change = fn(&mut Vec<Column>);
        let hint = "; name another table with table=NAME in the URL; it is created if it does not exist";
        let rows: [(Change, &str); 4] = [
            (|columns| columns[0].is_unique = false, "column key is not unique"),
            (|columns| columns[1].kind = "text".to_owned(), "column data has the type text, not json"),
            (|columns| drop(columns.pop()), "there is no column updated_at"),
            (|columns| columns.push(column("owner", "text", true, false)), "column owner needs a value"),
        ];
        for (change, expected) in rows {
            let mut columns = pulumi();
            change(&mut columns);
            assert_eq!(differences(&columns), format!("the table \"reef\" was not made for states: {expected}{hint}"));
        }
        let other = [column("id", "integer", false, true), column("key", "uuid", true, false)];
        let expected = "column key has the type uuid, not text, there is no column data, there is no column updated_at";
        assert!(differences(&other).contains(expected), "{}", differences(&other));
    }

    #[test]
    fn table_is_created_as_pulumi_does() {
        insta::assert_snapshot!(create("pulumi_state"), @r#"CREATE TABLE IF NOT EXISTS "pulumi_state" (key TEXT PRIMARY KEY, data JSON NOT NULL, updated_at TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now()); CREATE INDEX IF NOT EXISTS "pulumi_state_key_prefix_idx" ON "pulumi_state" (key text_pattern_ops)"#);
    }
}
