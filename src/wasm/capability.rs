//! What the manifest of a skill asks for: `requirements.capabilities`, such as `NetConnect(*.example.com:443)`. What cannot be
//! read is not granted.

use agentsvc_systems::kernel::glob;
use reqwest::Url;

use super::HostCall;
use crate::kernel::sandbox::WorkspacePath;

/// Characters of command lines that mean something to a shell.
const SHELL: &[char] = &[
    '|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '"', '\'', '*', '?', '[', ']', '#', '~', '{', '}', '!', '\n',
    '\r', '\0',
];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Capability {
    FileRead(Box<str>),
    FileWrite(Box<str>),
    NetConnect(Box<str>),
    ShellExec(Box<str>),
    EnvRead(Box<str>),
    AgentMessage(Box<str>),
    AgentSpawn,
}

impl Capability {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let Some((name, rest)) = text.split_once('(') else {
            return (text == "AgentSpawn").then_some(Self::AgentSpawn);
        };
        let pattern = rest.strip_suffix(')')?.trim();
        let pattern = pattern.strip_prefix('"').and_then(|inside| inside.strip_suffix('"')).unwrap_or(pattern);
        if pattern.is_empty() || pattern.contains(['(', ')']) {
            return None;
        }
        let pattern = || Box::from(pattern);
        Some(match name.trim() {
            "FileRead" => Self::FileRead(pattern()),
            "FileWrite" => Self::FileWrite(pattern()),
            "NetConnect" => Self::NetConnect(pattern()),
            "ShellExec" => Self::ShellExec(pattern()),
            "EnvRead" => Self::EnvRead(pattern()),
            "AgentMessage" => Self::AgentMessage(pattern()),
            _ => return None,
        })
    }
}

/// What a module may ask of the host beside the time and its own memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(Vec<Capability>);

impl Capabilities {
    /// Reads them; those that cannot be read are left out.
    pub fn parse<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        Self(texts.into_iter().filter_map(Capability::parse).collect())
    }

    /// Does it allow this call?
    ///
    /// # Errors
    /// What is not granted, for the module.
    pub(super) fn allow(&self, call: &HostCall) -> Result<(), String> {
        let (name, what) = match call {
            HostCall::TimeNow | HostCall::KvGet { .. } | HostCall::KvSet { .. } => return Ok(()),
            HostCall::FsRead { path } | HostCall::FsList { path } => ("FileRead", path),
            HostCall::FsWrite { path, .. } => ("FileWrite", path),
            HostCall::EnvRead { name } => ("EnvRead", name),
            HostCall::NetFetch { url, .. } => ("NetConnect", url),
            HostCall::ShellExec { command } => ("ShellExec", command),
            HostCall::AgentSend { target, .. } => ("AgentMessage", target),
            HostCall::AgentSpawn { .. } => {
                let is_granted = self.0.contains(&Capability::AgentSpawn);
                return if is_granted { Ok(()) } else { Err("not granted: AgentSpawn".to_owned()) };
            }
        };
        if self.0.iter().any(|capability| capability.covers(call)) {
            return Ok(());
        }
        let shown: String = what.chars().take(200).collect();
        Err(format!("not granted: {name}({shown})"))
    }
}

impl Capability {
    fn covers(&self, call: &HostCall) -> bool {
        match (self, call) {
            (Self::FileRead(pattern), HostCall::FsRead { path } | HostCall::FsList { path })
            | (Self::FileWrite(pattern), HostCall::FsWrite { path, .. }) => covers_path(pattern, path),
            (Self::NetConnect(pattern), HostCall::NetFetch { url, .. }) => covers_url(pattern, url),
            (Self::ShellExec(pattern), HostCall::ShellExec { command }) => covers_command(pattern, command),
            (Self::EnvRead(pattern), HostCall::EnvRead { name }) => glob::matches(pattern, name),
            (Self::AgentMessage(pattern), HostCall::AgentSend { target, .. }) => glob::matches(pattern, target),
            _ => false,
        }
    }
}

/// A path within the workspace; of others the workspace itself says what is not right with them.
fn covers_path(pattern: &str, path: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    WorkspacePath::parse(path).is_ok_and(|path| glob::matches(pattern, path.as_str()))
}

