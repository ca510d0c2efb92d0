//! The agents of this node that peers are told of. A name of `[network] agents` without a wildcard is looked up; for globs,
//! a bounded number of pages is read, and only after an agent that matters has changed.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::event::Event;
use agentsvc_components::kernel::limit::PAGE_ITEMS_MAX;
use agentsvc_components::{AgentId, Refusal, RefusalKind};
use agentsvc_systems::agent::{AgentFilter, AgentView, FindAgent, GetAgent, ListAgents, SummariseAgents};
use agentsvc_systems::kernel::glob;
use agentsvc_systems::peer::limits::{
    PEER_AGENT_CHANGES_MAX, PEER_AGENT_PAGES_MAX, PEER_AGENTS_MAX, PEER_HELLO_BYTES_MAX,
};
use parking_lot::Mutex;

use super::message::RemoteAgent;

/// How long a list of agents is used without a look at what has changed.
const LIST_FOR: Duration = Duration::from_secs(5);
/// Bytes of a list of agents, so that it fits into a handshake.
const LIST_BYTES_MAX: usize = PEER_HELLO_BYTES_MAX / 2;

/// The agents that changed since peers were last told. Empty while the network is off.
#[derive(Default)]
pub(crate) struct AgentChanges {
    /// `[network] agents`, once the network is on.
    shown: OnceLock<Box<[Box<str>]>>,
    changed: Mutex<Changed>,
}

/// What changed.
#[derive(Debug, Default, PartialEq)]
struct Changed {
    agents: BTreeSet<AgentId>,
    /// More changed than are remembered.
    is_all: bool,
}

impl AgentChanges {
    /// From now on changes are remembered.
    fn watch(&self, shown: &[Box<str>]) {
        let _once = self.shown.set(shown.into());
    }

    /// Something happened in the world. Never waits.
    pub(crate) fn note(&self, event: &Event) {
        let Some(shown) = self.shown.get() else { return };
        let agent = match event {
            Event::AgentSpawned { agent, name, .. } | Event::AgentTerminated { agent, name, .. } => {
                // Both say whom they are about: an agent that peers do not see changes nothing for them.
                if !glob::any(shown, name) {
                    return;
                }
                *agent
            }
            Event::AgentStarted { agent } | Event::AgentStopped { agent } | Event::AgentUpdated { agent } => *agent,
            _ => return,
        };
        self.changed.lock().add([agent]);
    }

    /// Another world has taken the place of the one that peers were told of.
    pub(crate) fn forget(&self) {
        *self.changed.lock() = Changed { agents: BTreeSet::new(), is_all: true };
    }

    fn take(&self) -> Taken<'_> {
        Taken { from: self, changed: std::mem::take(&mut self.changed.lock()) }
    }
}

/// Changes that are being looked at. They go back when this is dropped before they are [`told`](Self::told).
struct Taken<'a> {
    from: &'a AgentChanges,
    changed: Changed,
}

impl Taken<'_> {
    /// A list that has these changes is there.
    fn told(mut self) {
        self.changed = Changed::default();
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let taken = std::mem::take(&mut self.changed);
        let mut changed = self.from.changed.lock();
        if taken.is_all {
            *changed = taken;
        } else {
            changed.add(taken.agents);
        }
    }
}

impl Changed {
    fn add(&mut self, agents: impl IntoIterator<Item = AgentId>) {
        if !self.is_all {
            self.agents.extend(agents);
            if self.agents.len() > PEER_AGENT_CHANGES_MAX {
                *self = Self { agents: BTreeSet::new(), is_all: true };
            }
        }
    }
}

/// A list that peers are told, and when it was last known to be right.
struct Known {
    at: Instant,
    agents: Arc<[RemoteAgent]>,
}

/// See the head of the file.
pub(crate) struct OwnAgents {
    bridge: Bridge,
    /// `[network] agents`.
    shown: Box<[Box<str>]>,
    changes: Arc<AgentChanges>,
    known: tokio::sync::Mutex<Option<Known>>,
}

impl OwnAgents {
    /// The agents behind `bridge` whose names match one of `shown`.
    pub(crate) fn new(bridge: Bridge, shown: &[Box<str>], changes: Arc<AgentChanges>) -> Self {
        changes.watch(shown);
        Self { bridge, shown: shown.into(), changes, known: tokio::sync::Mutex::default() }
    }

