//! `sc init`: writes the files of a first stack.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path};

use anyhow::Context as _;
use bridge::fs::{Access, MAX_DOCUMENT_BYTES, create_folders, place_below, read_if_exists, utf8, write_atomically};
use bridge::shell::{option, quoted};
use clap::{Args, ValueEnum};
use config::Repository;
use provisioner::operation::check_owner;
use provisioner::registry::recipes;
use provisioner::schema::files as files_of_schemas;
use state::store::StackReference;

use crate::cli::args::GlobalArgs;
use crate::cli::display::Line;
use crate::cli::exit::{CliError, Exit};
use crate::cli::output::Output;
use crate::cli::process::{identity, process_context, working_folder};
use crate::cli::profile_settings::ProfileSettings;

/// Folder of the JSON Schemas in the first line of a server.yaml, and in the next steps.
const SCHEMAS: &str = "schemas";

/// File in that folder with the schema of a server.yaml.
const SERVER_SCHEMA: &str = "server.schema.json";

/// Program of the plugin in the template `local`.
const EXAMPLE_PLUGIN: &str = "plugins/pulumi-resource-files";

/// Folder of the stacks, if no profile names another.
const STACKS_FOLDER: &str = ".sc/stacks";

/// Write the files of a first stack: profile, server.yaml and .gitignore
///
/// Writes `.sc/cfg.<PROFILE>.yaml`, `.sc/stacks/<STACK>/server.yaml`, `schemas/server.schema.json` for editors and lines of
/// `.gitignore`, at the root of the git repository or, outside of one, in the working folder. Existing files are not overwritten. Nothing is downloaded or
/// provisioned.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Try sc without an account in any cloud:
      sc init
      export PULUMI_CONFIG_PASSPHRASE=…
      sc provision

  Try it without a network:
      sc init --template local

  Write a stack with a bucket on AWS:
      sc init --template aws --stack media")]
pub(crate) struct InitArgs {
    /// Content of the stack
    #[arg(short, long, value_enum, default_value_t, value_name = "TEMPLATE")]
    template: Template,
    /// Name of the stack, and of its folder
    #[arg(short, long, value_name = "STACK", default_value = "main")]
    stack: String,
}

/// Content of a new stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Template {
    /// A random name and a password; needs no account
    #[default]
    Random,
    /// A file and a password, by a plugin that is a part of sc; needs no network
    Local,
    /// A bucket on S3
    Aws,
    /// A bucket on Google Cloud Storage
    Gcp,
    /// No plugins and no resources
    Empty,
}

impl Template {
    /// Returns the server.yaml, without the line for editors.
    fn text(self) -> &'static str {
        match self {
            Self::Random => include_str!("init/random.yaml"),
            Self::Local => include_str!("init/local.yaml"),
            Self::Aws => include_str!("init/aws.yaml"),
            Self::Gcp => include_str!("init/gcp.yaml"),
            Self::Empty => include_str!("init/empty.yaml"),
        }
    }
}

/// Runs the command.
pub(crate) fn run(output: &Output, global: &GlobalArgs, args: &InitArgs) -> anyhow::Result<Exit> {
    let folder = working_folder(global.cwd.as_deref())?;
    let repository = Repository::discover(&folder);
    check_owner(&repository, &identity(&process_context().environment))?;
    let root = &repository.root;
    secrets_store::remove_abandoned_files(root);
    let settings = ProfileSettings::of(&repository);
    let hint = "a name has letters, digits, `-`, `_` and `.`";
    StackReference::new(&settings.project, &args.stack).map_err(|error| {
        CliError::usage(format_args!("{:?} cannot be the name of a stack: {error}", args.stack), hint)
    })?;
    let profile = global.profile.as_deref().filter(|profile| !profile.is_empty()).unwrap_or("default");
    let stacks = settings.stacks_dir.as_deref().unwrap_or(STACKS_FOLDER).trim_end_matches('/');
    let server_yaml = format!("{stacks}/{}/server.yaml", args.stack);
    // Files that do not belong into git: the state, and the secrets of stacks.
    let ignored = ["/.sc/state/".to_owned(), format!("/{}/*/secrets.yaml", stacks.trim_start_matches("./"))];
    let mut files = Files { root, written: Vec::new(), extended: Vec::new(), kept: Vec::new() };
    let profile_file = format!(".sc/cfg.{profile}.yaml");
    files.write(&profile_file, &settings.text())?;
    let text = text_of_server_yaml(args.template, &server_yaml);
    files.write(&server_yaml, &text)?;
    if args.template == Template::Local {
        files.write_program(EXAMPLE_PLUGIN, &example_plugin())?;
    }
    // The types of plugins are added by `sc schema-gen`, which starts the plugins.
    let schemas = files_of_schemas(&recipes::built_in_types(), None);
    if let Some(schema) = schemas.get(SERVER_SCHEMA) {
        files.write(&format!("{SCHEMAS}/{SERVER_SCHEMA}"), schema)?;
    }
    files.add_lines(".gitignore", &ignored)?;
    if output.results_are_json() {
        let json = serde_json::json!({ "root": root, "written": files.written, "extended": files.extended, "kept": files.kept });
        output.print(&[Line::plain(json.to_string())])?;
        return Ok(Exit::Done);
    }
    let origin = |path: &str| if path == profile_file { settings.origin() } else { String::new() };
    let written = files.written.iter().map(|path| format!("wrote {path}{}", origin(path)));
    let extended = files.extended.iter().map(|path| format!("extended {path}"));
    let kept = files.kept.iter().map(|path| format!("kept {path}, which exists"));
    output.print(&written.chain(extended).chain(kept).map(Line::plain).collect::<Vec<_>>())?;
    output.print_messages(&next_steps(args.template, profile));
    Ok(Exit::Done)
}

