//! The second factor in a vault on disk, with a clock that the tests move.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agentsvc_components::{Refusal, Timestamp};

use super::*;
use crate::kernel::vault::KeySource;

const CLIENT: &str = "127.0.0.1 key:1";
const OTHER: &str = "127.0.0.1 key:2";
const ENFORCED: TotpSettings = TotpSettings { enforced: true, grace: Duration::ZERO };

/// Takes every entry.
fn noted() -> Result<(), Refusal> {
    Ok(())
}

/// A home with a clock.
struct Rig {
    dir: tempfile::TempDir,
    seconds: Arc<AtomicU64>,
    settings: TotpSettings,
    totp: Totp,
}

fn totp(dir: &Path, seconds: &Arc<AtomicU64>, settings: TotpSettings) -> Totp {
    let (wall, running) = (Arc::clone(seconds), Arc::clone(seconds));
    let clock = Clock {
        wall: Arc::new(move || Timestamp(wall.load(Ordering::Relaxed) as i64 * 1_000)),
        running: Arc::new(move || Duration::from_secs(running.load(Ordering::Relaxed))),
    };
    Totp::new(Vault::new(dir.join("vault"), KeySource::File), settings, clock)
}

impl Rig {
    fn with(settings: TotpSettings) -> Self {
        let (dir, seconds) = (tempfile::tempdir().unwrap(), Arc::new(AtomicU64::new(1_800_000_000)));
        let totp = totp(dir.path(), &seconds, settings);
        Self { dir, seconds, settings, totp }
    }

    /// With a confirmed secret, whose recovery codes come with it.
    fn confirmed(settings: TotpSettings) -> (Self, Vec<String>) {
        let mut rig = Self::with(settings);
        let fresh = rig.totp.setup(None, &noted).unwrap();
        rig.totp.confirm(&rig.pending_code(), &noted).unwrap();
        rig.pass(30);
        (rig, fresh.recovery_codes)
    }

