//! Signing in at providers by the device flow of RFC 8628: the daemon gets a code, a person enters it at the provider, and the
//! daemon asks whether it was.
//!
//! ```text
//! pending --the person agrees--> granted --stored in the vault--> authorized
//!    |-----the person refuses--> denied
//!    `-----nobody comes in time--> expired
//! ```
//!
//! The daemon asks when it is asked, never more often than the provider allows. Codes live in memory only: a sign-in that was
//! under way at a stop is begun anew. What was granted is refreshed when a call needs it and it is nearly over.

mod exchange;
mod flow;
mod flows;
mod refresh;

use std::collections::BTreeMap;

use serde::Serialize;

pub(super) use self::flow::Polled;
pub use self::flows::Flows;
pub(super) use self::refresh::Refresher;

/// Where one signs in at a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceFlow {
    /// Gives the codes.
    pub device_auth_url: Box<str>,
    /// Gives the token for them, and later ones.
    pub token_url: Box<str>,
    /// Gives what calls go with, for the token; `None` where calls go with the token itself.
    pub exchange_url: Option<Box<str>>,
    /// The public name of the client. A device flow has no secret of the client.
    pub client_id: Box<str>,
    /// What is asked for; may be empty.
    pub scope: Box<str>,
}

/// What the configuration says of it; see [`DeviceFlow`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceFlowSettings {
    /// Gives the codes.
    pub device_auth_url: Option<Box<str>>,
    /// Gives the token.
    pub token_url: Option<Box<str>>,
    /// Gives what calls go with.
    pub exchange_url: Option<Box<str>>,
    /// The public name of the client.
    pub client_id: Option<Box<str>>,
    /// What is asked for.
    pub scope: Option<Box<str>>,
}

/// The provider that is known to have one.
pub const COPILOT: &str = "github-copilot";

/// GitHub Copilot's, as its own editor plugins use it: the client's name is public, and the GitHub token is exchanged for one
/// that holds for about half an hour.
fn copilot() -> DeviceFlow {
    DeviceFlow {
        device_auth_url: "https://github.com/login/device/code".into(),
        token_url: "https://github.com/login/oauth/access_token".into(),
        exchange_url: Some("https://api.github.com/copilot_internal/v2/token".into()),
        client_id: "Iv1.b507a08c87ecfe98".into(),
        scope: "read:user".into(),
    }
}

impl DeviceFlow {
    /// The flow of a provider: what is known of it with `settings` over it; `None` where nothing is said.
    ///
    /// # Errors
    /// One sentence: something is said, but not all that is needed.
    pub fn of(provider: &str, settings: &DeviceFlowSettings) -> Result<Option<Self>, String> {
        let known = (provider == COPILOT).then(copilot);
        if known.is_none() && *settings == DeviceFlowSettings::default() {
            return Ok(None);
        }
        let DeviceFlowSettings { device_auth_url, token_url, exchange_url, client_id, scope } = settings.clone();
        let known = known.unwrap_or_default();
        let flow = Self {
            device_auth_url: device_auth_url.unwrap_or(known.device_auth_url),
            token_url: token_url.unwrap_or(known.token_url),
            exchange_url: exchange_url.or(known.exchange_url),
            client_id: client_id.unwrap_or(known.client_id),
            scope: scope.unwrap_or(known.scope),
        };
        if flow.device_auth_url.is_empty() || flow.token_url.is_empty() || flow.client_id.is_empty() {
            return Err("a device flow needs `device_auth_url`, `token_url` and `client_id`".to_owned());
        }
        Ok(Some(flow))
    }

    /// Every flow: those that are known, and those of the configuration, by provider. What is incomplete is left out.
    pub fn all<'a>(settings: impl Iterator<Item = (&'a str, DeviceFlowSettings)>) -> BTreeMap<Box<str>, Self> {
        let mut flows = BTreeMap::from([(Box::from(COPILOT), copilot())]);
        for (provider, settings) in settings {
            if let Ok(Some(flow)) = Self::of(provider, &settings) {
                flows.insert(provider.into(), flow);
            }
        }
        flows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_configured_lies_over_what_is_known() {
        let url = |text: &str| Some(Box::<str>::from(text));
        let none = DeviceFlowSettings::default();
        assert_eq!(DeviceFlow::of("openai", &none), Ok(None));
        assert_eq!(DeviceFlow::of(COPILOT, &none), Ok(Some(copilot())));
        let moved = DeviceFlowSettings { token_url: url("http://h/t"), ..none.clone() };
        let flow = DeviceFlow::of(COPILOT, &moved).unwrap().unwrap();
        assert_eq!((&*flow.token_url, &*flow.client_id), ("http://h/t", "Iv1.b507a08c87ecfe98"));
        assert!(DeviceFlow::of("mine", &moved).unwrap_err().contains("client_id"));
        let whole = DeviceFlowSettings { device_auth_url: url("http://h/d"), client_id: url("c"), ..moved };
        let all = DeviceFlow::all([("mine", whole), ("openai", none)].into_iter());
        assert_eq!(all.keys().map(AsRef::as_ref).collect::<Vec<_>>(), [COPILOT, "mine"]);
        assert_eq!(all["mine"].exchange_url, None);
    }
}
