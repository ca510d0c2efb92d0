//! The security systems behind the front and whether each is in force, for `GET /api/security`. Nothing here is a
//! constant "yes": each system is asked for what it does, at the first request and again after each new configuration, or
//! says what the configuration and the machine give it.

pub mod config;
mod probes;

use std::sync::{Arc, LazyLock};

use agentsvc_api::agent::signatures::ManifestSignatures;
use agentsvc_api::security::systems::{SecuritySystems, SystemStatus};
use agentsvc_api::world::installation::{Sandbox, TriedSandbox};
use agentsvc_systems::config::taint::TaintPolicy;
use agentsvc_systems::injection::InjectionPolicy;
use agentsvc_systems::turn::loop_guard_holds;
use parking_lot::RwLock;

use self::config::Security;
use crate::agent::manifest_keys::ManifestKeys;
use crate::kernel::domain::Domain;
use crate::kernel::egress::private_places_open;
use crate::peer;
use crate::wasm;
use crate::web::config::Web;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "security",
    uses: &["agent", "tool", "web", "injection", "manifest", "prompt", "turn", "config", "session", "peer", "wasm"],
    open: |opening| {
        let config = opening.settings.get::<Security>();
        let keys = ManifestKeys::new(config.manifest_keys.clone(), config.require_signed_manifests);
        opening.provide::<dyn ManifestSignatures>(Arc::new(keys));
        Ok(())
    },
    ..Domain::EMPTY
};

/// The systems under one configuration. They are tried when they are first read: the trials fill tables that a daemon
/// that reads nothing from outside needs not.
type Found = LazyLock<Vec<SystemStatus>, Box<dyn FnOnce() -> Vec<SystemStatus> + Send>>;

/// The systems under the configuration that is in force.
pub struct Systems(RwLock<Arc<Found>>);

impl Systems {
    /// The systems under this configuration, on this machine.
    pub fn of<C: AsRef<Security> + AsRef<Web>>(config: &C, sandbox: TriedSandbox) -> Self {
        Self(RwLock::new(Self::under(config, sandbox)))
    }

    /// Has them tried again, under another configuration.
    pub fn look_again<C: AsRef<Security> + AsRef<Web>>(&self, config: &C, sandbox: TriedSandbox) {
        *self.0.write() = Self::under(config, sandbox);
    }

    fn under<C: AsRef<Security> + AsRef<Web>>(config: &C, sandbox: TriedSandbox) -> Arc<Found> {
        let (security, web): (Security, Web) =
            (AsRef::<Security>::as_ref(config).clone(), AsRef::<Web>::as_ref(config).clone());
        Arc::new(LazyLock::new(Box::new(move || Self::found(&security, &web, sandbox.get()))))
    }

    fn found(security: &Security, web: &Web, sandbox: Sandbox) -> Vec<SystemStatus> {
        vec![
            taint(security),
            injection(security),
            sandboxed(sandbox),
            paths(sandbox),
            ssrf(web),
            SystemStatus::when(
                "secret_zeroization",
                probes::secrets_are_wiped(),
                "secrets of the vault, its key, the API key and the keys known to the log are wiped from memory \
                 after use",
            ),
            SystemStatus::when(
                "capability_inheritance_validation",
                probes::children_are_bounded(),
                "a spawned agent never has more rights than its parent",
            ),
            SystemStatus::when(
                "ofp_hmac_auth",
                peer::holds(),
                "nodes must prove that they know the shared secret; the first key of each is pinned",
            ),
            SystemStatus::when(
                "wasm_dual_metering",
                wasm::metering_holds(),
                "a WASM module is stopped when its fuel is used up, and when its time is over",
            ),
            SystemStatus::when("loop_guard", loop_guard_holds(), "repeated and excessive tool calls are refused"),
            SystemStatus::when(
                "session_repair",
                probes::sessions_are_repaired(),
                "tool calls without results and results without calls are repaired in every prompt",
            ),
        ]
    }
}

impl SecuritySystems for Systems {
    fn systems(&self) -> Vec<SystemStatus> {
        let found = Arc::clone(&self.0.read());
        (**found).clone()
    }
}

fn taint(security: &Security) -> SystemStatus {
    let policy = security.taint;
    let detail = format!("[security] taint is \"{}\"", policy.as_str());
    SystemStatus::when("taint_tracking", policy != TaintPolicy::Off, detail)
}

fn injection(security: &Security) -> SystemStatus {
    let policy = security.prompt_injection;
    let detail = format!("[security] prompt_injection is \"{}\"", policy.as_str());
    let is_active = policy != InjectionPolicy::Off && probes::injections_are_found();
    SystemStatus::when("prompt_injection_scanning", is_active, detail)
}

/// What keeps commands from the memory that nothing counts.
const LOW_MEMORY: &str = "if the machine has almost no memory left, the daemon ends the largest command";

