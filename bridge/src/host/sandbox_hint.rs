//! Advice for errors whose reason may be the sandbox of a plugin.

use crate::plugin::Sandbox;

/// Words of errors about a refused access: those of the C library, of gRPC and of Node.
const REFUSALS: [&str; 3] = ["permission denied", "permission_denied", "eacces"];

/// Words of errors about a refused call.
const REFUSED_CALLS: [&str; 2] = ["operation not permitted", "eperm"];

/// Returns advice for a plugin whose sandbox may be the reason of an error with this text; `None` if it seems not to be.
pub(super) fn sandbox_hint(sandbox: &Sandbox, text: &str) -> Option<&'static str> {
    if *sandbox == Sandbox::None {
        return None;
    }
    let text = text.to_lowercase();
    // The words of sudo, in the kernel's spelling.
    if text.contains("no new privileges") {
        return Some("the sandbox forbids new privileges; `sandbox: none` below the name of the plugin allows them");
    }
    if !matches!(sandbox, Sandbox::Strict(_)) {
        return None;
    }
    if REFUSALS.iter().any(|word| text.contains(word)) {
        return Some(
            "if the sandbox is the reason, declare in `readable`, `writable` and `ports` what the plugin needs",
        );
    }
    REFUSED_CALLS.iter().any(|word| text.contains(word)).then_some(
        "if the sandbox is the reason, `strict` refuses the call to each plugin; `sandbox: basic` below the name of the \
         plugin allows it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::StrictSandbox;

    /// Shows: hosting.md#sandbox "`sc` names the key that allows it; for calls once, as a warning"
    #[test]
    fn advice_depends_on_the_sandbox_and_the_words_of_the_error() {
        let strict = Sandbox::Strict(StrictSandbox::default());
        let sudo = r#"sudo: The "no new privileges" flag is set, which prevents sudo from running as root."#;
        for (text, none, basic, strict_hint) in [
            (sudo, None, Some("sandbox: none"), Some("sandbox: none")),
            ("cat: x: Permission denied", None, None, Some("`readable`")),
            ("Error: EACCES: permission denied, open 'x'", None, None, Some("`readable`")),
            ("socket: Operation not permitted", None, None, Some("`sandbox: basic`")),
            ("Error: spawn EPERM", None, None, Some("`sandbox: basic`")),
            ("quota exceeded", None, None, None),
        ] {
            for (sandbox, expected) in [(&Sandbox::None, none), (&Sandbox::Basic, basic), (&strict, strict_hint)] {
                let hint = sandbox_hint(sandbox, text);
                let is_expected = match expected {
                    Some(part) => hint.is_some_and(|hint| hint.contains(part)),
                    None => hint.is_none(),
                };
                assert!(is_expected, "{sandbox}, {text}: {hint:?}");
            }
        }
    }
}
