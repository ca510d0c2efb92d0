//! Which messages are answered.

use agentsvc_components::manifest::channel::GroupPolicy;

use super::*;

fn group(policy: Option<GroupPolicy>, patterns: &[&str]) -> InstanceRules {
    let mut rules = open("bot");
    rules.overrides.group_policy = policy;
    rules.overrides.group_trigger_patterns =
        (!patterns.is_empty()).then(|| patterns.iter().map(|text| (*text).into()).collect());
    rules
}

#[test]
fn groups_are_answered_as_their_policy_says() {
    let mentioned = |event: ChatEvent| ChatEvent { was_mentioned: true, ..event };
    let (mut world, _) = with(group(Some(GroupPolicy::MentionOnly), &["\\bhelp\\b"]));
    let plain = in_group("g", "ann", "good morning", "m1");
    assert_eq!(receive(&mut world, plain), Received::Ignored(Why::Policy));
    turn(&receive(&mut world, mentioned(in_group("g", "ann", "good morning", "m2"))));
    turn(&receive(&mut world, in_group("g", "ann", "I need HELP", "m3")));
    let named = ChatEvent { mentions: vec!["@Scout".into()], ..in_group("g", "ann", "hi", "m4") };
    turn(&receive(&mut world, named));
    let (mut world, _) = with(group(None, &["help"]));
    assert_eq!(receive(&mut world, in_group("g", "ann", "hi", "m1")), Received::Ignored(Why::Policy));
    let (mut world, _) = with(group(None, &[]));
    turn(&receive(&mut world, in_group("g", "ann", "hi", "m1")));
    let (mut world, _) = with(group(Some(GroupPolicy::CommandsOnly), &[]));
    let tagged = mentioned(in_group("g", "ann", "hi", "m1"));
    assert_eq!(receive(&mut world, tagged), Received::Ignored(Why::Policy));
    let asked = ChatEvent { command: command("status", ""), ..in_group("g", "ann", "/status", "m2") };
    assert!(matches!(receive(&mut world, asked), Received::Command(_)));
    let (mut world, _) = with(group(Some(GroupPolicy::Ignore), &[]));
    let tagged = mentioned(in_group("g", "ann", "hi", "m1"));
    assert_eq!(receive(&mut world, tagged), Received::Ignored(Why::Policy));
    assert_eq!(sends(&mut world).len(), 0);
}

#[test]
fn a_blocked_command_is_a_text() {
    let mut rules = open("bot");
    rules.overrides.blocked_commands = Some(vec!["status".into()]);
    let (mut world, _) = with(rules);
    let event = ChatEvent { command: command("status", ""), ..said("c1", "/status", "m1") };
    turn(&receive(&mut world, event));
}

#[test]
fn the_excess_is_told_once_a_minute() {
    for per_user in [true, false] {
        let mut rules = open("bot");
        match per_user {
            true => rules.overrides.rate_limit_per_user = Some(2),
            false => rules.overrides.rate_limit_per_minute = Some(2),
        }
        let (mut world, _) = with(rules);
        for id in ["m1", "m2"] {
            turn(&receive(&mut world, said("c1", "hello", id)));
        }
        let excess = receive(&mut world, said("c1", "hello", "m3"));
        assert!(matches!(&excess, Received::Answered { text, .. } if text.contains("Too many")), "{excess:?}");
        assert_eq!(receive(&mut world, said("c1", "hello", "m4")), Received::Ignored(Why::Rate));
        let other = receive(&mut world, said("c2", "hello", "m1"));
        assert_eq!(matches!(other, Received::Turn { .. }), per_user, "{other:?}");
        wait(&mut world, 60_000);
        turn(&receive(&mut world, said("c1", "hello", "m5")));
        whole(&mut world);
    }
}

#[test]
fn bots_that_answer_each_other_come_to_an_end() {
    let (mut world, _) = world();
    let bot = |text: &str, id: &str| {
        let mut event = said("c1", text, id);
        event.sender.is_bot = true;
        event
    };
    for n in 0..limits::BOT_REPLIES_MAX {
        turn(&receive(&mut world, bot("beep", &format!("b{n}"))));
        let call = world.next_call();
        world.answer(call.attempt, "boop");
    }
    assert_eq!(receive(&mut world, bot("beep", "b9")), Received::Ignored(Why::Loop));
    turn(&receive(&mut world, said("c1", "a person", "m1")));
    turn(&receive(&mut world, bot("beep", "b10")));
    let unmarked = |n: u32| said("c9", "beep", &format!("u{n}"));
    for n in 0..limits::CONVERSATION_TURNS_PER_MINUTE_MAX {
        receive(&mut world, unmarked(n));
    }
    assert_eq!(receive(&mut world, unmarked(99)), Received::Ignored(Why::Loop));
}

