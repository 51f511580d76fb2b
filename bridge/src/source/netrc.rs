//! Passwords of machines in a netrc file, as curl and git read it.
//!
//! Input: the text of the file, and the name of a machine. Excluded: the file, logins, and macros.

/// Returns the password of a machine: of the first entry with its name that has one.
///
/// An entry for all machines (`default`) is not used: it would go to any host.
pub(super) fn password(text: &str, machine: &str) -> Option<String> {
    let mut is_of_machine = false;
    let mut in_macro = false;
    for line in text.lines() {
        // A macro ends with an empty line.
        in_macro &= !line.trim().is_empty();
        let mut words = line.split_whitespace();
        while let Some(word) = words.next().filter(|word| !in_macro && !word.starts_with('#')) {
            match word {
                "machine" => is_of_machine = words.next() == Some(machine),
                "default" => is_of_machine = false,
                "login" | "account" => drop(words.next()),
                "password" => {
                    let password = words.next();
                    if is_of_machine {
                        return password.map(|password| password.trim_matches('"').to_owned());
                    }
                }
                "macdef" => in_macro = true,
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_that_of_the_machine() {
        let text = "\
# comment machine a password x
machine b.example
  login me
  password two
machine a.example login machine password one
macdef init
machine c.example password no

machine d.example password \"three\"
default login me password any
";
        for (machine, expected) in [
            ("a.example", Some("one")),
            ("b.example", Some("two")),
            ("c.example", None),
            ("d.example", Some("three")),
            ("e.example", None),
            ("a", None),
            ("", None),
        ] {
            assert_eq!(password(text, machine).as_deref(), expected, "{machine}");
        }
    }
}
