//! The task queue over HTTP (spec 2, Task queue), and the tools of agents.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::{Client, Reply as Answer};
use crate::support::model::Model;
use crate::support::until;

const NOBODY: &str = "018f0000-0000-7000-8000-00000000dead";
const GRANTS: &str = "[capabilities]\ntools = [\"task_*\"]\n";

fn post(client: &Client, body: &Value) -> String {
    let task = client.post("/api/tasks", body).expect(201);
    assert_eq!((&task["status"], &task["id"]), (&json!("pending"), &task["task_id"]));
    text(&task["id"])
}

fn read(client: &Client, task: &str) -> Value {
    client.get(&format!("/api/tasks/{task}")).expect(200)
}

fn claim(client: &Client, task: &str, agent: &str) -> Answer {
    client.post(&format!("/api/tasks/{task}/claim"), &json!({ "agent_id": agent }))
}

fn complete(client: &Client, task: &str, body: &Value) -> Answer {
    client.post(&format!("/api/tasks/{task}/complete"), body)
}

fn fail(client: &Client, task: &str, body: &Value) -> Answer {
    client.post(&format!("/api/tasks/{task}/fail"), body)
}

/// Refused with 409 and this code.
#[track_caller]
fn conflict(answer: &Answer, code: &str) {
    answer.refused(409);
    assert_eq!(answer.expect(409)["code"], code);
}

#[test]
fn a_task_goes_its_way_and_survives_kills() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("a");
    let task = post(&daemon, &json!({ "title": "count", "description": "the sheep", "assignee": "a" }));
    daemon.restart();
    let posted = read(&daemon, &task);
    assert_eq!((&posted["assignee"], &posted["attempts"]), (&json!("a"), &json!(0)));
    let claimed = claim(&daemon, &task, &agent).expect(200);
    assert_eq!((&claimed["status"], &claimed["claimed_by"]), (&json!("running"), &json!(agent)));
    daemon.restart();
    assert_eq!(read(&daemon, &task), claimed);
    let failed = fail(&daemon, &task, &json!({ "error": "they ran" })).expect(200);
    assert_eq!((&failed["status"], &failed["error"]), (&json!("failed"), &json!("they ran")));
    assert_eq!(failed["result"], json!(null));
    let again = daemon.poke(&format!("/api/tasks/{task}/retry")).expect(200);
    assert_eq!(
        (&again["status"], &again["error"], &again["claimed_by"]),
        (&json!("pending"), &json!(null), &json!(null))
    );
    claim(&daemon, &task, &agent).expect(200);
    let done = complete(&daemon, &task, &json!({ "result": "seven" })).expect(200);
    assert_eq!(
        (&done["status"], &done["result"], &done["attempts"]),
        (&json!("completed"), &json!("seven"), &json!(2))
    );
    daemon.restart();
    assert_eq!(read(&daemon, &task), done);
    let queue = daemon.get("/api/queue/status").expect(200);
    assert_eq!(queue["throughput"]["completed_last_hour"], 1, "the throughput comes back with the tasks");
}

#[test]
fn what_a_state_does_not_allow_is_409_and_changes_nothing() {
    let daemon = Daemon::start();
    let (a, b) = (daemon.agent("a"), daemon.agent("b"));
    let task = post(&daemon, &json!({ "title": "t", "assignee": a }));
    let before = read(&daemon, &task);
    conflict(&claim(&daemon, &task, &b), "task_assigned");
    conflict(&complete(&daemon, &task, &json!({})), "task_not_running");
    conflict(&fail(&daemon, &task, &json!({})), "task_not_running");
    conflict(&daemon.poke(&format!("/api/tasks/{task}/retry")), "task_not_failed");
    assert_eq!(read(&daemon, &task), before);
    claim(&daemon, &task, &a).expect(200);
    conflict(&claim(&daemon, &task, &a), "task_not_pending");
    conflict(&complete(&daemon, &task, &json!({ "agent_id": b })), "task_not_yours");
    daemon.poke(&format!("/api/tasks/{task}/complete")).expect(200);
    conflict(&fail(&daemon, &task, &json!({})), "task_not_running");
}

#[test]
fn many_claim_one_task_and_one_has_it() {
    let daemon = Daemon::start();
    let agents: Vec<String> = (0..8).map(|n| daemon.agent(&format!("a{n}"))).collect();
    let task = post(&daemon, &json!({ "title": "t" }));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let claims: Vec<_> = agents
            .iter()
            .map(|agent| {
                let (client, task) = (daemon.client(), &task);
                scope.spawn(move || claim(&client, task, agent).status)
            })
            .collect();
        claims.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 7, "{statuses:?}");
    assert_eq!(read(&daemon, &task)["attempts"], 1);
}

