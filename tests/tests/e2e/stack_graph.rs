//! `sc stack graph` and `--changed-since` in real git repositories.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::filter::filter_output;
use crate::repository::{PROVISIONER, REC, Repository, Sections};

/// Provisioner that is read from the stack `base`.
const INHERITED: &str = "provisioner: { inherit: base }\n";

/// Runs git in a folder, and returns what it prints.
fn git_in(folder: &Path, home: &Path, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]);
    git.args(arguments).current_dir(folder).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home);
    let output = git.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn git(repository: &Repository, arguments: &[&str]) -> String {
    git_in(&repository.path(""), &repository.path("home"), arguments)
}

fn commit(repository: &Repository) {
    git(repository, &["add", "--all"]);
    git(repository, &["commit", "--quiet", "--allow-empty", "--message", "x"]);
}

/// Creates a repository with the stacks `base`, `net` and `app`, which inherit from `base`, and `solo`; without `reef`.
fn stacks() -> Repository {
    let repository = Repository::new(Sections::default());
    fs::remove_dir_all(repository.path(".sc/stacks/reef")).unwrap();
    fs::remove_dir(repository.path(".git")).unwrap();
    repository.write_stack("base", PROVISIONER, Sections::default());
    repository.write_stack("net", INHERITED, Sections::default());
    let resources = "bed: { type: rec:index:Thing, config: { v: { fn::fileAsset: site/index.html } } }";
    repository.write_stack("app", INHERITED, Sections { plugins: REC, resources, outputs: "" });
    repository.write_stack("solo", PROVISIONER, Sections::default());
    repository.write("site/index.html", "hello");
    repository.write(".gitignore", "/backend/\n/home/\n/rec/\n/tmp/\n*.log\n");
    git(&repository, &["init", "--quiet"]);
    commit(&repository);
    repository
}

