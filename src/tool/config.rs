//! `[tool_invoke]`: which tools clients may call without an agent's turn (spec 2, Direct tool invocation).

use crate::kernel::config::{Reader, table};
use crate::tool::toolset::built_in;

/// Bytes of one name or pattern; a longer one is a mistake.
const NAME_BYTES_MAX: usize = 128;

table! {
    /// `[tool_invoke]`. Closed unless it is opened, tool by tool.
    #[check(Self::note_unknown)]
    pub struct ToolInvoke {
        /// Allow clients to call the tools of `allowlist` directly.
        enabled: bool => flag().protected(),
        /// Exact tool names, such as "web_fetch". Patterns are not supported.
        allowlist: Vec<Box<str>> => list(tool_name).protected(),
    }
}

impl ToolInvoke {
    fn note_unknown(&self, reader: &mut Reader<'_, '_>) {
        for name in self.allowlist.iter().filter(|name| built_in().find(name).is_none()) {
            reader.warning("allowlist", format!("unknown built-in tool: {name}"));
        }
    }
}

/// A name or glob of tools.
pub(crate) fn tool_pattern(text: &str) -> Result<Box<str>, String> {
    if text.trim().is_empty() {
        return Err("must name a tool or be a glob such as \"shell_*\"".to_owned());
    }
    if text.len() > NAME_BYTES_MAX {
        return Err(format!("must not be longer than {NAME_BYTES_MAX} bytes"));
    }
    Ok(text.into())
}

/// The exact name of a tool.
pub(crate) fn tool_name(text: &str) -> Result<Box<str>, String> {
    if text.is_empty() || text.len() > NAME_BYTES_MAX {
        return Err(format!("must be the name of a tool, at most {NAME_BYTES_MAX} bytes"));
    }
    if text.contains(['*', '?']) {
        return Err("must be the exact name of a tool; patterns are not supported".to_owned());
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::ToolInvoke;
    use crate::kernel::config::{Error, Loaded, read_table};

    fn parse(text: &str) -> Result<Loaded<ToolInvoke>, Error> {
        read_table("tool_invoke", text)
    }

    #[test]
    fn it_is_closed_unless_it_is_opened() {
        assert_eq!(parse("").unwrap().config, ToolInvoke::default());
        let text = "[tool_invoke]\nenabled = true\nallowlist = [\"web_fetch\", \"system_time\"]\n";
        let loaded = parse(text).unwrap();
        let expected = ToolInvoke { enabled: true, allowlist: vec!["web_fetch".into(), "system_time".into()] };
        assert_eq!(loaded.config, expected);
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    }

    #[test]
    fn patterns_and_misspelt_names_are_told() {
        for (text, expected) in [
            ("allowlist = [\"web_*\"]", "tool_invoke.allowlist: must be the exact name of a tool"),
            ("allowlist = [\"\"]", "tool_invoke.allowlist: must be the name of a tool"),
            ("enabled = 1", "tool_invoke.enabled: must be true or false"),
            ("allow_list = []", "did you mean `allowlist`?"),
        ] {
            let error = parse(&format!("[tool_invoke]\n{text}\n")).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let loaded = parse("[tool_invoke]\nallowlist = [\"web_fech\"]\n").unwrap();
        assert!(loaded.warnings[0].to_string().contains("unknown built-in tool: web_fech"));
    }
}
