//! Agent commands: replies, records and events.

use agentsvc_components::agent::{AgentMode, AgentState, ImportedFrom};
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, RefusalKind};
use uuid::Uuid;

use super::*;
use crate::config::Settings;
use crate::kernel::index::Index;
use crate::kernel::page::Page;
use crate::session::{CreateSession, FindByLabel, ListSessions, SetLabel, SwitchSession};
use crate::testing::{TestWorld, spawn_command};
use crate::world::GetStats;

fn names(page: &Page<AgentSummary, AgentId>) -> Vec<&str> {
    page.items.iter().map(|item| &*item.name).collect()
}

#[test]
fn a_spawned_agent_is_stored_with_its_session_and_its_text_and_comes_back() {
    let mut world = TestWorld::new();
    let spawned = world.ask(spawn_command("scout")).unwrap();
    assert_eq!(&*spawned.name, "scout");
    let before = world.ask(GetAgent(spawned.agent)).unwrap();
    assert_eq!((before.session, &*before.provider), (spawned.session, "builtin"));
    world.restart();
    let after = world.ask(GetAgent(spawned.agent)).unwrap();
    assert_eq!((after.session, after.created_at, after.manifest), (before.session, before.created_at, before.manifest));
    assert_eq!(world.ask(FindAgent("scout".into())).unwrap().id, spawned.agent);
}

#[test]
fn a_name_is_unique_among_the_living_and_free_again_after() {
    let mut world = TestWorld::new();
    let id = world.spawn("scout");
    let refusal = world.ask(spawn_command("scout")).unwrap_err();
    assert_eq!((refusal.kind, refusal.field.as_deref()), (RefusalKind::Conflict, Some("name")));
    assert_eq!(&**world.ask(RemoveAgents(vec![id])).unwrap()[0].1.as_ref().unwrap(), "scout");
    assert_ne!(world.spawn("scout"), id);
    world.restart();
    assert!(world.ask(spawn_command("scout")).is_err());
}

#[test]
fn agents_of_one_manifest_share_it_and_the_last_takes_it_along() {
    let mut world = TestWorld::new();
    let ids: Vec<_> = ["a", "b", "c"].iter().map(|name| world.spawn(name)).collect();
    assert_eq!(world.ask(GetStats).unwrap().manifests, 1);
    let patch = AgentPatch { description: Some("different".into()), ..AgentPatch::default() };
    world.ask(UpdateAgent { agent: ids[0], patch }).unwrap();
    assert_eq!(world.ask(GetStats).unwrap().manifests, 2);
    world.ask(RemoveAgents(ids[1..].to_vec())).unwrap();
    assert_eq!(world.ask(GetStats).unwrap().manifests, 1);
    world.restart();
    assert_eq!(&*world.ask(GetAgent(ids[0])).unwrap().manifest.manifest.description, "different");
}

#[test]
fn bulk_items_stand_or_fall_alone() {
    let mut world = TestWorld::new();
    let items = ["a", "a", "b"].map(spawn_command).to_vec();
    let results = world.ask(SpawnAgents(items)).unwrap();
    assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    let a = results[0].as_ref().unwrap().agent;
    let nobody = AgentId(Uuid::from_u128(5));
    let removed = world.ask(RemoveAgents(vec![nobody, a, a])).unwrap();
    assert_eq!(removed.iter().map(|(_, r)| r.is_ok()).collect::<Vec<_>>(), [false, true, false]);
    let stopped = world.ask(StopAgents(vec![nobody])).unwrap();
    assert_eq!(stopped[0].1.as_ref().unwrap_err().kind, RefusalKind::NotFound);
}

