//! `files:random:Password`: a password that is stored only in the state. Its id is a random name.

use pulumi_proto::property::{PropertyMap, PropertyValue};
use tonic::Status;
use uuid::Uuid;

use super::resource::{Created, Live, Resource, State, Updated};
use crate::property::{Default, Kind, Property};
use crate::root::CallContext;
use crate::value::{boolean, checked, get, number, unwrap_secrets};

pub(super) struct Password;

const INPUTS: [Property; 2] = [
    Property::required(
        "length",
        Kind::Integer,
        "Number of characters, from 8 to 128. Another length is another password.",
    )
    .replaces(),
    Property::optional(
        "special",
        Kind::Boolean,
        "True adds special characters to letters and digits. A change generates a new password.",
    )
    .default(Default::Boolean(true)),
];

const OUTPUTS: [Property; 1] = [Property::required("result", Kind::String, "The password.").secret()];

const LENGTHS: std::ops::RangeInclusive<usize> = 8..=128;
const LETTERS_AND_DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// Special characters that shell scripts and configuration files do not interpret inside quotes.
const SPECIAL: &[u8] = b"!#*+,-./:=?@^_~";

impl Resource for Password {
    fn token(&self) -> &'static str {
        "files:random:Password"
    }

    fn description(&self) -> &'static str {
        "A random password. It has a letter of each case and a digit. It is stored only in the state, as a secret."
    }

    fn inputs(&self) -> &'static [Property] {
        &INPUTS
    }

    fn outputs(&self) -> &'static [Property] {
        &OUTPUTS
    }

    fn variables(&self) -> &'static [(&'static str, &'static str)] {
        &[("PASSWORD", "result")]
    }

    fn check(&self, _name: &str, value: &PropertyValue) -> Result<PropertyValue, String> {
        match unwrap_secrets(value) {
            PropertyValue::Number(length) if to_length(*length).is_none() => {
                Err(format!("a password has {} to {} characters", LENGTHS.start(), LENGTHS.end()))
            }
            value => Ok(value.clone()),
        }
    }

    fn preview(&self, news: &PropertyMap, old: Option<&State>) -> PropertyMap {
        let kept = old.filter(|old| !needs_new_password(old, news)).and_then(|old| get(&old.outputs, "result"));
        with_result(news, kept.cloned().unwrap_or(PropertyValue::UNKNOWN))
    }

    fn create(&self, _ctx: &CallContext, inputs: &PropertyMap) -> Result<Created, Status> {
        let id = format!("password-{}", &Uuid::new_v4().simple().to_string()[..12]);
        Ok(Created { id, outputs: with_result(inputs, generate(inputs)?.into()) })
    }

    fn read(&self, _ctx: &CallContext, id: &str, known: &State) -> Result<Option<Live>, Status> {
        let Some(result) = get(&known.outputs, "result") else {
            return Err(Status::failed_precondition("a password is stored only in the state; it cannot be imported"));
        };
        // The recorded state is the actual state, because the password is stored nowhere else.
        let inputs = INPUTS.iter().filter_map(|input| {
            let value = known.inputs.get(input.name).or_else(|| known.outputs.get(input.name))?;
            Some((input.name.to_owned(), value.clone()))
        });
        let inputs: PropertyMap = inputs.collect();
        Ok(Some(Live { id: id.to_owned(), outputs: with_result(&inputs, result.clone()), inputs }))
    }

    fn update(&self, _ctx: &CallContext, _id: &str, old: &State, news: &PropertyMap) -> Result<Updated, Status> {
        let (result, notice) = match get(&old.outputs, "result") {
            Some(result) if !needs_new_password(old, news) => (result.clone(), None),
            _ => (generate(news)?.into(), Some("a new password has been generated")),
        };
        Ok(Updated { outputs: with_result(news, result), notice })
    }

    fn delete(&self, _ctx: &CallContext, _id: &str) -> Result<(), Status> {
        Ok(())
    }
}

/// Returns true if the inputs have changed, so that a new password is needed.
fn needs_new_password(old: &State, news: &PropertyMap) -> bool {
    INPUTS.iter().any(|input| get(&old.inputs, input.name) != get(news, input.name))
}

fn with_result(inputs: &PropertyMap, result: PropertyValue) -> PropertyMap {
    let mut outputs = inputs.clone();
    outputs.insert("result".to_owned(), PropertyValue::secret(result));
    outputs
}

fn to_length(length: f64) -> Option<usize> {
    // The cast saturates to values outside of the range.
    Some(length as usize).filter(|length| LENGTHS.contains(length))
}

