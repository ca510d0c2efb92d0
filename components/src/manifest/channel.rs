//! How an agent, or an instance of a channel, answers in chats: the table `[channel_overrides]`. A key that is left out leaves
//! the word to what stands behind it: the agent's table before that of the instance, and that before the default.

use serde::{Deserialize, Serialize};

use crate::kernel::words::enum_words;

/// Who is answered in a chat of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DmPolicy {
    /// Everyone.
    Respond,
    /// Paired chats and users of the configuration.
    AllowedOnly,
    /// No one.
    Ignore,
}

enum_words! { pub DmPolicy [ALL, as_str, parse] {
    Respond = "respond", AllowedOnly = "allowed_only", Ignore = "ignore",
} }

/// Which messages of a group are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupPolicy {
    /// All.
    All,
    /// Those that mention the bot or an agent, or that a trigger pattern matches.
    MentionOnly,
    /// Commands.
    CommandsOnly,
    /// None.
    Ignore,
}

enum_words! { pub GroupPolicy [ALL, as_str, parse] {
    All = "all", MentionOnly = "mention_only", CommandsOnly = "commands_only", Ignore = "ignore",
} }

/// When a chat shows that an answer is being written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TypingMode {
    /// From the message on.
    #[default]
    Instant,
    /// From the first text of the answer on.
    Message,
    /// While the model thinks.
    Thinking,
    /// Never.
    Never,
}

enum_words! { pub TypingMode [ALL, as_str, parse] {
    Instant = "instant", Message = "message", Thinking = "thinking", Never = "never",
} }

/// How an answer names the agent that wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentPrefix {
    /// Not at all.
    #[default]
    Off,
    /// `[name] text`
    Bracket,
    /// `**[name]** text`
    BoldBracket,
}

enum_words! { pub AgentPrefix [ALL, as_str, parse] {
    Off = "off", Bracket = "bracket", BoldBracket = "bold_bracket",
} }

/// What stands below an answer about what it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageFooter {
    /// Nothing.
    #[default]
    Off,
    /// Tokens.
    Tokens,
    /// Dollars.
    Cost,
    /// Both.
    Full,
}

enum_words! { pub UsageFooter [ALL, as_str, parse] {
    Off = "off", Tokens = "tokens", Cost = "cost", Full = "full",
} }

/// How agents write answers. Adapters turn Markdown into what their platform has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// Markdown.
    #[default]
    Markdown,
    /// Markdown too: the adapter makes HTML of it.
    TelegramHtml,
    /// Markdown too: the adapter makes Slack's form of it.
    SlackMrkdwn,
    /// Without Markdown: the agent is told so.
    PlainText,
}

enum_words! { pub OutputFormat [ALL, as_str, parse] {
    Markdown = "markdown", TelegramHtml = "telegram_html", SlackMrkdwn = "slack_mrkdwn", PlainText = "plain_text",
} }

/// Do people choose an agent with the first word of a message, such as `scout, what is new?`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoRoute {
    /// No.
    #[default]
    Off,
    /// Yes, for this message.
    ExplicitOnly,
    /// Yes, and the agent keeps the conversation for a while, in chats of two as well.
    StickyTtl,
    /// The same, and the agent whose name, tags and description fit a message well is chosen without being named.
    StickyHeuristic,
}

enum_words! { pub AutoRoute [ALL, as_str, parse] {
    Off = "off", ExplicitOnly = "explicit_only", StickyTtl = "sticky_ttl",
    StickyHeuristic = "sticky_heuristic",
} }

impl AutoRoute {
    /// Does the agent that answered keep the conversation?
    #[must_use]
    pub const fn is_sticky(self) -> bool {
        matches!(self, Self::StickyTtl | Self::StickyHeuristic)
    }
}

/// `[channel_overrides]`. `None` says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChannelOverrides {
    /// The model that answers instead of the agent's: `provider/model`, or an alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Box<str>>,
    /// What stands below an answer about what it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_footer: Option<UsageFooter>,
    /// How answers are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_format: Option<OutputFormat>,
    /// Do people choose an agent with the first word of a message?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_route: Option<AutoRoute>,
    /// Minutes that an agent keeps a conversation where `auto_route` is sticky. Default: as ownership says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_route_ttl_minutes: Option<u32>,
    /// Points, of 10, from which on an agent fits a message. Default: 6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_route_confidence_threshold: Option<u32>,
    /// Points that the agent that keeps the conversation has ahead of others. Default: 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_route_sticky_bonus: Option<u32>,
    /// Messages in a row that must fit another agent better until it takes over. Default: 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_route_divergence_count: Option<u32>,
    /// May the agent stay silent in groups where it is not addressed? It is asked to, in the call that answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_precheck: Option<bool>,
    /// A model that is asked first whether such a message deserves an answer, with `reply_precheck`: `provider/model`, or an alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_precheck_model: Option<Box<str>>,
    /// Does the sign of a message that was answered go away? Only of adapters that can take it away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clear_done_reaction: Option<bool>,
    /// Added behind the system text of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<Box<str>>,
    /// Who is answered in a chat of two. Without it: everyone where the adapter has an allow list of its own, else
    /// `allowed_only`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dm_policy: Option<DmPolicy>,
    /// Which messages of a group are answered. Without it: `mention_only` where there are trigger patterns, else all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_policy: Option<GroupPolicy>,
    /// Regular expressions; a message of a group that one matches counts as a mention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_trigger_patterns: Option<Vec<Box<str>>>,
    /// Messages of an instance that are answered in a minute; 0 is without bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit_per_minute: Option<u32>,
    /// Messages of one sender in a chat that are answered in a minute; 0 is without bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit_per_user: Option<u32>,
    /// Has each thread a conversation of its own?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threading: Option<bool>,
    /// Milliseconds without a further message of the sender before a message is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_debounce_ms: Option<u32>,
    /// Milliseconds that a message waits for further ones at most. Default: 30,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_debounce_max_ms: Option<u32>,
    /// Messages that are joined at most. Default: 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_debounce_max_buffer: Option<u32>,
    /// Is a command a text like any other?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_commands: Option<bool>,
    /// Only these commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_commands: Option<Vec<Box<str>>>,
    /// Not these commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_commands: Option<Vec<Box<str>>>,
    /// Does the agent that answered last keep the conversation for a while? Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_ownership_enabled: Option<bool>,
    /// Seconds that it keeps it. Default: 600.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_ownership_ttl_seconds: Option<u32>,
    /// In chats of two, too? Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_ownership_include_dms: Option<bool>,
    /// Answers to other bots without a message of a person between them. Default: 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bot_replies_max: Option<u32>,
    /// How an answer names its agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_agent_name: Option<AgentPrefix>,
    /// When the chat shows that an answer is being written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typing_mode: Option<TypingMode>,
}

