//! What belongs to agents of others is hidden from users with a limited role, and from their agents.

use agentsvc_components::event::Event;
use agentsvc_components::goal::Goal;
use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::scope::Role;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, ScheduleKind};
use agentsvc_components::task::Task;
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::turn::outcome::{ModelEnd, ModelOutcome};
use agentsvc_components::workflow::{StepAgent, Workflow};
use agentsvc_components::{Actor, AgentId, Refusal, RefusalKind, TaskId, TurnId, WorkflowId};
use serde_json::json;
use uuid::Uuid;

use super::{AgentPatch, CloneAgent, KillDescendant, ListAgents, RemoveAgents, SetOwner, UpdateAgent};
use crate::goal::{CreateGoal, GoalFilter, GoalPatch, GoalView, ListGoals, UpdateGoal};
use crate::kernel::entities::{Get, List, Remove};
use crate::people::{CreateUser, UpdateUser, UserFields};
use crate::schedule::{
    CreateSchedule, GetSchedule, ListSchedules, NewSchedule, RemoveSchedule, RunSchedule, SchedulePatch, UpdateSchedule,
};
use crate::session::{GetSession, ListSessions, RemoveSession, SetLabel};
use crate::task::{ClaimNextTask, ClaimTask, EndTask, GetQueueStatus, ListTasks, PostTask, RetryTask, TaskView};
use crate::testing::{TestWorld, answer, spawn_command, tool_call, turn_of};
use crate::trigger::{
    CreateTrigger, DeleteTrigger, GetTrigger, GetTriggerFires, ListTriggers, NewTrigger, TellEvents, TriggerPatch,
    UpdateTrigger,
};
use crate::turn::{NewMessage, PostMessage, SendToAgent};
use crate::workflow::{
    CreateWorkflow, GetRun, ListRuns, ListWorkflows, NewStep, NewWorkflow, RunWorkflow, StartRun, UpdateWorkflow,
    WorkflowChoice, WorkflowPatch, WorkflowView,
};

/// Ann and Bob, each with an agent of their own, and an agent of the installation.
struct Home {
    world: TestWorld,
    ann: UserId,
    of_ann: AgentId,
    of_bob: AgentId,
    of_all: AgentId,
}

fn key_of(user: UserId) -> Actor {
    Actor::Key { key: KeyId(Uuid::from_u128(9)), user: Some(user) }
}

fn home() -> Home {
    let mut world = TestWorld::new();
    let of_all = world.spawn("shared");
    let mut person = |name: &str| {
        let fields = UserFields { name: Some(name.into()), role: Some(Role::User), channel_bindings: None };
        let user = world.ask(CreateUser(fields)).unwrap().id;
        world.actor = key_of(user);
        let agent = world.ask(spawn_command(&format!("{name}s"))).unwrap().agent;
        world.actor = Actor::Api;
        (user, agent)
    };
    let ((ann, of_ann), (_, of_bob)) = (person("ann"), person("bob"));
    Home { world, ann, of_ann, of_bob, of_all }
}

impl Home {
    /// Who is limited to what is Ann's: her key, and her agent.
    fn limited(&self) -> [Actor; 2] {
        [key_of(self.ann), Actor::Agent { agent: self.of_ann, turn: TurnId(Uuid::nil()) }]
    }

    fn others(&self) -> [AgentId; 2] {
        [self.of_bob, self.of_all]
    }
}

fn hidden<T: std::fmt::Debug>(result: Result<T, Refusal>) {
    assert_eq!(result.unwrap_err().kind, RefusalKind::NotFound);
}

fn schedule(agent: AgentId) -> CreateSchedule {
    let new = NewSchedule {
        kind: ScheduleKind::Schedule,
        agent,
        name: None,
        rule: "every 1h".into(),
        timezone: None,
        prompt: "act".into(),
        enabled: true,
        missed: MissedPolicy::One,
        overlap: OverlapPolicy::Queue,
        session_mode: None,
    };
    CreateSchedule { new, by_tool: false }
}

