//! Where a package comes from.
