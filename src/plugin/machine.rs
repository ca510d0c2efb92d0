//! What of this machine plugins need: launchers, programs, and dependencies that are installed into their private homes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::plugin::plugins::{Dependencies, PluginDoctor, PluginProbe, RuntimeProbe};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use super::engine::Around;
use super::plugin::Plugin;
use super::program::{DEPENDENCIES, launcher, made_in, of_runtime};
use super::runtime::Runtime;
use crate::kernel::sandbox::config::ExecPolicy;
use crate::kernel::sandbox::{Server, ServerProgram};
use crate::skill::find_program;

/// How long a launcher may take to say its version.
const VERSION_TIME_MAX: Duration = Duration::from_secs(5);
/// How long an installation may take.
const INSTALL_TIME_MAX: Duration = Duration::from_secs(600);
/// Bytes of the output of a program that are kept, from its end.
const OUTPUT_BYTES_MAX: usize = 16 << 10;

/// Asks all launchers, and says of each plugin whether it can run.
pub(super) async fn doctor(around: &Around, plugins: &[std::sync::Arc<Plugin>], scratch: &Path) -> PluginDoctor {
    let path = around.settings.get::<ExecPolicy>().path.clone();
    let mut runtimes = Vec::new();
    for runtime in Runtime::ALL {
        runtimes.push(probe(around, &path, runtime, scratch).await);
    }
    let plugins = plugins.iter().map(|plugin| {
        let runtime = plugin.manifest.runtime;
        let runtime_available = is_available(&path, runtime);
        let missing = plugin.manifest.needed.iter().filter(|needed| find_program(&path, &needed.binary).is_none());
        let missing = missing.map(|needed| format!("{}: {}", needed.binary, needed.install_hint)).collect();
        PluginProbe {
            name: plugin.name().to_owned(),
            runtime: runtime.as_str(),
            runtime_available,
            hooks_valid: plugin.are_hooks_valid(),
            missing,
            install_hint: if runtime_available { String::new() } else { runtime.install_hint().to_owned() },
        }
    });
    PluginDoctor { runtimes, plugins: plugins.collect() }
}

/// Can hooks of the runtime run?
pub(super) fn is_available(path: &[PathBuf], runtime: Runtime) -> bool {
    runtime == Runtime::Native || launcher(path, runtime).is_ok()
}

async fn probe(around: &Around, path: &[PathBuf], runtime: Runtime, scratch: &Path) -> RuntimeProbe {
    let found = launcher(path, runtime).ok();
    let version = match &found {
        Some(file) => {
            let arguments = runtime.version_arguments().iter().map(|word| (*word).to_owned()).collect();
            let asked = run(around, file, arguments, (scratch, Vec::new(), Vec::new()), false);
            let said = timeout(VERSION_TIME_MAX, asked).await.ok().and_then(Result::ok).filter(|(ok, _)| *ok);
            said.and_then(|(_, text)| text.lines().next().map(|line| line.chars().take(100).collect()))
        }
        None => None,
    };
    let name = runtime.launchers().first().copied().unwrap_or_default();
    RuntimeProbe {
        runtime: runtime.as_str(),
        launcher: found.as_ref().map_or_else(|| name.to_owned(), |file| file.display().to_string()),
        available: is_available(path, runtime),
        version: version.filter(|text: &String| !text.is_empty()),
        install_hint: runtime.install_hint(),
    }
}

/// Runs a program in the sandbox; gives whether it ended well, and the end of what it wrote.
async fn run(
    around: &Around,
    file: &Path,
    arguments: Vec<String>,
    (directory, shown, environment): (&Path, Vec<PathBuf>, Vec<(String, OsString)>),
    network: bool,
) -> Result<(bool, String), String> {
    let program = ServerProgram {
        command: file.display().to_string(),
        arguments,
        directory: directory.to_owned(),
        environment,
        readable: Vec::new(),
        writable: Vec::new(),
        shown,
        memory_bytes: None,
        network,
    };
    let Server { stream, mut stderr, mut process } = around.commands.serve(program).await?;
    let (mut output, input) = stream.into_inner();
    drop(input);
    let (out, err, ended) = tokio::join!(tail(&mut output), tail(&mut stderr), process.ended());
    Ok((ended == "exit code 0", [out.trim(), err.trim()].join("\n").trim().to_owned()))
}

