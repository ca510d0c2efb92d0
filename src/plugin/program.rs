//! What a hook is started as: its launcher, its environment, and what of the machine it reaches.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::config::ContextEngine;
use super::engine::Around;
use super::fault::Fault;
use super::plugin::{Kind, Plugin};
use super::process::Ready;
use super::run::Who;
use super::runtime::Runtime;
use crate::kernel::disk;
use crate::kernel::home::create_private_dir;
use crate::kernel::sandbox::ServerProgram;
use crate::kernel::sandbox::config::ExecPolicy;
use crate::skill::find_program;

/// Held while the settings of a plugin are kept: its hooks start side by side.
static KEEPING: Mutex<()> = Mutex::new(());
/// What a plugin is given in its private home: its state and its dependencies. Its hooks may change all of it, so the daemon
/// neither reads nor writes there.
pub(super) const OWN: &str = ".plugin";
/// What was installed for it, there.
pub(super) const DEPENDENCIES: &str = ".plugin/dependencies";
/// Folder of its settings, beside the home: its hooks may read them only.
const SETTINGS: &str = "settings";
/// Bytes of a file of settings.
const SETTINGS_BYTES_MAX: u64 = 4 << 20;
/// Bytes of the message in an environment variable: systems bound each.
const MESSAGE_BYTES_MAX: usize = 32 << 10;
/// Bytes of a private home; no hook starts while it holds more.
const HOME_BYTES_MAX: u64 = 1 << 30;

/// The file that runs hooks of a runtime.
///
/// # Errors
/// [`Fault::LauncherNotFound`].
pub(crate) fn launcher(path: &[PathBuf], runtime: Runtime) -> Result<PathBuf, Fault> {
    let found = runtime.launchers().iter().find_map(|name| find_program(path, name));
    found.ok_or_else(|| {
        let names = runtime.launchers().join(" or ");
        Fault::LauncherNotFound(format!("{names} is not installed. {}", runtime.install_hint()))
    })
}

/// What is started for a hook. Blocks on the disk.
///
/// # Errors
/// [`Fault`].
pub(super) fn ready(around: &Around, plugin: &Plugin, file: &str, who: Option<&Who>) -> Result<Ready, Fault> {
    let failed = |error: io::Error| Fault::NotStarted(format!("its home cannot be used: {error}"));
    let own = made_in(plugin, OWN).map_err(Fault::NotStarted)?;
    let held = crate::kernel::sandbox::measure_at(&plugin.home).map_err(|error| failed(error.into()))?;
    if held > HOME_BYTES_MAX {
        return Err(Fault::NotStarted(format!("its home holds {held} bytes; the limit is {HOME_BYTES_MAX}")));
    }
    let settings = around.settings.get::<ContextEngine>();
    let config = keep_settings(plugin, &merged(&settings, plugin).to_string()).map_err(failed)?;
    let policy = around.settings.get::<ExecPolicy>();
    let (command, mut arguments) = command(&policy.path, plugin, file)?;
    let rules = &plugin.manifest.rules;
    if let Kind::Sidecar(words) = &plugin.kind {
        arguments.extend(words.iter().skip(1).map(|word| word.to_string()));
    }
    let mut environment = environment(around, &settings, plugin, who);
    for name in ["LIBREFANG_PLUGIN_CONFIG", "AGENTSVC_PLUGIN_CONFIG"] {
        environment.push((name.to_owned(), config.clone().into()));
    }
    if rules.has_shared_state {
        let state = own.join("state.json");
        environment.push(("LIBREFANG_STATE_FILE".to_owned(), state.clone().into()));
        environment.push(("AGENTSVC_STATE_FILE".to_owned(), state.into()));
    }
    let program = ServerProgram {
        command,
        arguments,
        directory: plugin.home.clone(),
        environment,
        readable: Vec::new(),
        writable: Vec::new(),
        shown: shown(plugin, file).into_iter().chain(config.parent().map(PathBuf::from)).collect(),
        memory_bytes: rules.max_memory_mib.map(|mib| mib << 20),
        network: plugin.network,
    };
    Ok(Ready { program, folder: plugin.folder.clone().into_os_string() })
}

