//! `sc stack graph`: shows which stacks come before which, and why.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Args, ValueEnum};
use config::diagnostics::SourceFiles;
use provisioner::operation::{EdgeReason, SelectionReason, StackGraph};
use serde_json::json;

use crate::cli::args::{ChangedSinceArgs, GlobalArgs, StacksArgs};
use crate::cli::changed_since::select_changed;
use crate::cli::display::Line;
use crate::cli::exit::{CliError, Exit};
use crate::cli::listing::table;
use crate::cli::stacks::{configuration_error, read_stacks_of_graph};
use crate::cli::ui::Ui;

/// Show which stacks come before which, and why
///
/// A stack comes after those that it inherits from and after the stack of its key (`STACK--sc`). Stacks of one level do not
/// depend on each other. With -s, shows these stacks and all that they depend on; with --changed-since, only the stacks that
/// have changed, and those that depend on them. Reads no state, and needs no secrets.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
    sc stack graph                                  all stacks, level by level
    sc stack graph -s aquarium                      what comes before one stack
    sc stack graph --changed-since origin/main      what a pull request changes
    sc stack graph --format dot | dot -Tsvg         a picture, by Graphviz
    sc stack graph --format mermaid                 for a Markdown page
    sc stack graph --json                           one line of JSON for each stack")]
pub(crate) struct GraphArgs {
    #[command(flatten)]
    pub(crate) stacks: StacksArgs,
    #[command(flatten)]
    pub(crate) changed: ChangedSinceArgs,
    /// Form of the graph
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format: GraphFormat,
}

/// Form of the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// A table
    #[default]
    Text,
    /// The language of Graphviz
    Dot,
    /// A flowchart of Mermaid
    Mermaid,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &GraphArgs) -> anyhow::Result<Exit> {
    if ui.output.results_are_json() && args.format != GraphFormat::Text {
        return Err(CliError::usage("--json and --format are two forms of the graph", "give one of them").into());
    }
    let mut stacks = read_stacks_of_graph(ui, global, &args.stacks)?;
    let reasons = select_changed(ui, global, &args.changed, &mut stacks).await?;
    let graph = &stacks.graph;
    let requested = stacks.requested().map(|stack| stack.name.as_str());
    let shown = match args.changed.changed_since {
        Some(_) => graph.only(&requested.collect()),
        None => graph.only(&graph.with_dependencies(requested)),
    };
    let layers = match shown.layers() {
        Ok(layers) => layers,
        Err(cycle) => return Err(configuration_error(&ui.output, &[cycle.diagnostic()], &stacks.sources)),
    };
    let lines = match args.format {
        GraphFormat::Text if ui.output.results_are_json() => as_json(&shown, &layers, &reasons, &stacks.sources),
        GraphFormat::Text if shown.nodes().is_empty() => Vec::new(),
        GraphFormat::Text => as_table(&shown, &layers),
        GraphFormat::Dot => as_dot(&shown),
        GraphFormat::Mermaid => as_mermaid(&shown),
    };
    ui.output.print(&lines)?;
    Ok(Exit::Done)
}

/// Returns a row for each stack, level by level.
fn as_table(graph: &StackGraph, layers: &[Vec<&str>]) -> Vec<Line> {
    let row = |level: usize, stack: &str| {
        let mut before: Vec<(&str, Vec<&str>)> = Vec::new();
        for edge in graph.dependencies(stack) {
            match before.iter_mut().find(|(known, _)| *known == edge.before) {
                Some((_, reasons)) => reasons.push(words(edge.reason)),
                None => before.push((&edge.before, vec![words(edge.reason)])),
            }
        }
        let parts: Vec<String> =
            before.into_iter().map(|(stack, reasons)| format!("{stack} ({})", reasons.join(", "))).collect();
        vec![level.to_string(), stack.to_owned(), if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }]
    };
    let levels = layers.iter().zip(1..);
    let rows: Vec<_> = levels.flat_map(|(layer, level)| layer.iter().map(move |stack| row(level, stack))).collect();
    table(&["LEVEL", "STACK", "COMES AFTER"], &rows)
}

/// Returns what a dependency is for the stack that has it.
fn words(reason: EdgeReason) -> &'static str {
    match reason {
        EdgeReason::Inherits => "inherited",
        EdgeReason::Key => "its key",
        EdgeReason::Output => "outputs",
    }
}

/// Returns an object for each stack, level by level.
fn as_json(
    graph: &StackGraph,
    layers: &[Vec<&str>],
    reasons: &BTreeMap<String, SelectionReason>,
    sources: &SourceFiles,
) -> Vec<Line> {
    let object = |level: usize, stack: &str| {
        let after = graph.dependencies(stack).map(|edge| {
            let position = edge.span.map(|span| sources.position(span));
            json!({
                "stack": edge.before,
                "reason": edge.reason.as_str(),
                "file": position.as_ref().map(|position| &*position.path),
                "line": position.as_ref().map(|position| position.line),
                "column": position.as_ref().map(|position| position.column),
            })
        });
        let mut object = json!({ "stack": stack, "level": level, "after": after.collect::<Vec<_>>() });
        if let Some(reason) = reasons.get(stack) {
            let files = match reason {
                SelectionReason::Files(files) => files.iter().map(|file| file.display().to_string()).collect(),
                SelectionReason::Dependencies(_) => Vec::new(),
            };
            object["changedFiles"] = json!(files);
        }
        Line::plain(object.to_string())
    };
    let levels = layers.iter().zip(1..);
    levels.flat_map(|(layer, level)| layer.iter().map(move |stack| object(level, stack))).collect()
}

