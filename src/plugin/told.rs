//! What plugins are told of behind turns: turns that have ended, agents that others create, events, and that they are put in force.
//! Nothing waits for them. Each plugin hears of one thing after the other; where it has no room, whoever's waits most loses its
//! newest, which is counted.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agentsvc_api::http::shutdown::Shutdown;
use agentsvc_api::session::content::{MessageRange, in_force};
use agentsvc_components::event::{Event, EventEnvelope};
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_components::{AgentId, LogId, TurnId};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::config::ContextEngine;
use super::conversation::told;
use super::engine::Engine;
use super::hook::Hook;
use super::plugin::Plugin;
use super::run::{Who, call, preparing};
use super::waiting::Waiting;

/// What waits until it is known whom it is for.
const QUEUE_MAX: usize = 512;
/// What waits for one plugin.
const LANE_MAX: usize = 128;
/// Turns and agents that are remembered.
const REMEMBERED_MAX: usize = 10_000;
/// Messages that `after_turn` is told, the newest.
const MESSAGES_MAX: usize = 50;
/// Memories that a plugin may bring, as `bootstrap` is told.
const RECALL_MAX: usize = 50;

/// Where a turn is.
#[derive(Clone)]
struct Place {
    agent: AgentId,
    /// Whose share of what waits it takes.
    holder: Holder,
    name: String,
    session: String,
    log: LogId,
    ordinal: u32,
}

/// Something to be told.
enum Item {
    Turn(Place),
    /// The hook, the agent that creates with its name, and the other.
    Subagent(Hook, (AgentId, String), AgentId),
    Event(Value),
    /// Other plugins may be in force.
    Changed,
}

#[derive(Default)]
struct Remembered {
    turns: HashMap<TurnId, Place>,
    parents: HashMap<AgentId, Place>,
}

/// Takes what is to be told. Never waits.
pub(crate) struct Teller {
    queue: Waiting<(Option<Holder>, Item)>,
    remembered: Mutex<Remembered>,
    dropped: AtomicU64,
}

impl Default for Teller {
    fn default() -> Self {
        Self { queue: Waiting::new(QUEUE_MAX), remembered: Mutex::default(), dropped: AtomicU64::new(0) }
    }
}

impl Teller {
    /// A model is asked in a turn: when it ends, it is known where it was.
    pub(super) fn begun(&self, call: &ModelCall) {
        let mut remembered = self.remembered.lock();
        if remembered.turns.len() >= REMEMBERED_MAX {
            remembered.turns.clear();
        }
        remembered.turns.entry(call.turn()).or_insert_with(|| Place {
            agent: call.agent,
            holder: call.holder,
            name: call.agent_name.to_string(),
            session: call.session.to_string(),
            log: call.log,
            ordinal: call.ordinal,
        });
    }

    /// Something happened and is durable.
    pub(super) fn note(&self, engine: &Engine, happened: &EventEnvelope) {
        let event = &happened.event;
        {
            let mut remembered = self.remembered.lock();
            match event {
                Event::TurnCompleted { agent, turn, .. } => {
                    let (place, parent) = (remembered.turns.remove(turn), remembered.parents.get(agent).cloned());
                    drop(remembered);
                    if let Some(place) = place {
                        self.send(Some(place.holder), Item::Turn(place));
                    }
                    if let Some(parent) = parent {
                        let (holder, parent) = (parent.holder, (parent.agent, parent.name));
                        self.send(Some(holder), Item::Subagent(Hook::MergeSubagent, parent, *agent));
                    }
                }
                Event::TurnFailed { turn, .. } => drop(remembered.turns.remove(turn)),
                Event::AgentTerminated { agent, .. } => drop(remembered.parents.remove(agent)),
                Event::AgentSpawned { agent, by: Some(turn), .. } => {
                    if let Some(parent) = remembered.turns.get(turn).cloned() {
                        if remembered.parents.len() >= REMEMBERED_MAX {
                            remembered.parents.clear();
                        }
                        remembered.parents.insert(*agent, parent.clone());
                        drop(remembered);
                        let (holder, parent) = (parent.holder, (parent.agent, parent.name));
                        self.send(Some(holder), Item::Subagent(Hook::PrepareSubagent, parent, *agent));
                    }
                }
                _ => {}
            }
        }
        if engine.wants(Hook::OnEvent) {
            let mut data = json!(event);
            data["at"] = happened.at.to_string().into();
            self.send(happened.holder, Item::Event(data));
        }
    }

