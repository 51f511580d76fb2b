//! Platforms for which plugins are published.

use std::fmt;
use std::str::FromStr;

use super::PluginValueError;

/// Operating system, with Go's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Os {
    /// Linux.
    Linux,
    /// macOS.
    Darwin,
    /// Windows.
    Windows,
}

/// Processor architecture, with Go's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arch {
    /// x86-64.
    Amd64,
    /// AArch64.
    Arm64,
}

/// Operating system and architecture. Parses `linux-amd64` and `linux/amd64`; displays `linux-amd64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Platform {
    /// Operating system.
    pub os: Os,
    /// Processor architecture.
    pub arch: Arch,
}

impl Platform {
    /// Returns all platforms.
    pub fn all() -> impl Iterator<Item = Self> {
        let of_os = |os| [Arch::Amd64, Arch::Arm64].map(|arch| Self { os, arch });
        [Os::Darwin, Os::Linux, Os::Windows].into_iter().flat_map(of_os)
    }

    /// Returns the platform of this program, which `platform: auto` selects. Returns `None` if plugins are not
    /// published for it.
    pub fn current() -> Option<Self> {
        let os = match std::env::consts::OS {
            "linux" => Os::Linux,
            "macos" => Os::Darwin,
            "windows" => Os::Windows,
            _ => return None,
        };
        let arch = match std::env::consts::ARCH {
            "x86_64" => Arch::Amd64,
            "aarch64" => Arch::Arm64,
            _ => return None,
        };
        Some(Self { os, arch })
    }
}

impl Os {
    /// Returns Go's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Darwin => "darwin",
            Self::Windows => "windows",
        }
    }
}

impl Arch {
    /// Returns Go's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }
}

impl FromStr for Platform {
    type Err = PluginValueError;

    fn from_str(text: &str) -> Result<Self, PluginValueError> {
        let error = || PluginValueError::Platform(text.to_owned());
        let (os, arch) = text.split_once(['-', '/']).ok_or_else(error)?;
        let os = [Os::Linux, Os::Darwin, Os::Windows].into_iter().find(|known| known.as_str() == os);
        let arch = [Arch::Amd64, Arch::Arm64].into_iter().find(|known| known.as_str() == arch);
        os.zip(arch).map(|(os, arch)| Self { os, arch }).ok_or_else(error)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.os.as_str(), self.arch.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displayed_platform_is_parsed_again() {
        for os in [Os::Linux, Os::Darwin, Os::Windows] {
            for arch in [Arch::Amd64, Arch::Arm64] {
                let platform = Platform { os, arch };
                assert_eq!(platform.to_string().parse(), Ok(platform));
                assert_eq!(platform.to_string().replace('-', "/").parse(), Ok(platform));
            }
        }
    }

    #[test]
    fn unknown_platform_is_refused() {
        for bad in ["", "auto", "linux", "linux-386", "macos-arm64", "linux-x86_64", "Linux-amd64", "linux-amd64-musl"]
        {
            assert_eq!(bad.parse::<Platform>(), Err(PluginValueError::Platform(bad.into())));
        }
    }
}
