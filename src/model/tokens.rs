//! The tokenizers of models: OpenAI's are known, for every other model the estimate holds.
//!
//! A vocabulary is read into memory (some 30 MiB) by the first prompt that comes near the context of a model that uses
//! it; most daemons never do that.

use std::io::Read;
use std::sync::LazyLock;

use agentsvc_systems::prompt::{Dense, Estimate, Tokens};
use flate2::read::DeflateDecoder;
use tiktoken_rs::{CoreBPE, O200K_BASE_PAT_STR, Rank};

use super::provider::Target;

/// Bytes that are counted at once. A text is cut there, which adds a token at most: so the work on the strangest text
/// grows no faster than its length, and ends soon after the bound is passed.
const SLICE_BYTES: usize = 4_096;

/// How texts are cut into words for the vocabulary [`Vocabulary::Cl100k`], as in `tiktoken_rs::cl100k_base`.
const CL100K_BASE_PAT_STR: &str = concat!(
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|",
    r"\s*[\r\n]|\s+(?!\S)|\s",
);

/// Counts what is asked of `target`. `is_reserved`: money is reserved for it, so no text may count much less than it has.
pub(crate) fn tokens_of(target: &Target, is_reserved: bool) -> &'static dyn Tokens {
    match vocabulary_of(&target.model) {
        Some(vocabulary) => vocabulary,
        None if is_reserved => &Dense,
        None => &Estimate,
    }
}

/// A vocabulary of OpenAI's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vocabulary {
    O200k,
    Cl100k,
}

/// The vocabulary of a model, by the beginning of its name; providers that pass calls on write `openai/` before it.
fn vocabulary_of(model: &str) -> Option<&'static Vocabulary> {
    const BEGINNINGS: &[(&str, Vocabulary)] = &[
        ("gpt-4o", Vocabulary::O200k),
        ("chatgpt-4o", Vocabulary::O200k),
        ("gpt-4.", Vocabulary::O200k),
        ("gpt-5", Vocabulary::O200k),
        ("gpt-oss", Vocabulary::O200k),
        ("o1", Vocabulary::O200k),
        ("o3", Vocabulary::O200k),
        ("o4", Vocabulary::O200k),
        ("gpt-4", Vocabulary::Cl100k),
        ("gpt-3.5", Vocabulary::Cl100k),
        ("gpt-35", Vocabulary::Cl100k),
    ];
    let name = model.strip_prefix("openai/").unwrap_or(model);
    BEGINNINGS.iter().find(|(beginning, _)| name.starts_with(beginning)).map(|(_, vocabulary)| vocabulary)
}

