//! Commands on triggers: what they store, answer and refuse; and triggers of manifests.

use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::manifest::SessionMode;
use agentsvc_components::trigger::FireOutcome;
use agentsvc_components::{AgentId, RefusalKind, TriggerId};
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::agent::{CloneAgent, RemoveAgents, SpawnAgent};
use crate::manifest;
use crate::testing::TestWorld;

/// A trigger of `pattern` that waits for nothing between two fires.
pub(super) fn new(pattern: &Value) -> NewTrigger {
    NewTrigger {
        pattern: crate::event::parse_pattern(pattern).unwrap(),
        prompt_template: "Look: {{event}}".into(),
        enabled: true,
        max_fires: 0,
        cooldown_secs: Some(0),
        session_mode: None,
        target: None,
    }
}

pub(super) fn create(world: &mut TestWorld, agent: AgentId, pattern: &Value) -> TriggerId {
    world.ask(CreateTrigger { agent, trigger: new(pattern) }).unwrap().id
}

fn stored(world: &TestWorld, kind: u8) -> usize {
    world.store.keys().filter(|(space, key)| *space == Space::World && key[0] == kind).count()
}

#[test]
fn a_trigger_is_stored_changed_and_deleted() {
    let mut world = TestWorld::new();
    let (agent, other) = (world.spawn("a"), world.spawn("b"));
    let made = world.ask(CreateTrigger { agent, trigger: new(&json!({ "all": {} })) }).unwrap();
    assert_eq!((made.agent, made.enabled, made.fire_count, made.cooldown_secs), (agent, true, 0, Some(0)));
    world.restart();
    assert_eq!(world.ask(GetTrigger(made.id)).unwrap(), made);
    // Rule 1: what is not sent stays.
    let patch = TriggerPatch { max_fires: Some(3), target: Some(Some(other)), ..TriggerPatch::default() };
    let changed = world.ask(UpdateTrigger { trigger: made.id, patch }).unwrap();
    assert_eq!(changed, TriggerView { max_fires: 3, target: Some(other), ..made.clone() });
    let patch = TriggerPatch {
        prompt_template: Some("other".into()),
        enabled: Some(false),
        session_mode: Some(Some(SessionMode::New)),
        ..TriggerPatch::default()
    };
    let changed = world.ask(UpdateTrigger { trigger: made.id, patch }).unwrap();
    assert_eq!((changed.max_fires, changed.target, changed.session_mode), (3, Some(other), Some(SessionMode::New)));
    // Rule 2: null takes the override away.
    let none = Some(None);
    let patch =
        TriggerPatch { cooldown_secs: none, session_mode: Some(None), target: Some(None), ..Default::default() };
    let cleared = world.ask(UpdateTrigger { trigger: made.id, patch }).unwrap();
    assert_eq!((cleared.cooldown_secs, cleared.session_mode, cleared.target), (None, None, None));
    world.restart();
    assert_eq!(world.ask(GetTrigger(made.id)).unwrap(), cleared);
    world.ask(DeleteTrigger(made.id)).unwrap();
    assert_eq!(world.ask(GetTrigger(made.id)).unwrap_err().kind, RefusalKind::NotFound);
    assert_eq!((stored(&world, b'g'), stored(&world, b'h')), (0, 0));
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let nobody = AgentId(Uuid::from_u128(7));
    let id = create(&mut world, agent, &json!({ "all": {} }));
    let before = world.store.clone();
    let all = || new(&json!({ "all": {} }));
    let long = "x".repeat(limit::PROMPT_TEMPLATE_BYTES_MAX + 1);
    for (agent, trigger, kind, field) in [
        (nobody, all(), RefusalKind::NotFound, None),
        (agent, NewTrigger { target: Some(nobody), ..all() }, RefusalKind::NotFound, Some("target_agent_id")),
        (agent, NewTrigger { prompt_template: " ".into(), ..all() }, RefusalKind::BadRequest, Some("prompt_template")),
        (agent, NewTrigger { prompt_template: long.into(), ..all() }, RefusalKind::BadRequest, Some("prompt_template")),
    ] {
        let refusal = world.ask(CreateTrigger { agent, trigger }).unwrap_err();
        assert_eq!((refusal.kind, refusal.field.as_deref()), (kind, field));
    }
    for (trigger, patch, kind) in [
        (TriggerId(Uuid::nil()), TriggerPatch::default(), RefusalKind::NotFound),
        (
            id,
            TriggerPatch { target: Some(Some(nobody)), enabled: Some(false), ..Default::default() },
            RefusalKind::NotFound,
        ),
        (id, TriggerPatch { prompt_template: Some("".into()), ..Default::default() }, RefusalKind::BadRequest),
    ] {
        assert_eq!(world.ask(UpdateTrigger { trigger, patch }).unwrap_err().kind, kind);
    }
    assert_eq!(world.ask(DeleteTrigger(TriggerId(Uuid::nil()))).unwrap_err().kind, RefusalKind::NotFound);
    assert_eq!(world.ask(GetTriggerFires(TriggerId(Uuid::nil()))).unwrap_err().kind, RefusalKind::NotFound);
    assert_eq!(world.store, before);
}