    /// May peers see an agent of this name?
    pub(crate) fn shows(&self, name: &str) -> bool {
        glob::any(&self.shown, name)
    }

    /// The agents that peers are told of. Empty while the world is loading.
    pub(crate) async fn list(&self) -> Arc<[RemoteAgent]> {
        let mut known = self.known.lock().await;
        if let Some(Known { at, agents }) = &*known
            && at.elapsed() < LIST_FOR
        {
            return Arc::clone(agents);
        }
        let taken = self.changes.take();
        match self.renewed(known.as_ref(), &taken.changed).await {
            Ok(agents) => {
                taken.told();
                *known = Some(Known { at: Instant::now(), agents: Arc::clone(&agents) });
                agents
            }
            // A world that is loading or busy has not lost its agents.
            Err(_) => known.as_ref().map_or_else(|| Arc::from([]), |known| Arc::clone(&known.agents)),
        }
    }

    /// The list as it is now: the same one when nothing of it has changed.
    async fn renewed(&self, known: Option<&Known>, changed: &Changed) -> Result<Arc<[RemoteAgent]>, Refusal> {
        if let Some(Known { agents, .. }) = known
            && !self.concerns(agents, changed).await?
        {
            return Ok(Arc::clone(agents));
        }
        let found: Arc<[RemoteAgent]> = self.find(None).await?.into();
        Ok(match known {
            Some(Known { agents, .. }) if **agents == *found => Arc::clone(agents),
            _ => found,
        })
    }

    /// Can a list be another one because of these changes?
    async fn concerns(&self, listed: &[RemoteAgent], changed: &Changed) -> Result<bool, Refusal> {
        let is_listed = |id: &AgentId| listed.iter().any(|agent| agent.id == id.to_string());
        if changed.is_all || changed.agents.iter().any(is_listed) {
            return Ok(true);
        }
        if changed.agents.is_empty() {
            return Ok(false);
        }
        let agents: Vec<AgentId> = changed.agents.iter().copied().collect();
        let summaries = self.bridge.ask(SummariseAgents(agents)).await?;
        Ok(summaries.iter().any(|agent| self.shows(&agent.name)))
    }

    /// The agents that peers may see, those whose name has `query` in it. Of very many agents only the first are looked at.
    ///
    /// # Errors
    /// The world does not answer now.
    pub(crate) async fn find(&self, query: Option<&str>) -> Result<Vec<RemoteAgent>, Refusal> {
        let wanted = query.map(str::to_lowercase);
        let is_wanted = |name: &str| wanted.as_ref().is_none_or(|part| name.to_lowercase().contains(part));
        let mut found = Found::default();
        let is_glob = |shown: &str| shown.contains(['*', '?']);
        for name in self.shown.iter().filter(|shown| !is_glob(shown) && is_wanted(shown)) {
            match self.bridge.ask(FindAgent(name.clone())).await {
                // Agents of users are theirs.
                Ok(view) if view.owner.is_none() && !found.add(&view) => return Ok(found.agents),
                Err(refusal) if refusal.kind != RefusalKind::NotFound => return Err(refusal),
                Ok(_) | Err(_) => {}
            }
        }
        if self.shown.iter().any(|shown| is_glob(shown)) {
            self.search(query, &mut found).await?;
        }
        Ok(found.agents)
    }

    /// Adds the agents that match a glob.
    async fn search(&self, query: Option<&str>, found: &mut Found) -> Result<(), Refusal> {
        let (mut after, mut limit) = (None, PEER_AGENTS_MAX);
        for _ in 0..PEER_AGENT_PAGES_MAX {
            let filter =
                AgentFilter { matching: query.map(ToOwned::to_owned), is_shared: true, ..AgentFilter::default() };
            let page = self.bridge.ask(ListAgents { filter, after, limit }).await?;
            for agent in page.items.into_iter().filter(|agent| self.shows(&agent.name)) {
                match self.bridge.ask(GetAgent(agent.id)).await {
                    Ok(view) if !found.add(&view) => return Ok(()),
                    Err(refusal) if refusal.kind != RefusalKind::NotFound => return Err(refusal),
                    Ok(_) | Err(_) => {}
                }
            }
            // Mostly the first page has enough.
            (after, limit) = (page.next, PAGE_ITEMS_MAX);
            if after.is_none() || found.agents.len() >= PEER_AGENTS_MAX {
                break;
            }
        }
        Ok(())
    }
}

