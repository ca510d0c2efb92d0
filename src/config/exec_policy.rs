//! `[exec_policy]`: whether and how agents run commands.

use std::path::PathBuf;

use serde::Serialize;

use super::key::{Key, Table, Word};
use super::reader::Reader;

/// Where programs are looked for, unless `path` says otherwise.
const PATH: &[&str] = &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// Longest time that a call may ask for, in seconds.
pub(crate) const TIMEOUT_SECS_MAX: u64 = 600;
/// The most bytes that a bound may allow.
const TERA: u64 = 1 << 40;
/// Variables that every command gets from the daemon and that cannot be passed through.
const OWN_VARIABLES: &[&str] = &["PATH", "HOME", "TMPDIR", "LANG", "TERM"];

/// `[exec_policy]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExecPolicy {
    /// What may run at all.
    pub mode: ExecMode,
    /// Globs of program names; only for [`ExecMode::Allowlist`].
    pub allowed_commands: Vec<Box<str>>,
    /// Seconds a command may take when the call does not say.
    pub timeout_secs: u64,
    /// Bytes kept of each of the two outputs; the middle of more is cut out.
    pub max_output_bytes: usize,
    /// Variables of the daemon's environment that commands get too.
    pub env_passthrough: Vec<Box<str>>,
    /// Directories in which programs are looked for, in order.
    pub path: Vec<PathBuf>,
    /// Directories beyond the system's own that commands may read and run programs from.
    pub readable_paths: Vec<PathBuf>,
    /// Refuse to run commands where the kernel has no Landlock.
    pub require_landlock: bool,
    /// Processor seconds of one process.
    pub max_cpu_secs: u64,
    /// Bytes of memory of one process.
    pub max_memory_bytes: u64,
    /// Processes and threads of the daemon's user, as the kernel counts them.
    pub max_processes: u64,
    /// Open files of one process.
    pub max_open_files: u64,
    /// Bytes of a file that a command writes.
    pub max_file_bytes: u64,
}

/// What may run at all. What an agent's manifest does not grant never runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecMode {
    /// Nothing.
    Deny,
    /// Programs of `allowed_commands`, without a shell. An empty list: nothing.
    #[default]
    Allowlist,
    /// What the manifest grants, command lines for `/bin/sh` included.
    Full,
}

impl Word for ExecMode {
    const WORDS: &'static [(&'static str, Self)] =
        &[("deny", Self::Deny), ("allowlist", Self::Allowlist), ("full", Self::Full)];
}

impl Default for ExecPolicy {
    fn default() -> Self {
        Self {
            mode: ExecMode::default(),
            allowed_commands: Vec::new(),
            timeout_secs: 60,
            max_output_bytes: 64 << 10,
            env_passthrough: Vec::new(),
            path: PATH.iter().map(PathBuf::from).collect(),
            readable_paths: Vec::new(),
            require_landlock: false,
            max_cpu_secs: 600,
            max_memory_bytes: 4 << 30,
            max_processes: 4_096,
            max_open_files: 1_024,
            max_file_bytes: 1 << 30,
        }
    }
}

