//! What a module of an agent's skill reaches: never more than the agent itself, and nothing that waits for a person.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use agentsvc_api::memory::entries::{NewEntry, OnConflict};
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::manifest::Manifest;
use agentsvc_systems::agent::{SpawnAgent, SpawnChild};
use agentsvc_systems::injection::{Shielded, shield};
use agentsvc_systems::kernel::glob;
use agentsvc_systems::manifest;
use agentsvc_systems::memory::{check_key, check_value};
use agentsvc_systems::taint::carries_away;
use agentsvc_systems::turn::{ReadWithinCall, SendToAgent, SendWithinCall};
use agentsvc_systems::wasm::limits::{WASM_PAYLOAD_BYTES_MAX, WASM_RUNS_FAMILY_MAX, WASM_RUNS_MAX, WASM_SECS_MAX};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::capability::is_plain;
use super::{Capabilities, Host, HostCall, Limits, run};
use crate::approval::config::Approval;
use crate::kernel::egress::Request as Fetch;
use crate::kernel::sandbox::{Asked, Request as Command, Workspace, Write};
use crate::memory::grant::own;
use crate::tool::files::{Keeper, sentence};
use crate::tool::toolset::{Context, Need, grant};
use agentsvc_api::http::places::Places;

/// Places for modules: each takes a thread that may block, which the reads of the API need, too.
static PLACES: LazyLock<Places> = LazyLock::new(|| Places::new(WASM_RUNS_MAX, WASM_RUNS_FAMILY_MAX));
/// Variables of the daemon that say nothing about it.
const HARMLESS: [&str; 4] = ["LANG", "LC_ALL", "LC_CTYPE", "TZ"];
/// Names of a directory that are listed.
const NAMES_MAX: usize = 1_000;

/// Runs a module for a tool call of an agent: the tool is one of the skill of this name. Gives its result, and the taint of what
/// the module was given.
///
/// # Errors
/// A sentence for the model.
pub async fn run_in_call(
    context: Context,
    skill: &str,
    module: Vec<u8>,
    envelope: Vec<u8>,
    capabilities: Capabilities,
) -> Result<(Vec<u8>, Taint), String> {
    // Held while it runs, also after its caller is gone: that is what bounds the threads.
    let place = PLACES.place(context.run.holder).await.ok_or("No modules run any more.")?;
    let stop = Stop(Arc::default());
    let host = AgentHost::new(context, skill, Arc::clone(&stop.0));
    let running = tokio::task::spawn_blocking(move || {
        let _place = place;
        let result = run(&module, &envelope, Limits::default(), &capabilities, &host);
        result.map(|result| (result, host.taint()))
    });
    let ended = running.await.map_err(|_| "The module failed with an internal error.".to_owned())?;
    ended.map_err(|error| {
        let text = error.to_string();
        format!("{}{}.", text[..1].to_uppercase(), &text[1..])
    })
}

/// Stops the run when nobody waits for it any more.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The host of one tool call of a skill.
struct AgentHost {
    context: Context,
    /// Nobody waits for the call any more.
    stopped: Arc<AtomicBool>,
    handle: Handle,
    /// What the keys of its memory begin with: a skill reads what it wrote, and nothing else of the agent's memory.
    prefix: String,
    /// What came into the module.
    taint: Mutex<Taint>,
}

impl AgentHost {
    /// The host of a call of the tool of a skill; it is made on a thread of the runtime, and used on one that may block.
    fn new(context: Context, skill: &str, stopped: Arc<AtomicBool>) -> Self {
        let (handle, taint) = (Handle::current(), Mutex::new(Taint::NONE));
        Self { context, stopped, handle, prefix: format!("skill:{skill}:"), taint }
    }

    /// What the module was given that is untrusted.
    fn taint(&self) -> Taint {
        *self.taint.lock()
    }

    /// The module is given what this tool would read: the turn knows before the module can store or send it.
    fn bring(&self, taint: Taint, tool: &str, deadline: Instant) -> Result<(), String> {
        self.tell(taint, tool.to_owned(), deadline)?;
        let mut brought = self.taint.lock();
        *brought = brought.with(taint);
        Ok(())
    }

