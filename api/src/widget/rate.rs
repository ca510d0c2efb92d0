//! How often visitors may write: counts of the present minute.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::error_codes::WEB_CHAT_RATE;
use crate::http::error::Error;
use crate::http::rate::ClientKey;

const MINUTE: Duration = Duration::from_secs(60);
/// Visitors, addresses and sites that are counted. More in one minute: they are refused.
const COUNTED_MAX: usize = 50_000;

/// Who is counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Who {
    /// A visitor of a site.
    Visitor(Box<str>, Box<str>),
    /// An address that writes to a site.
    Address(Box<str>, ClientKey),
    /// An address that begins sessions of a site.
    Sessions(Box<str>, ClientKey),
    /// All visitors of a site.
    Site(Box<str>),
}

/// The counts of this minute.
#[derive(Default)]
pub(super) struct Rates(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    began: Option<Instant>,
    counts: HashMap<Who, u32>,
}

impl Rates {
    /// Counts one for each of these, unless one of them has as many as it may: then for none.
    ///
    /// # Errors
    /// 429 with `Retry-After`.
    pub(super) fn take<const N: usize>(&self, all: [(Who, u32); N], now: Instant) -> Result<(), Error> {
        let mut its = self.0.lock();
        if its.began.is_none_or(|began| now.duration_since(began) >= MINUTE) {
            its.counts.clear();
            its.began = Some(now);
        }
        let is_full = its.counts.len() + N > COUNTED_MAX;
        let is_over = |(who, most): &(Who, u32)| match its.counts.get(who) {
            Some(count) => count >= most,
            None => is_full,
        };
        if all.iter().any(is_over) {
            let began = its.began.unwrap_or(now);
            let left = MINUTE.saturating_sub(now.duration_since(began)).as_secs() + 1;
            let text = "too many messages in this minute";
            return Err(Error::of(WEB_CHAT_RATE, text).retry_after(u32::try_from(left).unwrap_or(60)));
        }
        for (who, _) in all {
            *its.counts.entry(who).or_default() += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_message_counts_for_no_one_and_a_minute_begins_anew() {
        let (rates, now) = (Rates::default(), Instant::now());
        let of = |visitor: &str| [(Who::Visitor("s".into(), visitor.into()), 1), (Who::Site("s".into()), 2)];
        assert!(rates.take(of("a"), now).is_ok());
        assert!(rates.take(of("a"), now).is_err() && rates.take(of("a"), now).is_err());
        assert!(rates.take(of("b"), now).is_ok(), "the refused ones took nothing of the site");
        let refused = rates.take(of("c"), now + Duration::from_secs(59)).unwrap_err();
        assert_eq!(refused.retry_after_secs(), Some(2));
        assert!(rates.take(of("a"), now + MINUTE).is_ok());
    }
}
