//! The second factor: codes of an authenticator (TOTP) that approving needs beside the key of the API (spec 3,
//! Authentication, rule 2; decisions, Money and trust).
//!
//! All of it is one secret of the vault ([`state`]), read for each use and written before the answer: a code that was used
//! is used, and a wrong one is counted, also after a kill. Only the grace period lives in memory; a restart ends it.

mod code;
mod recovery;
mod state;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::second_factor::factor::{FactorError, NewSecret, OnRecord, SecondFactor, TotpStatus};
use agentsvc_components::kernel::limit;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use zeroize::Zeroizing;

use crate::kernel::domain::Domain;
use crate::kernel::vault;
use crate::kernel::vault::Vault;
use crate::kernel::world_loop::Clock;
use state::{Accept, Enrolment, State, Try};

/// What this domain brings.
pub const DOMAIN: Domain = Domain { name: "second_factor", uses: &[], ..Domain::EMPTY };

/// The name of the secret in the vault.
const NAME: &str = "totp";

/// What the configuration says about the second factor.
#[derive(Clone, Copy, Debug, Default)]
pub struct TotpSettings {
    /// Approving needs a code.
    pub enforced: bool,
    /// For how long further decisions of the same client need none after a correct one.
    pub grace: Duration,
}

/// Codes of an authenticator, kept in the vault.
pub struct Totp {
    vault: Vault,
    settings: ArcSwap<TotpSettings>,
    clock: Clock,
    /// One call at a time; and until when a key or session at its address needs no code, by the running clock.
    graces: Mutex<HashMap<Box<str>, Duration>>,
}

impl Totp {
    /// The second factor in `vault`.
    pub fn new(vault: Vault, settings: TotpSettings, clock: Clock) -> Self {
        Self { vault, settings: ArcSwap::from_pointee(settings), clock, graces: Mutex::default() }
    }

    /// Says in the log what keeps approvals from being decided, so that nobody finds out with the first one.
    pub fn announce(&self) {
        let Ok(state) = self.load() else { return };
        if self.settings.load().enforced && state.active.is_none() {
            tracing::warn!("approvals need a code, but no second factor is confirmed; nothing can be approved");
        }
    }

    /// Puts other settings in force. Who needed no code for a while needs one again.
    pub fn set(&self, settings: TotpSettings) {
        let mut graces = self.graces.lock();
        self.settings.store(Arc::new(settings));
        graces.clear();
        drop(graces);
        self.announce();
    }

    fn load(&self) -> Result<State, FactorError> {
        let stored = self.vault.get(NAME).map_err(unavailable)?;
        let Some(stored) = stored else { return Ok(State::default()) };
        serde_json::from_slice(&stored).map_err(|error| {
            // The error of a text that was authenticated shows no part of it but a place.
            tracing::error!(
                line = error.line(),
                column = error.column(),
                "the second factor in the vault has an \
                unknown format"
            );
            FactorError::Unavailable
        })
    }

    fn store(&self, state: &State) -> Result<(), FactorError> {
        // Room for all of it at once: a buffer that grows would leave pieces behind.
        let mut text = Zeroizing::new(Vec::with_capacity(limit::VAULT_SECRET_BYTES_MAX));
        serde_json::to_writer(&mut *text, state).map_err(|_| FactorError::Unavailable)?;
        self.vault.put(NAME, &text).map_err(unavailable)
    }

    /// Seconds since 1970.
    fn now(&self) -> u64 {
        u64::try_from((self.clock.wall)().0 / 1_000).unwrap_or_default()
    }

    /// Lets `change` look at a code and change the state. What it changed is stored, also the attempt that a wrong code is;
    /// what it may change is on record before that.
    fn change(
        &self,
        on_record: OnRecord<'_>,
        change: impl FnOnce(&mut State, u64) -> Result<(), FactorError>,
    ) -> Result<(), FactorError> {
        let before = self.load()?;
        let mut after = before.clone();
        let changed = change(&mut after, self.now());
        if changed.is_ok() {
            on_record().map_err(FactorError::Unrecorded)?;
        }
        if after != before {
            self.store(&after)?;
        }
        if changed == Err(FactorError::Wrong) {
            tracing::warn!("wrong second factor code");
        }
        changed
    }

