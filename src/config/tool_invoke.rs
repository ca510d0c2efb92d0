//! `[tool_invoke]`: which tools clients may call without an agent's turn (spec 2, Direct tool invocation).

use serde::Serialize;

use super::key::{Key, Table};
use super::reader::Reader;
use crate::tool as tools;

/// Bytes of one name in `allowlist`.
const NAME_BYTES_MAX: usize = 128;

/// `[tool_invoke]`. Closed unless it is opened, tool by tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolInvoke {
    /// Whether clients may call tools at all.
    pub enabled: bool,
    /// The tools that they may call, by their exact names.
    pub allowlist: Vec<Box<str>>,
}

impl Table for ToolInvoke {
    const KEYS: &'static [Key] = &[
        Key::flag("enabled", "false", "True: clients may call the tools of `allowlist` without an agent's turn.")
            .protected(),
        Key::list("allowlist", "[]", "Exact names of tools, such as \"web_fetch\"; patterns are not read here.")
            .protected(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let read = Self {
            enabled: reader.flag("enabled").unwrap_or_default(),
            allowlist: reader.list("allowlist", name).unwrap_or_default(),
        };
        for name in read.allowlist.iter().filter(|name| !tools::is_tool(name)) {
            reader.warning("allowlist", format!("is not the name of a built-in tool: {name}"));
        }
        read
    }
}

fn name(text: &str) -> Result<Box<str>, String> {
    if text.is_empty() || text.len() > NAME_BYTES_MAX {
        return Err(format!("must be the name of a tool, at most {NAME_BYTES_MAX} bytes"));
    }
    if text.contains(['*', '?']) {
        return Err("must be the exact name of a tool; patterns are not read here".to_owned());
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::ToolInvoke;
    use crate::config::parse;

    #[test]
    fn it_is_closed_unless_it_is_opened() {
        assert_eq!(parse("", Path::new("c")).unwrap().config.tool_invoke, ToolInvoke::default());
        let text = "[tool_invoke]\nenabled = true\nallowlist = [\"web_fetch\", \"system_time\"]\n";
        let loaded = parse(text, Path::new("c")).unwrap();
        let expected = ToolInvoke { enabled: true, allowlist: vec!["web_fetch".into(), "system_time".into()] };
        assert_eq!(loaded.config.tool_invoke, expected);
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
            let error = parse(&format!("[tool_invoke]\n{text}\n"), Path::new("c")).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let loaded = parse("[tool_invoke]\nallowlist = [\"web_fech\"]\n", Path::new("c")).unwrap();
        assert!(loaded.warnings[0].to_string().contains("not the name of a built-in tool: web_fech"));
    }
}
