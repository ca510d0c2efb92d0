//! `channels`, `[channel_overrides]` and `[metadata.routing]`: where and how an agent answers in chats, and what leads there.

use agentsvc_components::manifest::Routing;
use agentsvc_components::manifest::channel::{
    AgentPrefix, AutoRoute, ChannelOverrides, DmPolicy, GroupPolicy, OutputFormat, TypingMode, UsageFooter,
};

use super::error::Error;
use super::read::Table;
use crate::kernel::pattern_bounds::{BoundedPatterns, is_pattern};

agentsvc_components::limits! {
    pub const ALL;
    /// Trigger patterns of one table of channel overrides. More: 400.
    pub const TRIGGER_PATTERNS_MAX: usize = 32;
    /// Bytes of the `system_prompt` of channel overrides. Longer: 400.
    pub const CHANNEL_PROMPT_BYTES_MAX: usize = 16 << 10;
    /// Bytes of the `model` of channel overrides. Longer: 400.
    pub const CHANNEL_MODEL_BYTES_MAX: usize = 256;
    /// Commands that channel overrides allow or block. More: 400.
    pub const CHANNEL_COMMANDS_MAX: usize = 64;
    /// Aliases, or weak aliases, of an agent. More: 400.
    pub const ROUTING_ALIASES_MAX: usize = 64;
    /// Bytes of one of them. Longer: 400.
    pub const ROUTING_ALIAS_BYTES_MAX: usize = 100;
}

/// Reads `[metadata.routing]`. Other metadata is the author's own, whatever it is.
pub(super) fn routing(root: &Table<'_>) -> Result<Routing, Error> {
    let list = |table: &Table<'_>, key: &str| {
        let all = table.list(key)?;
        if all.len() > ROUTING_ALIASES_MAX {
            return Err(table.wrong(key, format!("more than {ROUTING_ALIASES_MAX} aliases")));
        }
        match all.iter().any(|alias| alias.len() > ROUTING_ALIAS_BYTES_MAX) {
            true => Err(table.wrong(key, format!("an alias is longer than {ROUTING_ALIAS_BYTES_MAX} bytes"))),
            false => Ok(all),
        }
    };
    let read = |table: &Table<'_>| {
        Ok(Routing { aliases: list(table, "aliases")?, weak_aliases: list(table, "weak_aliases")? })
    };
    if !root.has_table("metadata") {
        return Ok(Routing::default());
    }
    root.table("metadata", |metadata| match metadata.has_table("routing") {
        true => metadata.table("routing", read),
        false => Ok(Routing::default()),
    })
}

/// Reads `[channel_overrides]`.
pub(super) fn overrides(table: &Table<'_>) -> Result<Box<ChannelOverrides>, Error> {
    fn word<T>(table: &Table<'_>, key: &str, parse: fn(&str) -> Option<T>, words: &[&str]) -> Result<Option<T>, Error> {
        let unknown = || table.wrong(key, format!("expected one of {}", words.join(", ")));
        table.string(key)?.map(|word| parse(word).ok_or_else(unknown)).transpose()
    }
    let list = |key: &str| match table.entries.contains_key(key) {
        true => table.list(key).map(Some),
        false => Ok(None),
    };
    let read = ChannelOverrides {
        model: table.string("model")?.map(Box::from),
        usage_footer: word(table, "usage_footer", UsageFooter::parse, &UsageFooter::ALL.map(UsageFooter::as_str))?,
        output_format: word(table, "output_format", OutputFormat::parse, &OutputFormat::ALL.map(OutputFormat::as_str))?,
        auto_route: word(table, "auto_route", AutoRoute::parse, &AutoRoute::ALL.map(AutoRoute::as_str))?,
        auto_route_ttl_minutes: table.whole_number("auto_route_ttl_minutes")?,
        auto_route_confidence_threshold: table.whole_number("auto_route_confidence_threshold")?,
        auto_route_sticky_bonus: table.whole_number("auto_route_sticky_bonus")?,
        auto_route_divergence_count: table.whole_number("auto_route_divergence_count")?,
        reply_precheck: table.boolean("reply_precheck")?,
        reply_precheck_model: table.string("reply_precheck_model")?.map(Box::from),
        clear_done_reaction: table.boolean("clear_done_reaction")?,
        system_prompt: table.string("system_prompt")?.map(Box::from),
        dm_policy: word(table, "dm_policy", DmPolicy::parse, &DmPolicy::ALL.map(DmPolicy::as_str))?,
        group_policy: word(table, "group_policy", GroupPolicy::parse, &GroupPolicy::ALL.map(GroupPolicy::as_str))?,
        group_trigger_patterns: list("group_trigger_patterns")?,
        rate_limit_per_minute: table.whole_number("rate_limit_per_minute")?,
        rate_limit_per_user: table.whole_number("rate_limit_per_user")?,
        threading: table.boolean("threading")?,
        message_debounce_ms: table.whole_number("message_debounce_ms")?,
        message_debounce_max_ms: table.whole_number("message_debounce_max_ms")?,
        message_debounce_max_buffer: table.whole_number("message_debounce_max_buffer")?,
        disable_commands: table.boolean("disable_commands")?,
        allowed_commands: list("allowed_commands")?,
        blocked_commands: list("blocked_commands")?,
        thread_ownership_enabled: table.boolean("thread_ownership_enabled")?,
        conversation_ownership_ttl_seconds: table.whole_number("conversation_ownership_ttl_seconds")?,
        conversation_ownership_include_dms: table.boolean("conversation_ownership_include_dms")?,
        bot_replies_max: table.whole_number("bot_replies_max")?,
        prefix_agent_name: word(
            table,
            "prefix_agent_name",
            AgentPrefix::parse,
            &AgentPrefix::ALL.map(AgentPrefix::as_str),
        )?,
        typing_mode: word(table, "typing_mode", TypingMode::parse, &TypingMode::ALL.map(TypingMode::as_str))?,
    };
    match check_overrides(&read) {
        Ok(()) => Ok(Box::new(read)),
        Err((key, message)) => Err(table.wrong(key, message)),
    }
}

