//! Checks that a text without resources is a state at all.
//!
//! A run that takes any other text for a state without resources would create every resource again. Texts with
//! resources need no such check.

use serde_json::{Map, Value};

use super::error::FormatError;

const FILE_MEMBERS: [&str; 3] = ["version", "features", "checkpoint"];
/// Old imports wrote the last two, with capital letters.
const CHECKPOINT_MEMBERS: [&str; 5] = ["stack", "config", "latest", "Stack", "Latest"];
const EXPORT_MEMBERS: [&str; 3] = ["version", "features", "deployment"];
const DEPLOYMENT_MEMBERS: [&str; 7] =
    ["manifest", "secrets_providers", "resources", "pending_operations", "metadata", "snippets", "extensions"];

/// Checks that a checkpoint without resources has what every writer of checkpoints writes: a version, and the name of
/// the stack or a deployment. Only version 3 and later can have a deployment.
pub(super) fn check_checkpoint(text: &str) -> Result<(), FormatError> {
    let file = parse(text)?;
    let file = object("", Some(&file))?;
    check_names("", file, &FILE_MEMBERS)?;
    let version = file.get("version");
    let number = version.and_then(Value::as_u64).ok_or_else(|| error("a number in `version`", version))?;
    let checkpoint = object("checkpoint", file.get("checkpoint"))?;
    check_names("checkpoint.", checkpoint, &CHECKPOINT_MEMBERS)?;
    let member = |names: [&str; 2]| names.into_iter().find_map(|name| checkpoint.get(name));
    match member(["latest", "Latest"]) {
        None => {
            let stack = member(["stack", "Stack"]);
            let is_name = stack.and_then(Value::as_str).is_some_and(|stack| !stack.is_empty());
            if is_name { Ok(()) } else { Err(error("the name of a stack in `checkpoint.stack`", stack)) }
        }
        Some(latest) if number == 0 => Err(error("no `checkpoint.latest` in version 0", Some(latest))),
        Some(latest) => check_deployment("checkpoint.latest", latest),
    }
}

/// Checks that an export without resources has a deployment, or null in its place: the export of a stack that has none.
pub(super) fn check_export(text: &str) -> Result<(), FormatError> {
    let file = parse(text)?;
    let file = object("", Some(&file))?;
    check_names("", file, &EXPORT_MEMBERS)?;
    match file.get("deployment") {
        None => Err(error("an object in `deployment`", None)),
        Some(Value::Null) => Ok(()),
        Some(deployment) => check_deployment("deployment", deployment),
    }
}

fn check_deployment(path: &str, deployment: &Value) -> Result<(), FormatError> {
    let deployment = object(path, Some(deployment))?;
    check_names(&format!("{path}."), deployment, &DEPLOYMENT_MEMBERS)?;
    object(&format!("{path}.manifest"), deployment.get("manifest"))?;
    match deployment.get("resources") {
        None | Some(Value::Array(_)) => Ok(()),
        other => Err(error(&format!("a list in `{path}.resources`"), other)),
    }
}

/// Checks that no member has the name of a known one in other letters. `pulumi` reads such a member as the known one.
fn check_names(path: &str, object: &Map<String, Value>, known: &[&str]) -> Result<(), FormatError> {
    for name in object.keys().filter(|name| !known.contains(&name.as_str())) {
        if let Some(meant) = known.iter().find(|known| known.eq_ignore_ascii_case(name)) {
            let (expected, found) = (format!("`{path}{meant}`"), format!("`{path}{name}`"));
            return Err(FormatError::NotAState { expected, found });
        }
    }
    Ok(())
}

/// Parses a text. A text without content has an error of its own.
pub(super) fn parse(text: &str) -> Result<Value, FormatError> {
    if text.trim_ascii().is_empty() {
        let (expected, found) = ("a JSON object".to_owned(), "an empty text".to_owned());
        return Err(FormatError::NotAState { expected, found });
    }
    serde_json::from_str(text).map_err(FormatError::Malformed)
}

/// Returns the object at a path; the empty path is that of the whole text.
pub(super) fn object<'v>(path: &str, value: Option<&'v Value>) -> Result<&'v Map<String, Value>, FormatError> {
    let expected = if path.is_empty() { "a JSON object".to_owned() } else { format!("an object in `{path}`") };
    value.and_then(Value::as_object).ok_or_else(|| error(&expected, value))
}