#[test]
fn lists_page_in_order_of_creation_and_filters_never_scan_without_bound() {
    let mut world = TestWorld::new();
    for n in 0..10 {
        world.spawn(&format!("agent-{n}"));
    }
    let first = world.ask(ListAgents { limit: 4, ..ListAgents::default() }).unwrap();
    assert_eq!((names(&first), first.total), (vec!["agent-0", "agent-1", "agent-2", "agent-3"], 10));
    let gone = first.next.unwrap();
    world.ask(RemoveAgents(vec![gone])).unwrap();
    let second = world.ask(ListAgents { after: first.next, limit: 100, ..ListAgents::default() }).unwrap();
    assert_eq!((second.items.len(), second.next), (6, None));
    let filter = AgentFilter { name: Some("agent-7".into()), ..AgentFilter::default() };
    let named = world.ask(ListAgents { filter, limit: 10, ..ListAgents::default() }).unwrap();
    assert_eq!(names(&named), ["agent-7"]);
    let filter = AgentFilter { state: Some(AgentState::Stopped), ..AgentFilter::default() };
    assert!(world.ask(ListAgents { filter, limit: 10, ..ListAgents::default() }).unwrap().items.is_empty());
}

#[test]
fn stable_pins_the_default_model_and_refuses_to_change_it() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let view = world.ask(SetMode { agent, mode: AgentMode::Stable, skills: None }).unwrap();
    assert_eq!(&*view.manifest.manifest.model.provider, "builtin");
    let patch = AgentPatch { model: Some("other".into()), ..AgentPatch::default() };
    let refusal = world.ask(UpdateAgent { agent, patch: patch.clone() }).unwrap_err();
    assert_eq!((refusal.kind, refusal.code.as_deref()), (RefusalKind::Conflict, Some("agent_stable")));
    world.ask(SetMode { agent, mode: AgentMode::Normal, skills: None }).unwrap();
    assert_eq!(&*world.ask(UpdateAgent { agent, patch }).unwrap().model, "other");
}

#[test]
fn another_default_reaches_only_agents_that_name_no_model() {
    let mut settings = Settings::default();
    settings.default_model.provider = "openai".into();
    settings.default_model.model = "gpt".into();
    let mut world = TestWorld::with(settings);
    let agent = world.spawn("scout");
    let view = world.ask(GetAgent(agent)).unwrap();
    assert_eq!((&*view.provider, &*view.model), ("openai", "gpt"));
}

#[test]
fn a_rename_frees_the_old_name_and_a_taken_one_changes_nothing() {
    let mut world = TestWorld::new();
    let (a, _b) = (world.spawn("a"), world.spawn("b"));
    let rename =
        |name: &str| AgentPatch { name: Some(name.into()), tags: Some(vec!["t".into()]), ..AgentPatch::default() };
    let before = world.store.clone();
    assert!(world.ask(UpdateAgent { agent: a, patch: rename("b") }).is_err());
    assert_eq!(world.store, before);
    world.ask(UpdateAgent { agent: a, patch: rename("c") }).unwrap();
    assert_eq!(world.ask(FindAgent("c".into())).unwrap().id, a);
    world.spawn("a");
}

#[test]
fn a_clone_has_the_manifest_a_fresh_session_and_a_free_name() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let clone = |name: Option<&str>| CloneAgent { agent, name: name.map(Into::into), text: String::new() };
    let first = world.ask(clone(None)).unwrap();
    let second = world.ask(clone(None)).unwrap();
    assert_eq!((&*first.name, &*second.name), ("scout-copy", "scout-copy-2"));
    assert!(world.ask(clone(Some("scout"))).is_err());
    assert_eq!(world.ask(GetStats).unwrap().manifests, 1);
}

#[test]
fn labels_are_unique_within_an_agent_and_survive() {
    let mut world = TestWorld::new();
    let (agent, other) = (world.spawn("a"), world.spawn("b"));
    let session = world.ask(CreateSession { agent, label: Some(" support ".into()) }).unwrap();
    assert!(world.ask(CreateSession { agent, label: Some("support".into()) }).is_err());
    world.ask(CreateSession { agent: other, label: Some("support".into()) }).unwrap();
    world.restart();
    assert_eq!(world.ask(FindByLabel { agent, label: "support".into() }).unwrap().id, session);
    world.ask(SetLabel { session, label: String::new() }).unwrap();
    assert!(world.ask(FindByLabel { agent, label: "support".into() }).is_err());
    assert_eq!(world.ask(SetLabel { session, label: "x\u{0}".into() }).unwrap_err().field.as_deref(), Some("label"));
}

