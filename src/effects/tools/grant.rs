//! Which tools a manifest grants. One rule for offering and for running.

use agentsvc_components::manifest::Manifest;

use super::{Need, Tool};

/// True when an agent of this manifest may call the tool: by its name, and by the capability that it needs.
pub(super) fn allows(manifest: &Manifest, tool: &Tool) -> bool {
    is_granted(manifest, tool.name) && has(manifest, tool.needs)
}

/// Does the manifest give what a tool needs?
pub(super) fn has(manifest: &Manifest, need: Need) -> bool {
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
pub(super) fn is_granted(manifest: &Manifest, tool: &str) -> bool {
    let among = |patterns: &[Box<str>]| patterns.iter().any(|pattern| matches_glob(pattern, tool));
    among(&manifest.capabilities.tools)
        && (manifest.tool_allowlist.is_empty() || among(&manifest.tool_allowlist))
        && !among(&manifest.tool_blocklist)
}

/// `*` stands for any text, `?` for one character. Linear in memory, at worst quadratic in time.
pub(crate) fn matches_glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // The last star, and the place in the text that it was last made to reach to.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, reach)) => {
                    (p, t) = (at + 1, reach + 1);
                    star = Some((at, reach + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use agentsvc_components::manifest::Manifest;

    use super::{is_granted, matches_glob};

    #[test]
    fn globs() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("", "", true),
            ("", "a", false),
            ("system_*", "system_time", true),
            ("system_*", "system", false),
            ("*_time", "system_time", true),
            ("s*m*t*e", "system_time", true),
            ("s*x*", "system_time", false),
            ("system_tim?", "system_time", true),
            ("system_time?", "system_time", false),
            ("**a", "aaa", true),
            ("a*b*c", "aXbXbXc", true),
            ("system", "system_time", false),
        ] {
            assert_eq!(matches_glob(pattern, text), expected, "{pattern} {text}");
        }
        let (stars, letters) = ("*a".repeat(50) + "b", "a".repeat(2_000));
        assert!(!matches_glob(&stars, &letters));
    }

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
