//! Profiles: named sets of tools, with the capabilities that these take (spec 2, GET /api/profiles). A manifest names one as
//! `profile`, or has a copy of its capabilities; one line each.

use agentsvc_components::manifest::Capabilities;

/// A named set of tools.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// How far it reaches: `basic` changes nothing outside of the agent; `standard` reaches the web, files and other agents;
    /// `extended` runs commands; `full` is without bound.
    pub tier: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// `[capabilities] tools`: names, or `*`.
    pub tools: &'static [&'static str],
    /// The other lists of `[capabilities]`: key and patterns.
    pub lists: &'static [(&'static str, &'static [&'static str])],
    /// The switches of `[capabilities]`: key and value.
    pub switches: &'static [(&'static str, bool)],
}

const ALL: &[&str] = &["*"];
const MEMORY: &[(&str, &[&str])] = &[("memory_read", ALL), ("memory_write", ALL)];
const NO_FILES: &[(&str, bool)] = &[("file_system", false)];

/// The profile of a manifest that lists its tools itself, as others write it.
const CUSTOM: &str = "custom";

/// Every profile, from the fewest rights to the most.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "minimal",
        tier: "basic",
        description: "Chats, tells the time, reads its own past sessions and notifies its owner.",
        tools: &["system_time", "notify_owner", "session_search", "result_read"],
        lists: &[],
        switches: NO_FILES,
    },
    Profile {
        name: "messaging",
        tier: "basic",
        description: "Remembers the people it talks to, sends messages to other agents and posts tasks.",
        tools: &[
            "system_time",
            "notify_owner",
            "session_search",
            "result_read",
            "memory_store",
            "memory_recall",
            "memory_list",
            "memory_search",
            "memory_update",
            "memory_forget",
            "knowledge_add_entity",
            "knowledge_add_relation",
            "knowledge_query",
            "agent_list",
            "agent_find",
            "agent_send",
            "task_post",
            "task_list",
            "task_status",
        ],
        lists: MEMORY,
        switches: NO_FILES,
    },
    Profile {
        name: "research",
        tier: "standard",
        description: "Searches and reads the web, and keeps notes in files and memory.",
        tools: &[
            "system_time",
            "session_search",
            "result_read",
            "web_search",
            "web_fetch",
            "file_read",
            "file_write",
            "file_list",
            "memory_store",
            "memory_recall",
            "memory_list",
            "memory_search",
            "memory_update",
            "memory_forget",
            "knowledge_add_entity",
            "knowledge_add_relation",
            "knowledge_query",
            "tool_search",
            "tool_load",
        ],
        lists: &[("network", ALL), ("memory_read", ALL), ("memory_write", ALL)],
        switches: &[],
    },
    Profile {
        name: "automation",
        tier: "standard",
        description: "Schedules itself, works on tasks and goals, runs workflows and publishes events.",
        tools: &[
            "system_time",
            "notify_owner",
            "result_read",
            "schedule_create",
            "schedule_list",
            "schedule_delete",
            "cron_create",
            "cron_list",
            "cron_cancel",
            "task_post",
            "task_claim",
            "task_complete",
            "task_list",
            "task_status",
            "goal_update",
            "workflow_run",
            "event_publish",
            "agent_list",
            "agent_send",
            "web_fetch",
            "memory_store",
            "memory_recall",
            "memory_list",
            "memory_search",
            "memory_update",
            "memory_forget",
            "knowledge_add_entity",
            "knowledge_add_relation",
            "knowledge_query",
            "tool_search",
            "tool_load",
        ],
        lists: &[("network", ALL), ("memory_read", ALL), ("memory_write", ALL)],
        switches: NO_FILES,
    },
    Profile {
        name: "coding",
        tier: "extended",
        description: "Reads, changes and tests code in its workspace; runs the commands that [exec_policy] allows.",
        tools: &[
            "system_time",
            "result_read",
            "file_read",
            "file_write",
            "file_list",
            "file_delete",
            "apply_patch",
            "shell_exec",
            "web_search",
            "web_fetch",
            "tool_search",
            "tool_load",
        ],
        lists: &[("network", ALL), ("shell", ALL)],
        switches: &[],
    },
    Profile {
        name: "full",
        tier: "full",
        description: "All tools, including those that control other agents. Only for agents that you fully trust.",
        tools: ALL,
        lists: &[("network", ALL), ("shell", ALL), ("memory_read", ALL), ("memory_write", ALL)],
        switches: &[("agent_spawn", true)],
    },
];

