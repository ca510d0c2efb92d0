//! Channels as the API shows and changes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::channel::service::{ChannelChange, ChannelError, ChannelTest, Channels, TestEnd};
use agentsvc_api::channel::shape::{
    ChannelField, ChannelRow, ChannelSchema, Configured, LogLine, PairingPolicy, QrState, QrStatus, RegistryEntry,
    Reloaded, RouteRule,
};
use agentsvc_api::http::blocking::spawn_blocking;
use agentsvc_api::http::timestamp::Moment;
use agentsvc_components::channel::send::{SendContent, SendState};
use agentsvc_components::manifest::channel::DmPolicy;
use agentsvc_components::{Refusal, RefusalKind};
use agentsvc_systems::channel::{SendBy, SendTo, SendToChat, SendView};
use agentsvc_systems::kernel::entities::Get;
use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep, timeout};

use super::config::{CHANNELS_MAX, ConfiguredChannels, SidecarChannel};
use super::definition::Definition;
use super::describe::{Field, Schema};
use super::entry::{self, EntryChange};
use super::gallery;
use super::instance::Instance;
use super::registry::{Changed, Registry};
use super::routing::ConfiguredRoutes;
use super::rules;
use super::status::{Qr, State};
use super::values::checked;
use super::wire::event::QrState as Wire;
use crate::kernel::disk;
use crate::kernel::settings::ReadConfig;

/// How long a test waits for the outcome of its message, and how often it looks.
const TEST_WAIT: Duration = Duration::from_secs(15);
const TEST_POLL: Duration = Duration::from_millis(100);
/// How long a request waits for a QR code.
const QR_WAIT: Duration = Duration::from_secs(20);
/// What a test says.
const TEST_TEXT: &str = "This is a test message of agentsvc.";

impl Registry {
    fn found(&self, name: &str) -> Result<Arc<Instance>, ChannelError> {
        self.instance(name).ok_or_else(|| ChannelError::NotFound(name.to_owned()))
    }

    fn row(&self, instance: &Instance, of_type: usize) -> ChannelRow {
        let definition = &instance.definition;
        let schema = self.described.known(definition);
        let status = instance.status.lock();
        let fields = schema.as_ref().map(|schema| schema.fields.as_slice()).unwrap_or_default();
        let is_set = |field: &&Field| definition.value(&field.key).is_some();
        let missing: Vec<&str> = fields
            .iter()
            .filter(|field| field.required && !is_set(field))
            .map(|field| if field.label.is_empty() { field.key.as_str() } else { field.label.as_str() })
            .collect();
        let channel_type = definition.config.channel_type(instance.name()).to_owned();
        let display_name = schema.as_ref().map(|schema| schema.display_name.clone()).filter(|name| !name.is_empty());
        let mut steps: Vec<String> = missing.iter().map(|label| format!("Set {label}.")).collect();
        if status.qr.as_ref().is_some_and(|qr| qr.code.is_some() && qr.state == Wire::Pending) {
            steps.push("Scan the QR code.".to_owned());
        }
        let agent = definition.config.agent();
        if agent.is_empty() {
            steps.push("Choose the agent that answers.".to_owned());
        }
        let state = match status.state {
            State::Starting => "starting",
            State::Started if status.traffic => "active",
            State::Started => "started",
            State::Restarting => "restarting",
            State::Failed => "failed",
            State::Stopped => "stopped",
        };
        ChannelRow {
            name: instance.name().to_owned(),
            display_name: display_name.unwrap_or_else(|| channel_type.clone()),
            channel_type,
            adapter: definition.adapter(),
            enabled: true,
            configured: missing.is_empty(),
            has_token: fields.iter().filter(|field| field.is_secret()).any(|field| is_set(&field))
                || (fields.is_empty() && definition.environment.keys().any(|key| is_token(key))),
            agent: (!agent.is_empty()).then(|| agent.to_owned()),
            instance_count: of_type,
            supervised: definition.config.restart,
            state,
            connected: status.traffic && status.state == State::Started,
            started_at: status.started_at.map(Moment),
            ready_at: status.ready_at.map(Moment),
            next_restart_at: status.next_restart_at.map(Moment),
            restarts: status.restarts,
            last_message_at: status.last_message_at.map(Moment),
            messages_received: status.received,
            messages_sent: status.sent,
            messages_refused: status.refused,
            messages_unknown: status.unknown,
            last_error: status.last_error.as_ref().map(|(_, text)| text.clone()),
            last_error_at: status.last_error.as_ref().map(|(at, _)| Moment(*at)),
            capabilities: status.ready.capabilities.clone(),
            account_id: status.ready.account_id.clone(),
            sdk_version: schema.and_then(|schema| schema.sdk_version.clone()),
            protocol_version: status.ready.protocol_version,
            warnings: warnings(&definition.config, &status),
            setup_steps: steps,
        }
    }

