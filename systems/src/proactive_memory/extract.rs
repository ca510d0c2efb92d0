//! Facts that a message states outright, found by rules alone: phrases of several languages, such as "my name is". No model is
//! asked. A rule that finds nothing is better than one that makes something up, so questions and conditions are left out.

use std::sync::LazyLock;

use agentsvc_components::proactive_memory::Level;
use aho_corasick::AhoCorasick;

use super::limits::{EXTRACTED_MAX, EXTRACTED_REQUEST_MAX, EXTRACTED_TEXT_BYTES_MAX};

use self::phrases::{PHRASES, Phrase};

mod phrases;

/// Bytes of what may follow a phrase; longer is no single fact.
const FACT_BYTES_MAX: usize = 300;

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extracted {
    /// The fact as a sentence about the user.
    pub content: String,
    /// One of the categories of `[proactive_memory] extract_categories`.
    pub category: &'static str,
    /// What it belongs to.
    pub level: Level,
}

/// May a message state facts? Looks for a part of each phrase, once over the beginning of the text, and is right where it says no.
/// Where it says yes, a rule does not always fit.
#[must_use]
pub fn may_state_facts(message: &str) -> bool {
    static PARTS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        let parts = PHRASES.iter().map(|phrase| part_of(phrase.words));
        AhoCorasick::builder().ascii_case_insensitive(true).build(parts).ok()
    });
    PARTS.as_ref().is_none_or(|parts| parts.is_match(beginning(message)))
}

/// The part of a message that is looked at.
#[must_use]
pub fn beginning(message: &str) -> &str {
    &message[..message.floor_char_boundary(EXTRACTED_TEXT_BYTES_MAX)]
}

/// The longest part of a phrase that is written in one way but for its case: without accents and apostrophes. The whole phrase
/// where there is none.
fn part_of(words: &'static str) -> &'static str {
    let parts = words.split(|c: char| !c.is_ascii() || c == '\'');
    parts.max_by_key(|part| part.len()).filter(|part| part.len() > 2).unwrap_or(words)
}

/// The facts that a user's message states.
#[must_use]
pub fn extract(message: &str) -> Vec<Extracted> {
    let mut facts: Vec<Extracted> = Vec::new();
    for sentence in sentences(message) {
        if facts.len() == EXTRACTED_MAX {
            break;
        }
        if let Some(fact) = of_sentence(sentence)
            && !facts.contains(&fact)
        {
            facts.push(fact);
        }
    }
    facts
}

/// The facts of these categories that messages of users state, those of a request. Long texts take a while: not on an async
/// thread.
#[must_use]
pub fn extract_all<'a>(messages: impl Iterator<Item = &'a str>, wanted: &[Box<str>]) -> Vec<Extracted> {
    let facts = messages.flat_map(extract);
    facts.filter(|fact| wanted.iter().any(|it| **it == *fact.category)).take(EXTRACTED_REQUEST_MAX).collect()
}

/// The statements of a text: without questions.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |c: char| matches!(c, '.' | '!' | '?' | '\n' | '。' | '！' | '？' | ';' | '；');
    let mut rest = text;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            // A point within a word, as of "agentsvc.rs", ends nothing.
            let mut from = 0;
            let end = loop {
                let Some(at) = rest[from..].find(is_end).map(|at| from + at) else { break rest.len() };
                let mark = rest[at..].chars().next().map_or(1, char::len_utf8);
                let is_within =
                    rest[at..].starts_with('.') && rest[at + mark..].starts_with(|c: char| !c.is_whitespace());
                if !is_within {
                    break at;
                }
                from = at + mark;
            };
            let (sentence, behind) = rest.split_at(end);
            let is_question = behind.starts_with(['?', '？']);
            rest = behind.strip_prefix(is_end).unwrap_or(behind);
            if !is_question && !sentence.trim().is_empty() {
                return Some(sentence.trim());
            }
        }
        None
    })
}

