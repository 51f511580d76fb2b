//! Calls of functions: each as soon as what its arguments refer to is registered, after the provider of its plugin.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pulumi_proto::property::PropertyValue;
use pulumi_proto::urn::TypeToken;

use super::{RegistrationOutcome, Run};
use crate::program::functions::FunctionResult;
use crate::program::{goals, positions, written_texts};
use crate::registry::recipe::distinct;
use config::FunctionName;
use config::graph::dependencies_of_function;
use engine::{InvokeGoal, RegistrationResult};

impl<'r> Run<'r> {
    pub(super) fn name_of_function(&self, index: usize) -> FunctionName {
        let function = &self.stack.functions[index];
        (function.environment.clone(), function.name.clone())
    }

    /// Calls a function. Its result is unknown, without a call, if an argument is, if a resource that it waits for does not exist yet or
    /// would be changed, or if its provider is out of scope.
    pub(super) fn start_function(&self, index: usize) -> BoxFuture<'r, RegistrationOutcome> {
        let function = &self.stack.functions[index];
        let resolved = Arc::clone(&self.functions[&index]);
        let referenced = self.referenced(dependencies_of_function(function).map(|(name, _)| name));
        let environment = function.environment.as_deref();
        let arguments = written_texts::keep(&function.arguments, &resolved);
        let arguments = match referenced.evaluate_as_is(&arguments, environment) {
            Ok(arguments) => arguments,
            Err(diagnostic) => return Box::pin(async move { RegistrationOutcome::Diagnostic(diagnostic) }),
        };
        let named = goals::named(&function.depends_on, environment.unwrap_or_default(), &referenced);
        let dependencies = distinct(arguments.dependencies.into_iter().chain(named).collect());
        let provider = self.providers.get(&function.plugin);
        let is_in_scope = provider.is_some_and(|provider| provider.result != RegistrationResult::Skipped);
        let is_known = is_in_scope && !arguments.value.contains_unknowns() && referenced.is_settled();
        let replies = self.replies.filter(|_| is_known);
        let is_secret = arguments.value.contains_secrets();
        let arguments = match arguments.value.without_wrappers() {
            PropertyValue::Map(arguments) => arguments,
            // The reader of the file accepts a mapping alone.
            _ => Default::default(),
        };
        let goal = InvokeGoal {
            token: TypeToken::new(&resolved.token),
            arguments,
            provider: provider.map(|provider| provider.reference.clone()),
            version: None,
            plugin_download_url: None,
            subpackage: None,
            source: Some(positions::function_ref(self.stack, index)),
        };
        let (registrar, plugin) = (self.registrar, function.plugin);
        Box::pin(async move {
            let value = match replies {
                None => PropertyValue::UNKNOWN,
                Some(replies) => {
                    let reply = replies.reply(goal.token.as_str(), plugin, &goal.arguments);
                    match reply.get_or_try_init(|| registrar.invoke(goal)).await {
                        Ok(reply) => PropertyValue::Map(reply.clone()),
                        Err(_) => return RegistrationOutcome::Halted,
                    }
                }
            };
            let is_marked = is_secret && replies.is_some();
            let value = if is_marked { PropertyValue::secret(value) } else { value };
            RegistrationOutcome::Function(index, FunctionResult { value, dependencies, resolved })
        })
    }
}
