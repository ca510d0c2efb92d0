//! `[[bindings]]` and `[broadcast]`: which agents answer which chats, beside those of the channels themselves; and
//! `[sidecar_channels.channel_overrides]`.

use std::collections::BTreeMap;

use agentsvc_api::channel::shape::RouteRule;
use agentsvc_components::channel::rules::ChatBinding;
use agentsvc_components::manifest::channel::ChannelOverrides;
use agentsvc_systems::manifest::channels::{OVERRIDE_KEYS, overrides_of};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::config::ConfiguredChannels;
use super::role_mapping::RoleMapping;
use crate::kernel::config::table;

/// Bindings, and chats of `[broadcast]`, that a configuration may have.
pub(crate) const ROUTES_MAX: usize = 500;
/// Agents of one chat of `[broadcast]`.
const BROADCAST_AGENTS_MAX: usize = 8;
/// Bytes of a name or an id.
const WORD_BYTES_MAX: usize = 512;

/// One of `[[bindings]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// Name or id of the agent.
    pub agent: Box<str>,
    /// What a message must have.
    pub match_rule: MatchRule,
}

/// What a message must have. All that is named must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MatchRule {
    /// The channel, or its type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Box<str>>,
    /// The account of the bot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<Box<str>>,
    /// The conversation, or the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_id: Option<Box<str>>,
    /// The server that the conversation is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guild_id: Option<Box<str>>,
    /// Roles of the sender on the platform, of which one is enough.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Box<str>>,
}

table! {
    /// `[broadcast]`: conversations that several agents answer.
    pub struct Broadcast {
        /// How they answer. parallel: each by itself, at once.
        strategy: Box<str> = "parallel".into() => one_of(strategies).protected(),
        /// Agents by conversation, as `<channel>:<conversation>`, `*` for any channel; they answer beside the agent of the channel.
        routes: Routes => object(routes).example("{ \"ops:123456\" = [\"assistant\", \"critic\"] }").protected(),
    }
}

/// The agents of conversations.
pub type Routes = BTreeMap<Box<str>, Vec<Box<str>>>;

/// What the configuration in force says of routes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfiguredRoutes {
    /// `[[bindings]]`.
    pub bindings: Vec<Binding>,
    /// `[broadcast]`.
    pub broadcast: Broadcast,
    /// `[channel_role_mapping]`.
    pub roles: BTreeMap<Box<str>, RoleMapping>,
}

fn strategies() -> Vec<&'static str> {
    vec!["parallel"]
}

impl Binding {
    /// As the world knows it.
    pub(super) fn rule(&self) -> ChatBinding {
        let MatchRule { channel, account_id, peer_id, guild_id, roles } = self.match_rule.clone();
        ChatBinding { agent: self.agent.clone(), channel, account_id, peer_id, guild_id, roles }
    }

    /// Can it match in this channel?
    fn concerns(&self, name: &str, channel_type: &str) -> bool {
        self.match_rule.channel.as_deref().is_none_or(|channel| channel == name || channel == channel_type)
    }

    fn shown(&self) -> RouteRule {
        let rule = self.rule();
        let optional = [
            ("channel", &rule.channel),
            ("account_id", &rule.account_id),
            ("peer_id", &rule.peer_id),
            ("guild_id", &rule.guild_id),
        ];
        let named = optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.as_ref()?.to_string())));
        let roles = (!rule.roles.is_empty()).then(|| ("roles".to_owned(), rule.roles.join(", ")));
        RouteRule {
            kind: "binding",
            agent: rule.agent.to_string(),
            match_rule: named.chain(roles).collect(),
            weight: rule.weight(),
        }
    }
}

impl ConfiguredRoutes {
    /// The bindings of one channel.
    pub(super) fn bindings_of(&self, name: &str, channel_type: &str) -> Vec<ChatBinding> {
        self.bindings.iter().filter(|binding| binding.concerns(name, channel_type)).map(Binding::rule).collect()
    }

    /// The conversations of one channel that several agents answer.
    pub(super) fn broadcast_of(&self, name: &str) -> Vec<(Box<str>, Vec<Box<str>>)> {
        let here = self.broadcast.routes.iter().filter_map(|(place, agents)| {
            let (channel, chat) = place.split_once(':')?;
            (channel == "*" || channel == name).then(|| (chat.into(), agents.clone()))
        });
        here.collect()
    }

