//! Results of the functions of a stack.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::Urn;
use tokio::sync::OnceCell;

use super::types::ResolvedType;

/// Result of a function of the stack.
#[derive(Clone, Debug)]
pub(super) struct FunctionResult {
    /// A map, which is secret if an argument is; unknown if the function was not called.
    pub(super) value: PropertyValue,
    /// URNs of the resources that the arguments contain outputs of, and of those that the function waits for.
    pub(super) dependencies: Vec<Urn>,
    /// The function, with what the schema has of it.
    pub(super) resolved: Arc<ResolvedType>,
}

/// Reply of a plugin, which the first call with its arguments waits for.
pub(super) type Reply = OnceCell<PropertyMap>;

/// Arguments of a call, with the reply to it.
type AnsweredCall = (PropertyMap, Arc<Reply>);

/// Replies of plugins to calls of functions, by token, index of the plugin, and arguments: the calls of a stack with equal arguments are one,
/// and an update uses the replies that its preview got.
#[derive(Default)]
pub(super) struct FunctionReplies(Mutex<BTreeMap<(String, usize), Vec<AnsweredCall>>>);

impl FunctionReplies {
    /// Returns the reply to a call, which may have been made. A failed call leaves it empty.
    pub(super) fn reply(&self, token: &str, plugin: usize, arguments: &PropertyMap) -> Arc<Reply> {
        let mut replies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let replies = replies.entry((token.to_owned(), plugin)).or_default();
        if let Some((_, reply)) = replies.iter().find(|(other, _)| other == arguments) {
            return Arc::clone(reply);
        }
        let reply = Arc::default();
        replies.push((arguments.clone(), Arc::clone(&reply)));
        reply
    }
}

/// Hides the arguments and the replies, which may be secret.
impl fmt::Debug for FunctionReplies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FunctionReplies")
    }
}
