//! Goals over HTTP (spec 1, Goals), in the prompt of their agent, and the tool `goal_update`.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::{Client, Reply as Answer};
use crate::support::model::Model;

const NOBODY: &str = "018f0000-0000-7000-8000-00000000dead";
const GRANTS: &str = "system_prompt = \"You plan.\"\n[capabilities]\ntools = [\"goal_update\"]\n";

fn set(client: &Client, body: &Value) -> Value {
    client.post("/api/goals", body).expect(201)
}

fn id(goal: &Value) -> String {
    text(&goal["id"])
}

fn change(client: &Client, goal: &str, body: &Value) -> Answer {
    client.put(&format!("/api/goals/{goal}"), body)
}

fn read(client: &Client, goal: &str) -> Answer {
    client.get(&format!("/api/goals/{goal}"))
}

fn ids(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(id).collect()
}

#[test]
fn goals_are_set_read_changed_and_survive_a_kill() {
    let mut daemon = Daemon::start();
    let agent = daemon.agent("a");
    let top = set(&daemon, &json!({ "title": "top" }));
    for (key, value) in [("status", json!("pending")), ("agent_id", json!(null)), ("due_at", json!(null))] {
        assert_eq!(top[key], value, "{key}");
    }
    let body = json!({ "title": " part ", "description": "more", "agent_id": agent, "parent_id": top["id"],
        "due_at": "2030-01-02T03:04:05+01:00", "status": "in_progress" });
    let part = set(&daemon, &body);
    assert_eq!((&part["title"], &part["status"]), (&json!("part"), &json!("in_progress")));
    assert_eq!((&part["due_at"], &part["parent_id"]), (&json!("2030-01-02T02:04:05.000Z"), &top["id"]));
    daemon.restart();
    assert_eq!(read(&daemon, &id(&part)).expect(200), part);
    assert_eq!(read(&daemon, &id(&top)).expect(200)["has_children"], true);
    let done = change(&daemon, &id(&part), &json!({ "status": "completed", "note": "easy" })).expect(200);
    assert_eq!(
        (&done["note"], &done["description"], &done["due_at"]),
        (&json!("easy"), &json!("more"), &part["due_at"])
    );
    assert_eq!(done["completed_at"], done["updated_at"]);
    let body = json!({ "title": "new", "due_at": null, "agent_id": null, "parent_id": null, "status": "cancelled" });
    let bare = change(&daemon, &id(&part), &body).expect(200);
    for key in ["due_at", "agent_id", "parent_id", "completed_at"] {
        assert_eq!(bare[key], json!(null), "{key}");
    }
    assert_eq!(change(&daemon, &id(&part), &json!({})).expect(200), bare, "nothing sent, nothing changed");
    daemon.restart();
    assert_eq!(read(&daemon, &id(&part)).expect(200), bare);
}

#[test]
fn deleting_a_goal_deletes_all_below_it() {
    let mut daemon = Daemon::start();
    let top = id(&set(&daemon, &json!({ "title": "top" })));
    let part = |parent: &str| id(&set(&daemon, &json!({ "title": "part", "parent_id": parent })));
    let (left, right) = (part(&top), part(&top));
    let (leaf, other) = (part(&left), id(&set(&daemon, &json!({ "title": "other" }))));
    let list = daemon.get(&format!("/api/goals/{top}/children")).expect(200);
    assert_eq!((ids(&list["children"]), &list["total"]), (vec![left.clone(), right.clone()], &json!(2)));
    let page = daemon.get(&format!("/api/goals/{top}/children?limit=1")).expect(200);
    let next = text(&page["next_cursor"]);
    let rest = daemon.get(&format!("/api/goals/{top}/children?limit=1&cursor={next}")).expect(200);
    assert_eq!(ids(&rest["children"]), [&*right]);
    assert_eq!(daemon.get(&format!("/api/goals/{leaf}/children")).expect(200)["children"], json!([]));
    let gone = daemon.delete(&format!("/api/goals/{top}")).expect(200);
    assert_eq!(gone, json!({ "status": "deleted", "goal_id": top, "deleted": 4 }));
    daemon.restart();
    for goal in [&top, &left, &right, &leaf] {
        read(&daemon, goal).refused(404);
    }
    assert_eq!(ids(&daemon.get("/api/goals").expect(200)["goals"]), [other]);
    daemon.delete(&format!("/api/goals/{top}")).refused(404);
    daemon.get(&format!("/api/goals/{top}/children")).refused(404);
}

