//! The file system of processes.

/// Returns whether `/proc` shows processes by the numbers that they have for this process. In a PID namespace, it may be that of
/// another namespace, in which the same numbers belong to other processes. False on systems without `/proc`.
pub fn has_own_proc() -> bool {
    let own = std::fs::read_link("/proc/self");
    own.is_ok_and(|own| own.to_str() == Some(&std::process::id().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_shows_this_process_on_linux() {
        assert_eq!(has_own_proc(), cfg!(target_os = "linux"));
    }
}