fn of_sentence(sentence: &str) -> Option<Extracted> {
    // Apostrophes as phones write them.
    let sentence = sentence.replace('’', "'");
    let (lower, origin) = lowered(&sentence);
    let (phrase, at) = PHRASES.iter().find_map(|phrase| find(&lower, phrase).map(|at| (phrase, at)))?;
    if is_conditional(&lower[..at]) {
        return None;
    }
    let begin = *origin.get(at + phrase.words.len())?;
    let rest = clipped(&sentence[begin..], phrase.is_short);
    let is_fact = rest.chars().any(char::is_alphanumeric) && rest.len() <= FACT_BYTES_MAX;
    is_fact.then(|| Extracted {
        content: phrase.says.replace("{}", rest),
        category: phrase.category,
        level: Level::User,
    })
}

/// The text in lower case, and for each of its bytes, and its end, where the character stood that it comes from.
fn lowered(text: &str) -> (String, Vec<usize>) {
    let (mut lower, mut origin) = (String::with_capacity(text.len()), Vec::with_capacity(text.len() + 1));
    for (at, c) in text.char_indices() {
        lower.extend(c.to_lowercase());
        origin.resize(lower.len(), at);
    }
    origin.push(text.len());
    (lower, origin)
}

/// Where the phrase stands: at the beginning of a word.
fn find(text: &str, phrase: &Phrase) -> Option<usize> {
    text.match_indices(phrase.words).map(|(at, _)| at).find(|at| {
        let before = text[..*at].chars().next_back();
        phrase.is_spaceless || before.is_none_or(|c| !c.is_alphanumeric() && c != '\'')
    })
}

/// Does what stands before make it a question, a condition or the words of another?
fn is_conditional(before: &str) -> bool {
    const WORDS: &[&str] = &[
        "if", "when", "whether", "does", "did", "do", "she", "he", "they", "says", "said", "suppose", "imagine",
        "wenn", "falls", "ob", "si", "cuando", "quand", "se", "quando", "she's", "he's",
    ];
    before.split(|c: char| !c.is_alphanumeric() && c != '\'').any(|word| WORDS.contains(&word))
}

