//! Tests of the stores in buckets and databases against servers from public registries.
