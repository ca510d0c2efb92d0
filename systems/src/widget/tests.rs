//! Conversations of visitors in virtual time.

use agentsvc_components::channel::message::{ChatEvent, Sender};
use agentsvc_components::channel::rules::InstanceRules;
use agentsvc_components::kernel::job::{JobOutcome, RunJob, TryEnd};
use agentsvc_components::manifest::channel::{ChannelOverrides, DmPolicy};

use super::{ListWebMessages, PostWebMessage, WebPost, limits};
use crate::channel::{SEND, SendBy, SendTo, SendToChat, SendView, SetInstances};
use crate::kernel::entities::List;
use crate::testing::TestWorld;

fn world() -> TestWorld {
    let mut world = TestWorld::new();
    world.spawn("scout");
    set(&mut world, None);
    world
}

/// Puts the site in force.
fn set(world: &mut TestWorld, rate_limit_per_user: Option<u32>) {
    let rules = InstanceRules {
        name: "shop".into(),
        channel_type: "web_chat".into(),
        agent: Some("scout".into()),
        overrides: ChannelOverrides {
            dm_policy: Some(DmPolicy::Respond),
            rate_limit_per_user,
            ..ChannelOverrides::default()
        },
        suppress_errors: true,
        keeps_messages: true,
        ..InstanceRules::default()
    };
    world.ask(SetInstances(vec![rules])).unwrap();
}

fn said(visitor: &str, name: &str, text: &str) -> PostWebMessage {
    let event = ChatEvent {
        chat: visitor.into(),
        sender: Sender { id: visitor.into(), ..Sender::default() },
        text: text.into(),
        message_id: Some(name.into()),
        ..ChatEvent::default()
    };
    PostWebMessage { site: "shop".into(), event }
}

fn listed(world: &mut TestWorld, visitor: &str) -> Vec<(bool, String)> {
    let list = ListWebMessages { site: "shop".into(), visitor: visitor.into(), after: None };
    let all = world.ask(list).unwrap();
    all.into_iter().map(|it| (it.message.is_visitors, it.message.text.to_string())).collect()
}

fn send(world: &mut TestWorld, visitor: &str, text: &str) {
    let to = SendTo::Chat { instance: "shop".into(), chat: Some(visitor.into()), thread: None };
    let what = agentsvc_components::channel::send::SendContent { text: text.to_owned(), content: None };
    world.ask(SendToChat { to, what, by: SendBy::Operator }).unwrap();
}

/// Ends the sends that are out.
fn finish(world: &mut TestWorld) {
    let jobs: Vec<RunJob> = world.effects.iter().filter_map(|effect| effect.get::<RunJob>().cloned()).collect();
    world.effects.clear();
    for job in jobs {
        let end = TryEnd::Done("{\"state\":\"sent\"}".to_owned());
        world.outcome(JobOutcome(job.attempt, end));
    }
}

fn whole(world: &mut TestWorld) {
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn a_message_is_kept_once_and_each_visitor_has_their_own() {
    let mut world = world();
    assert_eq!(world.ask(said("v1", "m1", "hello")), Ok(WebPost::Kept));
    assert_eq!(world.ask(said("v1", "m1", "hello")), Ok(WebPost::Repeated));
    assert_eq!(world.ask(said("v2", "m1", "other")), Ok(WebPost::Kept));
    send(&mut world, "v1", "welcome");
    assert_eq!(listed(&mut world, "v1"), [(true, "hello".to_owned()), (false, "welcome".to_owned())]);
    assert_eq!(listed(&mut world, "v2"), [(true, "other".to_owned())]);
    assert!(listed(&mut world, "v3").is_empty());
    let unknown = PostWebMessage { site: "other".into(), ..said("v1", "m2", "x") };
    assert_eq!(world.ask(unknown), Ok(WebPost::Unanswered));
    whole(&mut world);
}

#[test]
fn a_restart_keeps_the_conversation_and_what_was_kept_counts_as_sent() {
    let mut world = world();
    world.ask(said("v1", "m1", "hello")).unwrap();
    send(&mut world, "v1", "welcome");
    assert!(world.effects.iter().any(|effect| effect.get::<RunJob>().is_some_and(|job| job.kind == SEND)));
    world.restart();
    world.step();
    assert_eq!(listed(&mut world, "v1").len(), 2);
    assert_eq!(world.ask(said("v1", "m1", "hello")), Ok(WebPost::Repeated));
    let sends = world.ask(List::<SendView> { limit: 10, ..List::default() }).unwrap().items;
    assert_eq!(sends.iter().map(|view| view.send.state.as_str()).collect::<Vec<_>>(), ["sent"]);
    whole(&mut world);
}

#[test]
fn the_oldest_messages_of_a_visitor_go() {
    let mut world = world();
    for n in 0..=limits::VISITOR_MESSAGES_MAX {
        send(&mut world, "v1", &n.to_string());
        finish(&mut world);
    }
    let kept = listed(&mut world, "v1");
    assert_eq!((kept.len(), kept[0].1.as_str()), (limits::VISITOR_MESSAGES_MAX, "1"));
    whole(&mut world);
}

#[test]
fn what_is_not_kept_may_come_again() {
    let mut world = TestWorld::new();
    set(&mut world, Some(1));
    for _ in 0..2 {
        assert_eq!(world.ask(said("v1", "m1", "hello")), Ok(WebPost::Unanswered), "there is no agent");
        assert!(listed(&mut world, "v1").is_empty());
        world.now = world.now.plus_ms(60_000);
        world.engine.set_now(world.now);
    }
    world.spawn("scout");
    assert_eq!(world.ask(said("v1", "m1", "hello")), Ok(WebPost::Kept));
    // The visitor is told of the rate once.
    assert_eq!(world.ask(said("v1", "m2", "more")), Ok(WebPost::Kept));
    assert_eq!(listed(&mut world, "v1").len(), 3);
    assert_eq!(world.ask(said("v1", "m3", "and more")), Ok(WebPost::TooMany));
    assert_eq!(world.ask(said("v1", "m3", "and more")), Ok(WebPost::TooMany));
    world.now = world.now.plus_ms(60_000);
    world.engine.set_now(world.now);
    assert_eq!(world.ask(said("v1", "m3", "and more")), Ok(WebPost::Kept));
    assert_eq!(listed(&mut world, "v1").len(), 4);
    whole(&mut world);
}

#[test]
fn a_site_has_room_of_its_own_and_its_oldest_messages_go() {
    let mut world = world();
    let long = "x".repeat(100_000);
    let each = limits::VISITOR_MESSAGES_BYTES_MAX / (long.len() + 100);
    let visitors = limits::SITE_MESSAGES_BYTES_MAX / (long.len() * each) + 2;
    for visitor in 0..visitors {
        for _ in 0..=each {
            send(&mut world, &format!("v{visitor}"), &long);
            finish(&mut world);
        }
        assert_eq!(listed(&mut world, &format!("v{visitor}")).len(), each, "a visitor has room of their own");
    }
    assert!(listed(&mut world, "v0").is_empty());
    let kept: usize = (0..visitors).map(|visitor| listed(&mut world, &format!("v{visitor}")).len()).sum();
    assert!(kept > each && kept * long.len() <= limits::SITE_MESSAGES_BYTES_MAX, "{kept}");
    whole(&mut world);
}
