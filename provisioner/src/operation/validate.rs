//! Check of stacks against the schemas of their plugins, without their states and without a cloud.

use std::collections::BTreeMap;
use std::sync::Arc;

use bridge::host::{CheckedPlugin, PackageTypes, PluginHost};
use bridge::plugin::PluginConfig;

use crate::program::{Program, SchemaFindings};
use config::PluginDeclaration;
use config::diagnostics::{Diagnostic, finish};
use engine::StopSignals;
use engine::events::EventSink;

use super::plugins::plugin_error;
use super::{OperationError, PluginSettings};

/// Checks that the plugins of stacks can be fetched and started, and the resources of the stacks against the schemas of
/// the plugins: types, properties, and references to outputs. Takes no lock, reads no state, and configures no plugin.
/// Plugins that several stacks declare alike are started once; plugins with cached types are not started. A plugin that
/// fails is an error at its declaration, and the other plugins are checked.
///
/// Returns errors and warnings in the order of the files.
///
/// # Errors
/// [`OperationError::Stopped`] if the user stopped the operation.
pub async fn validate(
    programs: &[Program],
    plugins: &PluginSettings,
    events: &Arc<dyn EventSink>,
    signals: &StopSignals,
) -> Result<Vec<Diagnostic>, OperationError> {
    let Some(first) = programs.first() else { return Ok(Vec::new()) };
    let mut distinct: Vec<CheckedPlugin> = Vec::new();
    let indices: Vec<Vec<usize>> = programs.iter().map(|program| indices_of_plugins(program, &mut distinct)).collect();
    // All stacks belong to one project.
    let settings = plugins.host_settings(&first.stack().project, events, signals);
    let checked = tokio::select! {
        checked = PluginHost::check(settings, distinct) => checked,
        // Dropping the future kills the started processes.
        () = signals.stop.cancelled() => return Err(OperationError::Stopped),
    };
    let mut found: Vec<Diagnostic> = Vec::new();
    for (program, indices) in programs.iter().zip(indices) {
        let mut types: BTreeMap<String, PackageTypes> = BTreeMap::new();
        for (plugin, index) in enabled_plugins(program).zip(indices) {
            match &checked[index] {
                Ok(of_package) => drop(types.insert(plugin.name().to_owned(), of_package.clone())),
                Err(error) => found.push(plugin_error(Some(plugin.name_span), error)),
            }
        }
        let SchemaFindings { errors, warnings } = program.check_types(&types);
        found.extend(errors);
        found.extend(warnings.into_iter().map(|warning| program.diagnostic_of(warning)));
        found.extend(program.check_outputs(&types, |_, _| None));
    }
    finish(&mut found);
    Ok(found)
}

fn enabled_plugins(program: &Program) -> impl Iterator<Item = &PluginDeclaration> {
    program.stack().plugins.iter().filter(|plugin| plugin.plugin.enabled)
}

/// Returns the index in `distinct` of each enabled plugin of a stack. Adds the plugins that it lacks.
fn indices_of_plugins(program: &Program, distinct: &mut Vec<CheckedPlugin>) -> Vec<usize> {
    let with_types = program.plugins_with_package_types();
    let index = |plugin: &PluginDeclaration| {
        let needs_types = with_types.contains(plugin.name());
        match distinct.iter_mut().enumerate().find(|(_, known)| start_alike(&known.config, &plugin.plugin)) {
            Some((index, known)) => {
                known.needs_types |= needs_types;
                index
            }
            None => {
                distinct.push(CheckedPlugin { config: plugin.plugin.clone(), needs_types });
                distinct.len() - 1
            }
        }
    };
    enabled_plugins(program).map(index).collect()
}

/// Returns true if two declarations start the same process. They may configure it differently.
fn start_alike(a: &PluginConfig, b: &PluginConfig) -> bool {
    a.name == b.name
        && a.package == b.package
        && a.source == b.source
        && a.pass_env == b.pass_env
        && a.start_timeout == b.start_timeout
}
