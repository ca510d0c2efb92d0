//! Queries over a small world: what they find, what they cost, and what they say about mistakes.

use std::sync::Arc;

use agentsvc_components::AgentId;
use agentsvc_components::event::EventKind;
use agentsvc_components::goal::GoalStatus;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::Manifest;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, ScheduleKind};
use agentsvc_components::trigger::{Filter, On, Pattern};

use super::dialect::KEYWORDS;
use super::{Found, KINDS, Look, Scan, Type, Value, prepare};
use crate::agent::{SpawnAgent, SpawnAgents, StopAgents};
use crate::approval::RequestApproval;
use crate::goal::CreateGoal;
use crate::manifest;
use crate::schedule::{CreateSchedule, NewSchedule};
use crate::session::CreateSession;
use crate::task::PostTask;
use crate::testing::TestWorld;
use crate::trigger::{CreateTrigger, NewTrigger};
use crate::turn::{NewMessage, SendMessage};
use crate::workflow::{CreateWorkflow, NewStep, NewWorkflow, StartRun};

/// Gives an agent sessions and messages, one more than `at` of each.
fn talk(world: &mut TestWorld, agent: AgentId, at: usize) {
    for session in 0..=at {
        let label = (session == 1).then(|| format!("label \"{at}\""));
        world.ask(CreateSession { agent, label }).unwrap();
    }
    for text in 0..=at {
        let message = NewMessage::text(format!("hi {text}"));
        world.begin(SendMessage { agent, session: None, message });
        world.step();
    }
}

/// Six agents with something of everything.
pub(super) fn world() -> TestWorld {
    let mut world = TestWorld::new();
    let agents: Vec<AgentId> =
        ["ops-one", "ops-two", "Web", "writer", "reader", "idle"].into_iter().map(|name| world.spawn(name)).collect();
    for (at, agent) in agents.iter().enumerate().take(4) {
        talk(&mut world, *agent, at);
        let schedule = |kind, rule: &str, enabled| {
            let name = Some(format!("{rule}-{at}").into());
            let (missed, overlap, prompt) = (MissedPolicy::One, OverlapPolicy::Queue, "go".into());
            let rule = rule.into();
            let new = NewSchedule {
                kind,
                agent: *agent,
                name,
                rule,
                timezone: None,
                prompt,
                enabled,
                missed,
                overlap,
                session_mode: None,
            };
            CreateSchedule { new, by_tool: false }
        };
        world.ask(schedule(ScheduleKind::Schedule, "every 10m", true)).unwrap();
        world.ask(schedule(ScheduleKind::Schedule, "every 2d", at % 2 == 0)).unwrap();
        world.ask(schedule(ScheduleKind::Cron, "every 1h", true)).unwrap();
        let pattern = Pattern { on: On::Kind(EventKind::TaskCompleted), filter: Filter::None };
        let trigger = NewTrigger {
            pattern,
            prompt_template: "{{event}}".into(),
            enabled: at != 1,
            max_fires: at as u64,
            cooldown_secs: (at > 1).then_some(60),
            session_mode: None,
            target: agents.get(at + 1).copied().filter(|_| at == 2),
        };
        world.ask(CreateTrigger { agent: *agent, trigger }).unwrap();
        let status = GoalStatus::ALL[at];
        let (title, due_at) = (format!("goal {at}"), (at > 0).then(|| world.now.plus_ms(at as i64 * 3_600_000)));
        let (description, note) = (String::new(), String::new());
        let goal = CreateGoal {
            title,
            description,
            agent: Some(*agent),
            parent: None,
            status,
            due_at,
            note,
            only_below_own: false,
        };
        world.ask(goal).unwrap();
        let ask =
            RequestApproval { agent: *agent, action: "pay".into(), description: "x".into(), payload: "{}".into() };
        world.ask(ask).unwrap();
    }
    work(&mut world, agents[0]);
    world.ask(StopAgents(vec![agents[5]])).unwrap();
    // One model call comes back, so that there are tokens.
    let call = world.next_call();
    world.answer(call.attempt, "hello");
    world.now = world.now.plus_ms(90_000);
    world
}