/// The keys of `[channel_overrides]`.
pub const OVERRIDE_KEYS: &[&str] = &[
    "model",
    "usage_footer",
    "output_format",
    "auto_route",
    "auto_route_ttl_minutes",
    "auto_route_confidence_threshold",
    "auto_route_sticky_bonus",
    "auto_route_divergence_count",
    "reply_precheck",
    "reply_precheck_model",
    "clear_done_reaction",
    "system_prompt",
    "dm_policy",
    "group_policy",
    "group_trigger_patterns",
    "rate_limit_per_minute",
    "rate_limit_per_user",
    "threading",
    "message_debounce_ms",
    "message_debounce_max_ms",
    "message_debounce_max_buffer",
    "disable_commands",
    "allowed_commands",
    "blocked_commands",
    "thread_ownership_enabled",
    "conversation_ownership_ttl_seconds",
    "conversation_ownership_include_dms",
    "bot_replies_max",
    "prefix_agent_name",
    "typing_mode",
];

/// Reads the keys of `[channel_overrides]` that stand in a text of TOML of their own, as those of an instance do.
///
/// # Errors
/// The key that cannot be used, and why.
pub fn overrides_of(text: &str) -> Result<ChannelOverrides, String> {
    let named = |error: Error| match error.key {
        Some(key) => format!("{}: {}", key.trim_start_matches("channel_overrides."), error.message),
        None => error.message,
    };
    let parsed = super::parse(&format!("name = 'x'\n[channel_overrides]\n{text}")).map_err(named)?;
    Ok(*parsed.manifest.channel_overrides)
}

/// What channel overrides must obey wherever they stand: the key that is wrong, and why.
///
/// # Errors
/// The key, and one sentence.
pub fn check_overrides(of: &ChannelOverrides) -> Result<(), (&'static str, String)> {
    let patterns = of.group_trigger_patterns.as_deref().filter(|patterns| !patterns.is_empty());
    patterns.map(trigger_patterns).transpose().map_err(|message| ("group_trigger_patterns", message))?;
    if of.system_prompt.as_ref().is_some_and(|text| text.len() > CHANNEL_PROMPT_BYTES_MAX) {
        return Err(("system_prompt", format!("longer than {CHANNEL_PROMPT_BYTES_MAX} bytes")));
    }
    let is_name =
        |name: &str| !name.is_empty() && name.len() <= CHANNEL_MODEL_BYTES_MAX && !name.chars().any(char::is_control);
    for (key, model) in [("model", &of.model), ("reply_precheck_model", &of.reply_precheck_model)] {
        if model.as_deref().is_some_and(|name| !is_name(name)) {
            let text = format!("expected `provider/model` or an alias, of at most {CHANNEL_MODEL_BYTES_MAX} bytes");
            return Err((key, text));
        }
    }
    for (key, list) in [("allowed_commands", &of.allowed_commands), ("blocked_commands", &of.blocked_commands)] {
        if list.as_ref().is_some_and(|list| list.len() > CHANNEL_COMMANDS_MAX) {
            return Err((key, format!("more than {CHANNEL_COMMANDS_MAX} commands")));
        }
    }
    Ok(())
}