#[test]
fn lists_page_in_order_of_creation_and_by_owner() {
    let mut world = TestWorld::new();
    let (a, b) = (world.spawn("a"), world.spawn("b"));
    let ids: Vec<TriggerId> =
        (0..10).map(|n| create(&mut world, if n % 2 == 0 { a } else { b }, &json!({ "lifecycle": {} }))).collect();
    world.restart();
    let first = world.ask(ListTriggers { limit: 4, ..ListTriggers::default() }).unwrap();
    let rest = world.ask(ListTriggers { limit: 100, after: first.next, ..ListTriggers::default() }).unwrap();
    let seen: Vec<TriggerId> = first.items.iter().chain(&rest.items).map(|view| view.id).collect();
    assert_eq!((seen, first.total, rest.next), (ids.clone(), Some(10), None));
    let own = world.ask(ListTriggers { agent: Some(b), limit: 3, after: None }).unwrap();
    assert_eq!(own.items.iter().map(|view| view.id).collect::<Vec<_>>(), [ids[1], ids[3], ids[5]]);
    let last = world.ask(ListTriggers { agent: Some(b), limit: 3, after: own.next }).unwrap();
    assert_eq!((last.items.len(), last.next), (2, None));
    let long = NewTrigger {
        prompt_template: "x".repeat(limit::PROMPT_TEMPLATE_BYTES_MAX).into(),
        ..new(&json!({ "system": {} }))
    };
    for _ in 0..20 {
        world.ask(CreateTrigger { agent: a, trigger: long.clone() }).unwrap();
    }
    let full = world.ask(ListTriggers { limit: 100, after: Some(ids[9]), agent: None }).unwrap();
    assert_eq!((full.items.len(), full.next), (16, full.items.last().map(|view| view.id)));
    let rest = world.ask(ListTriggers { limit: 100, after: full.next, agent: None }).unwrap();
    assert_eq!((rest.items.len(), rest.next), (4, None));
    let nobody = Some(AgentId(Uuid::from_u128(7)));
    assert!(world.ask(ListTriggers { agent: nobody, limit: 3, after: None }).unwrap().items.is_empty());
}

#[test]
fn a_trigger_goes_with_its_owner_and_is_switched_off_without_its_target() {
    let mut world = TestWorld::new();
    let (owner, other) = (world.spawn("owner"), world.spawn("other"));
    let own = create(&mut world, other, &json!({ "lifecycle": {} }));
    let routed = NewTrigger { target: Some(other), ..new(&json!({ "agent_spawned": {} })) };
    let routed = world.ask(CreateTrigger { agent: owner, trigger: routed }).unwrap().id;
    world.spawn("new");
    assert_eq!(world.ask(GetTriggerFires(own)).unwrap().log.outcomes.of(FireOutcome::Fired), 1);
    world.ask(RemoveAgents(vec![other])).unwrap();
    assert_eq!(world.ask(GetTrigger(own)).unwrap_err().kind, RefusalKind::NotFound);
    assert_eq!((stored(&world, b'g'), stored(&world, b'h')), (1, 1));
    for _ in 0..2 {
        let view = world.ask(GetTrigger(routed)).unwrap();
        assert_eq!((view.enabled, view.target), (false, None));
        world.restart();
    }
    world.ask(RemoveAgents(vec![owner])).unwrap();
    assert_eq!((stored(&world, b'g'), stored(&world, b'h')), (0, 0));
}

fn spawn_from(world: &mut TestWorld, text: &str) -> AgentId {
    let parsed = manifest::parse(text).unwrap();
    let hash = manifest::hash(&parsed.manifest);
    let command = SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text: text.to_owned() };
    world.ask(command).unwrap().agent
}

#[test]
fn triggers_of_a_manifest_are_made_with_each_agent_of_it() {
    let mut world = TestWorld::new();
    let nobody = Uuid::from_u128(7);
    let text = format!(
        "name = \"a\"\n[[triggers]]\npattern = {{ agent_spawned = {{}} }}\nprompt_template = \"Greet {{{{event}}}}\"\n\
         max_fires = 5\n[[triggers]]\npattern = \"system\"\nprompt_template = \"x\"\ntarget_agent_id = \"{nobody}\"\n"
    );
    let agent = spawn_from(&mut world, &text);
    let of = |world: &mut TestWorld, agent| {
        world.ask(ListTriggers { agent: Some(agent), limit: 10, after: None }).unwrap().items
    };
    let made = of(&mut world, agent);
    assert_eq!((made[0].max_fires, made[0].enabled, made[0].cooldown_secs), (5, true, None));
    assert_eq!((made[1].enabled, made[1].target), (false, None), "its target does not live");
    assert_eq!(made[0].fire_count, 0, "its own birth is not for it");
    let copy = world.ask(CloneAgent { agent, name: None, text }).unwrap().agent;
    assert_eq!(of(&mut world, copy).len(), 2);
    assert_eq!(of(&mut world, agent)[0].fire_count, 1, "the clone's birth is");
    world.restart();
    assert_eq!(of(&mut world, copy).len(), 2);
}

