//! The doctor: looks at a home and its surroundings and says what is wrong, and what mends it (spec 2, Limits).
//!
//! One file per kind of check, one line in [`CHECKS`]. A check changes nothing that the daemon would not change at its
//! own start, and says what it could not look at.

mod audit;
pub(crate) mod cli;
mod configuration;
#[cfg(test)]
mod corruption;
mod home;
mod machine;
mod mend;
mod network;
mod repair;
mod store;

pub use repair::{Repair, repair};
use serde::Serialize;

use crate::config::{self, Config, Document as _, Loaded};
use crate::kernel::cli::{Example, Group, Resource, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::home::{Address, Home, Lock};

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "doctor",
    uses: &[
        "audit", "backup", "browser", "config", "model", "people", "provider", "agent", "manifest", "schedule",
        "session", "sign_in", "trigger", "turn", "upload",
    ],
    commands: &[
        Subcommand::new::<cli::Doctor>(
            14,
            "doctor",
            "Find problems with the home, the machine and the providers, and suggest fixes",
        )
        .examples(&[
            Example::new("doctor", "Check everything; the exit code is 1 if a check fails"),
            Example::new("doctor --offline", "Without the network"),
            Example::new("doctor --repair", "Repair the store of a daemon that does not start"),
        ])
        .under(Group::Daemon),
        Subcommand::group::<audit::Audit>(21, "audit", "Show, verify and accept the audit log")
            .with(&[Resource::at("/api/audit").listed_at("/api/audit/recent").columns(&[
                ("TIME", "/timestamp"),
                ("EVENT", "/event_type"),
                ("AGENT", "/agent"),
                ("ACTOR", "/actor"),
                ("DETAILS", "/details"),
            ])])
            .examples(&[
                Example::new("audit list --event-type tool_called", "List the newest calls of tools"),
                Example::new("audit verify", "Check that the log was not changed"),
            ])
            .under(Group::Operations),
    ],
    ..Domain::EMPTY
};

agentsvc_components::enum_words! {
    /// What a check found.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Status [as_str] {
        /// It is as it should be.
        Pass = "pass",
        /// It works, but not well, or could not be looked at.
        Warn = "warn",
        /// The daemon does not work with this.
        Fail = "fail",
    }
}

/// What one check says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How it is.
    pub status: Status,
    /// What was found, in a sentence; holds no secrets.
    pub message: String,
    /// What mends it, in words; nothing when there is nothing to mend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    fn pass(message: impl Into<String>) -> Self {
        Self { status: Status::Pass, message: message.into(), fix: None }
    }

    fn warn(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: Status::Warn, message: message.into(), fix: Some(fix.into()) }
    }

    fn fail(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: Status::Fail, message: message.into(), fix: Some(fix.into()) }
    }
}

/// A finding and the check that made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// The check's name, stable for programs.
    pub name: &'static str,
    /// What it says.
    #[serde(flatten)]
    pub finding: Finding,
}

/// What the doctor says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The worst of the checks.
    pub status: Status,
    /// The release that looked.
    pub version: &'static str,
    /// The home that was looked at.
    pub home: String,
    /// A daemon has the home.
    pub running: bool,
    /// Every check, in the order in which they were made.
    pub checks: Vec<Checked>,
}

/// What is looked at, and how.
#[derive(Debug)]
pub struct Options {
    /// Nothing outside this machine is asked.
    pub offline: bool,
}

/// The home under examination.
struct Patient {
    home: Home,
    /// Its configuration, or why there is none.
    config: Result<Loaded, config::Error>,
    keeper: StoreOwner,
    options: Options,
}

/// Who has the home.
enum StoreOwner {
    /// This process, so that no daemon starts meanwhile; what is not there yet is not locked.
    Doctor(Option<Lock>),
    /// A daemon, where it says that it listens.
    Daemon(Option<Address>),
    /// The lock cannot be used.
    Unknown(String),
}

