//! What each core type registers.
