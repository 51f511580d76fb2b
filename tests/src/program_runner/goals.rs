//! Goals for the resources of a program.

use std::collections::BTreeMap;

use bridge::provider::{Alias, AliasParent};
use engine::{Goal, ReadGoal};
use pulumi_proto::duration::{self, Timeouts};
use pulumi_proto::property::PropertyValue;
use pulumi_proto::resource_id::{ReferenceId, ResourceId};
use pulumi_proto::urn::{ProviderReference, TypeToken, Urn};

use super::values::ProgramValues;
use crate::scenario::{AliasOption, Get, Resource};

/// Returns the goal of a resource; `None` if one of its options is invalid.
pub(super) fn registration(resource: &Resource, values: &ProgramValues<'_>, stack: &Urn) -> Option<Goal> {
    let options = &resource.options;
    let urns_of = |names: &[String]| names.iter().filter_map(|name| values.urn(name)).collect::<Vec<_>>();
    let property_dependencies: BTreeMap<String, Vec<Urn>> =
        resource.props.iter().map(|(key, value)| (key.clone(), values.urns_in(value))).collect();
    let mut dependencies: Vec<Urn> = property_dependencies.values().flatten().cloned().collect();
    dependencies.extend(urns_of(&options.depends_on));
    dependencies.extend(options.replacement_trigger.iter().flat_map(|trigger| values.urns_in(trigger)));
    dependencies.sort();
    dependencies.dedup();
    Some(Goal {
        parent: Some(parent(resource, values, stack)),
        dependencies,
        property_dependencies,
        provider: provider(resource, values),
        protect: options.protect,
        delete_before_replace: options.delete_before_replace,
        ignore_changes: options.ignore_changes.clone(),
        replace_on_changes: options.replace_on_changes.clone(),
        additional_secret_outputs: options.additional_secret_outputs.clone(),
        aliases: options.aliases.iter().map(|option| alias(option, values)).collect::<Option<_>>()?,
        custom_timeouts: custom_timeouts(&options.custom_timeouts)?,
        import_id: options.import.as_deref().and_then(ResourceId::new),
        retain_on_delete: options.retain_on_delete,
        deleted_with: options.deleted_with.as_deref().and_then(|name| values.urn(name)),
        replace_with: urns_of(&options.replace_with),
        replacement_trigger: options
            .replacement_trigger
            .as_ref()
            .map(|value| values.value(value))
            .filter(|trigger| *trigger != PropertyValue::Null),
        version: options.version.clone(),
        custom: !resource.is_component(),
        remote: resource.is_component(),
        ..Goal::component(TypeToken::new(&resource.type_token), resource.name.as_str(), values.map(&resource.props))
    })
}

/// Returns the goal of a read, which has no dependencies and no timeouts.
pub(super) fn read(resource: &Resource, get: &Get, values: &ProgramValues<'_>, stack: &Urn) -> ReadGoal {
    let id = match values.value(&get.id).without_wrappers() {
        PropertyValue::String(id) => ReferenceId::from(id.as_str()),
        _ => ReferenceId::Unknown,
    };
    ReadGoal {
        patience: std::time::Duration::ZERO,
        type_token: TypeToken::new(&resource.type_token),
        name: resource.name.clone(),
        id,
        properties: values.map(&get.state),
        parent: Some(parent(resource, values, stack)),
        dependencies: Vec::new(),
        provider: provider(resource, values),
        additional_secret_outputs: resource.options.additional_secret_outputs.clone(),
        version: resource.options.version.clone(),
        plugin_download_url: None,
        subpackage: None,
        source: None,
    }
}

fn parent(resource: &Resource, values: &ProgramValues<'_>, stack: &Urn) -> Urn {
    resource.options.parent.as_deref().and_then(|name| values.urn(name)).unwrap_or_else(|| stack.clone())
}

fn provider(resource: &Resource, values: &ProgramValues<'_>) -> Option<ProviderReference> {
    let name = resource.options.provider.as_ref()?;
    values.resources.get(name).map(|registered| registered.as_provider_reference())
}

fn alias(option: &AliasOption, values: &ProgramValues<'_>) -> Option<Alias> {
    Some(match option {
        AliasOption::Urn(urn) => Alias::Urn(urn.parse().ok()?),
        AliasOption::Spec(spec) => Alias::Spec {
            name: spec.name.clone(),
            type_token: spec.type_token.clone(),
            stack: spec.stack.clone(),
            project: spec.project.clone(),
            parent: match &spec.parent {
                _ if spec.no_parent => AliasParent::None,
                Some(name) => AliasParent::Urn(values.urn(name)?),
                None => AliasParent::Same,
            },
        },
    })
}

fn custom_timeouts(texts: &BTreeMap<String, String>) -> Option<Timeouts> {
    let timeout = |name| {
        texts
            .get(name)
            .map_or(Some(None), |text| Some(Some(duration::parse(text)?).filter(|timeout| !timeout.is_zero())))
    };
    Some(Timeouts {
        create: timeout("create")?,
        update: timeout("update")?,
        delete: timeout("delete")?,
        read: timeout("read")?,
    })
}