impl Patient {
    /// The configuration in force, or the default where it is broken.
    fn config(&self) -> Config {
        self.config.as_ref().map(|loaded| loaded.config.clone()).unwrap_or_default()
    }

    const fn is_running(&self) -> bool {
        matches!(self.keeper, StoreOwner::Daemon(_))
    }
}

/// A check: its name and how it is made.
type Check = (&'static str, fn(&Patient) -> Finding);

/// Every check, in the order in which one follows from the other.
const CHECKS: &[Check] = &[
    ("config", configuration::parses),
    ("config_mode", configuration::is_private),
    ("vault_key", configuration::vault_key),
    ("api_key", configuration::api_key),
    ("home", home::is_usable),
    ("restore", home::no_restore_is_cut_off),
    ("vault", home::vault_opens),
    ("listen", network::listen),
    ("provider_key", network::provider_key),
    ("model", network::model),
    ("disk_space", machine::disk_space),
    ("fsync", machine::fsync),
    ("clock", machine::clock),
    ("open_files", machine::open_files),
    ("sandbox", machine::sandbox),
    ("browser", machine::browser),
    ("uploads", home::uploads_are_whole),
    ("workspaces", home::workspaces_have_owners),
    ("store", store::reads),
    ("audit", store::audit),
];

/// Looks at `home`. Takes as long as its store is large; asks the network unless it may not.
pub fn examine(home: Home, options: Options) -> Report {
    let config = Config::load(&home.config_file());
    let keeper = keeper(&home);
    let patient = Patient { home, config, keeper, options };
    let made = CHECKS.iter().map(|(name, check)| Checked { name, finding: check(&patient) });
    let checks: Vec<Checked> = made.collect();
    let status = checks.iter().map(|checked| checked.finding.status).max().unwrap_or(Status::Pass);
    let home = patient.home.root().display().to_string();
    Report { status, version: env!("CARGO_PKG_VERSION"), home, running: patient.is_running(), checks }
}

/// What keeps the daemon from starting although its store is intact, and what mends it.
fn left_to_mend(home: &Home) -> Option<String> {
    store::audit_key_fault(home).map(|(fault, fix)| format!("{fault}; {fix}"))
}

fn keeper(home: &Home) -> StoreOwner {
    if !home.root().is_dir() {
        return StoreOwner::Doctor(None);
    }
    match home.lock() {
        Ok(lock) => StoreOwner::Doctor(Some(lock)),
        Err(crate::kernel::home::Error::Taken { .. }) => StoreOwner::Daemon(home.address()),
        Err(error) => StoreOwner::Unknown(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn examined(prepare: impl FnOnce(&Home)) -> Report {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().join("home"));
        home.create(None).unwrap();
        prepare(&home);
        examine(home, Options { offline: true })
    }

    fn of<'a>(report: &'a Report, name: &str) -> &'a Finding {
        &report.checks.iter().find(|checked| checked.name == name).unwrap().finding
    }

    /// A configuration that listens at a port which is free.
    fn configured(home: &Home, more: &str) {
        fs::write(home.config_file(), format!("api_listen = \"127.0.0.1:0\"\n{more}")).unwrap();
        fs::set_permissions(home.config_file(), fs::Permissions::from_mode(0o600)).unwrap();
    }

    #[test]
    fn names_are_unique_and_what_is_wrong_has_a_fix() {
        let names: BTreeSet<_> = CHECKS.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), CHECKS.len());
        let report = examined(|home| configured(home, ""));
        for Checked { name, finding } in &report.checks {
            assert_eq!(finding.fix.is_some(), finding.status != Status::Pass, "{name}: {finding:?}");
        }
    }

    #[test]
    fn a_fresh_home_fails_nothing() {
        let report = examined(|home| configured(home, ""));
        assert!(report.status < Status::Fail, "{report:#?}");
        // Not the disk: it may be slow, and is warned about then.
        for name in ["config", "config_mode", "vault_key", "api_key", "home", "vault", "listen", "store"] {
            assert_eq!(of(&report, name).status, Status::Pass, "{name}: {:?}", of(&report, name));
        }
        assert!(!report.running);
    }

    #[test]
    fn a_home_that_is_not_there_is_told_and_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().join("none"));
        let report = examine(home.clone(), Options { offline: true });
        assert_eq!(of(&report, "home").status, Status::Warn);
        assert!(!home.root().exists());
    }

    #[test]
    fn every_problem_of_the_configuration_is_told() {
        let report = examined(|home| configured(home, "log_levle = \"info\"\n[world]\ntick_hz = 0\n"));
        let found = of(&report, "config");
        assert_eq!((report.status, found.status), (Status::Fail, Status::Fail));
        for part in ["2:1: log_levle: unknown key", "4:11: world.tick_hz: must be 1 to 1000"] {
            assert!(found.message.contains(part), "{part}: {}", found.message);
        }
    }

    #[test]
    fn a_workspace_without_a_known_owner_is_told() {
        let report = examined(|home| {
            configured(home, "");
            let owners = home.workspaces_dir().join(".owners");
            fs::create_dir_all(&owners).unwrap();
            fs::write(owners.join("scout"), "\0").unwrap();
            fs::write(owners.join("fine"), agentsvc_components::AgentId(uuid::Uuid::nil()).to_string()).unwrap();
        });
        let found = of(&report, "workspaces");
        assert!(found.status == Status::Warn && found.message.ends_with(": scout"), "{found:?}");
        assert!(found.fix.as_ref().unwrap().contains("workspaces/.owners/<name>"), "{found:?}");
    }

    #[test]
    fn a_configuration_that_is_no_file_is_told_at_once() {
        let report = examined(|home| {
            let _written = fs::remove_file(home.config_file());
            rustix::fs::mknodat(
                rustix::fs::CWD,
                home.config_file(),
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RUSR,
                0,
            )
            .unwrap();
        });
        let found = of(&report, "config");
        assert!(found.status == Status::Fail && found.message.contains("not a regular file"), "{found:?}");
    }

    #[test]
    fn what_others_may_read_is_told() {
        let report = examined(|home| {
            configured(home, "api_key = \"hunter2hunter2\"\n");
            fs::set_permissions(home.config_file(), fs::Permissions::from_mode(0o644)).unwrap();
            fs::set_permissions(home.root(), fs::Permissions::from_mode(0o755)).unwrap();
        });
        assert_eq!(of(&report, "config_mode").status, Status::Warn);
        assert_eq!(of(&report, "home").status, Status::Warn);
        assert!(!serde_json::to_string(&report).unwrap().contains("hunter2"));
    }

    #[test]
    fn a_port_in_use_is_told() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = taken.local_addr().unwrap();
        let report = examined(|home| fs::write(home.config_file(), format!("api_listen = \"{listen}\"\n")).unwrap());
        let found = of(&report, "listen");
        assert_eq!(found.status, Status::Fail);
        assert!(found.message.contains(&listen.to_string()), "{}", found.message);
    }

    #[test]
    fn a_damaged_store_is_told() {
        let report = examined(|home| {
            configured(home, "");
            let world = home.world_dir(None);
            drop(crate::kernel::store::Store::open(&world).unwrap());
            for file in fs::read_dir(&world).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
                fs::write(file, b"not what it was").unwrap();
            }
        });
        assert_eq!(of(&report, "store").status, Status::Fail, "{:?}", of(&report, "store"));
    }

    #[test]
    fn a_home_that_a_daemon_has_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        home.create(None).unwrap();
        configured(&home, "");
        let _daemon = home.lock().unwrap();
        let report = examine(home, Options { offline: true });
        assert!(report.running);
        assert_eq!(of(&report, "listen").status, Status::Fail, "does not respond");
    }
}
