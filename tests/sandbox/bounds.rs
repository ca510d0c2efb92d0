//! What a command may have of the memory and of the table of processes, with everything that it starts.

use serde_json::json;

use crate::Harness;

/// A harness with small limits.
fn limited(limits: &str) -> Harness {
    Harness::new(&format!("[exec_policy]\nmode = \"full\"\n{limits}"), "shell = [\"*\"]\n")
}

/// Lets the agent run a Python program that is to be ended, and gives what the call said. Without Python there is nothing to
/// attack with.
#[track_caller]
fn python(harness: &Harness, program: &str) -> Option<String> {
    harness.call("file_write", &json!({ "path": "attack.py", "content": program }));
    let said = harness.call("shell_exec", &json!({ "command": "python3 attack.py", "timeout_secs": 120 }));
    if said.contains("not found") {
        eprintln!("skipped: no python3");
        return None;
    }
    Some(said)
}

const SMALL: &str = "max_memory_bytes = 67108864\n";

/// Fills what `take(bytes)` gives piece by piece, keeps it, and then waits to be ended.
const FILLS: &str = r#"
import mmap, os, signal
kept = []
for n in range(64):
    held = take(16 << 20)
    for at in range(0, 16 << 20, 4096):
        held[at] = 7
    kept.append(held)
print("filled", flush=True)
signal.pause()
"#;

#[track_caller]
fn ends_for_memory(take: &str) {
    let Some(said) = python(&limited(SMALL), &format!("{take}\n{FILLS}")) else { return };
    assert!(said.contains("more than 67108864 bytes of memory ([exec_policy] max_memory_bytes)"), "{said}");
    assert!(said.starts_with("Exit code: 137 (ended by signal 9)"), "{said}");
}

#[test]
fn shared_memory_counts() {
    ends_for_memory("def take(size): return mmap.mmap(-1, size, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)");
}

#[test]
fn shared_memory_of_a_device_counts() {
    ends_for_memory("def take(size): return mmap.mmap(os.open('/dev/zero', os.O_RDWR), size)");
}

#[test]
fn memory_of_several_processes_counts() {
    let program = r#"
import os, signal
for n in range(8):
    if os.fork() == 0:
        held = bytearray(16 << 20)
        for at in range(0, len(held), 4096):
            held[at] = 7
        signal.pause()
signal.pause()
"#;
    let Some(said) = python(&limited(SMALL), program) else { return };
    assert!(said.contains("max_memory_bytes"), "{said}");
}

