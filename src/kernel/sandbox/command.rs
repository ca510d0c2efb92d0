//! Running one command for an agent: what it may use, how long, and what is kept of its output.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::limit::{SHELLS_FAMILY_MAX, SHELLS_MAX};
use arc_swap::ArcSwap;
use parking_lot::RwLock;
use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::bounds::{available, cgroup, watches};
use super::clip::Clip;
use super::config::{ExecPolicy, TIMEOUT_SECS_MAX};
use super::fullness::{Full, is_disk_full};
use super::program::{self, Asked, Plan, plan};
use super::quota::CommandWorkspace;
use super::report::parts;
use super::sandbox_spec::{Limits, SandboxSpec};
use super::{landlock, launcher};
use agentsvc_api::http::places::{Place, Places};

/// The directory in a workspace that commands keep their temporary files in.
pub(super) const TEMPORARY: &str = ".tmp";
/// How long the processes of a command may take to be gone after they were killed.
pub(super) const END_TIME_MAX: Duration = Duration::from_secs(12);

/// What programs need of the system to run at all.
const SYSTEM: &str = "/usr/lib /usr/lib32 /usr/lib64 /usr/libexec /usr/share /usr/include /usr/local/lib \
    /usr/local/share /usr/local/include /lib /lib32 /lib64 /proc /sys/devices/system/cpu \
    /etc/alternatives /etc/ca-certificates /etc/gai.conf /etc/group /etc/host.conf /etc/hosts \
    /etc/ld.so.cache /etc/ld.so.conf /etc/ld.so.conf.d /etc/locale.alias /etc/localtime \
    /etc/mime.types /etc/nsswitch.conf /etc/os-release /etc/passwd /etc/pki/tls/certs /etc/protocols \
    /etc/resolv.conf /etc/services /etc/ssl/certs /etc/ssl/openssl.cnf /etc/terminfo /etc/timezone";
/// What agents that may run everything read beside that.
const SYSTEM_FULL: &[&str] = &["/usr", "/bin", "/sbin", "/opt"];

/// Runs commands. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Commands {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) rules: ArcSwap<Rules>,
    /// Files and directories of the daemon that no command reads.
    hidden: RwLock<Vec<PathBuf>>,
    /// The binary that cages commands.
    launcher: PathBuf,
    /// Whether commands get namespaces of their own; tried with the first command.
    namespaces: OnceLock<bool>,
    /// Whether the kernel can keep a port from commands.
    closes_ports: OnceLock<bool>,
    /// The port of the API while it has no key: no command reaches it. 0 while it has one.
    open_port: AtomicU16,
    /// The servers that keep the journal of a cluster: no command reaches them.
    servers: OnceLock<Servers>,
    places: Places,
}

/// Servers that no command reaches.
#[derive(Debug)]
struct Servers {
    ports: Vec<u16>,
    /// They take anyone: what nothing keeps from them does not run.
    are_open: bool,
}

/// What the operator sets; a command that is under way ends under the rules it began with.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) policy: ExecPolicy,
    /// Variables that no command gets.
    secrets: Vec<Box<str>>,
}

/// One command.
#[derive(Debug)]
pub struct Request {
    /// Where it runs; had before anything else of the request was decided.
    pub place: Place,
    /// The program.
    pub asked: Asked,
    /// Where it begins, and what it may change.
    pub workspace: CommandWorkspace,
    /// Directories that it may read and run beside the system's, also in the home.
    pub shown: Vec<PathBuf>,
    /// The manifest's patterns of programs (`[capabilities] shell`).
    pub granted: Vec<Box<str>>,
    /// May it use TCP? Kept by kernels whose Landlock has such rules.
    pub network: bool,
    /// Variables that it must not get beside those of every command: the keys of the agent's own models.
    pub secrets: Vec<Box<str>>,
    /// Further variables that it gets, with their values.
    pub variables: Vec<(String, OsString)>,
    /// Seconds it may take, 1 to 600; `None` is the configuration's.
    pub timeout_secs: Option<u64>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Its exit code, 128 and the signal's number when a signal ended it; `None` when it was stopped.
    pub code: Option<i32>,
    /// What was full, when it was stopped for that and not because it took too long.
    pub full: Option<Full>,
    /// Seconds it was allowed to take.
    pub timeout_secs: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// Its output, the middle cut out when there was much.
    pub stdout: String,
    /// Its error output, likewise.
    pub stderr: String,
}