    /// Other plugins may be in force.
    pub(super) fn changed(&self) {
        self.send(None, Item::Changed);
    }

    fn send(&self, holder: Option<Holder>, item: Item) {
        let is_event = matches!(item, Item::Event(_));
        if !self.queue.put(holder, (holder, item), is_event) {
            self.drop_one();
        }
    }

    fn drop_one(&self) {
        let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
        if dropped.is_power_of_two() {
            tracing::warn!(dropped, "plugins are too slow; they were not told of something");
        }
    }

    /// Tells plugins on a thread of its own, until the daemon ends.
    pub(super) fn start(self: &Arc<Self>, engine: Arc<Engine>, shutdown: Shutdown) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (teller, mut changes) = (Arc::clone(self), engine.around.settings.changes());
        let work = async move {
            let config = engine.around.settings.get::<ContextEngine>();
            let queue = Arc::clone(&teller);
            let mut lanes = Lanes { engine, teller, config, lanes: HashMap::new(), in_force: Vec::new() };
            lanes.changed().await;
            loop {
                tokio::select! {
                    () = shutdown.wait() => return,
                    changed = changes.changed() => match changed {
                        Ok(()) => lanes.changed().await,
                        Err(_) => return,
                    },
                    item = queue.queue.next() => match item {
                        Some((holder, item)) => lanes.tell(holder, item).await,
                        None => return,
                    },
                }
            }
        };
        std::thread::Builder::new().name("plugin-events".to_owned()).spawn(move || runtime.block_on(work)).map(drop)
    }
}

/// What a plugin is to be told.
struct Message {
    plugin: Arc<Plugin>,
    hook: Hook,
    input: Arc<Value>,
    who: Who,
}

/// One queue a plugin.
struct Lanes {
    engine: Arc<Engine>,
    teller: Arc<Teller>,
    /// The one that was heeded last.
    config: Arc<ContextEngine>,
    lanes: HashMap<String, Lane>,
    in_force: Vec<Arc<Plugin>>,
}

/// What waits for one plugin. Nothing comes any more when it is dropped.
struct Lane(Arc<Waiting<Message>>);

impl Drop for Lane {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Lanes {
    async fn tell(&mut self, holder: Option<Holder>, item: Item) {
        match item {
            Item::Changed => self.changed().await,
            Item::Turn(place) => self.turn(place).await,
            Item::Subagent(hook, (parent, name), child) => {
                let input = json!({ "type": hook.as_str(), "parent_id": parent, "child_id": child });
                let who = Who { agent: parent.to_string(), name, ..Who::default() };
                self.all(holder, hook, input, &who).await;
            }
            Item::Event(data) => {
                let agent = data["agent_id"].as_str().unwrap_or_default().to_owned();
                let input =
                    json!({ "type": "on_event", "event": data["kind"], "agent_id": data["agent_id"], "data": data });
                self.all(holder, Hook::OnEvent, input, &Who { agent, ..Who::default() }).await;
            }
        }
    }

    /// A turn has ended: its newest messages.
    async fn turn(&mut self, place: Place) {
        if !self.engine.wants(Hook::AfterTurn) {
            return;
        }
        let Place { agent, holder, name, session, log, ordinal } = place;
        let content = Arc::clone(&self.engine.content);
        let range = MessageRange::NewestSince { from: 0, ordinal, limit: MESSAGES_MAX };
        let read = tokio::task::spawn_blocking(move || content.messages(log, range)).await;
        let rows = match read {
            Ok(Ok(rows)) => rows,
            Ok(Err(error)) => return tracing::warn!(%error, %agent, "plugins cannot be told of a turn"),
            Err(error) => return tracing::warn!(%error, %agent, "plugins cannot be told of a turn"),
        };
        let messages: Vec<Value> =
            in_force(rows, Some(ordinal)).iter().map(|row| told(row.record.role, &row.record.blocks)).collect();
        let input = json!({ "type": "after_turn", "agent_id": agent, "session_id": session, "messages": messages });
        let who = Who { agent: agent.to_string(), name, ..Who::default() };
        self.all(Some(holder), Hook::AfterTurn, input, &who).await;
    }

    async fn all(&mut self, holder: Option<Holder>, hook: Hook, input: Value, who: &Who) {
        let input = Arc::new(input);
        for plugin in self.engine.stack().await {
            if plugin.hooks.contains_key(&hook) && plugin.is_for(hook, who) {
                self.send(holder, Message { plugin, hook, input: Arc::clone(&input), who: who.clone() });
            }
        }
    }

