//! A child never exceeds its parent: what an agent may give to an agent that it spawns.

use agentsvc_components::manifest::{Manifest, ModelChoice};

use crate::kernel::glob;

/// Fits a child's manifest under its parent's: what the parent is denied is denied to the child too.
///
/// # Errors
/// One sentence for the first thing that the child asks for and the parent does not have.
pub fn bound_child(parent: &Manifest, child: &mut Manifest) -> Result<(), String> {
    let (own, asked) = (&parent.capabilities, &mut child.capabilities);
    for (what, have, want) in [
        ("tools", &own.tools, &asked.tools),
        ("network", &own.network, &asked.network),
        ("memory_read", &own.memory_read, &asked.memory_read),
        ("memory_write", &own.memory_write, &asked.memory_write),
        ("shell", &own.shell, &asked.shell),
    ] {
        within(&format!("capabilities.{what}"), have, want)?;
    }
    if asked.agent_spawn == Some(true) && own.agent_spawn != Some(true) {
        return Err("capabilities.agent_spawn: the parent agent does not have this capability".to_owned());
    }
    if own.file_system == Some(false) {
        match asked.file_system {
            Some(true) => {
                return Err("capabilities.file_system: the parent agent does not have this capability".to_owned());
            }
            _ => asked.file_system = Some(false),
        }
    }
    within("skills", &parent.skills, &child.skills)?;
    within("mcp_servers", &parent.mcp_servers, &child.mcp_servers)?;
    if !parent.tool_allowlist.is_empty() {
        if child.tool_allowlist.is_empty() {
            child.tool_allowlist.clone_from(&parent.tool_allowlist);
        }
        within("tool_allowlist", &parent.tool_allowlist, &child.tool_allowlist)?;
    }
    if child.triggers.iter().any(|trigger| trigger.target_agent_id.is_some()) {
        return Err("triggers.target_agent_id: a spawned agent cannot target another agent".to_owned());
    }
    inherit(&parent.tool_blocklist, &mut child.tool_blocklist);
    inherit(&parent.require_approval, &mut child.require_approval);
    // Else an agent without money left would go on through its children.
    child.limits = child.limits.lower(parent.limits);
    for choice in std::iter::once(&child.model).chain(&child.fallback_models) {
        same_account(&parent.model, choice)?;
    }
    Ok(())
}

/// What binds the parent binds the child too.
fn inherit(parent: &[Box<str>], child: &mut Vec<Box<str>>) {
    for pattern in parent {
        if !child.contains(pattern) {
            child.push(pattern.clone());
        }
    }
}

fn within(what: &str, have: &[Box<str>], want: &[Box<str>]) -> Result<(), String> {
    match want.iter().find(|pattern| !glob::covers(have, pattern)) {
        Some(more) => Err(format!("{what}: the parent agent does not have {more:?}")),
        None => Ok(()),
    }
}

/// A model may choose another model, but neither another endpoint nor another key: those are the operator's.
fn same_account(parent: &ModelChoice, child: &ModelChoice) -> Result<(), String> {
    if child.base_url.is_some() && child.base_url != parent.base_url {
        return Err("model.base_url: must be the parent agent's endpoint".to_owned());
    }
    if child.api_key_env.is_some() && child.api_key_env != parent.api_key_env {
        return Err("model.api_key_env: must be the parent agent's variable".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn bound(parent: &str, child: &str) -> Result<Manifest, String> {
        let read = |text: &str| parse(&format!("name = \"a\"\n{text}")).unwrap().manifest;
        let mut child = read(child);
        bound_child(&read(parent), &mut child).map(|()| child)
    }

    #[test]
    fn a_child_has_at_most_what_its_parent_has() {
        for (parent, child, wrong) in [
            ("", "", ""),
            ("[capabilities]\ntools = [\"web_*\"]", "[capabilities]\ntools = [\"web_fetch\"]", ""),
            ("[capabilities]\ntools = [\"web_*\"]", "[capabilities]\ntools = [\"*\"]", "capabilities.tools"),
            ("[capabilities]\nnetwork = [\"a.org\"]", "[capabilities]\nnetwork = [\"b.org\"]", "capabilities.network"),
            ("[capabilities]\nshell = []", "[capabilities]\nshell = [\"ls\"]", "capabilities.shell"),
            ("", "[capabilities]\nagent_spawn = true", "agent_spawn"),
            ("[capabilities]\nfile_system = false", "[capabilities]\nfile_system = true", "file_system"),
            ("tool_allowlist = [\"a\"]", "tool_allowlist = [\"b\"]", "tool_allowlist"),
            ("", "[model]\napi_key_env = \"SECRET\"", "api_key_env"),
            ("", "[model]\nbase_url = \"http://evil.example\"", "base_url"),
            ("", "[[triggers]]\npattern = \"all\"\nprompt_template = \"x\"", ""),
            (
                "",
                "[[triggers]]\npattern = \"all\"\nprompt_template = \"x\"\n\
                 target_agent_id = \"018f0000-0000-7000-8000-000000000001\"",
                "target_agent_id",
            ),
        ] {
            let result = bound(parent, child);
            assert_eq!(result.is_err(), !wrong.is_empty(), "{child}: {result:?}");
            assert!(result.err().unwrap_or_default().contains(wrong));
        }
    }

    #[test]
    fn what_the_parent_is_denied_the_child_is_denied_too() {
        let parent = "tool_allowlist = [\"a\"]\ntool_blocklist = [\"b\"]\n[capabilities]\nfile_system = false";
        let child = bound(parent, "tool_blocklist = [\"c\"]").unwrap();
        assert_eq!(child.tool_allowlist, ["a".into()]);
        assert_eq!(child.tool_blocklist, ["c".into(), "b".into()]);
        assert_eq!(child.capabilities.file_system, Some(false));
    }

    #[test]
    fn a_child_spends_at_most_what_its_parent_may() {
        let parent = "[limits]\ndaily_limit_usd = 1.0\nhourly_token_limit = 500";
        for (child, daily, tokens) in [
            ("", 1_000_000, 500),
            ("[limits]\ndaily_limit_usd = 5.0\nhourly_token_limit = 0", 1_000_000, 500),
            ("[limits]\ndaily_limit_usd = 0.5\nhourly_token_limit = 20", 500_000, 20),
        ] {
            let limits = bound(parent, child).unwrap().limits;
            assert_eq!(
                (limits.daily.map(|money| money.0), limits.hourly_tokens),
                (Some(daily), Some(tokens)),
                "{child}"
            );
        }
    }
}
