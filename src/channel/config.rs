//! `[[sidecar_channels]]`: adapters of chat platforms, one entry and one process each. `[channels]`: what holds for all.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use agentsvc_components::enum_words;
use agentsvc_components::manifest::channel::{ChannelOverrides, DmPolicy, GroupPolicy, OutputFormat};
use agentsvc_systems::channel::limits::CHANNEL_RECIPIENTS_MAX;
use agentsvc_systems::config::STRANGERS_IDLE_DAYS_DEFAULT;
use agentsvc_systems::manifest::channels::{are_patterns, trigger_patterns};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::routing::overrides;
use crate::kernel::config::text::directory;
use crate::kernel::config::{MASK, Reader, Secret, Word, table, word};
use crate::kernel::vault;

/// Channels that a configuration may have.
pub(crate) const CHANNELS_MAX: usize = 200;
/// Variables of one channel.
const VARIABLES_MAX: usize = 128;
/// Bytes of one variable.
const VARIABLE_BYTES_MAX: usize = 64 << 10;

table! {
    /// `[[sidecar_channels]]`.
    pub struct SidecarChannel {
        /// Program of the adapter: an absolute path, or a name to search in `[exec_policy] path`. Empty:
        /// `librefang-sidecar-<name>`, searched beside the daemon, in `{home}/bin` and in that path.
        command: Box<str> => text(program).example("python3").protected(),
        /// Its arguments.
        args: Vec<Box<str>> => list(argument).example("[\"-m\", \"librefang.sidecar.adapters.ntfy\"]").protected(),
        /// Its environment variables. Values are never shown.
        env: Variables => object(variables).example("{ NTFY_TOPIC = \"my-topic\" }").protected(),
        /// Variables of the daemon, or keys of `secrets.env` without two underscores, that the adapter gets. Never the key of
        /// the vault.
        env_passthrough: Vec<Box<str>> => list(passed_variable).example("[\"NTFY_TOKEN\"]").protected(),
        /// Kind of the platform, such as "telegram". Default: the channel's name.
        channel_type: Box<str> => text(plain_name).example("ntfy").protected(),
        /// Name of the agent that answers.
        agent: Box<str> => text(agent_name).example("assistant").protected(),
        /// The same; `agent` wins.
        default_agent: Box<str> => text(agent_name).example("assistant").protected(),
        /// Ids of people on the platform who are told of approvals of the channel's agents, and may decide them there.
        approval_recipients: Vec<Box<str>> => list(recipient).example("[\"123456\"]").protected(),
        /// Agents that people can choose with `/agent`.
        available_agents: Vec<Box<str>> => list(agent_name).example("[\"assistant\"]").protected(),
        /// Start the adapter again when it ends.
        restart: bool = true => flag().example("false").protected(),
        /// Milliseconds before the first restart; each further one waits twice as long.
        restart_initial_backoff_ms: u64 = 500 => integer(1..=600_000).example("1000").protected(),
        /// Maximum milliseconds between two restarts.
        restart_max_backoff_ms: u64 = 30_000 => integer(1..=3_600_000).example("60000").protected(),
        /// Failed runs in a row after which the adapter stays down until the channel is reloaded.
        restart_max_retries: u32 = 10 => integer(0..=1_000).example("5").protected(),
        /// Seconds that a run must last for the count of failed runs to start again.
        restart_reset_after_secs: u64 = 60 => integer(1..=86_400).example("120").protected(),
        /// Seconds in which the adapter must say that it is ready.
        ready_timeout_secs: u64 = 30 => integer(1..=600).example("60").protected(),
        /// Seconds that a stop waits for the adapter to end by itself.
        shutdown_grace_secs: u64 = 5 => integer(0..=60).example("10").protected(),
        /// Messages of the adapter that may wait for the daemon.
        message_buffer: usize = 256 => integer(1..=10_000).example("1000").protected(),
        /// What happens when so many wait: block (the adapter waits) or drop_newest.
        #[serde(serialize_with = "word")]
        overflow: Overflow => choice(Overflow::WORDS).example("drop_newest").protected(),
        /// Chat commands that people may use: allow, disable, allowlist or blocklist.
        #[serde(serialize_with = "word")]
        command_policy: CommandPolicy => choice(CommandPolicy::WORDS).example("disable").protected(),
        /// Commands of `allowlist`; none if empty.
        allowed_commands: Vec<Box<str>> => list(plain_name).example("[\"help\", \"new\"]").protected(),
        /// Commands of `blocklist`.
        blocked_commands: Vec<Box<str>> => list(plain_name).example("[\"model\"]").protected(),
        /// Milliseconds in which messages of one person are joined into one.
        message_coalesce_window_ms: u64 => integer(0..=60_000).example("500").protected(),
        /// Conversation that messages go to when none is named.
        default_conversation: Box<str> => text(any_text).example("123456").protected(),
        /// Who is answered in direct chats: respond, allowed_only or ignore. Default: allowed_only, with pairing.
        dm_policy: Option<DmPolicy> => choice(DmPolicy::WORDS).example("respond").protected(),
        /// What is answered in groups: all, mention_only, commands_only or ignore. Default: all, or mention_only when
        /// `group_trigger_patterns` is set.
        group_policy: Option<GroupPolicy> => choice(GroupPolicy::WORDS).example("mention_only").protected(),
        /// Regular expressions; a group message that matches one counts as a mention.
        group_trigger_patterns: Vec<Box<str>> => list(pattern).example("[\"(?i)hey bot\"]").protected(),
        /// Messages per minute that the channel answers; 0 is unlimited.
        rate_limit_per_minute: u32 => integer(0..=100_000).example("60").protected(),
        /// The same per person in a conversation.
        rate_limit_per_user: u32 => integer(0..=100_000).example("10").protected(),
        /// Give each thread a session of its own.
        threading: bool => flag().example("true").protected(),
        /// Format that the platform needs: markdown, telegram_html, slack_mrkdwn or plain_text. Adapters convert
        /// themselves.
        output_format: Box<str> => one_of(output_formats).example("markdown").protected(),
        /// Milliseconds to wait for further messages of the same person.
        message_debounce_ms: u64 => integer(0..=60_000).example("500").protected(),
        /// More of how it answers, as in `[channel_overrides]` of a manifest. The keys above win, and those of the manifest of
        /// the agent that answers over both.
        channel_overrides: ChannelOverrides => object(overrides).example("{ usage_footer = \"tokens\" }").protected(),
        /// Directories that the adapter can read and run programs from, beside the system's.
        readable_paths: Vec<PathBuf> => list(directory).example("[\"/opt/tools\"]").protected(),
        /// Allow it to use the network.
        network: bool = true => flag().example("false").protected(),
    }
}

