//! Health check of the cache of packages: whether it can be written, and whether its file system permits programs.

use std::path::Path;

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};

use crate::health::HealthCheck;

const NAME: &str = "cache";

/// Checks the folder of the cache, or the one that it will be created in. Creates nothing.
pub fn check_cache(folder: &Path) -> HealthCheck {
    let shown = folder.display();
    // The folder may be created by the first download.
    let Some(existing) = folder.ancestors().find(|path| path.exists()) else {
        return HealthCheck::bad(NAME, format_args!("{shown} has no folder that exists above it"), "");
    };
    if !existing.is_dir() {
        let text = format_args!("{} is not a folder, so that {shown} cannot be used", existing.display());
        return HealthCheck::bad(NAME, text, "remove it, or set XDG_CACHE_HOME to another folder");
    }
    let elsewhere = "set XDG_CACHE_HOME to a folder of another file system";
    let flags = statvfs(existing).map(|found| found.f_flag).unwrap_or(StatVfsMountFlags::empty());
    if flags.contains(StatVfsMountFlags::NOEXEC) {
        let text =
            format_args!("the file system of {shown} does not permit programs (noexec), so that no plugin starts");
        return HealthCheck::bad(NAME, text, elsewhere);
    }
    if flags.contains(StatVfsMountFlags::RDONLY) {
        let text = format_args!("the file system of {shown} is read-only: what is not in the cache cannot be fetched");
        return HealthCheck::notable(NAME, text, elsewhere);
    }
    if access(existing, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let text = format_args!("{} cannot be written by this account", existing.display());
        return HealthCheck::bad(NAME, text, "change its owner with `chown`, or set XDG_CACHE_HOME to another folder");
    }
    HealthCheck::good(NAME, format_args!("{shown} can be written, and permits programs"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::health::HealthState;

    #[test]
    fn cache_below_a_folder_that_can_be_written_is_good_and_is_not_created() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b/sc");
        let found = check_cache(&folder);
        assert_eq!(found.state, HealthState::Good, "{found:?}");
        assert!(!root.path().join("a").exists());
    }

    #[test]
    fn cache_below_a_file_is_bad() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "").unwrap();
        let found = check_cache(&root.path().join("a/sc"));
        assert_eq!(found.state, HealthState::Bad);
        assert!(found.text.contains("is not a folder"), "{found:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn file_system_without_programs_is_bad() {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let noexec = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let is_noexec = words.get(3).is_some_and(|options| options.split(',').any(|option| option == "noexec"));
            words.get(1).filter(|place| is_noexec && Path::new(place).is_dir()).map(|place| (*place).to_owned())
        };
        let Some(place) = mounts.lines().find_map(noexec) else {
            println!("no file system of this machine forbids programs: skipped");
            return;
        };
        let found = check_cache(&Path::new(&place).join("sc-cache"));
        assert_eq!(found.state, HealthState::Bad, "{found:?}");
        assert!(found.text.contains("noexec"), "{found:?}");
    }
}
