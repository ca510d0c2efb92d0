//! What keys let in, and when it ends.

use super::*;

fn grant(at: u8, role: Role, expires_at: Option<Timestamp>) -> Grant {
    Grant::new(KeyId(uuid::Uuid::from_u128(at.into())), None, "n".into(), [at; 32], role, Vec::new(), expires_at, None)
}

#[test]
fn what_a_key_let_in_ends_with_the_key_and_with_what_it_may_do() {
    let directory = Directory::default();
    directory.set(vec![grant(1, Role::Admin, None), grant(2, Role::Admin, None)]);
    let (one, two) = (directory.find(&[1; 32]).unwrap(), directory.find(&[2; 32]).unwrap());
    directory.set(vec![grant(1, Role::Admin, None), grant(2, Role::Owner, None)]);
    assert!(!one.ended.is_triggered() && two.ended.is_triggered());
    directory.set(Vec::new());
    assert!(one.ended.is_triggered() && directory.find(&[1; 32]).is_none());
}

#[test]
fn what_keys_of_a_user_let_in_ends_and_the_keys_stay() {
    let directory = Directory::default();
    let user = UserId(uuid::Uuid::from_u128(7));
    let of_user = |at, role| Grant { user: Some(user), ..grant(at, role, None) };
    directory.set(vec![of_user(1, Role::User), of_user(2, Role::Admin), grant(3, Role::User, None)]);
    let before = [1, 2, 3].map(|at| directory.find(&[at; 32]).unwrap());
    directory.end_open(user);
    assert_eq!(before.each_ref().map(|grant| grant.ended.is_triggered()), [true, false, false]);
    let now = directory.find(&[1; 32]).unwrap();
    assert!(now.is_same(&before[0]) && !now.ended.is_triggered());
}

#[test]
fn an_expired_key_is_none() {
    let directory = Directory::default();
    directory.set(vec![grant(1, Role::Admin, Some(Timestamp(1)))]);
    assert!(directory.find(&[1; 32]).is_none());
    let held = directory.grants.load_full().unwrap();
    directory.sweep();
    assert!(held[&[1; 32]].ended.is_triggered());
}

#[test]
fn a_key_that_has_ended_stays_so_however_the_clock_is_set() {
    let directory = Directory::default();
    let (user, later) = (UserId(uuid::Uuid::from_u128(7)), timestamp::timestamp_now().plus_ms(3_600_000));
    let of_user = || Grant { user: Some(user), ..grant(1, Role::User, Some(later)) };
    directory.set(vec![of_user()]);
    // As the sweep does when the time is over; now the clock is set back before it.
    directory.find(&[1; 32]).unwrap().ended.trigger();
    assert!(directory.find(&[1; 32]).is_none());
    directory.end_open(user);
    assert!(directory.find(&[1; 32]).is_none(), "nothing opens it again");
    directory.set(vec![of_user(), grant(2, Role::Admin, None)]);
    assert!(directory.find(&[1; 32]).is_none() && directory.find(&[2; 32]).is_some());
}

#[tokio::test]
async fn what_a_key_let_in_ends_at_the_moment_at_which_it_expires() {
    let directory = Directory::default();
    let soon = |ms| Some(timestamp::timestamp_now().plus_ms(ms));
    directory.set(vec![grant(1, Role::Admin, soon(50)), grant(2, Role::Admin, soon(3_600_000))]);
    let (one, two) = (directory.find(&[1; 32]).unwrap(), directory.find(&[2; 32]).unwrap());
    tokio::select! {
        () = directory.expire() => unreachable!("it goes on"),
        () = one.ended.wait() => {}
    }
    assert!(!two.ended.is_triggered() && one.is_over(timestamp::timestamp_now()));
    assert!(directory.time_to_next() == EXPIRY_CHECK_PERIOD);
}

#[test]
fn a_use_is_stored_once_in_a_while() {
    let directory = Directory::default();
    directory.set(vec![grant(1, Role::Admin, None)]);
    let (one, mut uses) = (directory.find(&[1; 32]).unwrap(), directory.uses().unwrap());
    (0..3).for_each(|_| directory.used(&one, 60_000));
    assert!(uses.try_recv().is_ok() && uses.try_recv().is_err() && directory.uses().is_none());
}
