//! Stacks that wait for their turn in a command: each comes after those that it depends on.

use std::collections::{BTreeMap, BTreeSet};

use provisioner::operation::StackGraph;

/// Direction in which a command goes through the stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Direction {
    /// A stack comes after those that it depends on.
    #[default]
    DependenciesFirst,
    /// A stack comes before those that it depends on, as they are destroyed.
    DependentsFirst,
}

/// Stacks that wait, in the order in which they begin.
#[derive(Debug)]
pub(super) struct StackQueue {
    /// Names of those that have not begun.
    waiting: Vec<String>,
    /// Stacks of the command that come before each one and have not succeeded yet.
    before: BTreeMap<String, BTreeSet<String>>,
}

impl StackQueue {
    /// Creates the queue of some stacks of a graph without cycle. Of two stacks that inherit from each other, the one that comes first
    /// in the order does not wait.
    pub(super) fn new<'n>(graph: &StackGraph, names: impl Iterator<Item = &'n str>, direction: Direction) -> Self {
        let named: BTreeSet<&str> = names.collect();
        let order = graph.order().unwrap_or_default();
        let mut waiting: Vec<String> =
            order.iter().filter(|name| named.contains(**name)).map(ToString::to_string).collect();
        let mut before: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (at, name) in waiting.iter().enumerate() {
            // Also over stacks that are not among these.
            let depended_on = graph.with_dependencies([name.as_str()]);
            for earlier in waiting[..at].iter().filter(|other| depended_on.contains(other.as_str())) {
                let (first, last) = match direction {
                    Direction::DependenciesFirst => (earlier, name),
                    Direction::DependentsFirst => (name, earlier),
                };
                before.entry(last.clone()).or_default().insert(first.clone());
            }
        }
        if direction == Direction::DependentsFirst {
            waiting.reverse();
        }
        Self { waiting, before }
    }

    /// Takes the first stack whose dependencies have succeeded.
    pub(super) fn next(&mut self) -> Option<String> {
        let is_ready = |name: &String| self.before.get(name).is_none_or(BTreeSet::is_empty);
        let at = self.waiting.iter().position(is_ready)?;
        Some(self.waiting.remove(at))
    }

    /// Notes that the operation on a stack has succeeded.
    pub(super) fn succeed(&mut self, stack: &str) {
        self.before.values_mut().for_each(|before| {
            before.remove(stack);
        });
    }

    /// Removes all that depends on a stack, directly or not, and returns its names.
    pub(super) fn leave_out(&mut self, stack: &str) -> Vec<String> {
        let mut left_out = vec![stack.to_owned()];
        let mut at = 0;
        while at < left_out.len() {
            let depends = |name: &String| self.before.get(name).is_some_and(|before| before.contains(&left_out[at]));
            let found: Vec<String> = self.waiting.extract_if(.., |name| depends(name)).collect();
            left_out.extend(found);
            at += 1;
        }
        left_out.remove(0);
        left_out
    }

    /// Removes all stacks that wait, and returns their names.
    pub(super) fn rest(&mut self) -> Vec<String> {
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use provisioner::operation::{EdgeReason, StackEdge};

    use super::*;

    fn queue(direction: Direction, edges: &[(&str, &str)]) -> StackQueue {
        let nodes = ["a", "b", "c", "d"].map(str::to_owned);
        let edge = |(stack, before): &(&str, &str)| StackEdge {
            before: (*before).to_owned(),
            stack: (*stack).to_owned(),
            reason: EdgeReason::Inherits,
            span: None,
        };
        StackQueue::new(&StackGraph::new(nodes, edges.iter().map(edge)), ["a", "b", "c"].into_iter(), direction)
    }

    fn ready(queue: &mut StackQueue) -> String {
        std::iter::from_fn(|| queue.next()).collect::<Vec<_>>().join(" ")
    }

    /// Shows: server-yaml.md#several-stacks "a stack begins once all that it depends on have succeeded"
    #[test]
    fn stack_begins_once_those_before_it_have_succeeded() {
        let mut queue = queue(Direction::DependenciesFirst, &[("a", "b"), ("a", "c"), ("b", "d")]);
        assert_eq!(ready(&mut queue), "b c");
        queue.succeed("b");
        assert_eq!(ready(&mut queue), "");
        queue.succeed("c");
        assert_eq!(ready(&mut queue), "a");
        assert_eq!(queue.rest(), [""; 0]);
    }

    #[test]
    fn stacks_are_destroyed_before_those_that_they_depend_on() {
        let mut queue = queue(Direction::DependentsFirst, &[("a", "b"), ("b", "c")]);
        for stack in ["a", "b", "c"] {
            assert_eq!(ready(&mut queue), stack);
            queue.succeed(stack);
        }
    }

    #[test]
    fn dependents_of_a_failed_stack_are_left_out() {
        let mut queue = queue(Direction::DependenciesFirst, &[("b", "a"), ("c", "d"), ("d", "b")]);
        assert_eq!(ready(&mut queue), "a");
        assert_eq!(queue.leave_out("a"), ["b", "c"]);
        assert_eq!(queue.rest(), [""; 0]);
    }

    #[test]
    fn stacks_that_inherit_from_each_other_do_not_wait_for_each_other() {
        let mut queue = queue(Direction::DependenciesFirst, &[("a", "b"), ("b", "a")]);
        assert_eq!(queue.next().as_deref(), Some("b"));
        queue.succeed("b");
        assert_eq!(ready(&mut queue), "a c");
    }
}