impl Vocabulary {
    fn encoding(self) -> &'static CoreBPE {
        static O200K: LazyLock<CoreBPE> =
            LazyLock::new(|| unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/o200k")), O200K_BASE_PAT_STR));
        static CL100K: LazyLock<CoreBPE> =
            LazyLock::new(|| unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/cl100k")), CL100K_BASE_PAT_STR));
        match self {
            Self::O200k => &O200K,
            Self::Cl100k => &CL100K,
        }
    }
}

/// A vocabulary that the build script packed: the tokens in the order of their ranks, each behind its length.
fn unpacked(packed: &[u8], pattern: &str) -> CoreBPE {
    let mut tokens = Vec::new();
    DeflateDecoder::new(packed).read_to_end(&mut tokens).expect("the build script has packed it");
    let mut rest = tokens.as_slice();
    let token = |rank: Rank| {
        let (length, behind) = rest.split_first()?;
        let (token, behind) = behind.split_at_checked(usize::from(*length))?;
        rest = behind;
        Some((token.to_vec(), rank))
    };
    let ranks = (0..).map_while(token).collect();
    CoreBPE::new(ranks, std::iter::empty().collect(), pattern).expect("the pattern is a constant")
}

impl Tokens for Vocabulary {
    fn count(&self, text: &str, tokens_max: u64) -> Option<u64> {
        let encoding = self.encoding();
        let (mut rest, mut tokens) = (text, 0);
        while !rest.is_empty() {
            let (slice, after) = rest.split_at(slice_end(rest));
            tokens += encoding.count_ordinary(slice) as u64;
            if tokens > tokens_max {
                return None;
            }
            rest = after;
        }
        Some(tokens)
    }
}

/// Where to cut: before the last space of the slice, as words begin with theirs.
fn slice_end(text: &str) -> usize {
    if text.len() <= SLICE_BYTES {
        return text.len();
    }
    let end = text.floor_char_boundary(SLICE_BYTES);
    text[..end].rfind(' ').filter(|at| *at > 0).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use agentsvc_components::Timestamp;
    use agentsvc_components::TurnId;
    use agentsvc_components::manifest::Manifest;
    use agentsvc_components::session::message::{Block, Role};
    use agentsvc_components::session::message_record::MessageRecord;
    use agentsvc_systems::prompt::{Source, project, shorten_to};
    use proptest::prelude::*;
    use tiktoken_rs::{cl100k_base_singleton, o200k_base_singleton};

    use super::*;

    #[test]
    fn the_vocabulary_follows_the_model() {
        let of = |model| vocabulary_of(model).copied();
        for model in ["gpt-4o-mini", "gpt-4.1", "gpt-5", "o3-mini", "o1", "openai/gpt-4o", "chatgpt-4o-latest"] {
            assert_eq!(of(model), Some(Vocabulary::O200k), "{model}");
        }
        for model in ["gpt-4", "gpt-4-turbo", "gpt-3.5-turbo"] {
            assert_eq!(of(model), Some(Vocabulary::Cl100k), "{model}");
        }
        for model in ["echo-1", "llama-3.1-8b-instant", "grok-3", "builtin", ""] {
            assert_eq!(of(model), None, "{model}");
        }
    }

    #[test]
    fn packed_vocabularies_are_those_of_the_tokenizer() {
        let text =
            "Zwölf Boxkämpfer: 12,345.678 \t\n\r\n don't WE'LL  你好 🦀🦀 fn main() { x += 1; }   <|endoftext|> \n";
        for (ours, theirs) in
            [(Vocabulary::O200k, o200k_base_singleton()), (Vocabulary::Cl100k, cl100k_base_singleton())]
        {
            let ours = ours.encoding();
            assert_eq!(ours.encode_ordinary(text), theirs.encode_ordinary(text));
            let token = |encoding: &CoreBPE, rank| encoding.decode_bytes(&[rank]).ok();
            assert!((0..100_256).all(|rank| token(ours, rank) == token(theirs, rank) && token(ours, rank).is_some()));
        }
    }

    #[test]
    fn it_counts_as_the_tokenizer_does_and_stops_at_the_bound() {
        let count = |text: &str, max| Vocabulary::O200k.count(text, max);
        assert_eq!(count("", 0), Some(0));
        assert_eq!(count("hello world", 9), Some(2));
        assert_eq!(count("hello world", 1), None);
        assert_eq!(Vocabulary::Cl100k.count("hello world", 9), Some(2));
        let long = "The quick brown fox jumps over the lazy dog. ".repeat(2_000);
        let whole = o200k_base_singleton().count_ordinary(&long) as u64;
        let counted = count(&long, u64::MAX).unwrap();
        assert!(counted >= whole && counted <= whole + long.len() as u64 / SLICE_BYTES as u64 + 1, "{counted} {whole}");
        // One MiB without a word's end: neither slow nor deep.
        for strange in ["a".repeat(1 << 20), " ".repeat(1 << 20), "\u{4e2d}".repeat(350_000), "\n".repeat(1 << 20)] {
            assert_eq!(count(&strange, 1_000), None);
        }
    }

    fn record(role: Role, said: String) -> MessageRecord {
        MessageRecord {
            turn: TurnId(uuid::Uuid::nil()),
            role,
            blocks: vec![Block::Text { text: said }],
            created_at: Timestamp(0),
            usage: None,
            model: None,
            stopped: false,
            repeats: None,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_prompt_never_exceeds_its_budget_and_always_has_the_question(
            said in proptest::collection::vec("[a-zA-Z0-9 .,{}\"\u{e9}\u{4e2d}\u{1f600}\n]{0,200}", 1..12),
            summary in proptest::option::of("[a-z \u{4e2d}]{0,200}"),
            tokens_max in 60_u64..600,
        ) {
            let manifest = Manifest { system_prompt: "Be brief.".into(), ..Manifest::default() };
            let roles = [Role::User, Role::Assistant].into_iter().cycle();
            let mut records: Vec<_> = roles.zip(said).map(|(role, text)| record(role, text)).collect();
            records.push(record(Role::User, "and the question is this".to_owned()));
            let tokens: &dyn Tokens = &Vocabulary::O200k;
            let (agent_name, summary) = ("a", summary.as_deref());
            let prompt = project(Source { manifest: &manifest, agent_name, summary, records, tokens_max, tokens });
            let count = |text: &str| o200k_base_singleton().count_ordinary(text) as u64;
            let messages: u64 = prompt.messages.iter().map(|message| 4 + count(&message.plain_text())).sum();
            prop_assert!(4 + count(&prompt.system) + messages <= tokens_max);
            prop_assert!(prompt.messages.last().unwrap().plain_text().ends_with("is this"));
        }

        #[test]
        fn a_text_is_cut_to_its_tokens(long in "[a-z \u{4e2d}\u{1f600}\n]{0,2000}", tokens_max in 0_u64..300) {
            let mut short = long.clone();
            shorten_to(&Vocabulary::O200k, &mut short, tokens_max);
            prop_assert!(Vocabulary::O200k.count(&short, tokens_max).is_some());
        }
    }
}
