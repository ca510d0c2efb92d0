//! What an archive is made of, and what of it a restore takes (spec 2, Backup and restore, rules 1 to 5).
//!
//! | entry | components |
//! |-------|------------|
//! | `config.toml`, `vault/<name>.sealed`, `data/peer_keypair.json`, `data/trusted_peers.json` | `config` |
//! | `world/agents.rows`, `workspaces/`, `uploads/` | `agents` |
//! | `world/workflows.rows` | `workflows` |
//! | `data/cron_jobs.rows` | `cron_jobs`, `data` |
//! | `data/hand_state.rows`, `data/hand_state*` | `hand_state`, `data` |
//! | `data/custom_models.json` | `custom_models`, `data` |
//! | `data/world.rows` and everything else under `data/` | `data` |
//! | `skills/` | `skills` |
//! | `data/plugins/`: what plugins keep | none, as `plugins/` |
//! | `agent-types/`, `hands/`, `plugins/`, `extensions/`, `channels/`, `mcp/`, `audit/trail.rows` | none |

use agentsvc_components::kernel::record::Space;

agentsvc_components::enum_words! {
    /// A part of a home that can be restored by itself.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Component [ALL, as_str, parse] {
        /// `config.toml` and the sealed secrets.
        Config = "config",
        /// Schedules and cron jobs.
        CronJobs = "cron_jobs",
        /// What hands keep.
        HandState = "hand_state",
        /// Models that clients added.
        CustomModels = "custom_models",
        /// Agents and all that is theirs: sessions, messages, memory, triggers, goals, approvals, usage, files.
        Agents = "agents",
        /// Skills.
        Skills = "skills",
        /// Workflow definitions and runs.
        Workflows = "workflows",
        /// Everything under `data/`, and the rows of the world that are nobody's.
        Data = "data",
    }
}

impl Component {
    /// Every name, for messages.
    pub fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

/// Rows of the store that go together; one rows file each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Agents and what is theirs.
    Agents,
    /// Workflow definitions and runs.
    Workflows,
    /// Schedules and cron jobs.
    CronJobs,
    /// Instances of hands.
    HandState,
    /// The rest: the task queue, and kinds that this table does not know.
    Data,
    /// The audit trail. It belongs to no component: a trail that is there goes on.
    AuditLog,
}

impl Part {
    /// All of them. In an archive [`Agents`](Self::Agents) stand behind the files, the others before them.
    pub const ALL: [Self; 6] =
        [Self::Agents, Self::Workflows, Self::CronJobs, Self::HandState, Self::Data, Self::AuditLog];

    /// Where a row belongs, by the kind byte of its key.
    pub const fn of(space: Space, kind: u8) -> Self {
        match (space, kind) {
            (_, b'z') => Self::AuditLog,
            (Space::World, b'd' | b'e') => Self::CronJobs,
            (Space::World, b'H') => Self::HandState,
            (Space::World, b'f' | b'n' | b'p') => Self::Workflows,
            (Space::World, b'a' | b'm' | b's' | b't' | b'c' | b'w' | b'k' | b'E' | b'b' | b'l' | b'o')
            | (Space::World, b'g' | b'h' | b'v' | b'x' | b'i' | b'G' | b'Q' | b'V' | b'Z' | b'I' | b'3')
            | (Space::Content, b'r' | b'u' | b'q' | b'x' | b'y' | b'k' | b'e' | b'i' | b'j' | b'b' | b'g') => {
                Self::Agents
            }
            _ => Self::Data,
        }
    }

    /// Its entry in an archive.
    pub const fn entry(self) -> &'static str {
        match self {
            Self::Agents => "world/agents.rows",
            Self::Workflows => "world/workflows.rows",
            Self::CronJobs => "data/cron_jobs.rows",
            Self::HandState => "data/hand_state.rows",
            Self::Data => "data/world.rows",
            Self::AuditLog => "audit/trail.rows",
        }
    }

    /// The part of an entry, if it is a rows file.
    pub fn of_entry(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.entry() == name)
    }
}

/// The entry of the configuration.
pub const CONFIG: &str = "config.toml";
/// The file of models that clients added, under `data/`.
const CUSTOM_MODELS: &str = "data/custom_models.json";

/// The files of the network of nodes, under `data/`.
const PEER_FILES: [&str; 2] = ["data/peer_keypair.json", "data/trusted_peers.json"];

/// Directories of the home that go into an archive whole, and the components they belong to.
pub const TREES: [(&str, &[Component]); 9] = [
    ("skills", &[Component::Skills]),
    ("workspaces", &[Component::Agents]),
    ("uploads", &[Component::Agents]),
    ("agent-types", &[]),
    ("hands", &[]),
    ("plugins", &[]),
    ("extensions", &[]),
    ("channels", &[]),
    ("mcp", &[]),
];