    fn pass(&mut self, seconds: u64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    fn restart(&mut self) {
        self.totp = totp(self.dir.path(), &self.seconds, self.settings);
    }

    fn code_of(&self, enrolment: Option<Enrolment>) -> String {
        enrolment.unwrap().secret().code(self.seconds.load(Ordering::Relaxed) / 30)
    }

    /// The code of this moment.
    fn code(&self) -> String {
        self.code_of(self.totp.load().unwrap().active)
    }

    fn pending_code(&self) -> String {
        self.code_of(self.totp.load().unwrap().pending)
    }

    /// Six digits that are no code now.
    fn wrong(&self) -> String {
        let state = self.totp.load().unwrap();
        let enrolment = state.active.or(state.pending).unwrap();
        let step = self.seconds.load(Ordering::Relaxed) / 30;
        let codes = [step - 1, step, step + 1].map(|step| enrolment.secret().code(step));
        let wrong = (0..4).map(|n| format!("{n:06}")).find(|text| codes.iter().all(|code| text != code));
        wrong.unwrap()
    }

    fn status(&self) -> (bool, bool, usize) {
        let TotpStatus { enrolled, confirmed, remaining_recovery_codes, .. } = self.totp.status().unwrap();
        (enrolled, confirmed, remaining_recovery_codes)
    }
}

#[test]
fn setup_confirm_use_revoke() {
    let mut rig = Rig::with(ENFORCED);
    assert_eq!(rig.status(), (false, false, 0));
    assert!(matches!(rig.totp.confirm("123456", &noted), Err(FactorError::NotEnrolled(_))));
    assert!(matches!(rig.totp.revoke("123456", &noted), Err(FactorError::NotEnrolled(_))));
    assert!(matches!(rig.totp.allow(CLIENT, "api", Some("123456")), Err(FactorError::NotEnrolled(_))));
    let first = rig.totp.setup(None, &noted).unwrap();
    assert_eq!(rig.status(), (true, false, 10));
    // It can be set up again until it is confirmed.
    let second = rig.totp.setup(None, &noted).unwrap();
    assert!(first.base32 != second.base32 && second.uri.contains(&second.base32));
    assert!(matches!(rig.totp.allow(CLIENT, "api", Some(&rig.pending_code())), Err(FactorError::NotEnrolled(_))));
    assert_eq!(rig.totp.confirm(&rig.wrong(), &noted), Err(FactorError::Wrong));
    rig.totp.confirm(&rig.pending_code(), &noted).unwrap();
    assert_eq!(rig.status(), (true, true, 10));
    assert_eq!(rig.totp.allow(CLIENT, "api", Some(&rig.code())), Err(FactorError::Wrong), "it confirmed already");
    rig.pass(30);
    assert_eq!(rig.totp.allow(CLIENT, "api", None), Err(FactorError::Missing));
    assert!(matches!(rig.totp.allow(CLIENT, "api", Some("12345")), Err(FactorError::Malformed(_))));
    rig.totp.allow(CLIENT, "api", Some(&rig.code())).unwrap();
    rig.pass(30);
    rig.totp.revoke(&rig.code(), &noted).unwrap();
    assert_eq!(rig.status(), (false, false, 0));
}

#[test]
fn a_code_counts_once_also_after_a_restart() {
    let (mut rig, _) = Rig::confirmed(ENFORCED);
    let code = rig.code();
    rig.totp.allow(CLIENT, "api", Some(&code)).unwrap();
    assert_eq!(rig.totp.allow(CLIENT, "api", Some(&code)), Err(FactorError::Wrong));
    rig.restart();
    assert_eq!(rig.totp.allow(OTHER, "api", Some(&code)), Err(FactorError::Wrong));
    assert_eq!(rig.totp.revoke(&code, &noted), Err(FactorError::Wrong));
    rig.pass(30);
    rig.totp.allow(CLIENT, "api", Some(&rig.code())).unwrap();
}

#[test]
fn a_recovery_code_revokes_and_sets_up_once_and_approves_never() {
    let (mut rig, codes) = Rig::confirmed(ENFORCED);
    assert!(matches!(rig.totp.allow(CLIENT, "api", Some(&codes[0])), Err(FactorError::Malformed(_))));
    rig.totp.setup(Some(&codes[0]), &noted).unwrap();
    assert_eq!(rig.status(), (true, true, 9), "the old secret counts until the new one is confirmed");
    assert_eq!(rig.totp.setup(Some(&codes[0]), &noted).err(), Some(FactorError::Wrong));
    rig.totp.allow(CLIENT, "api", Some(&rig.code())).unwrap();
    rig.restart();
    assert_eq!(rig.totp.revoke(&codes[0], &noted), Err(FactorError::Wrong));
    rig.totp.revoke(&codes[1], &noted).unwrap();
    assert_eq!(rig.status(), (false, false, 0));
}

#[test]
fn a_new_secret_beside_a_confirmed_one_needs_a_code() {
    let (mut rig, old_codes) = Rig::confirmed(ENFORCED);
    assert_eq!(rig.totp.setup(None, &noted).err(), Some(FactorError::Missing));
    assert_eq!(rig.totp.setup(Some(&rig.wrong()), &noted).err(), Some(FactorError::Wrong));
    assert!(rig.totp.load().unwrap().pending.is_none());
    rig.totp.setup(Some(&rig.code()), &noted).unwrap();
    rig.pass(30);
    rig.totp.allow(CLIENT, "api", Some(&rig.code())).unwrap();
    rig.totp.confirm(&rig.pending_code(), &noted).unwrap();
    assert_eq!(
        rig.totp.revoke(&old_codes[0], &noted),
        Err(FactorError::Wrong),
        "the old codes went with the old secret"
    );
    rig.pass(30);
    rig.totp.revoke(&rig.code(), &noted).unwrap();
}

#[test]
fn five_wrong_codes_lock_for_a_minute_and_then_for_longer() {
    let (mut rig, _) = Rig::confirmed(ENFORCED);
    for wait in [60, 120, 240] {
        for _ in 0..5 {
            assert_eq!(rig.totp.allow(CLIENT, "api", Some(&rig.wrong())), Err(FactorError::Wrong));
        }
        rig.restart();
        let locked = FactorError::Locked { retry_after_secs: wait };
        assert_eq!(rig.totp.allow(OTHER, "api", Some(&rig.code())), Err(locked), "also a right one");
        rig.pass(u64::from(wait) - 1);
        let locked = FactorError::Locked { retry_after_secs: 1 };
        assert_eq!(rig.totp.allow(CLIENT, "api", Some(&rig.wrong())), Err(locked));
        rig.pass(1);
    }
    rig.totp.allow(CLIENT, "api", Some(&rig.code())).unwrap();
    for _ in 0..4 {
        assert_eq!(rig.totp.allow(CLIENT, "api", Some(&rig.wrong())), Err(FactorError::Wrong));
    }
    rig.pass(30);
    rig.totp.allow(CLIENT, "api", Some(&rig.code())).unwrap();
}

#[test]
fn a_clock_that_is_set_back_does_not_lock_for_longer() {
    let (mut rig, _) = Rig::confirmed(ENFORCED);
    rig.pass(10_000_000);
    for _ in 0..5 {
        assert_eq!(rig.totp.allow(CLIENT, "api", Some(&rig.wrong())), Err(FactorError::Wrong));
    }
    rig.seconds.fetch_sub(9_999_000, Ordering::Relaxed);
    rig.totp.allow(CLIENT, "api", Some(&rig.code())).unwrap();
}

#[test]
fn the_grace_period_is_of_one_key_at_one_address_and_ends() {
    let (mut rig, _) = Rig::confirmed(TotpSettings { enforced: true, grace: Duration::from_secs(100) });
    rig.totp.allow(CLIENT, "api", Some(&rig.code())).unwrap();
    rig.totp.allow(CLIENT, "api", None).unwrap();
    assert_eq!(rig.totp.allow(OTHER, "api", None), Err(FactorError::Missing));
    rig.pass(99);
    rig.totp.allow(CLIENT, "api", None).unwrap();
    rig.pass(1);
    assert_eq!(rig.totp.allow(CLIENT, "api", None), Err(FactorError::Missing));
    rig.totp.allow(CLIENT, "api", Some(&rig.code())).unwrap();
    rig.restart();
    assert_eq!(rig.totp.allow(CLIENT, "api", None), Err(FactorError::Missing), "nor over a restart");
}

#[test]
fn a_secret_that_was_revoked_ends_every_grace() {
    let (mut rig, codes) = Rig::confirmed(TotpSettings { enforced: true, grace: Duration::from_secs(100) });
    rig.totp.allow(CLIENT, "api", Some(&rig.code())).unwrap();
    rig.pass(1);
    rig.totp.revoke(&codes[0], &noted).unwrap();
    assert_eq!(rig.totp.allow(CLIENT, "api", None), Err(FactorError::Missing));
}

#[test]
fn without_enforcement_no_code_is_needed_and_no_vault_made() {
    let rig = Rig::with(TotpSettings::default());
    rig.totp.allow(CLIENT, "api", None).unwrap();
    assert_eq!(rig.status(), (false, false, 0));
    assert!(!rig.dir.path().join("vault").exists());
}

#[test]
fn a_vault_that_does_not_open_allows_nothing_and_loses_nothing() {
    let (rig, _) = Rig::confirmed(ENFORCED);
    let path = rig.dir.path().join("vault/totp.sealed");
    let whole = std::fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    assert_eq!(rig.totp.allow(CLIENT, "api", Some("123456")), Err(FactorError::Unavailable));
    assert_eq!(rig.totp.setup(None, &noted).err(), Some(FactorError::Unavailable));
    assert_eq!(rig.totp.status(), Err(FactorError::Unavailable));
    assert_eq!(std::fs::read(&path).unwrap(), damaged);
    std::fs::write(&path, whole).unwrap();
    rig.totp.allow(CLIENT, "api", Some(&rig.code())).unwrap();
}

#[test]
fn the_code_of_a_sign_in_is_needed_within_the_grace_of_approvals_and_begins_none() {
    let (mut rig, _) = Rig::confirmed(TotpSettings { enforced: true, grace: Duration::from_secs(100) });
    assert_eq!(rig.totp.verify("ann", None), Err(FactorError::Missing));
    assert_eq!(rig.totp.verify("ann", Some(&rig.wrong())), Err(FactorError::Wrong));
    rig.totp.verify("ann", Some(&rig.code())).unwrap();
    assert_eq!(rig.totp.verify("ann", Some(&rig.code())), Err(FactorError::Wrong), "it was used");
    assert_eq!(rig.totp.allow(CLIENT, "api", None), Err(FactorError::Missing), "no grace began");
    rig.pass(30);
    rig.totp.allow(CLIENT, "api", Some(&rig.code())).unwrap();
    rig.totp.allow(CLIENT, "api", None).unwrap();
    assert_eq!(rig.totp.verify("ann", None), Err(FactorError::Missing), "the grace is for approvals");
    Rig::with(TotpSettings::default()).totp.verify("ann", None).unwrap();
}

#[test]
fn the_grace_of_so_many_clients_is_remembered_and_others_need_a_code_each_time() {
    let (mut rig, _) = Rig::confirmed(TotpSettings { enforced: true, grace: Duration::from_secs(100) });
    let until = Duration::from_secs(rig.seconds.load(Ordering::Relaxed) + 100);
    let others = (0..limit::TOTP_GRACES_MAX).map(|key| (Box::from(format!("10.1.0.1 key:{key}")), until));
    rig.totp.graces.lock().extend(others);
    rig.totp.allow(CLIENT, "api", Some(&rig.code())).unwrap();
    assert_eq!(rig.totp.allow(CLIENT, "api", None), Err(FactorError::Missing));
    assert_eq!(rig.totp.graces.lock().len(), limit::TOTP_GRACES_MAX);
    rig.pass(100);
    rig.totp.allow(CLIENT, "api", Some(&rig.code())).unwrap();
    rig.totp.allow(CLIENT, "api", None).unwrap();
    assert_eq!(rig.totp.graces.lock().len(), 1, "those that have ended are forgotten");
}

#[test]
fn what_cannot_be_put_on_record_is_not_done_and_uses_no_code_up() {
    let (rig, codes) = Rig::confirmed(ENFORCED);
    let stored = rig.dir.path().join("vault/totp.sealed");
    let refused = || Err::<(), _>(Refusal::busy("the daemon is loading; try again in a moment", 1));
    let unrecorded = FactorError::Unrecorded(refused().unwrap_err());
    let before = std::fs::read(&stored).unwrap();
    assert_eq!(rig.totp.setup(Some(&codes[0]), &refused).err(), Some(unrecorded.clone()));
    assert_eq!(rig.totp.revoke(&rig.code(), &refused), Err(unrecorded.clone()));
    assert_eq!(std::fs::read(&stored).unwrap(), before, "nothing was changed");
    // The entry comes before the change, and none for a wrong code.
    let seen = std::cell::RefCell::new(Vec::new());
    let sees = || {
        seen.borrow_mut().push(std::fs::read(&stored).unwrap() == before);
        Ok::<(), Refusal>(())
    };
    rig.totp.setup(Some(&codes[0]), &sees).unwrap();
    assert_eq!(rig.totp.confirm(&rig.pending_code(), &refused), Err(unrecorded));
    assert_eq!(rig.status(), (true, true, 9), "the old secret still counts");
    assert_eq!(rig.totp.revoke(&rig.wrong(), &sees), Err(FactorError::Wrong));
    rig.totp.confirm(&rig.pending_code(), &noted).unwrap();
    assert_eq!(*seen.borrow(), [true]);
}

#[test]
fn wrong_codes_of_a_sign_in_lock_that_user_and_nobody_else() {
    let (mut rig, codes) = Rig::confirmed(ENFORCED);
    for _ in 0..5 {
        assert_eq!(rig.totp.verify("viewer", Some(&rig.wrong())), Err(FactorError::Wrong));
    }
    rig.restart();
    let locked = Err(FactorError::Locked { retry_after_secs: 60 });
    assert_eq!(rig.totp.verify("viewer", Some(&rig.code())), locked);
    rig.totp.verify("ann", Some(&rig.code())).unwrap();
    rig.pass(30);
    rig.totp.allow(CLIENT, "user viewer", Some(&rig.code())).unwrap();
    for _ in 0..5 {
        assert_eq!(rig.totp.allow(CLIENT, "user viewer", Some(&rig.wrong())), Err(FactorError::Wrong));
    }
    rig.pass(30);
    assert!(matches!(rig.totp.allow(OTHER, "user viewer", Some(&rig.code())), Err(FactorError::Locked { .. })));
    rig.totp.allow(CLIENT, "api", Some(&rig.code())).unwrap();
    for _ in 0..5 {
        assert_eq!(rig.totp.revoke(&rig.wrong(), &noted), Err(FactorError::Wrong), "a purpose of its own");
    }
    assert!(matches!(rig.totp.revoke(&codes[0], &noted), Err(FactorError::Locked { .. })));
}

#[test]
fn so_many_who_tried_are_remembered_and_those_that_are_locked_longest() {
    let (rig, _) = Rig::confirmed(ENFORCED);
    for _ in 0..5 {
        assert_eq!(rig.totp.verify("locked", Some(&rig.wrong())), Err(FactorError::Wrong));
    }
    let (mut state, wrong) = (rig.totp.load().unwrap(), rig.wrong());
    let now = rig.seconds.load(Ordering::Relaxed);
    for at in 0..2 * limit::TOTP_TRIED_MAX {
        assert_eq!(state.use_up(&wrong, Try::SignIn(&format!("user {at}")), now), Err(FactorError::Wrong));
    }
    assert!(serde_json::to_vec(&state).unwrap().len() < limit::VAULT_SECRET_BYTES_MAX);
    let locked = FactorError::Locked { retry_after_secs: 60 };
    assert_eq!(state.use_up(&rig.code(), Try::SignIn("locked"), now), Err(locked));
    rig.totp.store(&state).unwrap();
}