/// Why a command with the network does not run where nothing keeps it from an open API.
const OPEN_API: &str = "Commands with the network are refused while the API has no key, because this kernel cannot keep them from \
     it. The operator can set one with `agentsvc init --key`.";
/// The same for servers of a cluster that take anyone.
const OPEN_SERVERS: &str = "Commands with the network are refused while NATS servers of the cluster take clients without credentials \
     (`allow_open_server`), because this kernel cannot block access to those servers.";

impl Commands {
    /// Commands under `policy`. They read nothing in `hidden` but their own workspace, and never get `secrets`,
    /// variables of the daemon.
    pub fn new(policy: ExecPolicy, hidden: Vec<PathBuf>, secrets: Vec<Box<str>>) -> Self {
        Self::with_launcher(policy, hidden, secrets, PathBuf::from(launcher::SELF))
    }

    /// As [`new`](Self::new), caged by another binary than this process's own.
    pub fn with_launcher(policy: ExecPolicy, hidden: Vec<PathBuf>, secrets: Vec<Box<str>>, launcher: PathBuf) -> Self {
        let hidden = RwLock::new(hidden);
        let places = Places::new(SHELLS_MAX, SHELLS_FAMILY_MAX);
        let rules = ArcSwap::from_pointee(Rules { policy, secrets });
        let (namespaces, closes_ports, servers) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let open_port = AtomicU16::new(0);
        let shared = Shared { rules, hidden, launcher, namespaces, closes_ports, open_port, servers, places };
        Self { shared: Arc::new(shared) }
    }

    /// Hides further files and directories of the daemon from commands that begin from here on. What was hidden stays so: old
    /// backups lie where they were when they are made elsewhere.
    pub fn hide(&self, paths: Vec<PathBuf>) {
        let mut hidden = self.shared.hidden.write();
        for path in paths {
            if !hidden.contains(&path) {
                hidden.push(path);
            }
        }
    }

    /// The API is at `port`, and has no key, or has one: `None`. Commands that begin from here on do not reach an open one.
    pub fn keep_from(&self, port: Option<u16>) {
        self.shared.open_port.store(port.unwrap_or(0), Ordering::Relaxed);
    }

    /// The servers that keep the journal of a cluster are at these ports: commands that begin from here on do not reach them. Where the
    /// kernel cannot do that, commands with the network run only if the servers ask for credentials. To be called once.
    pub fn keep_from_servers(&self, ports: Vec<u16>, are_open: bool) {
        if !ports.is_empty() && self.shared.servers.set(Servers { ports, are_open }).is_err() {
            tracing::error!("it was said before which servers no command reaches");
        }
    }

    /// Puts another policy and other secret variables in force.
    pub fn set(&self, policy: ExecPolicy, secrets: Vec<Box<str>>) {
        self.shared.rules.store(Arc::new(Rules { policy, secrets }));
    }

    /// Is there a program of this name, as commands find them?
    pub fn has_program(&self, name: &str) -> bool {
        program::find(&self.shared.rules.load().policy, name).is_some()
    }

    /// Is it a variable that no command gets?
    pub fn is_secret(&self, variable: &str) -> bool {
        self.shared.rules.load().secrets.iter().any(|secret| **secret == *variable)
    }

    /// Waits for a place for a command of those who share it: they have [`SHELLS_FAMILY_MAX`] at once. What is decided about a command
    /// is decided when it has one: the wait may be long.
    ///
    /// # Errors
    /// A sentence: none; places are never closed.
    pub async fn place(&self, holder: Holder) -> Result<Place, String> {
        self.shared.places.place(holder).await.ok_or_else(|| "No commands run any more.".to_owned())
    }