table! {
    /// `[channels]`: what holds for all channels.
    #[check(Self::note_directory)]
    pub struct ChannelsConfig {
        /// Other daemons keep files that messages bring in this directory. Has no effect: they are kept as uploads.
        file_download_dir: Box<str> => text(any_text).without_effect(),
        /// Maximum bytes of a file that a message brings.
        file_download_max_bytes: u64 = 50 << 20 => integer(0..=1 << 30).writable(),
        /// Maximum bytes of a file of the workspace that agents send; never more than 16 MiB.
        file_upload_max_bytes: u64 = 50 << 20 => integer(0..=1 << 30).writable(),
        /// Days after which a conversation in which nothing happens is deleted with its sessions, if only strangers wrote in it; 0
        /// keeps it.
        strangers_idle_days: u32 = STRANGERS_IDLE_DAYS_DEFAULT => integer(0..=3_650).writable(),
        /// Conversations that agents can send to beside that of the turn, as `<channel>:<conversation>`, `*` for any part.
        allow_send_to: Vec<Box<str>> => list(any_text).example("[\"ops:*\"]").protected(),
    }
}

impl ChannelsConfig {
    fn note_directory(&self, reader: &mut Reader<'_, '_>) {
        if !self.file_download_dir.is_empty() {
            let message = "file_download_dir has no effect: files that messages bring are kept as uploads";
            reader.warning("file_download_dir", message.to_owned());
        }
    }
}