#[test]
fn lists_filter_and_page() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let top = id(&set(&daemon, &json!({ "title": "top" })));
    let own = id(&set(&daemon, &json!({ "title": "own", "agent_id": agent, "parent_id": top })));
    let done = id(&set(&daemon, &json!({ "title": "done", "agent_id": agent, "status": "completed" })));
    let list = |query: &str| ids(&daemon.get(&format!("/api/goals{query}")).expect(200)["goals"]);
    assert_eq!(list(""), [top.clone(), own.clone(), done.clone()]);
    assert_eq!(list(&format!("?agent_id={agent}")), [own.clone(), done.clone()]);
    assert_eq!(list("?agent_id=none"), [&*top]);
    assert_eq!(list(&format!("?agent_id={agent}&status=completed")), [&*done]);
    assert_eq!(list(&format!("?parent_id={top}")), [&*own]);
    assert_eq!(list("?parent_id=none"), [top.clone(), done.clone()]);
    assert_eq!(list(&format!("?agent_id={NOBODY}")), [""; 0]);
    let first = daemon.get("/api/goals?limit=2").expect(200);
    assert_eq!((&first["total"], ids(&first["goals"]).len()), (&json!(3), 2));
    assert_eq!(list(&format!("?limit=2&cursor={}", text(&first["next_cursor"]))), [done]);
    for (query, field) in
        [("?agent_id=x", "agent_id"), ("?parent_id=x", "parent_id"), ("?status=x", "status"), ("?cursor=x", "cursor")]
    {
        daemon.get(&format!("/api/goals{query}")).refused_field(400, field);
    }
}

#[test]
fn templates_can_be_set_as_they_are() {
    let daemon = Daemon::start();
    let body = daemon.get("/api/goals/templates").expect(200);
    let templates = body["templates"].as_array().unwrap();
    assert!(templates.len() >= 3 && body["total"] == templates.len());
    for template in templates {
        let goal = json!({ "title": template["title"], "description": template["description"] });
        let top = id(&set(&daemon, &goal));
        for part in template["children"].as_array().unwrap() {
            let body = json!({ "title": part["title"], "description": part["description"], "parent_id": top });
            set(&daemon, &body);
        }
    }
}

#[test]
fn a_bad_goal_names_the_field_and_changes_nothing() {
    let daemon = Daemon::start();
    let top = id(&set(&daemon, &json!({ "title": "top" })));
    let part = id(&set(&daemon, &json!({ "title": "part", "parent_id": top })));
    let before = daemon.get("/api/goals").expect(200);
    for (body, status, field) in [
        (json!({}), 400, "title"),
        (json!({ "title": " " }), 400, "title"),
        (json!({ "title": "t".repeat(257) }), 400, "title"),
        (json!({ "title": "t", "description": "d".repeat(9_000) }), 400, "description"),
        (json!({ "title": "t", "due_at": "tomorrow" }), 400, "due_at"),
        (json!({ "title": "t", "status": "done" }), 400, "status"),
        (json!({ "title": "t", "agent_id": "x" }), 400, "agent_id"),
        (json!({ "title": "t", "agent_id": NOBODY }), 404, "agent_id"),
        (json!({ "title": "t", "parent_id": NOBODY }), 404, "parent_id"),
    ] {
        daemon.post("/api/goals", &body).refused_field(status, field);
    }
    for (body, status, field) in [
        (json!({ "title": "new", "parent_id": part }), 400, "parent_id"),
        (json!({ "title": "new", "parent_id": top }), 400, "parent_id"),
        (json!({ "title": "new", "status": "done" }), 400, "status"),
        (json!({ "title": "new", "due_at": 7 }), 400, "due_at"),
        (json!({ "title": "new", "agent_id": NOBODY }), 404, "agent_id"),
    ] {
        change(&daemon, &top, &body).refused_field(status, field);
    }
    assert_eq!(daemon.get("/api/goals").expect(200), before);
    let mut parent = top;
    for _ in 1..16 {
        parent = id(&set(&daemon, &json!({ "title": "deeper", "parent_id": parent })));
    }
    daemon.post("/api/goals", &json!({ "title": "too deep", "parent_id": parent })).refused_field(400, "parent_id");
}

#[test]
fn a_removed_agent_leaves_its_goals() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let goal = id(&set(&daemon, &json!({ "title": "own", "agent_id": agent })));
    daemon.delete(&format!("/api/agents/{agent}")).expect(200);
    let left = read(&daemon, &goal).expect(200);
    assert_eq!((&left["agent_id"], &left["status"]), (&json!(null), &json!("pending")));
}

/// The system text that the model was given last.
fn system(model: &Model) -> String {
    let request = model.requests().pop().unwrap();
    let first = &request["messages"][0];
    assert_eq!(first["role"], "system", "{first}");
    text(&first["content"])
}

#[test]
fn open_goals_stand_behind_the_system_text_and_the_beginning_is_stable() {
    let model = Model::start();
    let mut daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", GRANTS);
    daemon.say(&agent, "hello");
    assert_eq!(system(&model), "You plan.");
    let later = set(&daemon, &json!({ "title": "tidy up", "agent_id": agent }));
    let soon = set(&daemon, &json!({ "title": "ship it", "agent_id": agent, "due_at": "2030-01-01T00:00:00Z" }));
    set(&daemon, &json!({ "title": "of others" }));
    set(&daemon, &json!({ "title": "long done", "agent_id": agent, "status": "completed" }));
    daemon.say(&agent, "and now?");
    let shown = system(&model);
    assert!(shown.starts_with("You plan.\n\nYour open goals"), "{shown}");
    let at = |goal: &Value| shown.find(&format!("- [{}]", text(&goal["id"]))).unwrap();
    assert!(at(&soon) < at(&later), "what is due comes first: {shown}");
    assert!(shown.contains("ship it (pending, due 2030-01-01T00:00:00.000Z)"), "{shown}");
    assert!(!shown.contains("of others") && !shown.contains("long done"), "{shown}");
    daemon.restart();
    daemon.say(&agent, "still?");
    assert_eq!(system(&model), shown, "the same from call to call, through a restart");
    change(&daemon, &id(&soon), &json!({ "status": "completed" })).expect(200);
    change(&daemon, &id(&later), &json!({ "agent_id": null })).expect(200);
    daemon.say(&agent, "done?");
    assert_eq!(system(&model), "You plan.");
}