#[test]
fn sessions_are_listed_per_agent_and_over_all_and_switching_survives() {
    let mut world = TestWorld::new();
    let (agent, other) = (world.spawn("a"), world.spawn("b"));
    let made: Vec<_> = (0..5).map(|_| world.ask(CreateSession { agent, label: None }).unwrap()).collect();
    world.ask(SwitchSession { agent, session: made[2] }).unwrap();
    world.restart();
    let list = ListSessions { agent: Some(agent), limit: 3, ..ListSessions::default() };
    let first = world.ask(list.clone()).unwrap();
    let second = world.ask(ListSessions { after: first.next, ..list }).unwrap();
    let ids: Vec<_> = first.items.iter().chain(&second.items).map(|view| (view.id, view.current)).collect();
    assert_eq!(ids.len(), 6);
    assert_eq!(ids.iter().filter(|(_, current)| *current).map(|(id, _)| *id).collect::<Vec<_>>(), [made[2]]);
    assert!(second.next.is_none());
    let list = ListSessions { agent: Some(agent), newest_first: true, limit: 4, ..ListSessions::default() };
    let newest = world.ask(list.clone()).unwrap();
    let rest = world.ask(ListSessions { after: newest.next, ..list }).unwrap();
    let mut back: Vec<_> = newest.items.iter().chain(&rest.items).map(|view| (view.id, view.current)).collect();
    back.reverse();
    assert_eq!((back, rest.next), (ids, None));
    let all = world.ask(ListSessions { limit: 100, ..ListSessions::default() }).unwrap();
    assert_eq!((all.items.len(), all.total), (7, Some(7)));
    assert_eq!((first.total, second.total), (Some(6), None));
    assert_eq!(first.next, first.items.last().map(|view| view.position()));
    let foreign = world.ask(GetAgent(other)).unwrap().session;
    assert_eq!(world.ask(SwitchSession { agent, session: foreign }).unwrap_err().kind, RefusalKind::Forbidden);
}

