//! `shell_exec`: runs a command in the workspace.

use std::path::PathBuf;

use agentsvc_components::kernel::taint::Taint;
use schemars::JsonSchema;
use serde::Deserialize;

use super::SkillFolders;
use super::files::{in_workspace, sentence};
use crate::kernel::sandbox::{AgentVariables, Asked, Full, Ran, Request};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// The table row. Its time is bounded by `timeout_secs`.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "shell_exec",
    "Runs a command in your private workspace and returns its exit code and output. Give either `command`, a line \
     for /bin/sh, or `argv`, a program and its arguments without a shell; some machines and agents allow only \
     `argv`. There is no input and no terminal. The command can read the system's programs and change your \
     workspace, nothing else; processes that it leaves running are killed.",
    |context, text| on_input(context, text, run),
)
.needs(Need::Shell)
.untimed()
.order(17);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// A command line for /bin/sh.
    command: Option<String>,
    /// A program and its arguments, such as ["ls", "-l"].
    argv: Option<Vec<String>>,
    /// Timeout in seconds, 1 to 600. Default: as configured, usually 60.
    timeout_secs: Option<u64>,
}

async fn run(context: Context, Input { command, argv, timeout_secs }: Input) -> Result<Ended, String> {
    let asked = match (command, argv) {
        (Some(line), None) => Asked::Line(line),
        (None, Some(words)) => Asked::Words(words),
        _ => return Err("Give either `command` or `argv`.".to_owned()),
    };
    let place = context.parts.commands.place(context.run.holder).await?;
    let workspace = in_workspace(&context, |workspace| workspace.for_command().map_err(sentence)).await?;
    let more = context.parts.settings.get::<AgentVariables>();
    let variables = more.of(context.parts.bridge.clone(), context.run.agent).await?;
    let manifest = &context.run.manifest.manifest;
    let models = std::iter::once(&manifest.model).chain(&manifest.fallback_models);
    let folders = context.parts.settings.get::<SkillFolders>().of(manifest);
    let reads_skills = mentions(&asked, &folders);
    let request = Request {
        place,
        shown: folders,
        asked,
        workspace,
        granted: manifest.capabilities.shell.clone(),
        // The kernel's rules know ports and no hosts: only the grant for all of them opens the network.
        network: manifest.capabilities.network.iter().any(|host| &**host == "*"),
        secrets: models.filter_map(|model| model.api_key_env.clone()).collect(),
        variables,
        timeout_secs,
    };
    let ended = report(context.parts.commands.run(request).await?)?;
    Ok(match ended {
        // As `skill_read_file` says of the same text.
        Ended::Text(text) if reads_skills => Ended::Read { text, taint: Taint::TOOL },
        ended => ended,
    })
}

/// Does a command name one of the folders of skills, or the folder that they are in? What untrusted files of the workspace do
/// counts as theirs.
fn mentions(asked: &Asked, folders: &[PathBuf]) -> bool {
    let words: Vec<&str> = match asked {
        Asked::Line(line) => vec![line],
        Asked::Words(words) => words.iter().map(String::as_str).collect(),
    };
    let names = folders.iter().flat_map(|folder| [Some(folder.as_path()), folder.parent()]).flatten();
    let mut names = names.filter_map(|path| path.file_name()?.to_str());
    names.any(|name| words.iter().any(|word| word.contains(name)))
}

/// A command that fails is a result like another; one that took too long is an error.
fn report(ran: Ran) -> Result<Ended, String> {
    let Ran { code, full, timeout_secs, elapsed, stdout, stderr } = ran;
    let mut text = match code {
        Some(code @ 129..=192) => format!("Exit code: {code} (ended by signal {})", code - 128),
        Some(code) => format!("Exit code: {code}"),
        None => stopped(full, timeout_secs),
    };
    text.push_str(&format!("\nSeconds: {:.1}\n", elapsed.as_secs_f32()));
    for (name, output) in [("stdout", stdout), ("stderr", stderr)] {
        if !output.is_empty() {
            let newline = if output.ends_with('\n') { "" } else { "\n" };
            text.push_str(&format!("--- {name}\n{output}{newline}"));
        }
    }
    if code.is_some() { Ok(Ended::Text(text)) } else { Err(text) }
}

/// Why a command was killed, in a sentence.
pub(crate) fn stopped(full: Option<Full>, timeout_secs: u64) -> String {
    let why = match full {
        Some(Full::Disk) => "The disk is full; it was killed",
        Some(Full::Workspace) => "The workspace is full (`[workspaces] max_bytes`); it was killed",
        Some(Full::Share) => {
            "The workspaces of the agent's family or user are full (`[workspaces] max_share_bytes`); it was killed"
        }
        Some(Full::Workspaces) => {
            "The workspaces of all agents together are full (`[workspaces] max_total_bytes`); it was killed"
        }
        Some(Full::Watches) => {
            "All epoll watches of the daemon's user were in use (`fs.epoll.max_user_watches`), which keeps the daemon \
             from new connections; each running command was killed"
        }
        Some(Full::Memory) => {
            "The machine has almost no memory left (`MemAvailable`), and no other command held more; it was killed"
        }
        None => &format!("It timed out after {timeout_secs} seconds and was killed"),
    };
    format!("{why} with everything it had started.")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Ended, Full, Ran, report};

    #[test]
    fn results_read_well() {
        let ran = |code| Ran {
            code,
            full: None,
            timeout_secs: 2,
            elapsed: Duration::from_millis(1_260),
            stdout: "out".to_owned(),
            stderr: String::new(),
        };
        let text = |code| match report(ran(code)) {
            Ok(Ended::Text(text)) | Err(text) => text,
            Ok(_) => panic!("no other end"),
        };
        assert_eq!(text(Some(0)), "Exit code: 0\nSeconds: 1.3\n--- stdout\nout\n");
        assert!(text(Some(137)).starts_with("Exit code: 137 (ended by signal 9)\n"));
        assert!(text(None).starts_with("It timed out after 2 seconds and was killed"));
        for (full, start) in [
            (Full::Disk, "The disk is full; it was"),
            (Full::Workspace, "The workspace is full"),
            (Full::Share, "The workspaces of the agent's family or user are full"),
            (Full::Workspaces, "The workspaces of all agents together are full"),
            (Full::Watches, "All epoll watches of the daemon's user were in use"),
            (Full::Memory, "The machine has almost no memory left"),
        ] {
            assert!(report(Ran { full: Some(full), ..ran(None) }).is_err_and(|text| text.starts_with(start)));
        }
        assert!(report(ran(None)).is_err() && report(ran(Some(1))).is_ok());
    }
}
