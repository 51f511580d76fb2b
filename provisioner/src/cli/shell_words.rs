//! Words that a shell inserts into its command line as they are printed. A name in the files of a repository must not
//! become a command there.

use config::diagnostics::escape_controls;

/// Returns a name as the shell must insert it. `None` for a name that would be an option, or whose characters a line of
/// the reply cannot have.
///
/// zsh, fish and elvish quote what they insert; bash and PowerShell do not.
pub(crate) fn word(name: &str, shell: &str) -> Option<String> {
    if name.is_empty() || name.starts_with('-') || escape_controls(name) != name || name.contains(['\n', '\t', '\u{b}'])
    {
        return None;
    }
    Some(match shell {
        "zsh" | "fish" | "elvish" => name.to_owned(),
        "powershell" | "pwsh" | "powershell_ise" => quoted_for_powershell(name),
        // An unknown shell is taken for a relative of sh.
        _ => quoted_for_bash(name),
    })
}

fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || "_-./:@%+=".contains(character)
}

fn quoted_for_bash(name: &str) -> String {
    let quoted = name.chars().flat_map(|c| (!is_plain(c)).then_some('\\').into_iter().chain([c]));
    quoted.collect()
}

/// PowerShell takes typographic quotes for the plain one.
fn quoted_for_powershell(name: &str) -> String {
    let is_quote = |c: char| matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}');
    if name.chars().all(is_plain) && !name.starts_with('@') {
        return name.to_owned();
    }
    let doubled: String = name.chars().flat_map(|c| [c].into_iter().chain(is_quote(c).then_some(c))).collect();
    format!("'{doubled}'")
}

/// Returns the script of bash without the expansion of patterns in the words that it receives: a file of that name would
/// take the place of a quoted word.
pub(crate) fn without_patterns(script: &str) -> String {
    let begin = "    local IFS=$'\\013'\n";
    let end = "    if [[ $? != 0 ]]; then\n        unset COMPREPLY\n";
    let guarded = script.replacen(begin, &format!("{begin}    local _SC_OPTIONS=$-\n    set -f\n"), 1);
    let status = "    local _SC_STATUS=$?\n    [[ $_SC_OPTIONS == *f* ]] || set +f\n";
    guarded.replacen(end, &format!("{status}    if [[ $_SC_STATUS != 0 ]]; then\n        unset COMPREPLY\n"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: security.md#the-repository "quotes them for the shell: a name is never a command"
    #[test]
    fn name_is_quoted_for_the_shell_that_inserts_it() {
        for (name, bash, powershell) in [
            ("web--prod", "web--prod", "web--prod"),
            ("web$(touch${IFS}PWNED)", r"web\$\(touch\$\{IFS\}PWNED\)", "'web$(touch${IFS}PWNED)'"),
            ("*--prod", r"\*--prod", "'*--prod'"),
            ("a b;c|d&e", r"a\ b\;c\|d\&e", "'a b;c|d&e'"),
            ("it's `x`", r"it\'s\ \`x\`", "'it''s `x`'"),
            ("a’;calc", r"a\’\;calc", "'a’’;calc'"),
            ("~root!1#", r"\~root\!1\#", "'~root!1#'"),
            ("café", "café", "café"),
            ("@args", "@args", "'@args'"),
        ] {
            assert_eq!(word(name, "bash").unwrap(), bash);
            assert_eq!(word(name, "powershell").unwrap(), powershell);
            for shell in ["zsh", "fish", "elvish"] {
                assert_eq!(word(name, shell).unwrap(), name);
            }
        }
        for name in ["", "--yes", "-y", "a\nb", "a\tb", "a\u{b}b", "a\u{1b}[2J", "a\u{202e}b", "a\rb"] {
            for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
                assert_eq!(word(name, shell), None, "{name:?}");
            }
        }
    }
}