#[test]
fn a_page_of_sessions_goes_on_in_a_world_that_was_restored_since() {
    let mut world = TestWorld::new();
    for n in 0..4 {
        let agent = world.spawn(&format!("agent-{n}"));
        world.ask(CreateSession { agent, label: None }).unwrap();
        world.ask(CreateSession { agent, label: None }).unwrap();
    }
    let first = world.ask(ListSessions { limit: 5, ..ListSessions::default() }).unwrap();
    world.restart();
    let rest = world.ask(ListSessions { after: first.next, limit: 100, ..ListSessions::default() }).unwrap();
    let mut ids: Vec<_> = first.items.iter().chain(&rest.items).map(|view| view.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((first.items.len(), rest.items.len(), ids.len()), (5, 7, 12));
}

#[test]
fn indexes_equal_what_a_full_scan_finds() {
    let mut world = TestWorld::new();
    for n in 0..50 {
        let id = world.spawn(&format!("agent-{n}"));
        if n % 3 == 0 {
            world.ask(RemoveAgents(vec![id])).unwrap();
        }
    }
    let scanned = world.engine.world().iter_entities().filter(|e| e.contains::<AgentId>()).count();
    assert_eq!(world.engine.world().resource::<Index>().agent_count(), scanned);
    world.restart();
    assert_eq!(world.engine.world().resource::<Index>().agent_count(), scanned);
}

#[test]
fn summaries_are_those_of_the_living() {
    let mut world = TestWorld::new();
    let (a, b) = (world.spawn("a"), world.spawn("b"));
    let gone = world.spawn("gone");
    world.ask(RemoveAgents(vec![gone])).unwrap();
    let found = world.ask(SummariseAgents(vec![b, gone, AgentId(Uuid::nil()), a])).unwrap();
    assert_eq!(found.iter().map(|agent| &*agent.name).collect::<Vec<_>>(), ["b", "a"]);
}

/// An agent that may spawn others.
fn parent(name: &str) -> SpawnAgent {
    let mut command = spawn_command(name);
    command.manifest.capabilities.agent_spawn = Some(true);
    command.hash = crate::manifest::hash(&command.manifest);
    command
}

#[test]
fn an_agent_has_so_many_children_and_so_many_agents_above_it() {
    let mut world = TestWorld::new();
    let top = world.ask(parent("top")).unwrap().agent;
    let spawn = |world: &mut TestWorld, above, name: &str| {
        world.ask(SpawnChild { parent: above, child: parent(name), by: None }).map(|spawned| spawned.agent)
    };
    let children: Vec<AgentId> =
        (0..limit::AGENT_CHILDREN_MAX).map(|n| spawn(&mut world, top, &format!("child-{n}")).unwrap()).collect();
    let refused = spawn(&mut world, top, "one more").unwrap_err();
    assert_eq!(refused.kind, RefusalKind::Forbidden);
    assert!(refused.message.contains("100 child agents"), "{}", refused.message);
    world.restart();
    assert!(spawn(&mut world, top, "one more").is_err(), "also after a restart");
    world.ask(RemoveAgents(vec![children[0]])).unwrap();
    spawn(&mut world, top, "one more").unwrap();
    let mut last = children[1];
    for depth in 1..limit::AGENT_CHAIN_MAX {
        last = spawn(&mut world, last, &format!("below-{depth}")).unwrap();
    }
    let refused = spawn(&mut world, last, "too deep").unwrap_err();
    assert!(refused.kind == RefusalKind::Forbidden && refused.message.contains("8 deep"), "{}", refused.message);
    let family = |world: &mut TestWorld, agent| world.ask(GetAgent(agent)).unwrap().family;
    assert_eq!((family(&mut world, last), family(&mut world, top)), (top, top));
    world.ask(RemoveAgents(vec![top])).unwrap();
    world.restart();
    assert_eq!(family(&mut world, last), top, "who shares with whom stays");
}

#[test]
fn an_imported_agent_is_known_by_where_it_came_from() {
    let mut world = TestWorld::new();
    let from = |place, text| ImportedFrom { place: [place; 32], text: [text; 32] };
    let import = |world: &mut TestWorld, name: &str, from| {
        world.ask(ImportAgent { agent: spawn_command(name), from }).map(|spawned| spawned.agent)
    };
    let a = import(&mut world, "a", from(1, 11)).unwrap();
    let b = import(&mut world, "b", from(2, 12)).unwrap();
    assert!(import(&mut world, "a", from(3, 13)).is_err(), "the name is already taken");
    let patch =
        AgentPatch { name: Some("mine".into()), description: Some("different".into()), ..AgentPatch::default() };
    world.ask(UpdateAgent { agent: a, patch }).unwrap();
    let copy = CloneAgent { agent: a, name: Some("a".into()), text: "name = \"a\"\n".to_owned() };
    world.ask(copy).unwrap();
    world.spawn("c");
    for restarted in [false, true] {
        if restarted {
            world.restart();
        }
        let find = |world: &mut TestWorld, from| {
            let found = world.ask(FindImported(from)).unwrap();
            found.map(|found| (found.agent, found.name.to_string(), found.same_text))
        };
        assert_eq!(find(&mut world, from(1, 11)), Some((a, "mine".to_owned(), true)), "renamed and changed");
        assert_eq!(find(&mut world, from(1, 99)), Some((a, "mine".to_owned(), false)), "changed there");
        assert_eq!(find(&mut world, from(99, 12)), Some((b, "b".to_owned(), true)), "moved");
        assert_eq!(
            find(&mut world, from(1, 12)),
            Some((a, "mine".to_owned(), false)),
            "the place goes before the text"
        );
        assert_eq!(find(&mut world, from(3, 13)), None, "what was refused");
    }
    world.ask(RemoveAgents(vec![a])).unwrap();
    assert_eq!(world.ask(FindImported(from(1, 11))).unwrap(), None, "neither the clone nor any other");
}