    /// All rules in force that choose an agent, the strongest first.
    pub(super) fn shown(&self, channels: &ConfiguredChannels) -> Vec<RouteRule> {
        let with_agent = channels.0.iter().filter(|(_, channel)| !channel.agent().is_empty());
        let of_channels = with_agent.map(|(name, channel)| RouteRule {
            kind: "channel",
            agent: channel.agent().to_owned(),
            match_rule: BTreeMap::from([("channel".to_owned(), name.to_string())]),
            weight: 1,
        });
        let of_chats = self.broadcast.routes.iter().flat_map(|(place, agents)| {
            let (channel, chat) = place.split_once(':').unwrap_or(("*", place));
            let named = [("channel".to_owned(), channel.to_owned()), ("peer_id".to_owned(), chat.to_owned())];
            let rule = RouteRule { kind: "broadcast", match_rule: named.into(), ..RouteRule::default() };
            agents.iter().map(|agent| RouteRule { agent: agent.to_string(), ..rule.clone() }).collect::<Vec<_>>()
        });
        let bindings = self.bindings.iter().map(Binding::shown);
        let mut all: Vec<RouteRule> = bindings.chain(of_channels).collect();
        all.sort_by_key(|rule| std::cmp::Reverse(rule.weight));
        all.extend(of_chats);
        all
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= WORD_BYTES_MAX && !text.chars().any(char::is_control)
}

/// Reads one of `[[bindings]]`.
pub(crate) fn binding(object: Map<String, Value>) -> Result<Binding, String> {
    let read = serde_json::from_value::<Binding>(Value::Object(object)).map_err(|error| error.to_string())?;
    let rule = &read.match_rule;
    let optional = [&rule.channel, &rule.account_id, &rule.peer_id, &rule.guild_id];
    let words = optional.into_iter().flatten().chain(&rule.roles);
    if !is_word(&read.agent) || !words.clone().all(|word| is_word(word)) {
        Err(format!("`agent` and all of `match_rule` must have 1 to {WORD_BYTES_MAX} bytes without control characters"))
    } else if words.count() == 0 {
        Err("`match_rule` must name channel, account_id, peer_id, guild_id or roles".to_owned())
    } else {
        Ok(read)
    }
}

fn routes(object: Map<String, Value>) -> Result<Routes, String> {
    if object.len() > ROUTES_MAX {
        return Err(format!("must have at most {ROUTES_MAX} conversations"));
    }
    let read = object.into_iter().map(|(place, agents)| {
        if !is_word(&place) || place.split_once(':').is_none_or(|(channel, chat)| channel.is_empty() || chat.is_empty())
        {
            return Err("must have keys such as \"ops:123456\": a channel and a conversation".to_owned());
        }
        let agents: Vec<Box<str>> =
            serde_json::from_value(agents).map_err(|_| format!("{place} must be a list of agents"))?;
        let fits = (1..=BROADCAST_AGENTS_MAX).contains(&agents.len()) && agents.iter().all(|agent| is_word(agent));
        if fits {
            Ok((place.into(), agents))
        } else {
            Err(format!("{place} must have 1 to {BROADCAST_AGENTS_MAX} agents"))
        }
    });
    read.collect()
}

/// Reads `[sidecar_channels.channel_overrides]`.
pub(crate) fn overrides(object: Map<String, Value>) -> Result<ChannelOverrides, String> {
    if let Some(key) = object.keys().find(|key| !OVERRIDE_KEYS.contains(&key.as_str())) {
        return Err(format!("{key}: unknown key; there are {}", OVERRIDE_KEYS.join(", ")));
    }
    let text = toml::to_string(&object).map_err(|error| error.to_string())?;
    overrides_of(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Document};

    const ROUTED: &str = "[[sidecar_channels]]\nname = \"tg\"\nchannel_type = \"telegram\"\ncommand = \"x\"\nagent = \"a\"\n\
        [sidecar_channels.channel_overrides]\nmodel = \"p/m\"\nusage_footer = \"cost\"\n\
        [[bindings]]\nagent = \"b\"\nmatch_rule = { channel = \"telegram\", peer_id = \"7\" }\n\
        [[bindings]]\nagent = \"c\"\n[bindings.match_rule]\nchannel = \"slack\"\n\
        [broadcast]\nroutes = { \"tg:!room:server\" = [\"a\", \"b\"], \"mx:1\" = [\"a\"] }\n";

    #[test]
    fn routes_of_the_documentation_are_read_and_reach_their_channel() {
        let config = Config::parse(ROUTED, "c".as_ref()).unwrap().config;
        let routes = ConfiguredRoutes {
            bindings: config.bindings.clone(),
            broadcast: config.broadcast.clone(),
            ..ConfiguredRoutes::default()
        };
        let of_tg = routes.bindings_of("tg", "telegram");
        assert_eq!((of_tg.len(), &*of_tg[0].agent, of_tg[0].peer_id.as_deref()), (1, "b", Some("7")));
        assert_eq!(routes.broadcast_of("tg"), [("!room:server".into(), vec!["a".into(), "b".into()])]);
        let shown = routes.shown(&ConfiguredChannels(config.sidecar_channels.clone()));
        let kinds: Vec<_> = shown.iter().map(|rule| (rule.kind, &*rule.agent, rule.weight)).collect();
        let expected = [
            ("binding", "b", 9),
            ("binding", "c", 1),
            ("channel", "a", 1),
            ("broadcast", "a", 0),
            ("broadcast", "a", 0),
            ("broadcast", "b", 0),
        ];
        assert_eq!(kinds, expected);
        let overrides = &config.sidecar_channels["tg"].channel_overrides;
        assert_eq!(overrides.model.as_deref(), Some("p/m"));
    }

    #[test]
    fn mistakes_in_routes_are_named() {
        for (text, said) in [
            ("[[bindings]]\nagent = \"a\"\n", "match_rule"),
            ("[[bindings]]\nagent = \"a\"\nmatch_rule = {}\n", "must name channel"),
            ("[[bindings]]\nagent = \"a\"\nmatch_rule = { pear_id = \"1\" }\n", "unknown field `pear_id`"),
            ("bindings = 1\n", "a list of tables"),
            ("[broadcast]\nroutes = { x = [\"a\"] }\n", "a channel and a conversation"),
            ("[broadcast]\nroutes = { \"a:x\" = [] }\n", "1 to 8 agents"),
            ("[broadcast]\nstrategy = \"random\"\n", "must be one of `parallel`"),
            (
                "[[sidecar_channels]]\nname = \"a\"\ncommand = \"x\"\nchannel_overrides = { modle = \"x\" }\n",
                "modle: unknown key",
            ),
            (
                "[[sidecar_channels]]\nname = \"a\"\ncommand = \"x\"\nchannel_overrides = { usage_footer = \"x\" }\n",
                "usage_footer: expected one of off",
            ),
        ] {
            let error = Config::parse(text, "c".as_ref()).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
