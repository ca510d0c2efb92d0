//! What the world needs to know of `[proactive_memory]`.

use agentsvc_components::manifest::Manifest;
use serde::{Deserialize, Serialize};

/// Whether entries are made of turns and given to them: of the daemon, or of one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySettings {
    /// Neither is done where this is false.
    pub enabled: bool,
    /// Entries are made of turns.
    pub auto_memorize: bool,
    /// Entries are given to turns.
    pub auto_retrieve: bool,
    /// The model that extracts entries, as `provider/model`; `None`: rules extract them.
    pub extraction_model: Option<Box<str>>,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { enabled: true, auto_memorize: true, auto_retrieve: true, extraction_model: None }
    }
}

impl MemorySettings {
    /// Those in effect for agents of this manifest: what it says, else what the daemon's say.
    #[must_use]
    pub fn of(&self, manifest: &Manifest) -> Self {
        let own = &manifest.proactive_memory;
        let model = own.extraction_model.as_ref().or(self.extraction_model.as_ref());
        Self {
            enabled: own.enabled.unwrap_or(self.enabled),
            auto_memorize: own.auto_memorize.unwrap_or(self.auto_memorize),
            auto_retrieve: own.auto_retrieve.unwrap_or(self.auto_retrieve),
            extraction_model: model.filter(|model| !model.is_empty()).cloned(),
        }
    }

    /// Are entries made of turns?
    #[must_use]
    pub const fn memorizes(&self) -> bool {
        self.enabled && self.auto_memorize
    }

    /// Are entries given to turns?
    #[must_use]
    pub const fn retrieves(&self) -> bool {
        self.enabled && self.auto_retrieve
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::manifest::MemoryChoice;

    use super::*;

    #[test]
    fn a_manifest_overrides_what_it_names() {
        let daemon = MemorySettings { extraction_model: Some("p/m".into()), ..MemorySettings::default() };
        let of = |own: MemoryChoice| daemon.of(&Manifest { proactive_memory: own, ..Manifest::default() });
        assert_eq!(of(MemoryChoice::default()), daemon);
        let off = of(MemoryChoice { enabled: Some(false), auto_memorize: Some(true), ..MemoryChoice::default() });
        assert!(!off.memorizes() && !off.retrieves() && off.auto_memorize);
        let own = of(MemoryChoice {
            auto_retrieve: Some(false),
            extraction_model: Some("q/n".into()),
            ..MemoryChoice::default()
        });
        assert!(own.memorizes() && !own.retrieves());
        assert_eq!(own.extraction_model.as_deref(), Some("q/n"));
        let rules = of(MemoryChoice { extraction_model: Some(Box::default()), ..MemoryChoice::default() });
        assert_eq!(rules.extraction_model, None, "an empty word means rules");
    }
}
