//! The provider over gRPC: own types in, generated types out, and back.
