//! The environment of a skill's program: nothing of the daemon's but what the skill asks for and the operator lets pass.

use std::ffi::OsString;

use crate::skill::config::SkillSettings;
use crate::skill::skill::Skill;

/// What every program gets beside what commands get.
const OWN: &[(&str, &str)] = &[("PYTHONIOENCODING", "utf-8"), ("NODE_NO_WARNINGS", "1"), ("SHELL", "/bin/sh")];
/// Variables that change which code a program runs: never passed.
const HARD: &[&str] = &[
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONEXECUTABLE",
    "PYTHONIOENCODING",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_NO_WARNINGS",
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "IFS",
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "TERM",
    "SHELL",
];
/// How names of further ones begin: of the loader, and of the daemon itself.
const HARD_BEGINNINGS: &[&str] = &["LD_", "DYLD_", "AGENTSVC_", "BASH_FUNC_"];

/// The variables that a program of `skill` gets; `is_secret` knows the keys of the daemon, `value` the daemon's environment.
pub(super) fn of(
    skill: &Skill,
    settings: &SkillSettings,
    is_secret: impl Fn(&str) -> bool,
    value: impl Fn(&str) -> Option<OsString>,
) -> Vec<(String, OsString)> {
    let own = OWN.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value)));
    let asked = skill.env_passthrough.iter().filter(|name| {
        let is_reopened = settings.is_reopened(&skill.name, name);
        !is_hard(name) && (is_reopened || (!is_secret(name) && !settings.is_denied(name)))
    });
    own.chain(asked.filter_map(|name| Some((name.to_string(), value(name)?)))).collect()
}

fn is_hard(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    !is_plain || HARD.contains(&&*upper) || HARD_BEGINNINGS.iter().any(|beginning| upper.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::config::read_table;

    #[test]
    fn only_what_is_asked_for_and_allowed_passes() {
        let asked = [
            "GOG_ACCOUNT",
            "GOG_TOKEN",
            "MY_API_KEY",
            "OPENAI_X",
            "LD_PRELOAD",
            "ld_preload",
            "PYTHONPATH",
            "NODE_OPTIONS",
            "AGENTSVC_VAULT_KEY",
            "PATH",
            "A=B",
            "UNSET",
        ];
        let env_passthrough = asked.iter().map(|name| Box::from(*name)).collect();
        let skill = Skill { name: "gog".into(), env_passthrough, ..Skill::default() };
        let text = "[skills.env_passthrough_per_skill]\ngog = [\"MY_API_KEY\", \"LD_PRELOAD\"]\n";
        let settings: SkillSettings = read_table("skills", text).unwrap().config;
        let value = |name: &str| (name != "UNSET").then(|| OsString::from("v"));
        let passed = of(&skill, &settings, |name| name == "OPENAI_X", value);
        let names: Vec<&str> = passed.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["PYTHONIOENCODING", "NODE_NO_WARNINGS", "SHELL", "GOG_ACCOUNT", "MY_API_KEY"]);
    }
}