/// The end of what a program writes.
async fn tail(from: &mut (impl AsyncRead + Unpin)) -> String {
    let (mut kept, mut piece) = (Vec::new(), vec![0; 4 << 10]);
    while let Ok(count) = from.read(&mut piece).await {
        if count == 0 {
            break;
        }
        kept.extend_from_slice(&piece[..count]);
        let more = kept.len().saturating_sub(OUTPUT_BYTES_MAX);
        kept.drain(..more);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// Installs what the manifest requires into the private home of the plugin, with the package manager of its runtime.
pub(super) async fn install(around: &Around, plugin: &Arc<Plugin>) -> Dependencies {
    let failed = |output: String| Dependencies { success: false, output };
    let target = plugin.home.join(DEPENDENCIES);
    let file = plugin.manifest.requirements.as_ref().map(|file| plugin.folder.join(file));
    let Some((program, arguments)) = installer(plugin.manifest.runtime, &plugin.folder, file.as_deref(), &target)
    else {
        return Dependencies { success: true, output: "The plugin has no dependencies to install.".to_owned() };
    };
    let path = around.settings.get::<ExecPolicy>().path.clone();
    let Some(found) = find_program(&path, program) else {
        let hint = plugin.manifest.runtime.install_hint();
        return failed(format!("{program} is not installed. {hint}"));
    };
    let made = tokio::task::spawn_blocking({
        let plugin = Arc::clone(plugin);
        move || made_in(&plugin, DEPENDENCIES)
    });
    if !matches!(made.await, Ok(Ok(_))) {
        return failed("The private home of the plugin cannot be written.".to_owned());
    }
    let environment = of_runtime(plugin.manifest.runtime, &target);
    let environment = environment.into_iter().map(|(name, value)| (name.to_owned(), value.into_os_string())).collect();
    let place = (plugin.home.as_path(), vec![plugin.folder.clone()], environment);
    match timeout(INSTALL_TIME_MAX, run(around, &found, arguments, place, true)).await {
        Err(_) => {
            failed(format!("The installation took longer than {} s and was stopped.", INSTALL_TIME_MAX.as_secs()))
        }
        Ok(Err(why)) => failed(why),
        Ok(Ok((success, output))) => Dependencies { success, output },
    }
}

/// The program that installs dependencies, and its arguments; `None` where there is nothing to install.
fn installer(
    runtime: Runtime,
    folder: &Path,
    requirements: Option<&Path>,
    target: &Path,
) -> Option<(&'static str, Vec<String>)> {
    let text = |path: &Path| path.display().to_string();
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let file = |name: &str| Some(folder.join(name)).filter(|path| path.is_file());
    match runtime {
        Runtime::Python => {
            let list = requirements.map(Path::to_owned).or_else(|| file("requirements.txt"))?;
            let mut all = words(&["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--upgrade"]);
            all.extend(["--target".to_owned(), text(target), "-r".to_owned(), text(&list)]);
            Some(("python3", all))
        }
        Runtime::Node | Runtime::Bun => {
            file("package.json")?;
            let mut all =
                words(&["install", "--no-audit", "--no-fund", "--ignore-scripts", "--install-links", "--prefix"]);
            all.extend([text(target), text(folder)]);
            Some(("npm", all))
        }
        Runtime::Ruby => {
            let list = file("Gemfile")?;
            Some(("bundle", vec!["install".to_owned(), "--gemfile".to_owned(), text(&list)]))
        }
        Runtime::Go => {
            file("go.mod").map(|_| ("go", vec!["-C".to_owned(), text(folder), "mod".to_owned(), "download".to_owned()]))
        }
        Runtime::Php => file("composer.json").map(|_| {
            (
                "composer",
                vec!["install".to_owned(), "--no-interaction".to_owned(), format!("--working-dir={}", text(folder))],
            )
        }),
        Runtime::Native | Runtime::V | Runtime::Deno | Runtime::Bash | Runtime::Lua => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_go_into_the_private_home() {
        let dir = tempfile::tempdir().unwrap();
        let target = Path::new("/home/.plugin/dependencies");
        assert!(installer(Runtime::Python, dir.path(), None, target).is_none());
        std::fs::write(dir.path().join("requirements.txt"), "x\n").unwrap();
        let (program, words) = installer(Runtime::Python, dir.path(), None, target).unwrap();
        let all = words.join(" ");
        assert!(program == "python3" && all.contains("--target /home/.plugin/dependencies -r "), "{all}");
        assert!(installer(Runtime::Node, dir.path(), None, target).is_none());
        std::fs::write(dir.path().join("package.json"), "{}").unwrap();
        let (_, words) = installer(Runtime::Node, dir.path(), None, target).unwrap();
        assert!(words.contains(&"--ignore-scripts".to_owned()));
        assert!(Runtime::ALL.iter().filter(|one| installer(**one, dir.path(), None, target).is_some()).count() == 3);
    }
}