#[test]
fn schedules_of_others_are_hidden() {
    let mut home = home();
    let kind = ScheduleKind::Schedule;
    let foreign = home.others().map(|agent| home.world.ask(schedule(agent)).unwrap().id);
    let own = home.world.ask(schedule(home.of_ann)).unwrap().id;
    for actor in home.limited() {
        home.world.actor = actor;
        for id in foreign {
            hidden(home.world.ask(GetSchedule { kind, id }));
            hidden(home.world.ask(RunSchedule { kind, id }));
            hidden(home.world.ask(RemoveSchedule { kind, id, owner: None }));
            hidden(home.world.ask(UpdateSchedule { kind, id, patch: SchedulePatch::default() }));
        }
        for agent in home.others() {
            hidden(home.world.ask(schedule(agent)));
            let patch = SchedulePatch { agent: Some(agent), ..SchedulePatch::default() };
            hidden(home.world.ask(UpdateSchedule { kind, id: own, patch }));
            hidden(home.world.ask(ListSchedules { kind, agent: Some(agent), after: None, limit: 9 }));
        }
        let list = home.world.ask(ListSchedules { kind, agent: None, after: None, limit: 9 }).unwrap();
        assert_eq!((list.items.iter().map(|it| it.id).collect::<Vec<_>>(), list.total), (vec![own], 1));
        home.world.ask(GetSchedule { kind, id: own }).unwrap();
    }
    home.world.actor = key_of(home.ann);
    home.world.ask(schedule(home.of_ann)).unwrap();
}

#[test]
fn a_change_of_the_role_holds_at_once() {
    let mut home = home();
    let kind = ScheduleKind::Schedule;
    let foreign = home.world.ask(schedule(home.of_bob)).unwrap().id;
    let role = |role| UserFields { role: Some(role), ..UserFields::default() };
    for (new, is_hidden) in [(Role::Admin, false), (Role::Viewer, true), (Role::Owner, false), (Role::User, true)] {
        home.world.actor = Actor::Api;
        home.world.ask(UpdateUser { user: home.ann, fields: role(new) }).unwrap();
        for actor in home.limited() {
            home.world.actor = actor;
            assert_eq!(home.world.ask(GetSchedule { kind, id: foreign }).is_err(), is_hidden, "{new:?}");
        }
    }
}

fn trigger(pattern: &serde_json::Value, target: Option<AgentId>) -> NewTrigger {
    NewTrigger {
        pattern: crate::event::parse_pattern(pattern).unwrap(),
        prompt_template: "Look: {{event}}".into(),
        enabled: true,
        max_fires: 0,
        cooldown_secs: Some(0),
        session_mode: None,
        target,
    }
}

#[test]
fn triggers_of_others_are_hidden_and_so_are_events_about_their_agents() {
    let mut home = home();
    let all = json!({ "all": {} });
    let make = |agent, target| CreateTrigger { agent, trigger: trigger(&all, target) };
    let foreign = home.others().map(|agent| home.world.ask(make(agent, None)).unwrap().id);
    home.world.actor = key_of(home.ann);
    let own = home.world.ask(make(home.of_ann, None)).unwrap().id;
    for actor in home.limited() {
        home.world.actor = actor;
        for id in foreign {
            hidden(home.world.ask(GetTrigger(id)));
            hidden(home.world.ask(GetTriggerFires(id)));
            hidden(home.world.ask(DeleteTrigger(id)));
            hidden(home.world.ask(UpdateTrigger { trigger: id, patch: TriggerPatch::default() }));
        }
        for agent in home.others() {
            hidden(home.world.ask(make(agent, None)));
            hidden(home.world.ask(make(home.of_ann, Some(agent))));
            let patch = TriggerPatch { target: Some(Some(agent)), ..TriggerPatch::default() };
            hidden(home.world.ask(UpdateTrigger { trigger: own, patch }));
        }
        let list = home.world.ask(ListTriggers { limit: 9, ..ListTriggers::default() }).unwrap();
        assert_eq!((list.items.iter().map(|it| it.id).collect::<Vec<_>>(), list.total), (vec![own], None));
    }
    home.world.actor = Actor::Api;
    let event = |agent| Event::Custom { event_type: "ping".into(), agent, payload: "1".into(), by: None };
    for (agent, matches) in [(None, 0), (Some(home.of_bob), 0), (Some(home.of_ann), 1)] {
        home.world.ask(TellEvents(vec![event(agent)])).unwrap();
        let log = home.world.ask(GetTriggerFires(own)).unwrap().log;
        assert_eq!(usize::from(log.last_matched_at.is_some()), matches, "{agent:?}");
    }
}

