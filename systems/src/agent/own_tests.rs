//! Lists for users with a limited role look at what is theirs: a page is whole, however much others have.

use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::limit::PAGE_SCAN_MAX;
use agentsvc_components::kernel::scope::Role;
use agentsvc_components::{Actor, AgentId, GoalId, SessionId, TaskId};
use uuid::Uuid;

use super::{SetOwner, SpawnAgents};
use crate::Command;
use crate::goal::{CreateGoal, GoalFilter, ListGoals};
use crate::kernel::entities::{List, ViewPage};
use crate::people::{CreateUser, UserFields};
use crate::session::{CreateSession, ListSessions, SessionPosition};
use crate::task::{ClaimTask, ListTasks, PostTask, TaskView};
use crate::testing::{TestWorld, spawn_command};
use crate::workflow::{CreateWorkflow, ListWorkflows, NewStep, NewWorkflow};

/// More than one page looks at.
const OTHERS: usize = PAGE_SCAN_MAX + 1;

/// A user, and what the user acts as.
fn user(world: &mut TestWorld, role: Role) -> (UserId, Actor) {
    let fields = UserFields { name: Some(format!("{role:?}")), role: Some(role), channel_bindings: None };
    let user = world.ask(CreateUser(fields)).unwrap().id;
    (user, Actor::Key { key: KeyId(Uuid::from_u128(9)), user: Some(user) })
}

/// Agents of the user with these names.
fn agents(world: &mut TestWorld, user: UserId, names: &[&str]) -> Vec<AgentId> {
    let spawn = |name: &&str| {
        let agent = world.ask(spawn_command(name)).unwrap().agent;
        world.ask(SetOwner { agent, user: Some(user) }).unwrap();
        agent
    };
    names.iter().map(spawn).collect()
}

/// Asks so much in one step.
fn ask_all<C: Command>(world: &mut TestWorld, commands: impl Iterator<Item = C>) {
    let asked: Vec<_> = commands.map(|command| world.begin(command)).collect();
    world.step();
    assert!(asked.into_iter().all(|asked| asked.take().is_some_and(|reply| reply.is_ok())));
}

