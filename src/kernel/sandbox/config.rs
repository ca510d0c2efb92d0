//! `[exec_policy]`: whether and how agents run commands. `[workspaces]`: what their files may take.

use std::path::PathBuf;

use serde::Serialize;

use crate::kernel::config::{Word, table};

/// Where programs are looked for, unless `path` says otherwise.
const PATH: &[&str] = &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// Longest time that a call may ask for, in seconds.
pub(crate) const TIMEOUT_SECS_MAX: u64 = 600;
/// The most bytes that a bound may allow.
const TERA: u64 = 1 << 40;
/// Variables that every command gets from the daemon and that cannot be passed through.
const OWN_VARIABLES: &[&str] = &["PATH", "HOME", "TMPDIR", "LANG", "TERM"];

table! {
    /// `[exec_policy]`.
    pub struct ExecPolicy {
        /// deny: no commands. allowlist: only `allowed_commands`, without a shell. full: everything that the manifest
        /// grants.
        mode: ExecMode => choice(ExecMode::WORDS).protected(),
        /// Program names or globs for `allowlist`, such as "git" or "python3*".
        allowed_commands: Vec<Box<str>> => list(program).protected(),
        /// Default timeout of a command in seconds, 1 to 600.
        timeout_secs: u64 = 60 => integer(1..=TIMEOUT_SECS_MAX).writable(),
        /// Maximum bytes of each output, 1024 to 262144; longer output is truncated in the middle.
        max_output_bytes: usize = 64 << 10 => integer(1_024..=256 << 10).writable(),
        /// Environment variables of the daemon passed to commands. Never provider keys.
        env_passthrough: Vec<Box<str>> => list(variable).protected(),
        /// Directories to search for programs.
        path: Vec<PathBuf> = PATH.iter().map(PathBuf::from).collect() => list(directory).protected(),
        /// Additional directories that commands can read and run programs from.
        readable_paths: Vec<PathBuf> => list(directory).protected(),
        /// Refuse commands if the kernel has no Landlock.
        require_landlock: bool => flag().protected(),
        /// Refuse commands if this machine lacks a part of the sandbox: namespaces, Landlock, seccomp filters or bounds of
        /// memory and processes.
        require_sandbox: bool => flag().protected(),
        /// CPU seconds per process.
        max_cpu_secs: u64 = 600 => integer(1..=86_400).protected(),
        /// Memory limit of a command with all of its processes, in bytes.
        max_memory_bytes: u64 = 4 << 30 => integer(16 << 20..=TERA).protected(),
        /// Limit of processes and threads of a command.
        max_processes: u64 = 4_096 => integer(1..=1_000_000).protected(),
        /// Open files per process.
        max_open_files: u64 = 1_024 => integer(16..=1_000_000).protected(),
        /// Maximum size of a file written by a command, in bytes.
        max_file_bytes: u64 = 1 << 30 => integer(4_096..=TERA).protected(),
        /// Maximum size of the directory of an MCP server, plugin, channel adapter or event hook, in bytes, with deleted files
        /// that it has open. Beyond, it is stopped, and not started until files are deleted.
        max_server_bytes: u64 = 10 << 30 => integer(1 << 20..=TERA).protected(),
    }
}

table! {
    /// `[workspaces]`: the files of agents.
    pub struct Workspaces {
        /// Maximum size of an agent's workspace in bytes. Beyond, writes are refused and commands stopped.
        max_bytes: u64 = 10 << 30 => integer(1 << 20..=1 << 50).writable(),
        /// Maximum size of the workspaces of one family in bytes, which is an agent that a client created with those spawned
        /// below it, or of the agents of one user with a limited role. Those of deleted agents are included. Beyond, as above.
        max_share_bytes: u64 = 25 << 30 => integer(1 << 20..=1 << 50).writable(),
        /// Maximum size of all workspaces together in bytes, those of deleted agents included. Beyond, writes are refused and
        /// commands that write are stopped.
        max_total_bytes: u64 = 100 << 30 => integer(1 << 20..=1 << 50).writable(),
    }
}

agentsvc_components::enum_words! {
    /// What may run at all. What an agent's manifest does not grant never runs.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ExecMode [Word] {
        /// Nothing.
        Deny = "deny",
        /// Programs of `allowed_commands`, without a shell. An empty list: nothing.
        #[default]
        Allowlist = "allowlist",
        /// What the manifest grants, command lines for `/bin/sh` included.
        Full = "full",
    }
}

impl ExecPolicy {
    /// May any command run?
    #[must_use]
    pub fn runs_commands(&self) -> bool {
        match self.mode {
            ExecMode::Deny => false,
            ExecMode::Allowlist => !self.allowed_commands.is_empty(),
            ExecMode::Full => true,
        }
    }
}

/// The name of a program, or a glob for names. A path would make a promise that a link could break.
fn program(text: &str) -> Result<Box<str>, String> {
    if text.is_empty() || text.contains(['/', '\0']) || text.contains(char::is_whitespace) {
        Err("must be the name of a program or a glob for names, without a path or arguments".to_owned())
    } else {
        Ok(text.into())
    }
}

fn variable(text: &str) -> Result<Box<str>, String> {
    let named = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if text.is_empty() || !named {
        Err("must be the name of an environment variable".to_owned())
    } else if OWN_VARIABLES.contains(&text) {
        Err(format!("must not be {text}; the daemon sets this variable"))
    } else {
        Ok(text.into())
    }
}

fn directory(text: &str) -> Result<PathBuf, String> {
    // A colon would be two directories in the variable that commands see.
    if text.starts_with('/') && !text.contains(['\0', ':']) {
        Ok(PathBuf::from(text))
    } else {
        Err("must be absolute paths without a colon".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::{ExecMode, ExecPolicy};
    use crate::kernel::config::{Error, Loaded, read_table};

    fn parse(text: &str) -> Result<Loaded<ExecPolicy>, Error> {
        read_table("exec_policy", text)
    }

    #[test]
    fn the_default_runs_nothing() {
        let policy = ExecPolicy::default();
        assert_eq!((policy.mode, policy.allowed_commands.len()), (ExecMode::Allowlist, 0));
        let text = "[exec_policy]\nmode = \"full\"\nallowed_commands = [\"git\", \"python3*\"]\ntimeout_secs = 5\n";
        let policy = parse(text).unwrap().config;
        assert_eq!((policy.mode, policy.timeout_secs, policy.allowed_commands.len()), (ExecMode::Full, 5, 2));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let wrong = |line: &str| parse(&format!("[exec_policy]\n{line}\n")).unwrap_err().to_string();
        assert!(wrong("mode = \"allow\"").contains("must be one of `deny`, `allowlist`, `full`"));
        assert!(wrong("allowed_commands = [\"/bin/ls\"]").contains("without a path"));
        assert!(wrong("allowed_commands = [\"git status\"]").contains("without a path or arguments"));
        assert!(wrong("env_passthrough = [\"A=B\"]").contains("environment variable"));
        assert!(wrong("env_passthrough = [\"PATH\"]").contains("must not be PATH"));
        assert!(wrong("path = [\"bin\"]").contains("absolute"));
        assert!(wrong("timeout_secs = 601").contains("1 to 600"));
    }
}
