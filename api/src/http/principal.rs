//! Who a request is, and whether it may call a route: the one place that decides.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::scope::{Role, Scope};
use agentsvc_components::{Actor, Timestamp};
use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use subtle::ConstantTimeEq;
use tokio::sync::{mpsc, watch};

use crate::http::error::Error;
use crate::http::route::{Auth, Reach, Route};
use crate::http::shutdown::Shutdown;
use crate::http::timestamp;

tokio::task_local! {
    static ACTOR: Actor;
}

/// Uses of keys that wait to be stored. Further ones are not stored: the next use is.
const USES_MAX: usize = 256;

/// How often keys are looked at that should not have expired yet: the clock may have been set.
const EXPIRY_CHECK_PERIOD: Duration = Duration::from_secs(60);

/// What a named key may do.
pub struct Grant {
    /// Which key.
    pub key: KeyId,
    /// Whose it is.
    pub user: Option<UserId>,
    /// The name of its user, or its own where it has none.
    pub name: Box<str>,
    /// SHA-256 of the key.
    pub hash: [u8; 32],
    /// What it may do.
    pub role: Role,
    /// The only scopes that it has; empty for all those of the role.
    pub scopes: Vec<Scope>,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// When its use was stored last, in milliseconds.
    pub stored_use: AtomicI64,
    /// It is no key but a session of a person who signed in.
    pub is_session: bool,
    /// Triggered when it is revoked, may do something else, or has expired: what it let in ends.
    pub(crate) ended: Shutdown,
}

impl Grant {
    /// A key that is in force.
    #[must_use]
    #[expect(clippy::too_many_arguments, reason = "each is a fact of the key")]
    pub fn new(
        key: KeyId,
        user: Option<UserId>,
        name: Box<str>,
        hash: [u8; 32],
        role: Role,
        scopes: Vec<Scope>,
        expires_at: Option<Timestamp>,
        used_at: Option<Timestamp>,
    ) -> Self {
        let stored_use = AtomicI64::new(used_at.map_or(i64::MIN, |at| at.0));
        let ended = Shutdown::new();
        Self { key, user, name, hash, role, scopes, expires_at, stored_use, is_session: false, ended }
    }

    /// The same as a session of a person, or as a key.
    #[must_use]
    pub fn session(self, is_session: bool) -> Self {
        Self { is_session, ..self }
    }

    /// Does it act in this scope?
    #[must_use]
    pub fn has(&self, scope: Scope) -> bool {
        self.role.has(scope) && (self.scopes.is_empty() || self.scopes.contains(&scope))
    }

    /// The same key, which has let in nothing yet.
    fn renewed(&self) -> Self {
        Self {
            key: self.key,
            user: self.user,
            name: self.name.clone(),
            hash: self.hash,
            role: self.role,
            scopes: self.scopes.clone(),
            expires_at: self.expires_at,
            stored_use: AtomicI64::new(self.stored_use.load(Ordering::Relaxed)),
            is_session: self.is_session,
            ended: Shutdown::new(),
        }
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// May it do the same as before, as the same person?
    fn is_same(&self, other: &Self) -> bool {
        let facts = |grant: &Self| (grant.key, grant.user, grant.role, grant.hash, grant.expires_at);
        facts(self) == facts(other) && self.scopes == other.scopes && self.name == other.name
    }
}

/// Without the hash.
impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("key", &self.key).field("role", &self.role).finish_non_exhaustive()
    }
}

/// Who a request is.
#[derive(Clone, Debug, Default)]
pub enum Principal {
    /// A client without a key, where one is set.
    #[default]
    Anyone,
    /// The key of the configuration, or any client where none is set.
    Owner,
    /// A named key, and its user.
    Key(Arc<Grant>),
}

