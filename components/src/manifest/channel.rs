//! How an agent, or an instance of a channel, answers in chats: the table `[channel_overrides]`. A key that is left out leaves
//! the word to what stands behind it: the agent's table before that of the instance, and that before the default.

use serde::{Deserialize, Serialize};

use crate::kernel::words::enum_words;

enum_words! {
    /// Who is answered in a chat of two.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum DmPolicy [ALL, as_str, parse, Word] {
        /// Everyone.
        Respond = "respond",
        /// Paired chats and users of the configuration.
        AllowedOnly = "allowed_only",
        /// No one.
        Ignore = "ignore",
    }
}

enum_words! {
    /// Which messages of a group are answered.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum GroupPolicy [ALL, as_str, parse, Word] {
        /// All.
        All = "all",
        /// Those that mention the bot or an agent, or that a trigger pattern matches.
        MentionOnly = "mention_only",
        /// Commands.
        CommandsOnly = "commands_only",
        /// None.
        Ignore = "ignore",
    }
}

enum_words! {
    /// When a chat shows that an answer is being written.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TypingMode [ALL, as_str, parse] {
        /// From the message on.
        #[default]
        Instant = "instant",
        /// From the first text of the answer on.
        Message = "message",
        /// While the model thinks.
        Thinking = "thinking",
        /// Never.
        Never = "never",
    }
}

enum_words! {
    /// How an answer names the agent that wrote it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum AgentPrefix [ALL, as_str, parse] {
        /// Not at all.
        #[default]
        Off = "off",
        /// `[name] text`
        Bracket = "bracket",
        /// `**[name]** text`
        BoldBracket = "bold_bracket",
    }
}

enum_words! {
    /// What stands below an answer about what it took.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum UsageFooter [ALL, as_str, parse] {
        /// Nothing.
        #[default]
        Off = "off",
        /// Tokens.
        Tokens = "tokens",
        /// Dollars.
        Cost = "cost",
        /// Both.
        Full = "full",
    }
}

enum_words! {
    /// How agents write answers. Adapters turn Markdown into what their platform has.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum OutputFormat [ALL, as_str, parse] {
        /// Markdown.
        #[default]
        Markdown = "markdown",
        /// Markdown too: the adapter makes HTML of it.
        TelegramHtml = "telegram_html",
        /// Markdown too: the adapter makes Slack's form of it.
        SlackMrkdwn = "slack_mrkdwn",
        /// Without Markdown: the agent is told so.
        PlainText = "plain_text",
    }
}

enum_words! {
    /// Do people choose an agent with the first word of a message, such as `scout, what is new?`
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum AutoRoute [ALL, as_str, parse] {
        /// No.
        #[default]
        Off = "off",
        /// Yes, for this message.
        ExplicitOnly = "explicit_only",
        /// Yes, and the agent keeps the conversation for a while, in chats of two as well.
        StickyTtl = "sticky_ttl",
        /// The same, and the agent whose name, tags and description fit a message well is chosen without being named.
        StickyHeuristic = "sticky_heuristic",
    }
}

impl AutoRoute {
    /// Does the agent that answered keep the conversation?
    #[must_use]
    pub const fn is_sticky(self) -> bool {
        matches!(self, Self::StickyTtl | Self::StickyHeuristic)
    }
}

/// A table in which every key can be left out.
macro_rules! overrides {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* $key:ident: $type:ty,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $name {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $key: Option<$type>,)+
        }

        impl $name {
            /// What holds, key by key: this, and where it says nothing, `behind`.
            #[must_use]
            pub fn over(&self, behind: &Self) -> Self {
                Self { $($key: self.$key.clone().or_else(|| behind.$key.clone())),+ }
            }
        }
    };
}

overrides! {
    /// `[channel_overrides]`. `None` says nothing.
    pub struct ChannelOverrides {
        /// The model that answers instead of the agent's: `provider/model`, or an alias.
        model: Box<str>,
        /// What stands below an answer about what it took.
        usage_footer: UsageFooter,
        /// How answers are written.
        output_format: OutputFormat,
        /// Do people choose an agent with the first word of a message?
        auto_route: AutoRoute,
        /// Minutes that an agent keeps a conversation where `auto_route` is sticky. Default: as ownership says.
        auto_route_ttl_minutes: u32,
        /// Points, of 10, from which on an agent fits a message. Default: 6.
        auto_route_confidence_threshold: u32,
        /// Points that the agent that keeps the conversation has ahead of others. Default: 4.
        auto_route_sticky_bonus: u32,
        /// Messages in a row that must fit another agent better until it takes over. Default: 2.
        auto_route_divergence_count: u32,
        /// May the agent stay silent in groups where it is not addressed? It is asked to, in the call that answers.
        reply_precheck: bool,
        /// A model that is asked first whether such a message deserves an answer, with `reply_precheck`: `provider/model`, or an alias.
        reply_precheck_model: Box<str>,
        /// Does the sign of a message that was answered go away? Only of adapters that can take it away.
        clear_done_reaction: bool,
        /// Added behind the system text of the agent.
        system_prompt: Box<str>,
        /// Who is answered in a chat of two. Without it: everyone where the adapter has an allow list of its own, else
        /// `allowed_only`.
        dm_policy: DmPolicy,
        /// Which messages of a group are answered. Without it: `mention_only` where there are trigger patterns, else all.
        group_policy: GroupPolicy,
        /// Regular expressions; a message of a group that one matches counts as a mention.
        group_trigger_patterns: Vec<Box<str>>,
        /// Messages of an instance that are answered in a minute; 0 is without bound.
        rate_limit_per_minute: u32,
        /// Messages of one sender in a chat that are answered in a minute; 0 is without bound.
        rate_limit_per_user: u32,
        /// Has each thread a conversation of its own?
        threading: bool,
        /// Milliseconds without a further message of the sender before a message is answered.
        message_debounce_ms: u32,
        /// Milliseconds that a message waits for further ones at most. Default: 30,000.
        message_debounce_max_ms: u32,
        /// Messages that are joined at most. Default: 64.
        message_debounce_max_buffer: u32,
        /// Is a command a text like any other?
        disable_commands: bool,
        /// Only these commands.
        allowed_commands: Vec<Box<str>>,
        /// Not these commands.
        blocked_commands: Vec<Box<str>>,
        /// Does the agent that answered last keep the conversation for a while? Default: true.
        thread_ownership_enabled: bool,
        /// Seconds that it keeps it. Default: 600.
        conversation_ownership_ttl_seconds: u32,
        /// In chats of two, too? Default: false.
        conversation_ownership_include_dms: bool,
        /// Answers to other bots without a message of a person between them. Default: 5.
        bot_replies_max: u32,
        /// How an answer names its agent.
        prefix_agent_name: AgentPrefix,
        /// When the chat shows that an answer is being written.
        typing_mode: TypingMode,
    }
}

impl ChannelOverrides {
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
