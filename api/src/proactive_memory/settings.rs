//! What the configuration says of memory entries. Implemented where the configuration is known.

use agentsvc_systems::config::memory::MemorySettings;

/// `[proactive_memory]` as it is in force.
#[derive(Clone, Debug, PartialEq)]
pub struct ProactiveMemory {
    /// Are entries made of turns, and given to them?
    pub enabled: bool,
    /// Are entries made of turns?
    pub auto_memorize: bool,
    /// Are entries given to turns?
    pub auto_retrieve: bool,
    /// Does a model extract entries, or rules alone?
    pub has_extraction_model: bool,
    /// The categories that are extracted.
    pub extract_categories: Vec<Box<str>>,
    /// Hours after which entries of a session expire.
    pub session_ttl_hours: u32,
    /// From this similarity on, two entries are duplicates; 0 to 1.
    pub duplicate_threshold: f64,
    /// From this similarity on, a new fact takes the place of an entry of the same category; 0 to 1.
    pub update_threshold_same_category: f64,
    /// The same of another category.
    pub update_threshold_cross_category: f64,
    /// How fast confidence decays, per day.
    pub confidence_decay_rate: f64,
}

impl ProactiveMemory {
    /// What is in force for an agent whose manifest overrides some of it.
    #[must_use]
    pub fn for_agent(mut self, own: &MemorySettings) -> Self {
        (self.enabled, self.auto_memorize, self.auto_retrieve) = (own.enabled, own.auto_memorize, own.auto_retrieve);
        self.has_extraction_model = own.extraction_model.is_some();
        self
    }
}

/// Tells what is in force.
pub trait ProactiveMemorySettings: Send + Sync + 'static {
    /// As it is now.
    fn now(&self) -> ProactiveMemory;
}
