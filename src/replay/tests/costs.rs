//! What writing inputs down costs: `cargo test --release --lib inputs::tests::costs -- --ignored --nocapture`.
//!
//! The same steps with and without it by turns, the least of each: on the world's thread, which everybody waits for, and on
//! the writer's, which makes an entry of each step before it goes to the thread of the log.

use std::time::{Duration, Instant};

use agentsvc_components::kernel::step::StepMark;
use agentsvc_components::session::message::{Block, Usage};
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_components::turn::outcome::{ModelAnswer, ModelEnd, ModelOutcome, StopReason};
use agentsvc_components::{Actor, AgentId, Timestamp};
use agentsvc_systems::kernel::engine::Commit;
use agentsvc_systems::replay::{Epoch, write_entry};
use agentsvc_systems::task::PostTask;
use agentsvc_systems::{Engine, Records, ReplySlot, Settings, agent, manifest, turn};

/// Steps of one run.
const STEPS: i64 = 20_000;
/// Runs of each kind; the least counts.
const RUNS: usize = 7;
const BEGAN: Timestamp = Timestamp(1_700_000_000_000);

/// A world, and what it took.
struct Timed {
    engine: Engine,
    now: Timestamp,
    world: Duration,
    writer: Duration,
    bytes: usize,
    steps: u32,
}

impl Timed {
    fn new(recorded: bool) -> Self {
        let (after, settings) = (StepMark::default(), Settings::default());
        let epoch =
            Epoch { after, now: BEGAN, seed: [1; 32], settings, memory: Vec::new(), next_log: 0, born: Timestamp(0) };
        let mut engine = epoch.begin(Records::default()).unwrap();
        engine.record(recorded);
        Self { engine, now: BEGAN, world: Duration::ZERO, writer: Duration::ZERO, bytes: 0, steps: 0 }
    }

    /// One step with what `arrive` brings.
    fn step(&mut self, arrive: impl FnOnce(&mut Engine)) -> Commit {
        self.now = self.now.plus_ms(1);
        let begun = Instant::now();
        self.engine.set_now(self.now);
        arrive(&mut self.engine);
        let commit = self.engine.step();
        self.world += begun.elapsed();
        let begun = Instant::now();
        let mut entry = Vec::new();
        if let Some(inputs) = &commit.inputs {
            write_entry(inputs, commit.ops.iter(), &mut entry);
        }
        self.writer += begun.elapsed();
        self.bytes += entry.len();
        self.steps += 1;
        commit
    }
}

fn tasks(timed: &mut Timed) {
    for at in 0..STEPS {
        let description = "the text of a task ".repeat(10);
        let command = PostTask { title: format!("task {at}"), description, ..PostTask::default() };
        timed.step(|engine| engine.command(Actor::Api, command, ReplySlot::new(drop)));
    }
}

/// The agents' messages by turns, and the model's answers.
fn turns(timed: &mut Timed) {
    let mut agents: Vec<AgentId> = Vec::new();
    for at in 0..100 {
        let text = format!("name = \"agent-{at}\"\n");
        let parsed = manifest::parse(&text).unwrap();
        let hash = manifest::hash(&parsed.manifest);
        let spawn = agent::SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text };
        timed.step(|engine| engine.command(Actor::Api, spawn, ReplySlot::new(drop)));
    }
    let view = timed.engine.world();
    agents.extend(view.iter_entities().filter_map(|entity| entity.get::<AgentId>().copied()));
    for at in 0..STEPS as usize / 2 {
        let message = turn::NewMessage::text(format!("message {at}: {}", "a few words ".repeat(10)));
        let send = turn::SendMessage { agent: agents[at % agents.len()], session: None, message };
        let mut commit = timed.step(|engine| engine.command(Actor::Api, send, ReplySlot::new(drop)));
        while let Some(call) = commit.effects.iter().find_map(|effect| effect.get::<ModelCall>()) {
            let answer = ModelAnswer {
                blocks: vec![Block::Text { text: "an answer of some words ".repeat(10) }],
                usage: Usage::of(500, 100),
                provider: "builtin".to_owned(),
                model: "builtin".to_owned(),
                stop: StopReason::End,
                pressed: false,
                before: Vec::new(),
                tokens_max: None,
            };
            let outcome = ModelOutcome(call.attempt, ModelEnd::Answered(answer));
            commit = timed.step(|engine| engine.outcome(outcome));
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn what_it_costs() {
    for (name, load) in [("a task is posted", tasks as fn(&mut Timed)), ("a turn, begun and answered", turns)] {
        let run = |recorded| {
            let mut timed = Timed::new(recorded);
            load(&mut timed);
            let per = |time: Duration| time.as_nanos() as f64 / f64::from(timed.steps);
            (per(timed.world), per(timed.writer), timed.bytes / timed.steps as usize)
        };
        let mut least = [(f64::MAX, f64::MAX, 0); 2];
        for _ in 0..RUNS {
            for (recorded, least) in [false, true].into_iter().zip(&mut least) {
                let (world, writer, bytes) = run(recorded);
                *least = (least.0.min(world), least.1.min(writer), bytes);
            }
        }
        let [(without, _, _), (with, writer, bytes)] = least;
        println!(
            "{name}: a step takes {without:.0} ns of the world's thread, {with:.0} ns recorded: {:+.1} %; {writer:.0} ns of \
             the writer's, {bytes} bytes",
            (with / without - 1.0) * 100.0
        );
    }
}
