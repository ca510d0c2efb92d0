//! `[proactive_memory]`: entries of the memory that agents keep (spec 2, Memory).

use agentsvc_api::proactive_memory::settings::{ProactiveMemory as Values, ProactiveMemorySettings};
use agentsvc_systems::config::memory::MemorySettings;
use agentsvc_systems::config::{FAMILY_MEMORY_BYTES_DEFAULT, MAX_MEMORIES_DEFAULT};
use agentsvc_systems::manifest;
use agentsvc_systems::proactive_memory::limits::{ENTRIES_MAX, ENTRY_CATEGORY_BYTES_MAX, ENTRY_HITS_MAX};

use crate::kernel::config::table;
use crate::kernel::settings::Settings;

table! {
    /// `[proactive_memory]`.
    pub struct ProactiveMemory {
        /// Make memory entries of conversations and give them to later turns. If false, entries change only over the API and
        /// by tools.
        enabled: bool = true => flag().writable(),
        /// Make entries of turns.
        auto_memorize: bool = true => flag().writable(),
        /// Give entries to turns.
        auto_retrieve: bool = true => flag().writable(),
        /// Maximum number of entries that a turn is given, 1 to 100.
        max_retrieve: u32 = 10 => integer(1..=ENTRY_HITS_MAX as u64).writable(),
        /// Model that extracts entries of turns, as provider/model: one more paid call a turn. Default: rules extract them.
        extraction_model: Option<Box<str>> => text(model).example("openai/gpt-4o-mini"),
        /// Categories of entries that are extracted; others are left out.
        extract_categories: Vec<Box<str>> = categories() => list(category).writable(),
        /// Hours after which entries of the level `session` expire, 1 to 8760.
        session_ttl_hours: u32 = 24 => integer(1..=8_760).writable(),
        /// Similarity from which on two entries are duplicates, 0 to 1.
        duplicate_threshold: f64 = 0.85 => number(0.0..=1.0).writable(),
        /// Similarity from which on an extracted fact updates an entry of the same category, 0 to 1.
        update_threshold_same_category: f64 = 0.7 => number(0.0..=1.0).writable(),
        /// Similarity from which on an extracted fact updates an entry of another category, 0 to 1.
        update_threshold_cross_category: f64 = 0.8 => number(0.0..=1.0).writable(),
        /// How fast the confidence of unused entries decays per day, 0 to 10.
        confidence_decay_rate: f64 = 0.01 => number(0.0..=10.0).writable(),
        /// Maximum number of entries of an agent, 1 to 100000. More: the least confident and oldest are deleted.
        max_memories_per_agent: u32 = MAX_MEMORIES_DEFAULT => integer(1..=ENTRIES_MAX as u64).writable(),
        /// Maximum size of what the agents of one family remember in bytes, which is an agent that a client created with those
        /// spawned below it, or of the agents of one user with a limited role: memory, entries and knowledge. Beyond, no more is
        /// stored.
        family_max_bytes: u64 = FAMILY_MEMORY_BYTES_DEFAULT => integer(1 << 20..=1 << 50).writable(),
        /// Maximum characters of the entries that a turn is given, 100 to 1000000.
        format_context_max_chars: u32 = 8_000 => integer(100..=1_000_000).writable(),
    }
}

fn categories() -> Vec<Box<str>> {
    let words = [
        "communication_style",
        "preference",
        "expertise",
        "work_style",
        "project_context",
        "personal_detail",
        "frustration",
    ];
    words.map(Box::from).into()
}

fn category(text: &str) -> Result<Box<str>, String> {
    if text.trim().is_empty() || text.len() > ENTRY_CATEGORY_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(format!("must be one word of 1 to {ENTRY_CATEGORY_BYTES_MAX} bytes"));
    }
    Ok(text.into())
}

fn model(text: &str) -> Result<Box<str>, String> {
    manifest::model_name(text).map(|()| text.into())
}

impl ProactiveMemory {
    /// What the world decides by.
    pub(crate) fn of_turns(&self) -> MemorySettings {
        MemorySettings {
            enabled: self.enabled,
            auto_memorize: self.auto_memorize,
            auto_retrieve: self.auto_retrieve,
            extraction_model: self.extraction_model.clone(),
        }
    }
}

/// What is in force.
pub(crate) struct InForce(pub(crate) Settings);

impl ProactiveMemorySettings for InForce {
    fn now(&self) -> Values {
        let config = self.0.get::<ProactiveMemory>();
        Values {
            enabled: config.enabled,
            auto_memorize: config.auto_memorize,
            auto_retrieve: config.auto_retrieve,
            has_extraction_model: config.extraction_model.is_some(),
            extract_categories: config.extract_categories.clone(),
            session_ttl_hours: config.session_ttl_hours,
            duplicate_threshold: config.duplicate_threshold,
            update_threshold_same_category: config.update_threshold_same_category,
            update_threshold_cross_category: config.update_threshold_cross_category,
            confidence_decay_rate: config.confidence_decay_rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ProactiveMemory;
    use crate::kernel::config::read_table;

    #[test]
    fn keys_are_read_and_checked() {
        let parse = |text: &str| read_table::<ProactiveMemory>("proactive_memory", text);
        let read =
            parse("[proactive_memory]\nextract_categories = [\"preference\"]\nduplicate_threshold = 1\n").unwrap();
        assert_eq!((read.config.extract_categories.len(), read.config.max_memories_per_agent), (1, 1_000));
        for (line, message) in [
            ("session_ttl_hours = 0", "proactive_memory.session_ttl_hours: must be 1 to 8760"),
            ("max_memories_per_agent = 100001", "proactive_memory.max_memories_per_agent: must be 1 to 100000"),
            ("duplicate_threshold = 1.5", "proactive_memory.duplicate_threshold: must be 0 to 1"),
            ("extraction_model = \"gpt\"", "proactive_memory.extraction_model: must be provider/model"),
            ("extract_categories = [\"\"]", "proactive_memory.extract_categories"),
        ] {
            let error = parse(&format!("[proactive_memory]\n{line}\n")).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
