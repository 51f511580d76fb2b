//! Recipients and files of the store that the user has confirmed, and those that an edit takes from the store.
//!
//! Whoever writes the repository can add a recipient, or register a file. A confirmation of the user stands between that
//! and the encryption of the file for the recipient.

use std::collections::BTreeSet;

use crate::keys::PublicKey;
use crate::store::Store;

const RECIPIENT: &str = "recipient ";
const FILE: &str = "file ";

/// Recipients that files may be encrypted for, and files that may be encrypted, without a question.
///
/// The record of a clone has one of them in each line:
///
/// ```text
/// recipient SHA256:…
/// file .sc/stacks/common/secrets.yaml
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confirmed {
    recipients: BTreeSet<String>,
    files: BTreeSet<String>,
}

/// Recipients and files that an edit takes from the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Recipients.
    pub recipients: Vec<PublicKey>,
    /// Paths of files. A registered path that is a link to another one counts under both.
    pub files: Vec<String>,
}

impl Confirmed {
    /// Takes the recipients and the files of a store, such as that of the default branch.
    pub fn of_store(store: &Store) -> Self {
        let recipients = store.recipients().iter().map(|recipient| recipient.key.fingerprint());
        Self { recipients: recipients.collect(), files: store.files.iter().cloned().collect() }
    }

    /// Reads a record. Lines of another form are ignored.
    pub fn parse(text: &str) -> Self {
        let rest = |prefix| text.lines().filter_map(move |line| line.strip_prefix(prefix)).map(str::to_owned);
        Self { recipients: rest(RECIPIENT).collect(), files: rest(FILE).collect() }
    }

    /// Returns the text of a record.
    pub fn to_text(&self) -> String {
        let recipients = self.recipients.iter().map(|fingerprint| format!("{RECIPIENT}{fingerprint}\n"));
        recipients.chain(self.files.iter().map(|path| format!("{FILE}{path}\n"))).collect()
    }

    /// Adds a recipient by its fingerprint.
    pub fn add_recipient(&mut self, fingerprint: &str) {
        self.recipients.insert(fingerprint.to_owned());
    }

    /// Adds a file by its path from the root of the repository.
    pub fn add_file(&mut self, path: &str) {
        self.files.insert(path.to_owned());
    }

    /// Adds what another value has.
    pub fn extend(&mut self, other: Self) {
        self.recipients.extend(other.recipients);
        self.files.extend(other.files);
    }

    /// Returns what of an edit is not confirmed.
    pub fn without_confirmation(&self, listed: &Listed) -> Listed {
        let recipients = listed.recipients.iter().filter(|key| !self.recipients.contains(&key.fingerprint()));
        let files = listed.files.iter().filter(|path| !self.files.contains(*path));
        Listed { recipients: recipients.cloned().collect(), files: files.cloned().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_read_as_it_was_written() {
        let mut confirmed = Confirmed::default();
        confirmed.add_recipient("SHA256:abc");
        confirmed.add_file("a b.txt");
        let text = confirmed.to_text();
        assert_eq!(text, "recipient SHA256:abc\nfile a b.txt\n");
        assert_eq!(Confirmed::parse(&format!("{text}other x\n")), confirmed);
    }
}
