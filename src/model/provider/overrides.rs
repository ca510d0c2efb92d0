//! What clients of the API set about providers, over the catalog and the configuration (spec 2, Providers): keys and
//! sign-ins, which the vault keeps, and endpoints.
//!
//! It outlives a change of the configuration. A secret in the vault is opened when it is first needed; that it is there is
//! known from the start, by its file's name alone.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use agentsvc_systems::kernel::record::hex;
use futures_util::future::BoxFuture;
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::Secret;
use crate::kernel::host::origin_of;
use crate::kernel::logging::known_secrets;
use crate::kernel::vault::{self, Vault};

/// Seconds before its end at which a token is no longer begun with.
const MARGIN_SECS: u64 = 60;
/// Why what is kept cannot be used.
const UNREADABLE: &str = "the key in the vault cannot be read; see the daemon's log for the reason";
/// Bytes of a provider's name that stand in its secret's name; longer ones, and those with other letters, are hashed.
const NAME_BYTES_MAX: usize = 40;

/// The same, once no log line can hold it.
fn hidden(kept: Kept) -> Kept {
    let hide = |secret: &Secret| known_secrets().add(secret.expose());
    match &kept {
        Kept::Key(key, _) => hide(key),
        Kept::Login(login) => {
            hide(&login.grant.access_token);
            login.grant.refresh_token.iter().for_each(hide);
        }
        _ => {}
    }
    kept
}

/// What a sign-in gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Goes with calls, or is exchanged for what does.
    #[serde(serialize_with = "exposed", deserialize_with = "secret")]
    pub access_token: Secret,
    /// Gets the next ones.
    #[serde(default, serialize_with = "exposed_some", deserialize_with = "secret_some")]
    pub refresh_token: Option<Secret>,
    /// Seconds since 1970 at which the access token ends; `None` while it is not taken back.
    #[serde(default)]
    pub expires_at: Option<u64>,
}

/// What a grant was exchanged for; only in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Goes with calls.
    pub token: Secret,
    /// Seconds since 1970.
    pub expires_at: u64,
}

/// A sign-in as it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// What is in the vault.
    pub grant: Grant,
    /// Calls do not go with the grant but with what it is exchanged for.
    pub is_exchanged: bool,
    /// What it was exchanged for last.
    pub session: Option<Session>,
    /// Why it could not be refreshed, at the last try.
    pub problem: Option<String>,
}

impl Login {
    /// A sign-in of which nothing was used yet.
    pub const fn new(grant: Grant, is_exchanged: bool) -> Self {
        Self { grant, is_exchanged, session: None, problem: None }
    }

    /// The token that goes with a call begun at `now`, if it still holds.
    fn token(&self, now: u64) -> Option<&Secret> {
        match (self.is_exchanged, &self.session) {
            (true, session) => {
                session.as_ref().filter(|session| now < session.expires_at).map(|session| &session.token)
            }
            (false, _) => {
                let holds = self.grant.expires_at.is_none_or(|end| now < end);
                holds.then_some(&self.grant.access_token)
            }
        }
    }

    /// Is the token over, or nearly?
    pub fn is_stale(&self, now: u64) -> bool {
        let end = if self.is_exchanged {
            Some(self.session.as_ref().map_or(0, |session| session.expires_at))
        } else {
            self.grant.expires_at
        };
        end.is_some_and(|end| now + MARGIN_SECS >= end)
    }
}

/// What is in the vault of a provider.
#[derive(Clone, Debug)]
enum Kept {
    /// Something that was not opened yet.
    Sealed,
    /// Something that does not open.
    Unreadable,
    /// A key, and the origin that it was set for where that is not the configured one.
    Key(Secret, Option<Box<str>>),
    Login(Login),
}

