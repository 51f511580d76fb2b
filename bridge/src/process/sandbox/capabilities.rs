//! The capabilities of a program that runs as root.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

/// Number of capabilities that a set can hold.
const NUMBERS: u32 = u64::BITS;

/// Gives up all capabilities of this process, and of all programs that it executes. A capability such as CAP_PERFMON would
/// let a program read the memory of `sc`, and one such as CAP_SYS_ADMIN leave its sandbox.
pub(super) fn drop_all() -> rustix::io::Result<()> {
    for capability in (0..NUMBERS).map(|number| CapabilitySet::from_bits_retain(1 << number)) {
        match capability_is_in_bounding_set(capability) {
            Ok(true) => match remove_capability_from_bounding_set(capability) {
                // A process without CAP_SETPCAP has few capabilities, and the set has no effect without new privileges.
                Ok(()) | Err(Errno::PERM) => {}
                Err(error) => return Err(error),
            },
            Ok(false) => {}
            // The kernel knows no capability with this number or a higher one.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    match clear_ambient_capability_set() {
        // Linux before 4.3 has no such set.
        Ok(()) | Err(Errno::INVAL) => {}
        Err(error) => return Err(error),
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}
