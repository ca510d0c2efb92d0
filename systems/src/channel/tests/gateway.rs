//! Messages that a gateway passes on.

use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::scope::Role;

use super::*;
use crate::agent::SpawnAgent;
use crate::manifest;
use crate::people::{CreateUser, UserFields};

fn agent(world: &mut TestWorld, keys: &str) -> AgentId {
    let text = format!("name = 'of-gateway'\n{keys}\n");
    let parsed = manifest::parse(&text).unwrap();
    let hash = manifest::hash(&parsed.manifest);
    world.ask(SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text }).unwrap().agent
}

#[test]
fn policies_of_the_agent_hold_for_messages_of_gateways() {
    let message = |agent: AgentId, text: &str| AnswersGateway {
        agent,
        channel_type: "whatsapp".into(),
        sender: "49151".into(),
        is_group: true,
        was_mentioned: false,
        text: text.to_owned(),
    };
    let overrides = |keys: &str| format!("[channel_overrides]\n{keys}");
    let late = format!("{}help", " ".repeat(limit::PATTERN_TEXT_BYTES_MAX));
    for (keys, text, was_mentioned, expected) in [
        (String::new(), "hello", false, true),
        (overrides("group_policy = 'mention_only'"), "hello", false, false),
        (overrides("group_policy = 'mention_only'"), "hello", true, true),
        (overrides("group_trigger_patterns = ['\\bhelp\\b']"), "hello", false, false),
        (overrides("group_trigger_patterns = ['\\bhelp\\b']"), "I need HELP", false, true),
        (overrides("group_trigger_patterns = ['hi', '\\bhelp\\b']"), "I need HELP", false, true),
        (overrides("group_trigger_patterns = ['\\bhelp\\b']"), late.as_str(), false, false),
        (overrides("group_policy = 'commands_only'"), "hello", true, false),
        (overrides("group_policy = 'commands_only'"), " /status", false, true),
        (overrides("group_policy = 'ignore'"), "hello", true, false),
        ("channels = ['slack']".to_owned(), "hello", true, false),
        ("channels = ['slack', 'whatsapp']".to_owned(), "hello", true, true),
    ] {
        let mut world = TestWorld::new();
        let agent = agent(&mut world, &keys);
        let asked = AnswersGateway { was_mentioned, ..message(agent, text) };
        assert_eq!(world.ask(asked).unwrap(), expected, "{keys} {text}");
    }
    for (policy, of_strangers, of_users) in
        [("respond", true, true), ("allowed_only", false, true), ("ignore", false, false)]
    {
        let mut world = TestWorld::new();
        let agent = agent(&mut world, &overrides(&format!("dm_policy = '{policy}'")));
        let direct = AnswersGateway { is_group: false, ..message(agent, "hello") };
        assert_eq!(world.ask(direct.clone()).unwrap(), of_strangers, "{policy}");
        let user = |name: &str, sender: &str, role| {
            CreateUser(UserFields {
                name: Some(name.to_owned()),
                role: Some(role),
                channel_bindings: Some(vec![("whatsapp".to_owned(), sender.to_owned())]),
            })
        };
        world.ask(user("ann", "49151", Role::User)).unwrap();
        world.ask(user("bo", "49152", Role::Viewer)).unwrap();
        assert_eq!(world.ask(direct.clone()).unwrap(), of_users, "{policy}");
        let reader = AnswersGateway { sender: "49152".into(), ..direct };
        assert!(!world.ask(reader).unwrap(), "who may only read is not answered");
    }
    let mut world = TestWorld::new();
    let gone = AgentId(uuid::Uuid::from_u128(7));
    assert!(world.ask(message(gone, "hello")).is_err());
}
