//! `[external_auth]`: identity providers at which people sign in (OpenID Connect).

use std::collections::BTreeMap;

use agentsvc_components::kernel::scope::Role;
use agentsvc_systems::people::limits::USER_IDENTITY_BYTES_MAX;

use crate::kernel::config::text::own_variable;
use crate::kernel::config::{Reader, Word, table, word};
use crate::kernel::host::host_of;
use crate::kernel::oauth::secure;

/// The id of the provider that the table itself names.
const DEFAULT: &str = "default";
/// Identity providers.
const PROVIDERS_MAX: usize = 16;
/// The scope without which there is no identity token.
const OPENID: &str = "openid";

fn scopes_default() -> Vec<Box<str>> {
    vec![OPENID.into(), "email".into(), "profile".into()]
}

table! {
    /// `[external_auth]`.
    #[check(Self::note)]
    pub struct ExternalAuth {
        /// Let people sign in at identity providers.
        enabled: bool => flag().protected(),
        /// Issuer of the default provider, as its discovery document writes it. Private hosts must be in `[web.fetch]
        /// ssrf_allowed_hosts`.
        issuer_url: Option<Box<str>> => text(address).example("https://accounts.example.com").protected(),
        /// Client id of the daemon at the default provider.
        client_id: Option<Box<str>> => text(line).example("agentsvc").protected(),
        /// Environment variable that has the client secret. Default: the daemon is a public client.
        client_secret_env: Option<Box<str>> => text(own_variable).example("OIDC_CLIENT_SECRET").protected(),
        /// Where the provider sends browsers back: `/api/auth/callback` at the address of the daemon. Default: the address that the
        /// browser used.
        redirect_url: Option<Box<str>> => text(address).example("https://agents.example.com/api/auth/callback").protected(),
        /// Scopes that are requested. `openid` always is.
        scopes: Vec<Box<str>> = scopes_default() => list(scope).protected(),
        /// Audience that tokens looked at over `/api/auth/introspect` may have beside the client id.
        audience: Option<Box<str>> => text(line).example("https://agents.example.com").protected(),
        /// Domains of mail addresses whose people are added as users when they first sign in. Default: only users whom you have
        /// added can sign in.
        allowed_domains: Vec<Box<str>> => list(domain).protected(),
        /// Role of people who are added: viewer, user or admin.
        #[serde(serialize_with = "word")]
        default_role: Role = Role::User => choice(Role::WORDS).protected(),
        /// Seconds that a session lasts, 60 to 2592000.
        session_ttl_secs: u64 = 86_400 => integer(60..=2_592_000).protected(),
        /// Refuse accounts whose mail address the provider has not verified. Without it, anyone who can choose an address at the
        /// provider can sign in as its user.
        require_email_verified: bool = true => flag().protected(),
        /// More identity providers, a list, `[[external_auth.providers]]`, of tables with `name`.
        providers: BTreeMap<Box<str>, OidcProvider> => named_or_listed("company"),
    }
}

table! {
    /// `[[external_auth.providers]]`.
    #[check(Self::note)]
    pub struct OidcProvider {
        /// What the sign-in button says. Default: the name.
        display_name: Option<Box<str>> => text(line).example("Example Inc.").protected(),
        /// Issuer, as the discovery document writes it. Private hosts must be in `[web.fetch] ssrf_allowed_hosts`.
        issuer_url: Option<Box<str>> => text(address).example("https://login.example.com").protected(),
        /// Client id of the daemon.
        client_id: Option<Box<str>> => text(line).example("agentsvc").protected(),
        /// Environment variable that has the client secret. Default: the daemon is a public client.
        client_secret_env: Option<Box<str>> => text(own_variable).example("COMPANY_CLIENT_SECRET").protected(),
        /// Where the provider sends browsers back. Default: that of `[external_auth]`.
        redirect_url: Option<Box<str>> => text(address).example("https://agents.example.com/api/auth/callback").protected(),
        /// Scopes that are requested. Default: those of `[external_auth]`.
        scopes: Vec<Box<str>> => list(scope).example("[\"openid\", \"email\"]").protected(),
        /// The only domains whose addresses count at this provider. Default: those of `[external_auth]`, which limit no provider.
        allowed_domains: Vec<Box<str>> => list(domain).example("[\"example.com\"]").protected(),
        /// Authorization endpoint. With `token_url` and `jwks_uri` set too, no discovery document is read.
        auth_url: Option<Box<str>> => text(address).example("https://login.example.com/authorize").protected(),
        /// Token endpoint.
        token_url: Option<Box<str>> => text(address).example("https://login.example.com/token").protected(),
        /// Userinfo endpoint.
        userinfo_url: Option<Box<str>> => text(address).example("https://login.example.com/userinfo").protected(),
        /// Where the provider's keys are.
        jwks_uri: Option<Box<str>> => text(address).example("https://login.example.com/keys").protected(),
    }
}