/// Agents as peers see them, as far as they fit into a message.
#[derive(Default)]
struct Found {
    agents: Vec<RemoteAgent>,
    bytes: usize,
}

impl Found {
    /// Adds an agent, unless it is there. False when there is no room for it.
    fn add(&mut self, view: &AgentView) -> bool {
        let agent = shown(view);
        if self.agents.iter().any(|found| found.id == agent.id) {
            return true;
        }
        self.bytes += serde_json::to_vec(&agent).map_or(0, |text| text.len());
        if self.agents.len() >= PEER_AGENTS_MAX || self.bytes > LIST_BYTES_MAX {
            return false;
        }
        self.agents.push(agent);
        true
    }
}

/// An agent of this node, as peers see it.
fn shown(view: &AgentView) -> RemoteAgent {
    let manifest = &view.manifest.manifest;
    let words = |words: &[Box<str>]| words.iter().map(|word| word.to_string()).collect();
    RemoteAgent {
        id: view.id.to_string(),
        name: view.name.to_string(),
        description: manifest.description.to_string(),
        tags: words(&manifest.tags),
        tools: words(&manifest.capabilities.tools),
        state: view.state.as_str().to_owned(),
    }
    .bounded()
}

#[cfg(test)]
mod tests {
    use std::thread::JoinHandle;

    use agentsvc_api::http::bridge::{Arrival, bridge};
    use agentsvc_components::Timestamp;
    use agentsvc_components::manifest::Manifest;
    use agentsvc_systems::agent::{RemoveAgents, SpawnAgent, SpawnAgents};
    use agentsvc_systems::event::told::events_of;
    use agentsvc_systems::{Engine, Records, Settings, manifest};

    use super::*;

    /// A world without a disk, and the names of the commands that it was asked.
    struct TestWorld {
        bridge: Bridge,
        asked: Arc<Mutex<Vec<&'static str>>>,
        changes: Arc<AgentChanges>,
        thread: Option<JoinHandle<()>>,
    }

    impl Drop for TestWorld {
        fn drop(&mut self) {
            self.bridge.stop();
            let _panicked = self.thread.take().map(JoinHandle::join);
        }
    }

    impl TestWorld {
        fn open() -> Self {
            let (bridge, intake) = bridge();
            let (asked, changes) = (Arc::<Mutex<Vec<&'static str>>>::default(), Arc::<AgentChanges>::default());
            let (log, noting) = (Arc::clone(&asked), Arc::clone(&changes));
            intake.open();
            let thread = std::thread::spawn(move || {
                let mut engine = Engine::new(Settings::default(), [1; 32]);
                engine.restore(Records::default(), Timestamp(1_000)).expect("an empty world");
                while let Ok(Arrival::Command(command)) = intake.arrivals.recv() {
                    intake.took_command();
                    log.lock().push(command.name());
                    command.run(&mut engine);
                    let commit = engine.step();
                    commit.told.into_iter().flat_map(events_of).for_each(|told| noting.note(&told.event));
                    commit.releases.into_iter().for_each(|release| release());
                }
            });
            Self { bridge, asked, changes, thread: Some(thread) }
        }

        async fn spawn(&self, names: impl IntoIterator<Item = String>) -> Vec<AgentId> {
            let hash = manifest::hash(&Manifest::default());
            let spawn = |name: String| SpawnAgent {
                name: name.into(),
                manifest: Manifest::default(),
                hash,
                text: String::new(),
            };
            let spawned = self.bridge.ask(SpawnAgents(names.into_iter().map(spawn).collect())).await;
            spawned.expect("the world is open").into_iter().map(|one| one.expect("a new name").agent).collect()
        }

        fn agents(&self, shown: &[&str]) -> OwnAgents {
            let shown: Vec<Box<str>> = shown.iter().map(|name| (*name).into()).collect();
            OwnAgents::new(self.bridge.clone(), &shown, Arc::clone(&self.changes))
        }

        /// What was asked since the last time.
        fn asked(&self) -> Vec<&'static str> {
            std::mem::take(&mut self.asked.lock())
        }
    }

