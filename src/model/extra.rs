//! What a prompt shows beside the conversation: goals, what the request adds, and memory entries.

use std::sync::Arc;

use agentsvc_components::proactive_memory::recall::{Recall, RecallScope, Recalled};
use agentsvc_systems::prompt;

use crate::proactive_memory::recall;

/// What a call knows of the entries that its prompt shows.
pub(super) enum Memory {
    /// It shows none.
    Nothing,
    /// They are searched for before all else.
    Search(RecallScope),
    /// They were found; the turn has not heard of them yet.
    Found(Recalled),
    /// The turn has them.
    Known(Arc<Recalled>),
}

impl Memory {
    /// What a call is given.
    pub(super) fn of(recall: Option<Recall>) -> Self {
        match recall {
            Some(Recall::Search(scope)) => Self::Search(scope),
            Some(Recall::Stored(recalled)) => Self::Known(recalled),
            None => Self::Nothing,
        }
    }

    /// The entries that stand before the message of the turn; `None` for none. `tell` hears of those that were just found.
    pub(super) fn shown(&mut self, tokens_max: u64, tell: impl FnOnce(Recalled)) -> Option<String> {
        let recalled = match std::mem::replace(self, Self::Nothing) {
            Self::Known(recalled) => recalled,
            Self::Found(mut recalled) => {
                recall::fit(&mut recalled, tokens_max);
                if recalled.is_of_note() {
                    tell(recalled.clone());
                }
                Arc::new(recalled)
            }
            Self::Nothing | Self::Search(_) => return None,
        };
        let text = (!recalled.memories.is_empty()).then(|| recall::text(&recalled));
        *self = Self::Known(recalled);
        text
    }
}

/// What stands behind the agent's own system text: its open goals, which seldom change, and then what the request adds.
pub(super) fn behind(goals: Option<&str>, asked: Option<&str>, tokens_max: u64) -> String {
    [goals, asked].into_iter().flatten().map(|text| fitted_more(text, tokens_max)).collect()
}

/// A text behind the agent's own system text; at most a quarter of the prompt.
fn fitted_more(text: &str, tokens_max: u64) -> String {
    let mut more = format!("\n\n{text}");
    prompt::shorten(&mut more, usize::try_from(tokens_max).unwrap_or(usize::MAX));
    more
}
