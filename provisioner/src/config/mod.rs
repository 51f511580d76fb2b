//! Files to a typed, positioned, inherited and resolved stack, with every mistake collected.
