//! A stored MCP server is added, changed and removed.

use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::mcp::{McpServer, McpServerId, SamplingRule, SealedValue};
use agentsvc_components::{Refusal, Timestamp};
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::index::{McpServers, QUOTA, named};
use super::list::McpServerView;
use super::{McpOauth, McpTransport, audit_kinds, error_codes, limits, pins};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, change};
use crate::kernel::id_generator::mint;
use crate::kernel::outbox::Emit;
use crate::kernel::text::check_length;

/// What a client says of a server. A field that is left out has its default when the server is added, and stays as it is when
/// it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServerFields {
    /// How it is reached, as the JSON of an [`McpTransport`].
    pub transport: Option<String>,
    /// Its environment variables with sealed values; `None` keeps the value that is there.
    pub env: Option<Vec<(String, Option<String>)>>,
    /// Headers of requests to it, as the variables.
    pub headers: Option<Vec<(String, Option<String>)>>,
    /// Timeout of a call in seconds.
    pub timeout_secs: Option<u16>,
    /// May its program use the network?
    pub network: Option<bool>,
    /// How it is signed in to, as the JSON of an [`McpOauth`]; `Some(None)` takes it away.
    #[serde(with = "crate::kernel::patch")]
    pub oauth: Option<Option<String>>,
    /// May it ask models? Without it, a change of the transport takes the grant away: it was given to another server.
    #[serde(default)]
    pub sampling: Option<SamplingRule>,
    /// The most tokens of the answers in one call.
    #[serde(default)]
    pub sampling_max_tokens: Option<u32>,
}

impl McpServerFields {
    /// Puts the fields into `server`, all or none.
    fn put_into(self, server: &mut McpServer, now: Timestamp) -> Result<(), Refusal> {
        let mut changed = server.clone();
        if let Some(text) = self.transport {
            let text = checked_transport(&text)?;
            if is_elsewhere(server.transport.as_deref(), &text) {
                // Whoever is there now must not get what was meant for another.
                if self.headers.is_none() && !changed.headers.is_empty() {
                    return Err(Refusal::bad_field(
                        "headers",
                        "headers: send them again, because the host has changed",
                    ));
                }
                changed.headers.clear();
            }
            // One of a template had none of its own: it becomes another server, too.
            if server.transport.as_deref() != Some(&*text) {
                changed.sampling.rule = SamplingRule::Off;
            }
            changed.transport = Some(text);
        }
        if let Some(env) = self.env {
            changed.env = merged("env", &changed.env, env)?;
        }
        if let Some(headers) = self.headers {
            changed.headers = merged("headers", &changed.headers, headers)?;
        }
        if let Some(secs) = self.timeout_secs {
            if !(1..=limits::MCP_TIMEOUT_SECS_MAX).contains(&u64::from(secs)) {
                let text = format!("timeout_secs must be 1 to {}", limits::MCP_TIMEOUT_SECS_MAX);
                return Err(Refusal::bad_field("timeout_secs", text));
            }
            changed.timeout_secs = Some(secs);
        }
        changed.network = self.network.unwrap_or(changed.network);
        if let Some(oauth) = self.oauth {
            changed.oauth = oauth.map(|text| checked_oauth(&text)).transpose()?;
        }
        changed.sampling.rule = self.sampling.unwrap_or(changed.sampling.rule);
        if let Some(tokens) = self.sampling_max_tokens {
            if !(1..=limits::MCP_SAMPLING_TOKENS_MAX).contains(&u64::from(tokens)) {
                let text = format!("sampling_max_tokens must be 1 to {}", limits::MCP_SAMPLING_TOKENS_MAX);
                return Err(Refusal::bad_field("sampling_max_tokens", text));
            }
            changed.sampling.max_tokens = Some(tokens);
        }
        changed.updated_at = now;
        *server = changed;
        Ok(())
    }
}

/// Is the host of a server another one now?
fn is_elsewhere(before: Option<&str>, now: &str) -> bool {
    let target = |text: &str| {
        let read = serde_json::from_str::<McpTransport>(text).ok();
        read.filter(|it| it.url().is_some()).map(|it| it.target().to_owned())
    };
    before.and_then(target) != target(now)
}

fn checked_transport(text: &str) -> Result<Box<str>, Refusal> {
    check_length("transport", text, limits::MCP_TRANSPORT_BYTES_MAX)?;
    let read: Result<McpTransport, _> = serde_json::from_str(text);
    let checked = read.map_err(|error| error.to_string()).and_then(|transport| transport.check());
    checked.map_err(|why| Refusal::bad_field("transport", format!("transport: {why}")))?;
    Ok(text.into())
}

fn checked_oauth(text: &str) -> Result<Box<str>, Refusal> {
    let read: Result<McpOauth, _> = serde_json::from_str(text);
    match read {
        Ok(_) if text.len() <= limits::MCP_VALUE_BYTES_MAX => Ok(text.into()),
        Ok(_) => Err(Refusal::bad_field("oauth", "oauth is too long")),
        Err(error) => Err(Refusal::bad_field("oauth", format!("oauth: {error}"))),
    }
}

