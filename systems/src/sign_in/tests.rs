//! Sessions of people.

use agentsvc_components::RefusalKind;
use agentsvc_components::kernel::id::KeyId;
use agentsvc_components::kernel::scope::Role;
use agentsvc_components::people::User;
use agentsvc_components::sign_in::Profile;

use super::*;
use crate::kernel::entities::{Get, List};
use crate::people::{
    ConfiguredUser, CreateUser, Identity, ListGrants, NoteKeyUse, SetConfiguredUsers, UpdateUser, UserFields, UserView,
};
use crate::testing::TestWorld;

const ISSUER: &str = "https://id.example";

fn identity(subject: &str, email: Option<&str>, may_join: Option<Role>) -> Identity {
    Identity { issuer: ISSUER.into(), subject: subject.into(), email: email.map(str::to_owned), may_join }
}

fn sign_in(identity: Identity) -> SignIn {
    let profile = Profile { provider: "id".into(), subject: identity.subject.as_str().into(), ..Profile::default() };
    SignIn { who: Who::Identity(identity), profile, hash: [7; 32], client: "127.0.0.1".into(), lasts_ms: 60_000 }
}

fn listed(world: &mut TestWorld) -> Vec<SignInView> {
    world.ask(List::<SignInView> { limit: 100, ..List::default() }).unwrap().items
}

fn create(world: &mut TestWorld, name: &str, role: Role, email: Option<&str>) -> UserView {
    let channel_bindings = email.map(|email| vec![("email".to_owned(), email.to_owned())]);
    world.ask(CreateUser(UserFields { name: Some(name.into()), role: Some(role), channel_bindings })).unwrap()
}

#[test]
fn an_account_is_the_user_whom_it_was_before_or_whom_its_address_names() {
    let mut world = TestWorld::new();
    let ann = create(&mut world, "ann@example.com", Role::Admin, None).id;
    let bob = create(&mut world, "bob", Role::Viewer, Some("bob@example.com")).id;
    let of = |world: &mut TestWorld, it| world.ask(sign_in(it)).map(|done| (done.session.session.user, done.role));
    assert_eq!(of(&mut world, identity("1", Some("ann@example.com"), None)).unwrap(), (Some(ann), Role::Admin));
    assert_eq!(of(&mut world, identity("2", Some("bob@example.com"), None)).unwrap(), (Some(bob), Role::Viewer));
    // The address changed, the account did not.
    assert_eq!(of(&mut world, identity("1", Some("bob@example.com"), None)).unwrap().0, Some(ann));
    assert_eq!(of(&mut world, identity("2", None, None)).unwrap().0, Some(bob));
    // The address was given to someone else.
    let refused = of(&mut world, identity("3", Some("ann@example.com"), Some(Role::User))).unwrap_err();
    assert_eq!(refused.code, Some(crate::people::error_codes::IDENTITY_TAKEN));
    // Another provider knows the same person.
    let other = Identity { issuer: "https://other.example".into(), ..identity("9", Some("ann@example.com"), None) };
    assert_eq!(of(&mut world, other).unwrap().0, Some(ann));
    world.restart();
    assert_eq!(of(&mut world, identity("1", None, None)).unwrap().0, Some(ann));
}

#[test]
fn strangers_join_where_their_domain_is_allowed_and_as_long_as_it_is() {
    let mut world = TestWorld::new();
    let refused = world.ask(sign_in(identity("1", Some("eve@evil.example"), None))).unwrap_err();
    assert_eq!(
        (refused.kind, refused.code),
        (RefusalKind::Forbidden, Some(crate::people::error_codes::SIGN_IN_NOT_ALLOWED))
    );
    assert!(world.ask(sign_in(identity("1", None, Some(Role::User)))).is_err(), "without an address");
    assert!(listed(&mut world).is_empty());
    let joined = world.ask(sign_in(identity("1", Some("eve@example.com"), Some(Role::User)))).unwrap();
    assert_eq!((&*joined.session.user_name, joined.role), ("eve@example.com", Role::User));
    let user = joined.session.session.user.unwrap();
    assert!(world.ask(Get::<UserView>(user)).unwrap().user.by_sign_in);
    assert!(world.ask(sign_in(identity("1", Some("eve@example.com"), None))).is_err(), "no longer allowed");
    // The configuration names them now.
    let named = ConfiguredUser {
        name: "eve@example.com".into(),
        role: Role::Admin,
        channel_bindings: Vec::new(),
        key_hash: None,
    };
    world.ask(SetConfiguredUsers(vec![named])).unwrap();
    let again = world.ask(sign_in(identity("1", Some("eve@example.com"), None))).unwrap();
    assert_eq!((again.session.session.user, again.role), (Some(user), Role::Admin));
    let by_name = SignIn { who: Who::Configured("eve@example.com".into()), ..sign_in(identity("x", None, None)) };
    assert_eq!(world.ask(by_name).unwrap().session.session.user, Some(user));
    let unknown = SignIn { who: Who::Configured("bob".into()), ..sign_in(identity("x", None, None)) };
    assert_eq!(world.ask(unknown).unwrap_err().kind, RefusalKind::NotFound);
}

