//! Names of the remote procedures of a plugin, for errors that name the failed call.

use std::fmt;

/// Remote procedure of `pulumirpc.ResourceProvider` or `simplecontainer.plugin.v1`, or `PublishViewSteps`, which a
/// plugin calls during one of them. Displays as its name in the interface definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the name of a procedure, documented by the protocol")]
pub enum Method {
    Handshake,
    Attach,
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
        // Each variant has the name of its procedure. A test compares them with the interface definitions.
        fmt::Debug::fmt(self, f)
    }
}
