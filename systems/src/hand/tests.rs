//! Instances of hands in virtual time.

use agentsvc_components::agent::Agent;
use agentsvc_components::hand::{HandState, HandValue};
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::{Actor, RefusalKind};

use super::definition::parse;
use super::prepare::{Around, members};
use super::values::{Config, check, chosen_values, effective_values, environment, section};
use super::*;
use crate::agent::{RemoveAgents, StopAgents};
use crate::kernel::entities::{Get, List};
use crate::kernel::index;
use crate::schedule::{ListSchedules, ScheduleView};
use crate::testing::TestWorld;
use crate::turn::{NewMessage, SendMessage};

const TEAM: &str = r#"
id = "herald"
version = "1.2.0"

[[settings]]
key = "style"
label = "Style"
setting_type = "select"
default = "short"
[[settings.options]]
value = "short"
label = "Short"
[[settings.options]]
value = "long"
label = "Long"
provider_env = "NEWS_KEY"

[[settings]]
key = "token"
label = "Token"
setting_type = "text"
env_var = "HERALD_TOKEN"

[agents.main]
coordinator = true
system_prompt = "Write."
schedule = { continuous = { check_interval_secs = 60 } }
[agents.helper]
invoke_hint = "Facts"
system_prompt = "Look up."
"#;

fn hand() -> definition::HandDefinition {
    parse(TEAM).unwrap()
}

fn activation(config: Config) -> ActivateHand {
    let hand = hand();
    let settings = section(&hand, &config);
    let around = Around { settings: settings.clone(), ..Around::default() };
    ActivateHand {
        members: members(&hand, &around).unwrap(),
        coordinator: hand.coordinator() as u32,
        environment: environment(&hand, &config),
        settings_text: settings.into(),
        config,
        hand: hand.id.into(),
        version: hand.version.into(),
    }
}

fn chosen(key: &str, text: &str) -> Config {
    Config::from([(key.into(), HandValue { text: text.into(), is_sealed: false })])
}

fn get(world: &mut TestWorld, id: HandInstanceId) -> HandView {
    world.ask(Get::<HandView>(id)).unwrap()
}

fn prompt(world: &mut TestWorld, name: &str) -> String {
    let world = world.engine.world_mut();
    let agent = crate::agent::agent_named(world, name).unwrap();
    world.get::<Agent>(agent).unwrap().manifest.manifest.system_prompt.to_string()
}

fn schedules(world: &mut TestWorld) -> Vec<ScheduleView> {
    world.ask(ListSchedules { kind: ScheduleKind::Schedule, agent: None, after: None, limit: 100 }).unwrap().items
}

fn wait(world: &mut TestWorld, ms: i64) {
    world.now = world.now.plus_ms(ms);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
    while world.engine.has_work() {
        world.step();
    }
}

fn check_world(world: &mut TestWorld) {
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

#[test]
fn an_instance_comes_with_its_agents_and_goes_with_them() {
    let mut world = TestWorld::new();
    let first = world.ask(activation(Config::new())).unwrap();
    let names: Vec<_> = first.instance.members.iter().map(|member| &*member.name).collect();
    assert_eq!((&names[..], first.status()), (&["herald:helper", "herald:main"][..], "running"));
    assert_eq!(first.instance.coordinator().unwrap().name.as_ref(), "herald:main");
    let text = prompt(&mut world, "herald:main");
    assert!(text.starts_with("Write.\n\n## User Configuration\n- Style (`style`): Short (short)\n"), "{text}");
    assert!(text.ends_with("by name:\n- `herald:helper` (helper): Facts\n"), "{text}");
    let second = world.ask(activation(Config::new())).unwrap();
    assert_eq!((second.instance.number, &*second.instance.members[1].name), (2, "herald:main#2"));
    assert!(prompt(&mut world, "herald:main#2").contains("`herald:helper#2`"));
    world.restart();
    assert_eq!(get(&mut world, first.id), first);
    assert_eq!(world.ask(CountHands).unwrap()["herald"], 2);
    world.ask(Remove::<HandInstance>(first.id)).unwrap();
    assert_eq!(world.ask(Get::<HandView>(first.id)).unwrap_err().kind, RefusalKind::NotFound);
    assert_eq!(schedules(&mut world).len(), 1, "its schedules went with its agents");
    let third = world.ask(activation(Config::new())).unwrap();
    assert_eq!(third.instance.number, 1, "the lowest free number");
    check_world(&mut world);
}

#[test]
fn activation_is_whole_or_nothing() {
    let mut world = TestWorld::new();
    world.spawn("herald:main");
    let before = world.store.len();
    let refusal = world.ask(activation(Config::new())).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Conflict);
    let mut bad = activation(Config::new());
    bad.members[1].manifest.wake = agentsvc_components::manifest::Wake::Periodic("never".into());
    bad.members[1].name = "herald:other".into();
    let refusal = world.ask(bad).unwrap_err();
    assert_eq!(refusal.field.as_deref(), Some("schedule.periodic.cron"));
    assert_eq!((world.store.len(), world.ask(CountHands).unwrap().len()), (before, 0));
    assert!(crate::agent::agent_named(world.engine.world_mut(), "herald:helper").is_none());
}

