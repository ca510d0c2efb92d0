//! What other programs left on this machine is found, looked at and taken over (spec 2, Migration).

use std::sync::Arc;

use crate::http::blocking::spawn_blocking;
use agentsvc_components::agent::ImportedFrom;
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, SessionId};
use agentsvc_systems::agent::{FindAgent, FindImported, ImportAgent, SpawnAgent};
use agentsvc_systems::manifest;
use agentsvc_systems::session::ImportSession;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::agent::routes::check_signature;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::migration::source::{ForeignHome, History, Item, Migration, MigrationError, Source, Taken};
use crate::snapshot::routes::take_before;
use crate::snapshot::store::Before;

/// What such a request costs the client's rate budget: it reads many files.
const COST: u32 = 10;
/// What the name of an agent gets behind it when another has the name.
const SUFFIX: &str = "-imported";

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/migrate/detect", "Find homes of other programs", |call| Box::pin(detect(call)))
        .cost(COST)
        .replies(&[Reply::json::<Detected>(200, "the homes found at their usual locations")]),
    Route::post("/api/migrate/scan", "Inspect a home of another program", |call| Box::pin(scan(call)))
        .without_room()
        .cost(COST)
        .body::<ScanBody>()
        .replies(&[Reply::json::<Scanned>(200, "what it contains and what can be imported")]),
    Route::post("/api/migrate", "Import agents, skills and conversations", |call| Box::pin(migrate(call)))
        .cost(COST)
        .body::<MigrateBody>()
        .replies(&[
            Reply::json::<Migrated>(200, "what was imported; with `dry_run`, what would be"),
            Reply::error(409, "the automatic snapshot cannot be created now; nothing was changed"),
            Reply::error(507, "not enough disk space for the automatic snapshot; nothing was changed"),
        ]),
];

#[derive(Serialize, JsonSchema)]
struct Detected {
    sources: Vec<Source>,
}

#[derive(Deserialize, JsonSchema)]
struct ScanBody {
    /// Home directory: an absolute path on the daemon's machine.
    path: String,
}

#[derive(Serialize, JsonSchema)]
struct Scanned {
    agents: Vec<Item>,
    skills: Vec<Item>,
    /// Conversations.
    sessions: usize,
    warnings: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct MigrateBody {
    /// Home directory: an absolute path on the daemon's machine.
    source: String,
    #[serde(default)]
    import_agents: bool,
    #[serde(default)]
    import_skills: bool,
    /// Conversations of imported agents.
    #[serde(default)]
    import_sessions: bool,
    /// Show what would be imported without changing anything.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Default, Serialize, JsonSchema)]
struct Migrated {
    /// `completed`, or `dry_run`.
    status: &'static str,
    agents_imported: usize,
    skills_imported: usize,
    sessions_imported: usize,
    /// Items already imported before.
    agents_skipped: usize,
    skills_skipped: usize,
    sessions_skipped: usize,
    warnings: Vec<String>,
}

async fn detect(call: Call) -> Result<Response, Error> {
    let sources = blocking(&call, |migration| migration.detect()).await?;
    reply::ok(&Detected { sources })
}

async fn scan(call: Call) -> Result<Response, Error> {
    let ScanBody { path } = call.json()?;
    let home = open(&call, path, "path").await?;
    let (agents, skills) = (home.agents(), home.skills());
    reply::ok(&Scanned { agents, skills, sessions: home.sessions().len(), warnings: home.warnings() })
}

async fn migrate(call: Call) -> Result<Response, Error> {
    let body: MigrateBody = call.json()?;
    if !(body.import_agents || body.import_skills || body.import_sessions) {
        let text = "import_agents: nothing to import; set import_agents, import_skills or import_sessions";
        return Err(Error::bad_field("import_agents", text));
    }
    let home: Arc<dyn ForeignHome> = open(&call, body.source.clone(), "source").await?.into();
    if !body.dry_run {
        take_before(&call, Before::Migration).await?;
    }
    let mut run = Run { call: &call, home, dry: body.dry_run, done: Migrated::default() };
    run.done.status = if body.dry_run { "dry_run" } else { "completed" };
    run.done.warnings = run.home.warnings();
    let agents = run.agents(body.import_agents).await?;
    if body.import_skills {
        run.skills().await?;
    }
    if body.import_sessions {
        run.sessions(&agents).await?;
    }
    reply::ok(&run.done)
}

async fn open(call: &Call, path: String, field: &'static str) -> Result<Box<dyn ForeignHome>, Error> {
    blocking(call, move |migration| migration.open(&path)).await?.map_err(|error| match error {
        MigrationError::Wrong(text) => Error::bad_field(field, format!("{field}: {text}")),
        MigrationError::Failed => Error::internal(error.to_string()),
    })
}

/// Runs a look at the disk on a thread that may wait.
async fn blocking<T: Send + 'static>(
    call: &Call,
    look: impl FnOnce(&dyn Migration) -> T + Send + 'static,
) -> Result<T, Error> {
    let Some(migration) = call.api.services.get::<dyn Migration>() else {
        return Err(Error::unavailable("the daemon is still loading; try again in a moment", 1));
    };
    spawn_blocking(move || look(&*migration)).await.map_err(|error| {
        tracing::error!(%error, "reading another home was interrupted");
        Error::internal("the directory could not be read")
    })
}

/// One import under way.
struct Run<'a> {
    call: &'a Call,
    home: Arc<dyn ForeignHome>,
    dry: bool,
    done: Migrated,
}