/// Returns the server.yaml at a path, which is relative to the root. Its first line names the schema relative to it.
fn text_of_server_yaml(template: Template, path: &str) -> String {
    let folders = Path::new(path).parent().into_iter().flat_map(Path::components);
    let up = "../".repeat(folders.filter(|component| matches!(component, Component::Normal(_))).count());
    format!("# yaml-language-server: $schema={up}{SCHEMAS}/{SERVER_SCHEMA}\n{}", template.text())
}

/// Returns a program that serves the provider `files`, which is a part of this program: at the place where it is now, else on PATH.
fn example_plugin() -> String {
    let program = std::env::current_exe().unwrap_or_default().display().to_string();
    let program = quoted(&program);
    format!(
        "#!/bin/sh\n# The provider `files`, an example that is a part of sc.\nprogram={program}\n[ -x \"$program\" ] || program=sc\nexec \"$program\" plugin serve-example \"$@\"\n"
    )
}

fn next_steps(template: Template, profile: &str) -> Vec<Line> {
    let option = if profile == "default" { String::new() } else { format!(" {}", option("-p", profile)) };
    let install = (!matches!(template, Template::Empty | Template::Local))
        .then(|| (format!("sc plugin install{option}"), "downloads the plugin, and prints the checksum that pins it"));
    let steps =
        [("export PULUMI_CONFIG_PASSPHRASE=…".to_owned(), "chooses the passphrase of the secrets in the state")]
            .into_iter()
            .chain(install)
            .chain([
                (format!("sc preview{option}"), "shows the changes"),
                (format!("sc provision{option}"), "makes them"),
                (
                    format!("sc schema-gen {SCHEMAS}{option}"),
                    "adds the types of plugins to the JSON Schema for editors",
                ),
            ]);
    let line = |(command, effect): (String, &str)| Line::plain(format!("  {command}")).pad_to(40).text(effect);
    std::iter::once(Line::plain("next:")).chain(steps.map(line)).collect()
}

/// Files that the command writes, by their paths relative to the root.
struct Files<'r> {
    root: &'r Path,
    written: Vec<String>,
    extended: Vec<String>,
    kept: Vec<String>,
}

impl Files<'_> {
    /// Writes a file, unless there is one already.
    fn write(&mut self, path: &str, text: &str) -> anyhow::Result<()> {
        let target = self.root.join(path);
        if target.symlink_metadata().is_ok() {
            self.kept.push(path.to_owned());
            return Ok(());
        }
        write_file(&place_below(self.root, Path::new(path))?, text)?;
        self.written.push(path.to_owned());
        Ok(())
    }

    /// Writes a program, unless there is a file already.
    fn write_program(&mut self, path: &str, text: &str) -> anyhow::Result<()> {
        self.write(path, text)?;
        if self.written.iter().any(|written| written == path) {
            let target = place_below(self.root, Path::new(path))?;
            let executable = fs::set_permissions(&target, Permissions::from_mode(0o755));
            executable.with_context(|| format!("{} cannot be made executable", target.display()))?;
        }
        Ok(())
    }

    /// Appends the missing ones of these lines to a file.
    fn add_lines(&mut self, path: &str, lines: &[String]) -> anyhow::Result<()> {
        // A link inside of the repository stays a link; one that leads out of it may lead to any file of the user.
        let target = place_below(self.root, Path::new(path))?;
        let existing = read_if_exists(&target, MAX_DOCUMENT_BYTES)?.map(utf8).transpose();
        let existing = existing.with_context(|| format!("{} cannot be read", target.display()))?.unwrap_or_default();
        let missing: Vec<&str> = lines
            .iter()
            .map(String::as_str)
            .filter(|line| !existing.lines().any(|known| known.trim_matches('/') == line.trim_matches('/')))
            .collect();
        if missing.is_empty() {
            self.kept.push(path.to_owned());
            return Ok(());
        }
        let joint = if existing.is_empty() || existing.ends_with('\n') { "" } else { "\n" };
        write_file(&target, &format!("{existing}{joint}{}\n", missing.join("\n")))?;
        let list = if existing.is_empty() { &mut self.written } else { &mut self.extended };
        list.push(path.to_owned());
        Ok(())
    }
}

fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    create_folders(path.parent().context("the path of a file has no folder")?)?;
    write_atomically(path, text.as_bytes(), Access::Shared)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_commands_quote_the_name_of_the_profile() {
        let lines: Vec<String> = next_steps(Template::Empty, "-a b").iter().map(|line| line.render(false)).collect();
        assert!(lines.iter().any(|line| line.starts_with("  sc preview -p='-a b' ")), "{lines:?}");
    }
}
