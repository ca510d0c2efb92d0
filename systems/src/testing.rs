//! A whole world in a test: virtual time, a scripted outside, and a check after every step that no dirty mark
//! was forgotten.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use agentsvc_components::audit::record::{AuditHead, SealAudit};
use agentsvc_components::event::Event;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::effect::AnyEffect;
use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::outcome::AnyOutcome;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::session::message::{Block, ToolCall, Usage};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::trigger::record::TriggerStateRecord;
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_components::turn::outcome::{ModelAnswer, ModelEnd, ModelOutcome, StopReason};
use agentsvc_components::turn::record::TurnRecord;
use agentsvc_components::turn::stream::StreamItem;
use agentsvc_components::{Actor, AgentId, LogId, Refusal, RefusalKind, Timestamp, TurnId};
use uuid::Uuid;

use crate::agent::SpawnAgent;
use crate::event::told::events_of;
use crate::kernel::record;
use crate::session::{SessionChange, changes_of};
use crate::{Command, Engine, Records, ReplySlot, Settings, manifest, trigger};

/// A reply that may have come.
pub(crate) struct Asked<R>(Arc<Mutex<Option<Result<R, Refusal>>>>);

impl<R> Asked<R> {
    /// The reply, if it has come.
    pub(crate) fn take(&self) -> Option<Result<R, Refusal>> {
        self.0.lock().unwrap().take()
    }
}

/// A world, its store and what it asked of the outside.
pub(crate) struct TestWorld {
    pub(crate) engine: Engine,
    /// Who sends the commands.
    pub(crate) actor: Actor,
    pub(crate) now: Timestamp,
    /// What the world gets when it starts anew.
    pub(crate) settings: Settings,
    pub(crate) store: HashMap<(Space, Vec<u8>), Vec<u8>>,
    pub(crate) calls: Vec<ModelCall>,
    pub(crate) effects: Vec<AnyEffect>,
    pub(crate) published: Vec<StreamItem>,
    /// Checkpoints of the audit trail that were asked for.
    pub(crate) seals: Vec<AuditHead>,
    pub(crate) events: Vec<Event>,
    /// What happened to sessions.
    pub(crate) sessions_told: Vec<SessionChange>,
}

impl TestWorld {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let mut engine = Engine::new(settings.clone(), [3; 32]);
        let now = Timestamp(1_700_000_000_000);
        engine.restore(Records::default(), now).unwrap();
        let (store, calls, effects) = (HashMap::new(), Vec::new(), Vec::new());
        let actor = Actor::Api;
        let (published, seals, events) = (Vec::new(), Vec::new(), Vec::new());
        let sessions_told = Vec::new();
        Self { engine, actor, now, settings, store, calls, effects, published, seals, events, sessions_told }
    }

    /// Runs a command and its step; the reply must have come with it.
    pub(crate) fn ask<C: Command>(&mut self, command: C) -> Result<C::Reply, Refusal> {
        let asked = self.begin(command);
        self.step();
        asked.take().expect("the reply comes with its step")
    }

    /// Runs a command without closing the step.
    pub(crate) fn begin<C: Command>(&mut self, command: C) -> Asked<C::Reply> {
        let place = Arc::new(Mutex::new(None));
        let to = Arc::clone(&place);
        self.now = self.now.plus_ms(1);
        self.engine.set_now(self.now);
        self.engine.command(self.actor, command, ReplySlot::new(move |reply| *to.lock().unwrap() = Some(reply)));
        Asked(place)
    }

    /// Closes the step: stores its records, then releases replies, then takes the effects.
    pub(crate) fn step(&mut self) -> Vec<Op> {
        let (commit, changed) = self.engine.step_audited();
        for op in &commit.ops {
            match &op.value {
                Some(value) => self.store.insert((op.space, op.key.clone()), value.clone()),
                None => self.store.remove(&(op.space, op.key.clone())),
            };
        }
        let unfolded = if changed.is_empty() { HashMap::new() } else { self.unfolded() };
        for op in changed {
            let stored = unfolded.get(&op.key).or_else(|| self.store.get(&(op.space, op.key.clone())));
            let is_same = match (&stored, &op.value) {
                (Some(stored), Some(value)) => plain(&op.key, stored) == plain(&op.key, value),
                (stored, value) => stored.is_none() && value.is_none(),
            };
            assert!(is_same, "changed but not marked: {:?}\n{stored:?}\n{:?}", op.key, op.value);
        }
        for release in commit.releases {
            release();
        }
        for effect in commit.effects {
            if let Some(call) = effect.get::<ModelCall>() {
                self.calls.push(call.clone());
            } else if let Some(item) = effect.get::<StreamItem>() {
                self.published.push(item.clone());
            } else if let Some(SealAudit(head)) = effect.get() {
                self.seals.push(*head);
            } else {
                self.effects.push(effect);
            }
        }
        for told in commit.told {
            match changes_of(told) {
                Ok(changes) => self.sessions_told.extend(changes),
                Err(told) => self.events.extend(events_of(told).into_iter().map(|happened| happened.event)),
            }
        }
        commit.ops
    }

    pub(crate) fn outcome(&mut self, outcome: impl Into<AnyOutcome>) {
        self.now = self.now.plus_ms(1);
        self.engine.set_now(self.now);
        self.engine.outcome(outcome);
        self.step();
    }

    /// The model answers a call with text.
    pub(crate) fn answer(&mut self, attempt: Attempt, text: &str) {
        let blocks = vec![Block::Text { text: text.to_owned() }];
        self.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(blocks))));
    }

    /// The next model call that went out.
    pub(crate) fn next_call(&mut self) -> ModelCall {
        assert!(!self.calls.is_empty(), "no model call is out");
        self.calls.remove(0)
    }

    /// Spawns an agent of a minimal manifest.
    pub(crate) fn spawn(&mut self, name: &str) -> AgentId {
        self.ask(spawn_command(name)).unwrap().agent
    }

    /// What is stored of the world.
    pub(crate) fn records(&self) -> Records {
        let mut records = Records::default();
        for ((space, key), value) in &self.store {
            if *space == Space::World {
                records.read(key, value).unwrap();
            }
        }
        records
    }

    /// The records that stored bursts stand for.
    fn unfolded(&self) -> HashMap<Vec<u8>, Vec<u8>> {
        if !self.store.keys().any(|(space, key)| *space == Space::World && key[0] == b'x') {
            return HashMap::new();
        }
        let mut records = self.records();
        trigger::unfold_for_tests(&mut records);
        let turns = records.iter::<TurnRecord>().map(record::put);
        let states = records.iter::<TriggerStateRecord>().map(record::put);
        turns.chain(states).filter_map(|op| Some((op.key, op.value?))).collect()
    }

    /// Kills the world and brings it back from what was stored.
    pub(crate) fn restart(&mut self) {
        self.revive();
        self.step();
    }

    /// The same, up to before the first step.
    pub(crate) fn revive(&mut self) {
        let records = self.records();
        self.engine = Engine::new(self.settings.clone(), [4; 32]);
        self.calls.clear();
        self.effects.clear();
        self.now = self.now.plus_ms(1_000);
        self.engine.restore(records, self.now).unwrap();
    }

    /// The stored rows of a log, in order.
    pub(crate) fn rows(&self, log: LogId) -> Vec<MessageRecord> {
        let prefix = record::log_prefix(log);
        let mut keys: Vec<_> =
            self.store.keys().filter(|(space, key)| *space == Space::Content && key.starts_with(&prefix)).collect();
        keys.sort_by(|a, b| a.1.cmp(&b.1));
        keys.into_iter().map(|key| record::decode(&key.1, &self.store[key]).unwrap()).collect()
    }

    /// The texts of a log's rows.
    pub(crate) fn texts(&self, log: LogId) -> Vec<String> {
        self.rows(log).iter().map(|row| agentsvc_components::session::message::text_of(&row.blocks)).collect()
    }
}

