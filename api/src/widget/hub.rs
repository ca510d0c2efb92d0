//! What happens in conversations of visitors, on its way to their open pages. What is stored is only announced here: a page reads
//! it from the world.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use agentsvc_components::TurnId;
use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::error_codes::WEB_CHAT_STREAMS;
use crate::http::api::Api;
use crate::http::error::Error;
use crate::http::metrics::MetricsText;
use crate::http::rate::ClientKey;

/// Signs that one page may be behind. More: it misses pieces of a text, which comes whole afterwards.
const BACKLOG_MAX: usize = 64;
/// Streams of one visitor. More: 429.
const VISITOR_STREAMS_MAX: usize = 8;
/// Answers whose text so far is remembered for pages that come back. More: a page gets the rest of them whole.
const WRITING_MAX: usize = 1_000;
/// Bytes of the text so far of one of them. More: likewise.
const WRITING_BYTES_MAX: usize = 64 << 10;
/// Seconds until a refused stream may be asked for again.
const RETRY_SECS: u32 = 15;

/// What open pages are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A message was stored.
    Stored,
    /// An answer is being written.
    Began(TurnId),
    /// A piece of it.
    Piece(TurnId, Arc<str>),
    /// It is over.
    Ended,
    /// The site has changed or is gone: the page comes back.
    Closed,
}

/// A site, and a visitor of it.
type Place = (Box<str>, Box<str>);

/// The open pages.
#[derive(Default)]
pub struct WebHub(Mutex<Open>);

#[derive(Default)]
struct Open {
    visitors: HashMap<Place, Visitor>,
    sites: HashMap<Box<str>, usize>,
    /// Streams of each address of a site.
    addresses: HashMap<(Box<str>, ClientKey), usize>,
    writing: HashMap<Place, Writing>,
}

/// An answer that is being written, and its text so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Writing {
    pub(super) turn: TurnId,
    pub(super) text: String,
}

struct Visitor {
    signs: broadcast::Sender<Sign>,
    streams: usize,
}

/// One open page. It counts until it is dropped.
pub(super) struct Page {
    hub: Arc<WebHub>,
    place: Place,
    address: (Box<str>, ClientKey),
    pub(super) signs: broadcast::Receiver<Sign>,
    /// What was being written when it was opened.
    pub(super) writing: Option<Writing>,
}

impl WebHub {
    /// Tells the open pages of a visitor. Never waits.
    pub fn tell(&self, site: &str, visitor: &str, sign: Sign) {
        let place: Place = (site.into(), visitor.into());
        let mut open = self.0.lock();
        open.remember(&place, &sign);
        if let Some(visitor) = open.visitors.get(&place) {
            // An error says that no page is open.
            let _ = visitor.signs.send(sign);
        }
    }

    /// Ends the streams of a site.
    pub fn close(&self, site: &str) {
        let mut open = self.0.lock();
        open.writing.retain(|place, _| *place.0 != *site);
        for (_, visitor) in open.visitors.iter().filter(|(place, _)| *place.0 == *site) {
            let _ = visitor.signs.send(Sign::Closed);
        }
    }

    /// Opens a page of a visitor of a site, which may have so many in all and so many of one address.
    ///
    /// # Errors
    /// 429 when too many are open.
    pub(super) fn open(
        self: &Arc<Self>,
        (site, visitor): (&str, &str),
        client: ClientKey,
        (most, of_address_most): (usize, usize),
    ) -> Result<Page, Error> {
        let place: Place = (site.into(), visitor.into());
        let address = (Box::from(site), client);
        let mut open = self.0.lock();
        let of_address = open.addresses.get(&address).copied().unwrap_or(0);
        let of_visitor = open.visitors.get(&place).map_or(0, |visitor| visitor.streams);
        let of_site = open.sites.get(site).copied().unwrap_or(0);
        if of_visitor >= VISITOR_STREAMS_MAX || of_address >= of_address_most || of_site >= most {
            return Err(Error::of(WEB_CHAT_STREAMS, "too many pages are open").retry_after(RETRY_SECS));
        }
        *open.sites.entry(site.into()).or_default() += 1;
        *open.addresses.entry(address.clone()).or_default() += 1;
        let new = || Visitor { signs: broadcast::Sender::new(BACKLOG_MAX), streams: 0 };
        let visitor = open.visitors.entry(place.clone()).or_insert_with(new);
        visitor.streams += 1;
        let signs = visitor.signs.subscribe();
        let writing = open.writing.get(&place).cloned();
        Ok(Page { hub: Arc::clone(self), place, address, signs, writing })
    }
}

