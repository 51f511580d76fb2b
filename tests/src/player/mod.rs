//! Plays the program of a recorded step like Pulumi's YAML host.
//!
//! Enters: a step, and the registrar of a deployment. Leaves: registrations, in the recorded order, and the end of the
//! program. Never here: the effect of a registration. `tests/goldens/engine/README.md` lists what the host adds to a
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
use self::values::Known;
use crate::scenario::{FunctionCall, PROJECT, Resource, STACK, Step};

/// Concurrency of registrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Each registration waits for the one before.
    OneByOne,
    /// Each registration starts as soon as all that it refers to is registered and the one before it in the recording
    /// has started.
    AtOnce,
}

/// End of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All resources were registered.
    Completed,
    /// The program failed itself: a registration failed and the deployment continued, or an option was invalid. No
    /// deletes may follow.
    Failed,
    /// The deployment stopped.
    Halted,
}

/// Plays the program of a step.
pub async fn play(step: &Step, registrar: &dyn Registrar, pace: Pace) -> End {
    let root = Goal::component(TypeToken::new(ROOT_STACK_TYPE), format!("{PROJECT}-{STACK}"), PropertyMap::new());
    let stack = match registrar.register(root).await {
        Ok(stack) if stack.result == RegistrationResult::Succeeded => stack.urn,
        Ok(_) => return End::Failed,
        Err(_) => return End::Halted,
    };
    let known = Known::new(&step.program, registrar.is_preview());
    let mut play = Play { registrar, stack, known, failed: BTreeSet::new(), under_way: FuturesUnordered::new() };
    let ended = play.nodes(step, pace).await;
    // Registrations that are still running are awaited in any case.
    while let Some(answer) = play.under_way.next().await {
        let _ = play.settle(answer);
    }
    match ended {
        Err(end) => end,
        Ok(()) if play.failed.is_empty() => End::Completed,
        Ok(()) => End::Failed,
    }
}

/// Name of a resource, and the result of its registration.
type Answer = (String, Result<Registered, Halted>);

struct Play<'a> {
    registrar: &'a dyn Registrar,
    stack: Urn,
    known: Known<'a>,
    /// Resources that failed, or that depend on a failed one.
    failed: BTreeSet<String>,
    under_way: FuturesUnordered<BoxFuture<'a, Answer>>,
}

impl<'a> Play<'a> {
    async fn nodes(&mut self, step: &'a Step, pace: Pace) -> Result<(), End> {
        for node in order::recorded(step) {
            let needs = node.needs(&step.program);
            while !needs.iter().all(|name| self.known.has(name) || self.failed.contains(name)) {
                // A missing resource without a running registration is not in the program.
                let answer = self.under_way.next().await.ok_or(End::Failed)?;
                self.settle(answer)?;
            }
            if needs.iter().any(|name| self.failed.contains(name)) {
                self.failed.extend(node.resource().map(|resource| resource.name.clone()));
                continue;
            }
            match node {
                Node::Resource(resource) => self.begin(resource)?,
                Node::Variable(name, call) => self.call(name, call).await?,
                Node::Outputs => {
                    let outputs = self.known.map(&step.program.outputs);
                    self.registrar.register_outputs(&self.stack, outputs).await.map_err(|_| End::Halted)?;
                }
            }
            while pace == Pace::OneByOne
                && let Some(answer) = self.under_way.next().await
            {
                self.settle(answer)?;
            }
        }
        while let Some(answer) = self.under_way.next().await {
            self.settle(answer)?;
        }
        Ok(())
    }

    /// Starts a registration or a read, so that the deployment receives it before the next one.
    fn begin(&mut self, resource: &'a Resource) -> Result<(), End> {
        let (registrar, name) = (self.registrar, resource.name.clone());
        let mut answer: BoxFuture<'a, Answer> = if let Some(get) = &resource.get {
            let goal = goals::read(resource, get, &self.known, &self.stack);
            Box::pin(async move { (name, registrar.read(goal).await) })
        } else {
            let goal = goals::registration(resource, &self.known, &self.stack).ok_or(End::Failed)?;
            Box::pin(async move { (name, registrar.register(goal).await) })
        };
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match answer.as_mut().poll(&mut context) {
            std::task::Poll::Ready(answer) => self.settle(answer),
            std::task::Poll::Pending => {
                self.under_way.push(answer);
                Ok(())
            }
        }
    }

    fn settle(&mut self, (name, answer): Answer) -> Result<(), End> {
        let registered = answer.map_err(|_| End::Halted)?;
        if registered.result == RegistrationResult::Failed {
            self.failed.insert(name);
        } else {
            self.known.resources.insert(name, registered);
        }
        Ok(())
    }

    /// Calls a function. The result is unknown if an argument is unknown.
    async fn call(&mut self, name: &'a str, call: &FunctionCall) -> Result<(), End> {
        let arguments = PropertyValue::Map(self.known.map(&call.arguments));
        let value = if arguments.contains_unknowns() {
            PropertyValue::UNKNOWN
        } else {
            let secret = arguments.contains_secrets();
            let PropertyValue::Map(arguments) = arguments.without_wrappers() else { return Err(End::Failed) };
            let goal = InvokeGoal {
                token: TypeToken::new(&call.function),
                arguments,
                provider: None,
                version: None,
                plugin_download_url: None,
            };
            let mut result = self.registrar.invoke(goal).await.map_err(|_| End::Halted)?;
            let value = match &call.member {
                Some(member) => result.remove(member).unwrap_or(PropertyValue::Null),
                None => PropertyValue::Map(result),
            };
            if secret { PropertyValue::secret(value) } else { value }
        };
        self.known.variables.insert(name, value);
        Ok(())
    }
}
