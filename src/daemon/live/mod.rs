//! The configuration while the daemon runs: shown, written, read anew and put in force (spec 2, Configuration).
//!
//! One change at a time: what it needs is read, checked and built first, then the world takes its part, and only then
//! are the other parts swapped, which cannot fail. So a configuration that is wrong, or that the world does not take,
//! changes nothing. What only a start can change stays as it was and is named in every answer until then.

mod first;
pub(crate) mod hangup;

use agentsvc_api::config::audit_kinds;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use agentsvc_api::Api;
use agentsvc_api::config::configuration::{
    ConfigError, ConfigInit, ConfigInitialized, ConfigProblem, ConfigReloaded, ConfigSet, Configuration,
};
use agentsvc_api::model::catalog::DefaultModel;
use agentsvc_api::world::installation::Installation;
use agentsvc_components::Actor;
use agentsvc_components::Refusal;
use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::config::Reconfigure;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::launch::Launch;
use super::{ApiAdapter, launch, models, tools, totp_settings};
use crate::config;
use crate::config::{
    ChangeError, Config, ConfigFile, Document as _, Editable as _, FileError, Loaded, Problems, Warning, edit,
    key_guard,
};
use crate::kernel::home::Home;
use crate::kernel::logging::{Dial, known_secrets};
use crate::kernel::settings::Settings;
use crate::model::provider::Providers;

/// How often and how long a change that is in the file already tries again to reach a world that is full.
const WORLD_TRIES: u32 = 20;
const WORLD_TRY_PAUSE: Duration = Duration::from_millis(50);

/// The configuration of a running daemon.
pub(crate) struct Live {
    home: Home,
    file: ConfigFile,
    /// What `--listen` said.
    listen: Option<String>,
    /// What the daemon started with.
    started: Config,
    state: ArcSwap<State>,
    /// One change at a time.
    turn: Mutex<()>,
    handle: Handle,
    /// The front has this, too.
    api: Weak<Api>,
    parts: LiveParts,
}

/// The parts of the daemon that take another configuration while they run.
pub(crate) struct LiveParts {
    pub(crate) providers: Arc<ArcSwap<Providers>>,
    pub(crate) tools: crate::tool::toolset::ToolParts,
    pub(crate) files: Arc<crate::upload::LocalFiles>,
    pub(crate) totp: Arc<crate::second_factor::Totp>,
    pub(crate) security: Arc<crate::security::Systems>,
    /// What it says to domains.
    pub(crate) settings: Settings,
    /// The configuration in force, for whoever judges by it later.
    pub(crate) in_force: Arc<ArcSwap<Config>>,
    /// Held while the world is given other settings, so that nobody gives it older ones.
    pub(crate) telling: Arc<tokio::sync::Mutex<()>>,
    pub(crate) audit_days: Arc<std::sync::atomic::AtomicU32>,
    pub(crate) dial: Dial,
}

/// What was read last.
struct State {
    /// The file's configuration, `--listen` included.
    written: Config,
    /// The same, save for what waits for a restart.
    in_force: Config,
    /// Keys in the file without effect.
    warnings: Vec<Warning>,
}

/// A configuration that is checked and whose parts are built.
struct Ready {
    state: State,
    providers: Providers,
}

impl Live {
    /// The configuration that `launch` begins with.
    pub(crate) fn new(launch: &Launch, front: &ApiAdapter, handle: Handle) -> Self {
        let state = State {
            written: launch.config.clone(),
            in_force: launch.config.clone(),
            warnings: launch.warnings.clone(),
        };
        Self {
            home: launch.home.clone(),
            file: ConfigFile::new(&launch.home),
            listen: launch.listen.clone(),
            started: launch.config.clone(),
            state: ArcSwap::from_pointee(state),
            turn: Mutex::new(()),
            handle,
            api: Arc::downgrade(&front.api),
            parts: front.live_parts(launch),
        }
    }

