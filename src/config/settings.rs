//! What a configuration says to each domain.

use std::path::Path;

use super::Config;
use crate::channel::config::ConfiguredChannels;
use crate::channel::routing::ConfiguredRoutes;
use crate::channel::web_chat::ConfiguredSites;
use crate::kernel::config::merged;
use crate::kernel::settings::{DataDir, Reach, ReadConfig, Settings};
use crate::mcp::client::config::Configured;
use crate::people::config::ConfiguredUsers;
use crate::tool::DirectRules;

impl Config {
    /// Tells the domains what this configuration says to them.
    pub fn put_in_force(&self, settings: &Settings) {
        let key = self.api_key.is_set().then(|| self.api_key.expose().to_owned());
        settings.set(Reach { listen: Some(self.api_listen), key });
        settings.set(DataDir(self.data_dir.clone()));
        settings.set(ReadConfig {
            data_dir: |text| super::data_dir_of(text).map(DataDir).map_err(|error| error.to_string()),
            merged: |text, present| merged::<Self>(text, present, Path::new("config.toml")),
        });
        settings.set(self.snapshots.clone());
        settings.set(self.backup.clone());
        settings.set(self.security.clone());
        settings.set(self.workspaces.clone());
        settings.set(self.web.search_settings());
        settings.set(DirectRules {
            enabled: self.tool_invoke.enabled,
            allowlist: self.tool_invoke.allowlist.clone(),
            require_approval: self.approval.require_approval.clone(),
        });
        settings.set(self.mcp_server.clone());
        settings.set(Configured(self.mcp_servers.clone()));
        settings.set(self.extensions.clone());
        settings.set(ConfiguredChannels(self.sidecar_channels.clone()));
        settings.set(ConfiguredSites(self.web_chats.clone()));
        settings.set(ConfiguredRoutes {
            bindings: self.bindings.clone(),
            broadcast: self.broadcast.clone(),
            roles: self.channel_role_mapping.clone(),
        });
        settings.set(ConfiguredUsers(self.users.clone()));
        settings.set(self.external_auth.clone());
        settings.set(self.pairing.clone());
        settings.set(self.terminal.clone());
        settings.set(self.channels.clone());
        settings.set(self.auto_reply.clone());
        settings.set(self.exec_policy.clone());
        settings.set(self.a2a.clone());
        settings.set(self.webhook_triggers.clone());
        settings.set(self.inbox.clone());
        settings.set(self.proactive_memory.clone());
        settings.set(self.memory.clone());
        settings.set(self.auto_dream.clone());
        settings.set(self.browser.clone());
        settings.set(self.media.clone());
        settings.set(self.hands.clone());
        settings.set(self.checkpoints.clone());
        settings.set(self.skills.clone());
        settings.set(self.context_engine.clone());
        settings.set(self.clawhub.clone());
        settings.set(self.clawhub_cn.clone());
        settings.set(self.registry.clone());
        settings.set(self.skill_sources.clone());
    }
}
