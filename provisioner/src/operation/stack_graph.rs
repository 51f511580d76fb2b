//! Graph of the stacks of a repository: which stack comes before which, and why. A pure value.
//!
//! A stack comes after those that it inherits from, after the stack of its key, and after those whose outputs it reads. `inherit`
//! concerns files alone: two stacks may inherit different blocks from each other, and then neither has to come first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use bridge::message_text::MessageText;
use config::diagnostics::{Code, Diagnostic, Span};
use config::{Inheritance, Stack};

use super::key_stack::key_stack;

/// Reason why a stack comes before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeReason {
    /// Blocks that the other one inherits.
    Inherits,
    /// Key of the other one.
    Key,
    /// Outputs that the other one reads.
    Output,
}

impl EdgeReason {
    /// Returns the word of results for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inherits => "inherits",
            Self::Key => "key",
            Self::Output => "output",
        }
    }
}

/// Edge of the graph: one stack comes before another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackEdge {
    /// The stack that comes first.
    pub before: String,
    /// The stack that depends on it.
    pub stack: String,
    /// Reason.
    pub reason: EdgeReason,
    /// Position of the first place in the files of `stack` that is the reason.
    pub span: Option<Span>,
}

/// Shows what the dependent stack does: `inherits from base`.
impl fmt::Display for StackEdge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.reason {
            EdgeReason::Inherits => "inherits from",
            EdgeReason::Key => "is encrypted with the key of",
            EdgeReason::Output => "reads outputs of",
        };
        write!(f, "{words} {}", self.before)
    }
}

/// Stacks that wait for each other: each edge begins at the stack at which the one before it ends, the first one after the last.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stacks depend on each other in a cycle: {}", self.names().join(" -> "))]
pub struct StackCycle {
    /// The edges: of each, `stack` depends on `before`.
    pub edges: Vec<StackEdge>,
}

impl StackCycle {
    /// Returns the names, each before one that it depends on; the first one is the last one, too.
    pub fn names(&self) -> Vec<&str> {
        let first = self.edges.first().map(|edge| edge.stack.as_str());
        first.into_iter().chain(self.edges.iter().map(|edge| edge.before.as_str())).collect()
    }

    /// Returns the error at the lines of its edges.
    pub fn diagnostic(&self) -> Diagnostic {
        let mut placed = self.edges.iter().filter_map(|edge| Some((edge, edge.span?)));
        let first = placed.next();
        let text = |edge: &StackEdge| MessageText::new(format_args!("{} {edge}", edge.stack));
        let error = Diagnostic::error(Code("stack-cycle"), first.map(|(_, span)| span), MessageText::of(self));
        let error = first.into_iter().fold(error, |error, (edge, _)| error.span_label(text(edge)));
        placed.fold(error, |error, (edge, span)| error.label(span, text(edge)))
    }
}

/// Stacks and their edges.
#[derive(Clone, Debug, Default)]
pub struct StackGraph {
    nodes: Vec<String>,
    edges: Vec<StackEdge>,
    /// Node of each name.
    index: BTreeMap<String, usize>,
    /// Edges to what a node depends on, and to what depends on it, in their order.
    dependencies: Vec<Vec<usize>>,
    dependents: Vec<Vec<usize>>,
}

impl StackGraph {
    /// Creates a graph. An edge to a stack that is not in it, from a stack to itself because of `inherit`, or like one before it, is left
    /// out.
    pub fn new(nodes: impl IntoIterator<Item = String>, edges: impl IntoIterator<Item = StackEdge>) -> Self {
        let mut graph = Self::default();
        for node in nodes {
            if !graph.index.contains_key(&node) {
                graph.index.insert(node.clone(), graph.nodes.len());
                graph.nodes.push(node);
            }
        }
        graph.dependencies = vec![Vec::new(); graph.nodes.len()];
        graph.dependents = graph.dependencies.clone();
        let mut seen = BTreeSet::new();
        for edge in edges {
            let (Some(&before), Some(&stack)) = (graph.index.get(&edge.before), graph.index.get(&edge.stack)) else {
                continue;
            };
            let is_empty = before == stack && edge.reason == EdgeReason::Inherits;
            if !is_empty && seen.insert((before, stack, edge.reason)) {
                graph.dependencies[stack].push(graph.edges.len());
                graph.dependents[before].push(graph.edges.len());
                graph.edges.push(edge);
            }
        }
        graph
    }

