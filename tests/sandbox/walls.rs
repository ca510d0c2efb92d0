//! Ways around the walls of the sandbox: other protocols, sockets, modes, limits, shared objects and watches.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use agentsvc::kernel::sandbox::config::{ExecMode, ExecPolicy};
use agentsvc::kernel::sandbox::{Asked, Commands, Request, Workspaces};
use agentsvc_components::AgentId;
use agentsvc_components::kernel::holder::Holder;
use serde_json::json;
use uuid::Uuid;

use crate::Harness;
use crate::support::daemon::Daemon;
use crate::support::model::Model;
use crate::support::until;

/// Lets the agent run a Python program, and gives what it printed. Without Python there is nothing to attack with.
#[track_caller]
fn python(harness: &Harness, program: &str) -> Option<String> {
    harness.call("file_write", &json!({ "path": "attack.py", "content": program }));
    let said = harness.sh("python3 attack.py");
    if said.contains("not found") {
        eprintln!("skipped: no python3");
        return None;
    }
    Some(said)
}

/// Whether commands have namespaces of their own here; says so when they do not.
#[track_caller]
fn has_namespaces(harness: &Harness) -> bool {
    let has = harness.sh("echo $$").lines().any(|line| line.trim().parse::<u32>().is_ok_and(|pid| pid < 10));
    if !has {
        eprintln!("skipped: this machine allows no namespaces");
    }
    has
}

#[test]
fn files_that_the_daemon_inherited_are_closed_in_commands() {
    let outside = tempfile::tempdir().unwrap();
    let (read, written) = (outside.path().join("read.txt"), outside.path().join("written.txt"));
    fs::write(&read, "outside-words").unwrap();
    let script = format!("exec 9<{} 8>>{}; exec \"$@\"", read.display(), written.display());
    let model = Model::start();
    let config = format!("{}[exec_policy]\nmode = \"full\"\n", model.config());
    let daemon = Daemon::launched(&["sh", "-c", &script, "sh"], &config, &[]);
    let agent = daemon.agent_with("ann", "[capabilities]\ntools = [\"*\"]\nshell = [\"*\"]\n");
    let harness = Harness { model, daemon, agent };
    let said = harness.sh("cat <&9; echo secret >&8; ls /proc/self/fd");
    assert!(!said.contains("outside-words"), "{said}");
    assert_eq!(fs::read_to_string(&written).unwrap(), "");
}

#[test]
fn without_a_grant_there_is_no_network_by_any_protocol() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let program = format!(
        r#"
import socket
for family, kind, protocol in [(2, 1, 0), (2, 1, 262), (10, 1, 262), (2, 2, 0), (10, 2, 0), (16, 3, 0), (40, 1, 0), (17, 3, 0), (38, 5, 0)]:
    try:
        s = socket.socket(family, kind, protocol)
        print("made", family, kind, protocol)
        s.sendto(b"x", 0x20000000, ("127.0.0.1", {port}))
        print("sent")
    except OSError as error:
        print("refused", error.errno)
print("end")
"#
    );
    let Some(said) = python(&Harness::full(), &program) else { return };
    assert!(said.contains("end\n") && !said.contains("made") && !said.contains("sent"), "{said}");
}

/// Without a key whoever reaches the API may do everything: a command with the network does not, by any protocol.
#[test]
fn with_the_network_an_open_api_is_out_of_reach() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let program = |api: u16| {
        format!(
            r#"
import socket
def attempt(name, connect):
    try:
        connect()
        print(name, "reached")
    except OSError as error:
        print(name, "refused", error.errno)
def plain(family, host, port, protocol=0):
    socket.socket(family, 1, protocol).connect((host, port))
attempt("other", lambda: plain(2, "127.0.0.1", {port}))
attempt("api4", lambda: plain(2, "127.0.0.1", {api}))
attempt("mapped", lambda: plain(10, "::ffff:127.0.0.1", {api}))
attempt("any", lambda: plain(2, "0.0.0.0", {api}))
attempt("mptcp", lambda: plain(2, "127.0.0.1", {api}, 262))
attempt("smc", lambda: plain(2, "127.0.0.1", {api}, 256))
attempt("fast", lambda: socket.socket(2, 1).sendto(b"x", 0x20000000, ("127.0.0.1", {api})))
attempt("fastmsg", lambda: socket.socket(2, 1).sendmsg([b"x"], [], 0x20000000, ("127.0.0.1", {api})))
print("end")
"#
        )
    };
    let (full, capabilities) = ("[exec_policy]\nmode = \"full\"\n", "shell = [\"*\"]\nnetwork = [\"*\"]\n");
    let open = Harness::new(full, capabilities);
    let api = open.daemon.addr.port();
    let Some(said) = python(&open, &program(api)) else { return };
    assert!(said.contains("other reached\n") && said.contains("end\n"), "{said}");
    assert_eq!(said.matches("refused").count(), 7, "{said}");
    let model = Model::start();
    let key = "k".repeat(32);
    let mut daemon = Daemon::with(&format!("api_key = \"{key}\"\n{}{full}", model.config()));
    daemon.use_key(&key);
    let agent = daemon.agent_with("ann", &format!("[capabilities]\ntools = [\"*\"]\n{capabilities}"));
    let keyed = Harness { model, daemon, agent };
    let said = python(&keyed, &program(keyed.daemon.addr.port())).unwrap();
    assert!(said.contains("api4 reached\n") && said.contains("mapped reached\n"), "a key guards it: {said}");
}