/// A provider with all that is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProviderSettings {
    pub(super) id: String,
    pub(super) display_name: String,
    pub(super) issuer: String,
    pub(super) client_id: String,
    pub(super) client_secret_env: Option<Box<str>>,
    pub(super) redirect_url: Option<Box<str>>,
    pub(super) scopes: Vec<Box<str>>,
    pub(super) audience: Option<Box<str>>,
    pub(super) allowed_domains: Vec<Box<str>>,
    /// The domains are its own: addresses of others count for nothing.
    pub(super) is_limited: bool,
    pub(super) auth_url: Option<Box<str>>,
    pub(super) token_url: Option<Box<str>>,
    pub(super) userinfo_url: Option<Box<str>>,
    pub(super) jwks_uri: Option<Box<str>>,
}

impl ExternalAuth {
    /// The providers, the default one first; none while sign-in is off.
    pub(super) fn all(&self) -> Vec<ProviderSettings> {
        if !self.enabled {
            return Vec::new();
        }
        let own = OidcProvider {
            display_name: self.issuer_url.as_deref().and_then(host_of).map(Into::into),
            issuer_url: self.issuer_url.clone(),
            client_id: self.client_id.clone(),
            client_secret_env: self.client_secret_env.clone(),
            ..OidcProvider::default()
        };
        let own = std::iter::once((DEFAULT, &own));
        let named = self.providers.iter().map(|(name, provider)| (&**name, provider));
        own.chain(named).filter_map(|(id, provider)| self.settings(id, provider)).collect()
    }

    fn settings(&self, id: &str, it: &OidcProvider) -> Option<ProviderSettings> {
        let or = |own: &Vec<Box<str>>, all: &Vec<Box<str>>| if own.is_empty() { all.clone() } else { own.clone() };
        let mut scopes = or(&it.scopes, &self.scopes);
        if !scopes.iter().any(|scope| **scope == *OPENID) {
            scopes.insert(0, OPENID.into());
        }
        Some(ProviderSettings {
            id: id.to_owned(),
            display_name: it.display_name.as_deref().unwrap_or(id).to_owned(),
            issuer: it.issuer_url.as_deref()?.to_owned(),
            client_id: it.client_id.as_deref()?.to_owned(),
            client_secret_env: it.client_secret_env.clone(),
            redirect_url: it.redirect_url.clone().or_else(|| self.redirect_url.clone()),
            scopes,
            audience: self.audience.clone(),
            allowed_domains: or(&it.allowed_domains, &self.allowed_domains),
            is_limited: !it.allowed_domains.is_empty(),
            auth_url: it.auth_url.clone(),
            token_url: it.token_url.clone(),
            userinfo_url: it.userinfo_url.clone(),
            jwks_uri: it.jwks_uri.clone(),
        })
    }

    fn note(&self, reader: &mut Reader<'_, '_>) {
        if self.issuer_url.is_some() != self.client_id.is_some() {
            let missing = if self.client_id.is_some() { "issuer_url" } else { "client_id" };
            reader.problem(missing, "`issuer_url` and `client_id` need each other".to_owned());
        } else if self.enabled && self.issuer_url.is_none() && self.providers.is_empty() {
            reader
                .problem("enabled", "needs `issuer_url` and `client_id`, or `[[external_auth.providers]]`".to_owned());
        }
        if self.default_role == Role::Owner {
            reader.problem("default_role", "must be viewer, user or admin; name owners in `[[users]]`".to_owned());
        }
        if self.providers.len() > PROVIDERS_MAX {
            reader.problem("providers", format!("must be at most {PROVIDERS_MAX} providers"));
        }
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        if let Some(name) = self.providers.keys().find(|name| &***name == DEFAULT || !is_name(name)) {
            let text = format!("{name:?} is not a name: use letters, digits, `-` and `_`, and not `{DEFAULT}`");
            reader.problem("providers", text);
        }
        if !self.require_email_verified {
            let text = "accounts with an unverified mail address can sign in as the user of that address".to_owned();
            reader.warning("require_email_verified", text);
        }
    }
}