#[test]
fn what_processes_share_counts_once() {
    let program = r#"
import mmap, os, time
held = mmap.mmap(-1, 64 << 20, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
children = []
for n in range(8):
    if os.fork() == 0:
        for at in range(0, 64 << 20, 4096):
            held[at] = 7
        # Long enough for several looks.
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            pass
        os._exit(0)
for n in range(8):
    os.wait()
print("end")
"#;
    let Some(said) = python(&limited("max_memory_bytes = 134217728\n"), program) else { return };
    assert!(said.contains("end\n"), "{said}");
}

#[test]
fn files_in_memory_count_or_are_refused() {
    let program = r#"
import os, signal
for path in ["/tmp/file", "/dev/shm/file", "/file", "/run/file", "/proc/file"]:
    try:
        open(path, "w").close()
        print("made", path, flush=True)
    except OSError:
        pass
try:
    file = os.memfd_create("file")
    for n in range(1024):
        os.write(file, b"7" * (1 << 20))
    print("filled", flush=True)
    signal.pause()
except OSError as error:
    print("refused", error.errno)
"#;
    let harness = limited(SMALL);
    let Some(said) = python(&harness, program) else { return };
    assert!(said.contains("max_memory_bytes") || said.contains("refused 38\n"), "{said}");
    assert!(!said.contains("filled") && (!said.contains("made") || harness.landlock().is_none()), "{said}");
}

#[test]
fn objects_of_system_v_and_large_buffers_need_a_cgroup() {
    let program = r#"
import ctypes, socket
libc = ctypes.CDLL(None, use_errno=True)
for name, call in [("shm", lambda: libc.shmget(0, 1 << 20, 0o1600)), ("sem", lambda: libc.semget(0, 100, 0o1600)),
                   ("msg", lambda: libc.msgget(0, 0o1600))]:
    print(name, call() >= 0)
pair, _ = socket.socketpair()
for option in [socket.SO_SNDBUF, socket.SO_RCVBUF]:
    before = pair.getsockopt(socket.SOL_SOCKET, option)
    # SO_SNDBUFFORCE and SO_RCVBUFFORCE have no names here.
    for set in [option, 32 if option == socket.SO_SNDBUF else 33]:
        try:
            pair.setsockopt(socket.SOL_SOCKET, set, before // 2 + 4096)
        except OSError:
            pass
    print("same", pair.getsockopt(socket.SOL_SOCKET, option) == before)
pair.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
print("other", pair.getsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED))
"#;
    let harness = limited("");
    let Some(said) = python(&harness, program) else { return };
    assert!(said.contains("other 1\n"), "{said}");
    let detail = harness.daemon.get("/api/health/detail").expect(200);
    if detail["sandbox"]["memory"] != "cgroup" {
        for refused in ["shm False", "sem False", "msg False", "same True\nsame True"] {
            assert!(said.contains(refused), "{said}");
        }
    }
}

#[test]
fn processes_are_counted() {
    // So many even where nothing bounds them: the machine must not break down.
    let program = r#"
import os, signal
for n in range(150):
    try:
        if os.fork() == 0:
            signal.pause()
            os._exit(0)
    except OSError as error:
        print("refused", n)
        os._exit(0)
print("forked", flush=True)
signal.pause()
"#;
    let Some(said) = python(&limited("max_processes = 60\n"), program) else { return };
    let refused = said.lines().find_map(|line| line.strip_prefix("refused ")?.parse::<u32>().ok());
    let is_killed = said.contains("more than 60 processes and threads ([exec_policy] max_processes)");
    assert!(is_killed || refused.is_some_and(|count| count <= 60), "{said}");
}

#[test]
fn a_fork_bomb_is_bounded() {
    let harness = limited("max_processes = 40\n");
    // It ends by itself, at 127 shells, where nothing bounds it.
    let bomb = "bomb() { [ $1 -gt 6 ] && exec sleep 1000; bomb $(($1 + 1)) & bomb $(($1 + 1)) & wait; }; bomb 1";
    let said = harness.sh(bomb);
    assert!(said.contains("max_processes") || said.contains("fork"), "{said}");
    assert!(harness.sh("echo works").contains("works\n"));
}

#[test]
fn reports_name_what_bounds_commands() {
    let harness = Harness::full();
    let detail = harness.daemon.get("/api/health/detail").expect(200);
    for what in ["memory", "processes"] {
        let bound = detail["sandbox"][what].as_str();
        assert!(matches!(bound, Some("cgroup" | "namespace" | "sampling" | "none")), "{detail}");
    }
    let denied = Harness::new("[exec_policy]\nmode = \"deny\"\n", "");
    assert!(denied.daemon.get("/api/health/detail").expect(200)["sandbox"]["memory"].is_null());
    let security = harness.daemon.get("/api/security").expect(200).to_string();
    assert!(security.contains("memory bounded by") || detail["sandbox"]["memory"] == "none", "{security}");
}

/// Of a disk, room is taken by writing only: what takes all of it at once is not seen in time.
#[test]
fn room_on_the_disk_is_not_taken_without_writing() {
    let program = r#"
import ctypes, errno, os, fcntl
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("file", os.O_CREAT | os.O_RDWR)
def fallocate(mode):
    done = libc.fallocate(fd, mode, ctypes.c_long(0), ctypes.c_long(1 << 20))
    return "done" if done == 0 else "refused" if ctypes.get_errno() == errno.EOPNOTSUPP else "failed"
print("plain", *[fallocate(mode) for mode in (0, 1, 0x10, 0x11)])
for request in (0x40305828, 0x4030582a, 0x40305839):
    try:
        fcntl.ioctl(fd, request, bytes(48))
        print("taken")
    except OSError as error:
        print("request", error.errno == errno.EOPNOTSUPP)
os.write(fd, bytes(1 << 20))
print("hole", fallocate(0x3))
os.posix_fallocate(fd, 0, 2 << 20)
print("size", os.fstat(fd).st_size)
"#;
    let Some(said) = python(&Harness::full(), program) else { return };
    assert!(said.contains("plain refused refused refused refused\n"), "{said}");
    assert_eq!(said.matches("request True").count(), 3, "{said}");
    assert!(said.contains("hole done") && said.contains("size 2097152"), "{said}");
}

#[test]
fn files_without_a_name_count_for_the_workspace() {
    let harness =
        Harness::new("[exec_policy]\nmode = \"full\"\n[workspaces]\nmax_bytes = 8388608\n", "shell = [\"*\"]\n");
    for held in [
        "head -c 6M /dev/zero >&3; head -c 6M /dev/zero >&4",
        "sleep 100000 & head -c 6M /dev/zero >&3; head -c 6M /dev/zero >&4; exec 3>&- 4>&-",
    ] {
        let said = harness.sh(&format!("exec 3>a 4>b; rm a b; {held}; sleep 100000"));
        assert!(said.contains("The workspace is full (`[workspaces] max_bytes`); it was killed"), "{said}");
        // What it held is gone with it.
        assert!(harness.sh("echo hello").contains("stdout\nhello"));
    }
    // A file is no larger than its workspace.
    let said = harness.sh("head -c 9M /dev/zero > file");
    assert!(
        said.contains("File size limit exceeded")
            || said.contains("File too large")
            || said.contains("workspace is full"),
        "{said}"
    );
}