/// A stored value, without the number of bursts that a trigger's log knows of: that grows without the trigger.
fn plain(key: &[u8], value: &[u8]) -> Vec<u8> {
    match record::decode::<TriggerStateRecord>(key, value) {
        Ok(state) if key[0] == b'h' => record::encode(&TriggerStateRecord { bursts: 0, ..state }),
        _ => value.to_vec(),
    }
}

/// A key of a user of this number.
pub(crate) fn key_of(user: u128) -> Actor {
    Actor::Key { key: KeyId(Uuid::from_u128(9)), user: Some(UserId(Uuid::from_u128(user))) }
}

/// A turn of an agent.
pub(crate) fn turn_of(agent: AgentId) -> Actor {
    Actor::Agent { agent, turn: TurnId(Uuid::nil()) }
}

/// The users 1 and 2 with an agent each, and one of the installation.
pub(crate) fn two_users() -> (TestWorld, [AgentId; 3]) {
    let mut world = TestWorld::new();
    let shared = world.spawn("shared");
    let [anns, bobs] = [(1, "anns"), (2, "bobs")].map(|(user, name)| {
        world.actor = key_of(user);
        world.ask(spawn_command(name)).unwrap().agent
    });
    world.actor = Actor::Api;
    (world, [anns, bobs, shared])
}

/// Was it refused because a share of a pool is full? The sentence names whose.
#[track_caller]
pub(crate) fn share_is_full<T: std::fmt::Debug>(result: Result<T, Refusal>, code: &str, whose: &str) {
    let refused = result.unwrap_err();
    assert_eq!((refused.kind, refused.code.as_deref()), (RefusalKind::TooMany, Some(code)));
    assert!(refused.message.contains(whose) && refused.message.contains("delete some first"), "{}", refused.message);
}

pub(crate) fn spawn_command(name: &str) -> SpawnAgent {
    let text = format!("name = {name:?}\n[capabilities]\ntools = [\"*\"]\n");
    let parsed = manifest::parse(&text).unwrap();
    let hash = manifest::hash(&parsed.manifest);
    SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text }
}

pub(crate) fn answer(blocks: Vec<Block>) -> ModelAnswer {
    let usage = Usage::of(10, 5);
    ModelAnswer {
        blocks,
        usage,
        provider: "builtin".into(),
        model: "builtin".into(),
        stop: StopReason::End,
        pressed: false,
        before: Vec::new(),
        tokens_max: None,
    }
}

pub(crate) fn tool_call(id: &str) -> Block {
    Block::ToolCall(ToolCall { id: id.into(), name: "system_time".into(), input: "{}".into() })
}