    fn send(&mut self, holder: Option<Holder>, message: Message) {
        let name = message.plugin.name().to_owned();
        let engine = &self.engine;
        let lane = self.lanes.entry(name).or_insert_with(|| {
            let lane = Arc::new(Waiting::new(LANE_MAX));
            drop(tokio::spawn(one_by_one(Arc::clone(engine), Arc::clone(&lane))));
            Lane(lane)
        });
        let is_event = message.hook == Hook::OnEvent;
        if !lane.0.put(holder, message, is_event) {
            self.teller.drop_one();
        }
    }

    /// The configuration, or what is installed, may be another one.
    async fn changed(&mut self) {
        let config = self.engine.around.settings.get::<ContextEngine>();
        let former = std::mem::replace(&mut self.config, Arc::clone(&config));
        if former.signing_keys != config.signing_keys || former.require_signature != config.require_signature {
            let library = Arc::clone(&self.engine.library);
            if let Err(error) = tokio::task::spawn_blocking(move || library.read_all()).await {
                tracing::error!(%error, "the plugins cannot be read again");
            }
        }
        if former.config != config.config || former.env_allowed != config.env_allowed {
            // What stays was started with the former values.
            let stale = std::mem::take(&mut self.in_force);
            stale.iter().for_each(|plugin| plugin.stop());
        }
        self.take_stack().await;
    }

    /// Tells those that were not in force before, ends the processes of those that are not any more, and says what the
    /// configuration names and is not there.
    async fn take_stack(&mut self) {
        let stack = self.engine.stack().await;
        for gone in self.in_force.iter().filter(|known| !stack.iter().any(|plugin| Arc::ptr_eq(known, plugin))) {
            gone.stop();
        }
        let is_new = |plugin: &Arc<Plugin>| !self.in_force.iter().any(|known| Arc::ptr_eq(known, plugin));
        let new: Vec<Arc<Plugin>> = stack.iter().filter(|plugin| is_new(plugin)).cloned().collect();
        if !new.is_empty() || stack.len() != self.in_force.len() {
            self.say_missing(&stack);
        }
        self.lanes.retain(|name, _| stack.iter().any(|plugin| plugin.name() == name));
        self.in_force = stack;
        for plugin in new {
            self.warm(&plugin);
            if plugin.hooks.contains_key(&Hook::Bootstrap) {
                let input = Arc::new(json!({
                    "type": "bootstrap", "context_window_tokens": null, "stable_prefix_mode": true,
                    "max_recall_results": RECALL_MAX,
                }));
                self.send(None, Message { plugin, hook: Hook::Bootstrap, input, who: Who::default() });
            }
        }
    }

    fn say_missing(&self, stack: &[Arc<Plugin>]) {
        let config = self.engine.around.settings.get::<ContextEngine>();
        for name in config.names().filter(|name| !stack.iter().any(|plugin| plugin.name() == *name)) {
            tracing::warn!(plugin = name, "a plugin of [context_engine] is not installed, disabled or cannot be used");
        }
    }

    /// Starts what stays, so that the first turn does not wait for it.
    fn warm(&self, plugin: &Arc<Plugin>) {
        let (engine, plugin) = (Arc::clone(&self.engine), Arc::clone(plugin));
        drop(tokio::spawn(async move {
            if let Err(fault) = warm(&engine, &plugin).await {
                tracing::warn!(plugin = plugin.name(), %fault, "a plugin cannot be started");
            }
        }));
    }
}

/// Starts the processes of a plugin that stay.
///
/// # Errors
/// [`Fault`](super::fault::Fault): one cannot be started.
pub(super) async fn warm(engine: &Arc<Engine>, plugin: &Arc<Plugin>) -> Result<(), super::fault::Fault> {
    if !plugin.manifest.rules.is_persistent && plugin.kind == super::plugin::Kind::Files {
        return Ok(());
    }
    for state in plugin.hooks.values() {
        let prepare = preparing(&engine.around, plugin, &state.file, None);
        state.pool.warm(&engine.around.commands, &*prepare).await?;
    }
    Ok(())
}

/// Tells a plugin one thing after the other, until it is not in force any more.
async fn one_by_one(engine: Arc<Engine>, messages: Arc<Waiting<Message>>) {
    while let Some(Message { plugin, hook, input, who }) = messages.next().await {
        // A turn cannot fail for it any more.
        if let Err(fault) = call(&engine.around, &plugin, hook, &input, &who).await {
            tracing::warn!(plugin = plugin.name(), hook = hook.as_str(), %fault, "a hook failed");
        }
    }
}
