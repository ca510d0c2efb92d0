//! Which agent answers, in which session.

use agentsvc_components::RefusalKind;
use agentsvc_components::channel::rules::ChatBinding;
use agentsvc_components::manifest::channel::{AutoRoute, OutputFormat, UsageFooter};
use agentsvc_components::turn::Turn;

use super::*;
use crate::agent::SpawnAgent;
use crate::manifest;

fn two(rules: InstanceRules) -> (TestWorld, AgentId, AgentId) {
    let mut world = TestWorld::new();
    let (scout, clerk) = (world.spawn("scout"), world.spawn("clerk"));
    world.ask(SetInstances(vec![rules, open("other")])).unwrap();
    (world, scout, clerk)
}

fn offering() -> InstanceRules {
    InstanceRules { available_agents: vec!["scout".into(), "clerk".into()], ..open("bot") }
}

fn answerer(world: &mut TestWorld, event: ChatEvent) -> AgentId {
    turn(&receive(world, event)).0
}

#[test]
fn no_chat_has_the_session_of_another() {
    let mut rules = offering();
    rules.overrides.threading = Some(true);
    let (mut world, _, _) = two(rules);
    let session = |world: &mut TestWorld, instance: &str, event: ChatEvent| {
        turn(&world.ask(ReceiveMessage { instance: instance.into(), event }).unwrap()).1
    };
    let threaded = |thread: &str, id: &str| ChatEvent { thread: Some(thread.into()), ..said("c1", "a", id) };
    let first = session(&mut world, "bot", said("c1", "a", "m1"));
    let all = [
        first,
        session(&mut world, "bot", said("c2", "a", "m1")),
        session(&mut world, "other", said("c1", "a", "m1")),
        session(&mut world, "bot", threaded("t1", "m2")),
        session(&mut world, "bot", threaded("t2", "m3")),
    ];
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
    world.restart();
    assert_eq!(session(&mut world, "bot", said("c1", "b", "m4")), first);
    whole(&mut world);
}

#[test]
fn a_chat_chooses_among_the_agents_of_its_channel() {
    let (mut world, scout, clerk) = two(offering());
    let Received::Turn { conversation, session, .. } = receive(&mut world, said("c1", "a", "m1")) else { panic!() };
    let choose = |agent: Option<&str>| ChooseAgent { conversation, agent: agent.map(Into::into) };
    world.ask(choose(Some("clerk"))).unwrap();
    assert_eq!(answerer(&mut world, said("c1", "a", "m2")), clerk);
    assert_eq!(answerer(&mut world, said("c2", "a", "m1")), scout, "the choice is that of one chat");
    let refused = world.ask(choose(Some("nobody"))).unwrap_err();
    assert_eq!(refused.code, Some(error_codes::CHANNEL_AGENT_UNKNOWN));
    world.ask(choose(None)).unwrap();
    assert_eq!(turn(&receive(&mut world, said("c1", "a", "m3"))).1, session, "and finds its session again");
    let refused = world.ask(RenewConversation(conversation)).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::Busy, "what is being answered would be lost");
    while !world.calls.is_empty() {
        let call = world.next_call();
        world.answer(call.attempt, "hello");
    }
    world.ask(RenewConversation(conversation)).unwrap();
    assert!(turn(&receive(&mut world, said("c1", "a", "m4"))).1 != session);
    let offered = world.ask(OfferedAgents { instance: "bot".into() }).unwrap();
    assert_eq!(offered, [(scout, "scout".into()), (clerk, "clerk".into())]);
    whole(&mut world);
}

#[test]
fn the_binding_with_the_most_weight_counts_and_one_of_the_peer_beats_the_instance() {
    let binding = |agent: &str, peer: Option<&str>, guild: Option<&str>| ChatBinding {
        agent: agent.into(),
        channel: Some("telegram".into()),
        peer_id: peer.map(Into::into),
        guild_id: guild.map(Into::into),
        ..ChatBinding::default()
    };
    let bindings = vec![binding("scout", None, Some("g1")), binding("clerk", Some("c1"), None)];
    let (mut world, scout, clerk) = two(InstanceRules { bindings, ..open("bot") });
    assert_eq!(answerer(&mut world, said("c1", "a", "m1")), clerk);
    assert_eq!(answerer(&mut world, said("c2", "a", "m1")), scout);
    let bindings = vec![binding("scout", None, None), binding("clerk", None, Some("g1"))];
    let (mut world, scout, clerk) = two(InstanceRules { agent: None, bindings, ..open("bot") });
    let in_guild = ChatEvent { guild_id: Some("g1".into()), ..said("c1", "a", "m1") };
    assert_eq!(answerer(&mut world, in_guild), clerk);
    assert_eq!(answerer(&mut world, said("c2", "a", "m1")), scout);
}