fn error(expected: &str, found: Option<&Value>) -> FormatError {
    let found = match found {
        None => "nothing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(text)) if text.is_empty() => "an empty text",
        Some(Value::String(_)) => "a text",
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "an object",
    };
    FormatError::NotAState { expected: expected.to_owned(), found: found.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::read::StoredText;

    const STATE: &str = "a state";

    fn check<'t>(text: &'t str, parse: fn(&'t str) -> Result<StoredText<'t>, super::FormatError>) -> String {
        match parse(text) {
            Ok(_) => STATE.to_owned(),
            Err(error) => {
                let chain = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
                chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
            }
        }
    }

    /// Writers: `stack init` writes version 0 with the name of the stack, then version 3 with a manifest. An import of
    /// `"deployment": null` by `sc`, and a rename of a stack without deployment, write version 3 with the name only.
    /// State edits and a destroy write a manifest and no resources.
    ///
    /// Shows: state.md#files "A text without resources is a state only if `pulumi` or `sc` writes such a text."
    #[test]
    fn only_checkpoints_that_a_program_writes_are_states_without_resources() {
        let table = [
            (r#"{"version":0,"checkpoint":{"stack":"organization/reef/dev"}}"#, STATE),
            (r#"{"version":3,"checkpoint":{"stack":"organization/reef/dev"}}"#, STATE),
            (r#"{"version":3,"checkpoint":{"Stack":"organization/reef/dev"}}"#, STATE),
            (r#" {"checkpoint": {"stack": "dev", "config": {}}, "version": 4} "#, STATE),
            (r#"{"version":3,"checkpoint":{"stack":"dev","latest":{"manifest":{},"metadata":{}}}}"#, STATE),
            (r#"{"version":3,"checkpoint":{"latest":{"manifest":{}}}}"#, STATE),
            (r#"{"version":3,"checkpoint":{"Stack":"dev","Latest":{"manifest":{}}}}"#, STATE),
            (r#"{"version":3,"checkpoint":{"stack":"dev","latest":{"manifest":{},"resources":[]}}}"#, STATE),
            (r#"{"version":3,"checkpoint":{"stack":"dev","latest":{"manifest":{},"new":1}},"new":1}"#, STATE),
            ("", "expected a JSON object, found an empty text"),
            (" \n\t", "expected a JSON object, found an empty text"),
            ("null", "expected a JSON object, found null"),
            ("[]", "expected a JSON object, found a list"),
            (r#"[3,null,{"stack":"dev"}]"#, "expected a JSON object, found a list"),
            (r#""""#, "expected a JSON object, found an empty text"),
            ("{}", "expected a number in `version`, found nothing"),
            (r#"{"stack":"dev"}"#, "expected a number in `version`, found nothing"),
            (r#"{"checkpoint":{"stack":"dev"}}"#, "expected a number in `version`, found nothing"),
            (r#"{"Version":3,"checkpoint":{"stack":"dev"}}"#, "expected `version`, found `Version`"),
            (r#"{"version":null,"checkpoint":{"stack":"dev"}}"#, "expected a number in `version`, found null"),
            (r#"{"version":0}"#, "expected an object in `checkpoint`, found nothing"),
            (r#"{"version":0,"checkpoint":{}}"#, "expected the name of a stack in `checkpoint.stack`, found nothing"),
            (
                r#"{"version":0,"checkpoint":{"stack":"dev","latest":{"manifest":{},"resources":[{"urn":"u"}]}}}"#,
                "expected no `checkpoint.latest` in version 0, found an object",
            ),
            (r#"{"version":3}"#, "expected an object in `checkpoint`, found nothing"),
            (r#"{"version":4,"checkpoint":null}"#, "expected an object in `checkpoint`, found null"),
            (r#"{"version":3,"checkpoint":["dev",null]}"#, "expected an object in `checkpoint`, found a list"),
            (r#"{"version":3,"Checkpoint":{"stack":"dev"}}"#, "expected `checkpoint`, found `Checkpoint`"),
            (r#"{"version":3,"checkpoint":{}}"#, "expected the name of a stack in `checkpoint.stack`, found nothing"),
            (
                r#"{"version":3,"checkpoint":{"stack":""}}"#,
                "expected the name of a stack in `checkpoint.stack`, found an empty text",
            ),
            (r#"{"version":3,"checkpoint":{"latest":null}}"#, "an object in `checkpoint.latest`, found null"),
            (r#"{"version":3,"checkpoint":{"stack":"dev","latest":null}}"#, "`checkpoint.latest`, found null"),
            (
                r#"{"version":3,"checkpoint":{"stack":"dev","LATEST":{}}}"#,
                "`checkpoint.latest`, found `checkpoint.LATEST`",
            ),
            (r#"{"version":3,"checkpoint":{"latest":{}}}"#, "an object in `checkpoint.latest.manifest`, found nothing"),
            (
                r#"{"version":3,"checkpoint":{"stack":"dev","latest":{"manifest":null,"resources":[]}}}"#,
                "an object in `checkpoint.latest.manifest`, found null",
            ),
            (
                r#"{"version":3,"checkpoint":{"stack":"dev","latest":{"manifest":{},"resources":null}}}"#,
                "a list in `checkpoint.latest.resources`, found null",
            ),
            (
                r#"{"version":3,"checkpoint":{"stack":"dev","latest":{"manifest":{},"Resources":[{"urn":"u"}]}}}"#,
                "expected `checkpoint.latest.resources`, found `checkpoint.latest.Resources`",
            ),
            (r#"{"version":"3","checkpoint":{"stack":"dev"}}"#, "it is not a checkpoint: invalid type: string"),
            (r#"{"version":3,"checkpoint":"dev"}"#, "it is not a checkpoint: invalid type: string"),
            (r#"{"version":3,"checkpoint":{"stack":7}}"#, "it is not a checkpoint: invalid type: integer"),
            (r#"{"version":3,"checkpoint":{"latest":{"manifest":{},"resources":{}}}}"#, "it is not a checkpoint: "),
            (r#"{"version":3,"checkpoint":{"stack":"a"},"checkpoint":{"stack":"b"}}"#, "duplicate field `checkpoint`"),
            (r#"{"version":0,"checkpoint":{"stack":"a"},"checkpoint":{"stack":"b"}}"#, "duplicate field `checkpoint`"),
            (r#"{"version":0,"version":3,"checkpoint":{"stack":"b"}}"#, "duplicate field `version`"),
        ];
        for (text, expected) in table {
            let found = check(text, StoredText::parse);
            assert!(if expected == STATE { found == STATE } else { found.contains(expected) }, "{text}: {found}");
        }
    }

    #[test]
    fn export_without_resources_needs_a_deployment_or_null() {
        let table = [
            (r#"{"version":3,"deployment":null}"#, STATE),
            (r#"{"version":3,"deployment":{"manifest":{}}}"#, STATE),
            (r#"{"version":4,"features":["taint"],"deployment":{"manifest":{},"resources":[]}}"#, STATE),
            ("", "expected a JSON object, found an empty text"),
            ("null", "expected a JSON object, found null"),
            ("[]", "expected a JSON object, found a list"),
            ("{}", "which is too old"),
            (r#"{"version":3}"#, "expected an object in `deployment`, found nothing"),
            (r#"{"version":3,"Deployment":{"manifest":{}}}"#, "expected `deployment`, found `Deployment`"),
            (r#"{"version":3,"checkpoint":{"stack":"dev"}}"#, "expected an object in `deployment`, found nothing"),
            (r#"{"version":3,"deployment":{}}"#, "expected an object in `deployment.manifest`, found nothing"),
            (r#"{"version":3,"deployment":{"manifest":{},"resources":null}}"#, "`deployment.resources`, found null"),
            (r#"{"version":3,"deployment":{"manifest":{},"RESOURCES":[]}}"#, "found `deployment.RESOURCES`"),
        ];
        for (text, expected) in table {
            let found = check(text, StoredText::parse_export);
            assert!(if expected == STATE { found == STATE } else { found.contains(expected) }, "{text}: {found}");
        }
    }
}