/// Are these regular expressions, however large, as former releases took them?
#[must_use]
pub fn are_patterns(patterns: &[Box<str>]) -> bool {
    patterns.iter().all(|pattern| !pattern.chars().any(char::is_control) && is_pattern(pattern))
}

/// Reads the trigger patterns of one table. Upper and lower case are the same.
///
/// # Errors
/// One sentence that says what cannot be used.
pub fn trigger_patterns(patterns: &[Box<str>]) -> Result<BoundedPatterns, String> {
    if patterns.len() > TRIGGER_PATTERNS_MAX {
        return Err(format!("more than {TRIGGER_PATTERNS_MAX} patterns"));
    }
    if patterns.iter().any(|pattern| pattern.chars().any(char::is_control)) {
        // In a TOML string with double quotes `\b` is a backspace.
        return Err("a pattern has a control character; write it in single quotes, such as '\\bhelp\\b'".to_owned());
    }
    BoundedPatterns::read(patterns, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::parse;

    fn read(keys: &str) -> Result<ChannelOverrides, String> {
        let parsed = parse(&format!("name = 'x'\n[channel_overrides]\n{keys}\n"));
        parsed.map(|parsed| *parsed.manifest.channel_overrides).map_err(|error| error.to_string())
    }

    #[test]
    fn each_key_is_read_and_what_is_wrong_is_named() {
        let all =
            read("dm_policy = 'ignore'\ngroup_policy = 'mention_only'\nrate_limit_per_user = 3\nthreading = true");
        let all = all.unwrap();
        assert_eq!((all.dm_policy, all.group_policy), (Some(DmPolicy::Ignore), Some(GroupPolicy::MentionOnly)));
        assert_eq!((all.rate_limit_per_user, all.threading, all.disable_commands), (Some(3), Some(true), None));
        assert_eq!(read("allowed_commands = []").unwrap().allowed_commands, Some(Vec::new()));
        for (keys, key) in [
            ("dm_policy = 'open'", "dm_policy"),
            ("threading = 1", "threading"),
            ("group_trigger_patterns = ['(']", "group_trigger_patterns"),
            ("group_trigger_patterns = [\"\\bhelp\"]", "group_trigger_patterns"),
            ("group_trigger_patterns = ['a[ab]{900}[^\\x00-\\x7f]']", "group_trigger_patterns"),
            ("group_trigger_patterns = ['\\w{4}N']", "group_trigger_patterns"),
        ] {
            let error = read(keys).unwrap_err();
            assert!(error.contains(key), "{error}");
        }
        let routes = "auto_route = 'sticky_heuristic'\nauto_route_ttl_minutes = 5\nauto_route_confidence_threshold = 3\n\
                      auto_route_sticky_bonus = 0\nauto_route_divergence_count = 1";
        let read_routes = read(routes).unwrap();
        assert_eq!(read_routes.auto_route, Some(AutoRoute::StickyHeuristic));
        let numbers = [
            read_routes.auto_route_ttl_minutes,
            read_routes.auto_route_confidence_threshold,
            read_routes.auto_route_sticky_bonus,
            read_routes.auto_route_divergence_count,
        ];
        assert_eq!(numbers, [5, 3, 0, 1].map(Some));
        assert!(read("auto_route_ttl_minutes = 'x'").unwrap_err().contains("auto_route_ttl_minutes"));
        let six = "model = 'p/m'\nusage_footer = 'full'\noutput_format = 'plain_text'\nauto_route = 'sticky_ttl'\n\
                   reply_precheck = true\nreply_precheck_model = 'p/s'\nclear_done_reaction = true";
        let read = read(six).unwrap();
        assert_eq!((read.model.as_deref(), read.usage_footer), (Some("p/m"), Some(UsageFooter::Full)));
        assert_eq!((read.output_format, read.auto_route), (Some(OutputFormat::PlainText), Some(AutoRoute::StickyTtl)));
        assert_eq!(read.reply_precheck_model.as_deref(), Some("p/s"));
        assert!(overrides_of("reply_precheck_model = ''").unwrap_err().starts_with("reply_precheck_model: expected"));
        assert_eq!((read.reply_precheck, read.clear_done_reaction), (Some(true), Some(true)));
        assert_eq!(overrides_of(six).unwrap(), read);
        assert!(overrides_of("usage_footer = 'all'").unwrap_err().starts_with("usage_footer: expected one of off"));
        assert!(overrides_of("model = ''").unwrap_err().starts_with("model"));
        assert_eq!(parse("name = 'x'\nchannels = ['slack']").unwrap().manifest.channels, ["slack".into()]);
    }
}
