//! `[a2a]`: the agents of this daemon as others reach them over A2A (spec 3, A2A).

use agentsvc_api::a2a::host::Policy;
use agentsvc_components::kernel::limit::NAME_BYTES_MAX;
use agentsvc_systems::config::A2aSettings;
use reqwest::header::HeaderName;
use serde::{Serialize, Serializer};

use crate::kernel::config::table;
use crate::kernel::config::text::{base_url, is_own_variable, variable};
use crate::usage::config::{DOLLARS, micros};

/// Bytes of the texts on the card.
const TEXT_BYTES_MAX: usize = 1_024;
/// Tasks in a minute.
const RATE: std::ops::RangeInclusive<u64> = 1..=1_000_000;

table! {
    /// `[a2a]`.
    pub struct A2a {
        /// Offer agents over the Agent2Agent protocol. Clients need no key.
        enabled: bool => flag().protected(),
        /// Name on the agent card.
        name: Box<str> = "agentsvc".into() => text(line).protected(),
        /// Description on the agent card.
        description: Box<str> = "A daemon that hosts agents.".into() => text(line).protected(),
        /// URL under which clients reach the daemon, such as that of a proxy. Default: the host that a request names.
        public_url: Option<Box<str>> => url(base_url).example("https://agents.example.org").protected(),
        /// Agents that are offered: names or globs.
        agents: Vec<Box<str>> = vec!["*".into()] => list(pattern).protected(),
        /// Agent that answers requests that name none. Default: the only offered agent.
        default_agent: Option<Box<str>> => text(line).example("assistant").protected(),
        /// Tasks per minute of one client: of a key, or of an address without one, 1 to 1000000.
        rate_per_minute: u32 = 30 => integer(RATE).protected(),
        /// Tasks per minute of all clients without a key together, 1 to 1000000.
        total_rate_per_minute: u32 = 120 => integer(RATE).protected(),
        /// Dollars per UTC day for tasks and what they begin, of each client with a key and of all others together; 0 means unlimited.
        daily_limit_usd: f64 = 1.0 => number(DOLLARS).protected(),
        /// Messages per minute to external agents, 1 to 1000.
        external_rate_per_minute: u32 = 60 => integer(1..=1_000).protected(),
        /// Seconds that an external agent can take to respond to a request, 1 to 600.
        external_timeout_secs: u64 = 60 => integer(1..=600).protected(),
        /// Keys of external agents: an origin and the environment variable that has its key, for `Authorization: Bearer`, or
        /// with a header before the variable.
        external_keys: Vec<ExternalKey> => list(external_key)
            .example("[\"https://agents.example.org PARTNER_KEY\", \"https://b.example X-API-Key: OTHER_KEY\"]").protected(),
    }
}

impl A2a {
    /// The same for the world.
    pub fn settings(&self) -> A2aSettings {
        A2aSettings { is_off: !self.enabled, daily_limit: micros(self.daily_limit_usd) }
    }

    /// The same for the API.
    pub fn policy(&self) -> Policy {
        Policy {
            is_enabled: self.enabled,
            name: self.name.clone(),
            description: self.description.clone(),
            public_url: self.public_url.clone(),
            agents: self.agents.clone(),
            default_agent: self.default_agent.clone(),
            rate_per_minute: self.rate_per_minute,
            total_rate_per_minute: self.total_rate_per_minute,
            daily_limit: micros(self.daily_limit_usd),
        }
    }
}

/// Where a key of an external agent is, and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalKey {
    /// Scheme, host and port; requests to any other one do not have the key.
    pub origin: Box<str>,
    /// The header that has the key.
    pub header: Box<str>,
    /// The environment variable of the daemon that has it.
    pub variable: Box<str>,
}

impl Serialize for ExternalKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { origin, header, variable } = self;
        match &**header {
            "Authorization" => serializer.collect_str(&format_args!("{origin} {variable}")),
            header => serializer.collect_str(&format_args!("{origin} {header}: {variable}")),
        }
    }
}

