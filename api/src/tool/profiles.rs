//! Profiles: named sets of tools, with the capabilities that these take (spec 2, GET /api/profiles). They are there to be
//! read and copied into a manifest; one line each.

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

/// Every profile, the profiles, from the fewest rights to the most.
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
    use agentsvc_systems::manifest;

    use super::PROFILES;

    #[test]
    fn each_is_a_piece_of_a_manifest() {
        for profile in PROFILES {
            let text = format!("name = \"x\"\n{}", profile.manifest_toml());
            let capabilities = manifest::parse(&text).unwrap().manifest.capabilities;
            assert_eq!(capabilities.tools.len(), profile.tools.len(), "{}", profile.name);
            assert_eq!(capabilities.network.is_empty(), !profile.lists.iter().any(|(key, _)| *key == "network"));
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
}