#[test]
fn a_group_asks_by_name_and_the_one_that_answered_keeps_it_for_a_while() {
    let (mut world, scout, clerk) = two(offering());
    let named = ChatEvent { mentions: vec!["clerk".into()], ..in_group("g", "ann", "hi", "m1") };
    assert_eq!(answerer(&mut world, named), clerk);
    let call = world.next_call();
    world.answer(call.attempt, "yes?");
    assert_eq!(answerer(&mut world, in_group("g", "ann", "more", "m2")), clerk);
    let call = world.next_call();
    world.answer(call.attempt, "ok");
    wait(&mut world, 600_001);
    assert_eq!(answerer(&mut world, in_group("g", "ann", "later", "m3")), scout);
}

#[test]
fn an_agent_is_asked_for_only_where_it_is_offered() {
    let (mut world, scout, clerk) = two(offering());
    let asked = |agent: &str, id: &str| ChatEvent { asked_agent: Some(agent.into()), ..said("c1", "a", id) };
    assert_eq!(answerer(&mut world, asked("clerk", "m1")), clerk);
    let (mut closed, own, _) = two(open("bot"));
    assert_eq!(answerer(&mut closed, asked("clerk", "m1")), own);
    assert!(scout != clerk);
}

#[test]
fn the_keys_of_an_agents_manifest_come_before_those_of_the_instance() {
    let mut world = TestWorld::new();
    let text = "name = 'scout'\nchannels = ['telegram']\n[channel_overrides]\nprefix_agent_name = 'bracket'\n";
    let parsed = manifest::parse(text).unwrap();
    let hash = manifest::hash(&parsed.manifest);
    world.ask(SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text: text.to_owned() }).unwrap();
    let other = InstanceRules { channel_type: "slack".into(), ..open("slack") };
    world.ask(SetInstances(vec![open("bot"), other])).unwrap();
    turn(&receive(&mut world, said("c1", "a", "m1")));
    let call = world.next_call();
    world.answer(call.attempt, "hi");
    assert_eq!(orders(&mut world)[0].1.what.text, "[scout] hi");
    let elsewhere = world.ask(ReceiveMessage { instance: "slack".into(), event: said("c1", "a", "m1") }).unwrap();
    assert!(matches!(&elsewhere, Received::Answered { text, .. } if text.contains("No agent")), "{elsewhere:?}");
}

#[test]
fn the_first_word_chooses_an_agent_where_the_channel_lets_it() {
    let with = |auto_route| {
        let mut rules = offering();
        rules.overrides.auto_route = auto_route;
        two(rules)
    };
    let (mut world, scout, _) = with(None);
    assert_eq!(answerer(&mut world, said("c1", "clerk, decide", "m1")), scout);
    for (route, then_clerk) in [(AutoRoute::ExplicitOnly, false), (AutoRoute::StickyTtl, true)] {
        let (mut world, scout, clerk) = with(Some(route));
        assert_eq!(answerer(&mut world, said("c1", "@Clerk: decide", "m1")), clerk);
        assert_eq!(answerer(&mut world, said("c2", "let the clerk decide", "m1")), scout);
        while !world.calls.is_empty() {
            let call = world.next_call();
            world.answer(call.attempt, "ok");
        }
        assert_eq!(answerer(&mut world, said("c1", "and now?", "m2")), if then_clerk { clerk } else { scout });
    }
}

/// An agent with these words in `[metadata.routing]`.
fn led_to(world: &mut TestWorld, name: &str, routing: &str) -> AgentId {
    let text = format!("name = '{name}'\n[metadata.routing]\n{routing}\n");
    let parsed = manifest::parse(&text).unwrap();
    let hash = manifest::hash(&parsed.manifest);
    world.ask(SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text }).unwrap().agent
}

