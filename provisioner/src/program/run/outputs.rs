//! Outputs of the stack: those of the file, and those that core resources export.

use bridge::message_text::MessageText;
use pulumi_proto::property::PropertyMap;

use super::Run;
use crate::program::goals;
use crate::program::references::{ReferencedResource, ResolveMode};
use crate::registry::recipe::without_unknowns;
use config::diagnostics::{Code, Diagnostic};
use config::graph::{NodeName, references, targets};
use config::tree::Reference;
use engine::ProgramEnd;

impl Run<'_> {
    /// Registers the stack outputs all at once. Registers none if an output refers to a resource that is not
    /// registered.
    pub(super) async fn register_outputs(&mut self) {
        if self.stopped {
            return;
        }
        let outputs = self.evaluate_outputs().unwrap_or_else(|diagnostic| {
            self.end = ProgramEnd::Failed;
            self.diagnostics.push(*diagnostic);
            None
        });
        if let Some(outputs) = outputs
            && self.registrar.register_outputs(self.root, outputs).await.is_err()
        {
            self.end = ProgramEnd::Failed;
        }
    }

    fn evaluate_outputs(&self) -> Result<Option<PropertyMap>, Box<Diagnostic>> {
        let mut outputs = PropertyMap::new();
        for resource in self.registered.values() {
            let ReferencedResource::Core(provisioned) = &**resource else { continue };
            for (name, value) in provisioned.stack_outputs.clone() {
                let value = if self.mode == ResolveMode::Apply { without_unknowns(value) } else { value };
                goals::insert_output(&mut outputs, &name, value);
            }
        }
        for output in &self.stack.outputs {
            let names: Vec<NodeName<'_>> = references(&output.value)
                .into_iter()
                .flat_map(|reference| self.targets_of_output(reference).into_iter())
                .collect();
            if names.iter().any(|name| self.nodes.find(*name).is_some_and(|node| !self.is_done(node))) {
                return Ok(None);
            }
            let referenced = self.referenced(names.into_iter());
            if outputs.contains_key(&output.name) {
                let summary =
                    MessageText::new(format_args!("the output {:?} is already exported by a core type", output.name));
                return Err(Diagnostic::error(Code("duplicate-output"), output.span, summary).into());
            }
            goals::insert_output(&mut outputs, &output.name, referenced.evaluate(&output.value, None)?.value);
        }
        Ok(Some(outputs))
    }

    /// Returns the names of what a reference of an output refers to. A resource without an environment is the only one with its key.
    fn targets_of_output<'n>(&'n self, reference: &'n Reference) -> Vec<NodeName<'n>> {
        let named = targets(reference, "");
        let only = |name| match name {
            NodeName::Resource("", key) => self.nodes.only_resource(key).unwrap_or(name),
            name => name,
        };
        named.map(only).collect()
    }
}
