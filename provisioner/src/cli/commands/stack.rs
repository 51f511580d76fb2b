//! `sc stack`: what is known of stacks.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use pulumi_proto::property::PropertyMap;

use crate::cli::args::{DirArgs, GlobalArgs, ShowArgs, StackArgs};
use crate::cli::display::{Line, Secrets, Shown, map_to_json, values};
use crate::cli::exit::Exit;
use crate::cli::ui::Ui;

/// List stacks, show their outputs, export their state
#[derive(Debug, Args)]
pub(crate) struct StackCommand {
    #[command(subcommand)]
    pub(crate) verb: StackVerb,
}

/// What is done with stacks.
#[derive(Debug, Subcommand)]
pub(crate) enum StackVerb {
    /// List the stacks: how many resources each has, when it was last changed, whether it is locked
    Ls(LsArgs),
    Outputs(OutputsArgs),
    Export(ExportArgs),
}

/// Arguments of `sc stack ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) dir: DirArgs,
}

/// Show the outputs of a stack
///
/// On a terminal one line for each; into a pipe, or with --json, one JSON object `{"stackName": …, "outputs": {…}}`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Take one output into a script:
      sc stack outputs -s aquarium --show-secrets | jq -r '.outputs.url'")]
pub(crate) struct OutputsArgs {
    #[command(flatten)]
    pub(crate) stack: StackArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// Write the state of a stack as `pulumi stack import` takes it
///
/// Secrets stay encrypted unless --show-secrets is given.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Hand a stack over to pulumi:
      sc stack export -s aquarium | pulumi stack import --stack aquarium")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) stack: StackArgs,
    /// File to write instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// Does it.
pub(crate) async fn run(_ui: &Ui, _global: &GlobalArgs, _args: &StackCommand) -> anyhow::Result<Exit> {
    Err(super::unfinished("stack"))
}

/// What `sc stack outputs` prints.
fn outputs_text(ui: &Ui, stack_name: &str, outputs: &PropertyMap, secrets: Secrets) -> Vec<Line> {
    if ui.results_are_for_programs() {
        let outputs = map_to_json(&Shown::of_map(outputs, secrets));
        return vec![Line::plain(serde_json::json!({ "stackName": stack_name, "outputs": outputs }).to_string())];
    }
    values(outputs, ui.diff_options(secrets))
}

#[cfg(test)]
mod tests {
    use pulumi_proto::property::PropertyValue;

    use super::*;
    use crate::cli::args::ColorArg;
    use crate::cli::ui::Facts;

    fn check(stdout_is_terminal: bool, secrets: Secrets) -> String {
        let global = GlobalArgs { verbose: false, profile: None, cwd: None, color: ColorArg::Never, json: false };
        let facts = Facts { stdout_is_terminal, ..Facts::default() };
        let outputs = PropertyMap::from([
            ("hosts".to_owned(), PropertyValue::List(vec!["a".into(), "b".into()])),
            ("password".to_owned(), PropertyValue::secret("hush".into())),
            ("ports".to_owned(), PropertyValue::Map([("http".to_owned(), 80.0.into())].into())),
            ("url".to_owned(), "https://reef.example".into()),
        ]);
        let lines = outputs_text(&Ui::new(&global, &facts), "reef/aquarium", &outputs, secrets);
        lines.iter().map(|line| line.render(false) + "\n").collect()
    }

    #[test]
    fn on_a_terminal_outputs_are_lines() {
        insta::assert_snapshot!(check(true, Secrets::Masked), @r#"
          hosts: ["a", "b"]
          password: [secret]
          ports:
            http: 80
          url: "https://reef.example"
        "#);
    }

    #[test]
    fn into_a_pipe_outputs_are_one_json_object() {
        insta::assert_snapshot!(check(false, Secrets::Masked), @r#"{"stackName":"reef/aquarium","outputs":{"hosts":["a","b"],"password":"[secret]","ports":{"http":80},"url":"https://reef.example"}}"#);
        insta::assert_snapshot!(check(false, Secrets::Shown), @r#"{"stackName":"reef/aquarium","outputs":{"hosts":["a","b"],"password":"hush","ports":{"http":80},"url":"https://reef.example"}}"#);
    }
}