/// The values of `given`; those that it leaves out are those of `before`.
fn merged(
    field: &str,
    before: &[SealedValue],
    given: Vec<(String, Option<String>)>,
) -> Result<Vec<SealedValue>, Refusal> {
    if given.len() > limits::MCP_VALUES_MAX {
        return Err(Refusal::bad_field(field, format!("{field} has more than {} names", limits::MCP_VALUES_MAX)));
    }
    let mut merged: Vec<SealedValue> = Vec::new();
    for (name, value) in given {
        if merged.iter().any(|it| *it.name == *name) {
            return Err(Refusal::bad_field(field, format!("{field}: {name} is there twice")));
        }
        let kept = || before.iter().find(|it| *it.name == *name).map(|it| it.value.clone());
        let Some(value) = value.map(Box::from).or_else(kept) else {
            return Err(Refusal::bad_field(field, format!("{field}: {name} needs a value")));
        };
        merged.push(SealedValue { name: name.into(), value });
    }
    Ok(merged)
}

fn checked_name(name: &str) -> Result<Box<str>, Refusal> {
    let most = limits::MCP_SERVER_NAME_BYTES_MAX;
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if (1..=most).contains(&name.len()) && name.bytes().all(is_valid) {
        Ok(name.into())
    } else {
        Err(Refusal::bad_field("name", format!("name must have 1 to {most} letters, digits, `-` or `_`")))
    }
}

/// Adds a server (spec 3, MCP servers).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CreateMcpServer {
    /// Its name.
    pub name: String,
    /// The catalog entry that says how it is reached.
    pub template_id: Option<String>,
    /// What is known of it.
    pub fields: McpServerFields,
}

command!(write "create_mcp_server" CreateMcpServer => McpServerView, Root, |it, world| Answer::stored(create(world, it)));

fn create(world: &mut World, it: CreateMcpServer) -> Result<McpServerView, Refusal> {
    let CreateMcpServer { name, template_id, fields } = it;
    let name = checked_name(&name)?;
    if template_id.is_none() && fields.transport.is_none() {
        return Err(Refusal::bad_field("transport", "transport is missing"));
    }
    if template_id.as_ref().is_some_and(|id| id.len() > limits::MCP_VALUE_BYTES_MAX) {
        return Err(Refusal::bad_field("template_id", "template_id is too long"));
    }
    let all = world.resource::<McpServers>();
    if let Some(at) = all.like(&name).and_then(|id| all.get(id)) {
        let other = world.get::<McpServer>(at).map_or("", |server| &*server.name);
        let text = if *other == *name {
            format!("MCP server {name:?} already exists; choose another name or remove it first")
        } else {
            format!("the tools of MCP server {name:?} would have the same names as those of {other:?}")
        };
        return Err(Refusal::of(error_codes::MCP_SERVER_EXISTS, text));
    }
    let now = world.resource::<Now>().0;
    let template_id = template_id.map(Box::from);
    let mut server = McpServer { name, template_id, created_at: now, ..McpServer::default() };
    fields.put_into(&mut server, now)?;
    QUOTA.admit(world.resource::<McpServers>().used, 1, server.bytes())?;
    note(world, audit_kinds::MCP_SERVER_CREATED, &server);
    let id: McpServerId = mint(world, Slot::ROOT);
    let entity = world.spawn((id, server)).id();
    world.mark(entity);
    McpServerView::seen(world, id)
}

/// Changes a server, all fields or none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpdateMcpServer {
    /// Its name.
    pub name: String,
    /// What.
    pub fields: McpServerFields,
}

command!(write "update_mcp_server" UpdateMcpServer => McpServerView, Root, |it, world| Answer::stored(update(world, it)));

fn update(world: &mut World, UpdateMcpServer { name, fields }: UpdateMcpServer) -> Result<McpServerView, Refusal> {
    let missing = || Refusal::not_found("MCP server", &name);
    let (id, entity) = named(world, &name).ok_or_else(missing)?;
    let Some(mut server) = world.get::<McpServer>(entity).cloned() else { return Err(missing()) };
    let before = server.bytes();
    fields.put_into(&mut server, world.resource::<Now>().0)?;
    QUOTA.admit(world.resource::<McpServers>().used, 0, server.bytes().saturating_sub(before))?;
    note(world, audit_kinds::MCP_SERVER_UPDATED, &server);
    change(world, entity, |it: &mut McpServer| *it = server);
    McpServerView::seen(world, id)
}

/// Removes a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemoveMcpServer(
    /// Its name.
    pub String,
);

command!(write "remove_mcp_server" RemoveMcpServer => (), Root, |it, world| Answer::stored(remove(world, &it.0)));

fn remove(world: &mut World, name: &str) -> Result<(), Refusal> {
    let (_, entity) = named(world, name).ok_or_else(|| Refusal::not_found("MCP server", name))?;
    if let Some(server) = world.get::<McpServer>(entity).cloned() {
        note(world, audit_kinds::MCP_SERVER_REMOVED, &server);
    }
    world.despawn(entity);
    pins::forget(world, name);
    Ok(())
}

/// Puts what became of a server on the audit trail: what it is and the names of its values.
fn note(world: &mut World, kind: AuditKind, server: &McpServer) {
    let names = |values: &[SealedValue]| values.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    let reached = server.transport.as_deref().and_then(|text| serde_json::from_str::<McpTransport>(text).ok());
    let details = json!({
        "name": server.name, "template_id": server.template_id, "transport": reached.as_ref().map(McpTransport::kind),
        "target": reached.as_ref().map(McpTransport::target), "env": names(&server.env), "headers": names(&server.headers),
        "sampling": server.sampling.rule,
    });
    world.audit(kind, None, details);
}