    fn rows(&self) -> Vec<ChannelRow> {
        let all = self.instances();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for instance in &all {
            *counts.entry(instance.definition.config.channel_type(instance.name())).or_default() += 1;
        }
        let count = |instance: &Instance| counts[instance.definition.config.channel_type(instance.name())];
        all.iter().map(|instance| self.row(instance, count(instance))).collect()
    }

    /// The channel of an adapter that need not be configured.
    fn adapter(&self, name: &str, adapter: &str) -> Definition {
        let sdk = self.instances().into_iter().find(|instance| instance.definition.adapter().is_some());
        let command = sdk.map_or_else(|| "python3".into(), |instance| instance.definition.config.command.clone());
        let args = vec!["-m".into(), format!("librefang.sidecar.adapters.{adapter}").into()];
        self.definition(name, &Arc::new(SidecarChannel { command, args, ..SidecarChannel::default() }))
    }

    async fn schema_of(&self, definition: &Definition) -> Result<Arc<Schema>, ChannelError> {
        self.described.ask(definition, &self.commands).await.map_err(ChannelError::Schema)
    }

    /// Changes the text of the file and puts it in force. Blocks on the disk.
    fn write(&self, change: impl FnOnce(&str) -> Result<String, String>) -> Result<(), ChannelError> {
        let path = self.home.join("config.toml");
        let before = disk::there(disk::read_text(&path)).map_err(|error| ChannelError::Failed(error.to_string()))?;
        let before = before.unwrap_or_default();
        let after = change(&before).map_err(ChannelError::Configuration)?;
        if after == before {
            return Ok(());
        }
        (self.settings.get::<ReadConfig>().data_dir)(&after).map_err(ChannelError::Configuration)?;
        disk::replace(&path, after.as_bytes()).map_err(|error| ChannelError::Failed(error.to_string()))?;
        (self.reload)().map_err(ChannelError::Configuration)
    }

    async fn change(self: Arc<Self>, change: ChannelChange) -> Result<Configured, ChannelError> {
        let known = self.instance(&change.name);
        let definition = match (&known, &change.adapter) {
            (Some(known), _) => known.definition.clone(),
            (None, Some(_)) if self.instances().len() >= CHANNELS_MAX => return Err(ChannelError::Full(CHANNELS_MAX)),
            (None, Some(adapter)) => self.adapter(&change.name, adapter),
            (None, None) => return Err(ChannelError::NotFound(change.name)),
        };
        if let (Some(adapter), Some(_)) = (&change.adapter, &known)
            && definition.adapter().as_ref() != Some(adapter)
        {
            return Err(ChannelError::BadField(
                "adapter".to_owned(),
                "adapter: the channel runs another one".to_owned(),
            ));
        }
        let values = if change.values.is_empty() && change.token.is_none() && known.is_some() {
            BTreeMap::new()
        } else {
            let schema = self.schema_of(&definition).await?;
            checked(&schema, &definition, &change)?
        };
        let created = known.is_none();
        let name = change.name.clone();
        let of = Arc::clone(&self);
        let shadowed_secrets = spawn_blocking(move || of.store(&definition, created, change, values))
            .await
            .map_err(|_| ChannelError::Failed("the values could not be stored".to_owned()))??;
        // Secrets are no part of the configuration.
        let Changed { started, .. } = self.apply().await;
        let done = if created { "adapter started" } else { "adapter restarted" };
        let is_running = started.contains(&name) || created;
        Ok(Configured {
            status: "saved",
            name,
            created,
            hot_actions_applied: is_running.then(|| done.to_owned()).into_iter().collect(),
            restart_required: false,
            shadowed_secrets,
        })
    }

    /// Stores the values; the secrets that something else shadows. Blocks on the disk.
    fn store(
        &self,
        definition: &Definition,
        created: bool,
        change: ChannelChange,
        values: BTreeMap<String, (bool, Option<String>)>,
    ) -> Result<Vec<String>, ChannelError> {
        let of = |secret: bool| -> Vec<(String, Option<String>)> {
            let meant = values.iter().filter(|(_, (is_secret, _))| *is_secret == secret);
            meant.map(|(key, (_, value))| (key.clone(), value.clone())).collect()
        };
        let (secrets, env) = (of(true), of(false));
        let config = &definition.config;
        let program =
            created.then(|| (config.command.to_string(), config.args.iter().map(ToString::to_string).collect()));
        if !secrets.is_empty() {
            self.secrets.change(&definition.name, &secrets).map_err(|error| ChannelError::Failed(error.to_string()))?;
        }
        let entry = EntryChange { program, env, agent: change.agent };
        self.write(|text| match created || !entry.env.is_empty() || entry.agent.is_some() {
            true => entry::changed(text, &definition.name, &entry),
            false => Ok(text.to_owned()),
        })?;
        let shadowed = |key: &String| config.env.0.contains_key(key.as_str());
        Ok(secrets.into_iter().filter(|(_, value)| value.is_some()).map(|(key, _)| key).filter(shadowed).collect())
    }

