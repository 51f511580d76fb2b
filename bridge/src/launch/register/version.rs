//! Versions of the protocol between a plugin that registers itself and the host.

/// Supported version: plain-text gRPC, `pulumirpc.ResourceProvider`.
pub(super) const SUPPORTED_VERSION: &str = "1.0";
