//! A turn that a plugin has written to.

use agentsvc_components::AgentId;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::plugin::PromptChanged;

use crate::kernel::counters::StaleOutcomes;
use crate::kernel::index;
use crate::taint;
use crate::testing::TestWorld;
use crate::turn::{NewMessage, PostMessage};

fn called(world: &mut TestWorld) -> (AgentId, Attempt) {
    let agent = world.spawn("a");
    world.ask(PostMessage { agent, session: None, message: NewMessage::text("hello") }).unwrap();
    (agent, world.next_call().attempt)
}

fn taint_of(world: &TestWorld, attempt: Attempt) -> Taint {
    let inner = world.engine.world();
    taint::of(inner, index::turn(inner, agentsvc_components::TurnId(attempt.job.0)).unwrap())
}

#[test]
fn a_turn_that_a_plugin_changed_has_read_untrusted_content() {
    let mut world = TestWorld::new();
    let (_, attempt) = called(&mut world);
    assert_eq!(taint_of(&world, attempt), Taint::NONE);
    world.outcome(PromptChanged { attempt, plugin: "notes".into() });
    assert_eq!(taint_of(&world, attempt), Taint::TOOL);
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

#[test]
fn of_a_call_that_is_not_out_nothing_is_noted() {
    let mut world = TestWorld::new();
    let (_, attempt) = called(&mut world);
    let stale = Attempt { number: attempt.number + 1, ..attempt };
    world.outcome(PromptChanged { attempt: stale, plugin: "notes".into() });
    assert_eq!(taint_of(&world, attempt), Taint::NONE);
    assert_eq!(world.engine.world().resource::<StaleOutcomes>().0, 1);
}