    impl OwnAgents {
        /// The list when the last one may no longer be used unseen.
        async fn later(&self) -> Arc<[RemoteAgent]> {
            if let Some(known) = &mut *self.known.lock().await {
                known.at = Instant::now().checked_sub(LIST_FOR).expect("the machine runs for longer");
            }
            self.list().await
        }
    }

    fn names(agents: &[RemoteAgent]) -> Vec<&str> {
        agents.iter().map(|agent| agent.name.as_str()).collect()
    }

    #[tokio::test]
    async fn agents_that_are_named_are_looked_up_and_no_others() {
        let world = TestWorld::open();
        world.spawn((0..500).map(|n| format!("agent-{n}"))).await;
        let agents = world.agents(&["agent-499", "none", "agent-3", "agent-3"]);
        world.asked();
        assert_eq!(names(&agents.list().await), ["agent-499", "agent-3"]);
        assert_eq!(world.asked(), ["find_agent"; 4]);
        assert_eq!(names(&agents.find(Some("T-3")).await.unwrap()), ["agent-3"]);
        assert_eq!(world.asked(), ["find_agent"; 2], "a search looks at the names, too");
    }

    #[tokio::test]
    async fn a_glob_looks_at_few_pages_of_many_agents() {
        let world = TestWorld::open();
        world.spawn((0..200).map(|n| format!("agent-{n}"))).await;
        let all = world.agents(&["*"]).find(None).await.unwrap();
        assert_eq!(all.len(), PEER_AGENTS_MAX);
        assert_eq!(world.asked().iter().filter(|name| **name == "list_agents").count(), 1);
        for part in 0..PEER_AGENT_PAGES_MAX {
            world.spawn((0..PAGE_ITEMS_MAX).map(|n| format!("more-{part}-{n}"))).await;
        }
        world.spawn(["far".to_owned()]).await;
        let agents = world.agents(&["fa*", "agent-19*"]);
        world.asked();
        let found = agents.find(None).await.unwrap();
        assert!(found.iter().all(|agent| agent.name.starts_with("agent-19")), "{:?}", names(&found));
        assert_eq!(world.asked().iter().filter(|name| **name == "list_agents").count(), PEER_AGENT_PAGES_MAX);
        // One that is named is found however many there are.
        let named = world.agents(&["fa*", "far"]).find(Some("far")).await.unwrap();
        assert_eq!(names(&named), ["far"]);
    }

    #[tokio::test]
    async fn what_has_not_changed_is_not_read_again() {
        let world = TestWorld::open();
        let first = world.spawn(["team-a".to_owned(), "other".to_owned()]).await;
        let agents = world.agents(&["team-*"]);
        let list = agents.list().await;
        world.asked();
        assert!(Arc::ptr_eq(&agents.later().await, &list) && world.asked().is_empty(), "nothing happened");
        world.spawn(["another".to_owned()]).await;
        world.asked();
        assert!(Arc::ptr_eq(&agents.later().await, &list) && world.asked().is_empty(), "peers do not see it");
        world.spawn(["team-b".to_owned()]).await;
        assert_eq!(names(&agents.later().await), ["team-a", "team-b"]);
        world.bridge.ask(RemoveAgents(vec![first[0]])).await.unwrap();
        assert_eq!(names(&agents.later().await), ["team-b"]);
        agents.changes.forget();
        world.asked();
        let list = agents.later().await;
        assert!(names(&list) == ["team-b"] && world.asked().contains(&"list_agents"));
    }

    #[tokio::test]
    async fn changes_that_could_not_be_looked_at_are_kept() {
        let changes = AgentChanges::default();
        let event = |n| Event::AgentUpdated { agent: AgentId(uuid::Uuid::from_u128(n)) };
        changes.note(&event(1));
        assert_eq!(*changes.changed.lock(), Changed::default(), "the network is off");
        changes.watch(&["*".into()]);
        changes.note(&event(1));
        drop(changes.take());
        assert_eq!(changes.changed.lock().agents.len(), 1);
        changes.take().told();
        assert_eq!(*changes.changed.lock(), Changed::default());
        for n in 0..=PEER_AGENT_CHANGES_MAX as u128 {
            changes.note(&event(n));
        }
        let taken = changes.take();
        assert!(taken.changed.is_all && taken.changed.agents.is_empty(), "more than are remembered");
        changes.note(&event(1));
        drop(taken);
        assert!(changes.changed.lock().is_all);
    }
}