/// The channels of the configuration in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfiguredChannels(pub BTreeMap<Box<str>, Arc<SidecarChannel>>);

enum_words! {
    /// What happens when too many messages wait.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Overflow [Word] {
        /// `block`
        #[default]
        Block = "block",
        /// `drop_newest`
        DropNewest = "drop_newest",
    }
}

enum_words! {
    /// Which chat commands people may use.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum CommandPolicy [Word] {
        /// `allow`
        #[default]
        Allow = "allow",
        /// `disable`
        Disable = "disable",
        /// `allowlist`
        Allowlist = "allowlist",
        /// `blocklist`
        Blocklist = "blocklist",
    }
}

/// Variables of an adapter; shown by their names only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variables(pub BTreeMap<Box<str>, Secret>);

impl Serialize for Variables {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.keys().map(|name| (name, MASK)))
    }
}

impl SidecarChannel {
    /// The agent that answers; empty where none is named.
    pub(crate) fn agent(&self) -> &str {
        if self.agent.is_empty() { &self.default_agent } else { &self.agent }
    }

    /// The kind of the platform.
    pub(crate) fn channel_type<'a>(&'a self, name: &'a str) -> &'a str {
        if self.channel_type.is_empty() { name } else { &self.channel_type }
    }
}

/// The prefix of a channel's own variables in `secrets.env`.
pub(crate) fn prefix(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

/// Notes problems of channels beside their values.
pub(crate) fn note_channels(channels: &BTreeMap<Box<str>, Arc<SidecarChannel>>, reader: &mut Reader<'_, '_>) {
    if channels.len() > CHANNELS_MAX {
        reader.problem("sidecar_channels", format!("must be at most {CHANNELS_MAX} channels"));
    }
    let mut prefixes: BTreeMap<String, &str> = BTreeMap::new();
    for (name, channel) in channels {
        let path = ["sidecar_channels", name];
        if !is_channel_name(name) {
            let message = "the name must have 1 to 64 letters, digits, `-`, `_` or `.`, a letter or digit first, and must \
                           not be a word of a path (registry, sidecar, reload, pairings, bindings)";
            reader.problem_at(&path, message.to_owned());
        } else if let Some(other) = prefixes.insert(prefix(name), name) {
            let prefix = prefix(name);
            reader.problem_at(&path, format!("its secrets begin with {prefix}__ as those of {other}; rename one"));
        }
        for (key, list, most) in [
            ("approval_recipients", channel.approval_recipients.len(), CHANNEL_RECIPIENTS_MAX),
            ("env_passthrough", channel.env_passthrough.len(), VARIABLES_MAX),
        ] {
            if list > most {
                reader.problem_at(&path, format!("`{key}` must have at most {most} items"));
            }
        }
        let patterns = &channel.group_trigger_patterns;
        if let Err(why) = trigger_patterns(patterns) {
            if are_patterns(patterns) {
                // A former release took more and larger ones.
                reader.warning_at(&path, format!("`group_trigger_patterns` match nothing: {why}"));
            } else {
                reader.problem_at(&path, format!("`group_trigger_patterns`: {why}"));
            }
        }
    }
}

/// What is said of a table such as `[channels.telegram]`, as others have it: nothing reads it, and this takes its place.
pub(crate) fn former_channel(name: &str) -> String {
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).take(64).collect();
    format!(
        "table [channels.{name}] has no effect: channels are adapters. Write instead:\n[[sidecar_channels]]\nname = \"{name}\"\ncommand = \"python3\"\n\
         args = [\"-m\", \"librefang.sidecar.adapters.{name}\"]\nagent = \"assistant\"\n\
         and its values into secrets.env, or set it up with `agentsvc channel add {name}`"
    )
}