    /// The module is about to do what this tool does: may the turn do so, after all that it has read until now? Gives the taint of
    /// that. `about` is the address that it fetches, or the agent that it writes to.
    fn judge(&self, tool: &str, about: &str, deadline: Instant) -> Result<Taint, String> {
        let tool = if about.is_empty() { tool.to_owned() } else { format!("{tool} {about}") };
        self.tell(Taint::NONE, tool, deadline)
    }

    fn tell(&self, taint: Taint, tool: String, deadline: Instant) -> Result<Taint, String> {
        if self.context.direct || self.context.agent().is_none() {
            return Ok(self.taint());
        }
        let (from, index) = (self.context.run.attempt, self.context.run.index);
        self.wait(deadline, self.context.ask(ReadWithinCall { from, index, taint, tool }))?
    }

    /// Waits for a future, until the deadline at most.
    fn wait<T>(&self, deadline: Instant, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        let left = deadline.saturating_duration_since(Instant::now());
        self.handle.block_on(async {
            let ended = tokio::time::timeout(left, work).await;
            ended.unwrap_or_else(|_| Err("the time of the module is over".to_owned()))
        })
    }

    /// May the agent do itself what this tool does, without a person?
    fn check(&self, tool: &str, need: Need) -> Result<(), String> {
        let approval = self.context.parts.settings.get::<Approval>();
        may(&self.context.run.manifest.manifest, &approval.require_approval, tool, need)
    }

    /// Refuses what the agent's manifest blocks. A module has keys of its own whether or not its agent has tools for memory.
    fn is_blocked(&self, tool: &str) -> Result<(), String> {
        let manifest = &self.context.run.manifest.manifest;
        if glob::any(&manifest.tool_blocklist, tool) {
            Err(format!("not granted to the agent: {tool}"))
        } else {
            Ok(())
        }
    }

    fn key(&self, key: &str) -> Result<String, String> {
        let key = format!("{}{key}", self.prefix);
        check_key(&key).map_err(|refusal| format!("key: {}", refusal.message))?;
        Ok(key)
    }

    fn kv_get(&self, key: &str, deadline: Instant) -> Result<Value, String> {
        self.is_blocked("memory_recall")?;
        let key = self.key(key)?;
        self.judge("memory_recall", "", deadline)?;
        let memory = own(&self.context);
        let read = async { memory.get(&key).await.map_err(|refusal| refusal.message.to_string()) };
        let Some(record) = self.wait(deadline, read)? else { return Ok(Value::Null) };
        self.bring(record.taint, "memory_recall", deadline)?;
        Ok(serde_json::from_str(&record.value).unwrap_or_default())
    }

    fn kv_set(&self, key: &str, value: String, deadline: Instant) -> Result<Value, String> {
        self.is_blocked("memory_store")?;
        let key = self.key(key)?;
        let value: Box<str> = value.into();
        check_value(&value).map_err(|refusal| format!("value: {}", refusal.message))?;
        let entry = NewEntry { key: key.into(), value, created_at: None, updated_at: None };
        self.judge("memory_store", "", deadline)?;
        if self.context.direct && !self.taint().is_none() {
            return Err("what a module has read outside of a turn is untrusted and cannot be stored".to_owned());
        }
        let memory = own(&self.context);
        let write = memory.put(vec![entry], OnConflict::Overwrite);
        self.wait(deadline, async { write.await.map_err(|refusal| refusal.message.to_string()) })?;
        Ok(Value::Bool(true))
    }

    fn workspace(&self) -> Result<Workspace, String> {
        let run = &self.context.run;
        self.context.parts.workspaces.open_for(run.agent, &run.agent_name, run.holder).map_err(sentence)
    }

    /// The workspace, where the path goes through no link: a capability for `notes/*` is none for what a link there leads to.
    fn without_links(&self, path: &str) -> Result<Workspace, String> {
        let workspace = self.workspace()?;
        if workspace.goes_through_link(path) {
            Err(format!("{path} goes through a symbolic link"))
        } else {
            Ok(workspace)
        }
    }

    fn fs_read(&self, path: &str, deadline: Instant) -> Result<Value, String> {
        self.check("file_read", Need::Files)?;
        self.judge("file_read", "", deadline)?;
        let bytes = self.without_links(path)?.read_whole(path, WASM_PAYLOAD_BYTES_MAX as u64).map_err(sentence)?;
        self.bring(Taint::NONE, "file_read", deadline)?;
        String::from_utf8(bytes).map(Value::String).map_err(|_| "the file is not UTF-8 text".to_owned())
    }

