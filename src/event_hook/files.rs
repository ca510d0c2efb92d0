//! `{home}/hooks/<folder>/HOOK.yaml`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agentsvc_systems::kernel::glob;

use crate::kernel::disk;
use crate::kernel::text_formats::{word, words, yaml};

/// What says what a hook does, in its directory.
pub(super) const FILE: &str = "HOOK.yaml";
/// Hooks that are read; those whose folders come later in the alphabet are left out, which the log says.
const HOOKS_MAX: usize = 100;
/// Bytes of one `HOOK.yaml`.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// What happens.
pub(super) const EVENTS: [&str; 7] =
    ["agent:start", "agent:step", "agent:end", "session:start", "session:end", "session:reset", "gateway:startup"];

/// One hook, as its file says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hook {
    pub(super) directory: PathBuf,
    pub(super) folder: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) events: Vec<String>,
    /// The program and its arguments; empty when the file cannot be used.
    pub(super) command: Vec<String>,
    pub(super) network: bool,
    pub(super) problem: Option<String>,
}

impl Hook {
    /// Does it want to hear of this event?
    pub(super) fn wants(&self, event: &str) -> bool {
        !self.command.is_empty() && glob::any(&self.events, event)
    }
}

/// Reads all hooks, in the order of their folders.
pub(super) fn load(hooks: &Path) -> Vec<Hook> {
    let Ok(folders) = fs::read_dir(hooks) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = folders.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.retain(|folder| folder.join(FILE).is_file());
    folders.sort_unstable();
    if folders.len() > HOOKS_MAX {
        tracing::warn!("only the first {HOOKS_MAX} event hooks are used; there are {}", folders.len());
        folders.truncate(HOOKS_MAX);
    }
    folders.into_iter().map(one).collect()
}

fn one(directory: PathBuf) -> Hook {
    let folder = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let read = disk::read_small(&directory.join(FILE), FILE_BYTES_MAX)
        .and_then(|bytes| String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)));
    let hook = Hook { name: folder.clone(), directory, folder, network: true, ..Hook::default() };
    let read = read.map_err(|error| format!("HOOK.yaml cannot be read: {error}"));
    let parsed = read.and_then(|text| parsed(&text, hook.clone()));
    parsed.unwrap_or_else(|why| Hook { problem: Some(why), ..hook })
}

/// What the text of a file makes of a hook.
pub(super) fn parsed(text: &str, hook: Hook) -> Result<Hook, String> {
    let value = yaml(text).map_err(|error| format!("HOOK.yaml is not valid YAML: {error}"))?;
    let events = words(&value, &["events"]);
    if events.is_empty() {
        return Err("events: missing; name at least one event, such as agent:end".to_owned());
    }
    let can_happen = |pattern: &&String| EVENTS.iter().any(|event| glob::matches(pattern, event));
    if let Some(unknown) = events.iter().find(|event| !can_happen(event)) {
        return Err(format!("events: unknown event {unknown:?}; known events are {}", EVENTS.join(", ")));
    }
    let command = word(&value, &["command"]).ok_or("command: missing")?;
    // Arguments of their own are not split, and then the command is not either.
    let command: Vec<String> = match value.get("args").filter(|args| !args.is_null()) {
        None => command.split_whitespace().map(str::to_owned).collect(),
        Some(args) => {
            let args = args.as_array().ok_or("args: must be a list of texts")?;
            let texts: Option<Vec<String>> = args.iter().map(|arg| arg.as_str().map(str::to_owned)).collect();
            let texts = texts.ok_or("args: must be a list of texts")?;
            std::iter::once(command.to_owned()).chain(texts).collect()
        }
    };
    let network = match value.get("network") {
        None => true,
        Some(network) => network.as_bool().ok_or("network: must be true or false")?,
    };
    let name = word(&value, &["name"]).map_or(hook.name, str::to_owned);
    let description = word(&value, &["description"]).unwrap_or_default().to_owned();
    Ok(Hook { name, description, events, command, network, ..hook })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Hook, String> {
        parsed(text, Hook { name: "folder".to_owned(), ..Hook::default() })
    }

    #[test]
    fn a_command_is_split_at_blanks_unless_it_has_arguments() {
        let hook = read("events: [agent:end]\ncommand: ./notify.sh  -q now\n").unwrap();
        assert_eq!((&*hook.name, hook.command), ("folder", vec!["./notify.sh".into(), "-q".into(), "now".into()]));
        let hook = read("name: notify\nevents: ['agent:*']\ncommand: sh\nargs: ['-c', 'echo a b']\n").unwrap();
        assert_eq!((&*hook.name, hook.command.len(), &*hook.command[2]), ("notify", 3, "echo a b"));
    }

    #[test]
    fn globs_match() {
        let hook = read("events: ['*']\ncommand: x\n").unwrap();
        assert!(EVENTS.iter().all(|event| hook.wants(event)) && hook.problem.is_none());
        let hook = read("events: ['agent:*']\ncommand: x\n").unwrap();
        assert!(hook.wants("agent:step") && !hook.wants("gateway:startup"));
        let hook = read("events: ['session:*', agent:end]\ncommand: x\n").unwrap();
        assert!(hook.wants("session:reset") && hook.wants("agent:end") && !hook.wants("agent:start"));
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        for (text, part) in [
            ("events: [", "YAML"),
            ("command: x\n", "events"),
            ("events: [agent:ends]\ncommand: x\n", "agent:ends"),
            ("events: [agent:end]\n", "command"),
            ("events: [agent:end]\ncommand: x\nargs: y\n", "args"),
            ("events: [agent:end]\ncommand: x\nnetwork: 3\n", "network"),
        ] {
            assert!(read(text).unwrap_err().contains(part), "{text}");
        }
    }
}
