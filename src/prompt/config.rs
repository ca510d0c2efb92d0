//! `[prompt_intelligence]`: versions of system prompts, and experiments.

use crate::kernel::config::table;

table! {
    /// `[prompt_intelligence]`.
    pub struct PromptIntelligence {
        /// Let system prompts have versions, and compare them in experiments. While this is off, running experiments rest, and
        /// agents use the system prompt that they have.
        enabled: bool = false => flag().writable(),
    }
}