impl Principal {
    /// What it may do; `None` for a client without a key.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::Anyone => None,
            Self::Owner => Some(Role::Owner),
            Self::Key(grant) => Some(grant.role),
        }
    }

    /// Does it act in this scope?
    #[must_use]
    pub fn has(&self, scope: Scope) -> bool {
        match self {
            Self::Anyone => false,
            Self::Owner => true,
            Self::Key(grant) => grant.has(scope),
        }
    }

    /// The user whose own things are all that it sees; `None` for those who see everything.
    #[must_use]
    pub fn limited_to(&self) -> Option<UserId> {
        match self {
            Self::Key(grant) if grant.role.is_limited() => Some(grant.user.unwrap_or(UserId(uuid::Uuid::nil()))),
            _ => None,
        }
    }

    /// The user with a limited role, or the named key without one, who has a part of what there is for all such.
    #[must_use]
    pub(crate) fn limited_user(&self) -> Option<uuid::Uuid> {
        self.actor().user_or_key().filter(|_| self.role().is_some_and(Role::is_limited))
    }

    /// Who it is for `route`: where no key is needed, one that may not use the route counts for nothing.
    #[must_use]
    pub(crate) fn on(self, route: &Route) -> Self {
        let is_refused = route.auth == Auth::Optional && check(&self, route).is_err();
        if is_refused { Self::Anyone } else { self }
    }

    /// Who sends its commands.
    #[must_use]
    pub fn actor(&self) -> Actor {
        match self {
            Self::Key(grant) => Actor::Key { key: grant.key, user: grant.user },
            Self::Owner => Actor::Api,
            Self::Anyone => Actor::Client,
        }
    }
}

/// How far a call of a route may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// To everything.
    All,
    /// To what belongs to the user.
    Own,
    /// Nowhere.
    Refused,
}

/// May a role, narrowed to `scopes` if there are some, call `route`?
#[must_use]
pub fn decide(role: Role, scopes: &[Scope], route: &Route) -> Verdict {
    if route.scopes().any(|scope| !role.has(scope) || !scopes.is_empty() && !scopes.contains(&scope)) {
        return Verdict::Refused;
    }
    match route.reach() {
        _ if route.owners_only && role != Role::Owner => Verdict::Refused,
        _ if !role.is_limited() => Verdict::All,
        Reach::Shared => Verdict::All,
        Reach::Agent | Reach::Filtered => Verdict::Own,
        Reach::All => Verdict::Refused,
    }
}

/// May `principal`, which has shown what the route asks for, call it?
///
/// # Errors
/// 403.
pub(crate) fn check(principal: &Principal, route: &Route) -> Result<(), Error> {
    let Principal::Key(grant) = principal else { return Ok(()) };
    if decide(grant.role, &grant.scopes, route) != Verdict::Refused {
        return Ok(());
    }
    let text = match route.scopes().find(|scope| !grant.has(*scope)) {
        Some(scope) => format!("this key may not use this route, which needs the scope {}", scope.as_str()),
        None if route.owners_only => "only owners may use this route".to_owned(),
        None => {
            format!("the role {} may not use this route: it is about what belongs to others too", grant.role.as_str())
        }
    };
    Err(Error::forbidden(text))
}

/// Does `work` for this actor: commands that it sends without another one are from there.
pub async fn acting<F: Future>(actor: Actor, work: F) -> F::Output {
    if actor == Actor::Api { work.await } else { ACTOR.scope(actor, work).await }
}

/// Does `work` for this actor at once.
pub fn acting_now<T>(actor: Actor, work: impl FnOnce() -> T) -> T {
    if actor == Actor::Api { work() } else { ACTOR.sync_scope(actor, work) }
}

/// Who sends commands in this task.
pub fn actor() -> Actor {
    ACTOR.try_with(|actor| *actor).unwrap_or(Actor::Api)
}

/// Keys by their hashes.
type Grants = HashMap<[u8; 32], Arc<Grant>>;

/// The named keys in force. Requests read them without a lock.
pub struct Directory {
    grants: ArcSwapOption<Grants>,
    /// Said yes to when the keys are known.
    known: watch::Sender<bool>,
    uses: mpsc::Sender<(KeyId, Timestamp)>,
    uses_taken: Mutex<Option<mpsc::Receiver<(KeyId, Timestamp)>>>,
}

impl Default for Directory {
    fn default() -> Self {
        let (uses, taken) = mpsc::channel(USES_MAX);
        Self {
            grants: ArcSwapOption::from(None),
            known: watch::Sender::new(true),
            uses,
            uses_taken: Mutex::new(Some(taken)),
        }
    }
}

impl Directory {
    /// Keys are about to be told: until then, one that is not known may still be a right one.
    pub fn expect(&self) {
        self.known.send_replace(false);
    }