/// The form of a secret in the vault.
#[derive(Serialize, Deserialize)]
enum Stored {
    #[serde(rename = "api_key", serialize_with = "exposed", deserialize_with = "secret")]
    Key(Secret),
    #[serde(rename = "bound_api_key")]
    BoundKey {
        #[serde(serialize_with = "exposed", deserialize_with = "secret")]
        key: Secret,
        origin: Box<str>,
    },
    #[serde(rename = "oauth")]
    Grant {
        #[serde(flatten)]
        grant: Grant,
        #[serde(default)]
        exchanged: bool,
    },
}

/// What there is for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptKey {
    /// Nothing was set.
    None,
    /// The key, or the token of the sign-in.
    There(Secret),
    /// Something was set and cannot be used; why.
    Lost(String),
}

/// Gets a sign-in's token afresh; ends in bounded time.
pub type Refresh = Box<dyn Fn(&str) -> BoxFuture<'static, ()> + Send + Sync>;

/// Keys, sign-ins and endpoints, by provider.
#[derive(Default)]
pub struct Overrides {
    vault: Option<Vault>,
    kept: RwLock<BTreeMap<Box<str>, Kept>>,
    base_urls: RwLock<BTreeMap<Box<str>, Box<str>>>,
    refresh: OnceLock<Refresh>,
    /// One change of the vault and of `kept` at a time.
    changing: Mutex<()>,
}

impl std::fmt::Debug for Overrides {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Overrides")
            .field("kept", &self.kept)
            .field("base_urls", &self.base_urls)
            .finish_non_exhaustive()
    }
}

impl Overrides {
    /// With the secrets of `vault`, none of which is opened yet.
    pub fn new(vault: Vault) -> Self {
        Self { vault: Some(vault), ..Self::default() }
    }

    /// Says who refreshes sign-ins. The first one counts.
    pub fn set_refresh(&self, refresh: Refresh) {
        let _only_once = self.refresh.set(refresh);
    }