/// A folder below the private home, made if it is not there. A link in its place leads elsewhere, and is refused.
///
/// # Errors
/// A sentence.
pub(super) fn made_in(plugin: &Plugin, path: &str) -> Result<PathBuf, String> {
    create_private_dir(&plugin.home).map_err(|error| error.to_string())?;
    let mut made = plugin.home.clone();
    for part in path.split('/') {
        made.push(part);
        match fs::symlink_metadata(&made) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(format!("{part:?} in its home is not a folder")),
            Err(_) => create_private_dir(&made).map_err(|error| error.to_string())?,
        }
    }
    Ok(made)
}

/// The file with the settings of a plugin, where no hook can change it.
fn keep_settings(plugin: &Plugin, text: &str) -> io::Result<PathBuf> {
    let folder = plugin.home.parent().unwrap_or(&plugin.home).join(SETTINGS);
    create_private_dir(&folder).map_err(io::Error::other)?;
    let file = folder.join("config.json");
    let _one_by_one = KEEPING.lock();
    // Most starts find it as it is.
    if disk::read_small(&file, SETTINGS_BYTES_MAX).ok().is_none_or(|present| present != text.as_bytes()) {
        disk::replace(&file, text.as_bytes())?;
    }
    Ok(file)
}

/// What a hook may read beside the system: the folder of its plugin, or of its script. A sidecar is a program of the system.
fn shown(plugin: &Plugin, file: &str) -> Vec<PathBuf> {
    if plugin.kind != Kind::Files {
        return Vec::new();
    }
    let script = plugin.folder.join(file);
    let other = script.parent().filter(|parent| !parent.starts_with(&plugin.folder)).map(PathBuf::from);
    std::iter::once(plugin.folder.clone()).chain(other).collect()
}

/// The program, and its arguments.
fn command(path: &[PathBuf], plugin: &Plugin, file: &str) -> Result<(String, Vec<String>), Fault> {
    if let Kind::Sidecar(words) = &plugin.kind {
        let name = words.first().map_or("", |word| &**word);
        let found = if name.starts_with('/') { Some(PathBuf::from(name)) } else { find_program(path, name) };
        let found = found.filter(|file| file.is_file());
        let found = found.ok_or_else(|| Fault::LauncherNotFound(format!("{name:?} does not exist")))?;
        return Ok((found.to_string_lossy().into_owned(), Vec::new()));
    }
    let script = plugin.folder.join(file);
    // A link could lead anywhere: it leads to nothing in the sandbox, and is said here.
    let is_file = fs::symlink_metadata(&script).is_ok_and(|found| found.is_file());
    if !is_file {
        return Err(Fault::NotStarted(format!("its file {file:?} does not exist")));
    }
    let script = script.to_string_lossy().into_owned();
    let runtime = plugin.manifest.runtime;
    if runtime == Runtime::Native {
        return Ok((script, Vec::new()));
    }
    let found = launcher(path, runtime)?;
    let arguments = runtime.arguments().iter().map(|word| (*word).to_owned()).chain([script]).collect();
    Ok((found.to_string_lossy().into_owned(), arguments))
}

/// The settings of a plugin: what the operator set, else its defaults.
pub(crate) fn merged(settings: &ContextEngine, plugin: &Plugin) -> Value {
    let keys = plugin.manifest.config.iter();
    let value = |(key, setting): (&String, &super::manifest::Setting)| {
        let value = settings.value(plugin.name(), key).unwrap_or(&setting.default);
        (key.clone(), value.clone())
    };
    Value::Object(keys.map(value).filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>())
}

