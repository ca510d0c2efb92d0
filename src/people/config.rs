//! `[[users]]`: people who use this installation, named in the configuration.

use std::collections::BTreeMap;

use agentsvc_components::kernel::scope::Role;
use agentsvc_systems::config::AGENTS_PER_USER_DEFAULT;
use agentsvc_systems::kernel::record::unhex;
use agentsvc_systems::people::{ConfiguredUser, limits};
use serde_json::{Map, Value};

use super::password;
use crate::kernel::config::{Reader, Secret, Word, table, word};

/// A hash as the first file shows it, of no key that is known.
const HASH_EXAMPLE: &str = "$sha256$0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// The same of a password.
const PASSWORD_EXAMPLE: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY";
/// What an `api_key_hash` begins with.
const HASH: &str = "$sha256$";

table! {
    /// `[[users]]`.
    pub struct UserConfig {
        /// What they may do: owner, admin, user or viewer (guest is the same).
        #[serde(serialize_with = "word")]
        role: Role = Role::User => choice(Role::WORDS).example("user").protected(),
        /// Who they are in chats: the id of the sender, by the name of a channel or its type.
        channel_bindings: Bindings => object(bindings).example("{ telegram = \"123456\" }").protected(),
        /// SHA-256 of their API key: `$sha256$` and 64 hexadecimal digits. Use a long random key, such as one of
        /// `openssl rand -hex 32`.
        api_key_hash: Secret => secret(hash).example(HASH_EXAMPLE),
        /// Hash of the password with which they sign in on the page, made by `agentsvc user hash-password`. Default: they have no
        /// password.
        password_hash: Secret => secret(password::checked).example(PASSWORD_EXAMPLE),
    }
}

table! {
    /// `[people]`: what holds for all users.
    pub struct People {
        /// Agents that one user may own, those that their agents spawned included.
        agents_per_user_max: u32 = AGENTS_PER_USER_DEFAULT => integer(1..=2_000_000).writable(),
    }
}

/// Ids of senders by channels.
pub type Bindings = BTreeMap<Box<str>, Box<str>>;

/// What the configuration in force says of users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfiguredUsers(pub BTreeMap<Box<str>, UserConfig>);

impl ConfiguredUsers {
    /// Has someone a password?
    pub(crate) fn have_passwords(&self) -> bool {
        self.0.values().any(|user| user.password_hash.is_set())
    }

    /// Is it the password of this user? Takes as long for one who has none as for the one whose hash takes longest.
    pub(crate) fn is_password(&self, name: &str, given: &str) -> bool {
        let Some((hash, is_own)) = self.compared(name) else { return false };
        password::is_right(given, hash) && is_own
    }

    /// The hash that a password is compared with, and whether it is the one of this user.
    fn compared(&self, name: &str) -> Option<(&Secret, bool)> {
        let own = self.0.get(name).map(|user| &user.password_hash).filter(|hash| hash.is_set());
        // Looked for in any case: that takes time, too.
        let all = self.0.values().map(|user| &user.password_hash).filter(|hash| hash.is_set());
        let costliest = all.max_by_key(|hash| password::cost(hash));
        own.or(costliest).map(|hash| (hash, own.is_some()))
    }

    /// The same for the world.
    pub(super) fn listed(&self) -> Vec<ConfiguredUser> {
        let bindings =
            |user: &UserConfig| user.channel_bindings.iter().map(|(of, id)| (of.to_string(), id.to_string())).collect();
        let users = self.0.iter().map(|(name, user)| ConfiguredUser {
            name: name.to_string(),
            role: user.role,
            channel_bindings: bindings(user),
            key_hash: digest(user.api_key_hash.expose()),
        });
        users.collect()
    }
}

/// Notes problems of users beside their values.
pub(crate) fn note_users(users: &BTreeMap<Box<str>, UserConfig>, reader: &mut Reader<'_, '_>) {
    if users.len() > limits::USERS_MAX {
        reader.problem("users", format!("must be at most {} users", limits::USERS_MAX));
    }
    let (mut senders, mut hashes) = (BTreeMap::new(), BTreeMap::new());
    for (name, user) in users {
        let path = ["users", name];
        let most = limits::PERSON_NAME_BYTES_MAX;
        if name.trim() != &**name || name.is_empty() || name.len() > most || name.chars().any(char::is_control) {
            let text =
                format!("the name must have 1 to {most} bytes, without control characters and spaces at its ends");
            reader.problem_at(&path, text);
        }
        for binding in &user.channel_bindings {
            if let Some(other) = senders.insert(binding, name) {
                let (channel, sender) = binding;
                reader.problem_at(&path, format!("{sender:?} of {channel:?} is already the user {other:?}"));
            }
        }
        if let Some(hash) = digest(user.api_key_hash.expose())
            && let Some(other) = hashes.insert(hash, name)
        {
            reader.problem_at(&path, format!("has the same `api_key_hash` as the user {other:?}"));
        }
    }
}

