//! The list of agents over a world in memory. The world tells no events here; the tests do.

use agentsvc_systems::agent::{RemoveAgents, SpawnAgent, SpawnAgents};
use agentsvc_systems::manifest;
use serde_json::Value;

use super::*;
use crate::http::settings::ApiSettings;
use crate::testing;

/// A world with so many agents.
async fn world(agents: usize) -> Arc<Api> {
    let api = testing::front(ApiSettings::default());
    spawn(&api, 0..agents).await;
    api
}

async fn spawn(api: &Api, numbers: std::ops::Range<usize>) {
    let spawn = |n| {
        let text = format!("name = \"agent-{n}\"\n");
        let parsed = manifest::parse(&text).unwrap();
        let hash = manifest::hash(&parsed.manifest);
        SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text }
    };
    api.bridge.ask(SpawnAgents(numbers.map(spawn).collect())).await.unwrap();
}

async fn agents(api: &Api, limit: usize) -> Vec<AgentSummary> {
    api.bridge.ask(ListAgents { limit, ..ListAgents::default() }).await.unwrap().items
}

fn names(list: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(list).unwrap();
    assert_eq!(value["type"], "agents_updated");
    value["agents"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

/// The first list whose names are as wanted. Virtual time runs while the world is asked, so that lists from before a
/// change may come in between.
async fn until(subscriber: &mut Seat, wanted: impl Fn(&[String]) -> bool) -> Utf8Bytes {
    loop {
        let list = subscriber.next().await;
        if wanted(&names(&list)) {
            return list;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_from_before_nobody_listened_is_not_shown_again() {
    let api = world(1).await;
    let own = agents(&api, 1).await.remove(0);
    let mut first = Seat::take(&api, &own);
    assert_eq!(names(&first.next().await), ["agent-0"]);
    drop(first);
    // Nobody notes it: the task has not ended, and has a list to repeat.
    spawn(&api, 1..2).await;
    let mut second = Seat::take(&api, &own);
    assert_eq!(names(&second.next().await), ["agent-0", "agent-1"]);
}

#[tokio::test(start_paused = true)]
async fn the_first_list_shows_an_agent_that_was_made_while_it_was_built() {
    let api = world(1).await;
    let own = agents(&api, 1).await.remove(0);
    let other = AgentSummary { id: AgentId(Uuid::from_u128(5)), name: "late".into(), ..own.clone() };
    let mut seat = Seat::take(&api, &other);
    assert_eq!(names(&seat.next().await), ["late", "agent-0"]);
    assert_eq!(names(&seat.next().await), ["agent-0"], "it is gone again");
}

#[tokio::test(start_paused = true)]
async fn a_small_world_is_shown_whole_and_built_once() {
    let api = world(3).await;
    let own = agents(&api, 1).await.remove(0);
    let (mut one, mut two) = (Seat::take(&api, &own), Seat::take(&api, &own));
    let (first, same) = tokio::join!(one.next(), two.next());
    assert_eq!(names(&first), ["agent-0", "agent-1", "agent-2"]);
    assert_eq!(first.as_ptr(), same.as_ptr());
    assert_eq!(one.next().await.as_ptr(), first.as_ptr(), "nothing changed");
    api.bridge.ask(RemoveAgents(vec![own.id])).await.unwrap();
    api.state::<AgentFeed>().note(&Event::AgentTerminated { agent: own.id, name: own.name.to_string(), by: None });
    let after = until(&mut one, |names| names.len() == 2).await;
    assert_eq!(names(&after), ["agent-1", "agent-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_large_world_shows_the_own_agent_and_what_changed() {
    let api = world(limit::AGENTS_PUSH_ALL_MAX + 2).await;
    let some = agents(&api, 4).await;
    let (mut one, mut two) = (Seat::take(&api, &some[0]), Seat::take(&api, &some[1]));
    let (first, second) = tokio::join!(one.next(), two.next());
    assert_eq!((names(&first), names(&second)), (vec!["agent-0".to_owned()], vec!["agent-1".to_owned()]));
    api.bridge.ask(RemoveAgents(vec![some[3].id])).await.unwrap();
    api.state::<AgentFeed>().note(&Event::AgentUpdated { agent: some[1].id });
    api.state::<AgentFeed>().note(&Event::AgentStopped { agent: some[2].id });
    api.state::<AgentFeed>().note(&Event::AgentTerminated {
        agent: some[3].id,
        name: some[3].name.to_string(),
        by: None,
    });
    let many = |names: &[String]| names.len() > 1;
    let (first, second) = tokio::join!(until(&mut one, many), until(&mut two, many));
    assert_eq!(names(&first), ["agent-0", "agent-1", "agent-2", "agent-3"]);
    assert_eq!(names(&second), ["agent-1", "agent-2", "agent-3"]);
    assert!(second.contains("Terminated"));
    let (first, second) = tokio::join!(one.next(), two.next());
    assert_eq!((names(&first), names(&second)), (vec!["agent-0".to_owned()], vec!["agent-1".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn nobody_listens_and_nothing_runs() {
    let api = world(1).await;
    let own = agents(&api, 1).await.remove(0);
    api.state::<AgentFeed>().note(&Event::AgentUpdated { agent: own.id });
    assert!(api.state::<AgentFeed>().state.lock().changed.is_empty());
    let subscriber = Seat::take(&api, &own);
    assert!(api.state::<AgentFeed>().state.lock().running && api.state::<AgentFeed>().subscribers() == 1);
    drop(subscriber);
    tokio::time::sleep(PERIOD * 2).await;
    assert!(!api.state::<AgentFeed>().state.lock().running && api.state::<AgentFeed>().subscribers() == 0);
    assert_eq!(names(&Seat::take(&api, &own).next().await), ["agent-0"]);
}

#[test]
fn what_changed_is_bounded_and_told_in_pieces() {
    let feed = AgentFeed::default();
    feed.subscribers.store(1, Ordering::Release);
    let id = |n: usize| AgentId(Uuid::from_u128(n as u128));
    for n in 0..limit::AGENTS_CHANGED_MAX + 10 {
        feed.note(&Event::AgentStarted { agent: id(n) });
    }
    assert_eq!(feed.state.lock().changed.len(), limit::AGENTS_CHANGED_MAX);
    let first = feed.take_changed();
    assert_eq!((first.len(), first.first_key_value().unwrap().0), (limit::AGENTS_PUSH_CHANGED_MAX, &id(0)));
    assert_eq!(feed.take_changed().first_key_value().unwrap().0, &id(limit::AGENTS_PUSH_CHANGED_MAX));
    feed.put_back(first);
    assert_eq!(feed.take_changed().first_key_value().unwrap().0, &id(0));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_knows_of_agents_of_its_user_gets_its_own_agent_alone() {
    let api = world(3).await;
    let own = agents(&api, 2).await.remove(1);
    let mut limited = Seat::take(&api, &own).limited(true);
    assert_eq!(names(&limited.next().await), ["agent-1"]);
    spawn(&api, 3..4).await;
    let feed = api.state::<AgentFeed>();
    feed.note(&Event::AgentUpdated { agent: own.id });
    assert_eq!(names(&limited.next().await), ["agent-1"]);
    let mut all = Seat::take(&api, &own);
    until(&mut all, |names| names.len() == 4).await;
    api.bridge.ask(RemoveAgents(vec![own.id])).await.unwrap();
    feed.note(&Event::AgentTerminated { agent: own.id, name: own.name.to_string(), by: None });
    until(&mut limited, <[String]>::is_empty).await;
}
