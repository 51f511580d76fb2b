//! Random seeds, from which providers derive random properties.

/// Returns 32 random bytes, the length of the seeds of Pulumi's engine.
pub(crate) fn random_seed() -> [u8; 32] {
    let mut seed = [0; 32];
    seed[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    seed[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    seed
}
