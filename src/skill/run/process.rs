//! Skills with code: one process a call, in the sandbox of commands (facts 1.3).
//!
//! The program begins in the skill's folder, which it cannot change. It may change the agent's workspace, where its `HOME` is,
//! and reaches the network only if the skill declares that and the agent may reach all hosts. Its input stands in a file on its
//! stdin: programs may read it by any way, and more than once.

use std::ffi::OsString;
use std::path::PathBuf;

use agentsvc_components::kernel::taint::Taint;
use agentsvc_systems::skill::limits::SKILL_STREAM_BYTES_MAX;
use serde_json::{Value, json};

use super::{Call, environment};
use crate::kernel::sandbox::config::ExecPolicy;
use crate::kernel::sandbox::{Filter, Filtered, NotFiltered};
use crate::skill::config::SkillSettings;
use crate::skill::needs::{find, launchers};
use crate::skill::skill::Runtime;
use crate::tool::toolset::{Context, Ended};

/// The shell that begins in the folder, puts the input into a file and becomes the program.
const SHELL: &str = "/bin/sh";
/// What it does: `$1` is the folder, the rest the program.
const START: &str = "cd \"$1\" || exit 126; shift; input=$(mktemp) || exit 126; cat >\"$input\" || exit 126; \
    exec 3<\"$input\"; rm -f \"$input\"; exec \"$@\" <&3 3<&-";
/// Runs a Python file, and the `run` that it defines if it printed nothing.
const PYTHON: &str = include_str!("driver.py");
/// Likewise for Node.
const NODE: &str = include_str!("driver.js");
/// Bytes of an error output that are shown, from its end.
const ERROR_BYTES_MAX: usize = 8 << 10;

/// Carries out a call.
pub(super) async fn run(call: Call) -> Result<Ended, String> {
    let input = call.envelope().to_string().into_bytes();
    if input.len() > SKILL_STREAM_BYTES_MAX {
        return Err(format!("The input is longer than {SKILL_STREAM_BYTES_MAX} bytes."));
    }
    let Call { skill, context, .. } = call;
    let parts = &context.parts;
    let (policy, settings) = (parts.settings.get::<ExecPolicy>(), parts.settings.get::<SkillSettings>());
    let place = parts.commands.place(context.run.holder).await?;
    let workspace = workspace(&context).await?;
    let (program, entry) = (program(&policy, skill.runtime)?, skill.entry.as_deref().unwrap_or_default());
    let mut words = vec![SHELL.into(), "-c".into(), START.into(), "sh".into(), skill.folder.clone().into_os_string()];
    words.push(program.into_os_string());
    words.extend(arguments(skill.runtime, entry));
    let is_secret = |name: &str| parts.commands.is_secret(name);
    let manifest = &context.run.manifest.manifest;
    // The kernel's rules know ports and no hosts: only the grant for all of them opens the network.
    let network = declares_network(&skill.requirements.capabilities)
        && manifest.capabilities.network.iter().any(|host| &**host == "*");
    let timeout_secs = skill.timeout_secs();
    let filter = Filter {
        place,
        workspace,
        words,
        environment: environment::of(&skill, &settings, is_secret, |name| std::env::var_os(name)),
        shown: vec![skill.folder.clone()],
        network,
        input,
        timeout_secs,
        output_bytes_max: SKILL_STREAM_BYTES_MAX,
    };
    match parts.commands.filter(filter).await {
        Ok(filtered) => Ok(told(filtered)),
        Err(NotFiltered::Refused(sentence)) => Err(sentence),
        Err(NotFiltered::TimedOut) => Err(crate::tool::stopped(None, timeout_secs)),
        Err(NotFiltered::Full(full)) => Err(crate::tool::stopped(Some(full), timeout_secs)),
        Err(NotFiltered::TooLong) => {
            Err(format!("The skill wrote more than {SKILL_STREAM_BYTES_MAX} bytes and was killed."))
        }
    }
}

/// The agent's workspace, ready for a program.
async fn workspace(context: &Context) -> Result<crate::kernel::sandbox::CommandWorkspace, String> {
    crate::tool::in_workspace(context, |workspace| workspace.for_command().map_err(crate::tool::sentence)).await
}

