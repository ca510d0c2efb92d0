//! How much two texts have in common: containment, then the cosine of their word counts, then the Jaccard index of their
//! words. Without a model, so that the same texts always give the same answer.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use agentsvc_systems::proactive_memory::limits::ENTRY_WORDS_MAX;

/// One text contains the other when that has at least this share of its words.
const CONTAINED_SHARE: f64 = 0.7;
/// The share of its words that a text has in common with one that contains it, with some room for repeated words.
const COMMON_SHARE: f64 = 0.6;

/// Words of a text that are compared with those of another in the time of one step.
const WORDS_AT_ONCE: usize = 16;

/// A text as it is compared.
pub(crate) struct Words {
    /// Hashes of the words with their counts, in order of the hashes.
    counts: Vec<(u32, u16)>,
    /// Hashes in the order of the text.
    order: Vec<u32>,
}

impl Words {
    /// The words of a text: runs of letters and digits in lower case; of scripts without spaces, pairs of characters.
    pub(crate) fn of(text: &str) -> Self {
        let mut order = Vec::new();
        for run in text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
            let lower: Vec<char> = run.chars().flat_map(char::to_lowercase).collect();
            if lower.iter().any(|c| is_spaceless(*c)) && lower.len() > 2 {
                order.extend(lower.windows(2).map(hash));
            } else {
                order.push(hash(&lower[..]));
            }
            if order.len() >= ENTRY_WORDS_MAX {
                order.truncate(ENTRY_WORDS_MAX);
                break;
            }
        }
        let mut sorted = order.clone();
        sorted.sort_unstable();
        let mut counts: Vec<(u32, u16)> = Vec::new();
        for word in sorted {
            match counts.last_mut() {
                Some((last, count)) if *last == word => *count = count.saturating_add(1),
                _ => counts.push((word, 1)),
            }
        }
        Self { counts, order }
    }

    /// The share of its different words that another text has, 0 to 1.
    pub(crate) fn share_within(&self, other: &Self) -> f64 {
        let has = |word: &u32| other.counts.binary_search_by_key(word, |(word, _)| *word).is_ok();
        let shared = self.counts.iter().filter(|(word, _)| has(word)).count();
        if self.counts.is_empty() { 0.0 } else { shared as f64 / self.counts.len() as f64 }
    }

    fn is_within(&self, other: &Self) -> bool {
        !self.order.is_empty() && other.order.windows(self.order.len()).any(|part| part == self.order)
    }
}

