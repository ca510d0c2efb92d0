//! What the machine has: programs, variables, and how to install what is missing.

use std::collections::HashMap;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use agentsvc_systems::hand::definition::{Requirement, RequirementKind};
use parking_lot::Mutex;
use serde_json::Value;

use crate::browser;
use crate::kernel::sandbox::config::ExecPolicy;
use crate::kernel::settings::Settings;

/// How long an answer of a program counts.
const ANSWER_LASTS: Duration = Duration::from_secs(60);
/// How long a program may take to answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// Time between two looks at a program that has not answered.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 4 << 10;

/// Finds programs. Calls block on the disk.
pub(super) struct Programs {
    settings: Settings,
    /// Whether a Python answered as such, and when that was asked.
    answers: Mutex<HashMap<PathBuf, (Instant, bool)>>,
}

impl Programs {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, answers: Mutex::default() }
    }

    /// The directories that programs are looked for in: those of agents' commands, and of the daemon.
    fn directories(&self) -> Vec<PathBuf> {
        let mut all = self.settings.get::<ExecPolicy>().path.clone();
        all.extend(env::var_os("PATH").iter().flat_map(|path| env::split_paths(path)));
        all
    }

    /// The file of a program.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        if name.is_empty() || name.contains('/') {
            return Some(PathBuf::from(name)).filter(|path| path.is_absolute() && is_program(path));
        }
        self.directories().iter().map(|dir| dir.join(name)).find(|path| is_program(path))
    }

    /// Is a requirement met? `servers` are the names of MCP servers.
    pub(super) fn has(&self, requirement: &Requirement, servers: &[String]) -> bool {
        let wanted = requirement.wanted();
        match requirement.requirement_type {
            RequirementKind::Binary => self.has_binary(wanted),
            RequirementKind::EnvVar | RequirementKind::ApiKey => is_set(wanted),
            RequirementKind::AnyEnvVar => wanted.split(',').any(|name| is_set(name.trim())),
            RequirementKind::Integration => servers.iter().any(|server| server.eq_ignore_ascii_case(wanted)),
        }
    }

    fn has_binary(&self, name: &str) -> bool {
        match name {
            "python3" | "python" => ["python3", "python"].iter().any(|name| self.answers_as_python(name)),
            "chromium" => browser::executable(&self.settings).is_ok(),
            name => self.find(name).is_some(),
        }
    }

    /// Does the program of this name say that it is Python 3? Some systems have a file of that name that only opens a shop.
    fn answers_as_python(&self, name: &str) -> bool {
        let Some(file) = self.find(name) else { return false };
        let known = self.answers.lock().get(&file).copied();
        if let Some((_, answer)) = known.filter(|(at, _)| at.elapsed() < ANSWER_LASTS) {
            return answer;
        }
        let answer = version(&file).is_some_and(|text| text.starts_with("Python 3"));
        self.answers.lock().insert(file, (Instant::now(), answer));
        answer
    }

    /// Forgets what programs answered.
    pub(super) fn forget(&self) {
        self.answers.lock().clear();
    }

    /// The command that installs a requirement on this machine, as written.
    pub(super) fn install_command(&self, requirement: &Requirement) -> Option<String> {
        let text = |key: &str| requirement.install.get(key).and_then(Value::as_str).map(str::to_owned);
        let has = |name: &str| self.find(name).is_some();
        let system = match env::consts::OS {
            "macos" => text("macos"),
            "windows" => text("windows"),
            _ => [("apt-get", "linux_apt"), ("apt", "linux_apt"), ("dnf", "linux_dnf"), ("pacman", "linux_pacman")]
                .into_iter()
                .filter(|(program, _)| has(program))
                .find_map(|(_, key)| text(key)),
        };
        system.or_else(|| text("pip")).filter(|command| !command.trim().is_empty())
    }
}

