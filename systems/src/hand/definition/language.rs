//! Which of the languages of a hand a client wants.

/// Languages of a header that are looked at.
const WANTED_MAX: usize = 16;

/// The one of `known` that `header`, an `Accept-Language`, prefers; `None` for the texts as written, which are in English.
#[must_use]
pub fn preferred<'k>(header: &str, known: impl Iterator<Item = &'k str> + Clone) -> Option<&'k str> {
    let mut wanted: Vec<(&str, u32)> = header.split(',').take(WANTED_MAX).map(weighed).collect();
    wanted.retain(|(language, weight)| *weight > 0 && !language.is_empty());
    wanted.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    let find = |language: &str| known.clone().find(|known| known.eq_ignore_ascii_case(language));
    for (language, _) in wanted {
        // `zh-Hant-TW`, then `zh-Hant`, then `zh`.
        let mut rest = language;
        loop {
            if let Some(known) = find(rest) {
                return Some(known);
            }
            let Some((shorter, _)) = rest.rsplit_once('-') else { break };
            rest = shorter;
        }
        if rest.eq_ignore_ascii_case("en") || rest == "*" {
            return None;
        }
    }
    None
}

/// A language and its weight in thousandths.
fn weighed(part: &str) -> (&str, u32) {
    let (language, parameters) = part.split_once(';').unwrap_or((part, ""));
    let weight = parameters.trim().strip_prefix("q=").and_then(|weight| weight.trim().parse::<f32>().ok());
    let weight = weight.map_or(1_000.0, |weight| (weight * 1_000.0).clamp(0.0, 1_000.0));
    (language.trim(), weight as u32)
}
