//! Words of commands that messages print, as a POSIX shell reads them.
//!
//! A user may paste the command of a hint. A name from a file, or of another program, must stay one word there: `a$(id)`
//! would run a program, `a b` would be two words, and `-x` an option.

use std::fmt::{self, Write as _};

/// Text of a command, as it is printed.
#[derive(Clone, Copy, Debug)]
pub struct Word<'t> {
    /// Text before the word.
    prefix: &'t str,
    /// Text between the prefix and the word.
    separator: &'static str,
    text: &'t str,
}

/// Returns a word: as it is if all of its characters are safe, otherwise in quotes.
pub fn quoted(text: &str) -> Word<'_> {
    Word { prefix: "", separator: "", text }
}

/// Returns the last arguments of a command: a word that is no option, also if it begins with `-`. Options come before it.
pub fn operand(text: &str) -> Word<'_> {
    let (prefix, separator) = if text.starts_with('-') { ("--", " ") } else { ("", "") };
    Word { prefix, separator, text }
}

/// Returns an option with its value, such as `--target web--prod`. A value that begins with `-` follows a `=`.
pub fn option<'t>(name: &'t str, value: &'t str) -> Word<'t> {
    let separator = if value.starts_with('-') { "=" } else { " " };
    Word { prefix: name, separator, text: value }
}

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.prefix)?;
        f.write_str(self.separator)?;
        if !self.text.is_empty() && self.text.bytes().all(is_safe) {
            return f.write_str(self.text);
        }
        f.write_char('\'')?;
        for (index, part) in self.text.split('\'').enumerate() {
            if index > 0 {
                f.write_str(r"'\''")?;
            }
            f.write_str(part)?;
        }
        f.write_char('\'')
    }
}

/// Returns whether no shell gives a character a meaning. Those of an address, a path and most names are safe.
fn is_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const TABLE: [(&str, &str); 16] = [
        ("web--prod", "web--prod"),
        ("/run/user/0/a_b+c,d@e%f=g:1", "/run/user/0/a_b+c,d@e%f=g:1"),
        ("urn:pulumi:dev::reef::t:m:T::web", "urn:pulumi:dev::reef::t:m:T::web"),
        ("urn:pulumi:dev::reef::a:b:C$t:m:T::web", "'urn:pulumi:dev::reef::a:b:C$t:m:T::web'"),
        ("-x", "-x"),
        ("", "''"),
        ("a b", "'a b'"),
        ("a$(id)", "'a$(id)'"),
        ("a`id`", "'a`id`'"),
        ("it's", r"'it'\''s'"),
        ("'", r"''\'''"),
        ("~", "'~'"),
        ("*", "'*'"),
        ("a;b|c&d>e<f#g!h\"i\\j{k,l}", "'a;b|c&d>e<f#g!h\"i\\j{k,l}'"),
        ("a\nb", "'a\nb'"),
        ("größe", "'größe'"),
    ];

    /// Returns the arguments that a shell passes to a command.
    fn arguments(words: &str) -> Vec<String> {
        let shell = Command::new("sh").args(["-c", &format!("printf '%s\\0' {words}")]).output().unwrap();
        assert!(shell.status.success(), "{words}");
        let arguments = String::from_utf8(shell.stdout).unwrap();
        arguments.strip_suffix('\0').unwrap().split('\0').map(str::to_owned).collect()
    }

    #[test]
    fn words_are_quoted_unless_all_characters_are_safe() {
        for (text, expected) in TABLE {
            assert_eq!(quoted(text).to_string(), expected);
        }
    }

    #[test]
    fn shell_reads_each_word_as_the_text() {
        for (text, _) in TABLE {
            assert_eq!(arguments(&format!("- {} x", quoted(text))), ["-", text, "x"]);
        }
    }

    #[test]
    fn text_that_begins_with_a_dash_is_no_option() {
        for (text, as_operand, as_option) in [
            ("web", "web", "--target web"),
            ("-x", "-- -x", "--target=-x"),
            ("-$x", "-- '-$x'", "--target='-$x'"),
            ("", "''", "--target ''"),
        ] {
            assert_eq!(operand(text).to_string(), as_operand);
            assert_eq!(option("--target", text).to_string(), as_option);
        }
        assert_eq!(arguments(&format!("a {}", operand("-a b"))), ["a", "--", "-a b"]);
        assert_eq!(arguments(&format!("a {}", option("--target", "-a b"))), ["a", "--target=-a b"]);
    }
}
