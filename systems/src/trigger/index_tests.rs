//! The index finds exactly what a scan of all triggers finds, whatever was added and removed.

use agentsvc_components::event::{Event, EventKind};
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::trigger::{AssigneeMatch, Filter, On, Pattern};
use agentsvc_components::{AgentId, TaskId, TriggerId, TurnId};
use bevy_ecs::prelude::Entity;
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::index::{Found, Member, Triggers};
use crate::event::parse_pattern;
use crate::event::pattern::{is_lifecycle, is_system};
use crate::kernel::glob::Glob;

/// Does `pattern` of `owner` want `event`? As the table of patterns says it, with no index.
fn wants(pattern: &Pattern, owner: AgentId, event: &Event, name: Option<&str>) -> bool {
    let kind = event.kind();
    let on = match pattern.on {
        On::All | On::Content => true,
        On::Lifecycle => is_lifecycle(kind),
        On::System => is_system(kind),
        On::Kind(one) => one == kind,
    };
    on && match (&pattern.filter, event) {
        (Filter::None, _) => true,
        (Filter::Name(glob), _) => name.is_some_and(|name| Glob::parse(glob).unwrap().matches(name)),
        (Filter::Content(part), _) => {
            event.text().is_some_and(|text| text.to_lowercase().contains(&part.to_lowercase()))
        }
        (Filter::CustomType(word), Event::Custom { event_type, .. }) => **word == **event_type,
        (Filter::Assignee(wanted), Event::TaskPosted { assignee, assignee_id, .. }) => match wanted {
            AssigneeMatch::Owner => *assignee_id == Some(owner),
            AssigneeMatch::Nobody => assignee.as_deref().is_none_or(str::is_empty),
            AssigneeMatch::Exactly(text) => assignee.as_deref() == Some(&**text),
        },
        (Filter::CustomType(_) | Filter::Assignee(_), _) => false,
    }
}

fn agent(n: u128) -> AgentId {
    AgentId(Uuid::from_u128(n))
}

/// Short texts of few letters, so that much matches.
fn letters() -> impl Strategy<Value = String> {
    "[abAÜü]{0,6}"
}

fn pattern() -> impl Strategy<Value = Pattern> {
    let named = prop::sample::select(vec!["agent_spawned", "turn_completed", "message_received", "task_claimed"]);
    let simple =
        vec!["all", "lifecycle", "system", "agent_spawned", "turn_completed", "task_posted", "custom", "tool_called"];
    prop_oneof![
        prop::sample::select(simple).prop_map(|word| json!({ word: {} })),
        (named, "[abü*?]{1,5}|a\\[ab\\]\\*|\\*ab\\*").prop_map(|(k, glob)| json!({ k: { "name_pattern": glob } })),
        prop::sample::select(vec!["self", "unassigned", "any", "a"])
            .prop_map(|who| json!({ "task_posted": { "assignee_match": who } })),
        "[ab]{1,2}".prop_map(|word| json!({ "custom": { "event_type": word } })),
        "[abAüÜ]{1,5}".prop_map(|part| json!({ "content_match": { "substring": part } })),
    ]
    .prop_map(|pattern| parse_pattern(&pattern).unwrap())
}

/// An event and the name of its agent.
fn event() -> impl Strategy<Value = (Event, Option<String>)> {
    let turn = TurnId(Uuid::nil());
    let assignees = prop::sample::select(vec![None, Some(""), Some("any"), Some("a"), Some("self")]);
    prop_oneof![
        letters()
            .prop_map(|name| { (Event::AgentSpawned { agent: agent(9), name: name.clone(), by: None }, Some(name)) }),
        (letters(), letters()).prop_map(move |(name, text)| {
            let text = text.into();
            let usage = Default::default();
            (Event::TurnCompleted { agent: agent(9), turn, usage, iterations: 1, text }, Some(name))
        }),
        (assignees, prop::option::of(0..4_u128), letters()).prop_map(|(assignee, id, text)| {
            let event = Event::TaskPosted {
                task: TaskId(Uuid::nil()),
                title: text.clone(),
                description: "".into(),
                assignee: assignee.map(str::to_owned),
                assignee_id: id.map(agent),
                by: None,
            };
            (event, None)
        }),
        ("[ab]{1,2}", letters()).prop_map(|(word, text)| {
            (Event::Custom { event_type: word, agent: None, payload: text.into(), by: None }, None)
        }),
        letters().prop_map(move |name| {
            (Event::ToolCalled { agent: agent(9), turn, tool: "t".into(), is_error: false }, Some(name))
        }),
        Just((Event::MemoryUpdated { agent: agent(9), key: "k".into(), deleted: false, by: None }, None)),
    ]
}

