//! `[pairing]`: phones and other devices with API keys of their own, and their notifications.

use std::time::Duration;

use agentsvc_api::pairing::host::PairingPolicy;
use agentsvc_systems::pairing::limits::DEVICES_MAX;
use serde::Serialize;

use crate::kernel::config::text::{base_url, own_variable};
use crate::kernel::config::{Word, table, word};

/// The variable with the token of the application at gotify.
const GOTIFY_TOKEN: &str = "GOTIFY_APP_TOKEN";
/// The variable with the URL of gotify.
const GOTIFY_URL: &str = "GOTIFY_SERVER_URL";
/// Bytes of a topic of ntfy.
const TOPIC_BYTES_MAX: usize = 64;

table! {
    /// `[pairing]`.
    #[check(Self::note)]
    pub struct Pairing {
        /// Let devices be paired.
        enabled: bool => flag().protected(),
        /// Seconds that a code is good, 30 to 3600.
        token_expiry_secs: u32 = 300 => integer(30..=3_600).protected(),
        /// Paired devices at most, 1 to 100.
        max_devices: u32 = 10 => integer(1..=DEVICES_MAX as u64).protected(),
        /// Where devices reach the daemon. Default: the address that the client used that asks for a code.
        public_base_url: Option<Box<str>> => text(base_url).example("https://agents.example.com").protected(),
        /// Service that sends notifications to the devices: none, ntfy or gotify.
        #[serde(serialize_with = "word")]
        push_provider: PushProvider => choice(PushProvider::WORDS).protected(),
        /// Server of ntfy. Private hosts must be in `[web.fetch] ssrf_allowed_hosts`.
        ntfy_url: Box<str> = "https://ntfy.sh".into() => text(base_url).protected(),
        /// Topic of ntfy that the devices subscribe to. On a public server, anyone who knows it can read the notifications.
        ntfy_topic: Option<Box<str>> => text(topic).example("agents-1f2e3d4c5b6a").protected(),
        /// Environment variable that has an access token for ntfy. Default: none is sent.
        ntfy_token_env: Option<Box<str>> => text(own_variable).example("NTFY_TOKEN").protected(),
        /// Server of gotify. Default: the environment variable GOTIFY_SERVER_URL. The token of the application is in
        /// GOTIFY_APP_TOKEN.
        gotify_url: Option<Box<str>> => text(base_url).example("https://gotify.example.com").protected(),
    }
}

agentsvc_components::enum_words! {
    /// What sends notifications to devices.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub enum PushProvider [Word] {
        /// Nothing.
        #[default]
        None = "none",
        /// <https://ntfy.sh>, or another server of that kind.
        Ntfy = "ntfy",
        /// A server of gotify.
        Gotify = "gotify",
    }
}

/// Where notifications go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Push {
    Ntfy { url: String, token: Option<String> },
    Gotify { url: String, token: String },
}

impl Pairing {
    fn note(&self, reader: &mut crate::kernel::config::Reader<'_, '_>) {
        if self.enabled && self.push_provider == PushProvider::Ntfy && self.ntfy_topic.is_none() {
            reader.problem("ntfy_topic", "must be set for `push_provider = \"ntfy\"`".to_owned());
        }
    }

    /// The same for the API.
    pub(super) fn policy(&self) -> PairingPolicy {
        PairingPolicy {
            is_enabled: self.enabled,
            code_time: Duration::from_secs(self.token_expiry_secs.into()),
            devices_max: self.max_devices,
            base_url: self.public_base_url.clone(),
            push_provider: match self.push_provider {
                PushProvider::None => None,
                PushProvider::Ntfy => Some("ntfy"),
                PushProvider::Gotify => Some("gotify"),
            },
        }
    }

