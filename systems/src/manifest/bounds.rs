//! A child never exceeds its parent: what an agent may give to an agent that it spawns.

use agentsvc_components::manifest::{Manifest, ModelChoice, Wake};

use crate::kernel::glob;
use hashbrown::HashSet;

/// Steps that it may take to compare one list of patterns with another, at worst: the world waits for it.
const PATTERN_STEPS_MAX: usize = 16 << 20;

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
    skills(parent, child)?;
    within("mcp_servers", &parent.mcp_servers, &child.mcp_servers)?;
    if !parent.tool_allowlist.is_empty() {
        if child.tool_allowlist.is_empty() {
            child.tool_allowlist.clone_from(&parent.tool_allowlist);
        }
        within("tool_allowlist", &parent.tool_allowlist, &child.tool_allowlist)?;
    }
    // A trigger reads what other agents and people say.
    if !child.triggers.is_empty() {
        return Err("triggers: a spawned agent cannot bring triggers".to_owned());
    }
    // These run turns that no message asks for.
    if child.wake != Wake::Reactive || child.autonomous.is_some() {
        return Err("schedule: a spawned agent cannot bring a schedule or [autonomous]".to_owned());
    }
    if let Some(most) = parent.iterations_max() {
        child.max_iterations = Some(child.iterations_max().map_or(most, |own| own.min(most)));
    }
    // It runs turns that nobody asked for.
    if child.auto_dream.enabled == Some(true) && parent.auto_dream.enabled != Some(true) {
        return Err("auto_dream_enabled: the parent agent does not have it".to_owned());
    }
    inherit(&parent.tool_blocklist, &mut child.tool_blocklist);
    inherit(&parent.require_approval, &mut child.require_approval);
    // Else an agent without money left would go on through its children.
    child.limits = child.limits.lower(parent.limits);
    let (own, asked) = (&parent.proactive_memory, &mut child.proactive_memory);
    keep_off(own.enabled, &mut asked.enabled);
    keep_off(own.auto_memorize, &mut asked.auto_memorize);
    keep_off(own.auto_retrieve, &mut asked.auto_retrieve);
    let is_other = asked.extraction_model != own.extraction_model;
    if is_other && asked.extraction_model.as_ref().is_some_and(|model| !model.is_empty()) {
        return Err("proactive_memory.extraction_model: only that of the parent, or none".to_owned());
    }
    same_account(parent, child)
}

/// A child without a list of skills has those of its parent: an empty list would be all.
fn skills(parent: &Manifest, child: &mut Manifest) -> Result<(), String> {
    child.skills_disabled |= parent.skills_disabled;
    child.frozen_skills.clone_from(&parent.frozen_skills);
    // A parent without a list has all of them.
    if parent.skills.is_empty() {
        return Ok(());
    }
    if child.skills.is_empty() {
        child.skills.clone_from(&parent.skills);
    }
    within("skills", &parent.skills, &child.skills)
}

/// What is off for the parent is off for the child.
fn keep_off(parent: Option<bool>, child: &mut Option<bool>) {
    if parent == Some(false) {
        *child = parent;
    }
}

/// What binds the parent binds the child too.
fn inherit(parent: &[Box<str>], child: &mut Vec<Box<str>>) {
    let mut own: HashSet<Box<str>> = child.iter().cloned().collect();
    child.extend(parent.iter().filter(|pattern| own.insert((*pattern).clone())).cloned());
}

/// Is something of `parent` missing in `child`?
pub(crate) fn lacks(child: &[Box<str>], parent: &[Box<str>]) -> bool {
    let own: HashSet<&str> = child.iter().map(|pattern| &**pattern).collect();
    parent.iter().any(|pattern| !own.contains(&**pattern))
}

fn within(what: &str, have: &[Box<str>], want: &[Box<str>]) -> Result<(), String> {
    let exact: HashSet<&str> = have.iter().map(|pattern| &**pattern).collect();
    let wild: Vec<&str> =
        have.iter().map(|pattern| &**pattern).filter(|pattern| pattern.contains(['*', '?'])).collect();
    let more = || want.iter().map(|pattern| &**pattern).filter(|pattern| !exact.contains(pattern));
    // A star is tried at each place of a text.
    let steps: usize = wild.iter().map(|pattern| pattern.len()).sum();
    let wanted: usize = more().map(|pattern| pattern.len() + 1).sum();
    if steps.saturating_mul(wanted) > PATTERN_STEPS_MAX {
        return Err(format!("{what}: too many or too long patterns to compare with those of the parent agent"));
    }
    match more().find(|pattern| !glob::covers(&wild, pattern)) {
        Some(more) => Err(format!("{what}: the parent agent does not have {more:?}")),
        None => Ok(()),
    }
}