    /// Checks what the file alone cannot: that it goes with where the daemon listens. Builds what it needs.
    fn prepare(&self, loaded: Loaded) -> Result<Ready, ConfigError> {
        let Loaded { config, warnings } = loaded;
        let at_top = |key: &str, message: String| {
            ConfigError::Invalid(vec![ConfigProblem { line: 1, column: 1, key: key.to_owned(), message }])
        };
        key_guard::check(&self.home, &config).map_err(|error| at_top("api_key", error.to_string()))?;
        let written = match &self.listen {
            Some(listen) => config.with_listen(listen).map_err(|error| at_top("api_key", error.to_string()))?,
            None => config,
        };
        let in_force = written.clone().until_restart(&self.started);
        if let Some(message) = in_force.open_to_others() {
            // The file may listen elsewhere; until the next start the daemon does not.
            return Err(at_top("api_key", format!("the daemon's current address requires it: {message}")));
        }
        let before = self.parts.providers.load();
        let (catalog, overrides) = (Arc::clone(before.catalog()), Arc::clone(before.overrides()));
        let providers = models::providers_of(&in_force, catalog, overrides);
        let providers = providers.map_err(|error| at_top("providers", error.to_string()))?;
        Ok(Ready { state: State { written, in_force, warnings }, providers })
    }

    /// Puts a configuration in force: the world first, which may refuse, then what cannot.
    fn apply(&self, ready: Ready, tries: u32) -> Result<(), Refusal> {
        let Ready { state, providers } = ready;
        let Some(api) = self.api.upgrade() else { return Err(Refusal::busy("the daemon is shutting down", 5)) };
        let _told_alone = self.handle.block_on(Arc::clone(&self.parts.telling).lock_owned());
        // Judged by the keys and the catalog that there are now.
        let default_model = state.in_force.default_of(&providers);
        let settings = models::settings(&state.in_force, &providers);
        let before = self.state.load();
        let bridge = api.bridge.acting_as(Actor::System);
        for attempt in 1.. {
            match self.handle.block_on(bridge.ask(Reconfigure(Box::new(settings.clone())))) {
                Ok(()) => break,
                Err(refusal) if attempt >= tries => return Err(refusal),
                Err(_) => std::thread::sleep(WORLD_TRY_PAUSE),
            }
        }
        let config = &state.in_force;
        if let Err(error) = key_guard::remember(&self.home, config) {
            tracing::warn!(%error, "whether there is an API key could not be remembered");
        }
        let parts = &self.parts;
        // A new secret is hidden before anyone can use it.
        launch::secrets(config).iter().for_each(|secret| known_secrets().add(secret));
        parts.dial.set_level(config.log_level);
        parts.tools.web.set(config.web.settings());
        parts.tools.commands.hide(tools::hidden_paths(&self.home, config));
        parts.tools.commands.set(config.exec_policy.clone(), tools::hidden_variables(config, &providers));
        parts.providers.store(Arc::new(providers));
        parts.files.set(config.uploads.clone());
        if config.approval != before.in_force.approval {
            parts.totp.set(totp_settings(config));
        }
        parts.audit_days.store(config.audit.retention_days, Ordering::Relaxed);
        let mut settings = (*api.settings_now()).clone();
        parts.tools.commands.keep_from((!config.api_key.is_set()).then_some(settings.listen.port()));
        config.api_key.expose().clone_into(&mut settings.api_key);
        settings.cors_origin = config.cors_origin.iter().map(ToString::to_string).collect();
        settings.rate_limit_per_second = config.rate_limit_per_second.get();
        let mut installation = Installation::clone(&api.services.state());
        if config.exec_policy != before.in_force.exec_policy {
            installation.sandbox = tools::sandbox_in_force(config);
        }
        installation.config_warnings = self.warnings(&state);
        parts.security.look_again(config, installation.sandbox.clone());
        api.services.provide(Arc::new(DefaultModel::from(&default_model)));
        api.services.provide(Arc::new(installation));
        api.reconfigure(settings);
        config.put_in_force(&parts.settings);
        parts.in_force.store(Arc::new(config.clone()));
        self.state.store(Arc::new(state));
        Ok(())
    }

    /// What is written and has no effect, or none yet.
    fn warnings(&self, state: &State) -> Vec<String> {
        let waits = |path| format!("{path} was changed; the change takes effect at the next start");
        state.warnings.iter().map(ToString::to_string).chain(self.waiting(state).into_iter().map(waits)).collect()
    }

