//! From the text to typed values: one tree that borrows from the text, walked once.

use std::borrow::Cow;
use std::fmt;

use agentsvc_components::Micros;
use agentsvc_components::manifest::{
    AutoDream, Capabilities, Identity, Manifest, MemoryChoice, ModelChoice, SessionMode,
};
use agentsvc_components::usage::Limits;
use serde::de::Error as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Error;
use super::profile::Profile;
use super::{ParsedManifest, channels, check, triggers, wake};

/// A value of the tree and where it stands in the text.
pub(super) type Value<'t> = Spanned<DeValue<'t>>;

/// Reads the whole text; [`depth::check`](super::depth::check) must have passed.
pub(super) fn read(text: &str) -> Result<ParsedManifest, Error> {
    let root = DeTable::parse(text).map_err(|error| syntax(text, &error))?;
    let root = Table { text, path: &Path::Root, entries: root.get_ref() };
    let name = root.string("name")?.ok_or_else(|| Error::missing("name"))?;
    if let Err(message) = check::validate_name(name) {
        return Err(root.wrong("name", message));
    }
    Ok(ParsedManifest { name: name.into(), manifest: manifest(&root)? })
}

/// The parser's error, on one line, with its place.
fn syntax(text: &str, error: &toml::de::Error) -> Error {
    let message = match error.message() {
        "" => toml::de::Error::custom("not a TOML text").message().to_owned(),
        message => message.replace('\n', ", "),
    };
    match error.span() {
        Some(span) => Error::syntax(text, span.start, message),
        None => Error::whole(message),
    }
}

/// Everything but the name.
fn manifest(root: &Table<'_>) -> Result<Manifest, Error> {
    let (model, model_prompt) =
        root.table("model", |table| Ok((model_choice(table)?, table.text("system_prompt")?)))?;
    let root_prompt = root.string("system_prompt")?.map(Box::from);
    let capabilities = all_capabilities(root)?;
    Ok(Manifest {
        version: root.text("version")?,
        description: root.text("description")?,
        author: root.text("author")?,
        module: root.text("module")?,
        tags: root.list("tags")?,
        model,
        fallback_models: fallback_models(root)?,
        system_prompt: root_prompt.unwrap_or(model_prompt),
        capabilities,
        skills: root.list("skills")?,
        mcp_servers: root.list("mcp_servers")?,
        tool_allowlist: root.list("tool_allowlist")?,
        tool_blocklist: root.list("tool_blocklist")?,
        require_approval: root.list("require_approval")?,
        session_mode: session_mode(root)?,
        max_history_messages: root.whole_number("max_history_messages")?,
        identity: root.table("identity", |table| {
            Ok(Identity { avatar: table.text("avatar")?, persona: table.text("persona")? })
        })?,
        limits: all_limits(root)?,
        proactive_memory: root.table("proactive_memory", proactive_memory)?,
        triggers: triggers::read(root)?,
        auto_dream: AutoDream {
            enabled: root.boolean("auto_dream_enabled")?,
            min_hours: root.whole_number("auto_dream_min_hours")?,
            min_sessions: root.whole_number("auto_dream_min_sessions")?,
        },
        wake: wake::schedule(root)?,
        autonomous: wake::autonomous(root)?,
        max_iterations: root.whole_number("max_iterations")?,
        skills_disabled: root.boolean("skills_disabled")?.unwrap_or_default(),
        // No text says it: it is there while the agent is frozen.
        frozen_skills: None,
        channels: root.list("channels")?,
        channel_overrides: root.table("channel_overrides", channels::overrides)?,
        routing: channels::routing(root)?,
    })
}

/// `[model]`, or one of `[[fallback_models]]`.
fn model_choice(table: &Table<'_>) -> Result<ModelChoice, Error> {
    let temperature = table.number("temperature")?;
    let max_tokens = table.whole_number("max_tokens")?;
    let base_url = table.string("base_url")?.filter(|url| !url.is_empty());
    let api_key_env = table.string("api_key_env")?.filter(|name| !name.is_empty());
    table.must("temperature", temperature.map(check::temperature))?;
    table.must("max_tokens", max_tokens.map(check::max_tokens))?;
    table.must("base_url", base_url.map(check::base_url))?;
    table.must("api_key_env", api_key_env.map(check::api_key_env))?;
    Ok(ModelChoice {
        provider: table.text("provider")?,
        model: table.text("model")?,
        temperature,
        max_tokens,
        base_url: base_url.map(Box::from),
        api_key_env: api_key_env.map(Box::from),
    })
}

/// `[capabilities]`.
fn capabilities(table: &Table<'_>) -> Result<Capabilities, Error> {
    Ok(Capabilities {
        tools: table.list("tools")?,
        network: table.list("network")?,
        memory_read: table.list("memory_read")?,
        memory_write: table.list("memory_write")?,
        shell: table.list("shell")?,
        agent_spawn: table.boolean("agent_spawn")?,
        file_system: table.boolean("file_system")?,
    })
}