/// Whether a channel may have this name.
pub(super) fn is_channel_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=64).contains(&name.len())
        && name.chars().all(fits)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !["registry", "sidecar", "reload", "pairings", "bindings"].contains(&name)
}

fn program(text: &str) -> Result<Box<str>, String> {
    if text.contains('\0') || (text.contains('/') && !text.starts_with('/')) {
        Err("must be an absolute path or the name of a program".to_owned())
    } else {
        Ok(text.into())
    }
}

fn argument(text: &str) -> Result<Box<str>, String> {
    if text.contains('\0') { Err("must not contain the character NUL".to_owned()) } else { Ok(text.into()) }
}

pub(super) fn any_text(text: &str) -> Result<Box<str>, String> {
    if text.chars().any(char::is_control) {
        Err("must not contain control characters".to_owned())
    } else {
        Ok(text.into())
    }
}

pub(super) fn agent_name(text: &str) -> Result<Box<str>, String> {
    any_text(text)
}

fn plain_name(text: &str) -> Result<Box<str>, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.len() <= 64 && text.chars().all(fits) {
        Ok(text.into())
    } else {
        Err("must have at most 64 letters, digits, `-`, `_` or `.`".to_owned())
    }
}

fn output_formats() -> Vec<&'static str> {
    OutputFormat::ALL.map(OutputFormat::as_str).to_vec()
}

/// A regular expression, of which TOML may read `"\b"` as a backspace. Those of a channel are read together.
fn pattern(text: &str) -> Result<Box<str>, String> {
    any_text(text).map_err(|why| format!("{why}; write '\\b' in single quotes, or \"\\\\b\""))
}

fn variables(object: Map<String, Value>) -> Result<Variables, String> {
    if object.len() > VARIABLES_MAX {
        return Err(format!("must have at most {VARIABLES_MAX} variables"));
    }
    let read = object.into_iter().map(|(name, value)| {
        check_variable(&name)?;
        let value = match value {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            _ => return Err(format!("{name} must be a string, a number, true or false")),
        };
        check_value(&value).map_err(|why| format!("{name} {why}"))?;
        Ok((name.into(), Secret::new(value)))
    });
    read.collect::<Result<_, String>>().map(Variables)
}

fn recipient(id: &str) -> Result<Box<str>, String> {
    if id.is_empty() || id.len() > 512 || id.chars().any(char::is_control) {
        Err("must be the id of a person on the platform".to_owned())
    } else {
        Ok(id.into())
    }
}

fn passed_variable(name: &str) -> Result<Box<str>, String> {
    match check_variable(name) {
        Ok(()) => Ok(name.into()),
        Err(_) if name == vault::VARIABLE => Err(format!("must not have {name}, the key of the vault")),
        Err(_) => Err("must be the name of an environment variable".to_owned()),
    }
}

/// Is it the name of a variable that an adapter may have?
pub(crate) fn check_variable(name: &str) -> Result<(), String> {
    let is_valid = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) || !is_valid {
        Err("must have names of environment variables as keys".to_owned())
    } else if name == vault::VARIABLE {
        Err(format!("must not have {name}, the key of the vault"))
    } else {
        Ok(())
    }
}