#[test]
fn bad_accounts_change_nothing() {
    let mut world = TestWorld::new();
    let long = "x".repeat(257);
    for (it, field) in [
        (identity("", Some("a@example.com"), Some(Role::User)), "subject"),
        (identity(&long, Some("a@example.com"), Some(Role::User)), "subject"),
        (identity("a\n", Some("a@example.com"), Some(Role::User)), "subject"),
        (identity("1", Some(&long), Some(Role::User)), "name"),
        (Identity { issuer: String::new(), ..identity("1", Some("a@example.com"), Some(Role::User)) }, "issuer"),
    ] {
        assert_eq!(world.ask(sign_in(it)).unwrap_err().field.as_deref(), Some(field));
    }
    let never = SignIn { lasts_ms: 0, ..sign_in(identity("1", Some("a@example.com"), Some(Role::User))) };
    assert!(world.ask(never).is_err());
    assert!(world.ask(List::<UserView> { limit: 10, ..List::default() }).unwrap().items.is_empty());
}

#[test]
fn sessions_do_what_their_user_may_do_now_and_end_with_them() {
    let mut world = TestWorld::new();
    let joined = world.ask(sign_in(identity("1", Some("eve@example.com"), Some(Role::User)))).unwrap().session;
    let grants = world.ask(ListGrants).unwrap();
    assert_eq!((grants.len(), grants[0].role, grants[0].is_session), (1, Role::User, true));
    let (id, user) = (joined.id, joined.session.user.unwrap());
    world.ask(UpdateUser { user, fields: UserFields { role: Some(Role::Viewer), ..UserFields::default() } }).unwrap();
    assert_eq!(world.ask(ListGrants).unwrap()[0].role, Role::Viewer);
    let at = world.now.plus_ms(5);
    world.ask(NoteKeyUse { key: KeyId(id.0), at }).unwrap();
    assert_eq!(listed(&mut world)[0].session.used_at, Some(at));
    world.ask(Remove::<SignInSession>(id)).unwrap();
    assert!(world.ask(ListGrants).unwrap().is_empty());
    world.ask(sign_in(identity("1", Some("eve@example.com"), Some(Role::User)))).unwrap();
    world.ask(Remove::<User>(user)).unwrap();
    assert!(listed(&mut world).is_empty() && world.ask(ListGrants).unwrap().is_empty());
}

fn beat(world: &mut TestWorld, ms: i64) {
    world.now = world.now.plus_ms(ms);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
}

#[test]
fn sessions_expire_and_the_oldest_of_a_user_end_first() {
    let mut world = TestWorld::new();
    let first = world.ask(sign_in(identity("1", Some("eve@example.com"), Some(Role::User)))).unwrap().session.id;
    for _ in 0..limits::USER_SIGN_INS_MAX {
        world.ask(sign_in(identity("1", Some("eve@example.com"), Some(Role::User)))).unwrap();
    }
    let all = listed(&mut world);
    assert_eq!(all.len(), limits::USER_SIGN_INS_MAX);
    assert!(all.iter().all(|view| view.id != first));
    beat(&mut world, 59_000);
    assert_eq!(listed(&mut world).len(), limits::USER_SIGN_INS_MAX);
    beat(&mut world, 2_000);
    assert!(listed(&mut world).is_empty());
}
