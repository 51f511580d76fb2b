//! Parameters of a connection from a URL and the environment, as github.com/lib/pq 1.12 reads them, which is Pulumi's
//! driver.

use std::collections::BTreeMap;

use super::url_error::PostgresUrlError;

/// Environment variables, and the parameters of a URL that have priority over them.
const VARIABLES: [(&str, &str); 24] = [
    ("PGHOST", "host"),
    ("PGHOSTADDR", "hostaddr"),
    ("PGPORT", "port"),
    ("PGDATABASE", "dbname"),
    ("PGUSER", "user"),
    ("PGPASSWORD", "password"),
    ("PGPASSFILE", "passfile"),
    ("PGOPTIONS", "options"),
    ("PGAPPNAME", "application_name"),
    ("PGSSLMODE", "sslmode"),
    ("PGSSLNEGOTIATION", "sslnegotiation"),
    ("PGSSLCERT", "sslcert"),
    ("PGSSLKEY", "sslkey"),
    ("PGSSLROOTCERT", "sslrootcert"),
    ("PGSSLSNI", "sslsni"),
    ("PGKRBSRVNAME", "krbsrvname"),
    ("PGCONNECT_TIMEOUT", "connect_timeout"),
    ("PGCLIENTENCODING", "client_encoding"),
    ("PGDATESTYLE", "datestyle"),
    ("PGTZ", "tz"),
    ("PGGEQO", "geqo"),
    ("PGTARGETSESSIONATTRS", "target_session_attrs"),
    ("PGLOADBALANCEHOSTS", "load_balance_hosts"),
    ("PGSERVICE", "service"),
];

/// Environment variables of PostgreSQL that the driver refuses: ignoring them could weaken a connection.
const REFUSED: [&str; 12] = [
    "PGREQUIRESSL",
    "PGSSLCOMPRESSION",
    "PGREALM",
    "PGGSSENCMODE",
    "PGGSSDELEGATION",
    "PGGSSLIB",
    "PGREQUIREAUTH",
    "PGCHANNELBINDING",
    "PGSSLCERTMODE",
    "PGSSLCRL",
    "PGSSLCRLDIR",
    "PGREQUIREPEER",
];

/// Value of a parameter, and the name of the parameter or variable that has it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) value: String,
    pub(super) setting: &'static str,
}

/// Parameters that are not yet used. An empty value is a missing one.
pub(super) struct Parameters {
    from_url: BTreeMap<String, String>,
    from_environment: BTreeMap<&'static str, Parameter>,
}

impl Parameters {
    /// Joins the parameters of a URL with those of the environment.
    pub(super) fn new(
        url: BTreeMap<String, String>,
        environment: &BTreeMap<String, String>,
    ) -> Result<Self, PostgresUrlError> {
        if let Some(refused) = REFUSED.into_iter().find(|name| environment.contains_key(*name)) {
            let hint = "unset it for this command";
            return Err(PostgresUrlError::Unsupported { setting: refused.to_owned(), hint });
        }
        let from_environment = VARIABLES.into_iter().filter_map(|(setting, name)| {
            let value = environment.get(setting).filter(|value| !value.is_empty())?;
            Some((name, Parameter { value: value.clone(), setting }))
        });
        Ok(Self { from_environment: from_environment.collect(), from_url: url })
    }

    /// Takes a parameter; the URL has priority.
    pub(super) fn take(&mut self, name: &'static str) -> Option<Parameter> {
        let from_environment = self.from_environment.remove(name);
        let from_url = self.from_url.remove(name).map(|value| Parameter { value, setting: name });
        from_url.or(from_environment)
    }

    /// Takes the text of a parameter.
    pub(super) fn take_text(&mut self, name: &'static str) -> Option<String> {
        self.take(name).map(|parameter| parameter.value)
    }

    /// Takes a parameter whose value is one of a few words.
    pub(super) fn take_word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, PostgresUrlError> {
        let Some(parameter) = self.take(name) else { return Ok(None) };
        let found = words.iter().find(|(word, _)| *word == parameter.value);
        found.map(|(_, value)| Some(*value)).ok_or_else(|| {
            let expected = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
            parameter.refuse(format!("one of {expected}"))
        })
    }

    /// Takes a bool in the words of the driver.
    pub(super) fn take_bool(&mut self, name: &'static str) -> Result<Option<bool>, PostgresUrlError> {
        const TRUE: [&str; 8] = ["1", "t", "T", "true", "TRUE", "True", "yes", "on"];
        const FALSE: [&str; 8] = ["0", "f", "F", "false", "FALSE", "False", "no", "off"];
        let Some(parameter) = self.take(name) else { return Ok(None) };
        match &*parameter.value {
            text if TRUE.contains(&text) => Ok(Some(true)),
            text if FALSE.contains(&text) => Ok(Some(false)),
            _ => Err(parameter.refuse("true or false".to_owned())),
        }
    }

    /// Returns the parameters that nothing has taken: settings of the session, such as `search_path`.
    pub(super) fn into_rest(self) -> BTreeMap<String, String> {
        self.from_url
    }
}

impl Parameter {
    /// Returns the error of an invalid value.
    pub(super) fn refuse(self, expected: String) -> PostgresUrlError {
        PostgresUrlError::Value { setting: self.setting, value: self.value, expected }
    }
}