#[test]
fn aliases_lead_to_an_agent() {
    let with = |auto_route| {
        let mut rules = offering();
        rules.overrides.auto_route = auto_route;
        let mut world = TestWorld::new();
        let scout = world.spawn("scout");
        let words = "aliases = ['Customer Support', 'help desk']\nweak_aliases = ['ticket', 'refund', 'order']";
        let clerk = led_to(&mut world, "clerk", words);
        world.ask(SetInstances(vec![rules])).unwrap();
        (world, scout, clerk)
    };
    let (mut world, scout, clerk) = with(None);
    let mentioning = |name: &str, id: &str| ChatEvent { mentions: vec![name.into()], ..in_group(id, "ann", "hi", id) };
    assert_eq!(answerer(&mut world, mentioning("@customer support", "m1")), clerk);
    assert_eq!(answerer(&mut world, mentioning("ticket", "m2")), scout, "a weak alias is no name");
    assert_eq!(answerer(&mut world, said("c1", "help desk, please", "m3")), scout, "only where the channel lets it");
    let (mut world, scout, clerk) = with(Some(AutoRoute::ExplicitOnly));
    assert_eq!(answerer(&mut world, said("c1", "Help-Desk: my order is late", "m1")), clerk);
    assert_eq!(answerer(&mut world, said("c2", "the help desk is closed", "m2")), scout);
    assert_eq!(answerer(&mut world, said("c3", "help", "m3")), scout, "a part of an alias is none");
    let (mut world, scout, clerk) = with(Some(AutoRoute::StickyHeuristic));
    let both = "the ticket and the refund of my order go to customer support";
    assert_eq!(answerer(&mut world, said("c1", both, "m1")), clerk, "three points and one for each of three words");
    assert_eq!(answerer(&mut world, said("c2", "a ticket for customer support", "m2")), scout, "four are not enough");
    whole(&mut world);
}

#[test]
fn an_instance_chooses_the_model_the_form_and_the_footer_of_answers() {
    let mut rules = open("bot");
    rules.overrides.model = Some("other/small".into());
    rules.overrides.output_format = Some(OutputFormat::PlainText);
    rules.overrides.reply_precheck = Some(true);
    rules.overrides.usage_footer = Some(UsageFooter::Tokens);
    let (mut world, _) = super::with(rules);
    for (event, may_be_silent) in [
        (said("c1", "hello", "m1"), false),
        (in_group("room", "ann", "hello all", "m2"), true),
        (ChatEvent { was_mentioned: true, ..in_group("room2", "ann", "hello bot", "m3") }, false),
    ] {
        turn(&receive(&mut world, event));
        let call = world.next_call();
        assert_eq!((&*call.model.provider, &*call.model.model), ("other", "small"));
        let entity = crate::kernel::index::turn(world.engine.world(), TurnId(call.attempt.job.0)).unwrap();
        let request = world.engine.world().get::<Turn>(entity).unwrap().request.clone().unwrap();
        let system = request.system.clone().unwrap();
        assert!(system.contains("plain text") && system.contains("NO_REPLY") == may_be_silent, "{system}");
        world.answer(call.attempt, "yes");
    }
    let previews: Vec<_> = sends(&mut world).into_iter().map(|it| it.send.preview).collect();
    assert!(
        previews.len() == 3 && previews.iter().all(|text| text.starts_with("yes\n\n[") && text.ends_with(" tokens]")),
        "{previews:?}"
    );
}

#[test]
fn a_question_beside_the_conversation_has_a_session_of_its_own() {
    let (mut world, _) = world();
    let session = turn(&receive(&mut world, said("c1", "hello", "m1"))).1;
    let event = ChatEvent { command: command("btw", "what is 1 + 1?"), ..said("c1", "/btw what is 1 + 1?", "m2") };
    let aside = receive(&mut world, event);
    assert!(turn(&aside).1 != session);
    assert_eq!(
        turn(&receive(&mut world, said("c1", "go on", "m3"))).1,
        session,
        "the conversation does not remember it"
    );
    let bare = ChatEvent { command: command("btw", ""), ..said("c1", "/btw", "m4") };
    assert!(matches!(receive(&mut world, bare), Received::Command(_)));
    let mut rules = open("bot");
    rules.overrides.blocked_commands = Some(vec!["btw".into()]);
    let (mut world, _) = super::with(rules);
    let session = turn(&receive(&mut world, said("c1", "hello", "m1"))).1;
    let event = ChatEvent { command: command("btw", "x"), ..said("c1", "/btw x", "m2") };
    assert_eq!(turn(&receive(&mut world, event)).1, session, "a blocked command is a text");
}

#[test]
fn several_agents_answer_where_a_chat_has_them() {
    let rules = InstanceRules { broadcast: vec![("c1".into(), vec!["scout".into(), "clerk".into()])], ..open("bot") };
    let (mut world, scout, _) = two(rules);
    assert_eq!(answerer(&mut world, said("c1", "a", "m1")), scout);
    assert_eq!(world.calls.len(), 2);
    while !world.calls.is_empty() {
        let call = world.next_call();
        world.answer(call.attempt, "hi");
    }
    assert_eq!((sends(&mut world).len(), open_messages(&mut world)), (2, 0));
    assert_eq!(answerer(&mut world, said("c2", "a", "m1")), scout);
    assert_eq!(world.calls.len(), 1);
    whole(&mut world);
}
