//! Tables of later releases. Their names are accepted, so that a file written for a later release does not
//! stop this one, and reported, so that nobody believes they work.

/// The names, all at top level.
pub(crate) const TABLES: &[&str] = &[
    "a2a",
    "channels",
    "compaction",
    "context_engine",
    "external_auth",
    "inbox",
    "mcp_servers",
    "memory",
    "network",
    "pairing",
    "prompt_intelligence",
    "sidecar_channels",
    "terminal",
    "webhook_triggers",
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::parse;

    #[test]
    fn reserved_tables_warn_and_do_not_stop() {
        let text = "[memory]\nx = 1\n[network.agent]\nlimit = 1\n[[mcp_servers]]\nname = \"a\"\n";
        let loaded = parse(text, Path::new("config.toml")).unwrap();
        let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
        let expected = [
            "line 1: table [memory] has no effect in this release",
            "line 3: table [network] has no effect in this release",
            "line 5: table [mcp_servers] has no effect in this release",
        ];
        assert_eq!(warnings, expected);
    }

    #[test]
    fn a_reserved_name_must_still_be_a_table() {
        let error = parse("memory = 3\n", Path::new("config.toml")).unwrap_err().to_string();
        assert_eq!(error, "config.toml:1:10: memory: must be a table, not an integer");
    }
}
