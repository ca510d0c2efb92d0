//! What is kept of the second factor, as one secret of the vault, and how it changes.
//!
//! | from                | what happens                       | to                                        |
//! |---------------------|------------------------------------|-------------------------------------------|
//! | nothing             | setup                              | pending                                   |
//! | pending             | setup                              | another pending one                       |
//! | pending             | confirm with a code of it          | active                                    |
//! | active              | setup with a code of it            | active, and pending beside it             |
//! | active and pending  | confirm with a code of the pending | the pending one is active                 |
//! | active or pending   | revoke with a code of it           | nothing                                   |
//! | any                 | a wrong code                       | one attempt less; after the fifth: locked |
//!
//! Wrong codes are counted for each who tries, and apart for each purpose: nobody locks anyone else out, and a sign-in no approval.

use std::collections::BTreeMap;

use agentsvc_api::second_factor::factor::FactorError;
use agentsvc_components::kernel::limit;
use agentsvc_systems::kernel::record::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::code::{self, Secret};
use super::recovery::{self, Recovery};

/// All of it.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// Its codes count.
    pub(super) active: Option<Enrolment>,
    /// Waits for its first code.
    pub(super) pending: Option<Enrolment>,
    /// Those of changes of the second factor itself.
    attempts: Attempts,
    /// Those of others, by a digest of the purpose and who tries. Whoever has no wrong code has no entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    by: BTreeMap<String, Attempts>,
}

/// What a code is for, and who gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Try<'a> {
    /// Approvals, by this client.
    Approve(&'a str),
    /// A sign-in with the right password of this user.
    SignIn(&'a str),
}

impl Try<'_> {
    fn key(self) -> String {
        let (purpose, who) = match self {
            Self::Approve(who) => ("approve", who),
            Self::SignIn(who) => ("sign_in", who),
        };
        hex(&Sha256::digest(format!("{purpose}\0{who}"))[..KEY_BYTES])
    }
}

/// A secret and what was used of it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Enrolment {
    secret: Secret,
    /// The step of the newest code that counted: it and those before it never count again.
    last_step: Option<u64>,
    recovery: Recovery,
}

/// Wrong codes.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
struct Attempts {
    /// Since the last right one, or the last lock.
    wrong: u32,
    /// Locks since the last right code.
    locks: u32,
    /// When the last lock began, in seconds since 1970.
    locked_from: u64,
    /// No code is looked at before. A clock that was set back to before the lock began ends it.
    locked_until: u64,
}

/// Bytes of the digest of who tries.
const KEY_BYTES: usize = 12;

/// What a code may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Accept {
    /// Of the authenticator.
    Code,
    /// Of the authenticator, or a recovery code.
    CodeOrRecovery,
}

impl Enrolment {
    /// A new secret, and its recovery codes.
    pub(super) fn random() -> Result<(Self, Vec<String>), getrandom::Error> {
        let (recovery, codes) = Recovery::random()?;
        Ok((Self { secret: Secret::random()?, last_step: None, recovery }, codes))
    }

    /// The secret.
    pub(super) const fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Number of unused recovery codes.
    pub(super) fn recovery_codes(&self) -> usize {
        self.recovery.remaining()
    }

    /// Uses `text` up. Only [`FactorError::Wrong`] is an attempt.
    fn accept(&mut self, text: &str, accept: Accept, now: u64) -> Result<(), FactorError> {
        if let Some(code) = code::parse(text) {
            let step = self.secret.step_of(&code, now, self.last_step).ok_or(FactorError::Wrong)?;
            self.last_step = Some(step);
            return Ok(());
        }
        if accept == Accept::Code {
            return Err(FactorError::Malformed("a code has 6 digits"));
        }
        let malformed = FactorError::Malformed("a code has 6 digits; a recovery code has 32 hexadecimal digits");
        let recovery = recovery::parse(text).ok_or(malformed)?;
        if self.recovery.take(&recovery) { Ok(()) } else { Err(FactorError::Wrong) }
    }
}

impl State {
    /// Uses up a code of the secret that counts, for one who tries it for this.
    pub(super) fn use_up(&mut self, text: &str, tried: Try<'_>, now: u64) -> Result<(), FactorError> {
        let key = tried.key();
        let mut attempts = self.by.remove(&key).unwrap_or_default();
        let checked = attempts.check(now).and_then(|()| {
            let nothing = FactorError::NotEnrolled("no second factor is confirmed; set it up first");
            let checked = self.active.as_mut().ok_or(nothing)?.accept(text, Accept::Code, now);
            attempts.note(&checked, now);
            checked
        });
        if attempts != Attempts::default() {
            self.make_room(now);
            self.by.insert(key, attempts);
        }
        checked
    }

    /// Forgets one, those first whose lock ends soonest, where as many are remembered as may be.
    fn make_room(&mut self, now: u64) {
        if self.by.len() < limit::TOTP_TRIED_MAX {
            return;
        }
        let order = |attempts: &Attempts| (attempts.check(now).is_err(), attempts.locked_until, attempts.wrong);
        let first = self.by.iter().min_by_key(|(_, attempts)| order(attempts)).map(|(key, _)| key.clone());
        first.map(|key| self.by.remove(&key));
    }

    /// Uses up a code of the secret that counts, or, when there is none, with `or_pending` of the one that waits.
    pub(super) fn check(&mut self, text: &str, accept: Accept, or_pending: bool, now: u64) -> Result<(), FactorError> {
        self.attempts.check(now)?;
        let pending = self.pending.as_mut().filter(|_| or_pending);
        let enrolment = self.active.as_mut().or(pending);
        let enrolment = enrolment.ok_or(FactorError::NotEnrolled("no second factor is confirmed; set it up first"))?;
        let checked = enrolment.accept(text, accept, now);
        self.attempts.note(&checked, now);
        checked
    }

    /// Makes the secret that waits the one that counts.
    pub(super) fn confirm(&mut self, text: &str, now: u64) -> Result<(), FactorError> {
        self.attempts.check(now)?;
        let nothing = FactorError::NotEnrolled("there is nothing to confirm; call setup first");
        let checked = self.pending.as_mut().ok_or(nothing)?.accept(text, Accept::Code, now);
        self.attempts.note(&checked, now);
        checked?;
        self.active = self.pending.take();
        Ok(())
    }
}

impl Attempts {
    /// Is a code looked at now?
    fn check(&self, now: u64) -> Result<(), FactorError> {
        if !(self.locked_from..self.locked_until).contains(&now) {
            return Ok(());
        }
        let rest = u32::try_from(self.locked_until - now).unwrap_or(u32::MAX);
        Err(FactorError::Locked { retry_after_secs: rest })
    }

    fn note(&mut self, checked: &Result<(), FactorError>, now: u64) {
        match checked {
            Ok(()) => *self = Self::default(),
            Err(FactorError::Wrong) => {
                self.wrong += 1;
                if self.wrong >= limit::TOTP_WRONG_MAX {
                    let secs =
                        limit::TOTP_LOCK_SECS.saturating_mul(1 << self.locks.min(16)).min(limit::TOTP_LOCK_SECS_MAX);
                    (self.locked_from, self.locked_until) = (now, now.saturating_add(secs));
                    (self.wrong, self.locks) = (0, self.locks.saturating_add(1));
                }
            }
            Err(_) => {}
        }
    }
}