/// Generates passwords until one has a character of each class, so that all such passwords are equally likely.
fn generate(inputs: &PropertyMap) -> Result<String, Status> {
    let length = checked(number(inputs, "length").and_then(to_length), "length")?;
    let special = checked(boolean(inputs, "special"), "special")?;
    let alphabet = if special { [LETTERS_AND_DIGITS, SPECIAL].concat() } else { LETTERS_AND_DIGITS.to_vec() };
    loop {
        let generated = generate_from(&alphabet, length)?;
        let has = |class: fn(&char) -> bool| generated.chars().any(|character| class(&character));
        let complete = has(char::is_ascii_lowercase) && has(char::is_ascii_uppercase) && has(char::is_ascii_digit);
        if complete && (!special || has(char::is_ascii_punctuation)) {
            return Ok(generated);
        }
    }
}

/// Generates characters with equal probability.
fn generate_from(alphabet: &[u8], length: usize) -> Result<String, Status> {
    // Larger bytes are skipped: their remainders would favour the first characters of the alphabet.
    let unbiased_limit = 256 - 256 % alphabet.len();
    let mut generated = String::with_capacity(length);
    let mut bytes = [0; 64];
    while generated.len() < length {
        getrandom::fill(&mut bytes).map_err(|error| Status::unavailable(format!("no random numbers: {error}")))?;
        let characters = bytes.iter().map(|byte| usize::from(*byte)).filter(|byte| *byte < unbiased_limit);
        generated
            .extend(characters.take(length - generated.len()).map(|byte| char::from(alphabet[byte % alphabet.len()])));
    }
    Ok(generated)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{bag, context, empty_state};
    use super::*;
    use crate::value::text;

    fn inputs(length: f64, special: bool) -> PropertyMap {
        bag([("length", length.into()), ("special", special.into())])
    }

    #[test]
    fn password_is_secret_and_has_its_length_and_all_character_classes() {
        let (_keep, ctx) = context();
        for (length, special) in [(8.0, true), (8.0, false), (128.0, true)] {
            let created = Password.create(&ctx, &inputs(length, special)).unwrap();
            assert!(created.outputs["result"].is_secret());
            let result = text(&created.outputs, "result").unwrap();
            assert_eq!(result.len() as f64, length);
            assert!(result.contains(|c: char| c.is_ascii_lowercase()), "{result}");
            assert!(result.contains(|c: char| c.is_ascii_uppercase()), "{result}");
            assert!(result.contains(|c: char| c.is_ascii_digit()), "{result}");
            assert_eq!(result.contains(|c: char| !c.is_ascii_alphanumeric()), special, "{result}");
        }
    }

    #[test]
    fn passwords_have_different_ids_and_results() {
        let (_keep, ctx) = context();
        let create = || Password.create(&ctx, &inputs(24.0, true)).unwrap();
        let (one, two) = (create(), create());
        assert_ne!(one.id, two.id);
        assert_ne!(one.outputs["result"], two.outputs["result"]);
    }

    #[test]
    fn length_out_of_range_is_refused() {
        for good in [8.0, 128.0] {
            Password.check("length", &good.into()).unwrap();
        }
        for bad in [7.0, 129.0, -1.0, 0.0, 1e300, f64::NAN, f64::INFINITY] {
            Password.check("length", &bad.into()).unwrap_err();
        }
        assert_eq!(Password.check("length", &PropertyValue::UNKNOWN), Ok(PropertyValue::UNKNOWN));
    }

    #[test]
    fn update_keeps_the_password_unless_the_alphabet_changes() {
        let (_keep, ctx) = context();
        let old = State { inputs: inputs(16.0, true), outputs: with_result(&inputs(16.0, true), "old".into()) };
        let same = Password.update(&ctx, "p", &old, &inputs(16.0, true)).unwrap();
        assert_eq!(text(&same.outputs, "result"), Some("old"));
        assert_eq!(Password.preview(&inputs(16.0, true), Some(&old)), same.outputs);

        let other = Password.update(&ctx, "p", &old, &inputs(16.0, false)).unwrap();
        assert_ne!(text(&other.outputs, "result"), Some("old"));
        assert!(other.notice.is_some());
        let previewed = Password.preview(&inputs(16.0, false), Some(&old));
        assert_eq!(previewed["result"], PropertyValue::secret(PropertyValue::UNKNOWN));
    }

    #[test]
    fn read_returns_the_recorded_state_and_import_is_refused() {
        let (_keep, ctx) = context();
        let known = State { inputs: inputs(16.0, true), outputs: with_result(&inputs(16.0, true), "old".into()) };
        let live = Password.read(&ctx, "p", &known).unwrap().unwrap();
        assert_eq!((live.id.as_str(), &live.inputs, &live.outputs), ("p", &known.inputs, &known.outputs));
        assert!(Password.read(&ctx, "p", &empty_state()).unwrap_err().message().contains("cannot be imported"));
    }
}