#[test]
fn a_paused_instance_does_nothing_by_itself() {
    let mut world = TestWorld::new();
    let made = world.ask(activation(Config::new())).unwrap();
    assert_eq!(world.ask(ResumeHand(made.id)).unwrap_err().kind, RefusalKind::Conflict);
    wait(&mut world, 61_000);
    assert_eq!(world.calls.len(), 1);
    let call = world.next_call();
    world.answer(call.attempt, "done");
    let paused = world.ask(PauseHand(made.id)).unwrap();
    assert_eq!((paused.status(), paused.instance.turns), ("paused", 1));
    assert_eq!(world.ask(PauseHand(made.id)).unwrap_err().kind, RefusalKind::Conflict);
    for _ in 0..2 {
        wait(&mut world, 61_000);
        assert!(world.calls.is_empty(), "its schedules rest");
        world.restart();
    }
    assert!(schedules(&mut world)[0].past.tally.agent_stopped > 0);
    let coordinator = made.instance.coordinator().unwrap().agent;
    world.begin(SendMessage { agent: coordinator, session: None, message: NewMessage::text("hello") });
    world.step();
    let call = world.next_call();
    world.answer(call.attempt, "I am here");
    assert_eq!(get(&mut world, made.id).instance.turns, 2, "messages are answered");
    assert_eq!(world.ask(ResumeHand(made.id)).unwrap().instance.state, HandState::Running);
    wait(&mut world, 61_000);
    assert_eq!(world.calls.len(), 1);
    check_world(&mut world);
}

#[test]
fn settings_change_the_prompts_and_the_environment() {
    let mut world = TestWorld::new();
    let made = world.ask(activation(Config::new())).unwrap();
    let agent = made.instance.members[0].agent;
    assert_eq!(names(&mut world, agent), ["HERALD_TOKEN"]);
    let (hand, config) = (hand(), chosen("style", "long"));
    let set = |was: &Config| SetHandConfig {
        instance: made.id,
        was: was.clone(),
        config: config.clone(),
        environment: environment(&hand, &config),
        settings_text: section(&hand, &config).into(),
    };
    let view = world.ask(set(&Config::new())).unwrap();
    assert_eq!(view.instance.config, config);
    assert!(prompt(&mut world, "herald:helper").contains("Style (`style`): Long (long)\n"));
    assert!(!prompt(&mut world, "herald:helper").contains("Short"), "in place of the old section");
    assert_eq!(names(&mut world, agent), ["NEWS_KEY", "HERALD_TOKEN"]);
    let refusal = world.ask(set(&Config::new())).unwrap_err();
    assert_eq!(refusal.code, Some(error_codes::HAND_CHANGED), "another change came before");
    world.restart();
    assert_eq!(get(&mut world, made.id), view);
    check_world(&mut world);
}

fn names(world: &mut TestWorld, agent: AgentId) -> Vec<String> {
    world.ask(HandEnvironment(agent)).unwrap().into_iter().map(|variable| variable.name.into()).collect()
}

#[test]
fn an_instance_whose_agent_was_deleted_is_in_error() {
    let mut world = TestWorld::new();
    let made = world.ask(activation(Config::new())).unwrap();
    world.ask(RemoveAgents(vec![made.instance.members[0].agent])).unwrap();
    for _ in 0..2 {
        let view = get(&mut world, made.id);
        assert_eq!((view.status(), view.error().as_deref()), ("error", Some("deleted agents: herald:helper")));
        check_world(&mut world);
        world.restart();
    }
    world.ask(StopAgents(vec![made.instance.members[1].agent])).unwrap();
    world.ask(Remove::<HandInstance>(made.id)).unwrap();
    let list = List::<HandView> { filter: None, after: None, limit: 10 };
    assert_eq!(world.ask(list).unwrap().items, []);
    assert_eq!(index::agent(world.engine.world_mut(), made.instance.members[1].agent).ok(), None);
    assert_eq!(world.actor, Actor::Api);
}

#[test]
fn values_are_checked_shown_and_hidden() {
    let hand = hand();
    for (key, value, fits) in
        [("style", "long", true), ("style", "loud", false), ("other", "x", true), ("token", "a\0b", false)]
    {
        let checked = check(&hand, key, value);
        assert_eq!(checked.is_ok(), fits, "{key} {value}");
        if let Err(refusal) = checked {
            assert_eq!(refusal.field, Some(format!("config.{key}")));
        }
    }
    let mut config = chosen("other", "x");
    config.insert("token".into(), HandValue { text: "sealed".into(), is_sealed: true });
    config.insert("style".into(), HandValue { text: "gone".into(), is_sealed: false });
    let [known, unknown] = chosen_values(&hand, &config);
    assert_eq!((&*known["token"], &*known["style"], &*unknown["other"]), ("***", "gone", "x"));
    let effective = effective_values(&hand, &config);
    assert_eq!((&*effective["style"], &*effective["token"]), ("short", "***"), "an option that is gone does not count");
    assert!(section(&hand, &config).contains("Token (`token`): in the environment variable HERALD_TOKEN"));
    assert_eq!(environment(&hand, &config)[0].sealed.as_deref(), Some("sealed"));
}