/// Who reaches the servers of a cluster with their credentials stops it: no command does, on whatever machine they are.
#[tokio::test]
async fn with_the_network_the_servers_of_a_cluster_are_out_of_reach() {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [one, two, other] = listeners.each_ref().map(|listener| listener.local_addr().unwrap().port());
    let home = tempfile::tempdir().unwrap();
    let ann = AgentId(Uuid::from_u128(1));
    let policy = ExecPolicy { mode: ExecMode::Full, ..ExecPolicy::default() };
    let launcher = PathBuf::from(env!("CARGO_BIN_EXE_agentsvc"));
    let commands = Commands::with_launcher(policy, vec![home.path().to_owned()], Vec::new(), launcher);
    let workspace = Workspaces::new(home.path().join("workspaces")).open(ann, "ann").unwrap();
    let reached = async || {
        let attempt = |port| format!("(: </dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached {port}; ");
        let line = format!("{}echo end", [one, two, other].map(attempt).concat());
        let request = Request {
            place: commands.place(Holder::Family(ann)).await.unwrap(),
            asked: Asked::Line(format!("bash -c '{line}'")),
            workspace: workspace.for_command().unwrap(),
            shown: Vec::new(),
            granted: vec!["*".into()],
            network: true,
            secrets: Vec::new(),
            variables: Vec::new(),
            timeout_secs: None,
        };
        commands.run(request).await
    };
    let said = |ports: &[u16]| ports.iter().map(|port| format!("reached {port}\n")).collect::<String>() + "end\n";
    let before = reached().await.unwrap();
    assert_eq!(before.stdout, said(&[one, two, other]), "{before:?}");
    commands.keep_from_servers(vec![one, two], true);
    match reached().await {
        Ok(kept) => assert_eq!(kept.stdout, said(&[other]), "{kept:?}"),
        Err(refused) => assert!(refused.contains("allow_open_server"), "a kernel without such rules: {refused}"),
    }
}

#[test]
fn sockets_and_names_outside_are_out_of_reach() {
    let harness = Harness::full();
    let outside = tempfile::tempdir().unwrap();
    let socket = outside.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let (socket, home) = (socket.display(), harness.daemon.home().display().to_string());
    let program = format!(
        r#"
import ctypes, socket
try:
    socket.socket(socket.AF_UNIX).connect("{socket}")
    print("connected")
except OSError as error:
    print("refused", error.errno)
libc = ctypes.CDLL(None, use_errno=True)
watch = libc.inotify_init()
for path in ["{home}/data", "{home}/config.toml", "/root", "/home", "/run"]:
    print("watched" if libc.inotify_add_watch(watch, path.encode(), 0xfff) >= 0 else "unseen", path)
print("end")
"#
    );
    let namespaces = has_namespaces(&harness);
    let Some(said) = python(&harness, &program) else { return };
    assert!(said.contains("end\n") && !said.contains("connected"), "{said}");
    assert!(!namespaces || !said.contains("watched"), "{said}");
}

