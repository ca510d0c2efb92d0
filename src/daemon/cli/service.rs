//! `service`: a unit of the user's systemd, which starts the daemon at boot and after a failure.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::{Error, Run};

/// The unit's name.
const UNIT: &str = "agentsvc.service";

/// How often a daemon that starts is asked whether it answers.
const POLL: Duration = Duration::from_millis(100);
/// How many times.
const ANSWERS_TRIES: usize = 100;

/// Options of `service`.
#[derive(Debug, Args)]
pub(crate) struct Service {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Install the daemon as a systemd user service, and start it now and at boot
    Install {
        /// Print the unit and install nothing
        #[arg(long)]
        print: bool,
    },
    /// Stop and remove the service; the home is kept
    Uninstall,
}

impl Run for Service {
    fn run(self, context: &Context) -> Result<(), Error> {
        match self.what {
            What::Install { print } => install(context, print),
            What::Uninstall => uninstall(),
        }
    }
}

fn install(context: &Context, print: bool) -> Result<(), Error> {
    let program = std::env::current_exe().map_err(Error::io("cannot tell where this program is"))?;
    let home = std::path::absolute(context.home()?.root()).map_err(Error::io("cannot tell where the home is"))?;
    let unit = unit(&program, &home)?;
    if print {
        return output::text(&unit);
    }
    let path = unit_file()?;
    // Asked before anything is written: without a systemd of the user, nothing is left behind.
    systemctl(&["daemon-reload"]).map_err(|error| {
        let instead = "nothing was installed. To run the daemon in the background, use `agentsvc start --detach`";
        Error::Failed(format!("{error}; {instead}"))
    })?;
    let directory = path.parent().unwrap_or(&path);
    fs::create_dir_all(directory).map_err(Error::io(format!("cannot make {}", directory.display())))?;
    fs::write(&path, unit).map_err(Error::io(format!("cannot write {}", path.display())))?;
    systemctl(&["daemon-reload"])?;
    systemctl(&["enable", UNIT])?;
    systemctl(&["restart", UNIT])?;
    output::line(&format!("installed {}", path.display()))?;
    if !answers(context) {
        return Err(Error::Failed(format!("the daemon does not answer; see: systemctl --user status {UNIT}")));
    }
    output::line("the daemon is running")?;
    output::note("It stops when you log out. To keep it running: loginctl enable-linger");
    Ok(())
}

/// Does the daemon answer, within the time that a start takes?
fn answers(context: &Context) -> bool {
    for _ in 0..ANSWERS_TRIES {
        if let Ok(client) = context.client()
            && context.block_on(client.get("/api/health", &[])).is_ok()
        {
            return true;
        }
        thread::sleep(POLL);
    }
    false
}

fn uninstall() -> Result<(), Error> {
    let path = unit_file()?;
    if !path.exists() {
        return Err(Error::NotFound(format!("no service is installed: {} does not exist", path.display())));
    }
    systemctl(&["disable", "--now", UNIT])?;
    fs::remove_file(&path).map_err(Error::io(format!("cannot remove {}", path.display())))?;
    systemctl(&["daemon-reload"])?;
    output::line(&format!("removed {}; the home is unchanged", path.display()))
}

/// Where the user's systemd looks for units.
fn unit_file() -> Result<PathBuf, Error> {
    let given = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = given("XDG_CONFIG_HOME").or_else(|| given("HOME").map(|home| home.join(".config")));
    let config = config.ok_or_else(|| Error::Failed("HOME is not set".to_owned()))?;
    Ok(config.join("systemd/user").join(UNIT))
}

/// The unit that starts `program` with `home`.
fn unit(program: &Path, home: &Path) -> Result<String, Error> {
    let (program, home) = (quoted("", program)?, quoted("AGENTSVC_HOME=", home)?);
    Ok(format!(
        "[Unit]\n\
         Description=agentsvc: hosts AI agents\n\
         StartLimitIntervalSec=300\n\
         StartLimitBurst=5\n\
         \n\
         [Service]\n\
         Type=exec\n\
         Environment={home}\n\
         ExecStart={program} start\n\
         Restart=on-failure\n\
         RestartSec=2\n\
         KillMode=mixed\n\
         TimeoutStopSec=30\n\
         LimitNOFILE=65536\n\
         Delegate=yes\n\
         NoNewPrivileges=yes\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n"
    ))
}

/// `before` and a path as one word of a unit.
fn quoted(before: &str, path: &Path) -> Result<String, Error> {
    let refused = || Error::Failed(format!("a unit of systemd cannot name the path {path:?}"));
    let path = path.to_str().filter(|path| !path.contains(char::is_control)).ok_or_else(refused)?;
    let path = path.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    Ok(format!("\"{before}{path}\""))
}

/// Asks the user's systemd.
fn systemctl(words: &[&str]) -> Result<(), Error> {
    let asked = Command::new("systemctl").arg("--user").args(words).output();
    let answer = match asked {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Error::Failed("systemctl was not found".to_owned()));
        }
        answer => answer.map_err(Error::io("cannot run systemctl"))?,
    };
    if answer.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&answer.stderr);
    Err(Error::Failed(format!("systemctl --user {}: {}", words.join(" "), output::clean(said.trim()))))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::unit;

    #[test]
    fn paths_are_words_of_the_unit() {
        let unit = unit(Path::new("/opt/my \"tools\"/agentsvc"), Path::new("/home/a/100%$x")).unwrap();
        assert!(unit.contains("\nExecStart=\"/opt/my \\\"tools\\\"/agentsvc\" start\n"), "{unit}");
        assert!(unit.contains("\nEnvironment=\"AGENTSVC_HOME=/home/a/100%%$x\"\n"), "{unit}");
        assert!(super::unit(Path::new("/a\nExecStartPre=x"), Path::new("/h")).is_err());
    }
}