/// The fact without what follows it in the same sentence.
fn clipped(rest: &str, is_short: bool) -> &str {
    const NEXT: &[&str] = &[
        ", ",
        "，",
        "、",
        " and I ",
        " and i ",
        " und ich ",
        " et je ",
        " y yo ",
        " e io ",
        " e eu ",
        " but ",
        " aber ",
        " mais ",
    ];
    const NEXT_SHORT: &[&str] = &[" and ", " und ", " et ", " y ", " e ", " - ", " ("];
    let ends = NEXT.iter().chain(NEXT_SHORT.iter().filter(|_| is_short));
    let end = ends.filter_map(|next| rest.find(next)).min().unwrap_or(rest.len());
    rest[..end].trim_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | '"' | '\'' | '。' | '，'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str) -> Vec<(String, &'static str)> {
        extract(text).into_iter().map(|fact| (fact.content, fact.category)).collect()
    }

    fn one(text: &str) -> String {
        let found = facts(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        found[0].0.clone()
    }

    #[test]
    fn a_name_is_found_in_several_languages() {
        for (text, name) in [
            ("Hi! My name is Ana Lima, nice to meet you.", "Ana Lima"),
            ("hello, my name’s Bo and I am new", "Bo"),
            ("Hallo, ich heiße Jürgen.", "Jürgen"),
            ("Mein Name ist Ute", "Ute"),
            ("Je m'appelle Zoé", "Zoé"),
            ("Me llamo José", "José"),
            ("Mi chiamo Luca", "Luca"),
            ("O meu nome é Rui", "Rui"),
            ("你好。我叫小明", "小明"),
            ("私の名前は太郎です", "太郎です"),
        ] {
            assert_eq!(one(text), format!("User's name is {name}"), "{text}");
        }
    }

    #[test]
    fn each_kind_of_fact_has_its_category() {
        for (text, content, category) in [
            ("I prefer short answers.", "User prefers short answers", "preference"),
            ("I don't like long meetings", "User dislikes long meetings", "preference"),
            ("I work at Acme Corp.", "User works at Acme Corp", "personal_detail"),
            ("Ich arbeite bei Siemens", "User works at Siemens", "personal_detail"),
            ("Je préfère le thé vert", "User prefers le thé vert", "preference"),
            ("Prefiero respuestas cortas", "User prefers respuestas cortas", "preference"),
            ("Please always answer in French", "User asks to always answer in French", "communication_style"),
            (
                "I'm working on a parser in agentsvc.rs today",
                "User is working on a parser in agentsvc.rs today",
                "project_context",
            ),
            ("I'm experienced with Kubernetes", "User is experienced with Kubernetes", "expertise"),
            ("I am frustrated with flaky tests!", "User is frustrated with flaky tests", "frustration"),
            ("I usually work late at night", "User usually works late at night", "work_style"),
            ("Remember that the release is on Friday", "the release is on Friday", "project_context"),
        ] {
            assert_eq!(facts(text), [(content.to_owned(), category)], "{text}");
        }
    }

    #[test]
    fn what_states_nothing_of_the_user_is_left_out() {
        for text in [
            "What is my name?",
            "Do I prefer tea?",
            "If I work at Acme, what then",
            "She said I prefer tea",
            "The symphony name is X",
            "I like ",
            "",
            "Write a function that sorts a list.",
        ] {
            assert_eq!(facts(text), [], "{text}");
        }
        assert_eq!(facts(&format!("I like {}", "x".repeat(400))), []);
    }

    #[test]
    fn several_sentences_give_several_facts_each_once() {
        let text = "My name is Ana. I live in Porto! I live in Porto. I prefer tea, thanks.";
        let found = facts(text);
        assert_eq!(
            found.iter().map(|fact| &*fact.0).collect::<Vec<_>>(),
            ["User's name is Ana", "User lives in Porto", "User prefers tea"]
        );
        let many = (0..40).map(|n| format!("I live in town {n}. ")).collect::<String>();
        assert_eq!(facts(&many).len(), EXTRACTED_MAX);
    }

    #[test]
    fn a_request_gives_a_bounded_number_of_facts_of_the_wanted_categories() {
        let many: Vec<String> = (0..200).map(|n| format!("I live in town {n}. I prefer tea {n}.")).collect();
        let of = |wanted: &[Box<str>]| extract_all(many.iter().map(|text| &**text), wanted);
        assert_eq!(of(&["preference".into(), "personal_detail".into()]).len(), EXTRACTED_REQUEST_MAX);
        let some = of(&["preference".into()]);
        assert!(some.len() == EXTRACTED_REQUEST_MAX && some.iter().all(|fact| fact.category == "preference"));
        assert_eq!(of(&[]), []);
    }

    #[test]
    fn no_phrase_is_missed_by_the_first_look() {
        for phrase in PHRASES {
            for text in [phrase.words.to_owned(), phrase.words.to_uppercase(), phrase.words.replace('\'', "’")] {
                assert!(may_state_facts(&format!("Well, {text}tea")), "{text}");
            }
        }
        for text in ["", "Write a function that sorts a list.", "What is the capital of France?", "请写一个函数"]
        {
            assert!(!may_state_facts(text), "{text}");
        }
        assert!(!may_state_facts(&format!("{}I prefer tea", " ".repeat(EXTRACTED_TEXT_BYTES_MAX))));
    }

    #[test]
    fn letters_that_grow_in_lower_case_do_no_harm() {
        assert_eq!(one("İİİ. My name is İpek"), "User's name is İpek");
        assert_eq!(one("ẞ my name is ẞ"), "User's name is ẞ");
    }
}
