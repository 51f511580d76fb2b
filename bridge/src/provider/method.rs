//! The remote procedures of a plugin by name, for errors that say which one failed.

use std::fmt;

/// A remote procedure: those of `pulumirpc.ResourceProvider` and of `simplecontainer.plugin.v1`, and `PublishViewSteps`,
/// which a plugin calls during one of them. Displays as the name that the interface definition gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the name of a procedure, documented by the protocol")]
pub enum Method {
    Handshake,
    GetPluginInfo,
    Parameterize,
    GetSchema,
    GetMapping,
    GetMappings,
    CheckConfig,
    DiffConfig,
    Configure,
    Check,
    Diff,
    Create,
    Read,
    Update,
    Delete,
    List,
    Invoke,
    Call,
    Construct,
    Cancel,
    Initialize,
    HealthCheck,
    Cleanup,
    PublishViewSteps,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The variants are named as the procedures are; a test holds them to the interface definitions.
        fmt::Debug::fmt(self, f)
    }
}