/// Returns the edges as `(before, stack, reasons)`, one for each pair of stacks.
fn pairs(graph: &StackGraph) -> Vec<(&str, &str, String)> {
    let mut reasons: BTreeMap<(&str, &str), BTreeSet<EdgeReason>> = BTreeMap::new();
    for edge in graph.edges() {
        reasons.entry((&edge.before, &edge.stack)).or_default().insert(edge.reason);
    }
    let text =
        |reasons: BTreeSet<EdgeReason>| reasons.into_iter().map(EdgeReason::as_str).collect::<Vec<_>>().join(", ");
    reasons.into_iter().map(|((before, stack), reasons)| (before, stack, text(reasons))).collect()
}

fn as_dot(graph: &StackGraph) -> Vec<Line> {
    let nodes = graph.nodes().iter().map(|node| format!("  {node:?};"));
    let edges = pairs(graph)
        .into_iter()
        .map(|(before, stack, reasons)| format!("  {before:?} -> {stack:?} [label={reasons:?}];"));
    let head = ["digraph stacks {", "  rankdir=LR;", "  node [shape=box];"].map(str::to_owned);
    head.into_iter().chain(nodes).chain(edges).chain(["}".to_owned()]).map(Line::plain).collect()
}

fn as_mermaid(graph: &StackGraph) -> Vec<Line> {
    let id = |name: &str| graph.nodes().iter().position(|node| node == name).unwrap_or_default();
    let nodes = graph.nodes().iter().enumerate().map(|(at, node)| format!("  s{at}[\"{node}\"]"));
    let edges = pairs(graph)
        .into_iter()
        .map(|(before, stack, reasons)| format!("  s{} -->|{reasons}| s{}", id(before), id(stack)));
    std::iter::once("flowchart LR".to_owned()).chain(nodes).chain(edges).map(Line::plain).collect()
}

#[cfg(test)]
mod tests {
    use provisioner::operation::StackEdge;

    use super::*;

    fn graph() -> StackGraph {
        let edge = |before: &str, stack: &str, reason| StackEdge {
            before: before.to_owned(),
            stack: stack.to_owned(),
            reason,
            span: None,
        };
        let edges = [
            edge("base", "app", EdgeReason::Inherits),
            edge("network", "app", EdgeReason::Output),
            edge("base", "app", EdgeReason::Output),
            edge("edge--sc", "edge", EdgeReason::Key),
            edge("app", "edge", EdgeReason::Output),
        ];
        StackGraph::new(["app", "base", "edge--sc", "edge", "network", "spare"].map(str::to_owned), edges)
    }

    fn text(lines: &[Line]) -> String {
        lines.iter().map(|line| line.render(false) + "\n").collect()
    }

    #[test]
    fn table_has_the_levels_and_the_reasons() {
        let graph = graph();
        insta::assert_snapshot!(text(&as_table(&graph, &graph.layers().unwrap())), @"
        LEVEL  STACK     COMES AFTER
        1      base      -
        1      edge--sc  -
        1      network   -
        1      spare     -
        2      app       base (inherited, outputs), network (outputs)
        3      edge      edge--sc (its key), app (outputs)
        ");
    }

    #[test]
    fn json_has_a_line_for_each_stack() {
        let graph = graph();
        let reasons = [
            ("base".to_owned(), SelectionReason::Files(vec!["a".into(), "b".into()])),
            ("app".to_owned(), SelectionReason::Dependencies(graph.dependencies("app").cloned().collect())),
        ];
        let lines = as_json(&graph, &graph.layers().unwrap(), &reasons.into(), &SourceFiles::default());
        insta::assert_snapshot!(text(&lines), @r#"
        {"stack":"base","level":1,"after":[],"changedFiles":["a","b"]}
        {"stack":"edge--sc","level":1,"after":[]}
        {"stack":"network","level":1,"after":[]}
        {"stack":"spare","level":1,"after":[]}
        {"stack":"app","level":2,"after":[{"stack":"base","reason":"inherits","file":null,"line":null,"column":null},{"stack":"network","reason":"output","file":null,"line":null,"column":null},{"stack":"base","reason":"output","file":null,"line":null,"column":null}],"changedFiles":[]}
        {"stack":"edge","level":3,"after":[{"stack":"edge--sc","reason":"key","file":null,"line":null,"column":null},{"stack":"app","reason":"output","file":null,"line":null,"column":null}]}
        "#);
    }

    #[test]
    fn other_tools_get_an_edge_for_each_pair() {
        insta::assert_snapshot!(text(&as_dot(&graph())), @r#"
        digraph stacks {
          rankdir=LR;
          node [shape=box];
          "app";
          "base";
          "edge--sc";
          "edge";
          "network";
          "spare";
          "app" -> "edge" [label="output"];
          "base" -> "app" [label="inherits, output"];
          "edge--sc" -> "edge" [label="key"];
          "network" -> "app" [label="output"];
        }
        "#);
        insta::assert_snapshot!(text(&as_mermaid(&graph())), @r#"
        flowchart LR
          s0["app"]
          s1["base"]
          s2["edge--sc"]
          s3["edge"]
          s4["network"]
          s5["spare"]
          s0 -->|output| s3
          s1 -->|inherits, output| s0
          s2 -->|key| s3
          s4 -->|output| s0
        "#);
    }
}