/// What runs a skill of this runtime.
fn program(policy: &ExecPolicy, runtime: Runtime) -> Result<PathBuf, String> {
    let names = launchers(runtime).unwrap_or_default();
    let found = names.iter().find_map(|name| find(&policy.path, name));
    found.ok_or_else(|| format!("The program {} is not installed on this machine.", names.join(" or ")))
}

/// The arguments of what runs a skill.
fn arguments(runtime: Runtime, entry: &str) -> Vec<OsString> {
    let entry = format!("./{entry}").into();
    match runtime {
        Runtime::Python => vec!["-c".into(), PYTHON.into(), entry],
        Runtime::Node => vec!["-e".into(), NODE.into(), entry],
        _ => vec![entry],
    }
}

/// Does one of the capabilities, such as `NetConnect(*)`, declare the network?
fn declares_network(capabilities: &[Box<str>]) -> bool {
    capabilities.iter().any(|capability| {
        let name = capability.split('(').next().unwrap_or_default().trim();
        name.eq_ignore_ascii_case("NetConnect") || name.eq_ignore_ascii_case("net_connect")
    })
}

/// What the model reads.
fn told(Filtered { code, stdout, stderr }: Filtered) -> Ended {
    let failure = |text: String| Ended::Failure { text, taint: Taint::TOOL };
    let stdout = String::from_utf8_lossy(&stdout);
    let output = stdout.trim();
    if code != 0 {
        let stderr = String::from_utf8_lossy(&stderr);
        let said = if stderr.trim().is_empty() { output } else { stderr.trim() };
        let from = said.ceil_char_boundary(said.len().saturating_sub(ERROR_BYTES_MAX));
        return failure(format!("Exit code: {code}\n{}", &said[from..]));
    }
    match serde_json::from_str::<Value>(output) {
        Ok(Value::Object(object)) if object.get("error").is_some_and(|error| !error.is_null()) => {
            let error = &object["error"];
            failure(error.as_str().map_or_else(|| error.to_string(), str::to_owned))
        }
        Ok(_) => Ended::Text(output.to_owned()),
        Err(_) => Ended::Text(json!({ "result": output }).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: i32, stdout: &str, stderr: &str) -> (bool, String) {
        match told(Filtered { code, stdout: stdout.into(), stderr: stderr.into() }) {
            Ended::Text(text) => (true, text),
            Ended::Failure { text, taint } if taint == Taint::TOOL => (false, text),
            _ => panic!("no other end"),
        }
    }

    #[test]
    fn json_is_the_result_and_text_is_one() {
        assert_eq!(ended(0, " {\"a\": 1}\n", ""), (true, "{\"a\": 1}".to_owned()));
        assert_eq!(ended(0, "[1]", ""), (true, "[1]".to_owned()));
        assert_eq!(ended(0, "two\nlines\n", "ignored"), (true, "{\"result\":\"two\\nlines\"}".to_owned()));
        assert!(ended(0, "{\"error\": null, \"a\": 1}", "").0);
    }

    #[test]
    fn errors_are_errors_with_any_exit_code() {
        assert_eq!(ended(0, "{\"error\": \"no city\"}", ""), (false, "no city".to_owned()));
        assert_eq!(ended(0, "{\"error\": {\"code\": 7}}", ""), (false, "{\"code\":7}".to_owned()));
        assert_eq!(ended(3, "out", "went wrong\n"), (false, "Exit code: 3\nwent wrong".to_owned()));
        assert_eq!(ended(1, "only out", ""), (false, "Exit code: 1\nonly out".to_owned()));
        assert!(ended(1, "", &"é".repeat(9_000)).1.len() <= ERROR_BYTES_MAX + 20);
    }

    #[test]
    fn the_network_must_be_declared() {
        let declares =
            |words: &[&str]| declares_network(&words.iter().map(|word| Box::from(*word)).collect::<Vec<_>>());
        assert!(declares(&["NetConnect(*)"]) && declares(&["FileRead(*)", "net_connect(api.example.com:443)"]));
        assert!(!declares(&[]) && !declares(&["NetListen(80)", "Netconnected"]));
    }
}
