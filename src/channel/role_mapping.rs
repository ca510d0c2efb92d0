//! `[channel_role_mapping]`: what people with roles of a platform may do in paired chats.

use std::collections::BTreeMap;

use agentsvc_components::channel::rules::ChatRole;
use serde_json::{Map, Value};

use crate::kernel::config::{Reader, Word, table};

/// Tables that a configuration may have, and roles of one.
const ROLES_MAX: usize = 200;
/// Bytes of the name of a role.
const ROLE_BYTES_MAX: usize = 256;

table! {
    /// `[channel_role_mapping.<channel>]`: the role here of people with a role of the platform: owner, admin, user or viewer (guest
    /// is the same).
    pub struct RoleMapping {
        /// Of the person who created the chat (`creator`).
        creator_role: Option<ChatRole> => choice(ChatRole::WORDS).example("admin").protected(),
        /// Of owners (`owner`).
        owner_role: Option<ChatRole> => choice(ChatRole::WORDS).example("admin").protected(),
        /// Of administrators (`admin` or `administrator`).
        admin_role: Option<ChatRole> => choice(ChatRole::WORDS).example("admin").protected(),
        /// Of members (`member`).
        member_role: Option<ChatRole> => choice(ChatRole::WORDS).example("user").protected(),
        /// Of guests (`guest`).
        guest_role: Option<ChatRole> => choice(ChatRole::WORDS).example("viewer").protected(),
        /// Of other roles, by their names on the platform. The highest of a person's roles counts.
        role_map: RoleMap => object(role_map).example("{ Moderator = \"admin\" }").protected(),
    }
}

/// Roles by their names on a platform.
pub type RoleMap = BTreeMap<Box<str>, Box<str>>;

impl RoleMapping {
    /// Each role of the platform with the role here.
    fn pairs(&self) -> impl Iterator<Item = (Box<str>, ChatRole)> + '_ {
        let named = [
            ("creator", self.creator_role),
            ("owner", self.owner_role),
            ("admin", self.admin_role),
            ("administrator", self.admin_role),
            ("member", self.member_role),
            ("guest", self.guest_role),
        ];
        let named = named.into_iter().filter_map(|(name, role)| Some((name.into(), role?)));
        named.chain(self.role_map.iter().filter_map(|(name, word)| Some((name.clone(), role(word)?))))
    }
}

/// The roles of one channel: those of its name and of its type.
pub(super) fn of(
    tables: &BTreeMap<Box<str>, RoleMapping>,
    name: &str,
    channel_type: &str,
) -> Vec<(Box<str>, ChatRole)> {
    let of_type = tables.get(channel_type).filter(|_| channel_type != name);
    tables.get(name).into_iter().chain(of_type).flat_map(RoleMapping::pairs).collect()
}

/// Notes that there are too many tables.
pub(crate) fn note_roles(tables: &BTreeMap<Box<str>, RoleMapping>, reader: &mut Reader<'_, '_>) {
    if tables.len() > ROLES_MAX {
        reader.problem("channel_role_mapping", format!("must be at most {ROLES_MAX} tables"));
    }
}

fn role(word: &str) -> Option<ChatRole> {
    ChatRole::WORDS.iter().find(|(known, _)| *known == word).map(|(_, role)| *role)
}

fn role_map(object: Map<String, Value>) -> Result<RoleMap, String> {
    if object.len() > ROLES_MAX {
        return Err(format!("must have at most {ROLES_MAX} roles"));
    }
    let read = object.into_iter().map(|(name, value)| {
        if name.is_empty() || name.len() > ROLE_BYTES_MAX || name.chars().any(char::is_control) {
            return Err(format!("must have names of 1 to {ROLE_BYTES_MAX} bytes without control characters"));
        }
        match value.as_str().filter(|word| role(word).is_some()) {
            Some(word) => Ok((name.into(), word.into())),
            None => Err(format!("{name} must be owner, admin, user, viewer or guest")),
        }
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Document};

    #[test]
    fn roles_of_a_platform_become_roles_here_and_mistakes_are_named() {
        let text = "[channel_role_mapping.telegram]\nadmin_role = \"admin\"\nmember_role = \"guest\"\n\
            [channel_role_mapping.ops]\nrole_map = { Moderator = \"owner\" }\n";
        let config = Config::parse(text, "c".as_ref()).unwrap().config;
        let pair = |name: &str, role| (Box::from(name), role);
        let of_telegram =
            [pair("admin", ChatRole::Admin), pair("administrator", ChatRole::Admin), pair("member", ChatRole::Viewer)];
        assert_eq!(of(&config.channel_role_mapping, "bot", "telegram"), of_telegram);
        assert_eq!(of(&config.channel_role_mapping, "telegram", "telegram"), of_telegram, "each once");
        let both = of(&config.channel_role_mapping, "ops", "telegram");
        assert_eq!((both.len(), &both[0]), (4, &pair("Moderator", ChatRole::Owner)));
        assert!(of(&config.channel_role_mapping, "other", "slack").is_empty());
        let wrong = |keys: &str| {
            let text = format!("[channel_role_mapping.x]\n{keys}\n");
            Config::parse(&text, "c".as_ref()).unwrap_err().to_string()
        };
        assert!(wrong("admin_role = \"admn\"").contains("channel_role_mapping.x.admin_role: must be one of"));
        assert!(wrong("role_map = { A = \"boss\" }").contains("A must be owner, admin, user, viewer or guest"));
        assert!(wrong("role_map = { A = 1 }").contains("A must be owner"));
        assert!(wrong("role_map = { \"\" = \"user\" }").contains("must have names"));
        assert!(wrong("role = \"user\"").contains("channel_role_mapping.x.role: unknown key"));
    }
}