#[test]
fn an_agent_changes_its_own_goals_and_sets_new_ones() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", GRANTS);
    let own = id(&set(&daemon, &json!({ "title": "own", "agent_id": agent })));
    let foreign = id(&set(&daemon, &json!({ "title": "foreign" })));
    let ask = |input: Value| model.calls(&daemon, &agent, "goal_update", &input);
    let told = ask(json!({ "goal_id": own, "status": "in_progress", "note": "half way" }));
    assert!(told.contains("\"in_progress\""), "{told}");
    let goal = read(&daemon, &own).expect(200);
    assert_eq!((&goal["status"], &goal["note"]), (&json!("in_progress"), &json!("half way")));
    assert!(system(&model).contains("Note: half way"), "the model sees it in the same turn");
    let made: Value =
        serde_json::from_str(&ask(json!({ "title": "a part", "parent_id": own, "due_at": "2030-01-01T00:00:00Z" })))
            .unwrap();
    let part = read(&daemon, &text(&made["goal_id"])).expect(200);
    assert_eq!((&part["agent_id"], &part["parent_id"]), (&json!(agent), &json!(own)));
    assert!(ask(json!({ "goal_id": foreign, "status": "completed" })).contains("belongs to another agent"));
    assert!(ask(json!({ "title": "below", "parent_id": foreign })).contains("belongs to another agent"));
    assert!(ask(json!({ "status": "completed" })).contains("`goal_id`"));
    assert!(ask(json!({ "goal_id": own, "due_at": "soon" })).contains("`due_at`"));
    assert!(ask(json!({ "goal_id": NOBODY, "status": "completed" })).contains("not found"));
    assert_eq!(read(&daemon, &foreign).expect(200)["status"], "pending");
    assert_eq!(daemon.get("/api/goals").expect(200)["total"], 3);
}

#[test]
fn a_user_with_a_limited_role_leaves_goals_to_others() {
    use agentsvc_components::kernel::limit::{GOAL_DESCRIPTION_BYTES_MAX, GOALS_BYTES_MAX, POOL_SHARES};
    let mut daemon = crate::people::daemon();
    let [(_, ann), (_, bob)] = ["ann", "bob"].map(|name| crate::people::person(&daemon, name, "user"));
    let agent = |client: &Client, name: &str| {
        let manifest = format!("name = \"{name}\"\n[model]\nsystem_prompt = \"x\"\n");
        text(&client.post("/api/agents", &json!({ "manifest_toml": manifest })).expect(201)["agent_id"])
    };
    let (anns, bobs) = (agent(&ann, "anns"), agent(&bob, "bobs"));
    let long = |agent: &str| {
        let description = "d".repeat(GOAL_DESCRIPTION_BYTES_MAX - 1);
        json!({ "title": "t", "description": description, "agent_id": agent })
    };
    // As many at a time as there are threads: each is on the disk before its answer.
    let (threads, most) = (8, GOALS_BYTES_MAX / POOL_SHARES / GOAL_DESCRIPTION_BYTES_MAX);
    let last = std::thread::scope(|scope| {
        let fill = || {
            let set = || id(&set(&ann, &long(&anns)));
            (1..most / threads).for_each(|_| drop(set()));
            set()
        };
        let filling: Vec<_> = (0..threads).map(|_| scope.spawn(fill)).collect();
        let set: Vec<_> = filling.into_iter().map(|thread| thread.join().expect("goals are set")).collect();
        set[0].clone()
    });
    let full = |client: &Client| {
        let refused = client.post("/api/goals", &long(&anns));
        let sentence = refused.refused(429);
        assert_eq!(refused.expect(429)["code"], "goals_full");
        assert!(sentence.contains("a user and the agents of the user"), "{sentence}");
    };
    full(&ann);
    set(&bob, &long(&bobs));
    set(&daemon, &long(&anns));
    // Neither another agent nor the end of this one makes room; a goal less does.
    ann.delete(&format!("/api/agents/{anns}")).expect(200);
    daemon.restart();
    let ann = Client { addr: daemon.addr, ..ann };
    let again = agent(&ann, "again");
    ann.post("/api/goals", &long(&again)).refused(429);
    daemon.delete(&format!("/api/goals/{last}")).expect(200);
    set(&ann, &long(&again));
    ann.post("/api/goals", &long(&again)).refused(429);
}