    async fn try_out(self: Arc<Self>, test: ChannelTest) -> Result<TestEnd, ChannelError> {
        let instance = self.found(&test.name)?;
        let status = instance.status.lock().state;
        if !matches!(status, State::Started | State::Starting) {
            let why = instance.status.lock().last_error.as_ref().map(|(_, text)| text.clone()).unwrap_or_default();
            return Err(ChannelError::NotRunning(format!("the adapter of {} is not running: {why}", test.name)));
        }
        let chat = test.recipient.or_else(|| Some(instance.definition.config.default_conversation.to_string()));
        let Some(chat) = chat.filter(|chat| !chat.is_empty()) else {
            let text = "recipient: required, because the channel has no `default_conversation`";
            return Err(ChannelError::BadField("recipient".to_owned(), text.to_owned()));
        };
        let to = SendTo::Chat { instance: test.name.into(), chat: Some(chat.as_str().into()), thread: None };
        let what = SendContent { text: test.text.unwrap_or_else(|| TEST_TEXT.to_owned()), content: None };
        let sent = self.api.bridge.ask(SendToChat { to, what, by: SendBy::Operator }).await.map_err(refused)?;
        let deadline = Instant::now() + TEST_WAIT;
        let mut view = sent;
        while view.send.state == SendState::Queued && Instant::now() < deadline {
            sleep(TEST_POLL).await;
            view = self.api.bridge.ask(Get::<SendView>(view.id)).await.map_err(refused)?;
        }
        Ok(TestEnd {
            send: view.id.0,
            recipient: chat,
            status: view.send.state.as_str(),
            reason: view.send.reason.map(Into::into),
        })
    }

    async fn begin_qr(self: Arc<Self>, name: String) -> Result<QrState, ChannelError> {
        let instance = self.found(&name)?;
        let waiting = |instance: &Instance| {
            let status = instance.status.lock();
            status.qr.clone().filter(|qr| qr.code.is_some() && matches!(qr.state, Wire::Pending | Wire::Scanning))
        };
        if let Some(qr) = waiting(&instance) {
            return Ok(shown_qr(&qr));
        }
        let mut changes = instance.changes();
        instance.restart();
        let shown = async {
            loop {
                if changes.changed().await.is_err() {
                    return None;
                }
                if let Some(qr) = waiting(&instance) {
                    return Some(shown_qr(&qr));
                }
                if instance.status.lock().state == State::Failed {
                    return None;
                }
            }
        };
        match timeout(QR_WAIT, shown).await {
            Ok(Some(qr)) => Ok(qr),
            Ok(None) => Err(ChannelError::NotRunning(format!("the adapter of {name} ended"))),
            Err(_) if instance.status.lock().state == State::Started => {
                Err(ChannelError::WithoutQr(format!("the adapter of {name} shows no QR code")))
            }
            Err(_) => Err(ChannelError::Timeout(format!("the adapter of {name} showed no QR code in time"))),
        }
    }
}

fn refused(refusal: Refusal) -> ChannelError {
    match refusal.kind {
        RefusalKind::Busy => ChannelError::NotRunning(refusal.message.to_string()),
        _ => ChannelError::Failed(refusal.message.to_string()),
    }
}

fn is_token(key: &str) -> bool {
    ["TOKEN", "SECRET", "PASSWORD"].iter().any(|word| key.contains(word))
}

fn warnings(config: &SidecarChannel, status: &super::status::Status) -> Vec<String> {
    let mut warnings = Vec::new();
    if config.dm_policy.is_none() {
        warnings.push("Without `dm_policy` or an allow list, only paired chats are answered.".to_owned());
    }
    if status.ready_at.is_some() && status.ready.protocol_version.is_none() {
        warnings.push("The SDK of the adapter is old: it names no version of the protocol.".to_owned());
    }
    if status.dropped > 0 {
        warnings.push(format!("{} messages were dropped because too many waited.", status.dropped));
    }
    if status.broken > 0 {
        warnings.push(format!("The adapter wrote {} lines that are no events.", status.broken));
    }
    warnings
}

fn shown_qr(qr: &Qr) -> QrState {
    QrState {
        status: match qr.state {
            Wire::Pending => QrStatus::Pending,
            Wire::Scanning => QrStatus::Scanned,
            Wire::Confirmed => QrStatus::Authenticated,
            Wire::Expired => QrStatus::Expired,
            Wire::Failed => QrStatus::Failed,
        },
        qr_code: qr.code.clone(),
        qr_url: qr.url.clone(),
        message: qr.message.clone(),
        expires_at: qr.expires_at.clone(),
        updated_at: Moment(qr.updated_at),
    }
}

