//! Registration of the provider resources of plugins.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use pulumi_proto::urn::ProviderReference;

use super::{RegisteredProvider, RegistrationOutcome, Run};
use crate::program::goals;
use engine::RegistrationResult;

impl<'r> Run<'r> {
    pub(super) fn start_provider(&self, index: usize) -> BoxFuture<'r, RegistrationOutcome> {
        let mut goal = goals::provider(&self.stack.plugins[index], index, self.root, self.resolved);
        let types = self.types.get(self.stack.plugins[index].name());
        if let Some(type_info) = types.and_then(|types| types.get(goal.type_token.as_str())) {
            goals::apply_type_info(&mut goal, &type_info);
            goal.aliases.extend(goals::type_aliases(&type_info.former_types));
        }
        let registrar = self.registrar;
        Box::pin(async move {
            match registrar.register(goal).await {
                Ok(registered) if registered.result == RegistrationResult::Failed => RegistrationOutcome::Failed,
                Ok(registered) => {
                    let (reference, result) = (registered.as_provider_reference(), registered.result);
                    RegistrationOutcome::Provider(index, RegisteredProvider { reference, result })
                }
                Err(_) => RegistrationOutcome::Halted,
            }
        })
    }

    /// Returns the providers that children of components use, by package.
    pub(super) fn providers_of_children(&self) -> BTreeMap<String, ProviderReference> {
        let named = self.child_plugins.iter().filter_map(|plugin| {
            Some((self.stack.plugins[*plugin].package().to_owned(), self.providers.get(plugin)?.reference.clone()))
        });
        named.collect()
    }
}
