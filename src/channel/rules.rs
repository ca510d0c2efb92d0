//! What the world is told of channels: the part of the configuration that decides about messages.

use agentsvc_components::channel::rules::InstanceRules;
use agentsvc_components::manifest::channel::{ChannelOverrides, OutputFormat};

use super::auto_reply::AutoReplyConfig;
use super::config::{ChannelsConfig, CommandPolicy, ConfiguredChannels, SidecarChannel};
use super::registry::Registry;
use super::role_mapping;
use super::routing::ConfiguredRoutes;
use super::web_chat::{self, ConfiguredSites};

/// Variables with which adapters let only some people through.
const ALLOW_LISTS: &[&str] = &["ALLOWED_USERS", "_ALLOWED_"];

/// The rules of all channels of the configuration in force.
pub(super) fn of(registry: &Registry) -> Vec<InstanceRules> {
    let configured = registry.settings.get::<ConfiguredChannels>();
    let common = registry.settings.get::<ChannelsConfig>();
    let routes = registry.settings.get::<ConfiguredRoutes>();
    let sites = registry.settings.get::<ConfiguredSites>();
    let auto_reply = registry.settings.get::<AutoReplyConfig>().limits();
    let of_channels = configured.0.iter().map(|(name, channel)| rules(registry, name, channel, (&common, &routes)));
    let of_sites = sites.0.iter().map(|(name, site)| InstanceRules {
        bindings: routes.bindings_of(name, web_chat::TYPE),
        allow_send_to: sendable(name, &common.allow_send_to),
        ..web_chat::rules(name, site)
    });
    of_channels.chain(of_sites).map(|rules| InstanceRules { auto_reply: auto_reply.clone(), ..rules }).collect()
}

fn rules(
    registry: &Registry,
    name: &str,
    channel: &SidecarChannel,
    all: (&ChannelsConfig, &ConfiguredRoutes),
) -> InstanceRules {
    let (common, routes) = all;
    let instance = registry.instance(name);
    let ready = instance.as_ref().map(|instance| instance.status.lock().ready.clone()).unwrap_or_default();
    let has_allow_list = instance.is_some_and(|instance| {
        let set = instance.definition.environment.iter().filter(|(_, value)| !value.expose().trim().is_empty());
        let mut keys = set.map(|(key, _)| key);
        keys.any(|key| ALLOW_LISTS.iter().any(|list| key.contains(list)))
    });
    let maybe = |text: &str| (!text.is_empty()).then(|| Box::from(text));
    InstanceRules {
        name: name.into(),
        channel_type: channel.channel_type(name).into(),
        agent: maybe(channel.agent()),
        available_agents: channel.available_agents.clone(),
        overrides: overrides(channel).over(&channel.channel_overrides),
        bindings: routes.bindings_of(name, channel.channel_type(name)),
        broadcast: routes.broadcast_of(name),
        role_mapping: role_mapping::of(&routes.roles, name, channel.channel_type(name)),
        has_allow_list,
        coalesce_window_ms: u32::try_from(channel.message_coalesce_window_ms).unwrap_or(u32::MAX),
        suppress_errors: ready.suppress_error_responses,
        default_conversation: maybe(&channel.default_conversation),
        allow_send_to: sendable(name, &common.allow_send_to),
        // Only people whom the operator named: the adapter names whom it wants.
        notification_recipients: channel.approval_recipients.clone(),
        ..InstanceRules::default()
    }
}

/// The chats of this channel among `<channel>:<chat>`.
fn sendable(name: &str, all: &[Box<str>]) -> Vec<Box<str>> {
    let of_this = |entry: &str| {
        let (channel, chat) = entry.split_once(':')?;
        (channel == "*" || channel == name).then(|| chat.into())
    };
    all.iter().filter_map(|entry| of_this(entry)).collect()
}

fn overrides(channel: &SidecarChannel) -> ChannelOverrides {
    let number = |value: u32| (value > 0).then_some(value);
    let policy = channel.command_policy;
    ChannelOverrides {
        dm_policy: channel.dm_policy,
        group_policy: channel.group_policy,
        group_trigger_patterns: Some(channel.group_trigger_patterns.clone()).filter(|list| !list.is_empty()),
        rate_limit_per_minute: number(channel.rate_limit_per_minute),
        rate_limit_per_user: number(channel.rate_limit_per_user),
        threading: channel.threading.then_some(true),
        output_format: OutputFormat::parse(&channel.output_format),
        message_debounce_ms: number(u32::try_from(channel.message_debounce_ms).unwrap_or(u32::MAX)),
        disable_commands: (policy == CommandPolicy::Disable).then_some(true),
        allowed_commands: (policy == CommandPolicy::Allowlist).then(|| channel.allowed_commands.clone()),
        blocked_commands: (policy == CommandPolicy::Blocklist).then(|| channel.blocked_commands.clone()),
        ..ChannelOverrides::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_left_out_leave_the_word_to_the_agent() {
        assert_eq!(overrides(&SidecarChannel::default()), ChannelOverrides::default());
        let mut channel = SidecarChannel { command_policy: CommandPolicy::Allowlist, ..SidecarChannel::default() };
        channel.rate_limit_per_user = 3;
        let rules = overrides(&channel);
        assert_eq!((rules.rate_limit_per_user, rules.allowed_commands.as_deref()), (Some(3), Some(&[][..])));
        let all = ["ops:*".into(), "*:7".into(), "other:1".into(), "broken".into()];
        assert_eq!(sendable("ops", &all), ["*".into(), "7".into()]);
    }
}