impl OidcProvider {
    fn note(&self, reader: &mut Reader<'_, '_>) {
        if self.issuer_url.is_none() {
            reader.problem("issuer_url", "is missing".to_owned());
        }
        if self.client_id.is_none() {
            reader.problem("client_id", "is missing".to_owned());
        }
    }
}

fn address(text: &str) -> Result<Box<str>, String> {
    let url = secure(text).map_err(|_| "must be an https URL; http only for this machine".to_owned())?;
    if url.query().is_some() || url.fragment().is_some() || text.len() > USER_IDENTITY_BYTES_MAX {
        return Err(format!("must be a URL without a query of at most {USER_IDENTITY_BYTES_MAX} bytes"));
    }
    Ok(text.into())
}

fn line(text: &str) -> Result<Box<str>, String> {
    let is_line = !text.trim().is_empty() && text.len() <= 256 && !text.chars().any(char::is_control);
    is_line.then(|| text.into()).ok_or_else(|| "must be one line of 1 to 256 bytes".to_owned())
}

fn scope(text: &str) -> Result<Box<str>, String> {
    let is_scope = !text.is_empty() && text.len() <= 256 && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_scope.then(|| text.into()).ok_or_else(|| "must be scopes such as \"email\"".to_owned())
}

fn domain(text: &str) -> Result<Box<str>, String> {
    let is_host = !text.is_empty()
        && text.len() <= 253
        && text.contains('.')
        && text
            .split('.')
            .all(|label| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'));
    is_host
        .then(|| text.to_ascii_lowercase().into())
        .ok_or_else(|| "must be domains such as \"example.com\"".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::config::read_table;

    fn read(text: &str) -> Result<ExternalAuth, String> {
        let read = read_table::<ExternalAuth>("external_auth", &format!("[external_auth]\n{text}"));
        read.map(|loaded| loaded.config).map_err(|error| error.to_string())
    }

    const OWN: &str = "enabled = true\nissuer_url = \"https://id.example\"\nclient_id = \"me\"\n";

    #[test]
    fn providers_have_what_the_table_says_unless_they_say_otherwise() {
        let more = "allowed_domains = [\"Example.COM\"]\nscopes = [\"email\"]\n[[external_auth.providers]]\nname = \"corp\"\n\
            issuer_url = \"https://corp.example/a\"\nclient_id = \"you\"\nallowed_domains = [\"corp.example\"]\n";
        let all = read(&format!("{OWN}{more}")).unwrap().all();
        let shown: Vec<_> =
            all.iter().map(|it| (it.id.as_str(), it.display_name.as_str(), it.client_id.as_str())).collect();
        assert_eq!(shown, [("default", "id.example", "me"), ("corp", "corp", "you")]);
        assert_eq!((&*all[0].allowed_domains[0], &*all[1].allowed_domains[0]), ("example.com", "corp.example"));
        assert_eq!((all[0].is_limited, all[1].is_limited), (false, true));
        assert_eq!(all[1].scopes, ["openid".into(), "email".into()]);
        assert!(read(&OWN.replace("true", "false")).unwrap().all().is_empty());
        assert!(read("").unwrap().all().is_empty());
    }

    #[test]
    fn wrong_values_are_refused_with_their_keys() {
        for (text, key) in [
            ("enabled = true\n", "external_auth.enabled: needs `issuer_url`"),
            ("issuer_url = \"https://id.example\"\n", "external_auth.client_id"),
            ("client_id = \"x\"\n", "external_auth.issuer_url"),
            (
                "issuer_url = \"http://id.example\"\nclient_id = \"x\"\n",
                "external_auth.issuer_url: must be an https URL",
            ),
            ("issuer_url = \"https://id.example/?a=b\"\nclient_id = \"x\"\n", "external_auth.issuer_url"),
            ("default_role = \"owner\"\n", "external_auth.default_role: must be viewer"),
            ("session_ttl_secs = 59\n", "external_auth.session_ttl_secs"),
            ("allowed_domains = [\"*\"]\n", "external_auth.allowed_domains: must be domains"),
            ("client_secret_env = \"a secret\"\n", "external_auth.client_secret_env"),
            ("client_secret_env = \"AGENTSVC_VAULT_KEY\"\n", "external_auth.client_secret_env"),
            (
                "[[external_auth.providers]]\nname = \"a\"\nclient_id = \"x\"\n",
                "external_auth.providers.a.issuer_url: is missing",
            ),
            (
                "[[external_auth.providers]]\nname = \"a b\"\nissuer_url = \"https://h\"\nclient_id = \"x\"\n",
                "external_auth.providers: \"a b\" is not a name",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(key), "{key}: {error}");
        }
    }
}