    fn fs_list(&self, path: &str, deadline: Instant) -> Result<Value, String> {
        self.check("file_list", Need::Files)?;
        self.judge("file_list", "", deadline)?;
        let path = if path == "." { "" } else { path };
        let listing = self.without_links(path)?.list(path, false, NAMES_MAX).map_err(sentence)?;
        self.bring(Taint::NONE, "file_list", deadline)?;
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(listing.entries.iter().map(|entry| name(&entry.path)).collect())
    }

    fn fs_write(&self, path: &str, content: &str, deadline: Instant) -> Result<Value, String> {
        self.check("file_write", Need::Files)?;
        self.judge("file_write", "", deadline)?;
        let workspace = self.without_links(path)?;
        let write = || {
            workspace.write(path, content.as_bytes(), Write::Overwrite).map_err(sentence)?;
            Ok(String::new())
        };
        Keeper::of(&self.context, "file_write").around(&workspace, &[path], write)?;
        Ok(Value::Bool(true))
    }

    fn net_fetch(&self, url: &str, body: Option<String>, deadline: Instant) -> Result<Value, String> {
        self.check("web_fetch", Need::Network)?;
        self.judge("web_fetch", url, deadline)?;
        if let Some(body) = &body {
            // What is sent goes further than an address.
            let read = self.judge("web_post", url, deadline)?.with(self.taint());
            if !read.is_none() && carries_away(body) {
                return Err(
                    "refused: the body has what looks like a secret or a long encoded text, and this call has read \
                            untrusted content"
                        .to_owned(),
                );
            }
        }
        let request = Fetch {
            url,
            holder: self.context.run.holder,
            network: &self.context.run.manifest.manifest.capabilities.network,
            trusted: None,
            accept: "application/json,text/*;q=0.9,*/*;q=0.1",
            header: None,
            json: body,
            // Each host must be granted to the module; it can fetch the next one itself.
            redirects_max: 0,
        };
        let fetch = async { self.context.parts.web.fetch(request).await.map_err(|error| error.to_string()) };
        let fetched = self.wait(deadline, fetch)?;
        self.bring(Taint::WEB, "web_fetch", deadline)?;
        Ok(json!({ "status": fetched.status.as_u16(), "body": fetched.text }))
    }

    fn shell_exec(&self, command: String, deadline: Instant) -> Result<Value, String> {
        self.check("shell_exec", Need::Shell)?;
        self.judge("shell_exec", "", deadline)?;
        let manifest = &self.context.run.manifest.manifest;
        let asked = match is_plain(&command) {
            true => Asked::Words(command.split_whitespace().map(str::to_owned).collect()),
            false => Asked::Line(command),
        };
        let models = std::iter::once(&manifest.model).chain(&manifest.fallback_models);
        let commands = &self.context.parts.commands;
        let run = async {
            let place = commands.place(self.context.run.holder).await?;
            let workspace = self.workspace()?.for_command().map_err(sentence)?;
            let left = deadline.saturating_duration_since(Instant::now());
            let request = Command {
                place,
                asked,
                workspace,
                shown: Vec::new(),
                variables: Vec::new(),
                granted: manifest.capabilities.shell.clone(),
                network: manifest.capabilities.network.iter().any(|host| &**host == "*"),
                secrets: models.filter_map(|model| model.api_key_env.clone()).collect(),
                timeout_secs: Some(left.as_secs().clamp(1, WASM_SECS_MAX)),
            };
            commands.run(request).await
        };
        // What was started is ended by its own limit, a moment later.
        let ran = self.wait(deadline + Duration::from_secs(1), run)?;
        self.bring(Taint::COMMAND, "shell_exec", deadline + Duration::from_secs(1))?;
        Ok(json!({ "exit_code": ran.code, "stdout": ran.stdout, "stderr": ran.stderr }))
    }

    fn agent_send(&self, to: String, message: String, deadline: Instant) -> Result<Value, String> {
        self.check("agent_send", Need::Nothing)?;
        if self.context.direct {
            return Err("messages are sent in a turn only".to_owned());
        }
        self.judge("agent_send", &to, deadline)?;
        let Shielded { text, found } = shield(self.context.parts.injection, "another agent", message).here();
        let (from, index) = (self.context.run.attempt, self.context.run.index);
        let send = SendWithinCall(SendToAgent { from, index, to, session: None, text, wait: false, found });
        let sent = self.wait(deadline, self.context.ask(send))?;
        Ok(json!({ "task_id": sent.turn.0, "session_id": sent.session.0 }))
    }

