//! Which tools a manifest grants. One rule for offering and for running.

use agentsvc_components::manifest::Manifest;
use agentsvc_systems::kernel::glob;
use agentsvc_systems::manifest;

use super::{Need, OfSkills, Tool};

/// True when an agent of this manifest may call the tool: by its name, by the capability that it needs, and by the server
/// or the skill that has it.
pub(crate) fn allows(manifest: &Manifest, tool: &Tool) -> bool {
    let has_server = |server: &str| glob::any(&manifest.mcp_servers, server);
    let is_named = match &tool.skills {
        Some(skills) => is_granted_by(manifest, &tool.name, skills),
        None => is_granted(manifest, &tool.name),
    };
    is_named && has(manifest, tool.needs) && tool.server.as_deref().is_none_or(has_server)
}

/// Does an agent have one of the skills that bring a tool, and may it call the tool for that?
fn is_granted_by(manifest: &Manifest, tool: &str, skills: &OfSkills) -> bool {
    let is_had = |(name, hash): &(Box<str>, Box<str>)| manifest::has_skill(manifest, name, hash);
    let is_named = |skill: &(Box<str>, Box<str>)| is_had(skill) && manifest.skills.contains(&skill.0);
    if skills.shows || skills.list.iter().any(is_named) {
        return skills.list.iter().any(is_had) && !is_denied(manifest, tool);
    }
    skills.list.iter().any(is_had) && is_granted(manifest, tool)
}

/// Does the manifest give what a tool needs?
pub(crate) fn has(manifest: &Manifest, need: Need) -> bool {
    let capabilities = &manifest.capabilities;
    match need {
        Need::Nothing => true,
        Need::Files => capabilities.file_system != Some(false),
        Need::Shell => !capabilities.shell.is_empty(),
        Need::Network => !capabilities.network.is_empty(),
        Need::Spawn => capabilities.agent_spawn == Some(true),
        Need::MemoryRead => !capabilities.memory_read.is_empty(),
        Need::MemoryWrite => !capabilities.memory_write.is_empty(),
    }
}

/// True when the manifest's lists let an agent call a tool of this name.
pub(crate) fn is_granted(manifest: &Manifest, tool: &str) -> bool {
    glob::any(&manifest.capabilities.tools, tool) && !is_denied(manifest, tool)
}

/// Do the manifest's lists keep an agent from a tool of this name, whatever else grants it?
pub(crate) fn is_denied(manifest: &Manifest, tool: &str) -> bool {
    let among = |patterns: &[Box<str>]| glob::any(patterns, tool);
    (!manifest.tool_allowlist.is_empty() && !among(&manifest.tool_allowlist)) || among(&manifest.tool_blocklist)
}

#[cfg(test)]
mod tests {
    use agentsvc_components::manifest::Manifest;

    use super::is_granted;

    #[test]
    fn grants_need_the_capability_and_both_lists() {
        let grants = |tools: &[&str], allowed: &[&str], blocked: &[&str]| {
            let list = |patterns: &[&str]| patterns.iter().map(|pattern| Box::from(*pattern)).collect();
            let mut manifest = Manifest::default();
            manifest.capabilities.tools = list(tools);
            manifest.tool_allowlist = list(allowed);
            manifest.tool_blocklist = list(blocked);
            is_granted(&manifest, "system_time")
        };
        assert!(!grants(&[], &[], &[]));
        assert!(grants(&["*"], &[], &[]));
        assert!(grants(&["system_time"], &["system_*"], &["web_*"]));
        assert!(!grants(&["web_fetch"], &[], &[]));
        assert!(!grants(&["*"], &["web_*"], &[]));
        assert!(!grants(&["*"], &["*"], &["system_*"]));
    }
}
