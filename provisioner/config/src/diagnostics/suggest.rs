//! `did you mean`.

/// The candidate nearest to what was written, if one is near enough to be a slip of the hand.
pub fn closest<'c>(written: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let folded = fold(written);
    let allowed = (written.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != written)
        .map(|candidate| (strsim::damerau_levenshtein(&folded, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Case and word separators are what people mix up most: they do not count.
fn fold(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_a_stranger_does_not() {
        let keys = ["provisioner", "plugins", "state-storage", "config"];
        assert_eq!(closest("provisoner", keys), Some("provisioner"));
        assert_eq!(closest("stateStorage", keys), Some("state-storage"));
        assert_eq!(closest("Config", keys), Some("config"));
        assert_eq!(closest("x-common", keys), None);
        assert_eq!(closest("a", ["b"]), None);
    }
}
