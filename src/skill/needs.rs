//! What a skill needs of this machine, and what of it is not there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::config::SkillSettings;
use super::skill::{Runtime, Skill};

/// What needs are held against.
pub(super) struct Machine<'a> {
    /// Where programs are looked for.
    pub(super) path: Vec<PathBuf>,
    /// Has the daemon such an environment variable?
    pub(super) has_variable: &'a dyn Fn(&str) -> bool,
    /// `[skills]`.
    pub(super) settings: &'a SkillSettings,
    /// The operating system.
    pub(super) os: &'a str,
}

impl Machine<'_> {
    /// What the skill needs and this machine does not have, in sentences. Empty: nothing.
    pub(super) fn unmet(&self, skill: &Skill) -> Vec<String> {
        let needs = &skill.requirements;
        let mut unmet = Vec::new();
        if needs.always {
            return unmet;
        }
        if !needs.os.is_empty() && !needs.os.iter().any(|os| **os == *self.os) {
            unmet.push(format!("runs on {} only", needs.os.join(", ")));
        }
        let missing = needs.bins.iter().filter(|bin| !self.has_program(bin));
        unmet.extend(missing.map(|bin| format!("program {bin} is not installed")));
        if !needs.any_bins.is_empty() && !needs.any_bins.iter().any(|bin| self.has_program(bin)) {
            unmet.push(format!("none of the programs {} is installed", needs.any_bins.join(", ")));
        }
        let missing = needs.env.iter().filter(|name| !(self.has_variable)(name));
        unmet.extend(missing.map(|name| format!("environment variable {name} is not set")));
        let missing = needs.config.iter().filter(|key| self.settings.value(key).is_none());
        unmet.extend(missing.map(|key| format!("[skills.config] {key} is not set")));
        if let Some(launchers) =
            launchers(skill.runtime).filter(|names| !names.iter().any(|name| self.has_program(name)))
        {
            unmet.push(format!("program {} is not installed", launchers.join(" or ")));
        }
        unmet
    }

    fn has_program(&self, name: &str) -> bool {
        !name.is_empty() && self.find(name).is_some()
    }

    /// The file of a program.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        find(&self.path, name)
    }
}

/// The file of a program in the directories of `path`.
pub(crate) fn find(path: &[PathBuf], name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return None;
    }
    let is_program = |file: &PathBuf| {
        fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    path.iter().map(|directory| directory.join(name)).find(is_program)
}

/// The programs, best first, one of which runs skills of a runtime; `None` for those that need none.
pub(super) const fn launchers(runtime: Runtime) -> Option<&'static [&'static str]> {
    match runtime {
        Runtime::Python => Some(&["python3", "python"]),
        Runtime::Node => Some(&["node"]),
        Runtime::Shell => Some(&["bash", "sh"]),
        Runtime::Wasm | Runtime::Builtin | Runtime::PromptOnly => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::skill::Requirements;

    #[test]
    fn each_need_is_named() {
        let boxed = |words: &[&str]| words.iter().map(|word| Box::<str>::from(*word)).collect();
        let requirements = Requirements {
            bins: boxed(&["sh", "no-such-program"]),
            any_bins: boxed(&["no-such", "sh"]),
            env: boxed(&["HAVE", "LACK"]),
            config: boxed(&["a.b"]),
            os: boxed(&["macos"]),
            ..Requirements::default()
        };
        let settings = SkillSettings::default();
        let machine = Machine {
            path: vec!["/usr/bin".into(), "/bin".into()],
            has_variable: &|name| name == "HAVE",
            settings: &settings,
            os: "linux",
        };
        let mut skill = Skill { requirements, ..Skill::default() };
        let expected = [
            "runs on macos only",
            "program no-such-program is not installed",
            "environment variable LACK is not set",
            "[skills.config] a.b is not set",
        ];
        assert_eq!(machine.unmet(&skill), expected);
        skill.requirements.always = true;
        assert!(machine.unmet(&skill).is_empty());
    }

    #[test]
    fn code_needs_what_runs_it() {
        let settings = SkillSettings::default();
        let machine = Machine { path: Vec::new(), has_variable: &|_| false, settings: &settings, os: "linux" };
        let python = Skill { runtime: Runtime::Python, ..Skill::default() };
        assert_eq!(machine.unmet(&python), ["program python3 or python is not installed"]);
        assert!(machine.unmet(&Skill::default()).is_empty());
    }
}