#[test]
fn modes_limits_and_times_of_others_stay() {
    let harness = Harness::full();
    let (home, pid) = (harness.daemon.home().to_owned(), harness.daemon.pid());
    let namespaces = has_namespaces(&harness);
    let mode = || fs::metadata(home.join("config.toml")).unwrap().permissions().mode();
    let before = mode();
    let line = format!(
        "chmod 666 {0}/config.toml; touch -d 2001-01-01 {0}/config.toml; chmod 777 {0}; echo end",
        home.display()
    );
    assert!(harness.sh(&line).contains("end\n"));
    assert!(!namespaces || mode() == before, "{:o}", mode());
    let program = format!(
        r#"
import fcntl, os, resource
try:
    resource.prlimit({pid}, resource.RLIMIT_NOFILE, (10, 10))
    print("limited")
except OSError as error:
    print("refused", error.errno)
resource.prlimit(0, resource.RLIMIT_NOFILE)
open("own", "w").close()
try:
    # What is leased is in no backup.
    fcntl.fcntl(os.open("own", os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)
    print("leased")
except OSError as error:
    print("refused", error.errno)
os.chmod("own", 0o755)
for mode in (0o4755, 0o2755):
    try:
        os.chmod("own", mode)
        print("set-id")
    except OSError as error:
        print("refused", error.errno)
    try:
        os.close(os.open("made%o" % mode, os.O_CREAT | os.O_WRONLY, mode))
        print("set-id")
    except OSError as error:
        print("refused", error.errno)
print("end")
"#
    );
    let Some(said) = python(&harness, &program) else { return };
    assert!(
        said.contains("end\n") && !said.contains("limited") && !said.contains("leased") && !said.contains("set-id"),
        "{said}"
    );
    harness.daemon.get("/api/health").expect(200);
}

/// Read-only mounts keep what belongs to the host; the values are those that it has, so that a hole would do no harm.
#[test]
fn devices_of_the_host_are_written_to_and_not_changed() {
    let harness = Harness::full();
    let namespaces = has_namespaces(&harness);
    let program = r#"
import os
for device in ("/dev/null", "/dev/zero", "/dev/urandom"):
    found = os.stat(device)
    for change in (lambda: os.chmod(device, found.st_mode & 0o7777), lambda: os.utime(device, ns=(found.st_atime_ns, found.st_mtime_ns))):
        try:
            change()
            print("changed", device)
        except OSError as error:
            print("refused", error.errno)
open("/dev/null", "w").write("x")
print("end")
"#;
    let Some(said) = python(&harness, program) else { return };
    assert!(said.contains("end\n") && (!namespaces || !said.contains("changed")), "{said}");
}

#[test]
fn what_the_daemon_keeps_outside_of_its_home_is_out_of_reach_too() {
    let outside = tempfile::tempdir().unwrap();
    let at = |name: &str| outside.path().join(name).display().to_string();
    for name in ["backups", "later"] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(&format!("{name}/file")), format!("secret in {name}\n")).unwrap();
    }
    fs::write(at("open"), "may be read\n").unwrap();
    let config = |backups: &str| {
        format!(
            "[exec_policy]\nmode = \"full\"\nreadable_paths = [{:?}]\n[backup]\ndirectory = {:?}\n[audit]\nheads_file = {:?}\n",
            outside.path(),
            at(backups),
            at("heads"),
        )
    };
    let harness = Harness::new(&config("backups"), "shell = [\"*\"]\n");
    until("a head was sent", || fs::read(at("heads")).is_ok_and(|text| !text.is_empty()).then_some(()));
    let read = || {
        harness
            .sh(&format!("cat {0}/open {0}/later/file {0}/backups/file {0}/heads; echo end", outside.path().display()))
    };
    let said = read();
    assert!(said.contains("may be read\n") && said.contains("secret in later\n") && said.contains("end\n"), "{said}");
    assert!(!said.contains("secret in backups"), "{said}");
    assert!(!said.contains("00000000"), "a signed head: {said}");
    let file = harness.daemon.home().join("config.toml");
    let text = fs::read_to_string(&file).unwrap().replace(&at("backups"), &at("later"));
    fs::write(&file, text).unwrap();
    harness.daemon.poke("/api/config/reload").expect(200);
    let said = read();
    assert!(said.contains("may be read\n") && !said.contains("secret in"), "older backups lie where they were: {said}");
}

#[test]
fn nothing_is_shared_between_commands() {
    let harness = Harness::full();
    let program = r#"
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
made = libc.shmget(0x5ec, 4096, 0o1666)
found = libc.shmget(0x5ec, 0, 0)
print("segment", made >= 0, found >= 0)
print("keyring", libc.syscall(250, 0, -3, 1))
print("key", libc.syscall(248, b"user", b"shared", b"x", 1, -3))
print("end")
"#;
    let Some(said) = python(&harness, program) else { return };
    assert!(said.contains("keyring -1\n") && said.contains("key -1\n"), "{said}");
    let again = "import ctypes; print('found', ctypes.CDLL(None).shmget(0x5ec, 0, 0) >= 0)";
    let Some(said) = python(&harness, again) else { return };
    assert!(said.contains("found False"), "{said}");
}

#[test]
fn a_command_sees_its_own_processes_and_files_only() {
    let harness = Harness::full();
    if !has_namespaces(&harness) {
        return;
    }
    let said = harness.sh(
        "ls -d /proc/[0-9]* | wc -l; ls /; ls -A /home /root /run /var 2>/dev/null; echo x > /usr/escaped; echo end",
    );
    let count: usize = said.lines().find_map(|line| line.trim().parse().ok()).expect("a count");
    assert!(count < 10 && said.contains("end\n"), "{said}");
    assert!(!std::path::Path::new("/usr/escaped").exists());
    let out = said.split("--- stderr").next().unwrap_or_default();
    assert!(!out.lines().any(|line| ["boot", "root", "run", "srv", "var"].contains(&line)), "{said}");
    // What programs rely on is there.
    let works = harness.sh("echo a | tee /dev/stderr >/dev/null; cat < /dev/null; head -c 3 /dev/urandom | wc -c; cat /etc/hosts >/dev/null && echo end");
    assert!(works.contains("end\n") && works.contains("\n3\n"), "{works}");
}