/// Scripts that write words without spaces between them.
fn is_spaceless(c: char) -> bool {
    matches!(u32::from(c), 0x0e00..=0x0eff | 0x3040..=0x30ff | 0x3400..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

fn hash<T: Hash + ?Sized>(word: &T) -> u32 {
    // Two words of one hash make two texts a little more similar, no more.
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    (hasher.finish() >> 32) as u32
}

/// How much the two have in common, 0 to 1; 1 when they have the same words in the same order.
pub(crate) fn similarity(a: &Words, b: &Words) -> f64 {
    let (short, long) = if a.order.len() <= b.order.len() { (a, b) } else { (b, a) };
    if short.order.is_empty() {
        return 0.0;
    }
    let share = short.order.len() as f64 / long.order.len() as f64;
    let contained = if share >= CONTAINED_SHARE && short.is_within(long) { 0.85 + 0.15 * share } else { 0.0 };
    let (mut dot, mut shared) = (0.0, 0_usize);
    let (mut left, mut right) = (a.counts.iter().peekable(), b.counts.iter().peekable());
    while let (Some((x, n)), Some((y, m))) = (left.peek(), right.peek()) {
        match x.cmp(y) {
            std::cmp::Ordering::Less => drop(left.next()),
            std::cmp::Ordering::Greater => drop(right.next()),
            std::cmp::Ordering::Equal => {
                dot += f64::from(*n) * f64::from(*m);
                shared += 1;
                left.next();
                right.next();
            }
        }
    }
    let norm = |words: &Words| words.counts.iter().map(|(_, n)| f64::from(*n).powi(2)).sum::<f64>().sqrt();
    let cosine = dot / (norm(a) * norm(b));
    let jaccard = shared as f64 / (a.counts.len() + b.counts.len() - shared) as f64;
    contained.max(cosine).max(jaccard).min(1.0)
}

/// Words that [`similarity`] looks at.
fn work(a: &Words, b: &Words) -> usize {
    let (short, long) = (a.order.len().min(b.order.len()), a.order.len().max(b.order.len()));
    // Where one may contain the other, each of its places is tried, several words at once.
    let tried =
        if short as f64 >= CONTAINED_SHARE * long as f64 { (long - short + 1) * short / WORDS_AT_ONCE } else { 0 };
    a.counts.len() + b.counts.len() + tried
}

/// Groups of texts of which each is at least this similar to the first of its group; the order of the texts decides which one
/// is the first. Texts in no group are left out.
///
/// Only texts that share a rare word are compared, the first texts first, until `steps` is used up.
pub(crate) fn groups(texts: &[Words], threshold: f64, steps: &mut usize) -> Vec<Vec<usize>> {
    let mut postings: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at, words) in texts.iter().enumerate() {
        words.counts.iter().for_each(|(word, _)| postings.entry(*word).or_default().push(at));
    }
    let (mut grouped, mut found) = (vec![false; texts.len()], Vec::new());
    let mut seen = vec![usize::MAX; texts.len()];
    for (at, words) in texts.iter().enumerate() {
        if *steps == 0 {
            break;
        }
        *steps = steps.saturating_sub(words.counts.len());
        if grouped[at] {
            continue;
        }
        let mut group = vec![at];
        // The rarest words first: what has most in common shares them too.
        let mut lists: Vec<&Vec<usize>> = words.counts.iter().filter_map(|(word, _)| postings.get(word)).collect();
        lists.sort_unstable_by_key(|list| list.len());
        // Of two similar texts, each has at least this share of its words in common with the other; so the rest of the
        // words and one more include a common one.
        let common = (lists.len() as f64 * (threshold * threshold).min(COMMON_SHARE)) as usize;
        let needed = lists.len() - common.min(lists.len());
        'lists: for list in lists.into_iter().take(needed + 1) {
            let later = list.partition_point(|other| *other <= at);
            for other in list[later..].iter().copied() {
                if *steps == 0 {
                    break 'lists;
                }
                *steps -= 1;
                if grouped[other] || seen[other] == at {
                    continue;
                }
                seen[other] = at;
                *steps = steps.saturating_sub(work(words, &texts[other]));
                if similarity(words, &texts[other]) >= threshold {
                    group.push(other);
                    grouped[other] = true;
                }
            }
        }
        if group.len() > 1 {
            grouped[at] = true;
            group.sort_unstable();
            found.push(group);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(a: &str, b: &str) -> f64 {
        similarity(&Words::of(a), &Words::of(b))
    }

    fn all_groups(texts: &[Words], threshold: f64) -> Vec<Vec<usize>> {
        groups(texts, threshold, &mut usize::MAX.clone())
    }

    #[test]
    fn equal_words_are_equal_and_others_are_not() {
        assert!((of("User likes tea.", "user LIKES tea") - 1.0).abs() < 1e-9);
        assert!(of("User lives in Berlin", "The build uses Bazel") < 0.01);
        assert!(of("", "x") < 0.01 && of("!!", "??") < 0.01);
        assert!(of("User prefers green tea in the morning", "User prefers green tea in the mornings") > 0.85);
        assert!(of("用户喜欢喝绿茶", "用户喜欢喝绿茶吗") > 0.85);
        assert!(of("用户喜欢喝绿茶", "项目使用数据库") < 0.2);
    }

    #[test]
    fn the_share_of_a_text_in_another_is_that_of_its_words() {
        let share = |a: &str, b: &str| Words::of(a).share_within(&Words::of(b));
        assert!((share("User likes tea", "I no longer like tea, said the user") - 2.0 / 3.0).abs() < 1e-9);
        assert!(share("", "x") < 0.01 && share("tea", "coffee") < 0.01);
    }

    #[test]
    fn a_short_part_of_a_long_text_is_no_duplicate() {
        assert!(of("User likes tea", "User likes tea but only in winter and never with sugar") < 0.7);
        assert!(of("User likes tea with milk and sugar", "User likes tea with milk and sugar today") > 0.95);
    }

    #[test]
    fn duplicates_are_grouped_by_the_first() {
        let texts: Vec<Words> = [
            "User prefers dark mode in all editors",
            "The project is written in Rust",
            "User prefers dark mode in all the editors",
            "The project is written in Rust",
            "Something else entirely",
        ]
        .map(Words::of)
        .into();
        assert_eq!(all_groups(&texts, 0.85), [vec![0, 2], vec![1, 3]]);
        assert!(all_groups(&texts, 1.1).is_empty() && all_groups(&[], 0.5).is_empty());
    }

    #[test]
    fn many_equal_texts_are_one_group() {
        let texts: Vec<Words> = (0..5_000).map(|_| Words::of("the same words again and again")).collect();
        let found = all_groups(&texts, 0.85);
        assert_eq!((found.len(), found[0].len()), (1, 5_000));
    }

    #[test]
    fn the_search_ends_when_its_steps_are_used_up() {
        // They share all words but one, and none is a duplicate of another: each is looked at for each.
        let texts: Vec<Words> = (0..2_000).map(|n| Words::of(&format!("a b c d e f own{n}"))).collect();
        let mut left = usize::MAX;
        assert!(groups(&texts, 0.99, &mut left).is_empty());
        let all = usize::MAX - left;
        assert!(all > 2_000 * 2_000, "{all}");
        let mut few = 100_000;
        assert!(groups(&texts, 0.99, &mut few).is_empty());
        assert_eq!(few, 0);
        // What was found by then is kept, and no text is looked at afterwards.
        let twice: Vec<Words> = (0..100).map(|n| Words::of(&format!("own{}", n % 50))).collect();
        let mut some = 60;
        let found = groups(&twice, 0.85, &mut some);
        assert!(!found.is_empty() && found.len() < 50 && some == 0, "{found:?}");
    }
}