/// The n-th trigger; of three lines.
fn member(n: usize) -> Member {
    let line = (!n.is_multiple_of(3)).then(|| Holder::Family(agent(n as u128 % 3)));
    Member { id: TriggerId(Uuid::from_u128(n as u128)), entity: Entity::from_raw_u32(n as u32).unwrap(), line }
}

fn found(triggers: &Triggers, event: &Event, name: Option<&str>) -> Vec<(TriggerId, Entity)> {
    let mut sets = Found::new();
    let subject = triggers.matcher().find(event, || name.map(Into::into), &mut sets);
    sets.retain(|candidates| candidates.pass(&subject));
    let mut all: Vec<_> =
        sets.into_iter().flat_map(|candidates| candidates.set.iter()).map(|it| (it.id, it.entity)).collect();
    all.sort_unstable();
    all
}

proptest! {
    #[test]
    fn the_index_finds_what_a_scan_finds(
        patterns in prop::collection::vec((pattern(), 0..4_u128), 1..60),
        removed in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        events in prop::collection::vec(event(), 1..12),
    ) {
        let mut triggers = Triggers::default();
        let mut alive = Vec::new();
        for (n, (pattern, owner)) in patterns.iter().enumerate() {
            let owner = (Entity::from_raw_u32(1_000 + *owner as u32).unwrap(), agent(*owner));
            triggers.insert(member(n), owner, pattern);
            alive.push((member(n), owner, pattern));
        }
        for index in removed {
            if !alive.is_empty() {
                let (member, owner, pattern) = alive.remove(index.index(alive.len()));
                triggers.remove(member, owner, pattern);
            }
        }
        prop_assert_eq!(triggers.all().len(), alive.len());
        for (event, name) in &events {
            let scanned: Vec<_> = alive
                .iter()
                .filter(|(_, owner, pattern)| wants(pattern, owner.1, event, name.as_deref()))
                .map(|(member, ..)| (member.id, member.entity))
                .collect();
            prop_assert_eq!(found(&triggers, event, name.as_deref()), scanned, "{:?}", event);
        }
    }
}

#[test]
fn an_empty_index_keeps_nothing() {
    let mut triggers = Triggers::default();
    let owner = (Entity::from_raw_u32(7).unwrap(), agent(1));
    let patterns = EventKind::ALL.map(|kind| json!({ kind.as_str(): {} }));
    let more = ["web-*", "web-1", "*x*", "??"].map(|glob| json!({ "agent_spawned": { "name_pattern": glob } }));
    let all: Vec<Pattern> = patterns.iter().chain(&more).map(|pattern| parse_pattern(pattern).unwrap()).collect();
    for (n, pattern) in all.iter().enumerate() {
        triggers.insert(member(n), owner, pattern);
    }
    let born = Event::AgentSpawned { agent: agent(9), name: "web-1".into(), by: None };
    assert_eq!(found(&triggers, &born, Some("web-1")).len(), 3);
    for (n, pattern) in all.iter().enumerate() {
        triggers.remove(member(n), owner, pattern);
    }
    assert!(triggers.all().is_empty());
    assert!(found(&triggers, &born, Some("web-1")).is_empty());
    assert_eq!(triggers.of_owner(owner.0, None).count(), 0);
}