    /// The keys whose values in the file wait for the next start.
    fn waiting(&self, state: &State) -> Vec<String> {
        let waiting = state.written.differences(&self.started).into_iter().filter(config::Difference::needs_restart);
        waiting.map(|waiting| waiting.path).collect()
    }

    /// Changes the file with `change` and puts the result in force. What `entry` makes of it goes on the audit trail before the
    /// file is written: a change that then fails leaves an entry; one that is made never lacks it. What cannot be put in force
    /// is taken out of the file again.
    fn write<T>(
        &self,
        actor: Actor,
        change: impl FnOnce(&str) -> Result<(String, T, Loaded), ConfigError>,
        entry: impl FnOnce(&T, &State) -> Option<(AuditKind, Value)>,
    ) -> Result<T, ConfigError> {
        let api = self.api.upgrade().filter(|api| api.bridge.is_open());
        if api.is_none() {
            let refusal = Refusal::busy("the daemon is starting or stopping", 1);
            return Err(ConfigError::NotTaken { message: "nothing was changed", refusal });
        }
        let (given, ready, before, after) = self.file.change(|text| {
            let (after, given, loaded) = change(text)?;
            let ready = self.prepare(loaded)?;
            if let Some((kind, details)) = entry(&given, &ready.state) {
                self.note(actor, kind, details)?;
            }
            Ok::<_, Refused>((after.clone(), (given, ready, text.to_owned(), after)))
        })?;
        self.apply(ready, WORLD_TRIES).map_err(|refusal| {
            let put_back = self.file.put_back(before, &after);
            let message = match put_back {
                Ok(()) => "nothing was changed",
                Err(error) => {
                    tracing::error!(%error, "a change that was refused stays in the configuration");
                    "stored in config.toml but not in effect; use POST /api/config/reload"
                }
            };
            ConfigError::NotTaken { message, refusal }
        })?;
        Ok(given)
    }

    /// The paths that the file has other values for than it had when it was read last.
    fn changed(&self, state: &State) -> Vec<config::Difference> {
        state.written.differences(&self.state.load().written)
    }

    /// Does something to the file while nobody else does.
    pub(crate) fn alone<T>(&self, work: impl FnOnce() -> T) -> T {
        let _alone = self.turn.lock();
        work()
    }

    /// Puts a change on record that is about to be made.
    fn note(&self, actor: Actor, kind: AuditKind, details: Value) -> Result<(), ConfigError> {
        let message = "nothing was changed";
        let stopping = || Refusal::busy("the daemon is shutting down", 5);
        let api = self.api.upgrade().ok_or_else(|| ConfigError::NotTaken { message, refusal: stopping() })?;
        let entry = NoteAction { kind, agent: None, details };
        let noted = self.handle.block_on(api.bridge.acting_as(actor).ask(entry));
        noted.map_err(|refusal| ConfigError::NotTaken { message, refusal })
    }
}

impl Configuration for Live {
    fn shown(&self) -> Value {
        self.state.load().written.shown(&self.home)
    }

    fn in_force(&self) -> Value {
        self.state.load().in_force.shown(&self.home)
    }

    fn in_force_toml(&self) -> Result<String, ConfigError> {
        config::toml_of(&self.in_force()).map_err(|error| {
            tracing::error!(%error, "the configuration cannot be written as TOML");
            ConfigError::Failed
        })
    }

    fn schema(&self) -> Value {
        Config::schema()
    }

