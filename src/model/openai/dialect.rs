//! How providers of chat completions differ from OpenAI's own, as far as they say so themselves.
//!
//! | provider | thoughts go back as | thinking is asked for by | other |
//! |---|---|---|---|
//! | OpenAI, Azure | not | `reasoning_effort` | `prompt_cache_key`; its models that think take no temperature |
//! | OpenRouter | `reasoning_details` | `reasoning` | |
//! | DeepSeek | `reasoning_content` | `thinking` | says nothing of a thought that is not there: 400 |
//! | Moonshot | `reasoning_content` | (its models think by themselves) | the same |
//! | Z.ai | `reasoning_content` | `thinking` | |
//! | Mistral | not | (its models think by themselves) | call ids of nine characters, `random_seed`, no `stream_options` |
//! | Groq | not | `reasoning_effort`, of OpenAI's open models | thoughts apart from the text only when asked |
//! | xAI | not | `reasoning_effort`, of its small model | |
//! | others | not | `reasoning_effort` | |

use agentsvc_systems::kernel::record::hex;
use agentsvc_systems::prompt::Prompt;
use sha2::{Digest, Sha256};

use crate::kernel::host::host_of;
use crate::model::Request;
use crate::model::provider::Target;

/// The beginnings of the names of OpenAI's models that think.
const THINKING_FAMILIES: &[&str] = &["o1", "o3", "o4", "gpt-5"];

/// How what the model thought goes back to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thoughts {
    /// Still open.
    Kept,
    /// As the text of `reasoning_content`; with every tool call, even an empty one, where it is a model that thinks.
    Text {
        /// A message with calls and without the key is refused.
        always: bool,
    },
    /// As the blocks of `reasoning_details`.
    Details,
}

/// How a model is asked to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    /// Not at all: it does, or it does not.
    Never,
    /// `reasoning_effort`.
    Effort,
    /// `reasoning: {effort}`.
    Reasoning,
    /// `thinking: {type: enabled}`.
    Thinking,
}

/// What a provider wants otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    /// How thoughts go back.
    pub(super) thoughts: Thoughts,
    /// How thinking is asked for.
    pub(super) asking: Asking,
    /// It wants the thoughts of this model said to be apart from the text.
    pub(super) parts_thoughts: bool,
    /// It takes `prompt_cache_key`.
    pub(super) takes_cache_key: bool,
    /// It takes `stream_options`; else its streams end with the usage anyway.
    pub(super) takes_stream_options: bool,
    /// Its call ids have nine letters and digits, and no others are taken.
    pub(super) has_short_ids: bool,
}

impl Dialect {
    /// What is sent where nothing is known.
    const PLAIN: Self = Self {
        thoughts: Thoughts::Kept,
        asking: Asking::Effort,
        parts_thoughts: false,
        takes_cache_key: false,
        takes_stream_options: true,
        has_short_ids: false,
    };

    /// The dialect of a target, by its provider's name or its host.
    pub(super) fn of(target: &Target) -> Self {
        let host = host_of(&target.base_url).unwrap_or_default();
        let at = |domain: &str| host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        let is = |name: &str, domain: &str| *target.provider == *name || at(domain);
        let text = |always| Thoughts::Text { always };
        if at("api.openai.com") {
            Self { takes_cache_key: true, ..Self::PLAIN }
        } else if is("openrouter", "openrouter.ai") {
            Self { thoughts: Thoughts::Details, asking: Asking::Reasoning, ..Self::PLAIN }
        } else if is("deepseek", "deepseek.com") {
            Self { thoughts: text(target.reasons), asking: Asking::Thinking, ..Self::PLAIN }
        } else if is("moonshot", "moonshot.ai") || at("moonshot.cn") {
            Self { thoughts: text(target.reasons), asking: Asking::Never, ..Self::PLAIN }
        } else if is("zai", "z.ai") || at("bigmodel.cn") {
            Self { thoughts: text(false), asking: Asking::Thinking, ..Self::PLAIN }
        } else if is("mistral", "mistral.ai") {
            let own = Self { asking: Asking::Never, takes_cache_key: at("mistral.ai"), ..Self::PLAIN };
            Self { takes_stream_options: false, has_short_ids: true, ..own }
        } else if is("groq", "groq.com") {
            let is_open = target.model.contains("gpt-oss");
            let asking = if is_open { Asking::Effort } else { Asking::Never };
            Self { asking, parts_thoughts: target.reasons && !is_open, ..Self::PLAIN }
        } else if is("xai", "x.ai") {
            let asking = if target.model.contains("grok-3-mini") { Asking::Effort } else { Asking::Never };
            Self { asking, ..Self::PLAIN }
        } else {
            Self::PLAIN
        }
    }
}