    /// Runs a command. When the future is dropped, everything that the command started is killed.
    ///
    /// # Errors
    /// A sentence for the model: refused, or not startable. A command that fails by itself is no error.
    pub async fn run(&self, request: Request) -> Result<Ran, String> {
        let rules = self.shared.rules.load_full();
        let timeout_secs = request.timeout_secs.unwrap_or(rules.policy.timeout_secs);
        if !(1..=TIMEOUT_SECS_MAX).contains(&timeout_secs) {
            return Err(format!("`timeout_secs` must be 1 to {TIMEOUT_SECS_MAX}."));
        }
        let (shared, max_output_bytes) = (Arc::clone(&self.shared), rules.policy.max_output_bytes);
        if is_disk_full(request.workspace.path()) {
            return Err("The disk is full; commands are refused until there is room.".to_owned());
        }
        let prepare = tokio::task::spawn_blocking(move || {
            let plan = plan(&rules.policy, &request.granted, &request.asked)?;
            let command = shared.command(&rules, &request, plan)?;
            Ok::<_, String>((command, Arc::new(request.workspace), request.place))
        });
        let (mut command, workspace, _place) =
            prepare.await.map_err(|_| "The command could not be prepared.".to_owned())??;
        let child = command.spawn().map_err(|error| format!("The command could not be started: {error}."))?;
        let supervisor = child.id();
        let full = async {
            // Which command has them the kernel does not say: all end.
            tokio::select! {
                full = workspace.until_full(supervisor) => full,
                () = watches::OF_THIS_USER.until_used_up() => Full::Watches,
                () = available::until_used_up(supervisor) => Full::Memory,
            }
        };
        Ok(watch(child, full, timeout_secs, max_output_bytes).await)
    }
}

impl Shared {
    /// The supervised process, ready to start.
    fn command(&self, rules: &Rules, request: &Request, plan: Plan) -> Result<Command, String> {
        let workspace = request.workspace.path();
        let spec = self.sandbox_spec(&rules.policy, workspace, request.network, plan.programs);
        // One that is gone is not shown.
        let shown = request.shown.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let limits = Limits { file_bytes: spec.limits.file_bytes.min(request.workspace.bytes_max()), ..spec.limits };
        let spec = SandboxSpec { workspace_id: request.workspace.id(), alone: plan.alone, shown, limits, ..spec };
        let mut environment = rules.environment(workspace, &request.secrets);
        environment.extend(request.variables.iter().cloned());
        self.supervised(&spec, plan.words, environment)
    }

    /// A process in a sandbox, ready to start.
    pub(super) fn supervised(
        &self,
        sandbox_spec: &SandboxSpec,
        words: Vec<OsString>,
        environment: Vec<(String, OsString)>,
    ) -> Result<Command, String> {
        let closes = || landlock::probe().is_some_and(|version| version >= landlock::PORTS);
        if sandbox_spec.must_close && !*self.closes_ports.get_or_init(closes) {
            let is_api = self.open_port.load(Ordering::Relaxed) != 0;
            return Err(if is_api { OPEN_API } else { OPEN_SERVERS }.to_owned());
        }
        let sandbox_spec =
            serde_json::to_string(sandbox_spec).map_err(|error| format!("The sandbox cannot be set up: {error}."))?;
        let mut command = Command::new(&self.launcher);
        command.arg(launcher::SUPERVISE).arg(sandbox_spec).args(words);
        command.env_clear().envs(environment).current_dir("/");
        // The pipe to the supervisor is what keeps the command alive.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        Ok(command)
    }

