//! Graph of imports between files, and its cycles.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use crate::modules::{File, ModuleId, Namespaces, parse};
use crate::references::{ReferenceKind, collect};
use crate::resolution::{Resolver, Target};
use crate::workspace::{Workspace, product};

/// Path in the code, with the item that it resolves to.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    pub(crate) file: String,
    pub(crate) line: usize,
    /// Names of the crate and of the modules below it, for the code that contains the path.
    pub(crate) module: Vec<String>,
    pub(crate) package: String,
    /// Path of the target, from its crate on.
    pub(crate) target: Vec<String>,
    pub(crate) defined_in: Definition,
    /// True if the import re-exports an item of a module below its own.
    pub(crate) is_re_export_of_child: bool,
}

/// Definition that an import resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    /// Module: only the items that are reached through it are imported.
    Module,
    Item {
        package: String,
        /// Module that defines the item, from its crate on.
        module: Vec<String>,
        file: String,
    },
    /// Item of a crate that is no member of the workspace.
    External,
}

/// Facts about a module that the rules need.
#[derive(Clone, Debug)]
pub(crate) struct ModuleFacts {
    pub(crate) package: String,
    pub(crate) path: Vec<String>,
    pub(crate) file: String,
    /// Lines with `async` or `.await`.
    pub(crate) asynchronous: BTreeSet<usize>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) files: BTreeMap<String, File>,
    pub(crate) modules: Vec<ModuleFacts>,
    pub(crate) imports: Vec<Import>,
    /// Paths that the resolver could not resolve although they must resolve to an item.
    pub(crate) unresolved: Vec<String>,
}

/// Edges from file to file of the same package, with the imported names.
pub(crate) type Edges<'a> = BTreeMap<(&'a str, &'a str), BTreeSet<&'a str>>;

/// Returns the graph of the product code.
pub(crate) fn graph() -> &'static Graph {
    static GRAPH: OnceLock<Graph> = OnceLock::new();
    GRAPH.get_or_init(|| build(product()))
}

pub(crate) fn build(workspace: &Workspace) -> Graph {
    let modules = parse(workspace);
    let resolver = Resolver { workspace, modules: &modules };
    let mut graph = Graph { files: modules.files.clone(), ..Graph::default() };
    for (id, module) in modules.list.iter().enumerate() {
        let package = workspace.crates[module.krate].package.clone();
        let references = collect(module);
        for reference in references.list {
            let is_re_export = matches!(
                reference.kind,
                ReferenceKind::Use { is_public: true } | ReferenceKind::Glob { is_public: true }
            );
            let found = resolver.resolve(id, &reference.scopes, &reference.path, reference.namespaces);
            if found.is_empty() && must_resolve(&reference.path, reference.kind) {
                graph.unresolved.push(format!("{}:{}: {}", module.file, reference.line, reference.path.join("::")));
            }
            let below = |module: ModuleId| module != id && modules.is_within(module, id);
            let leads_below = is_re_export
                && reference.path.split_last().is_some_and(|(_, path)| {
                    resolver
                        .resolve(id, &reference.scopes, path, Namespaces::TYPE)
                        .iter()
                        .any(|target| matches!(target, Target::Module(module) if below(*module)))
                });
            let is_glob = matches!(reference.kind, ReferenceKind::Glob { .. });
            for target in found.into_iter().flat_map(|target| with_traits(&resolver, id, target, is_glob)) {
                let defined_in = match &target {
                    Target::Module(_) => Definition::Module,
                    Target::External(_) => Definition::External,
                    Target::Item { module, .. } => Definition::Item {
                        package: workspace.crates[modules.list[*module].krate].package.clone(),
                        module: modules.list[*module].path.clone(),
                        file: modules.list[*module].file.clone(),
                    },
                };
                let is_defined_below = matches!(&target, Target::Item { module, .. } if below(*module));
                graph.imports.push(Import {
                    file: module.file.clone(),
                    line: reference.line,
                    module: module.path.clone(),
                    package: package.clone(),
                    target: resolver.canonical(&target),
                    defined_in,
                    is_re_export_of_child: is_re_export && (leads_below || is_defined_below),
                });
            }
        }
        graph.modules.push(ModuleFacts {
            package,
            path: module.path.clone(),
            file: module.file.clone(),
            asynchronous: references.asynchronous,
        });
    }
    graph
}

/// Adds the traits that a glob brings into scope, as their methods are called without the name of the trait.
fn with_traits(resolver: &Resolver<'_>, from: ModuleId, target: Target, is_glob: bool) -> Vec<Target> {
    let mut found = vec![target];
    if let (true, [Target::Module(module)]) = (is_glob, found.as_slice()) {
        let names = resolver.modules.list[*module].names.keys();
        let traits = names.flat_map(|name| {
            let path = [resolver.modules.list[*module].path.as_slice(), std::slice::from_ref(name)].concat();
            let krate = path[0].clone();
            let is_own = resolver.modules.list[from].path[0] == krate;
            let path: Vec<String> = if is_own { [vec!["crate".to_owned()], path[1..].to_vec()].concat() } else { path };
            resolver.resolve(from, &[], &path, Namespaces::TYPE)
        });
        let traits: Vec<Target> =
            traits.filter(|target| matches!(target, Target::Item { is_trait: true, .. })).collect();
        found.extend(traits);
    }
    found
}

