//! `[terminal]`: shells for administrators.

use std::time::Duration;

use agentsvc_api::terminal::host::TerminalPolicy;

use crate::kernel::config::table;

table! {
    /// `[terminal]`.
    pub struct TerminalSettings {
        /// Let admins and owners open a shell on this machine, in the sandbox of commands.
        enabled: bool => flag().protected(),
        /// Also for clients on other machines. A reverse proxy on this machine counts as a client on this machine.
        allow_remote: bool => flag().protected(),
        /// Origins whose pages may open terminals, beside the page of the daemon. They must be in `cors_origin`, too.
        allowed_origins: Vec<Box<str>> => list(origin).protected(),
        /// Shell: a program by name or path. Default: bash, or sh if there is none.
        shell: Option<Box<str>> => text(program).example("/usr/bin/fish").protected(),
        /// Let the shell use the network.
        network: bool => flag().protected(),
        /// Terminals open at once, 1 to 32.
        max_sessions: usize = 4 => integer(1..=32).protected(),
        /// Seconds without input after which a terminal ends, 1 to 86400.
        idle_timeout_secs: u64 = 1_800 => integer(1..=86_400).protected(),
    }
}

impl TerminalSettings {
    /// The same for the API.
    pub(super) fn policy(&self) -> TerminalPolicy {
        TerminalPolicy {
            is_enabled: self.enabled,
            allow_remote: self.allow_remote,
            allowed_origins: self.allowed_origins.clone(),
            idle_time_max: Duration::from_secs(self.idle_timeout_secs),
            sessions_max: self.max_sessions,
        }
    }
}

fn program(text: &str) -> Result<Box<str>, String> {
    let is_wrong = text.trim().is_empty() || text.chars().any(char::is_control);
    if is_wrong || (text.contains('/') && !text.starts_with('/')) {
        return Err("must be the name of a program or an absolute path".to_owned());
    }
    Ok(text.into())
}

fn origin(text: &str) -> Result<Box<str>, String> {
    let wrong = || "must be an origin, such as \"https://agents.example.com\"".to_owned();
    let url = reqwest::Url::parse(text).map_err(|_| wrong())?;
    let is_origin =
        matches!(url.scheme(), "http" | "https") && url.origin().ascii_serialization() == text.to_ascii_lowercase();
    is_origin.then(|| text.into()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::config::read_table;

    #[test]
    fn terminals_are_off_and_bounded_unless_the_file_says_otherwise() {
        let read = |text: &str| {
            let loaded = read_table::<TerminalSettings>("terminal", &format!("[terminal]\n{text}"));
            loaded.map(|loaded| loaded.config).map_err(|error| error.to_string())
        };
        let policy = read("").unwrap().policy();
        assert_eq!((policy.is_enabled, policy.allow_remote, policy.sessions_max), (false, false, 4));
        let origins = read("allowed_origins = [\"https://a.example\", \"http://b.example:8080\"]").unwrap();
        assert_eq!(origins.policy().allowed_origins.len(), 2);
        for (text, key) in [
            ("allowed_origins = [\"*\"]", "allowed_origins"),
            ("allowed_origins = [\"https://a.example/\"]", "allowed_origins"),
            ("shell = \"bin/sh\"", "shell"),
            ("shell = \" \"", "shell"),
            ("max_sessions = 0", "max_sessions"),
            ("idle_timeout_secs = 0", "idle_timeout_secs"),
        ] {
            assert!(read(text).unwrap_err().contains(key), "{text}");
        }
    }
}