    /// Puts these keys in force, and no others. What keys let in ends where they are no longer there, or may do something
    /// else.
    pub fn set(&self, grants: Vec<Grant>) {
        let before = self.grants.load_full();
        let of_before = |hash: &[u8; 32]| before.as_ref().and_then(|before| before.get(hash)).cloned();
        let kept = |grant: Grant| match of_before(&grant.hash) {
            Some(same) if same.is_same(&grant) => (grant.hash, same),
            _ => (grant.hash, Arc::new(grant)),
        };
        let after: Grants = grants.into_iter().map(kept).collect();
        let gone = before.iter().flat_map(|before| before.values());
        let gone = gone.filter(|grant| after.get(&grant.hash).is_none_or(|now| !Arc::ptr_eq(now, grant)));
        let gone: Vec<_> = gone.cloned().collect();
        // First the keys: what is admitted after the signal is admitted by those.
        self.grants.store(Some(Arc::new(after)));
        self.known.send_replace(true);
        gone.iter().for_each(|grant| grant.ended.trigger());
    }

    /// Ends what the keys of a user let in so far, where they see only what belongs to the user: less does now.
    pub(crate) fn end_open(&self, user: UserId) {
        let Some(before) = self.grants.load_full() else { return };
        let is_open = |grant: &Grant| !grant.ended.is_triggered();
        let is_theirs = |grant: &Grant| grant.user == Some(user) && grant.role.is_limited() && is_open(grant);
        let renewed = |grant: &Arc<Grant>| if is_theirs(grant) { Arc::new(grant.renewed()) } else { Arc::clone(grant) };
        let after: Grants = before.iter().map(|(hash, grant)| (*hash, renewed(grant))).collect();
        self.grants.store(Some(Arc::new(after)));
        before.values().filter(|grant| is_theirs(grant)).for_each(|grant| grant.ended.trigger());
    }

    /// What the key of this hash may do; `None` for one that is unknown or has expired.
    pub(crate) fn find(&self, hash: &[u8; 32]) -> Option<Arc<Grant>> {
        let grants = self.grants.load();
        let grant = grants.as_ref()?.get(hash)?;
        let is_same = bool::from(grant.hash.ct_eq(hash));
        if grant.is_over(timestamp::timestamp_now()) {
            // Once over it stays so, however the clock is set.
            grant.ended.trigger();
        }
        (is_same && !grant.ended.is_triggered()).then(|| Arc::clone(grant))
    }

    /// Are the keys known?
    pub(crate) fn is_known(&self) -> bool {
        *self.known.borrow()
    }

    /// Waits until the keys are known.
    ///
    /// # Errors
    /// 503 when they are not in `time`.
    pub(crate) async fn known(&self, time: Duration) -> Result<(), Error> {
        let mut known = self.known.subscribe();
        let in_time = tokio::time::timeout(time, known.wait_for(|known| *known)).await;
        let is_known = matches!(in_time, Ok(Ok(_)));
        is_known.then_some(()).ok_or_else(|| Error::unavailable("the daemon is loading", 1))
    }

    /// The key was used.
    pub(crate) fn used(&self, grant: &Grant, every_ms: i64) {
        let (now, before) = (timestamp::timestamp_now(), grant.stored_use.load(Ordering::Relaxed));
        if now.0.saturating_sub(before) < every_ms {
            return;
        }
        let is_first = grant.stored_use.compare_exchange(before, now.0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_first {
            let _later = self.uses.try_send((grant.key, now));
        }
    }

    /// The uses of keys that should be stored, for who stores them; `None` when that was asked before.
    pub fn uses(&self) -> Option<mpsc::Receiver<(KeyId, Timestamp)>> {
        self.uses_taken.lock().take()
    }

    /// Ends what keys let in when they expire. Never ends by itself.
    pub(crate) async fn expire(&self) {
        let mut changes = self.known.subscribe();
        loop {
            self.sweep();
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(self.time_to_next()) => {}
            }
        }
    }

    /// How long until the next key expires; not longer than the clock is trusted not to be set.
    fn time_to_next(&self) -> Duration {
        let (grants, now) = (self.grants.load(), timestamp::timestamp_now());
        let ends = grants.iter().flat_map(|grants| grants.values()).filter_map(|grant| grant.expires_at);
        let next = ends.filter(|at| *at > now).min().map(|at| at.0.saturating_sub(now.0));
        let ms = next.and_then(|ms| u64::try_from(ms).ok());
        ms.map_or(EXPIRY_CHECK_PERIOD, |ms| Duration::from_millis(ms).min(EXPIRY_CHECK_PERIOD))
    }

    /// Ends what keys let in that have expired since.
    fn sweep(&self) {
        let (grants, now) = (self.grants.load(), timestamp::timestamp_now());
        for grant in grants.iter().flat_map(|grants| grants.values()).filter(|grant| grant.is_over(now)) {
            grant.ended.trigger();
        }
    }
}

#[cfg(test)]
mod tests;
