//! Which entries of its memory an agent may use.
//!
//! `memory_read` and `memory_write` of the manifest are patterns over names of memory. An agent's own entries are named
//! `self.<key>`; nothing else can be reached yet. So `*` and `self.*` grant all of its own memory and `self.notes.*` the
//! keys that begin with `notes.`. The `self.` may be left out, in a pattern and in a call alike.

use agentsvc_api::memory::entries::AgentMemory;
use agentsvc_systems::kernel::glob;
use agentsvc_systems::memory::check_key;

use crate::tool::toolset::Context;

/// What names of an agent's own entries begin with.
const OWN: &str = "self.";

/// The memory of the agent whose turn this is.
pub(crate) fn own(context: &Context) -> AgentMemory {
    let store = std::sync::Arc::clone(&context.stores.memory);
    let (agent, by) = (context.run.agent, context.turn());
    AgentMemory { bridge: context.bridge(), store, agent, by }
}

/// The stored key that a call's key means.
pub(crate) fn key(asked: &str) -> Result<&str, String> {
    let key = asked.strip_prefix(OWN).unwrap_or(asked);
    check_key(key).map_err(|refusal| format!("The key is not valid: {}.", refusal.message))?;
    Ok(key)
}

/// Do the patterns grant this key?
pub(crate) fn grants(patterns: &[Box<str>], key: &str) -> bool {
    let name = format!("{OWN}{key}");
    patterns.iter().any(|pattern| glob::matches(pattern, &name) || glob::matches(pattern, key))
}

/// Refuses a key that the patterns do not grant.
pub(crate) fn check(patterns: &[Box<str>], key: &str, verb: &str) -> Result<(), String> {
    if grants(patterns, key) {
        return Ok(());
    }
    let granted: Vec<&str> = patterns.iter().map(|pattern| &**pattern).collect();
    Err(format!("This agent is not allowed to {verb} the memory {key:?}. It can {verb}: {}.", granted.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_over_own_names_with_or_without_self() {
        let grants = |patterns: &[&str], key| {
            grants(&patterns.iter().map(|pattern| Box::from(*pattern)).collect::<Vec<_>>(), key)
        };
        assert!(grants(&["*"], "a") && grants(&["self.*"], "a") && grants(&["self.notes.*"], "notes.a"));
        assert!(grants(&["notes.*"], "notes.a"));
        assert!(!grants(&["self.notes.*"], "a") && !grants(&["other.*"], "a") && !grants(&[], "a"));
    }

    #[test]
    fn self_is_left_out_of_stored_keys() {
        assert_eq!(key("self.a"), Ok("a"));
        assert_eq!(key("a.self.b"), Ok("a.self.b"));
        assert!(key("self.").is_err() && key("").is_err() && key("a\nb").is_err());
    }
}