/// An agent of the other home that is here.
#[derive(Clone, Debug)]
struct Here {
    /// Its id; `None` in a dry run, when it is not here yet.
    agent: Option<AgentId>,
    name: String,
}

impl Run<'_> {
    fn warn(&mut self, text: impl Into<String>) {
        if self.done.warnings.len() < limit::MIGRATION_WARNINGS_MAX {
            self.done.warnings.push(text.into());
        }
    }

    /// Creates the agents that are not here, if that is asked for; gives those that are.
    async fn agents(&mut self, create: bool) -> Result<Vec<Option<Here>>, Error> {
        let items = self.home.agents();
        let mut here = Vec::with_capacity(items.len());
        for (n, item) in items.iter().enumerate() {
            here.push(self.agent(n, item, create).await?);
        }
        Ok(here)
    }

    async fn agent(&mut self, n: usize, item: &Item, create: bool) -> Result<Option<Here>, Error> {
        let (text, origin) = (self.home.manifest(n).map(str::to_owned), self.home.origin(n));
        let Some((text, from)) = text.zip(origin) else {
            if create {
                let reason = item.reason.as_deref().unwrap_or("it cannot be converted");
                self.warn(format!("agent {:?} was skipped: {reason}", item.name));
            }
            return Ok(None);
        };
        if let Some(here) = self.imported(from, create).await? {
            self.done.agents_skipped += usize::from(create);
            return Ok(Some(here));
        }
        let parsed = match manifest::parse(&text) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.warn(format!("agent {:?} was skipped: {error}", item.name));
                return Ok(None);
            }
        };
        let hash = manifest::hash(&parsed.manifest);
        // Under its own name, else with a suffix; one that has the same manifest anyway is as good.
        let mut name = item.name.clone();
        for taken in [false, true] {
            match self.find(&name).await? {
                Some((agent, found)) if found == hash.0 => {
                    self.done.agents_skipped += usize::from(create);
                    return Ok(Some(Here { agent: Some(agent), name }));
                }
                Some(_) if taken => {
                    self.warn(format!("agent {:?} was skipped: {name:?} is another agent as well", item.name));
                    return Ok(None);
                }
                Some(_) => name = format!("{}{SUFFIX}", item.name),
                None => break,
            }
        }
        if !create {
            return Ok(None);
        }
        if name != item.name {
            self.warn(format!("agent {:?} was imported as {name:?}: another agent has its name", item.name));
        }
        // What another program wrote is not signed.
        if let Err(refusal) = check_signature(&self.call.api, &name, &text, None) {
            self.warn(format!("agent {:?} was skipped: {}", item.name, refusal.message));
            return Ok(None);
        }
        self.done.agents_imported += 1;
        if self.dry {
            return Ok(Some(Here { agent: None, name }));
        }
        let text = text_named(&text, &name);
        let agent = SpawnAgent { name: name.as_str().into(), manifest: parsed.manifest, hash, text };
        let agent = match self.call.ask(ImportAgent { agent, from }).await {
            Ok(spawned) => spawned.agent,
            Err(refusal) => {
                self.done.agents_imported -= 1;
                self.warn(format!("agent {:?} was skipped: {}", item.name, refusal.message()));
                return Ok(None);
            }
        };
        self.files(n, agent, &name).await?;
        Ok(Some(Here { agent: Some(agent), name }))
    }

    /// The agent that came from there by an earlier import, whatever became of it since.
    async fn imported(&mut self, from: ImportedFrom, create: bool) -> Result<Option<Here>, Error> {
        let Some(found) = self.call.ask(FindImported(from)).await? else { return Ok(None) };
        if create && !found.same_text {
            let name = &found.name;
            self.warn(format!(
                "agent {name:?} was imported before and has changed at the source; it was left unchanged here"
            ));
        }
        Ok(Some(Here { agent: Some(found.agent), name: found.name.into() }))
    }

    async fn files(&mut self, n: usize, agent: AgentId, name: &str) -> Result<(), Error> {
        let (home, to) = (Arc::clone(&self.home), name.to_owned());
        let copied = blocking(self.call, move |_| home.copy_files(n, agent, &to)).await?;
        if let Err(why) = copied {
            self.warn(format!("files of agent {name:?} were skipped: {why}"));
        }
        Ok(())
    }

    /// The agent of a name, and the hash of its manifest.
    async fn find(&self, name: &str) -> Result<Option<(AgentId, [u8; 32])>, Error> {
        match self.call.ask(FindAgent(name.into())).await {
            Ok(found) => Ok(Some((found.id, found.manifest.hash.0))),
            Err(error) if error.status() == hyper::StatusCode::NOT_FOUND => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn skills(&mut self) -> Result<(), Error> {
        for (n, item) in self.home.skills().into_iter().enumerate() {
            if !item.convertible {
                let reason = item.reason.unwrap_or_default();
                self.warn(format!("skill {:?} was skipped: {reason}", item.name));
                continue;
            }
            if self.dry {
                self.done.skills_imported += 1;
                continue;
            }
            let home = Arc::clone(&self.home);
            match blocking(self.call, move |_| home.install_skill(n)).await? {
                Ok(Taken::Now) => self.done.skills_imported += 1,
                Ok(Taken::Before) => self.done.skills_skipped += 1,
                Err(why) => self.warn(format!("skill {:?} was skipped: {why}", item.name)),
            }
        }
        Ok(())
    }

    async fn sessions(&mut self, agents: &[Option<Here>]) -> Result<(), Error> {
        for (n, of) in self.home.sessions().into_iter().enumerate() {
            let Some(here) = agents.get(of).cloned().flatten() else {
                self.warn("a conversation was skipped: its agent does not exist here");
                continue;
            };
            let home = Arc::clone(&self.home);
            match blocking(self.call, move |_| home.history(n)).await? {
                Ok(history) => self.session(&here, history).await?,
                Err(why) => self.warn(format!("a conversation of {:?} was skipped: {why}", here.name)),
            }
        }
        Ok(())
    }

    async fn session(&mut self, here: &Here, mut history: History) -> Result<(), Error> {
        let warnings = std::mem::take(&mut history.warnings);
        warnings.into_iter().for_each(|warning| self.warn(format!("a conversation of {:?}: {warning}", here.name)));
        if !history.says_something() {
            self.done.sessions_skipped += 1;
            return Ok(());
        }
        let Some(agent) = here.agent.filter(|_| !self.dry) else {
            self.done.sessions_imported += 1;
            return Ok(());
        };
        let session = session_id(agent, &history.key);
        let label = Some(label(&history.title));
        let import = ImportSession { agent, session, label, messages: history.messages };
        match self.call.ask(import).await {
            Ok(true) => self.done.sessions_imported += 1,
            Ok(false) => self.done.sessions_skipped += 1,
            Err(error) => self.warn(format!("a conversation of {:?} was skipped: {}", here.name, error.message())),
        }
        Ok(())
    }
}

/// The session that a conversation becomes: the same each time (a UUID of version 8, from SHA-256).
fn session_id(agent: AgentId, key: &str) -> SessionId {
    let digest = Sha256::new().chain_update(agent.0.as_bytes()).chain_update(key.as_bytes()).finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    SessionId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

fn label(title: &str) -> String {
    let clean: String = title.chars().filter(|c| !c.is_control()).collect();
    let mut label = format!("imported: {}", clean.trim());
    label.truncate(label.floor_char_boundary(limit::LABEL_BYTES_MAX));
    label
}

/// The manifest's text with another name in it.
fn text_named(text: &str, name: &str) -> String {
    match manifest::parse(text) {
        Ok(parsed) if *parsed.name != *name => manifest::render(text, name, &parsed.manifest),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_conversation_has_one_session_of_each_agent() {
        let (a, b) = (AgentId(Uuid::from_u128(1)), AgentId(Uuid::from_u128(2)));
        assert_eq!(session_id(a, "k"), session_id(a, "k"));
        assert_ne!(session_id(a, "k"), session_id(b, "k"));
        assert_ne!(session_id(a, "k"), session_id(a, "l"));
        assert_eq!(session_id(a, "k").0.get_version_num(), 8);
    }

    #[test]
    fn labels_are_short_and_clean() {
        assert_eq!(label(" chat\n7 "), "imported: chat7");
        assert!(label(&"é".repeat(300)).len() <= limit::LABEL_BYTES_MAX);
    }

    #[test]
    fn another_name_is_written_into_the_text() {
        let text = "# mine\nname = \"a\"\ndescription = \"d\"\n";
        assert_eq!(text_named(text, "a"), text);
        let named = manifest::parse(&text_named(text, "a-imported")).unwrap();
        assert_eq!((&*named.name, &*named.manifest.description), ("a-imported", "d"));
    }
}