fn covers_url(pattern: &str, url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return false };
    let pattern = pattern.to_ascii_lowercase();
    glob::matches(&pattern, host) || glob::matches(&pattern, &format!("{host}:{port}"))
}

/// A pattern for some commands never covers a line that a shell would make more of.
fn covers_command(pattern: &str, command: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let program = command.split_whitespace().next().unwrap_or_default();
    is_plain(command) && (glob::matches(pattern, command) || glob::matches(pattern, program))
}

/// Is it a program with arguments, and nothing that a shell would make more of?
pub(super) fn is_plain(command: &str) -> bool {
    !command.contains(SHELL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(capabilities: &[&str], call: &HostCall) -> bool {
        Capabilities::parse(capabilities.iter().copied()).allow(call).is_ok()
    }

    fn fetch(url: &str) -> HostCall {
        HostCall::NetFetch { url: url.to_owned(), body: None }
    }

    fn shell(command: &str) -> HostCall {
        HostCall::ShellExec { command: command.to_owned() }
    }

    #[test]
    fn what_cannot_be_read_is_not_granted() {
        for text in ["", "NetConnect", "NetConnect(*", "NetConnect()", "netconnect(*)", "All(*)", "NetConnect(*))", "*"]
        {
            assert!(!allows(&[text], &fetch("https://example.com/")), "{text}");
        }
        assert_eq!(Capabilities::parse(["x", "AgentSpawn(*)", "FileRead"]), Capabilities::default());
        assert!(allows(&["AgentSpawn"], &HostCall::AgentSpawn { manifest: String::new() }));
        assert!(!allows(&["AgentSpawn"], &fetch("https://example.com/")));
        assert!(allows(&[], &HostCall::TimeNow) && allows(&[], &HostCall::KvGet { key: "k".to_owned() }));
    }

    #[test]
    fn hosts_are_compared_whole() {
        assert!(allows(&["NetConnect(*)"], &fetch("https://example.com/x")));
        assert!(allows(&["NetConnect(\"api.example.com:443\")"], &fetch("https://api.example.com/x")));
        assert!(!allows(&["NetConnect(api.example.com:443)"], &fetch("http://api.example.com/x")));
        assert!(allows(&["NetConnect(*.Example.com)"], &fetch("https://api.example.com/x")));
        for url in
            ["https://example.com.evil.test/", "https://evil.test/?example.com", "https://example.com@evil.test/", "no"]
        {
            assert!(!allows(&["NetConnect(example.com)", "NetConnect(*.example.com)"], &fetch(url)), "{url}");
        }
    }

    #[test]
    fn a_pattern_of_commands_covers_no_shell() {
        assert!(allows(&["ShellExec(git)"], &shell("git status")));
        assert!(allows(&["ShellExec(git *)"], &shell("git log --oneline")));
        assert!(!allows(&["ShellExec(git *)"], &shell("rm -rf x")));
        for line in ["git status; rm x", "git $(rm x)", "git log > /x", "git log\nrm x", "git 'a b'"] {
            assert!(!allows(&["ShellExec(git *)", "ShellExec(git)"], &shell(line)), "{line}");
            assert!(allows(&["ShellExec(*)"], &shell(line)), "{line}");
        }
    }

    #[test]
    fn paths_and_names() {
        let read = |path: &str| HostCall::FsRead { path: path.to_owned() };
        assert!(allows(&["FileRead(notes/*)"], &read("notes/a.md")));
        assert!(allows(&["FileRead(./notes/*)"], &read("notes/a.md")));
        assert!(!allows(&["FileRead(notes/*)"], &read("secret.md")));
        assert!(!allows(&["FileRead(notes/*)"], &read("notes/../secret.md")));
        assert!(!allows(&["FileWrite(*)"], &read("a")));
        let write = HostCall::FsWrite { path: "a".to_owned(), content: String::new() };
        assert!(allows(&["FileWrite(*)"], &write) && !allows(&["FileRead(*)"], &write));
        assert!(allows(&["EnvRead(LANG)"], &HostCall::EnvRead { name: "LANG".to_owned() }));
        let send = HostCall::AgentSend { target: "scout".to_owned(), message: String::new() };
        assert!(allows(&["AgentMessage(sc*)"], &send) && !allows(&["AgentMessage(other)"], &send));
    }
}
