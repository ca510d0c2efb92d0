//! Whatever ends a call ends everything that its command started.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use serde_json::json;

use crate::Harness;
use crate::support::model_server::Reply;
use crate::support::until;

/// Starts a process in the foreground, one in the background, and one that left its group and its parent; each says in
/// the workspace that it runs. The number in it is found in the arguments of all of them, and of what watches over them.
const SPREADS: &str = "true NUMBER; echo > p1; sh -c 'echo > p2; exec sleep 1000.NUMBER' & \
    setsid sh -c '(echo > p3; setsid sh -c \"echo > p4; exec sleep 1000.NUMBER\" &) ; sleep 1000.NUMBER' & sleep 1000.NUMBER";

/// A number that no other command of this machine has.
fn number() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{:09}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The processes, when all of them run.
fn spread(workspace: &Path, number: &str) -> Vec<u32> {
    for name in ["p1", "p2", "p3", "p4"] {
        until("the command has started its processes", || workspace.join(name).exists().then_some(()));
    }
    running(number)
}

/// The processes with this number among their arguments. A zombie has none.
fn running(number: &str) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let of_number = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(number)
    };
    pids.filter(of_number).collect()
}

#[track_caller]
fn all_gone(number: &str) {
    until("every process is gone", || running(number).is_empty().then_some(()));
}

#[test]
fn a_timeout_kills_them_all() {
    let (harness, number) = (Harness::full(), number());
    // Long enough for all of them to start on a busy machine.
    let command = format!("echo before; {}", SPREADS.replace("NUMBER", &number));
    let said = harness.call("shell_exec", &json!({ "command": command, "timeout_secs": 8 }));
    assert!(said.starts_with("It timed out after 8 seconds and was killed"), "{said}");
    assert!(said.contains("before\n"), "{said}");
    spread(&harness.workspace(), &number);
    all_gone(&number);
}

#[test]
fn the_end_of_the_command_kills_what_it_left() {
    let (harness, number) = (Harness::full(), number());
    let line = "sh -c 'echo > p1; exec sleep 1000.NUMBER' & setsid sh -c 'echo > p2; exec sleep 1000.NUMBER' & \
        while [ ! -e p1 ] || [ ! -e p2 ]; do :; done; echo over";
    let said = harness.sh(&line.replace("NUMBER", &number));
    assert!(said.starts_with("Exit code: 0") && said.contains("over"), "{said}");
    all_gone(&number);
}

/// Begins a turn whose command goes on for ever, and gives its processes.
fn begun(harness: &Harness, number: &str) -> (thread::JoinHandle<()>, Vec<u32>) {
    let input = json!({ "command": SPREADS.replace("NUMBER", number), "timeout_secs": 600 }).to_string();
    harness.model.script([Reply::calls(&[("c1", "shell_exec", &input)])]);
    let (client, agent) = (harness.daemon.client(), harness.agent.clone());
    let asking = thread::spawn(move || {
        // How it ends is the test's business: the daemon may be gone by then.
        let body = json!({ "message": "go" }).to_string();
        let _ = client.try_send("POST", &format!("/api/agents/{agent}/message"), &[], Some(body.as_bytes()));
    });
    (asking, spread(&harness.workspace(), number))
}

#[test]
fn a_stop_kills_them_all() {
    let (harness, number) = (Harness::full(), number());
    let (asking, pids) = begun(&harness, &number);
    assert!(pids.len() >= 4, "{pids:?}");
    harness.daemon.poke(&format!("/api/agents/{}/stop", harness.agent)).expect(200);
    all_gone(&number);
    asking.join().unwrap();
}

#[test]
fn the_daemons_death_kills_them_all() {
    let (mut harness, number) = (Harness::full(), number());
    let (asking, pids) = begun(&harness, &number);
    assert!(pids.len() >= 4, "{pids:?}");
    harness.daemon.kill();
    all_gone(&number);
    asking.join().unwrap();
}

#[test]
fn processes_left_by_their_parents_leave_no_zombies() {
    let harness = Harness::full();
    let said = harness
        .sh("for i in $(seq 90); do (sleep 0 &); done; sleep 1; grep -l '^State:.Z' /proc/[0-9]*/status | wc -l");
    let zombies: usize = said.lines().find_map(|line| line.trim().parse().ok()).expect("a count");
    assert!(zombies < 20, "{said}");
}
