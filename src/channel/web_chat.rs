//! `[[web_chats]]`: sites whose pages have a chat with an agent. A site is a channel that the daemon keeps itself.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use agentsvc_api::Api;
use agentsvc_api::widget::hub::WebHub;
use agentsvc_api::widget::service::{Site, WebChats};
use agentsvc_components::channel::rules::InstanceRules;
use agentsvc_components::manifest::channel::{ChannelOverrides, DmPolicy, GroupPolicy};
use agentsvc_systems::kernel::record::{hex, unhex};
use parking_lot::RwLock;
use reqwest::Url;
use ring::hmac;

use super::config::{SidecarChannel, agent_name, any_text, is_channel_name};
use crate::kernel::config::{Reader, table};
use crate::kernel::disk;

/// Sites that a configuration may have.
const SITES_MAX: usize = 32;
/// Origins of one site.
const ORIGINS_MAX: usize = 64;
/// Kind of the platform.
pub(super) const TYPE: &str = "web_chat";
/// What tells the tokens of visitors, and those of sites that name none.
const KEY_FILE: &str = "web_chat.key";
const KEY_BYTES: usize = 32;

table! {
    /// `[[web_chats]]`.
    pub struct WebChat {
        /// Name of the agent that answers.
        agent: Box<str> => text(agent_name).example("assistant").protected(),
        /// Origins of the pages that may use the chat.
        allowed_origins: Vec<Box<str>> => list(origin).example("[\"https://shop.example\"]").protected(),
        /// Public token for `data-token` of the script, 8 to 64 letters, digits, `-` or `_`. Default: one that the daemon makes
        /// from the name; see `GET /api/web-chats`.
        token: Box<str> => text(site_token).example("shop-2026").protected(),
        /// Heading of the chat.
        title: Box<str> = "Chat".into() => text(short_text).example("Support").protected(),
        /// Text before the first message.
        greeting: Box<str> => text(greeting).example("How can I help?").protected(),
        /// Colour as `#rrggbb`.
        colour: Box<str> => text(colour).example("#2457d6").protected(),
        /// Colours of the chat; `auto` follows the visitor's system.
        theme: Box<str> = "auto".into() => one_of(themes).example("dark").protected(),
        /// Side of the page.
        position: Box<str> = "right".into() => one_of(positions).example("left").protected(),
        /// Messages per minute that one visitor may send.
        rate_limit_per_visitor: u32 = 10 => integer(1..=60).example("5").protected(),
        /// Messages, and new visitors, per minute of one address.
        rate_limit_per_address: u32 = 60 => integer(1..=10_000).example("30").protected(),
        /// Messages per minute of all visitors.
        rate_limit_per_minute: u32 = 300 => integer(1..=100_000).example("100").protected(),
        /// Pages that may have the chat open at once.
        max_streams: usize = 500 => integer(1..=5_000).example("100").protected(),
    }
}

/// The sites of the configuration in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfiguredSites(pub BTreeMap<Box<str>, WebChat>);

fn themes() -> Vec<&'static str> {
    vec!["auto", "light", "dark"]
}

fn positions() -> Vec<&'static str> {
    vec!["right", "left"]
}

/// An origin as browsers write it.
fn origin(text: &str) -> Result<Box<str>, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let written = url.map(|url| url.origin().ascii_serialization());
    match written {
        Some(written) if written == text => Ok(text.into()),
        Some(written) => Err(format!("must be origins without a path or a default port, such as \"{written}\"")),
        None => Err("must be origins such as \"https://shop.example\"".to_owned()),
    }
}

fn site_token(text: &str) -> Result<Box<str>, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if (8..=64).contains(&text.len()) && text.chars().all(fits) {
        Ok(text.into())
    } else {
        Err("must have 8 to 64 letters, digits, `-` or `_`".to_owned())
    }
}

fn short_text(text: &str) -> Result<Box<str>, String> {
    if text.chars().count() > 80 { Err("must have at most 80 characters".to_owned()) } else { any_text(text) }
}

fn greeting(text: &str) -> Result<Box<str>, String> {
    if text.chars().count() > 1_000 { Err("must have at most 1000 characters".to_owned()) } else { Ok(text.into()) }
}

fn colour(text: &str) -> Result<Box<str>, String> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6);
    if digits.is_some_and(|digits| digits.chars().all(|c| c.is_ascii_hexdigit())) {
        Ok(text.into())
    } else {
        Err("must be a colour such as \"#2457d6\"".to_owned())
    }
}