/// `[capabilities]`, or `tools` at top level, over those of `profile`. With tools of its own, a manifest has no others.
fn all_capabilities(root: &Table<'_>) -> Result<Capabilities, Error> {
    let mut all = root.table("capabilities", capabilities)?;
    if root.has("tools") {
        all.tools = root.list("tools")?;
    }
    let profile = root.string("profile")?.map(Profile::named).transpose();
    let Some(profile) = profile.map_err(|why| root.wrong("profile", why))?.flatten() else { return Ok(all) };
    let has = |key: &str| root.table("capabilities", |table| Ok(table.has(key))).unwrap_or_default();
    if !root.has("tools") && !has("tools") {
        profile.fill(&mut all, has);
    }
    Ok(all)
}

/// `[limits]`; without an hourly limit that of `[resources]`, where 0 is none.
fn all_limits(root: &Table<'_>) -> Result<Limits, Error> {
    let limits = root.table("limits", limits)?;
    let resources = root.table("resources", |table| table.whole_number("max_llm_tokens_per_hour"))?;
    let hourly_tokens = limits.hourly_tokens.or(resources.filter(|most| *most > 0).map(u64::from));
    Ok(Limits { hourly_tokens, ..limits })
}

/// `[limits]`.
fn limits(table: &Table<'_>) -> Result<Limits, Error> {
    Ok(Limits {
        daily: table.dollars("daily_limit_usd")?,
        monthly: table.dollars("monthly_limit_usd")?,
        hourly_tokens: table.whole_number("hourly_token_limit")?.map(u64::from),
    })
}

/// `[proactive_memory]`.
fn proactive_memory(table: &Table<'_>) -> Result<MemoryChoice, Error> {
    let model = table.string("extraction_model")?;
    table.must("extraction_model", model.filter(|model| !model.is_empty()).map(check::model_name))?;
    Ok(MemoryChoice {
        enabled: table.boolean("enabled")?,
        auto_memorize: table.boolean("auto_memorize")?,
        auto_retrieve: table.boolean("auto_retrieve")?,
        extraction_model: model.map(Box::from),
    })
}

/// `fallback_models`: tables like `[model]`, or strings `provider/model` or `model`.
fn fallback_models(root: &Table<'_>) -> Result<Vec<ModelChoice>, Error> {
    root.items("fallback_models", |path, item| match item.get_ref() {
        DeValue::Table(entries) => model_choice(&Table { text: root.text, path, entries }),
        DeValue::String(written) => {
            let (provider, model) = written.split_once('/').unwrap_or(("", written));
            // `written` without a slash has no provider, and may have none; with one it must have both.
            if model.is_empty() || (provider.is_empty() && written.contains('/')) {
                return Err(wrong(root.text, path, item, "expected `model` or `provider/model`"));
            }
            Ok(ModelChoice { provider: provider.into(), model: model.into(), ..ModelChoice::default() })
        }
        _ => Err(mismatch(root.text, path, item, "a table or a string")),
    })
}

/// `session_mode`.
pub(super) fn session_mode(root: &Table<'_>) -> Result<Option<SessionMode>, Error> {
    match root.string("session_mode")? {
        None => Ok(None),
        Some("persistent") => Ok(Some(SessionMode::Persistent)),
        Some("new") => Ok(Some(SessionMode::New)),
        Some(_) => Err(root.wrong("session_mode", "expected `persistent` or `new`")),
    }
}

/// Where a value stands; made into text only for an error.
pub(super) enum Path<'p> {
    Root,
    Key(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Self::Root, key) => f.write_str(key),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// One table of the tree. Every getter gives the empty value for a key that is not there.
pub(super) struct Table<'t> {
    /// The whole text, for the lines of errors.
    pub(super) text: &'t str,
    pub(super) path: &'t Path<'t>,
    pub(super) entries: &'t DeTable<'t>,
}

/// A table without entries, for keys that are not there.
static NO_ENTRIES: std::sync::LazyLock<DeTable<'static>> = std::sync::LazyLock::new(DeTable::new);