    /// Looks at a code, which counts once. What it is for goes on record with the command that does it.
    fn use_up(&self, code: Option<&str>, tried: Try<'_>) -> Result<(), FactorError> {
        let code = code.ok_or(FactorError::Missing)?;
        self.change(&|| Ok(()), |state, now| state.use_up(code, tried, now))
    }

    /// Does `by` still need no code? Forgets those whose time is over.
    fn has_grace(&self, graces: &mut HashMap<Box<str>, Duration>, by: &str) -> bool {
        let now = (self.clock.running)();
        graces.retain(|_, until| *until > now);
        graces.contains_key(by)
    }
}

/// The log gets the reason, with its paths; the client does not.
fn unavailable(error: vault::Error) -> FactorError {
    tracing::error!(%error, "the vault is unavailable");
    FactorError::Unavailable
}

impl SecondFactor for Totp {
    fn status(&self) -> Result<TotpStatus, FactorError> {
        let _alone = self.graces.lock();
        let State { active, pending, .. } = &self.load()?;
        let shown = active.as_ref().or(pending.as_ref());
        Ok(TotpStatus {
            enrolled: shown.is_some(),
            confirmed: active.is_some(),
            enforced: self.settings.load().enforced,
            remaining_recovery_codes: shown.map_or(0, Enrolment::recovery_codes),
        })
    }

    fn setup(&self, code: Option<&str>, on_record: OnRecord<'_>) -> Result<NewSecret, FactorError> {
        let _alone = self.graces.lock();
        let (fresh, recovery_codes) = Enrolment::random().map_err(|_| {
            tracing::error!("cannot create a secret: the system's random number generator failed");
            FactorError::Unavailable
        })?;
        let (base32, uri) = (fresh.secret().base32(), fresh.secret().uri());
        self.change(on_record, |state, now| {
            if state.active.is_some() {
                state.check(code.ok_or(FactorError::Missing)?, Accept::CodeOrRecovery, false, now)?;
            }
            state.pending = Some(fresh);
            Ok(())
        })?;
        tracing::info!("a second factor was set up and needs confirmation");
        Ok(NewSecret { base32, uri, recovery_codes })
    }

    fn confirm(&self, code: &str, on_record: OnRecord<'_>) -> Result<(), FactorError> {
        let mut graces = self.graces.lock();
        self.change(on_record, |state, now| state.confirm(code, now))?;
        graces.clear();
        tracing::info!("the second factor was confirmed");
        Ok(())
    }

    fn revoke(&self, code: &str, on_record: OnRecord<'_>) -> Result<(), FactorError> {
        let mut graces = self.graces.lock();
        self.change(on_record, |state, now| {
            state.check(code, Accept::CodeOrRecovery, true, now)?;
            (state.active, state.pending) = (None, None);
            Ok(())
        })?;
        graces.clear();
        tracing::warn!("the second factor was revoked");
        Ok(())
    }

    fn allow(&self, by: &str, who: &str, code: Option<&str>) -> Result<(), FactorError> {
        if !self.settings.load().enforced {
            return Ok(());
        }
        let mut graces = self.graces.lock();
        if self.has_grace(&mut graces, by) {
            return Ok(());
        }
        self.use_up(code, Try::Approve(who))?;
        if !self.settings.load().grace.is_zero() && graces.len() < limit::TOTP_GRACES_MAX {
            graces.insert(by.into(), (self.clock.running)() + self.settings.load().grace);
        }
        Ok(())
    }

    fn verify(&self, user: &str, code: Option<&str>) -> Result<(), FactorError> {
        if !self.settings.load().enforced {
            return Ok(());
        }
        let _alone = self.graces.lock();
        self.use_up(code, Try::SignIn(user))
    }
}

#[cfg(test)]
mod tests;
