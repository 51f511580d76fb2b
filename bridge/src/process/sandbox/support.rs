//! Restrictions that the system can enforce.

use super::error::SandboxError;
use crate::health::HealthCheck;

/// Restrictions that a system can enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxSupport {
    new_privileges: bool,
    files_and_tcp: bool,
    calls: bool,
    devices: bool,
    scopes: bool,
}

impl SandboxSupport {
    /// Returns the restrictions that this system can enforce.
    #[cfg(target_os = "linux")]
    pub fn current() -> Self {
        use super::landlock_rules::{Part, has};
        Self {
            new_privileges: rustix::thread::no_new_privs().is_ok(),
            files_and_tcp: has(Part::FilesAndTcp),
            calls: super::seccomp_rules::are_supported(),
            devices: has(Part::Devices),
            scopes: has(Part::Scopes),
        }
    }

    /// Returns the restrictions that this system can enforce.
    #[cfg(not(target_os = "linux"))]
    pub fn current() -> Self {
        Self { new_privileges: false, files_and_tcp: false, calls: false, devices: false, scopes: false }
    }

    /// Returns what the sandbox `basic` does not prevent on this system, although it should, in words.
    pub fn missing_in_basic(self) -> Vec<&'static str> {
        let missing = (!self.new_privileges).then_some("programs with the set-user-ID bit gain privileges");
        missing.into_iter().collect()
    }

    /// Returns what the sandbox `strict` does not prevent on this system, although it should, in words.
    pub fn missing_in_strict(self) -> Vec<&'static str> {
        let devices = (!self.devices).then_some("control requests to devices (Linux 6.10)");
        let scopes = (!self.scopes).then_some("signals and abstract Unix sockets (Linux 6.12)");
        devices.into_iter().chain(scopes).collect()
    }

    /// Checks the sandboxes of this system. If no plugin needs `strict`, its lack is only worth to know.
    pub fn check(self, needs_strict: bool) -> HealthCheck {
        const NAME: &str = "sandbox";
        let basic = self.missing_in_basic();
        if !basic.is_empty() {
            let text = format!("`basic` does not prevent on this system: {}", basic.join(", "));
            return HealthCheck::notable(NAME, text, "only Linux has the restrictions");
        }
        match (self.check_strict(), self.missing_in_strict()) {
            (Ok(()), missing) if missing.is_empty() => HealthCheck::good(NAME, "`basic` and `strict` are enforced"),
            (Ok(()), missing) => {
                let text =
                    format!("`basic` and `strict` are enforced; `strict` does not prevent: {}", missing.join(", "));
                HealthCheck::good(NAME, text)
            }
            (Err(error), _) => {
                let text = format!("`basic` is enforced; `strict` is refused: {error}");
                let advice = "run plugins with `sandbox: strict` on a later kernel";
                match needs_strict {
                    true => HealthCheck::bad(NAME, text, advice),
                    false => HealthCheck::notable(NAME, text, advice),
                }
            }
        }
    }

    /// Checks that this system can enforce the restrictions without which there is no sandbox `strict`.
    ///
    /// # Errors
    /// [`SandboxError`], which names all that this system lacks.
    pub fn check_strict(self) -> Result<(), SandboxError> {
        let required = [
            (self.new_privileges, "a process without new privileges (Linux)"),
            (self.files_and_tcp, "Landlock with rules for TCP (Linux 6.7 or later, enabled at boot)"),
            (self.calls, "filters of system calls (seccomp, CONFIG_SECCOMP_FILTER)"),
        ];
        let missing: Vec<&str> = required.into_iter().filter(|(has, _)| !has).map(|(_, part)| part).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let not_prevented = match self.missing_in_strict() {
            further if further.is_empty() => String::new(),
            further => format!("; it would not prevent: {}", further.join(", ")),
        };
        Err(SandboxError(format!("it needs what this system lacks: {}{not_prevented}", missing.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::HealthState;

    /// Shows: hosting.md#sandbox "elsewhere the plugin is refused, with all that is missing"
    /// Shows: hosting.md#sandbox "show the sandbox of each plugin, and what this system lacks"
    #[test]
    fn missing_restrictions_are_named_and_only_some_are_required() {
        let all =
            SandboxSupport { new_privileges: true, files_and_tcp: true, calls: true, devices: true, scopes: true };
        let without_scopes = SandboxSupport { scopes: false, ..all };
        let linux_6_8 = SandboxSupport { devices: false, ..without_scopes };
        let without_seccomp = SandboxSupport { calls: false, ..all };
        let linux_6_1 = SandboxSupport { files_and_tcp: false, ..linux_6_8 };
        let macos = SandboxSupport { new_privileges: false, calls: false, ..linux_6_1 };
        for (support, in_basic, in_strict, missing) in [
            (all, 0, 0, &[][..]),
            (without_scopes, 0, 1, &[]),
            (linux_6_8, 0, 2, &[]),
            (without_seccomp, 0, 0, &["seccomp"]),
            (linux_6_1, 0, 2, &["Landlock", "not prevent: control requests", "signals"]),
            (macos, 1, 2, &["new privileges", "Landlock", "seccomp", "signals"]),
        ] {
            let found = (support.missing_in_basic().len(), support.missing_in_strict().len());
            assert_eq!(found, (in_basic, in_strict), "{support:?}");
            let message = support.check_strict().map_or_else(|error| error.to_string(), |()| String::new());
            assert_eq!(message.is_empty(), missing.is_empty(), "{support:?}: {message}");
            let state = |needs_strict| support.check(needs_strict).state;
            let of_strict = if missing.is_empty() { HealthState::Good } else { HealthState::Bad };
            let expected = match (in_basic, missing.is_empty()) {
                (0, true) => [HealthState::Good; 2],
                (0, false) => [HealthState::Notable, of_strict],
                _ => [HealthState::Notable; 2],
            };
            assert_eq!([state(false), state(true)], expected, "{support:?}");
            for part in ["new privileges", "Landlock", "seccomp", "not prevent: control requests", "signals"] {
                let is_named = missing.contains(&part) || part == "not prevent: control requests" && found.1 == 2;
                assert_eq!(message.contains(part), is_named && !missing.is_empty(), "{part} in {message}");
            }
        }
    }
}