impl<'t> Table<'t> {
    fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    pub(super) fn string(&self, key: &str) -> Result<Option<&'t str>, Error> {
        self.typed(key, "a string", |value| match value {
            DeValue::String(string) => Some(string.as_ref()),
            _ => None,
        })
    }

    fn text(&self, key: &str) -> Result<Box<str>, Error> {
        Ok(self.string(key)?.map_or_else(Box::default, Box::from))
    }

    pub(super) fn boolean(&self, key: &str) -> Result<Option<bool>, Error> {
        self.typed(key, "true or false", |value| value.as_bool())
    }

    /// A number read as the nearest `f32`, from its own digits, so that writing and reading gives the same.
    fn number(&self, key: &str) -> Result<Option<f32>, Error> {
        let number: Option<f32> = self.typed(key, "a number", |value| match value {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(whole) => i64::from_str_radix(whole.as_str(), whole.radix()).ok().map(|n| n as f32),
            _ => None,
        })?;
        // Minus zero equals zero and would yet hash as another manifest.
        Ok(number.map(|number| if number == 0.0 { 0.0 } else { number }))
    }

    /// An amount of dollars.
    fn dollars(&self, key: &str) -> Result<Option<Micros>, Error> {
        let number: Option<f64> = self.typed(key, "a number", |value| match value {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(whole) => i64::from_str_radix(whole.as_str(), whole.radix()).ok().map(|n| n as f64),
            _ => None,
        })?;
        let wrong = || self.wrong(key, "expected an amount in dollars, 0 or more");
        number.map(|usd| Micros::from_usd(usd).ok_or_else(wrong)).transpose()
    }

    pub(super) fn whole_number(&self, key: &str) -> Result<Option<u32>, Error> {
        match self.whole_number_to(key, u32::MAX.into())? {
            None => Ok(None),
            Some(number) => Ok(u32::try_from(number).ok()),
        }
    }

    /// A whole number of at most `most`.
    pub(super) fn whole_number_to(&self, key: &str, most: u64) -> Result<Option<u64>, Error> {
        let whole = self.typed(key, "a whole number", |value| match value {
            DeValue::Integer(whole) => Some(u64::from_str_radix(whole.as_str(), whole.radix()).ok()),
            _ => None,
        })?;
        match whole.map(|number| number.filter(|number| *number <= most)) {
            None => Ok(None),
            Some(Some(number)) => Ok(Some(number)),
            Some(None) => Err(self.wrong(key, format!("expected a whole number from 0 to {most}"))),
        }
    }

    pub(super) fn list(&self, key: &str) -> Result<Vec<Box<str>>, Error> {
        self.items(key, |path, item| match item.get_ref() {
            DeValue::String(string) => Ok(Box::from(string.as_ref())),
            _ => Err(mismatch(self.text, path, item, "a string")),
        })
    }

    pub(super) fn items<R>(
        &self,
        key: &str,
        read: impl Fn(&Path<'_>, &Value<'t>) -> Result<R, Error>,
    ) -> Result<Vec<R>, Error> {
        let items = self.typed(key, "a list", |value| match value {
            DeValue::Array(items) => Some(items),
            _ => None,
        })?;
        let path = Path::Key(self.path, key);
        items.map_or(Ok(Vec::new()), |items| {
            items.iter().enumerate().map(|(index, item)| read(&Path::Index(&path, index), item)).collect()
        })
    }

    pub(super) fn table<R>(&self, key: &str, read: impl Fn(&Table<'_>) -> Result<R, Error>) -> Result<R, Error> {
        let entries = self.typed(key, "a table", |value| match value {
            DeValue::Table(entries) => Some(entries),
            _ => None,
        })?;
        let path = Path::Key(self.path, key);
        match entries {
            Some(entries) => read(&Table { text: self.text, path: &path, entries }),
            None => read(&Table { text: self.text, path: &path, entries: &NO_ENTRIES }),
        }
    }

    /// Is `key` a table?
    pub(super) fn has_table(&self, key: &str) -> bool {
        matches!(self.entries.get(key).map(Spanned::get_ref), Some(DeValue::Table(_)))
    }

    /// The value of `key` as `pick` takes it; an error that expected `what` when it does not.
    pub(super) fn typed<R>(
        &self,
        key: &str,
        what: &str,
        pick: impl Fn(&'t DeValue<'t>) -> Option<R>,
    ) -> Result<Option<R>, Error> {
        let Some(value) = self.entries.get(key) else { return Ok(None) };
        match pick(value.get_ref()) {
            Some(picked) => Ok(Some(picked)),
            None => Err(mismatch(self.text, &Path::Key(self.path, key), value, what)),
        }
    }

    /// The error of a check of `key`'s value, if there is one.
    pub(super) fn must(&self, key: &str, checked: Option<Result<(), String>>) -> Result<(), Error> {
        match checked {
            Some(Err(message)) => Err(self.wrong(key, message)),
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// `message` about the value of `key`.
    pub(super) fn wrong(&self, key: &str, message: impl Into<Cow<'static, str>>) -> Error {
        let path = Path::Key(self.path, key);
        match self.entries.get(key) {
            Some(value) => wrong(self.text, &path, value, message),
            None => Error::missing(&path.to_string()),
        }
    }
}

pub(super) fn wrong(text: &str, path: &Path<'_>, value: &Value<'_>, message: impl Into<Cow<'static, str>>) -> Error {
    Error::value(text, value.span(), path.to_string(), message.into())
}

pub(super) fn mismatch(text: &str, path: &Path<'_>, value: &Value<'_>, expected: &str) -> Error {
    let found = match value.get_ref() {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    wrong(text, path, value, format!("expected {expected}, found {found}"))
}