fn bindings(object: Map<String, Value>) -> Result<Bindings, String> {
    let (most, most_bytes) = (limits::USER_BINDINGS_MAX, limits::USER_BINDING_BYTES_MAX);
    if object.len() > most {
        return Err(format!("must have at most {most} entries"));
    }
    let is_word = |text: &str| (1..=most_bytes).contains(&text.len()) && !text.chars().any(char::is_control);
    let read = object.into_iter().map(|(channel, sender)| match sender {
        Value::String(sender) if is_word(&channel) && is_word(&sender) => Ok((channel.into(), sender.into())),
        _ => Err(format!(
            "must be texts of 1 to {most_bytes} bytes without control characters, such as telegram = \"123\""
        )),
    });
    read.collect()
}

fn hash(text: &str) -> Result<Secret, String> {
    if text.starts_with("$argon2") {
        return Err(format!(
            "argon2 hashes are not supported: each request would compute one. Use a long random key and {HASH}<SHA-256 in hex>"
        ));
    }
    digest(text).map(|_| Secret::new(text)).ok_or_else(|| format!("must be {HASH} and 64 hexadecimal digits"))
}

/// The SHA-256 in a hash as it is written.
fn digest(text: &str) -> Option<[u8; 32]> {
    unhex(text.strip_prefix(HASH)?.as_bytes())?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::config::read_table;

    fn user(text: &str) -> Result<UserConfig, String> {
        let read = read_table::<UserConfig>("a", &format!("[a]\n{text}"));
        read.map(|loaded| loaded.config).map_err(|error| error.to_string())
    }

    #[test]
    fn a_user_has_a_role_identities_and_a_key() {
        let hex = "0f".repeat(32);
        let read = user(&format!(
            "role = \"guest\"\nchannel_bindings = {{ telegram = \"1\" }}\napi_key_hash = \"$sha256${hex}\"\n"
        ));
        let read = read.unwrap();
        assert_eq!(read.role, Role::Viewer);
        let listed = ConfiguredUsers([("ann".into(), read)].into()).listed();
        assert_eq!(listed[0].channel_bindings, [("telegram".to_owned(), "1".to_owned())]);
        assert_eq!((listed[0].name.as_str(), listed[0].key_hash), ("ann", Some([15; 32])));
        assert_eq!(user("").unwrap().role, Role::User);
    }

    #[test]
    fn a_name_without_a_password_is_compared_with_the_hash_that_takes_longest() {
        let with = |params: &str| {
            let hash = PASSWORD_EXAMPLE.replace("m=19456,t=2", params);
            user(&format!("password_hash = \"{hash}\"")).unwrap()
        };
        let users = [
            ("ann", with("m=19456,t=2")),
            ("bob", user("").unwrap()),
            ("eve", with("m=65536,t=4")),
            ("kim", with("m=100000,t=1")),
            ("zed", with("m=8192,t=10")),
        ];
        let users = ConfiguredUsers(users.map(|(name, user)| (name.into(), user)).into());
        let compared = |name| users.compared(name).map(|(hash, is_own)| (hash.expose(), is_own));
        let of = |name: &str| users.0[name].password_hash.expose();
        for name in ["bob", "nobody", ""] {
            assert_eq!(compared(name), Some((of("eve"), false)), "{name}");
        }
        for name in ["ann", "eve", "kim", "zed"] {
            assert_eq!(compared(name), Some((of(name), true)));
        }
        assert!(ConfiguredUsers::default().compared("ann").is_none());
    }

    #[test]
    fn wrong_values_are_refused_with_their_keys() {
        for (text, key) in [
            ("role = \"emperor\"", "a.role"),
            ("api_key_hash = \"secret\"", "a.api_key_hash: must be $sha256$ and 64 hexadecimal digits"),
            ("api_key_hash = \"$argon2id$v=19$x\"", "a.api_key_hash: argon2 hashes are not supported"),
            ("password_hash = \"secret\"", "a.password_hash: must be an argon2id hash"),
            ("channel_bindings = { telegram = 1 }", "a.channel_bindings"),
            ("channel_bindings = { telegram = \"\" }", "a.channel_bindings"),
        ] {
            let error = user(text).unwrap_err();
            assert!(error.contains(key), "{error}");
        }
    }
}
