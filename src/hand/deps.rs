//! Installs requirements with the package managers of the machine: no shell, one at a time.

use std::env;
use std::process::Stdio;
use std::time::Duration;

use agentsvc_api::hand::hands::DepResult;
use agentsvc_systems::hand::definition::Requirement;
use rustix::process::{Pid, Signal};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::install_line::words;
use super::programs::Programs;

/// How long one command may take.
const TIME_MAX: Duration = Duration::from_secs(300);
/// Bytes of output that a message shows.
const OUTPUT_SHOWN_MAX: usize = 2_048;
/// Bytes of output that are kept while a command runs.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// Variables of the daemon that such a command gets.
const VARIABLES: &[&str] =
    &["PATH", "HOME", "LANG", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy"];
/// Installs requirements, those of one hand at a time.
#[derive(Default)]
pub(super) struct Installer(Mutex<()>);

impl Installer {
    /// Runs the commands one after the other.
    pub(super) async fn install(
        &self,
        wanted: Vec<(Option<String>, Requirement)>,
        programs: &Programs,
    ) -> Vec<DepResult> {
        let running = self.0.try_lock();
        let mut results = Vec::with_capacity(wanted.len());
        for (command, requirement) in wanted {
            let (status, message) = match (&running, &command) {
                (Err(_), _) => ("error", "another installation is running; try again later".to_owned()),
                (_, None) => ("no_command", "no command is known for this machine".to_owned()),
                (_, Some(line)) => install(line, programs, TIME_MAX).await,
            };
            results.push(DepResult { key: requirement.key, status, command, message });
        }
        programs.forget();
        results
    }
}

/// Runs one command, and gives its status and a sentence.
async fn install(line: &str, programs: &Programs, time_max: Duration) -> (&'static str, String) {
    let words = match words(line, rustix::process::geteuid().is_root()) {
        Ok(words) => words,
        Err(why) => return ("error", why),
    };
    let Some(file) = programs.find(words[0]) else { return ("error", format!("{} is not installed", words[0])) };
    let mut command = Command::new(file);
    command.args(&words[1..]).env_clear().env("DEBIAN_FRONTEND", "noninteractive").current_dir("/");
    command.envs(VARIABLES.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return ("error", format!("the command could not be started: {}", error.kind())),
    };
    let group = Group::of(&child);
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let all = async { tokio::join!(child.wait(), tail(out), tail(err)) };
    match timeout(time_max, all).await {
        Err(_) => ("timeout", format!("stopped after {} seconds", time_max.as_secs())),
        Ok((Ok(status), ..)) if status.success() => {
            group.has_ended();
            ("installed", "installed".to_owned())
        }
        Ok((status, out, err)) => {
            let code = status.ok().and_then(|status| status.code());
            let code = code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
            ("error", format!("{code}: {}", if err.is_empty() { out } else { err }))
        }
    }
}

/// The processes of a command: killed when this is dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw))
    }

    /// It ended well: what it left running, such as a service that it installed, goes on.
    fn has_ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // The processes may have ended.
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        }
    }
}

/// The end of an output, as text on one line.
async fn tail(from: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut from) = from else { return String::new() };
    let (mut kept, mut piece) = (Vec::new(), [0; 4_096]);
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        kept.extend_from_slice(&piece[..count]);
        if kept.len() > OUTPUT_BYTES_MAX {
            kept.drain(..kept.len() - OUTPUT_SHOWN_MAX);
        }
    }
    let text = String::from_utf8_lossy(&kept);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let from = text.ceil_char_boundary(text.len().saturating_sub(OUTPUT_SHOWN_MAX));
    text[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::kernel::sandbox::config::ExecPolicy;
    use crate::kernel::settings::Settings;

    fn programs(script: &str) -> (tempfile::TempDir, Programs) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pip");
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        let settings = Settings::default();
        settings.set(ExecPolicy { path: vec![dir.path().to_owned()], ..ExecPolicy::default() });
        (dir, Programs::new(settings))
    }

    #[tokio::test]
    async fn a_command_ends_well_fails_or_takes_too_long() {
        for (script, status, message) in [
            ("exit 0", "installed", "installed"),
            ("echo no such package >&2; exit 3", "error", "exit code 3: no such package"),
            ("echo $AGENTSVC_TEST_SECRET; exit 1", "error", "exit code 1: "),
        ] {
            let (_dir, programs) = programs(script);
            assert_eq!(install("pip install x", &programs, TIME_MAX).await, (status, message.to_owned()));
        }
        let (_dir, programs) = programs("sleep 60 & wait");
        let (status, message) = install("pip install x", &programs, Duration::from_millis(100)).await;
        assert_eq!((status, &*message), ("timeout", "stopped after 0 seconds"));
    }

    #[tokio::test]
    async fn two_installations_do_not_run_at_once() {
        let (_dir, programs) = programs("exit 0");
        let installer = Installer::default();
        let wanted =
            || vec![(Some("pip install x".to_owned()), Requirement { key: "x".to_owned(), ..Default::default() })];
        let held = installer.0.lock().await;
        let refused = installer.install(wanted(), &programs).await;
        assert_eq!(refused[0].status, "error");
        drop(held);
        assert_eq!(installer.install(wanted(), &programs).await[0].status, "installed");
        let none = vec![(None, Requirement::default())];
        assert_eq!(installer.install(none, &programs).await[0].status, "no_command");
    }
}
