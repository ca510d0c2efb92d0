//! What is written down comes back, and a fed world does what the first one did.

use std::collections::BTreeSet;

use agentsvc_components::kernel::effect::AnyEffect;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::session::message::Block;
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_components::turn::outcome::{ModelAnswer, ModelEnd, ModelOutcome};
use agentsvc_components::{Actor, AgentId, Timestamp};

use super::*;
use crate::goal::CreateGoal;
use crate::kernel::id_generator::IdGenerator;
use crate::session::SetLabel;
use crate::testing::spawn_command;
use crate::turn::{NewMessage, PostMessage};
use crate::{Command, Engine, Records, ReplySlot, Settings};

/// A world whose steps are written.
struct Written {
    engine: Engine,
    epoch: Epoch,
    now: Timestamp,
    entries: Vec<Vec<u8>>,
    effects: Vec<AnyEffect>,
}

impl Written {
    fn new() -> Self {
        let now = Timestamp(1_700_000_000_000);
        let epoch = Epoch {
            after: agentsvc_components::kernel::step::StepMark::default(),
            now,
            seed: [9; 32],
            settings: Settings::default(),
            memory: Vec::new(),
            next_log: 0,
            born: Timestamp(0),
        };
        let mut engine = epoch.begin(Records::default()).unwrap();
        engine.record(true);
        Self { engine, epoch, now, entries: Vec::new(), effects: Vec::new() }
    }

    fn step(&mut self) -> Vec<Op> {
        let commit = self.engine.step();
        self.effects.extend(commit.effects);
        if let Some(inputs) = &commit.inputs {
            let mut bytes = Vec::new();
            write_entry(inputs, commit.ops.iter(), &mut bytes);
            self.entries.push(bytes);
        }
        commit.ops
    }

    fn tick(&mut self, ms: i64) {
        self.now = self.now.plus_ms(ms);
        self.engine.set_now(self.now);
    }

    fn ask<C: Command>(&mut self, command: C) -> Vec<Op> {
        self.tick(3);
        self.engine.command(Actor::Api, command, ReplySlot::new(drop));
        self.step()
    }

    fn spawn(&mut self, name: &str) -> AgentId {
        let ops = self.ask(spawn_command(name));
        let key = ops.iter().find(|op| op.space == Space::World && op.key[0] == b'a').unwrap();
        AgentId(uuid::Uuid::from_slice(&key.key[1..]).unwrap())
    }

    /// Feeds all that was written to another world; gives what came of each entry.
    fn replay(&self) -> Vec<Played> {
        let mut player = Player::new(&self.epoch, Rows::new()).unwrap();
        self.entries.iter().map(|bytes| player.feed(&Entry::read(bytes).unwrap()).unwrap()).collect()
    }
}

#[test]
fn names_of_writing_commands_are_unique() {
    let unique: BTreeSet<_> = names().collect();
    assert_eq!(unique.len(), names().count());
}

#[test]
fn a_fed_world_does_what_the_first_one_did() {
    let mut world = Written::new();
    let agent = world.spawn("a");
    world.ask(CreateGoal { title: "win".to_owned(), agent: Some(agent), ..CreateGoal::default() });
    let message = NewMessage::text("hello");
    world.ask(PostMessage { agent, session: None, message });
    let attempt = world.effects.iter().find_map(|effect| effect.get::<ModelCall>()).expect("a model is asked").attempt;
    world.tick(40);
    world.engine.beat();
    let blocks = vec![Block::Text { text: "hi".to_owned() }];
    let answer = ModelAnswer { blocks, ..ModelAnswer::default() };
    world.engine.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer)));
    world.step();
    let played = world.replay();
    assert!(played.len() >= 4);
    assert!(played.iter().all(Played::is_equal), "{played:#?}");
    assert!(played.iter().any(|played| played.changes.iter().any(|change| change.space == Space::Content)));
}

#[test]
fn refused_commands_are_inputs_and_steps_without_number() {
    let mut world = Written::new();
    world.spawn("a");
    let before = world.engine.newest();
    assert_eq!(world.ask(spawn_command("a")).len(), 0);
    assert_eq!(world.engine.newest(), before);
    let entry = Entry::read(world.entries.last().unwrap()).unwrap();
    assert!(!entry.step.stored && entry.step.arrivals.len() == 1);
    assert_eq!(entry.step.number, before.number);
    assert!(world.replay().iter().all(Played::is_equal));
}

#[test]
fn what_is_no_quick_read_is_not_carried_out_between_two_steps() {
    let mut world = Written::new();
    assert!(world.engine.read(Actor::Api, spawn_command("a")).is_none());
    assert_eq!(world.engine.stats().agents, 0);
}

