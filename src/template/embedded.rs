//! The agent types that come with the daemon: one file each, and one line here.

/// Names and texts.
pub const EMBEDDED: &[(&str, &str)] = &[
    ("analyst", include_str!("analyst.toml")),
    ("assistant", include_str!("assistant.toml")),
    ("coder", include_str!("coder.toml")),
    ("data-cleaner", include_str!("data-cleaner.toml")),
    ("ops-watcher", include_str!("ops-watcher.toml")),
    ("planner", include_str!("planner.toml")),
    ("researcher", include_str!("researcher.toml")),
    ("reviewer", include_str!("reviewer.toml")),
    ("support", include_str!("support.toml")),
    ("translator", include_str!("translator.toml")),
    ("tutor", include_str!("tutor.toml")),
    ("writer", include_str!("writer.toml")),
];

#[cfg(test)]
mod tests {
    use agentsvc_systems::manifest;

    use super::EMBEDDED;
    use crate::tool::toolset::built_in;

    #[test]
    fn each_is_a_good_manifest() {
        for (name, text) in EMBEDDED {
            let parsed = manifest::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(&*parsed.name, *name);
            let manifest = parsed.manifest;
            assert!(manifest.description.len() > 20 && !manifest.version.is_empty(), "{name}");
            assert!(manifest.system_prompt.len() > 400, "{name}: a real prompt");
            assert!(manifest.model.provider.is_empty(), "{name}: the daemon's default model answers");
            assert!(manifest.tags.iter().any(|tag| &**tag == "embedded"), "{name}");
            assert!(manifest.limits.daily.is_some(), "{name}: bounded spending");
            assert!(manifest.max_history_messages.is_some(), "{name}");
            assert!(manifest.capabilities.agent_spawn != Some(true), "{name}: makes no agents unless told to");
        }
        assert!(EMBEDDED.is_sorted_by_key(|(name, _)| name));
    }

    #[test]
    fn each_tool_that_is_named_exists_and_is_granted() {
        for (name, text) in EMBEDDED {
            let manifest = manifest::parse(text).unwrap().manifest;
            let lists = [&manifest.capabilities.tools, &manifest.tool_blocklist, &manifest.require_approval];
            for tool in lists.into_iter().flatten() {
                assert!(built_in().is_called(tool), "{name}: there is no tool {tool}");
            }
            // A tool that is named and not granted, because its capability is missing, would never be offered.
            let granted = built_in().granted(&manifest);
            for tool in &manifest.capabilities.tools {
                let is_granted = granted.iter().any(|spec| agentsvc_systems::kernel::glob::matches(tool, &spec.name));
                assert!(is_granted, "{name}: {tool} needs a capability that is not there");
            }
        }
    }
}
