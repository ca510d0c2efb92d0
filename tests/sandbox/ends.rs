//! Whatever ends a call ends everything that its command started.

use std::fs;
use std::path::Path;
use std::thread;

use serde_json::json;

use crate::House;
use crate::support::model_server::Reply;
use crate::support::until;

/// Starts a process in the foreground, one in the background, and one that left its group and its parent; each writes
/// its number into the workspace.
const SPREADS: &str = "echo $$ > p1; sh -c 'echo $$ > p2; exec sleep 1000' & \
    setsid sh -c '(echo $$ > p3; setsid sh -c \"echo \\$\\$ > p4; exec sleep 1000\" &) ; sleep 1000' & sleep 1000";

/// The processes, when all of them run.
fn spread(workspace: &Path) -> Vec<u32> {
    let number = |name: &str| {
        until("the command has started its processes", || {
            fs::read_to_string(workspace.join(name)).ok()?.trim().parse::<u32>().ok()
        })
    };
    ["p1", "p2", "p3", "p4"].map(number).to_vec()
}

fn runs(pid: u32) -> bool {
    // A zombie holds nothing; its parent of the test machine may be slow to fetch it.
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

#[track_caller]
fn all_gone(pids: &[u32]) {
    until("every process is gone", || pids.iter().all(|pid| !runs(*pid)).then_some(()));
}

#[test]
fn a_timeout_kills_them_all() {
    let house = House::full();
    // Long enough for all of them to start on a busy machine.
    let said = house.call("shell_exec", &json!({ "command": format!("echo before; {SPREADS}"), "timeout_secs": 8 }));
    assert!(said.starts_with("It took more than 8 seconds and was killed"), "{said}");
    assert!(said.contains("before\n"), "{said}");
    all_gone(&spread(&house.workspace()));
}

#[test]
fn the_end_of_the_command_kills_what_it_left() {
    let house = House::full();
    let line = "sh -c 'echo $$ > p1; exec sleep 1000' & setsid sh -c 'echo $$ > p2; exec sleep 1000' & \
        while [ ! -s p1 ] || [ ! -s p2 ]; do :; done; echo over";
    let said = house.sh(line);
    assert!(said.starts_with("Exit code: 0") && said.contains("over"), "{said}");
    let number = |name: &str| fs::read_to_string(house.workspace().join(name)).unwrap().trim().parse().unwrap();
    all_gone(&[number("p1"), number("p2")]);
}

/// Begins a turn whose command goes on for ever, and gives its processes.
fn begun(house: &House) -> (thread::JoinHandle<()>, Vec<u32>) {
    let input = json!({ "command": SPREADS, "timeout_secs": 600 }).to_string();
    house.model.script([Reply::calls(&[("c1", "shell_exec", &input)])]);
    let (client, agent) = (house.daemon.client(), house.agent.clone());
    let asking = thread::spawn(move || {
        // How it ends is the test's business: the daemon may be gone by then.
        let body = json!({ "message": "go" }).to_string();
        let _ = client.try_send("POST", &format!("/api/agents/{agent}/message"), &[], Some(body.as_bytes()));
    });
    (asking, spread(&house.workspace()))
}

#[test]
fn a_stop_kills_them_all() {
    let house = House::full();
    let (asking, pids) = begun(&house);
    assert!(pids.iter().all(|pid| runs(*pid)));
    house.daemon.poke(&format!("/api/agents/{}/stop", house.agent)).expect(200);
    all_gone(&pids);
    asking.join().unwrap();
}

#[test]
fn the_daemons_death_kills_them_all() {
    let mut house = House::full();
    let (asking, pids) = begun(&house);
    house.daemon.kill();
    all_gone(&pids);
    asking.join().unwrap();
}