impl Open {
    /// Remembers what is being written.
    fn remember(&mut self, place: &Place, sign: &Sign) {
        match sign {
            Sign::Began(turn) if self.writing.len() < WRITING_MAX || self.writing.contains_key(place) => {
                self.writing.insert(place.clone(), Writing { turn: *turn, text: String::new() });
            }
            Sign::Piece(turn, text) => {
                let known = self.writing.get_mut(place).filter(|its| its.turn == *turn);
                let Some(its) = known else { return };
                its.text.push_str(text);
                // A text without its end would be continued wrongly.
                if its.text.len() > WRITING_BYTES_MAX {
                    self.writing.remove(place);
                }
            }
            Sign::Ended => {
                self.writing.remove(place);
            }
            Sign::Began(_) | Sign::Stored | Sign::Closed => {}
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let mut open = self.hub.0.lock();
        if let Some(visitor) = open.visitors.get_mut(&self.place) {
            visitor.streams -= 1;
            if visitor.streams == 0 {
                open.visitors.remove(&self.place);
            }
        }
        leave(&mut open.sites, &self.place.0);
        leave(&mut open.addresses, &self.address);
    }
}

/// One stream less.
fn leave<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// Its share of `/api/metrics`.
pub(crate) fn gather(api: &Api, out: &mut MetricsText) {
    let open: usize = api.state::<WebHub>().0.lock().sites.values().sum();
    out.gauge("agentsvc_web_chat_streams", "Open streams of web chats.", open);
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_page_that_comes_back_knows_what_was_written_so_far() {
        let (hub, turn) = (Arc::new(WebHub::default()), TurnId(Uuid::nil()));
        let writing = |visitor: &str| {
            let page = hub.open(("shop", visitor), client(1), (9, 9)).ok();
            page.and_then(|page| page.writing.clone())
        };
        let so_far = |text: &str| Some(Writing { turn, text: text.to_owned() });
        hub.tell("shop", "a", Sign::Began(turn));
        hub.tell("shop", "a", Sign::Piece(turn, "one ".into()));
        hub.tell("shop", "a", Sign::Piece(turn, "two".into()));
        assert_eq!((writing("a"), writing("b")), (so_far("one two"), None));
        hub.tell("shop", "a", Sign::Piece(turn, "x".repeat(WRITING_BYTES_MAX).into()));
        hub.tell("shop", "a", Sign::Piece(turn, "y".into()));
        assert_eq!(writing("a"), None, "what has no whole beginning is not shown");
        hub.tell("shop", "a", Sign::Began(turn));
        assert_eq!(writing("a"), so_far(""));
        hub.tell("shop", "a", Sign::Ended);
        assert_eq!(writing("a"), None);
        hub.tell("shop", "a", Sign::Began(turn));
        hub.close("shop");
        assert_eq!(writing("a"), None);
        for n in 0..=WRITING_MAX {
            hub.tell("shop", &n.to_string(), Sign::Began(turn));
        }
        assert_eq!(hub.0.lock().writing.len(), WRITING_MAX);
    }

    #[test]
    fn each_visitor_and_each_site_has_room_of_its_own() {
        let hub = Arc::new(WebHub::default());
        let open = |site: &str, visitor: &str| hub.open((site, visitor), client(1), (9, 20));
        let all: Vec<Page> = (0..VISITOR_STREAMS_MAX).map(|_| open("shop", "a").unwrap()).collect();
        assert!(open("shop", "a").is_err());
        let other = open("shop", "b").unwrap();
        assert!(open("shop", "c").is_err() && open("help", "a").is_ok());
        drop((all, other));
        let open = hub.0.lock();
        assert!(open.visitors.is_empty() && open.sites.is_empty() && open.addresses.is_empty());
    }

    #[test]
    fn one_address_does_not_take_the_room_of_others() {
        let hub = Arc::new(WebHub::default());
        let open = |site: &str, visitor: &str, of: u8| hub.open((site, visitor), client(of), (9, 2));
        let first = open("shop", "a", 1).unwrap();
        let second = open("shop", "b", 1).unwrap();
        assert!(open("shop", "c", 1).is_err());
        assert!(open("shop", "c", 2).is_ok() && open("help", "c", 1).is_ok());
        drop(second);
        assert!(open("shop", "c", 1).is_ok());
        drop(first);
        assert!(hub.0.lock().addresses.is_empty());
    }

    fn client(last: u8) -> ClientKey {
        ClientKey::of(std::net::IpAddr::from([192, 0, 2, last]))
    }
}