    /// The sandbox of a program that begins in `workspace`.
    pub(super) fn sandbox_spec(
        &self,
        policy: &ExecPolicy,
        workspace: &Path,
        network: bool,
        programs: Option<Vec<PathBuf>>,
    ) -> SandboxSpec {
        let mut readable: Vec<PathBuf> = SYSTEM.split(' ').map(PathBuf::from).collect();
        readable.extend(policy.readable_paths.iter().cloned());
        if programs.is_none() {
            readable.extend(SYSTEM_FULL.iter().map(PathBuf::from).chain(policy.path.iter().cloned()));
        }
        let api = Some(self.open_port.load(Ordering::Relaxed)).filter(|port| *port != 0);
        let servers = self.servers.get();
        let closed = api.into_iter().chain(servers.iter().flat_map(|servers| servers.ports.iter().copied()));
        SandboxSpec {
            workspace: workspace.to_owned(),
            workspace_id: None,
            writable: Vec::new(),
            readable,
            shown: Vec::new(),
            programs,
            alone: false,
            hidden: self
                .hidden
                .read()
                .iter()
                .map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()))
                .collect(),
            namespaces: *self.namespaces.get_or_init(|| parts(&self.launcher).is_some_and(|parts| parts.namespaces)),
            network,
            closed_ports: if network { closed.collect() } else { Vec::new() },
            must_close: network && (api.is_some() || servers.is_some_and(|servers| servers.are_open)),
            require_landlock: policy.require_landlock,
            require_sandbox: policy.require_sandbox,
            duplex: false,
            terminal: false,
            cgroup: cgroup::place().map(Path::to_owned),
            limits: Limits {
                cpu_secs: policy.max_cpu_secs,
                memory_bytes: policy.max_memory_bytes,
                processes: policy.max_processes,
                open_files: policy.max_open_files,
                file_bytes: policy.max_file_bytes,
            },
        }
    }
}

impl Rules {
    /// The whole environment of a command.
    pub(super) fn environment(&self, workspace: &Path, own_secrets: &[Box<str>]) -> Vec<(String, OsString)> {
        let mut environment = self.own_environment(workspace);
        let secrets = || self.secrets.iter().chain(own_secrets);
        let passed = self.policy.env_passthrough.iter().filter(|name| secrets().all(|secret| secret != *name));
        environment.extend(passed.filter_map(|name| Some((name.to_string(), std::env::var_os(&**name)?))));
        environment
    }

    /// The variables that the daemon sets itself.
    pub(super) fn own_environment(&self, workspace: &Path) -> Vec<(String, OsString)> {
        let path: Vec<&str> = self.policy.path.iter().filter_map(|path| path.to_str()).collect();
        let own = |name: &str, value: &Path| (name.to_owned(), value.as_os_str().to_owned());
        vec![
            ("PATH".to_owned(), path.join(":").into()),
            own("HOME", workspace),
            own("TMPDIR", &workspace.join(TEMPORARY)),
            ("LANG".to_owned(), "C.UTF-8".into()),
            ("TERM".to_owned(), "dumb".into()),
        ]
    }
}

/// Waits for the end of a supervised command and keeps what it says.
async fn watch(
    mut child: Child,
    until_full: impl Future<Output = Full>,
    timeout_secs: u64,
    output_bytes_max: usize,
) -> Ran {
    let begun = Instant::now();
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    // Dropped with this future, which is how everything ends that the command started.
    let life = child.stdin.take();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (mut out, mut err) = (Clip::new(output_bytes_max), Clip::new(output_bytes_max));
    let (mut code, mut full) = (None, None);
    {
        let all = async { tokio::join!(child.wait(), out.fill(stdout), err.fill(stderr)).0 };
        tokio::pin!(all);
        let ended = tokio::select! {
            ended = timeout(Duration::from_secs(timeout_secs), &mut all) => ended.ok(),
            filled = until_full => {
                full = Some(filled);
                None
            }
        };
        match ended {
            Some(ended) => code = ended.ok().as_ref().and_then(ExitStatus::code).or(Some(-1)),
            None => {
                drop(life);
                if timeout(END_TIME_MAX, &mut all).await.is_err()
                    && let Some(pid) = pid
                {
                    // The supervisor itself hangs; its command dies with it.
                    let _ = rustix::process::kill_process_group(pid, Signal::KILL);
                }
            }
        }
    }
    Ran { code, full, timeout_secs, elapsed: begun.elapsed(), stdout: out.into_text(), stderr: err.into_text() }
}
