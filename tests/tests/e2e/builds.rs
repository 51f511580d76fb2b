//! Tests of plugins that are built: by a command, by their runtime, once, and in a sandbox.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use tests::binaries;
use tests::commands::run;

use crate::filter::filter_output;
use crate::repository::{Repository, Sections};

const FILE_RESOURCE: &str = "note: { type: files:fs:File, config: { path: note.txt, content: hello } }";

/// Commits files to the git repository `origin`. `program` is the plugin `files`, which is not called so.
fn commit(repository: &Repository, files: &[(&str, &str)]) {
    let origin = repository.path("origin");
    fs::create_dir_all(&origin).unwrap();
    fs::copy(binaries::files_plugin().unwrap(), origin.join("program")).unwrap();
    for (path, text) in files {
        fs::create_dir_all(origin.join(path).parent().unwrap()).unwrap();
        fs::write(origin.join(path), text).unwrap();
    }
    if !origin.join(".git").exists() {
        git(&origin, &["init", "--quiet", "--initial-branch=main"]);
    }
    git(&origin, &["add", "."]);
    git(&origin, &["commit", "--quiet", "--allow-empty", "-m", "files"]);
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=T", "-c", "user.email=t@example.org"]).args(arguments).current_dir(folder);
    run(&mut git).unwrap();
}

fn plugins(repository: &Repository, more: &str) -> String {
    let origin = repository.path("origin").display().to_string();
    format!(
        "- {{ name: files, source: {{ type: git, repository: 'file://{origin}', version: main{more} }}, config: {{ root: site }} }}"
    )
}

fn repository(more: &str, files: &[(&str, &str)]) -> Repository {
    let repository = Repository::new(Sections::default());
    commit(&repository, files);
    fs::create_dir(repository.path("site")).unwrap();
    let plugins = plugins(&repository, more);
    repository.write_sections(Sections { plugins: &plugins, resources: FILE_RESOURCE, outputs: "" });
    repository
}

/// Returns whether an output has a line of a build.
fn builds(output: &str) -> bool {
    output.lines().any(|line| line.contains("making"))
}