#[test]
fn quiet_beats_are_written_together_with_what_follows() {
    let mut world = Written::new();
    world.spawn("a");
    // The first beat has old usage swept.
    world.tick(50);
    world.engine.beat();
    world.step();
    for _ in 0..5 {
        world.tick(50);
        world.engine.beat();
        world.step();
    }
    let (count, activity) = (world.entries.len(), world.engine.activity());
    world.tick(1);
    world.engine.command(Actor::Api, crate::world::GetStats, ReplySlot::new(drop));
    world.engine.command(Actor::Api, crate::kernel::stored::AwaitStored, ReplySlot::new(drop));
    world.step();
    assert_eq!((world.entries.len(), world.engine.activity()), (count, activity), "a read is no input");
    world.spawn("b");
    let entry = Entry::read(world.entries.last().unwrap()).unwrap();
    assert_eq!(entry.quiet.len(), 5);
    assert_eq!(entry.quiet[1].0 - entry.quiet[0].0, 50);
    assert!(world.replay().iter().all(Played::is_equal));
}

#[test]
fn a_clock_set_back_is_an_input() {
    let mut world = Written::new();
    world.spawn("a");
    // A read far ahead, which is not written; then back behind it, but not behind what was written.
    world.tick(1_000_000_000);
    world.step();
    world.tick(-500_000_000);
    world.step();
    let entry = Entry::read(world.entries.last().unwrap()).unwrap();
    assert_eq!(entry.step.set_back_from, Some(world.now.plus_ms(500_000_000)));
    assert!(world.replay().iter().all(Played::is_equal));
}

#[test]
fn a_change_is_found_at_its_step_and_in_its_record() {
    let mut world = Written::new();
    let agent = world.spawn("a");
    let session = world.ask(crate::session::CreateSession { agent, label: None });
    let key = session.iter().find(|op| op.space == Space::World && op.key[0] == b's').unwrap();
    let session = agentsvc_components::SessionId(uuid::Uuid::from_slice(&key.key[1..]).unwrap());
    world.ask(SetLabel { session, label: "ONE".to_owned() });
    world.ask(CreateGoal { title: "win".to_owned(), ..CreateGoal::default() });
    let at = world.entries.len() - 2;
    let place = world.entries[at].windows(3).position(|bytes| bytes == b"ONE").unwrap();
    world.entries[at][place + 2] = b'F';
    let played = world.replay();
    let differing: Vec<usize> = (0..played.len()).filter(|at| !played[*at].is_equal()).collect();
    assert_eq!(differing, [at], "only the step that was changed differs");
    let [missing] = played[at].missing.as_slice() else { panic!("{:?}", played[at].missing) };
    assert_eq!((missing.key[0], missing.is_content), (b's', false));
    let change = played[at].changes.iter().find(|change| change.key == missing.key).unwrap();
    let fields = compared(change.before.as_deref(), change.after.as_deref());
    assert!(fields.iter().any(|found| found.after == "ONF"), "{fields:?}");
}

#[test]
fn entries_that_are_damaged_are_refused_and_never_a_panic() {
    let mut world = Written::new();
    world.spawn("a");
    let bytes = &world.entries[0];
    for length in 0..bytes.len() {
        assert!(Entry::read(&bytes[..length]).is_err(), "{length}");
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        // The file's checksum finds what the form allows.
        let _ = Entry::read(&damaged);
    }
}

#[test]
fn an_epoch_comes_back() {
    let world = Written::new();
    let read = Epoch::from_bytes(&world.epoch.to_bytes()).unwrap();
    assert_eq!(format!("{read:?}"), format!("{:?}", world.epoch));
    assert!(Epoch::from_bytes(b"nonsense").is_err());
}

/// The beginning of an epoch as the first release wrote it.
#[derive(serde::Serialize)]
struct FirstEpoch<'a> {
    after: agentsvc_components::kernel::step::StepMark,
    now: Timestamp,
    seed: [u8; 32],
    settings: &'a Settings,
    memory: &'a [(AgentId, u64)],
}

#[test]
fn another_epoch_gives_out_no_log_that_may_yet_be_swept() {
    let mut world = Written::new();
    // Its session is gone and swept: no record knows of it.
    let given = world.engine.world_mut().resource_mut::<IdGenerator>().log();
    let epoch = Epoch::from_bytes(&Epoch::of(&world.engine, [8; 32]).to_bytes()).unwrap();
    let mut fresh = epoch.begin(Records::default()).unwrap();
    let next = fresh.world_mut().resource_mut::<IdGenerator>().log();
    assert_eq!(next.0, given.0 + 1);

    let Epoch { after, now, seed, ref settings, ref memory, .. } = epoch;
    let mut bytes = Vec::new();
    crate::kernel::inputs::table::encode_into(&FirstEpoch { after, now, seed, settings, memory }, &mut bytes);
    let mut old = Epoch::from_bytes(&bytes).unwrap().begin(Records::default()).unwrap();
    let first = old.world_mut().resource_mut::<IdGenerator>().log();
    assert_eq!(first.0, 1, "as that release did it");
}