    fn agent_spawn(&self, text: &str, deadline: Instant) -> Result<Value, String> {
        self.check("agent_spawn", Need::Spawn)?;
        self.judge("agent_spawn", "", deadline)?;
        let parsed = manifest::parse(text).map_err(|error| format!("manifest: {error}"))?;
        let hash = manifest::hash(&parsed.manifest);
        let child = SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text: text.to_owned() };
        let spawn = SpawnChild { parent: self.context.run.agent, child, by: self.context.turn() };
        let spawned = self.wait(deadline, self.context.ask(spawn))?;
        Ok(json!({ "agent_id": spawned.agent, "name": spawned.name }))
    }
}

/// May an agent of this manifest do what the tool does, without a person? `gated` are the tools that need one for all agents.
fn may(manifest: &Manifest, gated: &[Box<str>], tool: &str, need: Need) -> Result<(), String> {
    if !grant::has(manifest, need) || !grant::is_granted(manifest, tool) {
        return Err(format!("not granted to the agent: {tool}"));
    }
    if glob::any(gated, tool) || glob::any(&manifest.require_approval, tool) {
        return Err(format!("{tool} needs the approval of a person, for which a module cannot ask"));
    }
    Ok(())
}

impl Host for AgentHost {
    fn call(&self, call: HostCall, deadline: Instant) -> Result<Value, String> {
        match call {
            HostCall::TimeNow => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Ok(now.as_secs().into())
            }
            HostCall::KvGet { key } => self.kv_get(&key, deadline),
            HostCall::KvSet { key, value } => self.kv_set(&key, value, deadline),
            HostCall::FsRead { path } => self.fs_read(&path, deadline),
            HostCall::FsList { path } => self.fs_list(&path, deadline),
            HostCall::FsWrite { path, content } => self.fs_write(&path, &content, deadline),
            HostCall::EnvRead { name } => match HARMLESS.contains(&&*name) {
                true => Ok(std::env::var(&name).map_or(Value::Null, Value::String)),
                false => Err(format!("modules can read {}", HARMLESS.join(", "))),
            },
            HostCall::NetFetch { url, body } => self.net_fetch(&url, body, deadline),
            HostCall::ShellExec { command } => self.shell_exec(command, deadline),
            HostCall::AgentSend { target, message } => self.agent_send(target, message, deadline),
            HostCall::AgentSpawn { manifest } => self.agent_spawn(&manifest, deadline),
        }
    }

    fn is_cancelled(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn log(&self, level: i32, line: &str) {
        let (agent, skill) = (&*self.context.run.agent_name, self.prefix.trim_end_matches(':'));
        match level {
            ..=1 => tracing::debug!(agent, skill, line, "a WASM module"),
            2 => tracing::info!(agent, skill, line, "a WASM module"),
            _ => tracing::warn!(agent, skill, line, "a WASM module"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_may_what_its_agent_may_without_a_person() {
        let may = |text: &str, gated: &[Box<str>]| {
            let parsed = manifest::parse(&format!("name = \"a\"\n{text}")).unwrap();
            may(&parsed.manifest, gated, "file_write", Need::Files)
        };
        let tools = |tools: &str| format!("[capabilities]\ntools = [\"{tools}\"]");
        assert_eq!(may(&tools("file_*"), &[]), Ok(()));
        for text in [
            tools("memory_recall"),
            format!("{}\nfile_system = false", tools("*")),
            format!("tool_allowlist = [\"file_read\"]\n{}", tools("*")),
            format!("tool_blocklist = [\"file_write\"]\n{}", tools("*")),
        ] {
            assert!(may(&text, &[]).unwrap_err().starts_with("not granted"), "{text}");
        }
        let own = format!("require_approval = [\"file_*\"]\n{}", tools("*"));
        assert!(may(&own, &[]).unwrap_err().contains("approval"));
        assert!(may(&tools("*"), &["file_write".into()]).unwrap_err().contains("approval"));
    }
}