fn external_key(text: &str) -> Result<ExternalKey, String> {
    let wrong = || "must be an origin and a variable, such as \"https://agents.example.org PARTNER_KEY\"".to_owned();
    let (origin, rest) = text.trim().split_once(' ').ok_or_else(wrong)?;
    let (header, name) = match rest.split_once(':') {
        Some((header, name)) => (header.trim(), name.trim()),
        None => ("Authorization", rest.trim()),
    };
    let url = reqwest::Url::parse(&base_url(origin)?).map_err(|_| wrong())?;
    if url.path() != "/" {
        return Err("the origin must be without a path".to_owned());
    }
    if name.is_empty() || is_own_variable(name) || HeaderName::from_bytes(header.as_bytes()).is_err() {
        return Err(wrong());
    }
    let origin = url.origin().ascii_serialization().into();
    Ok(ExternalKey { origin, header: header.into(), variable: variable(name)? })
}

fn line(text: &str) -> Result<Box<str>, String> {
    if text.is_empty() || text.len() > TEXT_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(format!("must be one line of 1 to {TEXT_BYTES_MAX} bytes"));
    }
    Ok(text.into())
}

fn pattern(text: &str) -> Result<Box<str>, String> {
    if text.is_empty() || text.len() > NAME_BYTES_MAX {
        return Err(format!("must be a name or glob of 1 to {NAME_BYTES_MAX} bytes"));
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use agentsvc_components::Micros;

    use super::A2a;
    use crate::kernel::config::read_table;

    #[test]
    fn keys_of_external_agents_name_their_origin_and_variable() {
        let text = "[a2a]\nexternal_keys = [\"https://A.example:443 KEY\", \"http://b.example:81/ X-Key: OTHER\"]\n";
        let read = read_table::<A2a>("a2a", text).unwrap().config;
        let shown = serde_json::to_value(&read.external_keys).unwrap();
        assert_eq!(shown, serde_json::json!(["https://a.example KEY", "http://b.example:81 X-Key: OTHER"]));
    }

    #[test]
    fn it_is_off_and_bounded_unless_the_file_says_otherwise() {
        let read = |text: &str| read_table::<A2a>("a2a", text).map(|loaded| loaded.config.policy());
        let policy = read("").unwrap();
        assert!(!policy.is_enabled && policy.daily_limit == Micros(1_000_000) && policy.rate_per_minute == 30);
        let text = "[a2a]\nenabled = true\nagents = [\"scout\", \"public_*\"]\npublic_url = \"https://a.example/\"\n";
        let policy = read(text).unwrap();
        assert!(policy.is_enabled && policy.agents.len() == 2);
        assert_eq!(policy.public_url.as_deref(), Some("https://a.example"));
        for (text, key) in [
            ("[a2a]\nname = \"\"\n", "a2a.name"),
            ("[a2a]\nagents = [\"\"]\n", "a2a.agents"),
            ("[a2a]\nrate_per_minute = 0\n", "a2a.rate_per_minute"),
            ("[a2a]\npublic_url = \"x\"\n", "a2a.public_url"),
            ("[a2a]\nexternal_timeout_secs = 0\n", "a2a.external_timeout_secs"),
            ("[a2a]\nexternal_rate_per_minute = 0\n", "a2a.external_rate_per_minute"),
            ("[a2a]\nexternal_keys = [\"https://a.example\"]\n", "a2a.external_keys"),
            ("[a2a]\nexternal_keys = [\"https://a.example/x KEY\"]\n", "a2a.external_keys"),
            ("[a2a]\nexternal_keys = [\"a.example KEY\"]\n", "a2a.external_keys"),
            ("[a2a]\nexternal_keys = [\"https://a.example sk-123\"]\n", "a2a.external_keys"),
            ("[a2a]\nexternal_keys = [\"https://a.example AGENTSVC_VAULT_KEY\"]\n", "a2a.external_keys"),
        ] {
            assert!(read(text).unwrap_err().to_string().contains(key), "{text}");
        }
    }
}
