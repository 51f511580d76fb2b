//! Stack of the key that protects the secrets of another stack (docs/spec/simple-container.md#6.4).

use std::sync::Arc;

use config::{Environment, MaxDeletes, Options, Provisioner, Resource, ResourceImplementation, SecretsProvider, Stack};

use crate::registry::recipes;

/// End of the names of the stacks of keys.
const SUFFIX: &str = "--sc";

/// Returns the stack with the key that a stack asks for with `provision: true`: `<stack>--sc` in the same state storage,
/// protected by a passphrase, with the key as its only resource, which no provision deletes or replaces. `None` if the stack
/// asks for no key.
pub fn key_stack(stack: &Stack) -> Option<Arc<Stack>> {
    let key = stack.provisioner.secrets_provider.provisioned_key()?;
    let name = key_name(stack);
    let resource = Resource {
        key: name.clone(),
        key_span: key.type_span,
        name,
        implementation: ResourceImplementation::Core { type_name: key.type_name.to_owned() },
        type_span: key.type_span,
        config: key.config.clone(),
        options: Options::default(),
    };
    let packages = recipes::key_packages(key);
    let plugins = stack.plugins.iter().filter(|plugin| packages.iter().any(|package| package.name == plugin.package()));
    let provisioner = Provisioner {
        secrets_provider: SecretsProvider::Passphrase { passphrase: None, span: key.span },
        max_deletes: Some(MaxDeletes { count: 0, span: key.span }),
        ..stack.provisioner.clone()
    };
    // Names of keys contain no environment.
    let environment = Environment { resources: vec![resource], ..Environment::new("", key.type_span) };
    Some(Arc::new(Stack {
        key_of: Some(stack.name.clone()),
        plugins: plugins.cloned().collect(),
        environments: vec![environment],
        ..Stack::without_sections(format!("{}{SUFFIX}", stack.name), stack.project.clone(), provisioner)
    }))
}

/// Returns the name of the stack whose key the stack with this name has; `None` for a name of another form.
pub(super) fn owner_name(key_stack: &str) -> Option<&str> {
    key_stack.strip_suffix(SUFFIX)
}

/// Returns the name of the key of a stack, and of the output with its URL.
pub(super) fn key_name(stack: &Stack) -> String {
    format!("{}-{}-sc", stack.project, stack.name)
}