#[test]
fn goals_of_others_are_hidden() {
    let mut home = home();
    let goal = |agent| CreateGoal { title: "g".into(), agent, ..CreateGoal::default() };
    let owners = [Some(home.of_bob), Some(home.of_all), None];
    let foreign = owners.map(|agent| home.world.ask(goal(agent)).unwrap().id);
    home.world.actor = key_of(home.ann);
    let own = home.world.ask(goal(Some(home.of_ann))).unwrap().id;
    for actor in home.limited() {
        home.world.actor = actor;
        for id in foreign {
            hidden(home.world.ask(Get::<GoalView>(id)));
            hidden(home.world.ask(Remove::<Goal>(id)));
            hidden(home.world.ask(UpdateGoal { goal: id, patch: GoalPatch::default(), only_of: None }));
            let below = CreateGoal { parent: Some(id), ..goal(Some(home.of_ann)) };
            hidden(home.world.ask(below));
        }
        for agent in home.others() {
            hidden(home.world.ask(goal(Some(agent))));
            let patch = GoalPatch { agent: Some(Some(agent)), ..GoalPatch::default() };
            hidden(home.world.ask(UpdateGoal { goal: own, patch, only_of: None }));
        }
        assert_eq!(home.world.ask(goal(None)).unwrap_err().field.as_deref(), Some("agent_id"));
        let list = home.world.ask(ListGoals { filter: GoalFilter::default(), after: None, limit: 9 }).unwrap();
        assert_eq!((list.items.iter().map(|it| it.id).collect::<Vec<_>>(), list.total), (vec![own], None));
    }
}

fn post(title: &str, assignee: Option<&str>) -> PostTask {
    PostTask { title: title.into(), assignee: assignee.map(Into::into), ..PostTask::default() }
}

#[test]
fn tasks_of_others_are_hidden_and_no_agent_takes_what_is_not_for_it() {
    let mut home = home();
    let open = home.world.ask(post("open", None)).unwrap().id;
    let of_bob = home.world.ask(post("b", Some("bobs"))).unwrap().id;
    let of_ann = home.world.ask(post("a", Some("anns"))).unwrap().id;
    home.world.actor = key_of(home.ann);
    let own = home.world.ask(post("own", None)).unwrap().id;
    for actor in home.limited() {
        home.world.actor = actor;
        for id in [open, of_bob] {
            hidden(home.world.ask(Get::<TaskView>(id)));
            hidden(home.world.ask(Remove::<Task>(id)));
            hidden(home.world.ask(RetryTask(id)));
            hidden(home.world.ask(ClaimTask { task: id, agent: home.of_ann, by: None }));
            hidden(home.world.ask(EndTask { task: id, failed: true, result: None, only_of: None, by: None }));
        }
        for other in ["bobs", "shared", "none"] {
            let refusal = home.world.ask(post("x", Some(other))).unwrap_err();
            assert_eq!((refusal.kind, refusal.field.as_deref()), (RefusalKind::NotFound, Some("assignee")));
        }
        hidden(home.world.ask(ClaimTask { task: own, agent: home.of_bob, by: None }));
        let list = home.world.ask(List::<TaskView> { limit: 9, ..ListTasks::default() }).unwrap();
        assert_eq!((list.items.iter().map(|it| it.id).collect::<Vec<_>>(), list.total), (vec![of_ann, own], None));
    }
    // Whoever asks: what a user posted is for agents of the user, what the installation posted for others.
    home.world.actor = Actor::Api;
    let refusal = home.world.ask(ClaimTask { task: own, agent: home.of_all, by: None }).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Conflict);
    let refusal = home.world.ask(ClaimTask { task: open, agent: home.of_ann, by: None }).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Conflict);
    home.world.restart();
    let mut next =
        |agent| -> Option<TaskId> { home.world.ask(ClaimNextTask { agent, by: None }).unwrap().map(|task| task.id) };
    assert_eq!([next(home.of_ann), next(home.of_ann), next(home.of_ann)], [Some(of_ann), Some(own), None]);
    assert_eq!([next(home.of_all), next(home.of_all)], [Some(open), None]);
}

