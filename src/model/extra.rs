//! What a prompt shows beside the conversation: goals, what the request adds, and memory entries.

use std::sync::Arc;

use agentsvc_components::proactive_memory::recall::{Recall, RecallScope, Recalled, RecalledEntry};
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_systems::prompt;

use crate::kernel::settings::Settings;
use crate::proactive_memory::recall;
use crate::skill::Skills;
pub(super) use crate::skill::active::split as split_summary;

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

    /// Adds what plugins have brought for the turn. A turn that has its entries gets no more.
    pub(super) fn add(&mut self, entries: Vec<RecalledEntry>) {
        if entries.is_empty() {
            return;
        }
        match self {
            Self::Found(recalled) => recalled.memories.extend(entries),
            Self::Nothing => *self = Self::Found(Recalled { memories: entries, ..Recalled::default() }),
            Self::Search(_) | Self::Known(_) => {}
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

/// What stands behind the agent's own system text: its skills and its open goals, which seldom change, and then what the request
/// adds. `read` are skills that the compacted part of the conversation has read.
pub(super) fn behind(settings: &Settings, call: &ModelCall, read: &[String], tokens_max: u64) -> String {
    let (skills, manifest) = (settings.get::<Skills>(), &call.manifest.manifest);
    let skills = [skills.shown(manifest), skills.instructions(manifest, read)].into_iter().flatten();
    let mut text: String = skills.map(|text| fitted_more(&text, tokens_max / 2)).collect();
    let others = [call.goals.as_deref(), call.request.as_deref().and_then(|asked| asked.system.as_deref())];
    text.extend(others.into_iter().flatten().map(|text| fitted_more(text, tokens_max)));
    text
}

/// A text behind the agent's own system text, of at most so many bytes: with the tokens of the prompt, at most a quarter of it.
fn fitted_more(text: &str, bytes_max: u64) -> String {
    let mut more = format!("\n\n{text}");
    prompt::shorten(&mut more, usize::try_from(bytes_max).unwrap_or(usize::MAX));
    more
}