#[test]
fn the_house_takes_so_many_triggers() {
    let mut world = TestWorld::new();
    world.engine.world_mut().resource_mut::<Triggers>().used.count += limit::TRIGGERS_MAX - 1;
    let agent = world.spawn("a");
    let ping = json!({ "custom": { "event_type": "ping" } });
    let last = create(&mut world, agent, &ping);
    let refused = world.ask(CreateTrigger { agent, trigger: new(&ping) }).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::TooMany);
    assert!(refused.retry_after_secs.is_some() && refused.message.contains("4000000 triggers"), "{refused:?}");
    // Nor is an agent made whose manifest has one.
    let text = "name = \"b\"\n[[triggers]]\npattern = \"system\"\nprompt_template = \"x\"\n";
    let parsed = manifest::parse(text).unwrap();
    let hash = manifest::hash(&parsed.manifest);
    let with_one = SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text: text.to_owned() };
    assert_eq!(world.ask(with_one).unwrap_err().kind, RefusalKind::TooMany);
    assert_eq!(world.engine.stats().agents, 1);
    world.ask(DeleteTrigger(last)).unwrap();
    spawn_from(&mut world, text);
    assert_eq!(world.engine.stats().triggers, limit::TRIGGERS_MAX);
}

#[test]
fn the_texts_of_triggers_take_so_many_bytes_whether_they_are_made_changed_or_come_with_an_agent() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let says = |template: &str| NewTrigger {
        prompt_template: template.into(),
        ..new(&json!({ "custom": { "event_type": "ping" } }))
    };
    let make = |world: &mut TestWorld, template: &str| world.ask(CreateTrigger { agent, trigger: says(template) });
    let first = make(&mut world, "abc").unwrap().id;
    // Its pattern has four bytes, too.
    world.engine.world_mut().resource_mut::<Triggers>().used.bytes += limit::TRIGGERS_BYTES_MAX - 7 - 6;
    let second = make(&mut world, "de").unwrap().id;
    let full = (RefusalKind::TooMany, Some(error_codes::TRIGGERS_FULL), Some(60));
    let said = |refused: Refusal| (refused.kind, refused.code, refused.retry_after_secs);
    let before = world.store.clone();
    assert_eq!(said(make(&mut world, "f").unwrap_err()), full);
    let patch = |world: &mut TestWorld, trigger, template: &str| {
        let patch = TriggerPatch { prompt_template: Some(template.into()), ..TriggerPatch::default() };
        world.ask(UpdateTrigger { trigger, patch })
    };
    assert_eq!(said(patch(&mut world, first, "abcd").unwrap_err()), full);
    let text = "name = \"b\"\n[[triggers]]\npattern = \"system\"\nprompt_template = \"x\"\n";
    let parsed = manifest::parse(text).unwrap();
    let hash = manifest::hash(&parsed.manifest);
    let with_one = SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text: text.to_owned() };
    assert_eq!(said(world.ask(with_one).unwrap_err()), full);
    assert_eq!(world.store, before);
    // Who brings no texts comes in, what becomes no longer is taken, and what becomes shorter or goes makes room.
    world.spawn("c");
    patch(&mut world, first, "xyz").unwrap();
    patch(&mut world, second, "d").unwrap();
    patch(&mut world, first, "wxyz").unwrap();
    assert_eq!(said(patch(&mut world, first, "vwxyz").unwrap_err()), full);
    world.ask(DeleteTrigger(second)).unwrap();
    make(&mut world, "d").unwrap();
    assert_eq!(said(make(&mut world, "d").unwrap_err()), full);
    // A restart counts what there is.
    world.restart();
    assert_eq!(world.engine.check(), Vec::<String>::new());
    make(&mut world, "there is room").unwrap();
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

#[test]
fn a_manifest_has_so_many_triggers() {
    let one = "[[triggers]]\npattern = \"system\"\nprompt_template = \"x\"\n";
    let text = |count: usize| format!("name = \"a\"\n{}", one.repeat(count));
    assert!(manifest::parse(&text(limit::MANIFEST_TRIGGERS_MAX)).is_ok());
    assert!(manifest::parse(&text(limit::MANIFEST_TRIGGERS_MAX + 1)).is_err());
}