    /// Creates the graph of loaded stacks, with the stacks of their keys. `inherit` may lead through stacks that are not among them.
    pub fn of(stacks: &[Arc<Stack>], inheritance: &[Inheritance]) -> Self {
        let names: BTreeSet<&str> = stacks.iter().map(|stack| stack.name.as_str()).collect();
        let (mut nodes, mut edges) = (Vec::new(), Vec::new());
        for stack in stacks {
            // That of a key was read from the files of its owner.
            if stack.key_of.is_some() {
                nodes.push(stack.name.clone());
                continue;
            }
            edges.extend(inherited(&stack.name, inheritance, &names).map(|(before, span)| StackEdge {
                before: before.to_owned(),
                stack: stack.name.clone(),
                reason: EdgeReason::Inherits,
                span: Some(span),
            }));
            edges.extend(stack.outputs_read.iter().map(|read| StackEdge {
                before: read.stack.clone(),
                stack: stack.name.clone(),
                reason: EdgeReason::Output,
                span: Some(read.span),
            }));
            if let Some(key) = key_stack(stack) {
                nodes.push(key.name.clone());
                edges.push(StackEdge {
                    before: key.name.clone(),
                    stack: stack.name.clone(),
                    reason: EdgeReason::Key,
                    span: Some(stack.provisioner.secrets_provider.span()),
                });
            }
            nodes.push(stack.name.clone());
        }
        Self::new(nodes, edges)
    }

    /// Returns the stacks, in the order in which they were given.
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// Returns the edges, in the order in which they were given.
    pub fn edges(&self) -> &[StackEdge] {
        &self.edges
    }

    /// Returns the edges to the stacks that come directly before a stack.
    pub fn dependencies<'g>(&'g self, stack: &str) -> impl Iterator<Item = &'g StackEdge> + use<'g> {
        let edges = self.index.get(stack).map(|node| &self.dependencies[*node]);
        edges.into_iter().flatten().map(|edge| &self.edges[*edge])
    }

    /// Returns the stacks with all that they depend on, directly or not.
    pub fn with_dependencies<'g>(&'g self, stacks: impl IntoIterator<Item = &'g str>) -> BTreeSet<&'g str> {
        self.reach(stacks, |node| &self.dependencies[node], |edge| &edge.before)
    }

    /// Returns the stacks with all that depends on them, directly or not.
    pub fn with_dependents<'g>(&'g self, stacks: impl IntoIterator<Item = &'g str>) -> BTreeSet<&'g str> {
        self.reach(stacks, |node| &self.dependents[node], |edge| &edge.stack)
    }

    fn reach<'g>(
        &'g self,
        stacks: impl IntoIterator<Item = &'g str>,
        edges: impl Fn(usize) -> &'g Vec<usize>,
        end: impl Fn(&'g StackEdge) -> &'g String,
    ) -> BTreeSet<&'g str> {
        let mut waiting: Vec<&str> = stacks.into_iter().collect();
        let mut found = BTreeSet::new();
        while let Some(stack) = waiting.pop() {
            if let Some(&node) = self.index.get(stack)
                && found.insert(self.nodes[node].as_str())
            {
                waiting.extend(edges(node).iter().map(|edge| end(&self.edges[*edge]).as_str()));
            }
        }
        found
    }

    /// Returns the graph of some of the stacks, with the edges between them.
    #[must_use]
    pub fn only(&self, stacks: &BTreeSet<&str>) -> Self {
        let nodes = self.nodes.iter().filter(|node| stacks.contains(node.as_str()));
        Self::new(nodes.cloned(), self.edges.iter().cloned())
    }

    /// Returns the stacks in an order in which each comes after what it depends on, otherwise as they were given.
    ///
    /// # Errors
    /// [`StackCycle`]: see [`StackGraph::cycle`].
    pub fn order(&self) -> Result<Vec<&str>, StackCycle> {
        if let Some(cycle) = self.cycle() {
            return Err(cycle);
        }
        Ok(self.sorted().into_iter().map(|node| self.nodes[node].as_str()).collect())
    }

    /// Returns the stacks in layers: each stack is in the first one after those of its dependencies, so the stacks of one layer do not
    /// depend on each other. In a layer they stand as they were given.
    ///
    /// # Errors
    /// [`StackCycle`]: see [`StackGraph::cycle`].
    pub fn layers(&self) -> Result<Vec<Vec<&str>>, StackCycle> {
        if let Some(cycle) = self.cycle() {
            return Err(cycle);
        }
        // A dependency without a layer comes later in the order: the two inherit from each other.
        let mut layer_of: Vec<Option<usize>> = vec![None; self.nodes.len()];
        for node in self.sorted() {
            let before =
                self.dependencies[node].iter().filter_map(|edge| layer_of[self.index[&self.edges[*edge].before]]);
            layer_of[node] = Some(before.map(|layer| layer + 1).max().unwrap_or_default());
        }
        let mut layers: Vec<Vec<&str>> = Vec::new();
        for (node, layer) in layer_of.into_iter().enumerate() {
            let layer = layer.unwrap_or_default();
            layers.resize(layers.len().max(layer + 1), Vec::new());
            layers[layer].push(&self.nodes[node]);
        }
        Ok(layers)
    }

    /// Returns the nodes, each after what it depends on, as far as no cycle prevents it.
    fn sorted(&self) -> Vec<usize> {
        let (mut sorted, mut is_seen) = (Vec::new(), vec![false; self.nodes.len()]);
        // Each frame: a node, and the number of its edges that were visited.
        let mut open: Vec<(usize, usize)> = Vec::new();
        for node in 0..self.nodes.len() {
            if !std::mem::replace(&mut is_seen[node], true) {
                open.push((node, 0));
            }
            while let Some((node, visited)) = open.last_mut() {
                let Some(edge) = self.dependencies[*node].get(*visited) else {
                    sorted.push(*node);
                    open.pop();
                    continue;
                };
                *visited += 1;
                let next = self.index[&self.edges[*edge].before];
                if !std::mem::replace(&mut is_seen[next], true) {
                    open.push((next, 0));
                }
            }
        }
        sorted
    }

    /// Returns a shortest cycle of the first output that is read in one; `None` if no stack has to wait for itself. Stacks that inherit
    /// from each other, and read no outputs of each other, are no cycle.
    pub fn cycle(&self) -> Option<StackCycle> {
        let read = self.edges.iter().enumerate().filter(|(_, edge)| edge.reason == EdgeReason::Output);
        read.into_iter().find_map(|(at, edge)| {
            let path = self.path(self.index[&edge.before], self.index[&edge.stack])?;
            let edges = std::iter::once(at).chain(path).map(|edge| self.edges[edge].clone()).collect();
            Some(StackCycle { edges })
        })
    }

    /// Returns a shortest path of edges by which one node depends on another one.
    fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut reached_by: BTreeMap<usize, usize> = BTreeMap::new();
        let mut waiting = VecDeque::from([from]);
        while let Some(node) = waiting.pop_front() {
            if node == to {
                let mut path = Vec::new();
                let mut here = to;
                while here != from {
                    let edge = reached_by[&here];
                    path.push(edge);
                    here = self.index[&self.edges[edge].stack];
                }
                path.reverse();
                return Some(path);
            }
            for edge in &self.dependencies[node] {
                let next = self.index[&self.edges[*edge].before];
                if next != from && !reached_by.contains_key(&next) {
                    reached_by.insert(next, *edge);
                    waiting.push_back(next);
                }
            }
        }
        None
    }
}