/// Shows: server-yaml.md#the-stacks-of-a-repository "Stacks of one level do not depend on each other"
#[test]
fn graph_shows_levels_and_reasons_in_four_forms() {
    let repository = stacks();
    insta::assert_snapshot!(repository.expect_exit(0, "stack graph"), @"
    exit 0
    --- out
    LEVEL  STACK  COMES AFTER
    1      base   -
    1      solo   -
    2      app    base (inherited)
    2      net    base (inherited)
    --- err
    ");
    insta::assert_snapshot!(repository.expect_exit(0, "stack graph -s net --json"), @r#"
    exit 0
    --- out
    {"stack":"base","level":1,"after":[]}
    {"stack":"net","level":2,"after":[{"stack":"base","reason":"inherits","file":".sc/stacks/net/server.yaml","line":2,"column":25}]}
    --- err
    "#);
    insta::assert_snapshot!(repository.expect_exit(0, "stack graph -s net --format dot"), @r#"
    exit 0
    --- out
    digraph stacks {
      rankdir=LR;
      node [shape=box];
      "base";
      "net";
      "base" -> "net" [label="inherits"];
    }
    --- err
    "#);
    insta::assert_snapshot!(repository.expect_exit(0, "stack graph -s net --format mermaid"), @r#"
    exit 0
    --- out
    flowchart LR
      s0["base"]
      s1["net"]
      s0 -->|inherits| s1
    --- err
    "#);
    let refused = repository.expect_exit(2, "stack graph --format dot --json");
    assert!(refused.contains("--json and --format are two forms of the graph"), "{refused}");
}

/// Returns the selected stacks with the names of the changed files, as lines.
fn selected(repository: &Repository, arguments: &str) -> String {
    let output = repository.start(&format!("stack graph --json {arguments}")).wait();
    assert_eq!(output.status, "exit 0", "{}", output.stderr);
    let line = |line: &str| {
        let stack: serde_json::Value = serde_json::from_str(line).unwrap();
        let files = stack["changedFiles"].as_array().into_iter().flatten();
        let files: Vec<&str> = files.map(|file| file.as_str().unwrap()).collect();
        format!("{}: {}", stack["stack"].as_str().unwrap(), files.join(" ")).trim_end().to_owned()
    };
    output.stdout.lines().map(line).collect::<Vec<_>>().join("; ")
}

/// Shows: server-yaml.md#stacks-that-have-changed "staged, unstaged and untracked files"
/// Shows: server-yaml.md#stacks-that-have-changed "Files that git ignores do not"
#[test]
fn changes_in_commits_and_in_the_work_tree_select_stacks_and_their_dependents() {
    let repository = stacks();
    git(&repository, &["switch", "--quiet", "--create", "feature"]);
    assert_eq!(selected(&repository, "--changed-since main"), "");
    repository.write(".sc/stacks/solo/debug.log", "x");
    repository.write("README.md", "x");
    assert_eq!(selected(&repository, "--changed-since main"), "");
    repository.write(".sc/stacks/net/a \"b\"\tä.txt", "x");
    assert_eq!(selected(&repository, "--changed-since main"), "net: .sc/stacks/net/a \"b\"\tä.txt");
    git(&repository, &["add", "--all"]);
    repository.write("site/index.html", "bye");
    let both = "app: site/index.html; net: .sc/stacks/net/a \"b\"\tä.txt";
    assert_eq!(selected(&repository, "--changed-since main"), both);
    commit(&repository);
    assert_eq!(selected(&repository, "--changed-since main"), both);
    assert_eq!(selected(&repository, "--changed-since main -s net,solo"), "net: .sc/stacks/net/a \"b\"\tä.txt");
    assert_eq!(selected(&repository, "--changed-since HEAD"), "");
    // What main has done since is not a change of the branch.
    git(&repository, &["switch", "--quiet", "main"]);
    repository.write(".sc/stacks/solo/x", "x");
    commit(&repository);
    git(&repository, &["switch", "--quiet", "feature"]);
    assert_eq!(selected(&repository, "--changed-since main"), both);
    repository.write(".sc/stacks/base/x", "x");
    let all = "base: .sc/stacks/base/x; app: site/index.html; net: .sc/stacks/net/a \"b\"\tä.txt";
    assert_eq!(selected(&repository, "--changed-since main"), all);
    repository.write(".sc/cfg.default.yaml", "projectName: tank\n# x\n");
    assert!(selected(&repository, "--changed-since main -s solo").starts_with("solo: .sc/cfg.default.yaml"));
}

/// Shows: server-yaml.md#stacks-that-have-changed "If no stack has changed, the command says so and ends with exit code 0."
#[test]
fn provision_preview_and_validate_work_on_the_changed_stacks_alone() {
    let repository = stacks();
    for command in ["provision --yes", "preview", "preview -s net", "validate"] {
        let output = repository.expect_exit(0, &format!("{command} --changed-since main"));
        let expected = if command.contains("net") { "the stack has not changed" } else { "no stack has changed" };
        assert!(output.contains(&format!("info: {expected} since ")), "{output}");
    }
    assert_eq!(repository.names("backend"), [""; 0]);
    repository.write("site/index.html", "bye");
    let provisioned = repository.expect_exit(0, "provision --yes --changed-since main");
    assert!(provisioned.contains("info: selected 1 of 4 stacks, by what has changed since "), "{provisioned}");
    assert!(provisioned.contains(" (the merge base of HEAD with main):\n  app: site/index.html\n"), "{provisioned}");
    let states: Vec<String> =
        repository.names("backend/.pulumi/stacks/tank").into_iter().filter(|name| name.ends_with(".json")).collect();
    assert_eq!(states, ["backend/.pulumi/stacks/tank/app.json"]);
    repository.write(".sc/stacks/base/x", "x");
    let validated = repository.expect_exit(0, "validate --no-plugins --changed-since main -s net,base");
    assert!(validated.contains("\n  base: .sc/stacks/base/x\n  net: inherits from base\n"), "{validated}");
    assert!(validated.contains("2 stacks, 0 resources: no mistakes"), "{validated}");
}

/// Shows: server-yaml.md#stacks-that-have-changed "A stack whose folder was removed is named in a warning, and nothing of it is destroyed"
#[test]
fn removed_stack_is_named_and_stays() {
    let repository = stacks();
    repository.expect_exit(0, "provision --yes -S -s app");
    let before = repository.files("backend");
    fs::remove_dir_all(repository.path(".sc/stacks/app")).unwrap();
    let output = repository.expect_exit(0, "provision --yes --changed-since main");
    assert!(output.contains("warning: the stack app was removed since "), "{output}");
    assert!(output.contains("restore its folder and run `sc destroy -s app`"), "{output}");
    assert_eq!(repository.files("backend"), before);
}

/// Shows: server-yaml.md#stacks-that-have-changed "One that does not exist here is wrong usage (exit code 2)."
/// Shows: server-yaml.md#stacks-that-have-changed "A clone without the merge base is an error (exit code 1), as is a folder without git."
#[test]
fn comparison_that_cannot_be_made_is_an_error_that_says_what_to_do() {
    let repository = stacks();
    for (revision, expected) in [
        ("nowhere", "git knows no commit \"nowhere\" here\n  hint: fetch it, such as by `git fetch origin main`"),
        ("--output=x", "\"--output=x\" is no revision: it begins with a hyphen"),
        ("", "--changed-since needs a revision"),
        ("main:site", "git knows no commit \"main:site\" here"),
    ] {
        let output = repository.expect_exit(2, &format!("preview --changed-since={revision}"));
        assert!(output.contains(expected), "{output}");
    }
    assert!(!repository.path("x").exists());
    let other = stacks();
    let folder = other.path(".sc/stacks");
    let outside = repository.expect_exit(1, &format!("preview --changed-since main --dir {}", folder.display()));
    assert!(outside.contains(", is not in the git repository"), "{outside}");

    // A clone of the last commit of each branch, as pipelines have it.
    git(&repository, &["switch", "--quiet", "--create", "feature"]);
    repository.write(".sc/stacks/net/x", "x");
    commit(&repository);
    git(&repository, &["switch", "--quiet", "main"]);
    commit(&repository);
    let (origin, clone) = (format!("file://{}", repository.path("").display()), repository.path("tmp/clone"));
    let arguments =
        ["clone", "--quiet", "--depth=1", "--no-single-branch", "--branch=feature", &origin, clone.to_str().unwrap()];
    git(&repository, &arguments);
    let in_clone = |arguments: &str| {
        let mut command = repository.command(arguments);
        command.current_dir(&clone);
        filter_output(&repository.start_command(command).output(), &[])
    };
    let shallow = in_clone("preview --changed-since origin/main");
    let expected = "HEAD and \"origin/main\" have no common commit in this clone, which is shallow";
    assert!(shallow.starts_with("exit 1\n") && shallow.contains(expected), "{shallow}");
    assert!(shallow.contains("`fetch-depth: 0` in GitHub Actions"), "{shallow}");
    let unknown = in_clone("preview --changed-since origin/other");
    assert!(unknown.starts_with("exit 2\n") && unknown.contains("`fetch-depth: 0`"), "{unknown}");
    git_in(&clone, &repository.path("home"), &["fetch", "--quiet", "--unshallow"]);
    let whole = in_clone("stack graph --changed-since origin/main");
    assert!(whole.contains("\n1      net    -\n"), "{whole}");

    fs::rename(repository.path(".git"), repository.path("tmp/git")).unwrap();
    let without = repository.expect_exit(1, "preview --changed-since main");
    assert!(without.contains("is not in a git repository, which --changed-since compares with"), "{without}");
}

/// Shows: server-yaml.md#stacks-that-have-changed "the packages that its plugins and core types get"
#[test]
fn entry_of_the_lock_file_selects_the_stacks_with_its_plugin() {
    let repository = stacks();
    let origin = repository.path("tmp/origin");
    let in_origin = |arguments: &[&str]| git_in(&origin, &repository.path("home"), arguments);
    let publish = |tag: &str| {
        repository.write("tmp/origin/version", tag);
        in_origin(&["add", "--all"]);
        in_origin(&["commit", "--quiet", "--message", tag]);
        in_origin(&["tag", tag]);
    };
    fs::create_dir(&origin).unwrap();
    fs::copy(tests::binaries::files_plugin().unwrap(), origin.join("pulumi-resource-files")).unwrap();
    in_origin(&["init", "--quiet"]);
    publish("v1.2.3");
    let plugins =
        "- { name: files, source: { type: git, repository: ./tmp/origin, version: ^1.2 }, config: { root: . } }";
    repository.write_stack("net", INHERITED, Sections { plugins, ..Sections::default() });
    commit(&repository);
    repository.expect_exit(0, "plugin lock");
    // The entry is new.
    assert_eq!(selected(&repository, "--changed-since HEAD"), "net: .sc/sc.lock");
    commit(&repository);
    publish("v1.3.0");
    repository.expect_exit(0, "plugin update");
    assert_eq!(selected(&repository, "--changed-since HEAD"), "net: .sc/sc.lock");
    repository.write(".sc/sc.lock", &format!("# a comment\n{}", git(&repository, &["show", "HEAD:.sc/sc.lock"])));
    assert_eq!(selected(&repository, "--changed-since HEAD"), "");
    repository.write(".sc/sc.lock", "<<<<<<< ours\n");
    assert_eq!(selected(&repository, "--changed-since HEAD").matches(".sc/sc.lock").count(), 4);
}

/// Shows: server-yaml.md#stacks-that-have-changed "Another recipient changes nothing"
#[test]
fn content_of_the_store_selects_the_stacks_whose_secrets_it_has() {
    let repository = stacks();
    fs::remove_file(repository.path(".sc/cfg.default.yaml")).unwrap();
    commit(&repository);
    repository.expect_exit(0, "secrets init --generate");
    let hide = |stack: &str, value: &str| {
        let path = format!(".sc/stacks/{stack}/secrets.yaml");
        repository.write(&path, &format!("values: {{ token: {value} }}\n"));
        repository.expect_exit(0, &format!("secrets add --yes {path}"));
    };
    hide("net", "one");
    hide("solo", "one");
    commit(&repository);
    assert_eq!(selected(&repository, "--changed-since HEAD"), "");
    hide("solo", "two");
    assert_eq!(selected(&repository, "--changed-since HEAD"), "solo: .sc/secrets.yaml");
    hide("app", "one");
    assert_eq!(selected(&repository, "--changed-since HEAD"), "app: .sc/secrets.yaml; solo: .sc/secrets.yaml");
    commit(&repository);
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOr9WxEey4NdH7FJcS2HeyaMPUVnujqofmst01JI1mYF ada@reef";
    let mut allow = repository.command("secrets allow");
    allow.arg(key);
    let allowed = repository.start_command(allow).output();
    assert!(allowed.starts_with("exit 0\n"), "{allowed}");
    assert_eq!(selected(&repository, "--changed-since HEAD"), "");
}

/// Hooks of git set variables that select a repository.
#[test]
fn repository_of_the_stacks_is_compared_whatever_the_environment_selects() {
    let repository = stacks();
    repository.write(".sc/stacks/solo/x", "x");
    let mut command = repository.command("stack graph --changed-since main --json");
    command.env("GIT_DIR", repository.path("tmp")).env("GIT_INDEX_FILE", repository.path("tmp/index"));
    let output = repository.start_command(command).wait();
    assert!(output.stdout.contains("\"stack\":\"solo\"") && output.stdout.lines().count() == 1, "{output:?}");
}

/// A sequence of numbers that is the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Number of stacks of the generated history. The stack `s3` inherits from `s1`, and so on.
const STACKS: u64 = 6;

/// Stack of the generated history: what its server.yaml names.
#[derive(Clone, Default)]
struct Model {
    inherits: Option<u64>,
    asset: Option<u64>,
    plugin: Option<u64>,
}

impl Model {
    fn write(&self, repository: &Repository, stack: u64, comment: u64) {
        let provisioner = match self.inherits {
            Some(from) => format!("provisioner: {{ inherit: s{from} }}\n"),
            None => PROVISIONER.to_owned(),
        };
        let plugin = self
            .plugin
            .map_or(String::new(), |at| format!("- {{ name: p{at}, source: {{ type: local, path: plugins/p{at} }} }}"));
        let resources = match (self.asset, self.plugin) {
            (Some(asset), Some(plugin)) => {
                format!(
                    "a: {{ type: 'p{plugin}:index:Thing', config: {{ v: {{ fn::fileArchive: assets/a{asset} }} }} }}"
                )
            }
            _ => String::new(),
        };
        let sections = Sections { plugins: &plugin, resources: &resources, outputs: "" };
        repository.write_stack(&format!("s{stack}"), &format!("# {comment}\n{provisioner}"), sections);
    }

    /// Returns the files and folders that the stack reads.
    fn paths(&self, stack: u64) -> Vec<String> {
        let asset = self.asset.filter(|_| self.plugin.is_some()).map(|at| format!("assets/a{at}"));
        let plugin = self.plugin.map(|at| format!("plugins/p{at}"));
        let own = [format!(".sc/stacks/s{stack}"), ".sc/cfg.default.yaml".to_owned()];
        own.into_iter().chain(asset).chain(plugin).collect()
    }
}

/// Contents of the files of a commit or of the work tree, by path.
type Contents = BTreeMap<String, String>;

/// Reads each file that git knows or does not ignore.
fn contents_now(repository: &Repository) -> Contents {
    let names = git(repository, &["ls-files", "--cached", "--others", "--exclude-standard"]);
    let content = |name: &str| Some((name.to_owned(), fs::read_to_string(repository.path(name)).ok()?));
    names.lines().filter_map(content).collect()
}

fn contents_of(repository: &Repository, commit: &str) -> Contents {
    let names = git(repository, &["ls-tree", "-r", "--name-only", commit]);
    names.lines().map(|name| (name.to_owned(), git(repository, &["show", &format!("{commit}:{name}")]))).collect()
}

/// Returns the stacks that differ, by the content of all files that each reads, and those that inherit from them.
fn reference(old: &Contents, new: &Contents, models: &BTreeMap<u64, Model>) -> BTreeSet<String> {
    let read = |contents: &Contents, paths: &[String]| -> Contents {
        let is_read = |name: &str| paths.iter().any(|path| name == path || name.starts_with(&format!("{path}/")));
        contents.iter().filter(|(name, _)| is_read(name)).map(|(name, text)| (name.clone(), text.clone())).collect()
    };
    let differs = |stack: u64, model: &Model| read(old, &model.paths(stack)) != read(new, &model.paths(stack));
    let mut changed: BTreeSet<u64> =
        models.iter().filter(|(stack, model)| differs(**stack, model)).map(|(stack, _)| *stack).collect();
    for _ in 0..STACKS {
        let inherits = |model: &Model| model.inherits.is_some_and(|from| changed.contains(&from));
        let more: Vec<u64> = models.iter().filter(|(_, model)| inherits(model)).map(|(stack, _)| *stack).collect();
        changed.extend(more);
    }
    changed.into_iter().map(|stack| format!("s{stack}")).collect()
}

/// Makes one random change of the files.
fn change(repository: &Repository, models: &mut BTreeMap<u64, Model>, numbers: &mut Numbers, at: u64) {
    let (stack, place) = (numbers.below(STACKS), numbers.below(3));
    match numbers.below(9) {
        0 | 1 => {
            // A stack that is new, or has another configuration. A stack inherits from one with a lower number.
            let inherits = (0..stack).rev().find(|from| models.contains_key(from)).filter(|_| place > 0);
            let (asset, plugin) = (Some(numbers.below(3)), Some(place).filter(|_| numbers.below(2) == 0));
            let model = Model { inherits, asset, plugin };
            model.write(repository, stack, at);
            models.insert(stack, model);
        }
        2 => repository.write(&format!("plugins/p{place}/main.py"), &format!("{at}")),
        3 => repository.write(&format!("assets/a{place}/f{}.html", numbers.below(4)), &format!("{at}")),
        4 if models.contains_key(&stack) => repository.write(&format!(".sc/stacks/s{stack}/note"), &format!("{at}")),
        5 => fs::remove_file(repository.path(&format!("assets/a{place}/f0.html"))).unwrap_or_default(),
        6 => repository.write(&format!("assets/a{place}/build.log"), &format!("{at}")),
        7 if at % 10 == 7 => repository.write(".sc/cfg.default.yaml", &format!("projectName: tank\n# {at}\n")),
        8 if !models.values().any(|model| model.inherits == Some(stack)) && models.len() > 2 => {
            models.remove(&stack);
            fs::remove_dir_all(repository.path(&format!(".sc/stacks/s{stack}"))).unwrap_or_default();
        }
        _ => repository.write("README.md", &format!("{at}")),
    }
}

/// Compares the selection with one that reads all files of both commits, for a history of 50 commits.
#[test]
fn selection_in_a_generated_history_equals_one_that_rereads_everything() {
    let repository = stacks();
    for stack in ["base", "net", "app", "solo"] {
        fs::remove_dir_all(repository.path(&format!(".sc/stacks/{stack}"))).unwrap();
    }
    let (mut numbers, mut models) = (Numbers(53), BTreeMap::new());
    for at in 0..3 {
        repository.write(&format!("plugins/p{at}/PulumiPlugin.yaml"), "runtime: python\n");
        repository.write(&format!("assets/a{at}/index.html"), "");
    }
    for stack in 0..3 {
        let model = Model { inherits: (stack > 0).then_some(0), asset: Some(stack), plugin: Some(stack) };
        model.write(&repository, stack, 0);
        models.insert(stack, model);
    }
    commit(&repository);
    let mut commits = vec![git(&repository, &["rev-parse", "HEAD"]).trim().to_owned()];
    let mut selections = BTreeSet::new();
    for at in 1..=50 {
        for _ in 0..=numbers.below(3) {
            change(&repository, &mut models, &mut numbers, at);
        }
        let since = usize::try_from(numbers.below(4)).unwrap().min(commits.len() - 1);
        let base = commits[commits.len() - 1 - since].clone();
        let expected = reference(&contents_of(&repository, &base), &contents_now(&repository), &models);
        let compare = |state: &str| {
            let output = repository.start(&format!("stack graph --json --changed-since {base}")).wait();
            assert_eq!(output.status, "exit 0", "commit {at}, {state}: {}", output.stderr);
            let name = |line: &str| {
                let stack: serde_json::Value = serde_json::from_str(line).unwrap();
                stack["stack"].as_str().unwrap().to_owned()
            };
            let found: BTreeSet<String> = output.stdout.lines().map(name).collect();
            assert_eq!(found, expected, "commit {at}, {state}, since {since} commits: {}", output.stderr);
        };
        compare("in the work tree");
        commit(&repository);
        compare("committed");
        commits.push(git(&repository, &["rev-parse", "HEAD"]).trim().to_owned());
        selections.insert(expected);
    }
    assert!(selections.len() > 15, "the history is too uniform: {selections:?}");
}