#[test]
fn counts_lists_and_deletion() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let tasks: Vec<String> = (0..5).map(|n| post(&daemon, &json!({ "title": format!("t{n}") }))).collect();
    let mine = post(&daemon, &json!({ "title": "mine", "assignee": "a" }));
    for task in &tasks[..3] {
        claim(&daemon, task, &agent).expect(200);
    }
    complete(&daemon, &tasks[0], &json!({})).expect(200);
    fail(&daemon, &tasks[1], &json!({})).expect(200);
    let status = daemon.get("/api/tasks/status").expect(200);
    let counts = json!({ "pending": 3, "running": 1, "completed": 1, "failed": 1, "cancelled": 0, "total": 6 });
    assert_eq!(status, counts);
    let queue = daemon.get("/api/queue/status").expect(200);
    assert_eq!((&queue["depth"], &queue["running"]), (&json!(3), &json!(1)));
    assert_eq!(queue["oldest_pending_at"], read(&daemon, &tasks[3])["created_at"]);
    let rates = json!({ "completed_last_minute": 1, "completed_last_hour": 1,
        "failed_last_minute": 1, "failed_last_hour": 1 });
    assert_eq!(queue["throughput"], rates);
    let list = |query: &str| {
        let tasks = daemon.get(&format!("/api/tasks{query}")).expect(200)["tasks"].clone();
        tasks.as_array().unwrap().iter().map(|task| text(&task["id"])).collect::<Vec<_>>()
    };
    assert_eq!(list("").len(), 6);
    assert_eq!(list("?status=running"), [&*tasks[2]]);
    assert_eq!(list("?assignee=a"), [&*mine]);
    assert_eq!(list("?assignee=&status=pending"), tasks[3..]);
    assert_eq!(daemon.get("/api/tasks/list").expect(200), daemon.get("/api/tasks").expect(200));
    let page = daemon.get("/api/tasks/list?limit=4").expect(200);
    assert_eq!((page["tasks"].as_array().unwrap().len(), &page["total"]), (4, &json!(6)));
    assert_eq!(list(&format!("?limit=4&cursor={}", text(&page["next_cursor"]))), [tasks[4].clone(), mine.clone()]);
    let delete = |task: &str| daemon.delete(&format!("/api/tasks/{task}"));
    assert_eq!(delete(&mine).expect(200), json!({ "status": "cancelled", "task_id": mine }));
    assert_eq!(delete(&tasks[2]).expect(200)["status"], "cancelled");
    assert_eq!(delete(&tasks[0]).expect(200)["status"], "removed");
    delete(&mine).refused(404);
    complete(&daemon, &tasks[2], &json!({})).refused(404);
    let status = daemon.get("/api/tasks/status").expect(200);
    assert_eq!((&status["total"], &status["cancelled"]), (&json!(3), &json!(2)));
    let metrics = daemon.get("/api/metrics").text();
    for line in [
        "agentsvc_tasks_open{state=\"pending\"} 2",
        "agentsvc_tasks_posted_total 6",
        "agentsvc_tasks_total{end=\"cancelled\"} 2",
    ] {
        until("the metrics follow", || daemon.get("/api/metrics").text().contains(line).then_some(()));
    }
    assert!(metrics.contains("agentsvc_task_claims_expired_total 0"), "{metrics}");
}

#[test]
fn bad_input_names_the_field() {
    let daemon = Daemon::start();
    let task = post(&daemon, &json!({ "title": "t" }));
    for (body, field) in [
        (json!({}), "title"),
        (json!({ "title": " " }), "title"),
        (json!({ "title": "t".repeat(257) }), "title"),
        (json!({ "title": "t", "description": "d".repeat(9_000) }), "description"),
        (json!({ "title": "t", "assignee": "a".repeat(129) }), "assignee"),
        (json!({ "title": "t", "assignee": 7 }), "assignee"),
    ] {
        daemon.post("/api/tasks", &body).refused_field(400, field);
    }
    daemon.post(&format!("/api/tasks/{task}/claim"), &json!({})).refused_field(400, "agent_id");
    claim(&daemon, &task, NOBODY).refused_field(404, "agent_id");
    claim(&daemon, NOBODY, NOBODY).refused(404);
    claim(&daemon, &task, &daemon.agent("a")).expect(200);
    complete(&daemon, &task, &json!({ "result": "r".repeat(9_000) })).refused_field(400, "result");
    fail(&daemon, &task, &json!({ "error": "r".repeat(9_000) })).refused_field(400, "error");
    daemon.get("/api/tasks?status=done").refused_field(400, "status");
    daemon.get("/api/tasks/list?cursor=x").refused_field(400, "cursor");
    daemon.get("/api/tasks/nonsense").refused_field(400, "id");
    assert_eq!(read(&daemon, &task)["status"], "running");
}