/// Five tasks, and a workflow with three runs.
fn work(world: &mut TestWorld, poster: AgentId) {
    for at in 0..5 {
        let (title, description, assignee) =
            (format!("task {at}"), String::new(), (at > 2).then(|| "ops-one".to_owned()));
        world.ask(PostTask { title, description, assignee, posted_by: (at > 3).then_some(poster), by: None }).unwrap();
    }
    let step = NewStep { agent_name: Some("reader".to_owned()), ..NewStep::default() };
    let workflow = NewWorkflow { name: "w".to_owned(), description: String::new(), steps: vec![step] };
    let workflow = world.ask(CreateWorkflow(workflow)).unwrap().id;
    for at in 0..3 {
        world.ask(StartRun { workflow, input: format!("{at}") }).unwrap();
    }
}

/// Carries a query out, with looks of so many rows.
pub(super) fn run(world: &mut TestWorld, text: &str, look: usize) -> Found {
    let plan = prepare(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut scan = Box::new(Scan::new(plan).with_looks_of(look));
    for _ in 0..10_000 {
        if scan.is_done() {
            return scan.finish();
        }
        scan = world.ask(Look(scan)).unwrap();
    }
    panic!("{text}: no end");
}

/// The rows as text, a blank between cells.
fn rows(found: &Found) -> Vec<String> {
    let cell = |cell: &Value<'_>| match cell {
        Value::Null => "-".to_owned(),
        Value::Bool(it) => it.to_string(),
        Value::Number(it) => it.to_string(),
        Value::Text(it) => it.to_string(),
        Value::Time(it) => it.to_string(),
        Value::Duration(it) => format!("{it}ms"),
        Value::Id(it) => it.to_string(),
    };
    found.rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn rows_are_filtered_sorted_and_limited() {
    let mut world = world();
    let mut ask = |text: &str| {
        let found = run(&mut world, text, 2);
        assert!(found.complete, "{text}");
        (rows(&found), found.total)
    };
    assert_eq!(ask("agents where state = \"Stopped\" select name"), (vec!["idle".to_owned()], 1));
    assert_eq!(ask("agents where tokens > 10 select name, tokens"), (vec!["ops-one 15".to_owned()], 1));
    assert_eq!(ask("agents sort by name desc limit 2 select name").0, ["writer", "reader"]);
    assert_eq!(ask("agents sort by name desc limit 2 select name").1, 6);
    assert_eq!(
        ask("schedules where next_run < now + 1h and agent.name ~ \"ops-*\" select agent.name, rule").0,
        ["ops-one every 10m", "ops-two every 10m"]
    );
    assert_eq!(ask("schedules where not enabled select name sort by name").0, ["every 2d-1", "every 2d-3"]);
    assert_eq!(ask("goals where due_at is null select title").0, ["goal 0"]);
    assert_eq!(
        ask("goals where due_at - now > 1h and status in ('completed', \"cancelled\") select title").0,
        ["goal 2", "goal 3"]
    );
    assert_eq!(ask("agents where name contains 'WEB' select name").0, ["Web"]);
    assert_eq!(ask("sessions where label = 'label \"1\"' select agent.name, messages").0.len(), 1);
    assert_eq!(ask("tasks where assignee is not null sort by title desc select title, posted_by").0.len(), 2);
}

#[test]
fn rows_are_grouped_and_summed() {
    let mut world = world();
    let mut ask = |text: &str| rows(&run(&mut world, text, 3));
    assert_eq!(ask("agents group by state count"), ["Running 5", "Stopped 1"]);
    assert_eq!(ask("agents count"), ["6"]);
    assert_eq!(ask("agents where name = 'nobody' select count, sum(tokens), avg(tokens), min(name)"), ["0 0 - -"]);
    assert_eq!(ask("agents select sum(tokens), max(name), count(parent_id)"), ["15 writer 0"]);
    assert_eq!(ask("triggers group by enabled sort by count desc"), ["true 3", "false 1"]);
    assert_eq!(ask("triggers select avg(cooldown)"), ["60000ms"]);
    assert_eq!(
        ask("cron_jobs group by agent.name select count, agent.name sort by agent.name limit 2"),
        ["1 Web", "1 ops-one"]
    );
    let found = run(&mut world, "turns group by state count", 2);
    assert_eq!((found.columns[0].name.as_str(), found.columns[1].name.as_str()), ("state", "count"));
    let open: f64 = found.rows.iter().map(|row| if let Value::Number(count) = row[1] { count } else { 0.0 }).sum();
    assert_eq!(open, world.engine.stats().turns_open as f64);
}

#[test]
fn an_index_is_used_where_there_is_one() {
    let mut world = world();
    let id = |world: &mut TestWorld, text: &str| rows(&run(world, text, 100))[0].clone();
    let agent = id(&mut world, "agents where name = \"ops-two\" select id");
    for (text, looked_at) in [
        (format!("agents where id = \"{agent}\""), 1),
        (format!("agents where tokens < 100 and (id = \"{agent}\")"), 1),
        (format!("agents where id in (\"{agent}\", '{agent}', \"00000000-0000-0000-0000-000000000000\")"), 1),
        ("agents where name = \"ops-two\"".to_owned(), 1),
        ("agents where name = \"nobody\"".to_owned(), 0),
        (format!("schedules where agent_id = \"{agent}\" and enabled"), 2),
        (format!("turns where \"{agent}\" = agent.id"), 2),
        ("sessions where agent.name = \"ops-two\"".to_owned(), 3),
        (format!("budgets where agent_id = \"{agent}\""), 1),
        (format!("agents where id = \"{agent}\" or name = \"idle\""), 6),
        (format!("agents where not id = \"{agent}\""), 6),
        (format!("tasks where claimed.id = \"{agent}\""), 5),
    ] {
        let found = run(&mut world, &text, 1);
        assert_eq!((found.looked_at, found.complete), (looked_at, true), "{text}");
    }
    let run_of = id(&mut world, "runs select workflow_id limit 1");
    assert_eq!(run(&mut world, &format!("runs where workflow_id = '{run_of}'"), 1).looked_at, 3);
}

#[test]
fn mistakes_name_their_place_and_what_was_meant() {
    for (text, column, part) in [
        ("", 1, "a kind, such as"),
        ("agent", 1, "unknown kind `agent`; did you mean `agents`?"),
        ("agents where toknes > 1", 14, "unknown field `toknes` of agents; did you mean `tokens`?"),
        ("agents where state = \"running\"", 22, "did you mean `Running`?"),
        ("agents where name > 5", 21, "a text cannot be compared with a number"),
        ("agents where name = now", 21, "a text cannot be compared with a time"),
        ("agents where now", 17, "a comparison"),
        ("agents where tokens", 14, "is not a condition"),
        ("agents where tokens ~ \"x\"", 14, "needs text"),
        ("agents where name ~ x", 21, "a quoted glob"),
        ("agents where (name = \"a\"", 25, "expected `)`; the query ends here"),
        ("agents where id = \"7\"", 19, "`7` is not a UUID"),
        ("agents where created_at > \"yesterday\"", 27, "is not a timestamp"),
        ("agents where name = null", 21, "is null"),
        ("agents where name + 1 = 2", 21, "cannot be added"),
        ("turns where agent = \"x\"", 13, "use `agent.id`"),
        ("turns where agnet.name = \"x\"", 13, "did you mean `agent`?"),
        ("agents where parent.parent.parent.parent.name = \"x\"", 14, "at most 3"),
        ("agents limit 1.5", 14, "limit must be a whole number"),
        ("agents limit 10001", 14, "limit must be a whole number"),
        ("agents select sum(name)", 15, "needs a number or a duration"),
        ("agents group by state select name", 30, "neither an aggregate nor listed in"),
        ("agents group by state sort by name", 31, "`name` is not one"),
        ("agents sort by count", 16, "is an aggregate"),
        ("agents group by state select *", 30, "cannot be used with"),
        ("agents where enabled = 1", 14, "unknown field `enabled`"),
        ("agents where name = 'a' where name = 'b'", 25, "duplicate `where`"),
        ("agents limit 1 limit 2", 16, "duplicate"),
        ("agents wehre name = 'x'", 8, "did you mean `where`?"),
        ("agents where name = 'x' nad 1 = 1", 25, "did you mean `and`?"),
    ] {
        let error = prepare(text).expect_err(text);
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
        assert!(error.to_string().starts_with(&format!("column {column}: ")));
    }
    let deep = format!("agents where {}enabled{}", "(".repeat(500), ")".repeat(500));
    assert!(prepare(&deep).unwrap_err().message.contains("conditions"));
    let many = format!("agents where tokens in ({})", vec!["1"; limit::QUERY_CHOICES_MAX + 1].join(", "));
    assert!(prepare(&many).unwrap_err().message.contains("values"));
    let wide = format!("agents select {}", vec!["name"; limit::QUERY_COLUMNS_MAX + 1].join(", "));
    assert!(prepare(&wide).unwrap_err().message.contains("more than 64"));
}

#[test]
fn the_table_is_sound() {
    let mut names = std::collections::BTreeSet::new();
    let mut world = world();
    for kind in KINDS {
        assert!(names.insert(kind.name) && !kind.fields.is_empty());
        let mut own = std::collections::BTreeSet::new();
        let all = kind.fields.iter().map(|field| field.name).chain(kind.relations.iter().map(|relation| relation.name));
        for name in all.chain([kind.name]) {
            assert!(!KEYWORDS.contains(&name), "{name} is a word of the language");
            assert!(own.insert(name), "{name} of {} is there twice", kind.name);
        }
        // Each field has values of its type; each way leads somewhere.
        let found = run(&mut world, &format!("{} select *", kind.name), 7);
        for (column, field) in kind.fields.iter().enumerate() {
            for row in &found.rows {
                let fits = match (&row[column], field.kind) {
                    (Value::Null, _) => true,
                    (Value::Text(word), Type::Word(words)) => words.contains(&word.as_ref()),
                    (Value::Bool(_), Type::Bool)
                    | (Value::Number(_), Type::Number)
                    | (Value::Text(_), Type::Text)
                    | (Value::Time(_), Type::Time)
                    | (Value::Duration(_), Type::Duration)
                    | (Value::Id(_), Type::Id) => true,
                    _ => false,
                };
                assert!(fits, "{}.{}: {:?}", kind.name, field.name, row[column]);
            }
        }
        assert!(run(&mut world, kind.name, 7).columns.len() == kind.shown.len());
        for relation in kind.relations {
            let field = if relation.to.field("id").is_some() { "id" } else { "name" };
            run(&mut world, &format!("{} select {}.{field}", kind.name, relation.name), 7);
        }
    }
    for (kind, least) in [
        ("agents", 6),
        ("sessions", 10),
        ("turns", 5),
        ("triggers", 4),
        ("schedules", 8),
        ("cron_jobs", 4),
        ("goals", 4),
        ("tasks", 5),
        ("workflows", 1),
        ("runs", 3),
        ("approvals", 4),
        ("budgets", 7),
        ("manifests", 1),
        ("providers", 1),
        ("models", 1),
    ] {
        let found = run(&mut world, kind, 2);
        assert!(found.rows.len() >= least, "{kind}: {}", found.rows.len());
    }
}

/// A world of many agents, each of a manifest of its own.
fn crowd(count: usize) -> TestWorld {
    crowd_with(count, "")
}

/// The same with this description.
pub(super) fn crowd_with(count: usize, description: &str) -> TestWorld {
    let mut world = TestWorld::new();
    let agent = |at: usize| {
        let description = description.into();
        let manifest = Manifest { author: at.to_string().into(), description, ..Manifest::default() };
        let hash = manifest::hash(&manifest);
        SpawnAgent { name: format!("agent-{at:06}").into(), manifest, hash, text: String::new() }
    };
    for batch in (0..count).collect::<Vec<_>>().chunks(2_000) {
        world.ask(SpawnAgents(batch.iter().map(|at| agent(*at)).collect())).unwrap();
    }
    world
}

#[test]
fn a_look_is_short_and_groups_are_bounded() {
    let mut world = crowd(limit::QUERY_GROUPS_MAX + 5);
    let plan = prepare("agents group by name limit 3").unwrap();
    let mut scan = Box::new(Scan::new(Arc::clone(&plan)));
    let mut looks = 0;
    while !scan.is_done() {
        scan = world.ask(Look(scan)).unwrap();
        looks += 1;
    }
    assert_eq!(looks, limit::QUERY_GROUPS_MAX.div_ceil(limit::QUERY_LOOK_MAX));
    let found = scan.finish();
    assert_eq!((found.rows.len(), found.total), (3, limit::QUERY_GROUPS_MAX as u64));
    assert!(!found.complete && found.looked_at == limit::QUERY_GROUPS_MAX as u64 + 5);
    // Manifests stand in no order, and are seen once each nevertheless.
    let found = run(&mut world, "manifests count", 999);
    assert_eq!((rows(&found)[0].as_str(), found.complete), ("10005", true));
}

#[test]
fn texts_among_the_figures_of_groups_are_bounded() {
    let mut world = crowd_with(3_000, &"x".repeat(limit::QUERY_CELL_BYTES_MAX));
    let figures = ["min(description), max(description)"; 4].join(", ");
    let found = run(&mut world, &format!("agents group by name select name, {figures} limit 10000"), 1_000);
    let bytes = |cell: &Value<'_>| if let Value::Text(text) = cell { text.len() } else { 0 };
    let kept: usize = found.rows.iter().flatten().map(bytes).sum();
    assert!(kept <= limit::QUERY_KEPT_BYTES_MAX, "{kept}");
    assert!(!found.complete && found.rows.len() > 1_000 && found.looked_at == 3_000, "{}", found.rows.len());
    let whole = found.rows.iter().filter(|row| row.iter().all(|cell| !cell.is_null())).count();
    assert!(whole + 1 >= found.rows.len(), "what is left out are groups, not figures");
}

#[test]
fn a_schedule_that_is_behind_has_a_next_run_all_the_same() {
    let mut world = TestWorld::new();
    let agent = world.spawn("late");
    let new = NewSchedule {
        kind: ScheduleKind::Schedule,
        agent,
        name: None,
        rule: "* * * * * *".into(),
        timezone: None,
        prompt: "go".into(),
        enabled: true,
        missed: MissedPolicy::All,
        overlap: OverlapPolicy::Parallel,
        session_mode: None,
    };
    world.ask(CreateSchedule { new, by_tool: false }).unwrap();
    world.now = world.now.plus_ms(10 * 86_400_000);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
    assert!(world.engine.has_work(), "the step's fires did not do for all of its slots");
    let found = run(&mut world, "schedules where next_run <= now select next_run", 10);
    assert_eq!(found.total, 1);
}

#[test]
fn what_goes_between_two_looks_is_left_out_and_the_rest_is_seen_once() {
    let mut world = world();
    let mut scan = Box::new(Scan::new(prepare("agents select name").unwrap()).with_looks_of(2));
    scan = world.ask(Look(scan)).unwrap();
    let id = run(&mut world, "agents where name = 'reader' select id", 9);
    let Value::Id(id) = id.rows[0][0] else { panic!("an id") };
    world.ask(crate::agent::RemoveAgents(vec![AgentId(id)])).unwrap();
    world.spawn("late");
    while !scan.is_done() {
        scan = world.ask(Look(scan)).unwrap();
    }
    assert_eq!(rows(&scan.finish()), ["ops-one", "ops-two", "Web", "writer", "idle", "late"]);
}

#[test]
fn a_query_begins_anew_when_another_world_takes_the_place_of_the_one_that_it_looked_at() {
    let mut world = world();
    let text = "sessions select id, agent.name sort by id";
    let mut scan = Box::new(Scan::new(prepare(text).unwrap()).with_looks_of(5));
    scan = world.ask(Look(scan)).unwrap();
    world.restart();
    while !scan.is_done() {
        scan = world.ask(Look(scan)).unwrap();
    }
    let (found, whole) = (scan.finish(), run(&mut world, text, 100));
    assert_eq!((rows(&found), found.total, found.complete), (rows(&whole), whole.total, true));
    assert_eq!(found.looked_at, whole.looked_at);
}

#[test]
fn an_unfinished_query_says_so() {
    let mut world = world();
    let scan = Box::new(Scan::new(prepare("agents").unwrap()).with_looks_of(2));
    let found = world.ask(Look(scan)).unwrap().finish();
    assert!(!found.complete && found.total == 2);
}
