//! Decision table of the values of references, with and without a default.

use engine::{ProgramEnd, RegistrationResult};
use pulumi_proto::property::{PropertyMap, PropertyValue};

use crate::fake::{FakeDeployment, Run, StackProgram, urn};

/// Output of the referenced resource.
#[derive(Clone, Copy, Debug)]
enum Output {
    Missing,
    Null,
    Text,
    Unknown,
    SecretNull,
    SecretText,
    /// A secret map without the key of the reference.
    SecretMap,
    /// A secret map whose value at the key is null.
    SecretMapOfNull,
    /// A list, which ends before the index of the reference.
    List,
}

impl Output {
    fn value(self) -> Option<PropertyValue> {
        let map = |value| PropertyValue::Map(PropertyMap::from([("k".to_owned(), value)]));
        Some(match self {
            Self::Missing => return None,
            Self::Null => PropertyValue::Null,
            Self::Text => "t".into(),
            Self::Unknown => PropertyValue::UNKNOWN,
            Self::SecretNull => PropertyValue::secret(PropertyValue::Null),
            Self::SecretText => PropertyValue::secret("t".into()),
            Self::SecretMap => PropertyValue::secret(PropertyValue::Map(PropertyMap::new())),
            Self::SecretMapOfNull => PropertyValue::secret(map(PropertyValue::Null)),
            Self::List => PropertyValue::List(vec!["t".into()]),
        })
    }

    /// Path of the reference.
    fn path(self) -> &'static str {
        match self {
            Self::SecretMap | Self::SecretMapOfNull => "out.k",
            Self::List => "out.1",
            _ => "out",
        }
    }
}

/// State of the referenced resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Situation {
    Update,
    /// Preview of a resource that would be created or changed.
    Preview,
    /// Preview of a resource that would not be changed.
    UnchangedInPreview,
    /// The registration had no effect, for example because the resource is out of scope.
    Skipped,
}

/// Registers a resource with an input `x`. Returns the input, or the error.
async fn resolve(situation: Situation, output: Output, text: &str) -> String {
    let text = text.replace("OUT", output.path());
    let subject = StackProgram::resources(
        &format!("a: {{ type: 'p:m:A' }}\nb: {{ type: 'p:m:B', config: {{ x: '{text}' }} }}"),
        "",
    );
    let mut deployment = FakeDeployment::default();
    match situation {
        Situation::Update => {}
        Situation::Preview => deployment.run = Run::Preview,
        Situation::UnchangedInPreview => (deployment.run, deployment.unchanged) = (Run::Preview, vec!["a--e"]),
        Situation::Skipped => deployment.results = [("a--e", RegistrationResult::Skipped)].into(),
    }
    if let Some(value) = output.value() {
        deployment = deployment.with("a--e", "out", value);
    }
    let result = subject.program.run(&deployment, &deployment).await;
    if result.end == ProgramEnd::Failed {
        return result.diagnostics.iter().map(|diagnostic| diagnostic.code.0).collect();
    }
    let b = deployment.goal("b--e");
    let a = urn(&deployment.goal("a--e"));
    assert_eq!((&b.dependencies[..], &b.property_dependencies["x"][..]), (&[a.clone()][..], &[a][..]));
    match b.inputs.get("x") {
        None => "none".to_owned(),
        Some(PropertyValue::Unknown(_)) => "unknown".to_owned(),
        Some(PropertyValue::String(text)) => text.clone(),
        Some(PropertyValue::Secret(secret)) => match secret.expose() {
            PropertyValue::Null => "secret null".to_owned(),
            value => format!("secret {}", value.as_str().unwrap()),
        },
        other => panic!("{other:?}"),
    }
}

/// Shows: server-yaml.md#placeholders "stands for the text `DEFAULT` if the output does not exist or is null"
#[tokio::test]
async fn default_takes_the_place_of_a_missing_or_null_output() {
    use Output::*;
    use Situation::*;
    // The value of a reference without a default, with a default, and with a default within a text.
    for (situation, output, expected) in [
        (Update, Missing, ["unknown-output", "d", "(d)"]),
        (Update, Null, ["none", "d", "(d)"]),
        (Update, Text, ["t", "t", "(t)"]),
        (Update, SecretNull, ["secret null", "secret d", "secret (d)"]),
        (Update, SecretText, ["secret t", "secret t", "secret (t)"]),
        (Update, SecretMap, ["unknown-output", "secret d", "secret (d)"]),
        (Update, SecretMapOfNull, ["secret null", "secret d", "secret (d)"]),
        (Update, List, ["unknown-output", "d", "(d)"]),
        (Preview, Missing, ["unknown", "unknown", "unknown"]),
        (Preview, Null, ["none", "d", "(d)"]),
        (Preview, Text, ["t", "t", "(t)"]),
        (Preview, Unknown, ["unknown", "unknown", "unknown"]),
        (Preview, SecretNull, ["secret null", "secret d", "secret (d)"]),
        (Preview, SecretMap, ["unknown", "unknown", "unknown"]),
        (Preview, List, ["unknown", "unknown", "unknown"]),
        (UnchangedInPreview, Missing, ["unknown-output", "d", "(d)"]),
        (UnchangedInPreview, Unknown, ["unknown", "unknown", "unknown"]),
        (UnchangedInPreview, SecretMap, ["unknown-output", "secret d", "secret (d)"]),
        // Outside of a preview, an unknown input is omitted.
        (Skipped, Missing, ["none", "none", "none"]),
    ] {
        let texts = ["${resource:a.OUT}", "${resource:a.OUT:d}", "(${resource:a.OUT:d})"];
        for (text, expected) in texts.into_iter().zip(expected) {
            assert_eq!(resolve(situation, output, text).await, expected, "{situation:?} {output:?} {text}");
        }
    }
    // A default may be empty and may contain `:`.
    assert_eq!(resolve(Update, Missing, "${resource:a.OUT:}").await, "");
    assert_eq!(resolve(Update, Missing, "${resource:a.OUT:http://d}").await, "http://d");
    // A null within a text is that of Pulumi's YAML language, recorded with pulumi-language-yaml 1.38.1.
    assert_eq!(resolve(Update, Null, "(${resource:a.OUT})").await, "(<nil>)");
    assert_eq!(resolve(Update, SecretNull, "(${resource:a.OUT})").await, "secret (<nil>)");
}