/// Is it a value that a variable can have?
pub(crate) fn check_value(value: &str) -> Result<(), String> {
    if value == MASK || value.contains('\0') || value.len() > VARIABLE_BYTES_MAX {
        Err(format!("must not be \"{MASK}\", contain the character NUL or be longer than {VARIABLE_BYTES_MAX} bytes"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Document};

    fn wrong(text: &str) -> String {
        Config::parse(text, "c".as_ref()).unwrap_err().to_string()
    }

    #[test]
    fn an_entry_of_the_documentation_is_read_and_values_stay_hidden() {
        let text = "[[sidecar_channels]]\nname = \"ntfy\"\ncommand = \"python3\"\nargs = [\"-m\", \"x\"]\nagent = \"a\"\n\
                    restart_max_retries = 3\noverflow = \"drop_newest\"\ndm_policy = \"respond\"\n\
                    [sidecar_channels.env]\nNTFY_TOKEN = \"hunter2\"\nPORT = 8461\n\
                    [[sidecar_channels]]\nname = \"bot.1\"\ncommand = \"/opt/bot\"\n";
        let config = Config::parse(text, "c".as_ref()).unwrap().config;
        let ntfy = &config.sidecar_channels["ntfy"];
        assert_eq!((ntfy.restart_max_retries, ntfy.overflow), (3, Overflow::DropNewest));
        assert_eq!((ntfy.dm_policy, ntfy.group_policy), (Some(DmPolicy::Respond), None));
        assert_eq!(ntfy.env.0["NTFY_TOKEN"].expose(), "hunter2");
        assert_eq!(ntfy.env.0["PORT"].expose(), "8461");
        let shown = serde_json::to_string(&config.sidecar_channels).unwrap();
        assert!(!shown.contains("hunter2") && shown.contains("NTFY_TOKEN"), "{shown}");
        let plain = &config.sidecar_channels["bot.1"];
        assert_eq!((plain.channel_type("bot.1"), plain.ready_timeout_secs, plain.message_buffer), ("bot.1", 30, 256));
    }

    #[test]
    fn mistakes_are_named() {
        let entry = |rest: &str| wrong(&format!("[[sidecar_channels]]\nname = \"a\"\ncommand = \"x\"\n{rest}\n"));
        assert!(wrong("[[sidecar_channels]]\ncommand = \"x\"\n").contains("each entry needs `name`"));
        assert!(entry("comand = 1").contains("sidecar_channels.a.comand: unknown key"));
        assert!(entry("overflow = \"drop\"").contains("must be one of `block`, `drop_newest`"));
        assert!(entry("group_trigger_patterns = [\"\\b\"]").contains("control character"));
        assert!(entry("group_trigger_patterns = [\"(\"]").contains("not a regular expression"));
        let large =
            "[[sidecar_channels]]\nname = \"large\"\ncommand = \"x\"\ngroup_trigger_patterns = ['(?:x{99}){99}']\n";
        let warned = Config::parse(large, "c".as_ref()).unwrap().warnings[0].to_string();
        assert!(warned.contains("match nothing") && warned.contains("16384 bytes"), "{warned}");
        assert!(entry("env = { \"A B\" = \"1\" }").contains("names of environment variables"));
        assert!(entry("env = { A = [1] }").contains("A must be a string"));
        let said = entry("env = { A = \"***\" }");
        assert!(said.contains("A must not be \"***\""), "{said}");
        let two = "[[sidecar_channels]]\nname = \"bot-1\"\n[[sidecar_channels]]\nname = \"bot.1\"\n";
        assert!(wrong(two).contains("its secrets begin with BOT_1__ as those of bot-1"));
        let old =
            Config::parse("[channels]\nfile_upload_max_bytes = 1\n[channels.telegram]\nx = 1\n", "c".as_ref()).unwrap();
        let said = old.warnings[0].to_string();
        assert!(said.contains("channels.telegram") && said.contains("librefang.sidecar.adapters.telegram"), "{said}");
        assert!(wrong("[channels]\ntelegram = 1\n").contains("unknown key"));
        let peers = "[channels]\nfile_download_dir = \"/var/files\"\nfile_download_max_bytes = 9\n";
        let read = Config::parse(peers, "c".as_ref()).unwrap();
        assert_eq!(read.config.channels.file_download_max_bytes, 9);
        let said = read.warnings[0].to_string();
        assert!(said.contains("file_download_dir") && said.contains("uploads"), "{said}");
        assert!(wrong("[[sidecar_channels]]\nname = \"reload\"\n").contains("the name must have"));
    }
}