/// Returns the stacks of a graph that a stack inherits from, directly or through stacks that are not in the graph, with the position of
/// the first `inherit`.
fn inherited<'i>(
    stack: &str,
    inheritance: &'i [Inheritance],
    names: &BTreeSet<&str>,
) -> impl Iterator<Item = (&'i str, Span)> + use<'i> {
    let of = |stack: &str| {
        let start = inheritance.partition_point(|link| link.stack.as_str() < stack);
        let end = start + inheritance[start..].partition_point(|link| link.stack.as_str() == stack);
        &inheritance[start..end]
    };
    let mut waiting: VecDeque<(&str, Span)> = of(stack).iter().map(|link| (link.from.as_str(), link.span)).collect();
    let (mut found, mut passed) = (Vec::new(), BTreeSet::new());
    while let Some((target, span)) = waiting.pop_front() {
        if names.contains(target) {
            found.push((target, span));
        } else if passed.insert(target) {
            waiting.extend(of(target).iter().map(|link| (link.from.as_str(), span)));
        }
    }
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use config::diagnostics::{Sensitivity, SourceFiles};

    use super::*;

    /// Creates a graph of `b<a` (b inherits from a), `b<a!` (b reads an output of a) and `b<a*` (a has the key of b).
    fn graph(nodes: &str, edges: &str) -> StackGraph {
        let edge = |text: &str| {
            let (stack, before) = text.split_once('<').unwrap();
            let reason = match before.chars().last() {
                Some('!') => EdgeReason::Output,
                Some('*') => EdgeReason::Key,
                _ => EdgeReason::Inherits,
            };
            let before = before.trim_end_matches(['!', '*']).to_owned();
            StackEdge { before, stack: stack.to_owned(), reason, span: None }
        };
        StackGraph::new(nodes.split_whitespace().map(str::to_owned), edges.split_whitespace().map(edge))
    }

    #[test]
    fn stacks_come_after_their_dependencies_else_as_given() {
        for (nodes, edges, order, layers) in [
            ("", "", "", ""),
            ("c a b", "", "c a b", "c a b"),
            ("a b c", "a<c", "c a b", "b c | a"),
            ("a b c", "a<b b<c!", "c b a", "c | b | a"),
            ("a b c d", "a<b a<c! b<d c<d!", "d b c a", "d | b c | a"),
            ("b a--sc a", "a<b a<a--sc*", "b a--sc a", "b a--sc | a"),
            ("a--sc a b", "a<b a<a--sc*", "a--sc b a", "a--sc b | a"),
            // Edges to other stacks, twice the same, and a template of the own stack.
            ("a b", "a<x! x<b a<b a<b a<a", "b a", "b | a"),
            // Blocks that are inherited from each other, which concerns files alone.
            ("a b c", "a<b b<a c<b!", "b a c", "b | a c"),
        ] {
            let graph = graph(nodes, edges);
            let shown: Vec<String> = graph.layers().unwrap().iter().map(|layer| layer.join(" ")).collect();
            assert_eq!((graph.order().unwrap().join(" "), shown.join(" | ")), (order.into(), layers.into()), "{edges}");
        }
    }

    #[test]
    fn dependencies_and_dependents_are_found_through_others() {
        let graph = graph("a b c d e", "b<a c<b! d<c a<b e<d!");
        let text = |found: BTreeSet<&str>| found.into_iter().collect::<Vec<_>>().join(" ");
        for (stacks, dependencies, dependents) in [
            (&["a"][..], "a b", "a b c d e"),
            (&["c"], "a b c", "c d e"),
            (&["e"], "a b c d e", "e"),
            (&["d", "a", "x"], "a b c d", "a b c d e"),
            (&[], "", ""),
        ] {
            let [before, after] =
                [graph.with_dependencies(stacks.iter().copied()), graph.with_dependents(stacks.iter().copied())];
            assert_eq!((text(before), text(after)), (dependencies.into(), dependents.into()), "{stacks:?}");
        }
        let direct: Vec<String> = graph.dependencies("c").map(ToString::to_string).collect();
        assert_eq!((direct, graph.dependencies("x").count()), (vec!["reads outputs of b".to_owned()], 0));
        let part = graph.only(&graph.with_dependencies(["c"]));
        assert_eq!((part.nodes().join(" "), part.edges().len()), ("a b c".to_owned(), 3));
    }

    #[test]
    fn outputs_that_are_read_in_a_cycle_are_an_error() {
        for (edges, cycle) in [
            ("a<b! b<a!", "a -> b -> a"),
            ("a<b! b<c c<a", "a -> b -> c -> a"),
            // The shortest one.
            ("a<b! b<c! c<a! b<a", "a -> b -> a"),
            ("a<b c<c!", "c -> c"),
        ] {
            let graph = graph("a b c", edges);
            let error = graph.order().unwrap_err();
            assert_eq!(error.names().join(" -> "), cycle, "{edges}");
            assert_eq!(error.to_string(), format!("the stacks depend on each other in a cycle: {cycle}"));
            assert_eq!(graph.layers(), Err(error));
        }
    }

    #[test]
    fn cycle_is_reported_at_its_lines() {
        let mut sources = SourceFiles::default();
        let [a, b] = ["a", "b"].map(|name| sources.add(&format!("{name}/server.yaml"), "x", Sensitivity::Public));
        let edge = |stack: &str, before: &str, reason, file| StackEdge {
            before: before.to_owned(),
            stack: stack.to_owned(),
            reason,
            span: Some(Span { file, start: 0, end: 1 }),
        };
        let edges = [edge("a", "b", EdgeReason::Output, a), edge("b", "a", EdgeReason::Inherits, b)];
        let found = StackGraph::new(["a", "b"].map(str::to_owned), edges).cycle().unwrap().diagnostic();
        assert_eq!(sources.position(found.span.unwrap()).to_string(), "a/server.yaml:1:1");
        assert_eq!(found.span_label.unwrap().to_string(), "a reads outputs of b");
        let labels: Vec<String> =
            found.labels.iter().map(|label| format!("{} {}", sources.position(label.span), label.text)).collect();
        assert_eq!(labels, ["b/server.yaml:1:1 b inherits from a"]);
    }
}