/// The variables of a hook beside those of every command.
fn environment(
    around: &Around,
    settings: &ContextEngine,
    plugin: &Plugin,
    who: Option<&Who>,
) -> Vec<(String, OsString)> {
    let mut all: Vec<(String, OsString)> = Vec::new();
    for (name, value) in declared(around, settings, plugin) {
        all.push((name, value.into()));
    }
    for name in &plugin.manifest.rules.allowed_secrets {
        if settings.allows(plugin.name(), name)
            && let Some(value) = around.secret(name)
        {
            all.push((format!("LIBREFANG_SECRET_{name}"), value.clone().into()));
            all.push((format!("AGENTSVC_SECRET_{name}"), value.into()));
        }
    }
    let runtime = plugin.manifest.runtime.as_str();
    let agent = who.map(|who| who.agent.clone()).unwrap_or_default();
    let message = who.map(|who| who.message.replace('\0', "")).unwrap_or_default();
    let message = message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)].to_owned();
    for (name, value) in [("AGENT_ID", &*agent), ("MESSAGE", &message), ("RUNTIME", runtime)] {
        all.push((format!("LIBREFANG_{name}"), value.into()));
        all.push((format!("AGENTSVC_{name}"), value.into()));
    }
    let dependencies = plugin.home.join(DEPENDENCIES);
    for (name, value) in of_runtime(plugin.manifest.runtime, &dependencies) {
        all.push((name.to_owned(), value.into()));
    }
    all
}

/// What the runtime needs to find what was installed for the plugin, and to keep its caches in the private home.
pub(super) fn of_runtime(runtime: Runtime, dependencies: &std::path::Path) -> Vec<(&'static str, PathBuf)> {
    match runtime {
        Runtime::Python => vec![("PYTHONPATH", dependencies.to_owned()), ("PYTHONIOENCODING", "utf-8".into())],
        Runtime::Node | Runtime::Bun => vec![("NODE_PATH", dependencies.join("node_modules"))],
        Runtime::Deno => vec![("DENO_DIR", dependencies.to_owned())],
        Runtime::Go => vec![("GOPATH", dependencies.to_owned()), ("GOCACHE", dependencies.join("cache"))],
        Runtime::V => vec![("VMODULES", dependencies.to_owned())],
        Runtime::Ruby => vec![("GEM_PATH", dependencies.to_owned()), ("GEM_HOME", dependencies.to_owned())],
        Runtime::Php => vec![("COMPOSER_VENDOR_DIR", dependencies.join("vendor"))],
        Runtime::Lua => vec![("LUA_PATH", dependencies.join("share/lua/5.4/?.lua;;"))],
        Runtime::Native | Runtime::Bash => Vec::new(),
    }
}

/// `[env]` of the manifest, with `${NAME}` replaced. A variable that holds a secret, or looks like one, passes only where the
/// operator lets the plugin have it.
pub(crate) fn declared(around: &Around, settings: &ContextEngine, plugin: &Plugin) -> Vec<(String, String)> {
    let value = |name: &str| {
        if name == "HOME" {
            return Some(plugin.home.to_string_lossy().into_owned());
        }
        let is_allowed = settings.allows(plugin.name(), name) || !around.is_secret(name);
        if is_allowed { std::env::var(name).ok() } else { None }
    };
    let all = plugin.manifest.env.iter().filter(|(name, _)| !is_hard(name));
    all.map(|(name, text)| (name.clone(), expanded(text, &value))).collect()
}

/// Variables that change which code runs, or that the daemon sets.
fn is_hard(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let names = ["PATH", "HOME", "TMPDIR", "IFS", "ENV", "BASH_ENV", "SHELLOPTS"];
    names.contains(&&*upper) || ["LD_", "DYLD_", "AGENTSVC_", "BASH_FUNC_"].iter().any(|start| upper.starts_with(start))
}

/// `${NAME}` becomes its value, or nothing.
fn expanded(text: &str, value: &dyn Fn(&str) -> Option<String>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else { break };
        out.push_str(before);
        out.push_str(&value(name).unwrap_or_default());
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded() {
        let value = |name: &str| (name == "A").then(|| "x".to_owned());
        assert_eq!(expanded("a ${A} ${B}c ${A", &value), "a x c ${A");
        assert_eq!(expanded("plain", &value), "plain");
    }

    #[test]
    fn what_changes_the_code_that_runs_is_not_set() {
        assert!(["PATH", "ld_preload", "HOME", "AGENTSVC_X"].iter().all(|name| is_hard(name)));
        assert!(!is_hard("NOTES_DIR"));
    }

    #[test]
    fn a_missing_launcher_says_how_to_install_it() {
        let fault = launcher(&[], Runtime::Lua).unwrap_err();
        assert!(fault.to_string().starts_with("launcher not found: lua") && fault.to_string().contains("apt install"));
    }
}