fn sandboxed(sandbox: Sandbox) -> SystemStatus {
    let name = "subprocess_sandbox";
    let Sandbox { landlock_abi, namespaces, seccomp, memory, processes, commands, .. } = sandbox;
    if commands == "deny" {
        return SystemStatus::when(name, true, "commands are disabled: [exec_policy] mode is \"deny\"");
    }
    let Some(abi) = landlock_abi else {
        let detail = format!("this kernel has no Landlock: commands ({commands}) read what the daemon may read");
        return SystemStatus::when(name, false, detail);
    };
    let gap = |stands: Option<bool>, gap: &'static str| if stands == Some(false) { gap } else { "" };
    let gaps = [
        gap(namespaces, "; no namespaces: a command sees other processes and names of files, and may change modes"),
        gap(seccomp, "; no seccomp filters: a command may use protocols beside TCP, shared memory and keyrings"),
    ];
    let bounded = [("memory", memory), ("processes", processes)].map(|(what, bound)| match bound {
        None => String::new(),
        Some(bound @ "sampling") if what == "memory" => {
            format!("; {what} bounded by {bound}, without buffers of sockets and pipes: {LOW_MEMORY}")
        }
        Some("none") => format!("; {what} of a command not bounded as a whole"),
        Some(bound) => format!("; {what} bounded by {bound}"),
    });
    let (gaps, bounded) = (gaps.concat(), bounded.concat());
    let detail = format!("Landlock version {abi}, limits and a supervisor{gaps}{bounded}; commands: {commands}");
    SystemStatus::when(name, true, detail)
}

fn paths(sandbox: Sandbox) -> SystemStatus {
    let detail = format!("workspace paths are resolved beneath their root with {}", sandbox.files);
    SystemStatus::when("path_traversal_prevention", probes::paths_stay_beneath(), detail)
}

fn ssrf(web: &Web) -> SystemStatus {
    let (tried, open) = private_places_open(&web.settings().allowed);
    let detail = match open.as_slice() {
        [] => "private, local and metadata addresses are refused at every redirect".to_owned(),
        open => format!("refused at every redirect, except hosts in ssrf_allowed_hosts, such as {}", open.join(", ")),
    };
    SystemStatus::when("ssrf_protection", open.len() < tried, detail)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use agentsvc_api::security::systems::Status;

    use super::*;
    use crate::kernel::config::{Document, table};

    table! {
        /// The tables that are looked at.
        struct Tables {
            /// What is done with content from outside.
            security: Security => table(),
            /// What may be reached.
            web: Web => table(),
        }
    }

    impl Document for Tables {
        const RESERVED: &'static [&'static str] = &[];
    }

    const SANDBOX: Sandbox = Sandbox {
        files: "openat2",
        landlock_abi: Some(4),
        namespaces: Some(true),
        seccomp: Some(true),
        memory: Some("cgroup"),
        processes: Some("cgroup"),
        commands: "full",
    };

    fn tried(found: Sandbox) -> TriedSandbox {
        TriedSandbox::new(move || found)
    }

    fn status(text: &str, sandbox: Sandbox, name: &str) -> Status {
        let config = Tables::parse(text, Path::new("c")).unwrap().config;
        let systems = Systems::of(&config, tried(sandbox)).systems();
        systems.into_iter().find(|system| system.name == name).unwrap().status
    }

    #[test]
    fn by_default_all_of_them_are_in_force() {
        let systems = Systems::of(&Tables::default(), tried(SANDBOX)).systems();
        assert_eq!(systems.len(), 11);
        assert!(systems.iter().all(|system| system.status == Status::Active), "{systems:?}");
    }

    #[test]
    fn another_configuration_is_looked_at_anew() {
        let systems = Systems::of(&Tables::default(), tried(SANDBOX));
        let config = Tables::parse("[security]\ntaint = \"off\"\n", Path::new("c")).unwrap().config;
        systems.look_again(&config, tried(SANDBOX));
        let taint = systems.systems().into_iter().find(|system| system.name == "taint_tracking").unwrap();
        assert_eq!(taint.status, Status::Inactive);
    }

    #[test]
    fn what_is_off_is_not_in_force() {
        for (text, sandbox, name) in [
            ("[security]\ntaint = \"off\"\n", SANDBOX, "taint_tracking"),
            ("[security]\nprompt_injection = \"off\"\n", SANDBOX, "prompt_injection_scanning"),
            ("", Sandbox { landlock_abi: None, ..SANDBOX }, "subprocess_sandbox"),
            (
                "[web.fetch]\nssrf_allowed_hosts = [\"0.0.0.0/0\", \"::/0\", \"localhost\"]\n",
                SANDBOX,
                "ssrf_protection",
            ),
        ] {
            assert_eq!(status("", SANDBOX, name), Status::Active, "{name}");
            assert_eq!(status(text, sandbox, name), Status::Inactive, "{name}");
        }
        let denied = Sandbox { landlock_abi: None, commands: "deny", ..SANDBOX };
        assert_eq!(status("", denied, "subprocess_sandbox"), Status::Active);
        let detail = |memory| {
            let systems = Systems::of(&Tables::default(), tried(Sandbox { memory: Some(memory), ..SANDBOX })).systems();
            systems.into_iter().find(|system| system.name == "subprocess_sandbox").unwrap().detail
        };
        assert!(detail("sampling").contains("memory bounded by sampling, without buffers of sockets"));
        assert!(detail("cgroup").contains("memory bounded by cgroup; "), "{}", detail("cgroup"));
        let some = "[web.fetch]\nssrf_allowed_hosts = [\"10.0.0.0/8\"]\n";
        assert_eq!(status(some, SANDBOX, "ssrf_protection"), Status::Active);
    }
}