/// A model that names an endpoint or a key has those of one of the parent's models, beside the same provider: else the key of
/// one provider would go to another. One that names neither has what the operator configured.
fn same_account(parent: &Manifest, child: &Manifest) -> Result<(), String> {
    let account = |choice: &ModelChoice| (choice.provider.clone(), choice.base_url.clone(), choice.api_key_env.clone());
    let known = |choice: &ModelChoice| {
        std::iter::once(&parent.model).chain(&parent.fallback_models).any(|own| account(own) == account(choice))
    };
    for (at, choice) in std::iter::once(&child.model).chain(&child.fallback_models).enumerate() {
        if choice.base_url.is_none() && choice.api_key_env.is_none() {
            continue;
        }
        // Without a provider, an alias or the model before it decides who is asked: then it is the parent's own model.
        let is_own = if choice.provider.is_empty() {
            at == 0 && account(choice) == account(&parent.model) && choice.model == parent.model.model
        } else {
            known(choice)
        };
        if !is_own {
            let place = if at == 0 { "model" } else { "fallback_models" };
            return Err(format!(
                "{place}: provider, base_url and api_key_env must be together those of a model of the parent agent"
            ));
        }
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
    fn patterns_that_take_long_to_compare_are_refused() {
        let lists = |star: usize, text: usize| {
            let tools = |pattern: &str| format!("[capabilities]\ntools = [\"{pattern}\"]");
            bound(&tools(&format!("*{}b", "a".repeat(star))), &tools(&"a".repeat(text)))
        };
        assert!(lists(1_000, 2_000).unwrap_err().contains("does not have"));
        assert!(lists(5_000, 15_000).unwrap_err().contains("too long patterns"));
        let many: Vec<String> = (0..200).map(|n| format!("\"tool_number_{n}\"")).collect();
        let many = format!("[capabilities]\ntools = [{}]", many.join(","));
        assert!(bound(&many.replace('_', "*"), &many).is_ok());
        // Names that the parent has as they are need no comparison with its patterns.
        let names: Vec<String> = (0..10_000).map(|n| format!("\"tool_number_{n}\"")).collect();
        let names = |more: &str| format!("[capabilities]\ntools = [{}, \"{more}\"]", names.join(","));
        let long = format!("x{}*", "y".repeat(200));
        assert!(bound(&names(&long), &names(&long)).is_ok());
        assert!(bound(&names(&long), &names("other")).unwrap_err().contains("does not have \"other\""));
    }

    #[test]
    fn what_binds_the_parent_is_taken_over_once() {
        let child = bound("tool_blocklist = [\"a\", \"b\", \"a\"]", "tool_blocklist = [\"c\", \"b\"]").unwrap();
        assert_eq!(child.tool_blocklist, ["c", "b", "a"].map(Box::from));
        assert!(
            lacks(&child.tool_blocklist, &["d".into()]) && !lacks(&child.tool_blocklist, &["a".into(), "b".into()])
        );
    }

    #[test]
    fn a_child_does_not_learn_where_its_parent_does_not() {
        let memory = |parent: &str, child: &str| {
            let child = bound(&format!("[proactive_memory]\n{parent}"), &format!("[proactive_memory]\n{child}"));
            child.unwrap().proactive_memory
        };
        assert_eq!(memory("enabled = false", "enabled = true").enabled, Some(false));
        assert_eq!(memory("auto_memorize = false", "auto_memorize = true").auto_memorize, Some(false));
        assert_eq!(memory("auto_retrieve = false", "").auto_retrieve, Some(false));
        assert_eq!(memory("enabled = true", "enabled = false").enabled, Some(false));
    }

    #[test]
    fn a_child_dreams_only_where_its_parent_does() {
        assert!(bound("", "auto_dream_enabled = true").is_err());
        assert!(bound("auto_dream_enabled = true", "auto_dream_enabled = true").is_ok());
        assert!(bound("", "auto_dream_enabled = false").is_ok());
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
            ("", "[[triggers]]\npattern = \"all\"\nprompt_template = \"x\"", "triggers: "),
            ("", "[autonomous]", "schedule: "),
            ("", "schedule = { continuous = {} }", "schedule: "),
            ("[autonomous]", "[autonomous]", "schedule: "),
        ] {
            let result = bound(parent, child);
            assert_eq!(result.is_err(), !wrong.is_empty(), "{child}: {result:?}");
            assert!(result.err().unwrap_or_default().contains(wrong));
        }
    }

    #[test]
    fn a_child_has_at_most_the_skills_of_its_parent() {
        assert_eq!(bound("skills = [\"a\"]", "").unwrap().skills, ["a".into()]);
        assert_eq!(bound("", "skills = [\"a\"]").unwrap().skills, ["a".into()]);
        assert!(bound("skills = [\"a\"]", "skills = [\"b\"]").unwrap_err().starts_with("skills: "));
        assert!(bound("skills_disabled = true", "").unwrap().skills_disabled);
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
    #[test]
    fn a_key_of_the_parent_goes_to_its_own_provider_only() {
        let parent = "[model]\nprovider = \"corp\"\nmodel = \"m\"\napi_key_env = \"K\"\n\
                      [[fallback_models]]\nprovider = \"p\"\nbase_url = \"http://p\"";
        let nameless = "[model]\nmodel = \"m\"\napi_key_env = \"K\"";
        for (parent, child, fits) in [
            (parent, "[model]\nprovider = \"corp\"\nmodel = \"x\"\napi_key_env = \"K\"", true),
            (parent, "[model]\nprovider = \"p\"\nbase_url = \"http://p\"", true),
            (parent, "[model]\nprovider = \"lmstudio\"", true),
            (parent, "", true),
            (parent, "[model]\nprovider = \"lmstudio\"\napi_key_env = \"K\"", false),
            (parent, "[[fallback_models]]\nprovider = \"vllm\"\napi_key_env = \"K\"", false),
            (parent, "[model]\nprovider = \"p\"\nbase_url = \"http://p\"\napi_key_env = \"K\"", false),
            (parent, "[model]\nmodel = \"alias\"\napi_key_env = \"K\"", false),
            (nameless, nameless, true),
            (nameless, "[model]\nmodel = \"alias\"\napi_key_env = \"K\"", false),
            (nameless, "[model]\nprovider = \"vllm\"\n[[fallback_models]]\nmodel = \"m\"\napi_key_env = \"K\"", false),
        ] {
            let result = bound(parent, child);
            assert_eq!(result.is_ok(), fits, "{child}: {result:?}");
        }
    }
}