#[test]
fn a_missing_part_refuses_where_all_are_required() {
    let harness = Harness::new("[exec_policy]\nmode = \"full\"\nrequire_sandbox = true\n", "shell = [\"*\"]\n");
    let said = harness.sh("echo hello");
    if has_namespaces(&Harness::full()) && harness.landlock().is_some() {
        assert!(said.contains("hello\n"), "{said}");
    } else {
        assert!(said.contains("require_sandbox"), "{said}");
    }
}

#[test]
fn a_daemon_of_another_user_than_root_has_the_same_walls() {
    use std::process::Command;
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir(path("home")).unwrap();
    fs::write(path("home/config.toml"), "[exec_policy]\nmode = \"full\"\n").unwrap();
    // Other users may not reach the directory that it was built in.
    fs::copy(env!("CARGO_BIN_EXE_agentsvc"), path("agentsvc")).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let given = Command::new("chown").args(["-R", "65534:65534"]).arg(path("home")).status();
    if !given.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: only root becomes another user");
    }
    let other = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let allowed = Command::new("setpriv").args(other).args(["unshare", "--user", "--mount", "true"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: other users than root may make no namespaces here");
    }
    let doctor = |as_other: bool| {
        let mut command = Command::new(if as_other { "setpriv".into() } else { path("agentsvc") });
        if as_other {
            command.args(other).arg(path("agentsvc"));
        }
        command.args(["doctor", "--offline", "--json", "--home"]).arg(path("home")).env_clear();
        let output = command.output().ok()?;
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        let checks = report["checks"].as_array()?.clone();
        checks.into_iter().find(|check| check["name"] == "sandbox")
    };
    let (own, other) = (doctor(false).expect("a report"), doctor(true).expect("a report"));
    assert_eq!((&other["status"], &other["message"]), (&own["status"], &own["message"]));
}

/// Something that is mounted for the time of a test.
struct Mounted(std::path::PathBuf);

impl Mounted {
    /// A file system in memory in a new directory; `None` where nothing can be mounted.
    fn new(at: std::path::PathBuf) -> Option<Self> {
        fs::create_dir(&at).unwrap();
        let mount = std::process::Command::new("mount").args(["-t", "tmpfs", "tmpfs"]).arg(&at).status();
        if mount.is_ok_and(|status| status.success()) {
            return Some(Self(at));
        }
        eprintln!("skipped: nothing can be mounted here");
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn what_is_mounted_within_a_readable_directory_is_not_changed() {
    let readable = tempfile::tempdir().unwrap();
    let inner = readable.path().join("inner mount");
    let Some(inner) = Mounted::new(inner) else { return };
    fs::write(inner.0.join("file"), "old").unwrap();
    let paths = format!("[exec_policy]\nmode = \"full\"\nreadable_paths = [\"{}\"]\n", readable.path().display());
    let harness = Harness::new(&paths, "shell = [\"*\"]\n");
    let at = inner.0.display();
    let said = harness
        .sh(&format!("cat '{at}/file'; chmod 777 '{at}/file'; touch -d 2001-01-01 '{at}/file'; echo x > '{at}/new'"));
    assert!(said.contains("old"), "{said}");
    let found = fs::metadata(inner.0.join("file")).unwrap();
    let is_old = found.modified().unwrap().elapsed().unwrap().as_secs() > 1_000_000;
    assert!(!inner.0.join("new").exists(), "{said}");
    if has_namespaces(&harness) {
        assert!(found.permissions().mode() & 0o777 != 0o777 && !is_old, "{said}");
    }
}

#[test]
fn what_is_mounted_within_a_hidden_directory_keeps_no_command_from_running() {
    let paths = format!("[exec_policy]\nmode = \"full\"\nreadable_paths = [\"{}\"]\n", std::env::temp_dir().display());
    let harness = Harness::new(&paths, "shell = [\"*\"]\n");
    let Some(hidden) = Mounted::new(harness.daemon.home().join("mounted")) else { return };
    fs::write(hidden.0.join("file"), "secret").unwrap();
    let said = harness.sh(&format!("echo works; cat '{}/file'", hidden.0.display()));
    assert!(said.contains("works\n") && !said.contains("secret"), "{said}");
}