impl Channels for Registry {
    fn list(&self) -> Vec<ChannelRow> {
        self.rows()
    }

    fn get(&self, name: &str) -> Option<ChannelRow> {
        self.rows().into_iter().find(|row| row.name == name)
    }

    fn known_fields(&self, name: &str) -> Option<Vec<ChannelField>> {
        let definition = self.instance(name)?.definition.clone();
        let schema = self.described.known(&definition)?;
        Some(schema.shown(&|key| definition.value(key).map(|value| value.expose().to_owned())).fields)
    }

    fn describe(self: Arc<Self>, name: String) -> BoxFuture<'static, Result<ChannelSchema, ChannelError>> {
        Box::pin(async move {
            let definition = self.found(&name)?.definition.clone();
            let schema = self.schema_of(&definition).await?;
            Ok(schema.shown(&|key| definition.value(key).map(|value| value.expose().to_owned())))
        })
    }

    fn describe_adapter(self: Arc<Self>, adapter: String) -> BoxFuture<'static, Result<ChannelSchema, ChannelError>> {
        Box::pin(async move {
            let schema = self.schema_of(&self.adapter(&adapter, &adapter)).await?;
            Ok(schema.shown(&|_| None))
        })
    }

    fn registry(&self) -> Result<Vec<RegistryEntry>, String> {
        let instances = self.instances();
        let adapters = instances.iter().filter_map(|it| Some((it.definition.adapter()?, it.name().to_owned())));
        gallery::entries(&self.home.join("channels"), &adapters.collect::<Vec<_>>())
    }

    fn configure(self: Arc<Self>, change: ChannelChange) -> BoxFuture<'static, Result<Configured, ChannelError>> {
        Box::pin(self.change(change))
    }

    fn remove(self: Arc<Self>, name: String) -> BoxFuture<'static, Result<(), ChannelError>> {
        Box::pin(async move {
            self.found(&name)?;
            let of = Arc::clone(&self);
            let removed = spawn_blocking(move || {
                of.write(|text| entry::removed(text, &name))?;
                of.secrets.forget(&name).map_err(|error| ChannelError::Failed(error.to_string()))
            });
            removed.await.map_err(|_| ChannelError::Failed("the channel could not be removed".to_owned()))??;
            self.apply().await;
            Ok(())
        })
    }

    fn reload(self: Arc<Self>) -> BoxFuture<'static, Result<Reloaded, ChannelError>> {
        Box::pin(async move {
            let of = Arc::clone(&self);
            let reloaded = spawn_blocking(move || (of.reload)()).await;
            reloaded
                .map_err(|_| ChannelError::Failed("the configuration could not be read".to_owned()))?
                .map_err(ChannelError::Configuration)?;
            let Changed { mut started, stopped } = self.apply().await;
            // One that was given up gets another chance.
            for instance in self.instances() {
                if instance.status.lock().state == State::Failed {
                    instance.restart();
                    started.push(instance.name().to_owned());
                }
            }
            Ok(Reloaded { status: "reloaded", started, stopped, total: self.instances().len() })
        })
    }

    fn test(self: Arc<Self>, test: ChannelTest) -> BoxFuture<'static, Result<TestEnd, ChannelError>> {
        Box::pin(self.try_out(test))
    }

    fn qr(&self, name: &str) -> Result<Option<QrState>, ChannelError> {
        let instance = self.found(name)?;
        let status = instance.status.lock();
        if matches!(status.state, State::Failed | State::Stopped) {
            return Err(ChannelError::NotRunning(format!("the adapter of {name} is not running")));
        }
        Ok(status.qr.as_ref().map(shown_qr))
    }

    fn start_qr(self: Arc<Self>, name: String) -> BoxFuture<'static, Result<QrState, ChannelError>> {
        Box::pin(self.begin_qr(name))
    }

    fn logs(&self, name: &str) -> Result<Vec<LogLine>, ChannelError> {
        Ok(self.found(name)?.status.lock().log.shown())
    }

    fn rules(&self) -> Vec<RouteRule> {
        self.settings.get::<ConfiguredRoutes>().shown(&self.settings.get::<ConfiguredChannels>())
    }

    fn policies(&self) -> Vec<PairingPolicy> {
        let policy = |rules: agentsvc_components::channel::rules::InstanceRules| {
            let open = if rules.has_allow_list { DmPolicy::Respond } else { DmPolicy::AllowedOnly };
            PairingPolicy {
                dm_policy: rules.overrides.dm_policy.unwrap_or(open).as_str(),
                group_policy: rules.overrides.group_policy().as_str(),
                channel: rules.name.into(),
            }
        };
        rules::of(self).into_iter().map(policy).collect()
    }
}
