//! Connection strings of storage accounts
//! (<https://learn.microsoft.com/en-us/azure/storage/common/storage-configure-connection-string>).

use std::collections::BTreeMap;

/// Parts of a connection string.
pub(super) struct ConnectionString<'s>(BTreeMap<&'s str, &'s str>);

/// Signing of the requests that a connection string allows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StringKey<'s> {
    /// Key of the account.
    Account(&'s str),
    /// Shared access signature.
    Signature(&'s str),
}

impl<'s> ConnectionString<'s> {
    /// Parses a connection string: names and values with `=` between them, separated by semicolons.
    ///
    /// # Errors
    /// The reason why it is none. It contains no part of it.
    pub(super) fn parse(text: &'s str) -> Result<Self, &'static str> {
        let parts = text.trim_end_matches(';').split(';').map(|part| part.split_once('='));
        let parts: Option<BTreeMap<_, _>> = parts.collect();
        parts.map(Self).ok_or("expected parts `NAME=VALUE` with semicolons between them")
    }

    fn part(&self, name: &str) -> Option<&'s str> {
        self.0.get(name).copied()
    }

    /// Returns the name of the account, if it is given.
    pub(super) fn account(&self) -> Option<&'s str> {
        self.part("AccountName").filter(|name| !name.is_empty())
    }

    /// Returns the scheme of the URLs of requests, if it is given.
    pub(super) fn protocol(&self) -> Option<&'s str> {
        self.part("DefaultEndpointsProtocol").filter(|protocol| !protocol.is_empty())
    }

    /// Returns the URL of the service, without a slash at its end.
    ///
    /// # Errors
    /// The part that is missing.
    pub(super) fn service(&self) -> Result<String, &'static str> {
        let service = match (self.part("BlobEndpoint"), self.part("AccountName")) {
            (Some(endpoint), _) => endpoint.to_owned(),
            (None, Some(account)) => {
                let protocol = self.part("DefaultEndpointsProtocol").unwrap_or("https");
                let suffix = self.part("EndpointSuffix").unwrap_or("core.windows.net");
                format!("{protocol}://{account}.blob.{suffix}")
            }
            (None, None) => return Err("it has neither AccountName nor BlobEndpoint"),
        };
        Ok(service.trim_end_matches('/').to_owned())
    }

    /// Returns what signs the requests: the key of the account, else the signature.
    ///
    /// # Errors
    /// The parts that are missing.
    pub(super) fn key(&self) -> Result<StringKey<'s>, &'static str> {
        match (self.part("AccountName"), self.part("AccountKey"), self.part("SharedAccessSignature")) {
            (Some(_), Some(key), _) => Ok(StringKey::Account(key)),
            (_, _, Some(signature)) => Ok(StringKey::Signature(signature)),
            _ => Err("it has neither AccountName with AccountKey nor SharedAccessSignature"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_name_the_service_and_what_signs() {
        let key = StringKey::Account("a2V5Cg==");
        let signature = StringKey::Signature("sv=2023-11-03&sig=s%3D");
        let cases = [
            ("AccountName=reef;AccountKey=a2V5Cg==", "https://reef.blob.core.windows.net", &key),
            (
                "DefaultEndpointsProtocol=http;AccountName=reef;AccountKey=a2V5Cg==;EndpointSuffix=core.chinacloudapi.cn;",
                "http://reef.blob.core.chinacloudapi.cn",
                &key,
            ),
            (
                "AccountName=reef;AccountKey=a2V5Cg==;BlobEndpoint=http://127.0.0.1:10000/reef;",
                "http://127.0.0.1:10000/reef",
                &key,
            ),
            (
                "BlobEndpoint=https://reef.blob.core.windows.net/;SharedAccessSignature=sv=2023-11-03&sig=s%3D",
                "https://reef.blob.core.windows.net",
                &signature,
            ),
            // Without the name of its account, a key is not used.
            (
                "BlobEndpoint=https://h;AccountKey=a2V5Cg==;SharedAccessSignature=sv=2023-11-03&sig=s%3D",
                "https://h",
                &signature,
            ),
        ];
        for (text, service, signs) in cases {
            let parsed = ConnectionString::parse(text).unwrap();
            assert_eq!((parsed.service().unwrap(), &parsed.key().unwrap()), (service.to_owned(), signs), "{text}");
        }
    }

    #[test]
    fn incomplete_strings_are_refused() {
        let refused = |text: &str| {
            let parsed = ConnectionString::parse(text)?;
            parsed.service()?;
            parsed.key().map(|_| ())
        };
        let malformed = Err("expected parts `NAME=VALUE` with semicolons between them");
        assert_eq!(refused(""), malformed);
        assert_eq!(refused("AccountName=reef;;AccountKey=k"), malformed);
        assert_eq!(refused("UseDevelopmentStorage=true"), Err("it has neither AccountName nor BlobEndpoint"));
        let key = Err("it has neither AccountName with AccountKey nor SharedAccessSignature");
        assert_eq!(refused("AccountName=reef"), key);
        assert_eq!(refused("BlobEndpoint=https://h;AccountKey=k"), key);
    }
}
