//! The world at work: `GET /api/world`, its stream and the stream of events.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use super::query::follow;
use crate::support::daemon::{Daemon, text};
use crate::support::stream::Events;
use crate::support::{PATIENCE, until};

#[test]
fn a_reading_tells_of_beat_systems_memory_and_queues() {
    let daemon = Daemon::with("[world]\ntick_hz = 50\n");
    let agent = daemon.agent("a");
    daemon.say(&agent, "hello");
    let world = until("the world has beaten for a while", || {
        let world = daemon.get("/api/world").expect(200);
        let beats = world["beat"]["total"].as_u64()? > 60;
        let kinds = world["memory"]["kinds"].as_array()?;
        // A measurement of memory is good for a second, and a busy world is not waited for.
        let measured = kinds.iter().any(|kind| kind["kind"] == "agents" && kind["count"] == 2);
        let is_new = measured && world["memory"]["stale"] == false;
        (beats && is_new && world["totals"]["turns_completed"] == 1).then_some(world)
    });
    assert_eq!((&world["state"], &world["beat"]["hz"]), (&json!("running"), &json!(50)));
    assert_eq!(world["release"]["version"], env!("CARGO_PKG_VERSION"));
    let achieved = world["beat"]["achieved_hz"].as_f64().unwrap();
    assert!(achieved > 0.0 && achieved <= 75.0, "{achieved}");
    for times in ["/beat/time", "/steps/time", "/store/lag", "/store/commit_time"] {
        let times = world.pointer(times).unwrap();
        let of = |key: &str| times[key].as_u64().unwrap();
        assert!(of("count") > 0 && of("p50_us") <= of("p99_us") && of("p99_us") <= of("max_us"), "{times}");
    }
    let systems = world["systems"].as_array().unwrap();
    let system = |name: &str| systems.iter().find(|system| system["name"] == name).unwrap();
    assert!(system("schedule_beat")["runs"].as_u64().unwrap() > 50);
    for name in ["arrivals", "settle", "turn_admit", "trigger_deliver", "record_dirty", "audit_close"] {
        assert!(system(name)["runs"].as_u64().unwrap() > 0, "{name}");
    }
    let share: f64 = systems.iter().map(|system| system["share"].as_f64().unwrap()).sum();
    assert!((0.99..=1.01).contains(&share), "{share}");
    let stages: Vec<String> = world["stages"].as_array().unwrap().iter().map(|stage| text(&stage["name"])).collect();
    assert_eq!(stages, ["intake", "time", "match", "decide", "persist"]);
    let agents = json!({"kind": "agents", "count": 2});
    assert!(world["entities"].as_array().unwrap().contains(&agents), "{}", world["entities"]);
    let kinds = world["memory"]["kinds"].as_array().unwrap();
    let of_agents = kinds.iter().find(|kind| kind["kind"] == "agents").unwrap();
    assert_eq!((&of_agents["count"], &world["memory"]["stale"]), (&json!(2), &json!(false)));
    assert!(of_agents["rows_bytes"].as_u64().unwrap() > 200 && of_agents["heap_bytes"].as_u64().unwrap() > 0);
    let estimated = world["memory"]["estimated_bytes"].as_u64().unwrap();
    assert_eq!(estimated, kinds.iter().map(|kind| kind["bytes"].as_u64().unwrap()).sum::<u64>());
    assert!(world["memory"]["rss_bytes"].as_u64().unwrap() > estimated);
    for queue in ["bridge", "store_backlog", "turns_waiting", "trigger_matches", "queries", "world_streams"] {
        let queues = world["queues"].as_array().unwrap();
        assert!(queues.iter().any(|known| known["name"] == queue && known["length"].is_u64()), "{queue}");
    }
    assert_eq!(world["store"]["up"], true);
    assert_eq!(world["totals"]["fires"], 0, "nothing but a person began a turn");
}

#[test]
fn the_stream_tells_the_same_in_short() {
    let daemon = Daemon::start();
    let events = follow(Events::open(&daemon, "GET", "/api/world/stream", None));
    let first = events.recv_timeout(PATIENCE).unwrap();
    assert_eq!(first.name, "world");
    let agent = daemon.agent("a");
    daemon.say(&agent, "hello");
    let seen = until("the new agent is told of", || {
        let event = events.recv_timeout(PATIENCE).ok()?;
        (event.data["agents"] == 2).then_some(event.data)
    });
    for key in [
        "at",
        "uptime_seconds",
        "turns_in_flight",
        "events_per_second",
        "fires_per_second",
        "beat_hz",
        "beat_p99_us",
        "step_p99_us",
        "store_lag_p99_us",
        "store_backlog_bytes",
        "rss_bytes",
    ] {
        assert!(!seen[key].is_null(), "{key}: {seen}");
    }
    assert!(seen["queues"].as_array().unwrap().len() > 10);
}

