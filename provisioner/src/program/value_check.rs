//! Check of the kinds of values against the schema: texts, assets and archives, and scalars whose reading may surprise.

use bridge::host::ValueKind;
use bridge::message_text::MessageText;
use config::asset_function::AssetFunction;
use config::diagnostics::{Code, Diagnostic};
use config::tree::{Node, Value};
use config::values::SurprisingReading;
use engine::events::Message;
use pulumi_proto::property::path::{Element, PropertyPath};

use super::schema_findings::{SchemaFindings, SchemaWarning};

const ASSET: Code = Code("asset");

/// Place of a value in messages.
#[derive(Clone, Copy)]
pub(super) struct CheckedValue<'v> {
    /// Words for the type; `None` without a schema.
    pub(super) subject: Option<&'v str>,
    /// True if scalars whose reading may surprise are reported. The reader of the file reports those of a plugin's `config`.
    pub(super) checks_scalars: bool,
    /// Creates a warning at the resource or the provider.
    pub(super) warning: &'v dyn Fn(MessageText) -> Message,
}

impl CheckedValue<'_> {
    /// Checks a value, and the values in it, against the kind that the schema has. `None`: the schema has several kinds, any, or
    /// objects.
    pub(super) fn check(
        self,
        node: &Node,
        path: &PropertyPath,
        kind: Option<&ValueKind>,
        findings: &mut SchemaFindings,
    ) {
        let function = AssetFunction::of(node);
        match (kind, &node.value) {
            (Some(ValueKind::Asset | ValueKind::Archive), _) => {
                findings.errors.extend(self.asset_error(node, path, kind == Some(&ValueKind::Archive)));
            }
            (Some(kind), _) if function.is_some() => {
                findings.errors.push(self.misplaced_asset_error(node, path, kind));
            }
            (None, _) if function.is_some() => {}
            (_, Value::Scalar(scalar)) => {
                let reading = SurprisingReading::of(scalar).filter(|_| self.checks_scalars);
                let is_expected = |reading: &SurprisingReading| match kind {
                    // It is sent as it is written.
                    Some(ValueKind::Text) => true,
                    Some(ValueKind::Plain) => matches!(reading, SurprisingReading::OtherText(_)),
                    _ => false,
                };
                if let Some(reading) = reading.filter(|reading| !is_expected(reading)) {
                    self.warn_of_reading(&scalar.text, &reading, path, findings);
                }
            }
            (_, Value::Interpolated(_)) => {}
            (_, Value::Sequence(items)) => {
                let kind = if let Some(ValueKind::List(kind)) = kind { Some(&**kind) } else { None };
                for (index, item) in items.iter().enumerate() {
                    self.check(item, &path.child(Element::Index(index)), kind, findings);
                }
            }
            (_, Value::Mapping(mapping)) => {
                let kind = if let Some(ValueKind::Map(kind)) = kind { Some(&**kind) } else { None };
                for entry in mapping {
                    self.check(&entry.value, &path.child(Element::Key(entry.key.clone())), kind, findings);
                }
            }
        }
    }

    fn warn_of_reading(
        self,
        written: &str,
        reading: &SurprisingReading,
        path: &PropertyPath,
        findings: &mut SchemaFindings,
    ) {
        let (code, text, hint) = match reading {
            SurprisingReading::OtherText(sent) => (
                "rewritten-number",
                format!("`{written}` is a number, and is sent as {sent}"),
                format!("if it is a text, such as a version, put it in quotes; else write {sent}"),
            ),
            SurprisingReading::Rounded => (
                "rounded-number",
                "the number is too large to be exact: integers beyond 2^53 lose their last digits".to_owned(),
                "put it in quotes if it is an identifier".to_owned(),
            ),
            SurprisingReading::Text => (
                "ambiguous-scalar",
                format!("`{written}` is read as text; YAML 1.1 reads it as something else"),
                "put it in quotes".to_owned(),
            ),
        };
        let hint = Some(MessageText::new(format_args!("{hint}")));
        let text = MessageText::new(format_args!("{text}"));
        let message = Message { property: Some(path.to_string()), hint, ..(self.warning)(text) };
        findings.warnings.push(SchemaWarning { code: Code(code), message });
    }

    /// Returns the error of a value where the schema has an asset. The value of a reference is known only in the run.
    fn asset_error(self, node: &Node, path: &PropertyPath, only_archive: bool) -> Option<Diagnostic> {
        let is_right = match (&node.value, AssetFunction::of(node)) {
            (_, Some((function, _))) => function.is_archive() || !only_archive,
            (Value::Interpolated(string), None) => string.is_unknown() || string.references().next().is_some(),
            (Value::Scalar(scalar), None) => scalar.is_null(),
            // The keys of a function that is written wrongly are reported.
            (Value::Mapping(mapping), None) => mapping.keys().any(|key| key.to_ascii_lowercase().starts_with("fn::")),
            (Value::Sequence(_), None) => false,
        };
        if is_right {
            return None;
        }
        let (what, example) = match only_archive {
            true => ("an archive", AssetFunction::FileArchive.key()),
            false => ("an asset or an archive", AssetFunction::FileAsset.key()),
        };
        let subject = self.subject.unwrap_or_default();
        let summary = MessageText::new(format_args!("the property {:?} of {subject} is {what}", path.to_string()));
        let error = Diagnostic::error(ASSET, node.span, summary);
        Some(match (&node.value, AssetFunction::of(node)) {
            (_, Some((function, _))) => {
                error.help(format_args!("`{}` makes an asset; write `{example}`", function.key()))
            }
            (Value::Scalar(_) | Value::Interpolated(_), None) => {
                let text = AssetFunction::StringAsset.key();
                let error = error.help(format_args!("write `{{ {example}: PATH }}`, with a path below the repository"));
                if only_archive {
                    error
                } else {
                    error.help(format_args!("or `{{ {text}: TEXT }}` for the content itself"))
                }
            }
            _ => error.help(format_args!("write `{{ {example}: PATH }}`")),
        })
    }

    /// Returns the error of an asset where the schema has another kind.
    fn misplaced_asset_error(self, node: &Node, path: &PropertyPath, kind: &ValueKind) -> Diagnostic {
        let what = match kind {
            ValueKind::Text => "a text",
            ValueKind::Plain => "a number or a boolean",
            ValueKind::List(_) => "a list",
            ValueKind::Map(_) => "a map",
            ValueKind::Asset | ValueKind::Archive => "an asset",
        };
        let subject = self.subject.unwrap_or_default();
        let summary =
            MessageText::new(format_args!("the property {:?} of {subject} is {what}, no asset", path.to_string()));
        Diagnostic::error(ASSET, node.span, summary).help("write the value itself")
    }
}
