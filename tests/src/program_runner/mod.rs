//! Runs the program of a recorded step like Pulumi's YAML host.
//!
//! Input: a step, and the registrar of a deployment. Output: registrations, in the recorded order, and the end of the
//! program. Excluded: the effect of a registration. `tests/goldens/engine/README.md` lists what the host adds to a
//! program.

mod goals;
mod order;
mod values;

use std::collections::BTreeSet;

use engine::{Goal, Halted, InvokeGoal, Registered, Registrar, RegistrationResult};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::urn::{ROOT_STACK_TYPE, TypeToken, Urn};

use self::order::Node;
use self::values::ProgramValues;
use crate::scenario::{FunctionCall, PROJECT, Resource, STACK, Step};

/// Concurrency of registrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// Each registration waits for the one before.
    Sequential,
    /// Each registration starts as soon as all that it refers to is registered and the one before it in the recording
    /// has started.
    Concurrent,
}

/// Result of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramResult {
    /// All resources were registered.
    Completed,
    /// The program itself failed: a registration failed and the deployment continued, or an option was invalid. No
    /// Delete may follow.
    Failed,
    /// The deployment stopped.
    Halted,
}

/// Runs the program of a step.
pub async fn run_program(step: &Step, registrar: &dyn Registrar, concurrency: Concurrency) -> ProgramResult {
    let root = Goal::component(TypeToken::new(ROOT_STACK_TYPE), format!("{PROJECT}-{STACK}"), PropertyMap::new());
    let stack = match registrar.register(root).await {
        Ok(stack) if stack.result == RegistrationResult::Succeeded => stack.urn,
        Ok(_) => return ProgramResult::Failed,
        Err(_) => return ProgramResult::Halted,
    };
    let values = ProgramValues::new(&step.program, registrar.is_preview());
    let mut run = ProgramRun { registrar, stack, values, failed: BTreeSet::new(), running: FuturesUnordered::new() };
    let ended = run.run_nodes(step, concurrency).await;
    // Registrations that are still running are awaited in any case.
    while let Some(registration) = run.running.next().await {
        let _ = run.record_result(registration);
    }
    match ended {
        Err(end) => end,
        Ok(()) if run.failed.is_empty() => ProgramResult::Completed,
        Ok(()) => ProgramResult::Failed,
    }
}

/// Name of a resource, and the result of its registration.
type Registration = (String, Result<Registered, Halted>);

struct ProgramRun<'a> {
    registrar: &'a dyn Registrar,
    stack: Urn,
    values: ProgramValues<'a>,
    /// Resources that failed, or that depend on a failed one.
    failed: BTreeSet<String>,
    running: FuturesUnordered<BoxFuture<'a, Registration>>,
}

impl<'a> ProgramRun<'a> {
    async fn run_nodes(&mut self, step: &'a Step, concurrency: Concurrency) -> Result<(), ProgramResult> {
        for node in order::recorded_order(step) {
            let dependencies = node.dependencies(&step.program);
            while !dependencies.iter().all(|name| self.values.is_registered(name) || self.failed.contains(name)) {
                // A missing resource without a running registration is not in the program.
                let registration = self.running.next().await.ok_or(ProgramResult::Failed)?;
                self.record_result(registration)?;
            }
            if dependencies.iter().any(|name| self.failed.contains(name)) {
                self.failed.extend(node.resource().map(|resource| resource.name.clone()));
                continue;
            }
            match node {
                Node::Resource(resource) => self.start(resource)?,
                Node::Variable(name, call) => self.call(name, call).await?,
                Node::Outputs => {
                    let outputs = self.values.map(&step.program.outputs);
                    self.registrar.register_outputs(&self.stack, outputs).await.map_err(|_| ProgramResult::Halted)?;
                }
            }
            while concurrency == Concurrency::Sequential
                && let Some(registration) = self.running.next().await
            {
                self.record_result(registration)?;
            }
        }
        while let Some(registration) = self.running.next().await {
            self.record_result(registration)?;
        }
        Ok(())
    }

    /// Starts a registration or a read, so that the deployment receives it before the next one.
    fn start(&mut self, resource: &'a Resource) -> Result<(), ProgramResult> {
        let (registrar, name) = (self.registrar, resource.name.clone());
        let mut registration: BoxFuture<'a, Registration> = if let Some(get) = &resource.get {
            let goal = goals::read(resource, get, &self.values, &self.stack);
            Box::pin(async move { (name, registrar.read(goal).await) })
        } else {
            let goal = goals::registration(resource, &self.values, &self.stack).ok_or(ProgramResult::Failed)?;
            Box::pin(async move { (name, registrar.register(goal).await) })
        };
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match registration.as_mut().poll(&mut context) {
            std::task::Poll::Ready(registration) => self.record_result(registration),
            std::task::Poll::Pending => {
                self.running.push(registration);
                Ok(())
            }
        }
    }

    fn record_result(&mut self, (name, registration): Registration) -> Result<(), ProgramResult> {
        let registered = registration.map_err(|_| ProgramResult::Halted)?;
        if registered.result == RegistrationResult::Failed {
            self.failed.insert(name);
        } else {
            self.values.resources.insert(name, registered);
        }
        Ok(())
    }

    /// Calls a function. The result is unknown if an argument is unknown.
    async fn call(&mut self, name: &'a str, call: &FunctionCall) -> Result<(), ProgramResult> {
        let arguments = PropertyValue::Map(self.values.map(&call.arguments));
        let value = if arguments.contains_unknowns() {
            PropertyValue::UNKNOWN
        } else {
            let secret = arguments.contains_secrets();
            let PropertyValue::Map(arguments) = arguments.without_wrappers() else { return Err(ProgramResult::Failed) };
            let goal = InvokeGoal {
                token: TypeToken::new(&call.function),
                arguments,
                provider: None,
                version: None,
                plugin_download_url: None,
                subpackage: None,
                source: None,
            };
            let mut result = self.registrar.invoke(goal).await.map_err(|_| ProgramResult::Halted)?;
            let value = match &call.member {
                Some(member) => result.remove(member).unwrap_or(PropertyValue::Null),
                None => PropertyValue::Map(result),
            };
            if secret { PropertyValue::secret(value) } else { value }
        };
        self.values.variables.insert(name, value);
        Ok(())
    }
}