/// Is this variable of the daemon set to something?
fn is_set(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && env::var_os(name).is_some_and(|value| !value.is_empty())
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// What a program says to `--version`, on either output.
fn version(file: &Path) -> Option<String> {
    let mut command = Command::new(file);
    command.arg("--version").env_clear().env("PATH", env::var_os("PATH").unwrap_or_default()).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    if !ends_in_time(&mut child) {
        return None;
    }
    let mut text = String::new();
    let (out, err) = (child.stdout.take(), child.stderr.take());
    out.and_then(|out| out.take(ANSWER_BYTES_MAX).read_to_string(&mut text).ok());
    if text.trim().is_empty() {
        err.and_then(|err| err.take(ANSWER_BYTES_MAX).read_to_string(&mut text).ok());
    }
    Some(text)
}

/// Waits for the end of a program; kills one that takes too long.
fn ends_in_time(child: &mut Child) -> bool {
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if began.elapsed() < ANSWER_TIME_MAX => thread::sleep(LOOK_EVERY),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

/// The name of a program without its directory.
pub(super) fn file_name(word: &str) -> &str {
    Path::new(word).file_name().and_then(OsStr::to_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(scripts: &[(&str, &str)]) -> (tempfile::TempDir, Programs) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in scripts {
            let file = dir.path().join(name);
            fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let settings = Settings::default();
        settings.set(ExecPolicy { path: vec![dir.path().to_owned()], ..ExecPolicy::default() });
        (dir, Programs::new(settings))
    }

    fn wants(requirement_type: RequirementKind, check_value: &str) -> Requirement {
        Requirement { requirement_type, check_value: check_value.to_owned(), ..Requirement::default() }
    }

    #[test]
    fn requirements_are_looked_for() {
        let (_dir, programs) = programs(&[("agentsvc-test-program", ""), ("google-chrome", "")]);
        for (requirement, met) in [
            (wants(RequirementKind::Binary, "agentsvc-test-program"), true),
            (wants(RequirementKind::Binary, "agentsvc-no-program"), false),
            (wants(RequirementKind::Binary, "chromium"), true),
            (wants(RequirementKind::EnvVar, "PATH"), true),
            (wants(RequirementKind::ApiKey, "AGENTSVC_NO_SUCH_KEY"), false),
            (wants(RequirementKind::AnyEnvVar, "AGENTSVC_NO_SUCH_KEY, PATH"), true),
            (wants(RequirementKind::AnyEnvVar, "AGENTSVC_NO_SUCH_KEY,"), false),
            (wants(RequirementKind::Integration, "Files"), true),
            (wants(RequirementKind::Integration, "mail"), false),
        ] {
            assert_eq!(programs.has(&requirement, &["files".to_owned()]), met, "{requirement:?}");
        }
    }

    #[test]
    fn a_python_must_answer() {
        for (script, answers) in [("echo Python 3.11.2", true), ("echo open the shop", false), ("exit 9", false)] {
            let (dir, programs) = programs(&[("python3", script)]);
            let file = programs.find("python3").unwrap();
            assert!(file.starts_with(dir.path()));
            assert_eq!(programs.answers_as_python("python3"), answers, "{script}");
            fs::write(&file, "#!/bin/sh\necho Python 3.12\n").unwrap();
            assert_eq!(programs.answers_as_python("python3"), answers, "the answer lasts a while");
            programs.forget();
            assert!(programs.answers_as_python("python3"));
        }
    }

    #[test]
    fn the_command_of_this_machine_is_chosen() {
        let (_dir, programs) = programs(&[("pacman", ""), ("apt-get", "")]);
        let mut requirement = wants(RequirementKind::Binary, "x");
        assert_eq!(programs.install_command(&requirement), None);
        requirement.install.insert("pip".to_owned(), "pip install x".into());
        assert_eq!(programs.install_command(&requirement).as_deref(), Some("pip install x"));
        if env::consts::OS == "linux" {
            requirement.install.insert("linux_pacman".to_owned(), "sudo pacman -S x".into());
            assert_eq!(programs.install_command(&requirement).as_deref(), Some("sudo pacman -S x"));
            requirement.install.insert("linux_apt".to_owned(), "sudo apt install x".into());
            assert_eq!(programs.install_command(&requirement).as_deref(), Some("sudo apt install x"));
        }
    }
}