/// Shows: plugins.md#builds "kept in the cache"
#[test]
fn plugin_is_built_by_its_command_once() {
    let command = ", build: 'echo making; cp program pulumi-resource-files'";
    let repository = repository(command, &[("README.md", "a plugin")]);
    let installed = repository.expect_exit(0, "plugin install");
    insta::assert_snapshot!(filter_output(&installed, &[]), @"
    exit 0
    --- out
    STACK  PLUGIN  REVISION
    reef   files   [id]
      CHECKSUM  sha256:[id]
    --- err
    Downloading files: file://[repo]/origin
    Downloaded files: file://[repo]/origin
    info: plugin files: making
    info: plugin files: version main is [id], recorded in .sc/sc.lock
    ");
    let output = repository.expect_exit(0, "provision --yes");
    assert!(!builds(&output), "it is kept: {output}");
    assert_eq!(repository.read("site/note.txt"), "hello");

    let other = plugins(&repository, ", build: 'echo making more; cp program pulumi-resource-files'");
    repository.write_sections(Sections { plugins: &other, resources: FILE_RESOURCE, outputs: "" });
    assert!(builds(&repository.expect_exit(0, "preview")), "another command");
    assert!(!builds(&repository.expect_exit(0, "preview")));
    assert!(!builds(&repository.expect_exit(0, "--offline preview")), "what is kept needs no network");

    commit(&repository, &[("README.md", "a better plugin")]);
    assert!(builds(&repository.expect_exit(0, "plugin update files")), "another tree");
    assert!(!builds(&repository.expect_exit(0, "preview")));

    let kept: Vec<_> = fs::read_dir(repository.path("home/.cache/sc/packages")).unwrap().flatten().collect();
    for package in kept {
        let program = package.path().join("pulumi-resource-files");
        if program.exists() {
            fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
            fs::write(&program, "#!/bin/sh\necho evil").unwrap();
        }
    }
    let output = repository.expect_exit(0, "preview");
    assert!(builds(&output) && output.contains("damaged in the cache; it is built again"), "{output}");
}

/// Shows: plugins.md#builds "changes the files of its own copy only, and connects by https only"
#[test]
fn build_writes_to_its_own_folder_only_and_knows_no_secret() {
    let repository = Repository::new(Sections::default());
    let outside = repository.path("outside");
    let secret = repository.path("home/.secret");
    commit(&repository, &[]);
    fs::write(&secret, "hunter2").unwrap();
    for (attempt, words) in [
        (format!("echo x > {}", outside.display()), "Permission denied"),
        (format!("cat {}", secret.display()), "Permission denied"),
        ("echo home is $HOME; test -n \"$API_TOKEN\"".to_owned(), "exit status 1"),
    ] {
        let plugins = plugins(&repository, &format!(", build: '{attempt}'"));
        repository.write_sections(Sections { plugins: &plugins, resources: FILE_RESOURCE, outputs: "" });
        let mut command = repository.command("plugin install");
        command.env("API_TOKEN", "hunter2");
        let output = repository.start_command(command).output();
        assert!(output.starts_with("exit 1\n") && output.contains(words), "{attempt}: {output}");
        assert!(!output.contains("hunter2"), "{output}");
        assert!(!outside.exists());
        assert!(!output.contains(&format!("home is {}\n", repository.path("home").display())), "{output}");
    }
    assert_eq!(repository.names("home/.cache/sc/work"), [""; 0]);
}

/// Shows: plugins.md#builds "A Go tree without its program and without `build` is refused"
#[test]
fn go_tree_is_built_if_it_is_declared_so() {
    let manifest =
        [("PulumiPlugin.yaml", "runtime: go\n"), ("main.go", "package main\n"), ("go.mod", "module files\n")];
    let repository = repository("", &manifest);
    let refused = repository.expect_exit(1, "plugin install");
    insta::assert_snapshot!(filter_output(&refused, &[]), @"
    exit 1
    --- out
    --- err
    Downloading files: file://[repo]/origin
    Downloaded files: file://[repo]/origin
    error[plugin-load]: failed to load plugin files
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: files, source: { type: git, repository: 'file://[repo]/origin', version: main }, config: { root: site } }
      |             ^^^^^

    error: failed to load plugins: failed to load plugin files: failed to resolve plugin binary: the program pulumi-resource-files is not in the package, and has to be built from its Go sources
      hint: set `build: true` below source, or publish the plugin with its program
    ");
    // A toolchain: `go env NAME…`, `go build -o FILE .`
    repository.write_script(
        "bin/go",
        "if [ \"$1\" = env ]; then shift; for name; do echo; done; exit; fi\necho making; cp program \"$3\"\n",
    );
    let plugins = plugins(&repository, ", build: true");
    repository.write_sections(Sections { plugins: &plugins, resources: FILE_RESOURCE, outputs: "" });
    let with_go = |arguments: &str| {
        let mut command = repository.command(arguments);
        command.env("PATH", format!("{}:/usr/bin:/bin", repository.path("bin").display()));
        repository.start_command(command).output()
    };
    let output = with_go("provision --yes");
    assert!(output.starts_with("exit 0\n") && builds(&output), "{output}");
    assert_eq!(repository.read("site/note.txt"), "hello");
    let output = with_go("preview");
    assert!(output.starts_with("exit 0\n") && !builds(&output), "{output}");
}

/// Shows: plugins.md#builds "for a tree without it, `build: true` is a mistake"
#[test]
fn build_that_fails_names_its_command_and_leaves_nothing() {
    let repository = repository(", build: true", &[]);
    let refused = repository.expect_exit(1, "plugin install");
    insta::assert_snapshot!(filter_output(&refused, &[]), @"
    exit 1
    --- out
    --- err
    Downloading files: file://[repo]/origin
    Downloaded files: file://[repo]/origin
    error[plugin-load]: failed to load plugin files
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: files, source: { type: git, repository: 'file://[repo]/origin', version: main, build: true }, config: { root:...
      |             ^^^^^

    error: failed to load plugins: failed to load plugin files: failed to resolve plugin binary: source.build is true, but no PulumiPlugin.yaml in [repo]/home/.cache/sc/packages/[id]/ names a runtime
      hint: set source.build to the command that builds the plugin, or source.subdir to the folder with its PulumiPlugin.yaml
    ");
    let plugins = plugins(&repository, ", build: 'echo no compiler >&2; exit 3'");
    repository.write_sections(Sections { plugins: &plugins, resources: FILE_RESOURCE, outputs: "" });
    let failed = repository.expect_exit(1, "plugin install");
    insta::assert_snapshot!(filter_output(&failed, &[]), @"
    exit 1
    --- out
    --- err
    info: plugin files: no compiler
    error[plugin-load]: failed to load plugin files
     --> .sc/stacks/reef/server.yaml:8:13
      |
    8 |   - { name: files, source: { type: git, repository: 'file://[repo]/origin', version: main, build: 'echo no compiler >&2; ...
      |             ^^^^^

    error: failed to load plugins: failed to load plugin files: failed to resolve plugin binary: cannot build the plugin: /bin/sh -c 'echo no compiler >&2; exit 3' failed (exit status 3): no compiler
      hint: a declared build changes the files of its own copy only, and connects by https only; a plugin that needs more is built by hand and declared with a source of type local
    ");
    let plugins = plugins_without_result(&repository);
    repository.write_sections(Sections { plugins: &plugins, resources: FILE_RESOURCE, outputs: "" });
    let failed = repository.expect_exit(1, "plugin install");
    assert!(failed.contains("holds neither pulumi-resource-files nor PulumiPlugin.yaml"), "{failed}");
    assert_eq!(repository.names("home/.cache/sc/work"), [""; 0]);
}

fn plugins_without_result(repository: &Repository) -> String {
    plugins(repository, ", build: 'true'")
}