/// Notes problems of sites beside their values.
pub(crate) fn note_sites(
    sites: &BTreeMap<Box<str>, WebChat>,
    channels: &BTreeMap<Box<str>, Arc<SidecarChannel>>,
    reader: &mut Reader<'_, '_>,
) {
    if sites.len() > SITES_MAX {
        reader.problem("web_chats", format!("must be at most {SITES_MAX} sites"));
    }
    let mut tokens: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, site) in sites {
        let path = ["web_chats", name];
        if !is_channel_name(name) {
            let text = "the name must have 1 to 64 letters, digits, `-`, `_` or `.`, a letter or digit first";
            reader.problem_at(&path, text.to_owned());
        } else if channels.contains_key(name) {
            reader.problem_at(&path, "one of `sidecar_channels` has this name; rename one".to_owned());
        }
        if site.agent.is_empty() {
            reader.problem_at(&path, "needs `agent`".to_owned());
        }
        if site.allowed_origins.is_empty() || site.allowed_origins.len() > ORIGINS_MAX {
            reader.problem_at(&path, format!("`allowed_origins` must have 1 to {ORIGINS_MAX} items"));
        }
        if let Some(other) = tokens.insert(&site.token, name).filter(|_| !site.token.is_empty()) {
            reader.problem_at(&path, format!("`token` is that of {other}"));
        }
    }
}

/// What the world is told of a site: visitors are strangers who are answered, and give no commands.
pub(super) fn rules(name: &str, site: &WebChat) -> InstanceRules {
    InstanceRules {
        name: name.into(),
        channel_type: TYPE.into(),
        agent: Some(site.agent.clone()),
        overrides: ChannelOverrides {
            dm_policy: Some(DmPolicy::Respond),
            group_policy: Some(GroupPolicy::Ignore),
            disable_commands: Some(true),
            ..ChannelOverrides::default()
        },
        suppress_errors: true,
        keeps_messages: true,
        ..InstanceRules::default()
    }
}

type Sites = BTreeMap<Box<str>, Arc<Site>>;

/// The sites in force.
#[derive(Default)]
pub(super) struct SiteBook(RwLock<Book>);

#[derive(Default)]
struct Book {
    /// Those of the configuration, by name.
    by_name: Sites,
    /// Those that the world knows: their pages may call.
    open: Sites,
    key: Option<hmac::Key>,
}

impl SiteBook {
    /// Takes the sites of the configuration over. Blocks on the disk.
    pub(super) fn apply(&self, configured: &ConfiguredSites, home: &Path) {
        let known = self.0.read().key.clone();
        let key = match known {
            Some(key) => Some(key),
            None if configured.0.is_empty() => None,
            None => key_of(&home.join(KEY_FILE)).inspect_err(|why| tracing::error!(%why, "web chats have no key")).ok(),
        };
        let sites =
            configured.0.iter().filter_map(|(name, site)| Some((name.clone(), made(name, site, key.as_ref()?))));
        let by_name = sites.collect();
        let mut book = self.0.write();
        (book.by_name, book.key) = (by_name, key);
    }

    /// Lets the pages of the sites in, which the world knows now. Pages of a site that has changed come back by themselves.
    pub(super) fn open(&self, api: &Api) {
        let (before, open) = {
            let mut book = self.0.write();
            let open = book.by_name.clone();
            (std::mem::replace(&mut book.open, open.clone()), open)
        };
        let origins = open.values().map(|site| (site.token.clone(), site.allowed_origins.clone()));
        api.access.sites.set(origins.collect::<HashMap<_, _>>());
        let hub = api.services.state::<WebHub>();
        for name in before.iter().filter(|(name, site)| open.get(*name) != Some(*site)).map(|(name, _)| name) {
            hub.close(name);
        }
    }

    /// Is there a site of this name?
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.read().by_name.contains_key(name)
    }
}

impl WebChats for SiteBook {
    fn list(&self) -> Vec<Arc<Site>> {
        self.0.read().open.values().cloned().collect()
    }

    fn site(&self, token: &str) -> Option<Arc<Site>> {
        self.0.read().open.values().find(|site| *site.token == *token).cloned()
    }

    fn new_visitor(&self, site: &Site) -> Option<String> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let visitor = hex(&random);
        let tag = hmac::sign(self.0.read().key.as_ref()?, &signed("visitor", &site.name, &visitor));
        Some(format!("{visitor}.{}", hex(tag.as_ref())))
    }

    fn visitor(&self, site: &Site, token: &str) -> Option<Box<str>> {
        let (visitor, tag) = token.split_once('.').filter(|(visitor, tag)| visitor.len() == 32 && tag.len() == 64)?;
        let tag = unhex(tag.as_bytes())?;
        let signed = signed("visitor", &site.name, visitor);
        hmac::verify(self.0.read().key.as_ref()?, &signed, &tag).ok().map(|()| visitor.into())
    }
}