    /// Where notifications go, given the environment.
    ///
    /// # Errors
    /// A sentence: what is missing.
    pub(super) fn push(&self, environment: impl Fn(&str) -> Option<String>) -> Result<Push, String> {
        let read = |name: &str| environment(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        match self.push_provider {
            PushProvider::None => Err("notifications are off: `[pairing] push_provider` is none".to_owned()),
            PushProvider::Ntfy => {
                let topic = self.ntfy_topic.as_deref().ok_or("`[pairing] ntfy_topic` is not set")?;
                let token = self.ntfy_token_env.as_deref().map(|name| {
                    read(name).ok_or_else(|| {
                        format!("the environment variable {name} of [pairing] ntfy_token_env is not set")
                    })
                });
                Ok(Push::Ntfy { url: format!("{}/{topic}", self.ntfy_url), token: token.transpose()? })
            }
            PushProvider::Gotify => {
                let url = self.gotify_url.as_deref().map(str::to_owned).or_else(|| read(GOTIFY_URL));
                let url = url.ok_or("`[pairing] gotify_url` and GOTIFY_SERVER_URL are not set")?;
                let token = read(GOTIFY_TOKEN).ok_or("the environment variable GOTIFY_APP_TOKEN is not set")?;
                Ok(Push::Gotify { url: format!("{}/message", url.trim_end_matches('/')), token })
            }
        }
    }

    /// The variables that hold secrets.
    pub(crate) fn variables(&self) -> impl Iterator<Item = Box<str>> + use<> {
        std::iter::once(GOTIFY_TOKEN.into()).chain(self.ntfy_token_env.clone())
    }
}

fn topic(text: &str) -> Result<Box<str>, String> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if (1..=TOPIC_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_letter) {
        return Ok(text.into());
    }
    Err(format!("must have 1 to {TOPIC_BYTES_MAX} letters, digits, `-` or `_`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::config::read_table;

    fn read(text: &str) -> Result<Pairing, String> {
        let loaded = read_table::<Pairing>("pairing", &format!("[pairing]\n{text}"));
        loaded.map(|loaded| loaded.config).map_err(|error| error.to_string())
    }

    #[test]
    fn pairing_is_off_and_bounded_unless_the_file_says_otherwise() {
        let policy = read("").unwrap().policy();
        assert_eq!((policy.is_enabled, policy.devices_max, policy.push_provider), (false, 10, None));
        for (text, key) in [
            ("token_expiry_secs = 5", "token_expiry_secs"),
            ("max_devices = 1000", "max_devices"),
            ("push_provider = \"mail\"", "push_provider"),
            ("ntfy_topic = \"a/b\"", "ntfy_topic"),
            ("ntfy_token_env = \"AGENTSVC_VAULT_KEY\"", "ntfy_token_env"),
            ("enabled = true\npush_provider = \"ntfy\"", "ntfy_topic"),
        ] {
            assert!(read(text).unwrap_err().contains(key), "{text}");
        }
    }

    #[test]
    fn notifications_need_an_address_and_a_token() {
        let none = |_: &str| None;
        let all = |name: &str| Some(format!("of {name} "));
        assert!(read("").unwrap().push(none).is_err());
        let ntfy = read("push_provider = \"ntfy\"\nntfy_topic = \"t\"\nntfy_url = \"https://n.example/\"").unwrap();
        assert_eq!(ntfy.push(none), Ok(Push::Ntfy { url: "https://n.example/t".to_owned(), token: None }));
        let with_token = Pairing { ntfy_token_env: Some("NTFY".into()), ..ntfy };
        assert!(with_token.push(none).unwrap_err().contains("NTFY"));
        let Ok(Push::Ntfy { token, .. }) = with_token.push(all) else { panic!("a token") };
        assert_eq!(token.as_deref(), Some("of NTFY"));
        let gotify = read("push_provider = \"gotify\"\ngotify_url = \"https://g.example\"").unwrap();
        assert!(gotify.push(none).unwrap_err().contains("GOTIFY_APP_TOKEN"));
        let expected =
            Push::Gotify { url: "https://g.example/message".to_owned(), token: "of GOTIFY_APP_TOKEN".to_owned() };
        assert_eq!(gotify.push(all), Ok(expected));
        let of_environment = Pairing { gotify_url: None, ..gotify };
        let token = |name: &str| (name == "GOTIFY_APP_TOKEN").then(|| "x".to_owned());
        assert!(of_environment.push(token).unwrap_err().contains("GOTIFY_SERVER_URL"));
    }
}