impl Profile {
    /// The profile of this name; `None` for the one that has no tools of its own.
    ///
    /// # Errors
    /// The names that there are.
    pub(super) fn named(name: &str) -> Result<Option<&'static Self>, String> {
        if name.is_empty() || name == CUSTOM {
            return Ok(None);
        }
        let names = || PROFILES.iter().map(|profile| profile.name).collect::<Vec<_>>().join(", ");
        let found = PROFILES.iter().find(|profile| profile.name == name);
        found.map(Some).ok_or_else(|| format!("expected one of {}, {CUSTOM}", names()))
    }

    /// Gives its capabilities, but those whose keys `has` says to be written.
    pub(super) fn fill(&self, capabilities: &mut Capabilities, has: impl Fn(&str) -> bool) {
        let boxed = |words: &[&str]| words.iter().map(|word| Box::from(*word)).collect();
        capabilities.tools = boxed(self.tools);
        for (key, words) in self.lists.iter().filter(|(key, _)| !has(key)) {
            match *key {
                "network" => capabilities.network = boxed(words),
                "memory_read" => capabilities.memory_read = boxed(words),
                "memory_write" => capabilities.memory_write = boxed(words),
                "shell" => capabilities.shell = boxed(words),
                _ => {}
            }
        }
        for (key, value) in self.switches.iter().filter(|(key, _)| !has(key)) {
            match *key {
                "agent_spawn" => capabilities.agent_spawn = Some(*value),
                "file_system" => capabilities.file_system = Some(*value),
                _ => {}
            }
        }
    }

    /// The `[capabilities]` of a manifest that has this profile.
    #[must_use]
    pub fn manifest_toml(&self) -> String {
        let quoted = |words: &[&str]| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        let mut text = format!("[capabilities]\ntools = [{}]\n", quoted(self.tools));
        for (key, words) in self.lists {
            text.push_str(&format!("{key} = [{}]\n", quoted(words)));
        }
        for (key, value) in self.switches {
            text.push_str(&format!("{key} = {value}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::PROFILES;
    use crate::manifest::{parse, render};

    #[test]
    fn each_is_a_piece_of_a_manifest_and_the_same_by_its_name() {
        for profile in PROFILES {
            let copied = parse(&format!("name = \"x\"\n{}", profile.manifest_toml())).unwrap().manifest.capabilities;
            assert_eq!(copied.tools.len(), profile.tools.len(), "{}", profile.name);
            assert_eq!(copied.network.is_empty(), !profile.lists.iter().any(|(key, _)| *key == "network"));
            let named = parse(&format!("name = \"x\"\nprofile = \"{}\"", profile.name)).unwrap().manifest.capabilities;
            assert_eq!(named, copied, "{}", profile.name);
        }
        let with_memory = PROFILES.iter().filter(|profile| profile.tools.contains(&"memory_store"));
        for profile in with_memory {
            for tool in ["memory_search", "memory_update", "memory_forget", "knowledge_query", "knowledge_add_relation"]
            {
                assert!(profile.tools.contains(&tool), "{}: {tool}", profile.name);
            }
        }
        let mut names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PROFILES.len());
    }

    #[test]
    fn what_a_manifest_says_itself_counts_first() {
        let of = |text: &str| parse(&format!("name = \"x\"\n{text}")).map(|parsed| parsed.manifest.capabilities);
        // With tools of its own, the profile gives nothing.
        for tools in ["tools = [\"web_fetch\"]\nprofile = \"full\"", "profile = \"full\"\n[capabilities]\ntools = []"] {
            let own = of(tools).unwrap();
            assert!(own.tools.len() < 2 && own.shell.is_empty() && own.agent_spawn.is_none(), "{tools}");
        }
        let less = of("profile = \"full\"\n[capabilities]\nshell = [\"git\"]\nagent_spawn = false").unwrap();
        assert_eq!((less.shell, less.agent_spawn, less.network), (vec!["git".into()], Some(false), vec!["*".into()]));
        assert_eq!(of("profile = \"custom\"").unwrap(), of("").unwrap());
        let error = of("profile = \"everything\"").unwrap_err().to_string();
        assert!(error.contains("profile") && error.contains("coding"), "{error}");
    }

    #[test]
    fn a_change_of_capabilities_writes_them_out() {
        let text = "name = \"x\" # its name\nprofile = \"research\"\n";
        let mut parsed = parse(text).unwrap();
        parsed.manifest.description = "new".into();
        let described = render(text, "x", &parsed.manifest);
        assert!(described.contains("profile = \"research\""), "{described}");
        parsed.manifest.capabilities.tools.pop();
        let changed = render(text, "x", &parsed.manifest);
        assert!(!changed.contains("profile") && changed.contains("# its name"), "{changed}");
        assert_eq!(parse(&changed).unwrap().manifest, parsed.manifest);
    }
}