/// A site with its token.
fn made(name: &str, site: &WebChat, key: &hmac::Key) -> Arc<Site> {
    let token = match site.token.is_empty() {
        true => hex(&hmac::sign(key, &signed("site", name, "")).as_ref()[..16]).into(),
        false => site.token.clone(),
    };
    Arc::new(Site {
        name: name.into(),
        token,
        agent: site.agent.clone(),
        allowed_origins: site.allowed_origins.clone(),
        title: site.title.clone(),
        greeting: site.greeting.clone(),
        colour: site.colour.clone(),
        theme: site.theme.clone(),
        position: site.position.clone(),
        per_visitor: site.rate_limit_per_visitor,
        per_address: site.rate_limit_per_address,
        per_minute: site.rate_limit_per_minute,
        streams_max: site.max_streams,
    })
}

/// What is signed: no name of a site and no visitor has a NUL.
fn signed(what: &str, site: &str, visitor: &str) -> Vec<u8> {
    format!("{what}\0{site}\0{visitor}").into_bytes()
}

/// The key of this home, made when there is none.
fn key_of(path: &Path) -> Result<hmac::Key, String> {
    let read = disk::there(disk::read_small(path, KEY_BYTES as u64)).map_err(|error| error.to_string())?;
    let bytes = match read.filter(|bytes| bytes.len() == KEY_BYTES) {
        Some(bytes) => bytes,
        None => {
            let mut fresh = vec![0; KEY_BYTES];
            getrandom::fill(&mut fresh).map_err(|error| error.to_string())?;
            disk::replace(path, &fresh).map_err(|error| error.to_string())?;
            fresh
        }
    };
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Document};

    const SITE: &str = "[[web_chats]]\nname = \"shop\"\nagent = \"a\"\nallowed_origins = [\"https://shop.example\"]\n";

    #[test]
    fn a_site_is_read_and_mistakes_are_named() {
        let config = Config::parse(SITE, "c".as_ref()).unwrap().config;
        assert_eq!((config.web_chats["shop"].rate_limit_per_visitor, &*config.web_chats["shop"].title), (10, "Chat"));
        for (text, said) in [
            (SITE.replace("agent = \"a\"\n", ""), "needs `agent`"),
            (SITE.replace("https://shop.example", "shop.example"), "must be origins such as"),
            (SITE.replace("shop.example\"", "shop.example/\""), "such as \"https://shop.example\""),
            (SITE.replace("shop.example\"", "Shop.example:443\""), "such as \"https://shop.example\""),
            (SITE.replace("[\"https://shop.example\"]", "[\"*\"]"), "must be origins such as"),
            (SITE.replace("[\"https://shop.example\"]", "[]"), "1 to 64 items"),
            (format!("{SITE}token = \"short\"\n"), "8 to 64 letters"),
            (format!("{SITE}colour = \"red\"\n"), "a colour such as"),
            (format!("{SITE}theme = \"pink\"\n"), "must be one of"),
            (format!("{SITE}[[sidecar_channels]]\nname = \"shop\"\ncommand = \"x\"\n"), "rename one"),
            (
                format!("{SITE}token = \"same-token\"\n{}token = \"same-token\"\n", SITE.replace("shop\"", "b\"")),
                "is that of",
            ),
        ] {
            let error = Config::parse(&text, "c".as_ref()).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_visitors_token_is_of_one_site_and_cannot_be_made_up() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"k");
        let site = |name: &str| made(name, &WebChat::default(), &key);
        let book = SiteBook(RwLock::new(Book { key: Some(key.clone()), ..Book::default() }));
        let (shop, other) = (site("shop"), site("other"));
        assert!(shop.token != other.token && shop.token.len() == 32);
        let token = book.new_visitor(&shop).unwrap();
        assert_eq!(book.visitor(&shop, &token).as_deref(), Some(&token[..32]));
        assert_eq!(book.visitor(&other, &token), None);
        let forged = format!("{}{}", "0".repeat(32), &token[32..]);
        for wrong in ["", ".", &token[..96], &forged, &token.replace('.', "")] {
            assert_eq!(book.visitor(&shop, wrong), None, "{wrong}");
        }
        assert_ne!(book.new_visitor(&shop).unwrap(), token);
    }

    #[test]
    fn the_key_stays() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(KEY_FILE);
        let tag = |key: &hmac::Key| hmac::sign(key, b"x").as_ref().to_vec();
        let first = key_of(&path).unwrap();
        assert_eq!(tag(&first), tag(&key_of(&path).unwrap()));
    }
}