#[test]
fn a_claim_that_nobody_ends_is_given_up() {
    let daemon = Daemon::with("[queue]\nclaim_timeout_secs = 1\n");
    let agent = daemon.agent("a");
    let task = post(&daemon, &json!({ "title": "t" }));
    claim(&daemon, &task, &agent).expect(200);
    until("the claim is given up", || (read(&daemon, &task)["status"] == "pending").then_some(()));
    let released = read(&daemon, &task);
    assert_eq!((&released["claimed_by"], &released["attempts"]), (&json!(null), &json!(1)));
    assert_eq!(daemon.get("/api/queue/status").expect(200)["claims_expired"], 1);
    conflict(&complete(&daemon, &task, &json!({ "agent_id": agent })), "task_not_running");
}

#[test]
fn a_removed_agent_gives_its_claims_back() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let task = post(&daemon, &json!({ "title": "t", "assignee": "a" }));
    claim(&daemon, &task, &agent).expect(200);
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    let left = read(&daemon, &task);
    assert_eq!((&left["status"], &left["assignee"]), (&json!("pending"), &json!("a")));
    let heir = daemon.agent("a");
    claim(&daemon, &task, &heir).expect(200);
}

#[test]
fn agents_post_take_and_end_tasks() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let (boss, worker) = (daemon.agent_with("boss", GRANTS), daemon.agent_with("worker", GRANTS));
    let ask = |agent: &str, tool: &str, input: Value| model.calls(&daemon, agent, tool, &input);
    let posted: Value = serde_json::from_str(&ask(
        &boss,
        "task_post",
        json!({ "title": "count", "description": "the sheep", "assignee": "worker" }),
    ))
    .unwrap();
    let task = text(&posted["task_id"]);
    assert_eq!(read(&daemon, &task)["posted_by"], json!(boss));
    assert!(ask(&boss, "task_claim", json!({})).contains("No task is available"), "it is the worker's");
    assert!(ask(&boss, "task_claim", json!({ "task_id": task })).contains("assigned to another agent"));
    let taken = ask(&worker, "task_claim", json!({}));
    assert!(taken.contains(&task) && taken.contains("the sheep"), "{taken}");
    assert!(ask(&boss, "task_complete", json!({ "task_id": task, "result": "x" })).contains("another agent"));
    let both = json!({ "task_id": task, "result": "x", "error": "y" });
    assert!(ask(&worker, "task_complete", both).contains("not both"));
    assert!(ask(&worker, "task_complete", json!({ "task_id": task, "result": "seven" })).contains("\"completed\""));
    let seen = ask(&boss, "task_status", json!({ "task_id": task }));
    assert!(seen.contains("seven") && seen.contains(&worker), "{seen}");
    let free = post(&daemon, &json!({ "title": "free" }));
    assert!(ask(&worker, "task_claim", json!({ "task_id": free })).contains("\"running\""));
    assert!(ask(&worker, "task_complete", json!({ "task_id": free, "error": "no idea" })).contains("\"failed\""));
    assert_eq!(read(&daemon, &free)["error"], "no idea");
    let counts: Value = serde_json::from_str(&ask(&boss, "task_status", json!({}))).unwrap();
    assert_eq!((&counts["pending"], &counts["completed"], &counts["failed"]), (&json!(0), &json!(1), &json!(1)));
    let listed: Value = serde_json::from_str(&ask(&boss, "task_list", json!({ "status": "failed" }))).unwrap();
    assert_eq!((&listed["tasks"][0]["task_id"], &listed["total"]), (&json!(free), &json!(2)));
    let page: Value = serde_json::from_str(&ask(&boss, "task_list", json!({ "limit": 1 }))).unwrap();
    assert_eq!((&page["tasks"][0]["task_id"], &page["next"]), (&json!(task), &json!(task)));
    assert!(ask(&boss, "task_post", json!({ "title": "" })).contains("title must not be empty"));
}

#[test]
fn an_agent_without_the_grant_is_told_so() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"system_time\"]\n");
    let told = model.calls(&daemon, &agent, "task_post", &json!({ "title": "t" }));
    assert!(told.contains("is not allowed to call the tool"), "{told}");
    assert_eq!(daemon.get("/api/tasks").expect(200)["total"], 0);
}