    fn set(&self, actor: Actor, path: &str, value: &Value) -> Result<ConfigSet, ConfigError> {
        let path = Config::path_of(path).map_err(refused)?;
        Config::writable(&path).map_err(refused)?;
        let _alone = self.turn.lock();
        let name = edit::joined(&path);
        let (mut restart_required, mut status, mut also_changed) = (false, "", Vec::new());
        let change = |text: &str| {
            let text = if text.is_empty() { Config::template() } else { text.to_owned() };
            let (after, loaded) = Config::changed(&text, &path, value, self.file.path()).map_err(refused)?;
            Ok((after, (), loaded))
        };
        let entry = |(): &(), state: &State| {
            restart_required = self.waiting(state).contains(&name);
            let is_in_force = !restart_required && Config::has_effect(&path);
            status = if is_in_force { "applied" } else { "saved" };
            // Edits by hand that nobody had put in force yet come with it.
            let others = self.changed(state).into_iter().map(|changed| changed.path).filter(|path| *path != name);
            also_changed = others.collect::<Vec<String>>();
            let mut details = json!({ "path": name, "value": value, "status": status });
            if !also_changed.is_empty() {
                details["also_changed"] = json!(also_changed);
            }
            Some((audit_kinds::CONFIG_SET, details))
        };
        self.write(actor, change, entry)?;
        let state = self.state.load();
        tracing::info!(path = name, status, ?also_changed, "a configuration key was set");
        let value = state.written.shown_at(&self.home, &path);
        Ok(ConfigSet { status, path: name, value, restart_required, also_changed })
    }

    fn reload(&self, actor: Actor) -> Result<ConfigReloaded, ConfigError> {
        let _alone = self.turn.lock();
        let loaded = Config::load(self.file.path()).map_err(|error| match error {
            config::Error::Invalid(problems) => ConfigError::Invalid(problems_of(&problems)),
            other => {
                tracing::error!(error = %other, "the configuration cannot be read");
                ConfigError::Failed
            }
        })?;
        let message = "the current configuration is unchanged";
        let ready = self.prepare(loaded)?;
        let (changed, restart_required) = (self.changed(&ready.state), self.waiting(&ready.state));
        if !changed.is_empty() {
            let paths: Vec<&str> = changed.iter().map(|changed| &*changed.path).collect();
            let details = json!({ "changed": paths, "restart_required": restart_required });
            self.note(actor, audit_kinds::CONFIG_RELOADED, details)?;
        }
        self.apply(ready, 1).map_err(|refusal| ConfigError::NotTaken { message, refusal })?;
        let state = self.state.load();
        let applied = changed.iter().filter(|changed| !changed.needs_restart()).map(|changed| changed.path.clone());
        let applied = applied.collect();
        let warnings = state.warnings.iter().map(ToString::to_string).collect();
        let status = if changed.is_empty() { "unchanged" } else { "reloaded" };
        let changed: Vec<_> = changed.into_iter().map(|changed| changed.path).collect();
        tracing::info!(?changed, ?restart_required, "the configuration was reloaded");
        Ok(ConfigReloaded { status, changed, applied, restart_required, warnings })
    }

    fn init(&self, actor: Actor, wanted: &ConfigInit) -> Result<ConfigInitialized, ConfigError> {
        self.write_first(actor, wanted)
    }
}

fn problems_of(problems: &Problems) -> Vec<ConfigProblem> {
    let problems = problems.list.iter().cloned();
    let problems = problems.map(|config::Problem { place, key, message }| ConfigProblem {
        line: place.line,
        column: place.column,
        key,
        message,
    });
    problems.collect()
}

fn refused(error: ChangeError) -> ConfigError {
    match error {
        ChangeError::Path(message) => ConfigError::Wrong { field: "path", message: format!("path: {message}") },
        ChangeError::Forbidden(message) => ConfigError::Forbidden(message),
        ChangeError::Value { path, message } => {
            ConfigError::Wrong { field: "value", message: format!("{path}: {message}") }
        }
        ChangeError::Broken(problems) => ConfigError::Broken(problems_of(&problems)),
        ChangeError::File(error) => Refused::from(error).0,
    }
}

/// A refusal on the way through the file.
struct Refused(ConfigError);

impl From<ConfigError> for Refused {
    fn from(error: ConfigError) -> Self {
        Self(error)
    }
}

impl From<FileError> for Refused {
    fn from(error: FileError) -> Self {
        if let FileError::Io { path, source, .. } = &error
            && source.kind() == std::io::ErrorKind::InvalidData
            && let Err(config::Error::Invalid(problems)) = Config::load(path)
        {
            // It is no text.
            return Self(ConfigError::Broken(problems_of(&problems)));
        }
        tracing::error!(%error, "the configuration cannot be changed");
        Self(ConfigError::Failed)
    }
}

impl From<Refused> for ConfigError {
    fn from(refused: Refused) -> Self {
        refused.0
    }
}
