//! Order of the parts of a program, which is the recorded one.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::scenario::{FunctionCall, Outcome, Program, Resource, Step};

/// Part of a program.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node<'a> {
    /// Resource to be registered or read.
    Resource(&'a Resource),
    /// Function to be called, and the name of its result.
    Variable(&'a str, &'a FunctionCall),
    /// Outputs of the stack.
    Outputs,
}

impl<'a> Node<'a> {
    /// Returns the resource, if the part is one.
    pub(super) fn resource(self) -> Option<&'a Resource> {
        match self {
            Self::Resource(resource) => Some(resource),
            Self::Variable(..) | Self::Outputs => None,
        }
    }

    /// Returns the names of the resources that must be registered first.
    pub(super) fn dependencies(self, program: &Program) -> Vec<String> {
        let mut names = Vec::new();
        match self {
            Self::Resource(resource) => names = resource.dependencies(program),
            Self::Variable(_, call) => {
                call.arguments.values().for_each(|value| program.collect_references(value, &mut names))
            }
            Self::Outputs => program.outputs.values().for_each(|value| program.collect_references(value, &mut names)),
        }
        names
    }
}

/// Returns the parts of a step's program: each after the parts that it needs, and otherwise in the recorded order.
/// Function calls and outputs come as early as possible.
///
/// A resource that needs a resource missing in the program is left out.
pub(super) fn recorded_order(step: &Step) -> Vec<Node<'_>> {
    let program = &step.program;
    let ranks = ranks(step);
    let rank = |node: &Node<'_>| match node {
        Node::Resource(resource) => ranks.get(&resource.name).copied().unwrap_or(usize::MAX),
        Node::Variable(..) | Node::Outputs => 0,
    };
    let variables = program.variables.iter().map(|(name, call)| Node::Variable(name, call));
    let resources = program.resources.iter().map(Node::Resource);
    let mut waiting: Vec<Node<'_>> = variables.chain([Node::Outputs]).chain(resources).collect();
    let mut ordered: Vec<Node<'_>> = Vec::new();
    loop {
        let is_ordered =
            |name: &String| ordered.iter().filter_map(|node| node.resource()).any(|resource| resource.name == *name);
        let ready = waiting.iter().enumerate().filter(|(_, node)| node.dependencies(program).iter().all(is_ordered));
        let Some((next, _)) = ready.min_by_key(|(_, node)| rank(node)) else { return ordered };
        ordered.push(waiting.remove(next));
    }
}

/// Returns the position of each resource in the recording, from 1. Resources that the recording did not reach have
/// none.
///
/// The position is that of the first Check (or Read, if the resource is read or imported). A resource that is not
/// checked precedes the first checked one whose first step came later.
fn ranks(step: &Step) -> BTreeMap<String, usize> {
    let expect = &step.expect;
    let urns = step.program.urns();
    let mut checked = Vec::new();
    let mut unchecked = Vec::new();
    for resource in &step.program.resources {
        let Some(urn) = urns.get(&resource.name) else { continue };
        let started = first_step(step, urn.as_str());
        match first_call(expect, resource, urn.as_str()) {
            Some(call) => checked.push((call, started, &resource.name)),
            None => unchecked.extend(started.map(|started| (started, &resource.name))),
        }
    }
    checked.sort_unstable();
    unchecked.sort_unstable();
    let mut order: Vec<(Option<usize>, &String)> =
        checked.into_iter().map(|(_, started, name)| (started, name)).collect();
    for (started, name) in unchecked {
        let later = order.iter().position(|(other, _)| other.is_some_and(|other| other > started));
        order.insert(later.unwrap_or(order.len()), (Some(started), name));
    }
    order.into_iter().zip(1..).map(|((_, name), rank)| (name.clone(), rank)).collect()
}

fn first_call(expect: &Outcome, resource: &Resource, urn: &str) -> Option<usize> {
    let is_read = resource.get.is_some() || resource.options.import.is_some();
    expect.calls.iter().position(|call| {
        let begins = matches!(call.rpc.as_str(), "Check" | "CheckConfig") || (is_read && call.rpc == "Read");
        begins && call.request.get("urn").and_then(Value::as_str) == Some(urn)
    })
}

fn first_step(step: &Step, urn: &str) -> Option<usize> {
    // Without the program, a refresh reads the state before the program starts.
    let begins = |op: &str| op != "delete-replaced" && (op != "refresh" || step.flags.run_program);
    step.expect.steps.iter().position(|(op, other)| other == urn && begins(op))
}