impl Table for ExecPolicy {
    const KEYS: &'static [Key] = &[
        Key::choice::<ExecMode>(
            "mode",
            "\"allowlist\"",
            "deny: nothing runs. allowlist: `allowed_commands`, without a shell. full: what the manifest grants.",
        )
        .protected(),
        Key::list(
            "allowed_commands",
            "[]",
            "Names of programs, or globs, such as \"git\" or \"python3*\"; for `allowlist`.",
        )
        .protected(),
        Key::integer(
            "timeout_secs",
            1..=TIMEOUT_SECS_MAX,
            "60",
            "Seconds a command may take when the call does not say, 1 to 600.",
        )
        .writable(),
        Key::integer(
            "max_output_bytes",
            1_024..=256 << 10,
            "65536",
            "Bytes kept of each output, 1024 to 262144; the middle of more is cut out.",
        )
        .writable(),
        Key::list(
            "env_passthrough",
            "[]",
            "Variables of the daemon that commands get too. Never keys of model providers.",
        )
        .protected(),
        Key::list(
            "path",
            "[\"/usr/local/sbin\", \"/usr/local/bin\", \"/usr/sbin\", \"/usr/bin\", \"/sbin\", \"/bin\"]",
            "Directories in which programs are looked for.",
        )
        .protected(),
        Key::list("readable_paths", "[]", "More directories that commands may read and run programs from.").protected(),
        Key::flag("require_landlock", "false", "Run no command where the kernel has no Landlock.").protected(),
        Key::integer("max_cpu_secs", 1..=86_400, "600", "Processor seconds of one process.").protected(),
        Key::integer("max_memory_bytes", 16 << 20..=TERA, "4294967296", "Bytes of memory of one process.").protected(),
        Key::integer(
            "max_processes",
            1..=1_000_000,
            "4096",
            "Processes and threads of the daemon's user, all counted; no bound for root.",
        )
        .protected(),
        Key::integer("max_open_files", 16..=1_000_000, "1024", "Open files of one process.").protected(),
        Key::integer("max_file_bytes", 4_096..=TERA, "1073741824", "Bytes of a file that a command writes.")
            .protected(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let default = Self::default();
        Self {
            mode: reader.choice("mode").unwrap_or_default(),
            allowed_commands: reader.list("allowed_commands", program).unwrap_or_default(),
            timeout_secs: reader.integer("timeout_secs").unwrap_or(default.timeout_secs),
            max_output_bytes: reader.integer("max_output_bytes").unwrap_or(default.max_output_bytes),
            env_passthrough: reader.list("env_passthrough", variable).unwrap_or_default(),
            path: reader.list("path", directory).unwrap_or(default.path),
            readable_paths: reader.list("readable_paths", directory).unwrap_or_default(),
            require_landlock: reader.flag("require_landlock").unwrap_or_default(),
            max_cpu_secs: reader.integer("max_cpu_secs").unwrap_or(default.max_cpu_secs),
            max_memory_bytes: reader.integer("max_memory_bytes").unwrap_or(default.max_memory_bytes),
            max_processes: reader.integer("max_processes").unwrap_or(default.max_processes),
            max_open_files: reader.integer("max_open_files").unwrap_or(default.max_open_files),
            max_file_bytes: reader.integer("max_file_bytes").unwrap_or(default.max_file_bytes),
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
        Err("must be the name of a variable".to_owned())
    } else if OWN_VARIABLES.contains(&text) {
        Err(format!("must not be {text}, which commands get from the daemon"))
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
    use std::path::Path;

    use super::{ExecMode, ExecPolicy};
    use crate::config::parse;

    #[test]
    fn the_default_runs_nothing() {
        let policy = ExecPolicy::default();
        assert_eq!((policy.mode, policy.allowed_commands.len()), (ExecMode::Allowlist, 0));
        let text = "[exec_policy]\nmode = \"full\"\nallowed_commands = [\"git\", \"python3*\"]\ntimeout_secs = 5\n";
        let policy = parse(text, Path::new("c")).unwrap().config.exec_policy;
        assert_eq!((policy.mode, policy.timeout_secs, policy.allowed_commands.len()), (ExecMode::Full, 5, 2));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let wrong = |line: &str| parse(&format!("[exec_policy]\n{line}\n"), Path::new("c")).unwrap_err().to_string();
        assert!(wrong("mode = \"allow\"").contains("must be one of `deny`, `allowlist`, `full`"));
        assert!(wrong("allowed_commands = [\"/bin/ls\"]").contains("without a path"));
        assert!(wrong("allowed_commands = [\"git status\"]").contains("without a path or arguments"));
        assert!(wrong("env_passthrough = [\"A=B\"]").contains("name of a variable"));
        assert!(wrong("env_passthrough = [\"PATH\"]").contains("must not be PATH"));
        assert!(wrong("path = [\"bin\"]").contains("absolute"));
        assert!(wrong("timeout_secs = 601").contains("1 to 600"));
    }
}