    /// Looks which of these providers have something in the vault.
    pub fn look_for<'a>(&self, names: impl Iterator<Item = &'a str>) {
        let Some(vault) = &self.vault else { return };
        let there = vault.names().unwrap_or_else(|error| {
            tracing::error!(%error, "the vault cannot be listed; its keys are not used");
            Default::default()
        });
        if there.is_empty() {
            return;
        }
        let mut kept = self.kept.write();
        for name in names.filter(|name| there.contains(&secret_name(name))) {
            kept.entry(name.into()).or_insert(Kept::Sealed);
        }
    }

    /// Forgets what was read: the vault's files have changed.
    pub fn forget_read(&self) {
        self.kept.write().clear();
    }

    /// Opens what was not opened yet, so that calls need not. Waits for the disk. True when something does not open.
    pub fn open_all(&self) -> bool {
        let sealed: Vec<Box<str>> = {
            let kept = self.kept.read();
            kept.iter().filter(|(_, kept)| matches!(kept, Kept::Sealed)).map(|(name, _)| name.clone()).collect()
        };
        sealed.iter().filter(|name| matches!(self.opened(name), Some(Kept::Unreadable))).count() > 0
    }

    /// What is kept of a provider, opened. Waits for the disk the first time.
    fn opened(&self, name: &str) -> Option<Kept> {
        let found = self.kept.read().get(name).cloned()?;
        if !matches!(found, Kept::Sealed) {
            return Some(found);
        }
        let read = self.read(name);
        let mut kept = self.kept.write();
        // Something else may have been put or taken meanwhile.
        if let Some(place @ Kept::Sealed) = kept.get_mut(name) {
            *place = read;
        }
        kept.get(name).cloned()
    }

    fn read(&self, name: &str) -> Kept {
        let Some(vault) = &self.vault else { return Kept::Unreadable };
        let stored = match vault.get(&secret_name(name)) {
            Ok(Some(stored)) => stored,
            Ok(None) => return Kept::Unreadable,
            Err(error) => {
                tracing::error!(provider = name, %error, "the key in the vault cannot be used");
                return Kept::Unreadable;
            }
        };
        match serde_json::from_slice(&stored) {
            Ok(Stored::Key(key)) => hidden(Kept::Key(key, None)),
            Ok(Stored::BoundKey { key, origin }) => hidden(Kept::Key(key, Some(origin))),
            Ok(Stored::Grant { grant, exchanged }) => hidden(Kept::Login(Login::new(grant, exchanged))),
            Err(error) => {
                // The error of a text that was authenticated shows no part of it but a place.
                tracing::error!(
                    provider = name,
                    line = error.line(),
                    column = error.column(),
                    "the key in the vault has an unknown format"
                );
                Kept::Unreadable
            }
        }
    }

    /// The key for a call. Waits for the disk the first time.
    pub fn key(&self, name: &str) -> KeptKey {
        match self.opened(name) {
            None => KeptKey::None,
            Some(Kept::Key(key, _)) => KeptKey::There(key),
            Some(Kept::Login(login)) => match login.token(now_secs()) {
                Some(token) => KeptKey::There(token.clone()),
                None => {
                    let not_yet = login.is_exchanged && login.session.is_none();
                    let (unused, ended) =
                        ("the sign-in has not been used yet", "the sign-in has expired; sign in again");
                    let why = if not_yet { unused } else { ended };
                    KeptKey::Lost(login.problem.unwrap_or_else(|| why.to_owned()))
                }
            },
            Some(Kept::Sealed | Kept::Unreadable) => KeptKey::Lost(UNREADABLE.to_owned()),
        }
    }

    /// Where what is kept comes from, `vault` or `oauth`; `None` when there is nothing that can be used.
    pub fn source(&self, name: &str) -> Option<&'static str> {
        match self.kept.read().get(name)? {
            Kept::Sealed | Kept::Key(..) => Some("vault"),
            Kept::Login(_) => Some("oauth"),
            Kept::Unreadable => None,
        }
    }

    /// Why what is kept cannot be used.
    pub fn problem(&self, name: &str) -> Option<String> {
        match self.opened(name)? {
            Kept::Login(login) => login.problem,
            Kept::Unreadable => Some(UNREADABLE.to_owned()),
            Kept::Sealed | Kept::Key(..) => None,
        }
    }

    /// The sign-in of a provider. Waits for the disk the first time.
    pub fn login(&self, name: &str) -> Option<Login> {
        match self.opened(name)? {
            Kept::Login(login) => Some(login),
            _ => None,
        }
    }

    /// See [`Providers::getting_ready`](super::Providers::getting_ready).
    pub(super) fn getting_ready(&self, name: &str) -> Option<BoxFuture<'static, ()>> {
        let may_wait = match self.kept.read().get(name)? {
            Kept::Login(login) => login.is_stale(now_secs()),
            // It may be a sign-in, all of whose tokens are to be got first.
            Kept::Sealed => true,
            Kept::Key(..) | Kept::Unreadable => false,
        };
        if may_wait { self.refresh.get().map(|refresh| refresh(name)) } else { None }
    }

    /// The origin that a key was set for, where that is not the configured one. Waits for the disk the first time.
    pub fn key_origin(&self, name: &str) -> Option<Box<str>> {
        match self.opened(name)? {
            Kept::Key(_, origin) => origin,
            _ => None,
        }
    }

    /// Keeps a key, in the vault and then here: for the endpoint that clients have set, or the configured one. Waits for the
    /// disk.
    ///
    /// # Errors
    /// The vault's; nothing changed.
    pub fn put_key(&self, name: &str, key: Secret) -> Result<(), vault::Error> {
        let _alone = self.changing.lock();
        let origin = self.base_url(name).and_then(|url| origin_of(&url)).map(Box::<str>::from);
        let stored = match &origin {
            Some(origin) => Stored::BoundKey { key: key.clone(), origin: origin.clone() },
            None => Stored::Key(key.clone()),
        };
        let kept = hidden(Kept::Key(key, origin));
        self.store(name, &stored)?;
        self.kept.write().insert(name.into(), kept);
        Ok(())
    }

    /// Keeps a sign-in, in the vault and then here. Waits for the disk.
    ///
    /// # Errors
    /// The vault's; nothing changed.
    pub fn put_login(&self, name: &str, login: Login) -> Result<(), vault::Error> {
        let _alone = self.changing.lock();
        self.keep_login(name, login)
    }

    /// The same, in place of the sign-in with the grant `before`; nothing happens when that one is gone meanwhile.
    ///
    /// # Errors
    /// The vault's; nothing changed.
    pub fn renew_login(&self, name: &str, before: &Grant, login: Login) -> Result<(), vault::Error> {
        let _alone = self.changing.lock();
        let is_there = matches!(self.kept.read().get(name), Some(Kept::Login(login)) if login.grant == *before);
        if is_there { self.keep_login(name, login) } else { Ok(()) }
    }

    fn keep_login(&self, name: &str, login: Login) -> Result<(), vault::Error> {
        let stored = Stored::Grant { grant: login.grant.clone(), exchanged: login.is_exchanged };
        let kept = hidden(Kept::Login(login));
        self.store(name, &stored)?;
        self.kept.write().insert(name.into(), kept);
        Ok(())
    }

    /// Changes what is only in memory of a sign-in, if it is still the same one.
    pub fn change_login(&self, name: &str, grant: &Grant, change: impl FnOnce(&mut Login)) {
        if let Some(Kept::Login(login)) = self.kept.write().get_mut(name)
            && login.grant == *grant
        {
            change(login);
            if let Some(session) = &login.session {
                known_secrets().add(session.token.expose());
            }
        }
    }

    /// Is there anything of a provider that [`remove`](Self::remove) would forget? Waits for the disk.
    pub fn is_kept(&self, name: &str) -> Result<bool, vault::Error> {
        let is_here = self.kept.read().contains_key(name);
        let names = || self.vault.as_ref().map_or(Ok(Default::default()), Vault::names);
        Ok(is_here || names()?.contains(&secret_name(name)))
    }

    /// Forgets what is kept of a provider, in the vault and then here. False when there was nothing. Waits for the disk.
    pub fn remove(&self, name: &str) -> Result<bool, vault::Error> {
        let _alone = self.changing.lock();
        let was_stored = self.vault.as_ref().map_or(Ok(false), |vault| vault.remove(&secret_name(name)))?;
        let was_here = self.kept.write().remove(name).is_some();
        Ok(was_stored || was_here)
    }

    fn store(&self, name: &str, stored: &Stored) -> Result<(), vault::Error> {
        let unfit = || vault::Error::Unfit(secret_name(name));
        let vault = self.vault.as_ref().ok_or_else(unfit)?;
        // Room for all of it at once: a buffer that grows would leave pieces behind.
        let mut text = Zeroizing::new(Vec::with_capacity(agentsvc_components::kernel::limit::VAULT_SECRET_BYTES_MAX));
        serde_json::to_writer(&mut *text, stored).map_err(|_| unfit())?;
        vault.put(&secret_name(name), &text)
    }

    /// Where the API says that a provider is.
    pub fn base_url(&self, name: &str) -> Option<Box<str>> {
        self.base_urls.read().get(name).cloned()
    }

    /// The providers are there from now on.
    pub fn set_base_urls(&self, base_urls: BTreeMap<Box<str>, Box<str>>) {
        *self.base_urls.write() = base_urls;
    }
}

/// What a provider's secret is called in the vault, where names are short and plain.
fn secret_name(provider: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if provider.len() <= NAME_BYTES_MAX && provider.bytes().all(is_plain) {
        return format!("provider-{provider}");
    }
    let hash = Sha256::digest(provider.as_bytes());
    format!("provider_{}", hex(&hash[..20]))
}

/// Seconds since 1970.
pub(crate) fn now_secs() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The one place where a secret is written: into the vault.
fn exposed<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

fn exposed_some<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::expose).serialize(serializer)
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    String::deserialize(deserializer).map(|text| Secret::new(&Zeroizing::new(text)))
}

fn secret_some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secret>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.map(|text| Secret::new(&Zeroizing::new(text))))
}

#[cfg(test)]
#[path = "overrides_tests.rs"]
mod tests;