/// Returns whether a path must resolve to an item that the resolver finds: an import, or a path through modules.
fn must_resolve(path: &[String], kind: ReferenceKind) -> bool {
    const PRIMITIVES: [&str; 17] = [
        "bool", "char", "str", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
        "f32", "f64",
    ];
    match kind {
        ReferenceKind::Use { .. } | ReferenceKind::Glob { .. } => true,
        ReferenceKind::Code => {
            path.len() > 1
                && path[0].starts_with(|c: char| c.is_ascii_lowercase())
                && !PRIMITIVES.contains(&path[0].as_str())
        }
        ReferenceKind::Tokens => false,
    }
}

impl Import {
    /// Returns the file that the import resolves to, if it is another file of the same package.
    pub(crate) fn other_file(&self) -> Option<&str> {
        match &self.defined_in {
            Definition::Item { package, file, .. } if *package == self.package && *file != self.file => Some(file),
            _ => None,
        }
    }
}

impl Graph {
    pub(crate) fn edges(&self) -> Edges<'_> {
        let mut edges = Edges::new();
        for import in self.imports.iter().filter(|import| !import.is_re_export_of_child) {
            if let Some(other) = import.other_file() {
                let name = import.target.last().map(String::as_str).unwrap_or_default();
                edges.entry((&import.file, other)).or_default().insert(name);
            }
        }
        edges
    }
}

/// Returns the strongly connected components of more than one file, each sorted, in order.
pub(crate) fn cycles<'a>(edges: &Edges<'a>) -> Vec<Vec<&'a str>> {
    let mut search = Search::default();
    for (from, to) in edges.keys() {
        search.next.entry(from).or_default().push(to);
    }
    let starts: Vec<&str> = search.next.keys().copied().collect();
    for file in starts {
        if !search.index.contains_key(file) {
            search.visit(file);
        }
    }
    search.components.sort();
    search.components
}

/// State of Tarjan's algorithm for strongly connected components.
#[derive(Default)]
struct Search<'a> {
    next: BTreeMap<&'a str, Vec<&'a str>>,
    index: BTreeMap<&'a str, usize>,
    low: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    components: Vec<Vec<&'a str>>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, file: &'a str) {
        let index = self.index.len();
        self.index.insert(file, index);
        self.low.insert(file, index);
        self.stack.push(file);
        for next in self.next.get(file).cloned().unwrap_or_default() {
            let reached = if !self.index.contains_key(next) {
                self.visit(next);
                self.low[next]
            } else if self.stack.contains(&next) {
                self.index[next]
            } else {
                continue;
            };
            let low = self.low[file].min(reached);
            self.low.insert(file, low);
        }
        if self.low[file] == index {
            let at = self.stack.iter().position(|other| *other == file).expect("a file in work is on the stack");
            let mut component = self.stack.split_off(at);
            component.sort_unstable();
            if component.len() > 1 {
                self.components.push(component);
            }
        }
    }
}

/// Returns a cycle's edges, each with the names that it consists of.
pub(crate) fn describe(cycle: &[&str], edges: &Edges<'_>) -> String {
    let inside = edges.iter().filter(|((from, to), _)| cycle.contains(from) && cycle.contains(to));
    let lines: Vec<String> = inside
        .map(|((from, to), names)| {
            let names: Vec<&str> = names.iter().copied().collect();
            format!("  {from} -> {to}: {}", names.join(", "))
        })
        .collect();
    lines.join("\n")
}

/// Prints the files and edges with `cargo test -p tests --test tidy -- --nocapture imports`.
#[test]
fn product_imports_are_resolved() {
    let graph = graph();
    let edges = graph.edges();
    let product: Vec<(&String, &File)> = graph.files.iter().filter(|(_, file)| !file.is_test).collect();
    let mut longest: Vec<(usize, &String)> = product.iter().map(|(path, file)| (file.lines, *path)).collect();
    longest.sort_by_key(|(lines, path)| (std::cmp::Reverse(*lines), *path));
    println!("{} files, {} edges, median {} lines", product.len(), edges.len(), longest[longest.len() / 2].0);
    longest.iter().take(10).for_each(|(lines, path)| println!("{lines:5} {path}"));
    for cycle in cycles(&edges) {
        println!("cycle of {} files:\n{}", cycle.len(), describe(&cycle, &edges));
    }
    assert_eq!(graph.unresolved, Vec::<String>::new());
}