#[test]
fn messages_that_are_joined_are_one_turn_of_the_minute() {
    let mut rules = open("bot");
    rules.overrides.message_debounce_ms = Some(1_000);
    let (mut world, _) = with(rules);
    let lines = 3 * limits::CONVERSATION_TURNS_PER_MINUTE_MAX;
    let mut turns = 0;
    for n in 0..lines {
        match receive(&mut world, said("c1", "a line of many", &format!("m{n}"))) {
            Received::Waiting(_) => {}
            // So many are joined and no more.
            Received::Turn { .. } => turns += 1,
            received => panic!("{n}: {received:?}"),
        }
    }
    assert_eq!(turns, lines / limits::DEBOUNCE_JOINED);
    wait(&mut world, 1_000);
    let call = world.next_call();
    world.answer(call.attempt, "all of it");
    assert!((1..=3).contains(&sends(&mut world).len()));
    whole(&mut world);
}

#[test]
fn what_an_adapter_says_is_bounded() {
    let (mut world, _) = world();
    let long = "x".repeat(limits::CHAT_ID_BYTES_MAX + 1);
    let token =
        ChatEvent { reply_token: Some("x".repeat(limits::REPLY_TOKEN_BYTES_MAX + 1).into()), ..said("c", "a", "m") };
    for (event, field) in [
        (said("", "a", "m"), "chat"),
        (said(&long, "a", "m"), "chat"),
        (said("c\n", "a", "m"), "chat"),
        (said("c", "a", &long), "message_id"),
        (token, "reply_token"),
        (ChatEvent { mentions: vec!["a".into(); limits::CHAT_MENTIONS_MAX + 1], ..said("c", "a", "m") }, "mentions"),
    ] {
        let refused = world.ask(ReceiveMessage { instance: "bot".into(), event }).unwrap_err();
        assert_eq!(refused.field.as_deref(), Some(field));
    }
    let unknown = world.ask(ReceiveMessage { instance: "no".into(), event: said("c", "a", "m") }).unwrap_err();
    assert_eq!(unknown.code, Some(error_codes::CHANNEL_NOT_FOUND));
    assert_eq!(receive(&mut world, said("c", "  ", "m")), Received::Ignored(Why::Empty));
    turn(&receive(&mut world, said("c", &"ä".repeat(limits::CHAT_TEXT_BYTES_MAX), "m2")));
}

#[test]
fn strangers_take_no_room_of_others() {
    let (mut world, _) = with(InstanceRules { overrides: ChannelOverrides::default(), ..open("bot") });
    world.ask(PairChat { instance: "bot".into(), chat: "friend".into(), name: "Bo".into() }).unwrap();
    turn(&receive(&mut world, said("friend", "hello", "m1")));
    let bot = |n: usize| {
        // No notice, and so nothing that is open.
        let mut event = said(&format!("s{n}"), "hello", "m1");
        event.sender.is_bot = true;
        event
    };
    let one = |n| ReceiveMessage { instance: "bot".into(), event: bot(n) };
    let asked: Vec<_> = (0..limits::STRANGERS_MAX + 5).map(|n| world.begin(one(n))).collect();
    world.step();
    assert!(asked.iter().all(|asked| asked.take().unwrap().unwrap() == Received::Ignored(Why::Stranger)));
    let view = &world.ask(List::<InstanceView> { limit: 9, ..List::default() }).unwrap().items[0];
    assert_eq!((view.conversations, view.strangers), (1, limits::STRANGERS_MAX));
    assert_eq!((view.counts.turns, view.counts.ignored), (1, limits::STRANGERS_MAX as u64 + 5));
    whole(&mut world);
}

#[test]
fn wrong_rules_change_nothing() {
    let (mut world, _) = world();
    let mut bad = open("other");
    bad.overrides.group_trigger_patterns = Some(vec!["(".into()]);
    for (rules, field) in [
        (vec![open("a"), open("a")], "sidecar_channels.name"),
        (vec![open("")], "sidecar_channels.name"),
        (vec![bad], "sidecar_channels.group_trigger_patterns"),
    ] {
        assert_eq!(world.ask(SetInstances(rules)).unwrap_err().field.as_deref(), Some(field));
    }
    turn(&receive(&mut world, said("c1", "hello", "m1")));
    world.ask(SetInstances(Vec::new())).unwrap();
    assert!(world.ask(ReceiveMessage { instance: "bot".into(), event: said("c1", "hi", "m2") }).is_err());
    let call = world.next_call();
    world.answer(call.attempt, "late");
    assert_eq!(sends(&mut world).len(), 1, "what came before is answered when the instance is back");
    whole(&mut world);
}