impl ChannelOverrides {
    /// What holds, key by key: this, and where it says nothing, `behind`.
    #[must_use]
    pub fn over(&self, behind: &Self) -> Self {
        macro_rules! each {
            ($($key:ident),+ $(,)?) => {
                Self { $($key: self.$key.clone().or_else(|| behind.$key.clone())),+ }
            };
        }
        each! {
            model, usage_footer, output_format, auto_route, auto_route_ttl_minutes, auto_route_confidence_threshold, auto_route_sticky_bonus, auto_route_divergence_count, reply_precheck, reply_precheck_model, clear_done_reaction, system_prompt, dm_policy, group_policy, group_trigger_patterns, rate_limit_per_minute, rate_limit_per_user,
            threading, message_debounce_ms, message_debounce_max_ms, message_debounce_max_buffer, disable_commands,
            allowed_commands, blocked_commands, thread_ownership_enabled, conversation_ownership_ttl_seconds,
            conversation_ownership_include_dms, bot_replies_max, prefix_agent_name, typing_mode,
        }
    }

    /// The policy of a group: that of trigger patterns only where none is set.
    #[must_use]
    pub fn group_policy(&self) -> GroupPolicy {
        let has_patterns = self.group_trigger_patterns.as_ref().is_some_and(|patterns| !patterns.is_empty());
        self.group_policy.unwrap_or(if has_patterns { GroupPolicy::MentionOnly } else { GroupPolicy::All })
    }

    /// May a command of this name be carried out?
    #[must_use]
    pub fn allows_command(&self, name: &str) -> bool {
        let names = |list: &[Box<str>]| list.iter().any(|word| word.trim_start_matches('/').eq_ignore_ascii_case(name));
        !self.disable_commands.unwrap_or(false)
            && self.allowed_commands.as_deref().is_none_or(names)
            && !self.blocked_commands.as_deref().is_some_and(names)
    }

    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let list = |words: &Option<Vec<Box<str>>>| words.iter().flatten().map(|word| word.len()).sum::<usize>();
        list(&self.group_trigger_patterns)
            + list(&self.allowed_commands)
            + list(&self.blocked_commands)
            + [&self.system_prompt, &self.model, &self.reply_precheck_model]
                .into_iter()
                .flatten()
                .map(|text| text.len())
                .sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_leaves_the_others_alone() {
        let agent = ChannelOverrides { rate_limit_per_user: Some(3), ..ChannelOverrides::default() };
        let instance = ChannelOverrides {
            group_policy: Some(GroupPolicy::MentionOnly),
            rate_limit_per_user: Some(9),
            ..ChannelOverrides::default()
        };
        let merged = agent.over(&instance);
        assert_eq!((merged.rate_limit_per_user, merged.group_policy()), (Some(3), GroupPolicy::MentionOnly));
    }

    #[test]
    fn trigger_patterns_ask_for_mentions_only_where_no_policy_is_set() {
        let mut rules = ChannelOverrides::default();
        assert_eq!(rules.group_policy(), GroupPolicy::All);
        rules.group_trigger_patterns = Some(vec!["help".into()]);
        assert_eq!(rules.group_policy(), GroupPolicy::MentionOnly);
        rules.group_policy = Some(GroupPolicy::All);
        assert_eq!(rules.group_policy(), GroupPolicy::All);
    }

    #[test]
    fn an_empty_list_of_allowed_commands_allows_none() {
        let allows = |allowed: Option<&[&str]>, blocked: Option<&[&str]>, off| {
            let list = |words: Option<&[&str]>| words.map(|words| words.iter().map(|word| (*word).into()).collect());
            let rules = ChannelOverrides {
                disable_commands: off,
                allowed_commands: list(allowed),
                blocked_commands: list(blocked),
                ..ChannelOverrides::default()
            };
            rules.allows_command("new")
        };
        assert!(allows(None, None, None) && allows(Some(&["/new"]), None, Some(false)));
        assert!(!allows(Some(&[]), None, None) && !allows(Some(&["new"]), Some(&["NEW"]), None));
        assert!(!allows(None, None, Some(true)));
    }
}