#[test]
fn a_refusal_names_what_was_asked_for_and_never_the_id_of_an_agent_of_another() {
    let Home { mut world, of_ann, .. } = home();
    world.ask(PostMessage { agent: of_ann, session: None, message: NewMessage::text("go") }).unwrap();
    let attempt = world.next_call().attempt;
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(vec![tool_call("c")]))));
    let run = std::mem::take(&mut world.effects).into_iter().find_map(|effect| effect.take::<ToolRun>().ok()).unwrap();
    world.actor = turn_of(of_ann);
    for name in ["bobs", "shared", "none"] {
        let (from, index, to) = (run.attempt, run.index, name.to_owned());
        let send = SendToAgent { from, index, to, session: None, text: "hi".to_owned(), wait: true, found: None };
        let kill = KillDescendant { by: of_ann, agent: name.to_owned(), turn: None };
        let refusals =
            [world.ask(send).unwrap_err(), world.ask(kill).unwrap_err(), world.ask(post("x", Some(name))).unwrap_err()];
        for refusal in refusals {
            assert_eq!(refusal.message, format!("agent not found: {name}"));
        }
    }
}

fn step(agent: StepAgent) -> NewStep {
    match agent {
        StepAgent::Id(id) => NewStep { agent_id: Some(id), ..NewStep::default() },
        StepAgent::Name(name) => NewStep { agent_name: Some(name.into()), ..NewStep::default() },
    }
}

fn workflow(name: &str, steps: Vec<NewStep>) -> CreateWorkflow {
    CreateWorkflow(NewWorkflow { name: name.into(), description: String::new(), steps })
}

#[test]
fn workflows_with_agents_of_others_are_hidden_and_do_not_run() {
    let mut home = home();
    let named = |name: &str| step(StepAgent::Name(name.into()));
    let foreign: [WorkflowId; 2] = [
        home.world.ask(workflow("w", vec![named("bobs")])).unwrap().id,
        home.world.ask(workflow("w", vec![named("anns"), named("shared")])).unwrap().id,
    ];
    home.world.actor = key_of(home.ann);
    let own = home.world.ask(workflow("w", vec![named("anns")])).unwrap();
    assert_eq!(own.workflow.steps[0].agent, Some(StepAgent::Id(home.of_ann)), "a name may be another's later");
    home.world.actor = Actor::Api;
    let run = home.world.ask(StartRun { workflow: foreign[0], input: String::new() }).unwrap();
    for actor in home.limited() {
        home.world.actor = actor;
        hidden(home.world.ask(GetRun(run)));
        hidden(home.world.ask(crate::workflow::CancelRun(run)));
        for id in foreign {
            hidden(home.world.ask(Get::<WorkflowView>(id)));
            hidden(home.world.ask(Remove::<Workflow>(id)));
            hidden(home.world.ask(StartRun { workflow: id, input: String::new() }));
            let workflow = WorkflowChoice::Named(id.to_string());
            hidden(home.world.ask(RunWorkflow { workflow, input: String::new(), caller: None }));
            hidden(home.world.ask(UpdateWorkflow { workflow: id, patch: WorkflowPatch::default() }));
            hidden(home.world.ask(ListRuns { workflow: id, after: None, limit: 9 }));
        }
        for steps in [vec![named("bobs")], vec![step(StepAgent::Id(home.of_all))], vec![named("anns"), named("none")]] {
            hidden(home.world.ask(workflow("x", steps.clone())));
            let patch = WorkflowPatch { steps: Some(steps), ..WorkflowPatch::default() };
            hidden(home.world.ask(UpdateWorkflow { workflow: own.id, patch }));
        }
        let list = home.world.ask(ListWorkflows { limit: 9, ..List::default() }).unwrap();
        assert_eq!((list.items.iter().map(|it| it.id).collect::<Vec<_>>(), list.total), (vec![own.id], None));
    }
    home.world.actor = key_of(home.ann);
    // Of several of this name it is the only one that Ann knows.
    let run = RunWorkflow { workflow: WorkflowChoice::Named("w".into()), input: String::new(), caller: None };
    let _waits = home.world.begin(run);
    home.world.step();
    let runs = home.world.ask(ListRuns { workflow: own.id, after: None, limit: 9 }).unwrap();
    assert_eq!(runs.items.len(), 1);
    home.world.ask(GetRun(runs.items[0].id)).unwrap();
}