/// A model of OpenAI's that thinks, under whatever provider: it bounds its answer by `max_completion_tokens` and takes
/// no temperature.
pub(in crate::model) fn is_thinking_family(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let belongs = |family: &str| {
        name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', ':', '@']))
    };
    THINKING_FAMILIES.iter().any(|family| belongs(family)) && !name.contains("-chat")
}

/// The model thinks, as the catalog or its name says.
pub(in crate::model) fn reasons(target: &Target) -> bool {
    target.reasons || is_thinking_family(&target.model)
}

/// What brings the calls of one conversation to the same cache, where the provider takes it: a hash of what the prompts
/// of the conversation have in common, their beginning. It tells nothing of what it was made from.
pub(in crate::model) fn cache_key(request: &Request<'_>) -> Option<String> {
    let is_taken = Dialect::of(request.target).takes_cache_key;
    is_taken.then(|| beginning(request.prompt))
}

fn beginning(prompt: &Prompt) -> String {
    let mut hash = Sha256::new();
    hash.update(prompt.system.as_bytes());
    hash.update([0]);
    if let Some(first) = prompt.messages.first() {
        hash.update(first.plain_text().as_bytes());
    }
    hex(&hash.finalize()[..16])
}

/// An id of nine letters and digits for a call whose own id is none; the same for the same.
pub(super) fn short_id(id: &str) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    let hash = Sha256::digest(id.as_bytes());
    hash.iter().take(9).map(|byte| char::from(DIGITS[usize::from(*byte) % DIGITS.len()])).collect()
}

#[cfg(test)]
mod tests {
    use agentsvc_components::session::message::Role;

    use super::*;
    use crate::model::provider::DriverKind;
    use crate::model::testing;
    use crate::model::testing::{prompt, text};

    fn of(provider: &str, base_url: &str, model: &str) -> Dialect {
        let target = testing::target(DriverKind::OpenAi, base_url);
        Dialect::of(&Target { provider: provider.into(), model: model.into(), reasons: true, ..target })
    }

    #[test]
    fn a_provider_is_known_by_its_name_or_its_host() {
        assert_eq!(of("p", "http://h/v1", "m"), Dialect::PLAIN);
        assert_eq!(of("p", "https://notdeepseek.com/v1", "m"), Dialect::PLAIN);
        assert_eq!(of("p", "https://api.deepseek.com/v1", "m"), of("deepseek", "http://127.0.0.1:1/v1", "m"));
        assert!(of("openai", "https://api.openai.com/v1", "m").takes_cache_key);
        assert!(!of("openai", "https://proxy.example/v1", "m").takes_cache_key);
        assert!(of("mistral", "http://127.0.0.1:1", "m").has_short_ids);
        assert_eq!(of("groq", "https://api.groq.com/openai/v1", "qwen/qwen3-32b").asking, Asking::Never);
        assert_eq!(of("groq", "https://api.groq.com/openai/v1", "openai/gpt-oss-20b").asking, Asking::Effort);
        assert_eq!(of("xai", "https://api.x.ai/v1", "grok-4").asking, Asking::Never);
    }

    #[test]
    fn models_that_think() {
        for model in ["o1", "o3-mini", "o4-mini", "gpt-5", "gpt-5-mini", "gpt-5.1", "openai/gpt-5"] {
            assert!(is_thinking_family(model), "{model}");
        }
        for model in ["gpt-4o", "gpt-5-chat-latest", "o10", "omni", "gpt-50", "m", ""] {
            assert!(!is_thinking_family(model), "{model}");
        }
    }

    #[test]
    fn a_cache_key_holds_for_a_conversation() {
        let first = (Role::User, vec![text("q")]);
        let early = prompt(vec![first.clone()]);
        let late = prompt(vec![first, (Role::Assistant, vec![text("a")]), (Role::User, vec![text("more")])]);
        let other = prompt(vec![(Role::User, vec![text("another")])]);
        assert_eq!(beginning(&early), beginning(&late));
        assert_ne!(beginning(&early), beginning(&other));
        assert_eq!(beginning(&early).len(), 32);
    }

    #[test]
    fn short_ids() {
        assert_eq!(short_id("abcDEF123"), "abcDEF123");
        let made = short_id("call_1_0");
        assert!(made.len() == 9 && made.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{made}");
        assert_eq!(made, short_id("call_1_0"));
        assert_ne!(made, short_id("call_1_1"));
    }
}
