//! Programs that fill the disk past every look at names, and a disk that is full all at once.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;

use super::disk::Disk;
use super::support::daemon::text;
use super::support::{Rng, until};
use super::{Harness, until_read_only};

const MIB: u64 = 1 << 20;

/// A daemon where agents may run everything, with more lines of configuration.
fn start<'d>(disk: &'d Disk, more: &str) -> Harness<'d> {
    let config = "api_listen = \"127.0.0.1:0\"\nrate_limit_per_second = 10000000\n[tool_invoke]\nenabled = true\n\
        allowlist = [\"shell_exec\"]\n";
    fs::write(disk.path().join("config.toml"), format!("{config}{more}")).unwrap();
    Harness::start(disk)
}

/// An agent that may run commands.
fn agent(harness: &Harness<'_>, name: &str) -> String {
    let manifest =
        format!("name = \"{name}\"\nsystem_prompt = \"p\"\n[capabilities]\ntools = [\"*\"]\nshell = [\"*\"]\n");
    text(&harness.client.post("/api/agents", &json!({ "manifest_toml": manifest })).expect(201)["agent_id"])
}

fn run(harness: &Harness<'_>, agent: &str, command: &str) -> String {
    let path = format!("/api/tools/shell_exec/invoke?agent_id={agent}");
    text(&harness.client.post(&path, &json!({ "command": command, "timeout_secs": 300 })).expect(200)["content"])
}

#[test]
fn the_command_that_takes_the_disk_is_ended_and_not_those_of_others() {
    let Some(disk) = Disk::of(400) else { return };
    let harness = start(&disk, "[exec_policy]\nmode = \"full\"\n");
    let (evil, good) = (agent(&harness, "evil"), agent(&harness, "good"));
    until("the reserve is there", || disk.path().join("data/reserve").exists().then_some(()));
    let begun = disk.path().join("workspaces/good/begun");
    thread::scope(|scope| {
        let other =
            scope.spawn(|| run(&harness, &good, "true > begun; while test ! -e end; do sleep 0.1; done; echo fine"));
        until("the other command runs", || begun.exists().then_some(()));
        for _ in 0..3 {
            let taken = disk.room() - 48 * MIB;
            let said = run(&harness, &evil, &format!("exec 3>f; rm f; head -c {taken} /dev/zero >&3; sleep 100000"));
            assert!(said.contains("The disk is full; it was killed"), "{said}");
            until("the room is there again", || (disk.room() > 64 * MIB).then_some(()));
            harness.client.say(&good, "hello");
        }
        fs::write(disk.path().join("workspaces/good/end"), "").unwrap();
        let said = other.join().unwrap();
        assert!(said.contains("stdout\nfine"), "{said}");
    });
}

#[test]
fn a_server_that_holds_more_than_it_may_is_stopped_and_stays_so() {
    let Some(disk) = Disk::of(400) else { return };
    let server = "[exec_policy]\nmax_server_bytes = 16777216\n[[mcp_servers]]\nname = \"evil\"\n[mcp_servers.transport]\n\
        type = \"stdio\"\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"echo x >> starts; head -c 48M /dev/zero > f; sleep 100000\"]\n";
    let harness = start(&disk, server);
    let shown = || harness.client.get("/api/mcp/servers/evil").expect(200).to_string();
    until("the server is stopped and says why", || shown().contains("max_server_bytes").then_some(()));
    until("it is not started again", || shown().contains("Delete files there").then_some(()));
    let starts = fs::read_to_string(disk.path().join("mcp_servers/evil/starts")).unwrap();
    assert_eq!(starts, "x\n");
    let health = harness.client.get("/api/health").expect(200);
    assert_eq!(health["read_only"], false, "{health}");
}

/// The daemon cannot keep others from taking the room that its engine is about to use.
#[test]
fn a_store_that_found_no_room_is_opened_anew_and_loses_nothing_that_was_acknowledged() {
    let Some(disk) = Disk::of(400) else { return };
    let mut harness = Harness::start(&disk);
    let agent = harness.client.agent("kept");
    until("the reserve is there", || disk.path().join("data/reserve").exists().then_some(()));
    let (is_done, path) = (AtomicBool::new(false), |key: &str| format!("/api/memory/agents/{agent}/kv/{key}"));
    let write = |writer: u64| {
        let (mut rng, mut kept, mut n) = (Rng(writer + 1), BTreeMap::new(), 0_u64);
        while !is_done.load(Ordering::Relaxed) {
            n += 1;
            let key = format!("key-{writer}-{}", n % 20);
            let bulk: String = (0..3_000).map(|_| format!("{:016x}", rng.roll())).collect();
            let body = json!({ "value": format!("{n} {bulk}") }).to_string();
            let sent = harness.client.try_send("PUT", &path(&key), &[], Some(body.as_bytes()));
            if sent.is_ok_and(|reply| reply.status == 200) {
                kept.insert(key, n);
            }
        }
        kept
    };
    let kept: Vec<_> = thread::scope(|scope| {
        let write = &write;
        let writers: Vec<_> = (0..3).map(|writer| scope.spawn(move || write(writer))).collect();
        until("the store was opened anew", || {
            disk.take();
            // What is there can be read all the while.
            let read = harness.client.get(&format!("/api/agents/{agent}"));
            assert!(read.status == 200 || read.status == 503, "{}", read.text());
            disk.free();
            harness.said().contains("the store was opened anew").then_some(())
        });
        is_done.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    until_read_only(&harness, false);
    assert!(harness.child.try_wait().unwrap().is_none(), "it is still the same process");
    let is_kept = |harness: &Harness<'_>| {
        assert!(kept.iter().all(|kept| !kept.is_empty()));
        for (key, n) in kept.iter().flatten() {
            let value = text(&harness.client.get(&path(key)).expect(200)["value"]);
            let found: u64 = value[..value.find(' ').unwrap()].parse().unwrap();
            assert!(found >= *n, "{key} is {found} and was acknowledged as {n}");
        }
    };
    is_kept(&harness);
    harness.client.say(&agent, "still here");
    harness.child.kill().unwrap();
    harness.child.wait().unwrap();
    drop(harness);
    is_kept(&Harness::start(&disk));
}