#[test]
fn sessions_of_others_are_hidden() {
    let mut home = home();
    let session = |world: &mut TestWorld, agent| world.ask(GetSession::Current(agent)).unwrap().id;
    let foreign = home.others().map(|agent| session(&mut home.world, agent));
    let own = session(&mut home.world, home.of_ann);
    for actor in home.limited() {
        home.world.actor = actor;
        for id in foreign {
            hidden(home.world.ask(GetSession::ById(id)));
            hidden(home.world.ask(RemoveSession { session: id }));
            hidden(home.world.ask(SetLabel { session: id, label: "x".into() }));
        }
        for agent in home.others() {
            hidden(home.world.ask(GetSession::Current(agent)));
            hidden(home.world.ask(ListSessions { agent: Some(agent), limit: 9, ..ListSessions::default() }));
        }
        let list = home.world.ask(ListSessions { limit: 9, ..ListSessions::default() }).unwrap();
        assert_eq!((list.items.iter().map(|it| it.id).collect::<Vec<_>>(), list.total), (vec![own], None));
        // A quick read between two steps knows who asks, too.
        let read = home.world.engine.read(actor, GetSession::ById(foreign[0]));
        hidden(read.unwrap());
    }
}

#[test]
fn a_user_gives_an_agent_no_mcp_server_that_no_admin_gave() {
    let mut home = home();
    let servers = |names: &[&str]| Some(names.iter().map(|name| Box::from(*name)).collect::<Vec<_>>());
    let give = |agent, names| {
        let patch = AgentPatch { mcp_servers: servers(names), ..AgentPatch::default() };
        UpdateAgent { agent, patch }
    };
    let mut with_server = spawn_command("x");
    with_server.manifest.mcp_servers = servers(&["mail"]).unwrap();
    home.world.actor = key_of(home.ann);
    for refused in [
        home.world.ask(with_server).map(drop),
        home.world.ask(give(home.of_ann, &["mail"])).map(drop),
        home.world.ask(give(home.of_ann, &["*"])).map(drop),
    ] {
        let refusal = refused.unwrap_err();
        assert_eq!((refusal.kind, refusal.field.as_deref()), (RefusalKind::Forbidden, Some("mcp_servers")));
    }
    home.world.actor = Actor::Api;
    home.world.ask(give(home.of_ann, &["mail", "files"])).unwrap();
    home.world.actor = key_of(home.ann);
    home.world.ask(give(home.of_ann, &["files"])).unwrap();
    home.world.ask(give(home.of_ann, &["mail"])).unwrap_err();
    // A copy of one's own agent has what that has.
    home.world.ask(CloneAgent { agent: home.of_ann, name: Some("copy".into()), text: String::new() }).unwrap();
}

#[test]
fn a_trigger_wakes_no_agent_that_its_user_may_not_wake_any_more() {
    let mut home = home();
    home.world.actor = key_of(home.ann);
    let second = home.world.ask(spawn_command("second")).unwrap().agent;
    let make = CreateTrigger { agent: home.of_ann, trigger: trigger(&json!({ "all": {} }), Some(second)) };
    let own = home.world.ask(make).unwrap().id;
    home.world.actor = Actor::Api;
    let fires = |home: &mut Home| {
        let event =
            Event::Custom { event_type: "ping".into(), agent: Some(home.of_ann), payload: "1".into(), by: None };
        home.world.ask(TellEvents(vec![event])).unwrap();
        home.world.ask(GetTriggerFires(own)).unwrap().log.begun()
    };
    let before = fires(&mut home);
    assert!(before > 0);
    home.world.ask(SetOwner { agent: second, user: None }).unwrap();
    assert_eq!(fires(&mut home), before, "the agent is another's now");
    let role = |role| UserFields { role: Some(role), ..UserFields::default() };
    home.world.ask(UpdateUser { user: home.ann, fields: role(Role::Admin) }).unwrap();
    assert!(fires(&mut home) > before, "an admin may");
    let before = fires(&mut home);
    home.world.ask(UpdateUser { user: home.ann, fields: role(Role::User) }).unwrap();
    assert_eq!(fires(&mut home), before, "and a user may not");
}

#[test]
fn an_agent_that_is_gone_reaches_nothing() {
    let mut home = home();
    let foreign = home.world.ask(GetSession::Current(home.of_all)).unwrap().id;
    home.world.ask(RemoveAgents(vec![home.of_ann])).unwrap();
    home.world.actor = Actor::Agent { agent: home.of_ann, turn: TurnId(Uuid::nil()) };
    hidden(home.world.ask(GetSession::ById(foreign)));
    assert!(home.world.ask(ListAgents { limit: 9, ..ListAgents::default() }).unwrap().items.is_empty());
    assert_eq!(home.world.ask(GetQueueStatus).unwrap_err().kind, RefusalKind::Forbidden);
}
