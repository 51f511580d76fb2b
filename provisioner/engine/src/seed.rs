//! Random bytes of the operating system.

/// Returns 32 random bytes, the length of the seeds of Pulumi's engine, from which providers derive random properties.
pub(crate) fn random_seed() -> [u8; 32] {
    random_bytes()
}

/// Returns random bytes.
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes for each process");
    bytes
}
