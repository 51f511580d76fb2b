//! What to register, in which order, with which references.