#[test]
fn a_list_of_sessions_looks_at_those_of_the_own_agents() {
    let mut world = TestWorld::new();
    let first = world.spawn("first");
    let (viewer, ann) = user(&mut world, Role::Viewer);
    let own = agents(&mut world, viewer, &["one", "two", "three"]);
    let make = |world: &mut TestWorld, agent| world.ask(CreateSession { agent, label: None }).unwrap();
    for agent in &own {
        make(&mut world, *agent);
    }
    let others: Vec<_> = (0..OTHERS).map(|at| spawn_command(&format!("other-{at}"))).collect();
    world.ask(SpawnAgents(others)).unwrap();
    for _ in 0..3 {
        make(&mut world, first);
    }
    world.actor = ann;
    let list = |after: Option<SessionPosition>, limit| ListSessions { after, limit, ..ListSessions::default() };
    let all = world.ask(list(None, 100)).unwrap();
    assert_eq!((all.items.len(), all.next, all.total), (6, None, None));
    assert!(all.items.iter().all(|session| own.contains(&session.agent)));
    // Page by page they come in the same order.
    let (mut after, mut seen): (_, Vec<SessionId>) = (None, Vec::new());
    for _ in 0..7 {
        let page = world.ask(list(after, 1)).unwrap();
        seen.extend(page.items.iter().map(|session| session.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, all.items.iter().map(|session| session.id).collect::<Vec<_>>());
    // One without agents gets the answer at once.
    world.actor = Actor::Api;
    let (_, bob) = user(&mut world, Role::User);
    world.actor = bob;
    let none = world.ask(list(None, 100)).unwrap();
    assert_eq!((none.items.len(), none.next, none.total), (0, None, None));
}

#[test]
fn a_list_of_tasks_looks_at_those_of_the_user() {
    let mut world = TestWorld::new();
    let (ann, as_ann) = user(&mut world, Role::User);
    let own = agents(&mut world, ann, &["one", "two"]);
    let other = world.spawn("other");
    let post = |assignee: Option<&str>, posted_by| PostTask {
        title: "t".into(),
        assignee: assignee.map(Into::into),
        posted_by,
        ..PostTask::default()
    };
    let mut known: Vec<TaskId> = Vec::new();
    ask_all(&mut world, (0..OTHERS).map(|at| post((at % 2 == 0).then_some("other"), None)));
    known.push(world.ask(post(Some("one"), None)).unwrap().id);
    known.push(world.ask(post(Some(&own[1].to_string()), None)).unwrap().id);
    known.push(world.ask(post(Some("other"), Some(own[0]))).unwrap().id);
    world.actor = as_ann;
    known.push(world.ask(post(None, None)).unwrap().id);
    known.push(world.ask(post(Some("two"), None)).unwrap().id);
    let list = |after, limit| ListTasks { after, limit, ..ListTasks::default() };
    let all = world.ask(list(None, 100)).unwrap();
    let ids = |page: &ViewPage<TaskView>| page.items.iter().map(|task| task.id).collect::<Vec<_>>();
    assert_eq!((ids(&all), all.next, all.total), (known.clone(), None, None));
    let page = world.ask(list(Some(known[1]), 2)).unwrap();
    assert_eq!((ids(&page), page.next), (known[2..4].to_vec(), Some(known[3])));
    // It stays so once they are claimed, and after a restart.
    world.actor = Actor::Api;
    world.ask(ClaimTask { task: known[0], agent: own[0], by: None }).unwrap();
    world.ask(ClaimTask { task: known[2], agent: other, by: None }).unwrap();
    world.restart();
    world.actor = as_ann;
    assert_eq!(ids(&world.ask(list(None, 100)).unwrap()), known);
}

#[test]
fn a_list_of_goals_looks_at_those_of_the_own_agents() {
    let mut world = TestWorld::new();
    let (ann, as_ann) = user(&mut world, Role::Viewer);
    let own = agents(&mut world, ann, &["one", "two"]);
    let other = world.spawn("other");
    let goal = |agent, parent| CreateGoal { title: "g".into(), agent, parent, ..CreateGoal::default() };
    ask_all(&mut world, (0..OTHERS).map(|at| goal((at % 2 == 0).then_some(other), None)));
    let mut known: Vec<GoalId> = Vec::new();
    for at in 0..4 {
        known.push(world.ask(goal(Some(own[at % 2]), known.first().copied())).unwrap().id);
    }
    world.actor = as_ann;
    let mut list = |filter: GoalFilter| {
        let page = world.ask(ListGoals { filter, after: None, limit: 100 }).unwrap();
        assert_eq!((page.next, page.total), (None, None), "all were looked at");
        page.items.iter().map(|goal| goal.id).collect::<Vec<_>>()
    };
    let of = |agent, parent| GoalFilter { agent, parent, ..GoalFilter::default() };
    assert_eq!(list(of(None, None)), known);
    assert_eq!(list(of(None, Some(None))), known[..1]);
    assert_eq!(list(of(None, Some(Some(known[0])))), known[1..]);
    assert_eq!(list(of(Some(Some(own[1])), None)), [known[1], known[3]]);
    assert_eq!(list(of(Some(Some(own[0])), Some(Some(known[0])))), [known[2]]);
    assert!(list(of(Some(Some(other)), None)).is_empty());
    assert!(list(of(Some(None), None)).is_empty());
}

#[test]
fn a_list_of_workflows_looks_at_those_that_begin_with_an_own_agent() {
    let mut world = TestWorld::new();
    let (ann, as_ann) = user(&mut world, Role::Viewer);
    let own = agents(&mut world, ann, &["one", "two"]);
    let other = world.spawn("other");
    let workflow = |steps: &[AgentId]| {
        let step = |agent: &AgentId| NewStep { agent_id: Some(*agent), ..NewStep::default() };
        let steps = steps.iter().map(step).collect();
        CreateWorkflow(NewWorkflow { name: "w".into(), description: String::new(), steps })
    };
    ask_all(&mut world, (0..OTHERS).map(|_| workflow(&[other, own[0]])));
    world.ask(workflow(&[own[0], other])).unwrap();
    let known = [vec![own[1], own[0]], vec![own[0]]].map(|steps| world.ask(workflow(&steps)).unwrap().id);
    world.actor = as_ann;
    let list = world.ask(ListWorkflows { limit: 100, ..List::default() }).unwrap();
    let ids: Vec<_> = list.items.iter().map(|workflow| workflow.id).collect();
    assert_eq!((ids, list.next, list.total), (known.to_vec(), None, None));
}
