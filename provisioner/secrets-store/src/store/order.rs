//! Order of the keys of a mapping, as Go's yaml.v3 writes them: by character, numbers by value, and letters after
//! other characters, except behind a digit.

use std::cmp::Ordering;

/// Compares two keys.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let (left, right): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(at) = left.iter().zip(&right).position(|(a, b)| a != b) else { return left.len().cmp(&right.len()) };
    let (first, second) = (left[at], right[at]);
    match (first.is_alphabetic(), second.is_alphabetic()) {
        (true, true) => return first.cmp(&second),
        (false, false) => {}
        (is_letter, _) => {
            let follows_digit = at > 0 && left[at - 1].is_ascii_digit();
            return if is_letter == follows_digit { Ordering::Less } else { Ordering::Greater };
        }
    }
    // A zero in the middle of a number is worth a digit; at its start it is not.
    let digits_before = left[..at].iter().rev().take_while(|before| before.is_ascii_digit());
    let is_inside = (first == '0' || second == '0') && digits_before.into_iter().any(|digit| *digit != '0');
    let (value, end) = number(&left[at..], is_inside);
    let (other_value, other_end) = number(&right[at..], is_inside);
    value.cmp(&other_value).then(end.cmp(&other_end)).then(first.cmp(&second))
}

/// Returns the value and the length of the number at the start of a text, behind a digit 1 if it is inside of a
/// number.
fn number(text: &[char], is_inside: bool) -> (i64, usize) {
    let digits = text.iter().map_while(|character| character.to_digit(10));
    let start = (i64::from(is_inside), 0);
    digits.fold(start, |(value, length), digit| (value.wrapping_mul(10).wrapping_add(i64::from(digit)), length + 1))
}