/// The components that an entry belongs to; with none of them it is restored whatever is asked for (rule 4).
pub fn components_of(entry: &str) -> &'static [Component] {
    use Component::{Agents, Config, CronJobs, CustomModels, Data, HandState, Workflows};
    match Part::of_entry(entry) {
        Some(Part::Agents) => return &[Agents],
        Some(Part::Workflows) => return &[Workflows],
        Some(Part::CronJobs) => return &[CronJobs, Data],
        Some(Part::HandState) => return &[HandState, Data],
        Some(Part::Data) => return &[Data],
        Some(Part::AuditLog) => return &[],
        None => {}
    }
    let (root, rest) = entry.split_once('/').unwrap_or((entry, ""));
    match root {
        CONFIG | "vault" => &[Config],
        // The identity of this node is a secret, and belongs with whom it trusts.
        "data" if PEER_FILES.contains(&entry) => &[Config],
        "data" if entry == CUSTOM_MODELS => &[CustomModels, Data],
        "data" if rest.starts_with("hand_state") => &[HandState, Data],
        // What plugins keep comes back with them.
        "data" if rest.starts_with("plugins/") => &[],
        "data" => &[Data],
        _ => TREES.iter().find(|(tree, _)| *tree == root).map_or(&[], |(_, components)| components),
    }
}

/// What of an archive is to be restored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The components; `None` is all of them.
    pub components: Option<Vec<Component>>,
    /// The target keeps its own configuration and secrets (rule 1).
    pub keep_config: bool,
}

impl Selection {
    /// Is the entry to be restored?
    pub fn takes(&self, entry: &str) -> bool {
        let of = components_of(entry);
        if self.keep_config && of.contains(&Component::Config) {
            return false;
        }
        match &self.components {
            Some(wanted) => of.is_empty() || of.iter().any(|component| wanted.contains(component)),
            None => true,
        }
    }

    /// Are the rows to be restored? The trail is none of what is asked for.
    pub fn takes_part(&self, part: Part) -> bool {
        part != Part::AuditLog && self.takes(part.entry())
    }

    /// Is the whole component restored?
    pub fn has(&self, component: Component) -> bool {
        let is_kept = self.keep_config && component == Component::Config;
        let wanted = |wanted: &Vec<Component>| {
            let with_data = [Component::CronJobs, Component::HandState, Component::CustomModels].contains(&component);
            wanted.contains(&component) || with_data && wanted.contains(&Component::Data)
        };
        !is_kept && self.components.as_ref().is_none_or(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(component: Component) -> Selection {
        Selection { components: Some(vec![component]), keep_config: false }
    }

    #[test]
    fn names_are_those_of_the_specification() {
        let expected = "config, cron_jobs, hand_state, custom_models, agents, skills, workflows, data";
        assert_eq!(Component::names(), expected);
        assert!(Component::ALL.iter().all(|component| Component::parse(component.as_str()) == Some(*component)));
        assert_eq!(Component::parse("Agents"), None);
    }

    #[test]
    fn data_covers_everything_under_data() {
        let data = only(Component::Data);
        for entry in [
            "data/cron_jobs.rows",
            "data/world.rows",
            "data/custom_models.json",
            "data/hand_state.json",
            "data/bindings.json",
            "data/deep/file",
        ] {
            assert!(data.takes(entry), "{entry}");
        }
        for entry in ["world/agents.rows", "world/workflows.rows", "config.toml", "skills/a/skill.toml", "uploads/x"] {
            assert!(!data.takes(entry), "{entry}");
        }
        assert!(data.has(Component::CronJobs) && !data.has(Component::Agents));
    }

    #[test]
    fn what_belongs_to_nobody_is_always_taken() {
        for component in Component::ALL {
            assert!(only(component).takes("agent-types/coder.toml"));
            assert!(only(component).takes("hands/x/hand.toml"));
            assert!(
                only(component).takes("data/plugins/notes/home/x")
                    && only(component).takes("plugins/notes/plugin.toml")
            );
        }
        assert!(!only(Component::CronJobs).takes("data/custom_models.json"));
        assert!(only(Component::CronJobs).takes_part(Part::CronJobs));
        assert!(!only(Component::CronJobs).takes_part(Part::Agents));
    }

    #[test]
    fn a_kept_configuration_is_kept_whatever_is_asked_for() {
        let keep = |components| Selection { components, keep_config: true };
        assert!(!keep(None).takes("config.toml") && !keep(None).takes("vault/provider-openai.sealed"));
        assert!(!keep(Some(vec![Component::Config])).takes("config.toml"));
        assert!(keep(None).takes("world/agents.rows"));
        assert!(Selection::default().takes("config.toml"));
    }

    #[test]
    fn every_kind_has_one_place() {
        assert_eq!(Part::of(Space::World, b'd'), Part::CronJobs);
        assert_eq!(Part::of(Space::Content, b'z'), Part::AuditLog);
        assert_eq!(Part::of(Space::World, b'H'), Part::HandState);
        assert_eq!(Part::of(Space::World, b'j'), Part::Data);
        assert_eq!(Part::of(Space::World, b'!'), Part::Data);
        assert!(Part::ALL.into_iter().all(|part| Part::of_entry(part.entry()) == Some(part)));
    }
}