#[test]
fn events_are_told_as_they_become_durable() {
    let daemon = Daemon::start();
    let agent = daemon.agent("first");
    let events = follow(Events::open(&daemon, "GET", "/api/world/events?kind=agent_spawned,agent_terminated", None));
    let kept = until("what is kept comes first", || {
        let event = events.recv_timeout(PATIENCE).ok()?;
        (event.data["agent_id"] == agent.as_str()).then_some(event)
    });
    assert_eq!((kept.name.as_str(), &kept.data["kind"]), ("event", &json!("agent_spawned")));
    assert_eq!((&kept.data["event"]["name"], &kept.data["depth"]), (&json!("first"), &json!(0)));
    daemon.say(&agent, "hello");
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    let next = events.recv_timeout(PATIENCE).unwrap();
    assert_eq!(next.data["kind"], "agent_terminated", "other kinds are left out");
    assert!(next.data["number"].as_u64().unwrap() > kept.data["number"].as_u64().unwrap());
    // Whoever comes back goes on behind what it has seen, and is told when that was before a restart.
    let come_back = |seen: &str| {
        let (head, body) = daemon.open("GET", "/api/world/events", &[("last-event-id", seen)], None).unwrap();
        assert_eq!(head.status, 200);
        let mut lines = BufReader::new(body).lines().map(Result::unwrap);
        let mut is_told = false;
        let id = lines.find_map(|line| {
            is_told |= line.contains("\"restarted\":true");
            line.strip_prefix("id: ").map(str::to_owned)
        });
        (is_told, id.expect("an event"))
    };
    let (is_told, first) = come_back("1-7");
    assert!(is_told, "this id is of another start");
    let (is_told, second) = come_back(&first);
    assert!(!is_told && second != first, "{first} {second}");
    let all = follow(Events::open(&daemon, "GET", &format!("/api/world/events?agent_id={agent}&last=200"), None));
    let mut kinds = Vec::new();
    until("every event of the agent", || {
        let event = all.recv_timeout(PATIENCE).ok()?;
        assert_eq!(event.data["agent_id"], agent.as_str());
        kinds.push(text(&event.data["kind"]));
        (event.data["kind"] == "agent_terminated").then_some(())
    });
    for kind in ["agent_spawned", "message_received", "turn_started", "turn_completed"] {
        assert!(kinds.iter().any(|known| known == kind), "{kind}: {kinds:?}");
    }
    daemon.get("/api/world/events?kind=agent_spawned,nonsense").refused_field(400, "kind");
    daemon.get("/api/world/events?agent_id=7").refused_field(400, "agent_id");
}

#[test]
fn recent_events_are_listed_in_pages() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("first");
    daemon.say(&agent, "hello");
    daemon.settle();
    let list = |query: &str| daemon.get(&format!("/api/events?{query}"));
    let of_agent = until("every event of the turn", || {
        let answer = list(&format!("agent_id={agent}")).expect(200);
        let events = answer["events"].as_array().unwrap().clone();
        (events[0]["kind"] == "turn_completed").then_some((events, answer))
    });
    let (events, answer) = of_agent;
    let kinds: Vec<_> = events.iter().map(|event| text(&event["kind"])).collect();
    for kind in ["turn_started", "message_received"] {
        assert!(kinds.iter().any(|known| known == kind), "{kind}: {kinds:?}");
    }
    assert_eq!(answer["total"], events.len());
    assert!(answer["next_cursor"].is_null(), "{answer}");
    let oldest = &events[events.len() - 1];
    assert_eq!((&oldest["kind"], &oldest["event"]["name"]), (&json!("agent_spawned"), &json!("first")));
    // Page by page it is the same.
    let (mut paged, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = list(&format!("agent_id={agent}&limit=3{cursor}")).expect(200);
        paged.extend(page["events"].as_array().unwrap().clone());
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(paged, events);
    let some = list("kind=turn_started,agent_spawned").expect(200);
    let is_wanted = |event: &Value| event["kind"] == "turn_started" || event["kind"] == "agent_spawned";
    assert!(some["events"].as_array().unwrap().iter().all(is_wanted) && some["total"].as_u64() > Some(1), "{some}");
    for (query, field) in [
        ("kind=agent_spawned,nonsense", "kind"),
        ("agent_id=7", "agent_id"),
        ("limit=0", "limit"),
        ("limit=x", "limit"),
        ("cursor=x", "cursor"),
        ("cursor=1-1", "cursor"),
    ] {
        list(query).refused_field(400, field);
    }
    // They are those of this start.
    daemon.restart();
    daemon.get(&format!("/api/events?limit=1{cursor}")).refused_field(400, "cursor");
}

#[test]
fn streams_of_the_world_are_bounded() {
    let daemon = Daemon::start();
    let mut open = Vec::new();
    for at in 0..64 {
        let path = if at % 2 == 0 { "/api/world/stream" } else { "/api/world/events" };
        open.push(Events::open(&daemon, "GET", path, None));
    }
    assert_eq!(daemon.get("/api/world/events").expect(429)["code"], "too_many");
    assert_eq!(daemon.get("/api/world/stream").expect(429)["code"], "too_many");
    open.pop();
    until("a place is free again", || {
        (daemon.open("GET", "/api/world/stream", &[], None).ok()?.0.status == 200).then_some(())
    });
}
