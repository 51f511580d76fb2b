//! Suggestions for misspelled names.

/// Maximum length of a name that is compared, in bytes: the distance takes time that grows with the square of it.
const MAX_LENGTH: usize = 200;

/// Returns the candidate with the smallest edit distance to the given name; `None` if all differ too much.
pub fn closest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if name.len() > MAX_LENGTH {
        return None;
    }
    let normalized = normalize(name);
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name && candidate.len() <= MAX_LENGTH)
        .map(|candidate| (strsim::damerau_levenshtein(&normalized, &normalize(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Removes case and word separators, so that they do not count as differences.
fn normalize(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_word_is_found_and_different_word_is_not() {
        let keys = ["provisioner", "plugins", "state-storage", "config"];
        assert_eq!(closest("provisoner", keys), Some("provisioner"));
        assert_eq!(closest("stateStorage", keys), Some("state-storage"));
        assert_eq!(closest("Config", keys), Some("config"));
        assert_eq!(closest("x-common", keys), None);
        assert_eq!(closest("a", ["b"]), None);
        let long = "x".repeat(4_000_000);
        assert_eq!(closest(&long, [&long[1..]]), None);
    }
}
