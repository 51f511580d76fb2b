//! Restrictions that the system can enforce.

use super::error::SandboxError;

/// Restrictions that a system can enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxSupport {
    new_privileges: bool,
    files_and_tcp: bool,
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
            devices: has(Part::Devices),
            scopes: has(Part::Scopes),
        }
    }

    /// Returns the restrictions that this system can enforce.
    #[cfg(not(target_os = "linux"))]
    pub fn current() -> Self {
        Self { new_privileges: false, files_and_tcp: false, devices: false, scopes: false }
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

    /// Checks that this system can enforce the restrictions without which there is no sandbox `strict`.
    ///
    /// # Errors
    /// [`SandboxError`].
    pub fn check_strict(self) -> Result<(), SandboxError> {
        if self.new_privileges && self.files_and_tcp {
            return Ok(());
        }
        Err(SandboxError("it needs Landlock with rules for TCP (Linux 6.7 or later, enabled at boot)".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_restrictions_are_named_and_only_some_are_required() {
        let all = SandboxSupport { new_privileges: true, files_and_tcp: true, devices: true, scopes: true };
        let without_scopes = SandboxSupport { scopes: false, ..all };
        let linux_6_8 = SandboxSupport { devices: false, ..without_scopes };
        let linux_6_1 = SandboxSupport { files_and_tcp: false, ..linux_6_8 };
        let macos = SandboxSupport { new_privileges: false, ..linux_6_1 };
        for (support, in_basic, in_strict, has_strict) in [
            (all, 0, 0, true),
            (without_scopes, 0, 1, true),
            (linux_6_8, 0, 2, true),
            (linux_6_1, 0, 2, false),
            (macos, 1, 2, false),
        ] {
            let found = (support.missing_in_basic().len(), support.missing_in_strict().len());
            assert_eq!((found, support.check_strict().is_ok()), ((in_basic, in_strict), has_strict), "{support:?}");
        }
    }
}
