//! `sc stack outputs`: shows the outputs of a stack, or one of them.

use bridge::error::closest;
use bridge::message_text::MessageText;
use clap::Args;
use pulumi_proto::property::{PropertyMap, PropertyValue};
use state::StackView;

use crate::cli::access::{access, opening_text};
use crate::cli::args::{GlobalArgs, ShowArgs, StackArgs};
use crate::cli::display::{DisplayValue, Line, Redactor, Secrets, map_to_json, values};
use crate::cli::exit::{CliError, Exit};
use crate::cli::output::Output;
use crate::cli::stacks::{not_provisioned, only, read_stack_of_state};
use crate::cli::ui::Ui;
use crate::cli::waits::show_while;

/// Show the outputs of a stack, or the value of one output
///
/// Without a name, prints one line for each output on a terminal; into a pipe, or with --json, one JSON object
/// `{"stackName": …, "outputs": {…}}`.
///
/// With a name, prints only the value of that output: a text as it is, any other value as JSON. With --json, a text is
/// printed as JSON as well. A secret is printed as `[secret]` unless --show-secrets is given.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Use one output in a script:
      curl \"$(sc stack outputs -s aquarium url)\"
  Use a secret output:
      sc stack outputs -s aquarium password --show-secrets")]
pub(crate) struct OutputsArgs {
    /// Output to print [default: all]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    stack: StackArgs,
    #[command(flatten)]
    show: ShowArgs,
}

/// Runs the command.
pub(crate) async fn run(ui: &Ui, global: &GlobalArgs, args: &OutputsArgs) -> anyhow::Result<Exit> {
    let stacks = read_stack_of_state(ui, global, &args.stack)?;
    let access = access(&ui.output, &stacks, only(&stacks)?).await?;
    let view = show_while(&ui.output, &opening_text(access.stack.stack()), StackView::open(&access)).await?;
    if let Some(conflict) = &view.conflict {
        ui.output.warn(format_args!("these outputs are from the checkpoint only: {conflict}"));
    }
    let Some(snapshot) = view.snapshot else { return Err(not_provisioned(&access.stack).into()) };
    snapshot.resources.iter().for_each(|resource| ui.output.masker().add_resource(resource));
    let mut outputs = snapshot.stack_outputs().cloned().unwrap_or_default();
    let secrets = args.show.secrets();
    let mut redactor = Redactor::new(ui.output.masker(), secrets);
    let Some(name) = &args.name else {
        redactor.properties(&mut outputs);
        ui.output.print(&outputs_text(&ui.output, &access.stack.to_string(), &outputs, secrets))?;
        return Ok(Exit::Done);
    };
    let mut output = [(String::new(), find_output(&outputs, name)?.clone())].into();
    redactor.properties(&mut output);
    let value = output.into_values().next().unwrap_or(PropertyValue::Null);
    ui.output.print_text(&(value_text(&value, secrets, ui.output.results_are_json()) + "\n"))?;
    if secrets == Secrets::Masked && value.contains_secrets() {
        ui.output.print_messages(&[Line::plain(format!("the output {name} is secret: --show-secrets shows it"))]);
    }
    Ok(Exit::Done)
}

fn outputs_text(output: &Output, stack_name: &str, outputs: &PropertyMap, secrets: Secrets) -> Vec<Line> {
    if output.results_are_for_programs() {
        let outputs = map_to_json(&DisplayValue::of_map(outputs, secrets));
        return vec![Line::plain(serde_json::json!({ "stackName": stack_name, "outputs": outputs }).to_string())];
    }
    values(outputs, output.diff_options(secrets))
}

fn find_output<'o>(outputs: &'o PropertyMap, name: &str) -> Result<&'o PropertyValue, CliError> {
    outputs.get(name).ok_or_else(|| {
        let names: Vec<&str> = outputs.keys().map(String::as_str).collect();
        let hint = match closest(name, names.iter().copied()) {
            Some(close) => MessageText::new(format_args!("did you mean {close}?")),
            None if names.is_empty() => "the stack has no outputs".into(),
            None => MessageText::new(format_args!("the outputs are: {}", names.join(", "))),
        };
        CliError::failed(format_args!("the stack has no output {name}"), hint)
    })
}

/// Returns the bare value of an output: a text as it is, any other value as JSON. With `as_json`, a text as JSON, too.
fn value_text(value: &PropertyValue, secrets: Secrets, as_json: bool) -> String {
    match DisplayValue::of(value, secrets) {
        DisplayValue::Text(text) | DisplayValue::Placeholder(text) if !as_json => text,
        value => value.to_json().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use pulumi_proto::property::PropertyValue;

    use super::*;
    use crate::cli::output::StreamProperties;

    fn check(stdout_is_terminal: bool, secrets: Secrets) -> String {
        let cli = <crate::cli::commands::Cli as clap::Parser>::parse_from(["sc", "--color=never", "stack", "ls"]);
        let global = cli.global;
        let streams = StreamProperties { stdout_is_terminal, ..StreamProperties::default() };
        let outputs = PropertyMap::from([
            ("hosts".to_owned(), PropertyValue::List(vec!["a".into(), "b".into()])),
            ("password".to_owned(), PropertyValue::secret("hush".into())),
            ("ports".to_owned(), PropertyValue::Map([("http".to_owned(), 80.0.into())].into())),
            ("url".to_owned(), "https://reef.example".into()),
        ]);
        let lines = outputs_text(&Output::new(&global, &streams), "reef/aquarium", &outputs, secrets);
        lines.iter().map(|line| line.render(false) + "\n").collect()
    }

    #[test]
    fn outputs_on_a_terminal_are_lines() {
        insta::assert_snapshot!(check(true, Secrets::Masked), @r#"
          hosts: ["a", "b"]
          password: [secret]
          ports:
            http: 80
          url: "https://reef.example"
        "#);
    }

    #[test]
    fn outputs_in_a_pipe_are_one_json_object() {
        insta::assert_snapshot!(check(false, Secrets::Masked), @r#"{"stackName":"reef/aquarium","outputs":{"hosts":["a","b"],"password":"[secret]","ports":{"http":80},"url":"https://reef.example"}}"#);
        insta::assert_snapshot!(check(false, Secrets::Shown), @r#"{"stackName":"reef/aquarium","outputs":{"hosts":["a","b"],"password":"hush","ports":{"http":80},"url":"https://reef.example"}}"#);
    }

    /// Shows: comparison.md#for-pulumi-users "a single output is printed bare: a text as it is, any other value as
    ///   JSON"
    #[test]
    fn single_output_is_a_bare_text_or_json() {
        let list = PropertyValue::List(vec!["a".into(), PropertyValue::secret("hush".into())]);
        let table = [
            (PropertyValue::from("https://reef.example\n"), "https://reef.example\n", r#""https://reef.example\n""#),
            (80.0.into(), "80", "80"),
            (PropertyValue::Null, "null", "null"),
            (list, r#"["a","[secret]"]"#, r#"["a","[secret]"]"#),
            (PropertyValue::secret("hush".into()), "[secret]", r#""[secret]""#),
        ];
        for (value, text, json) in table {
            assert_eq!(value_text(&value, Secrets::Masked, false), text);
            assert_eq!(value_text(&value, Secrets::Masked, true), json);
        }
        assert_eq!(value_text(&PropertyValue::secret("hush".into()), Secrets::Shown, false), "hush");
    }
}
