//! What a peer has asked and cost lately, so that none drains the budget of this node.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use agentsvc_systems::peer::limits::PEER_TURNS_MAX;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// What a peer may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// Requests in a minute.
    pub(crate) requests: u32,
    /// Tokens in an hour; 0 is no limit.
    pub(crate) tokens: u64,
}

/// What one peer has done.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    requests: VecDeque<Instant>,
    /// By minutes.
    tokens: VecDeque<(Instant, u64)>,
    /// Turns that it has begun and that have not ended.
    turns: usize,
}

impl Usage {
    /// A request has come; is it one too many?
    pub(crate) fn request(&mut self, allowance: Allowance, now: Instant) -> Result<(), String> {
        while self.requests.front().is_some_and(|at| now.saturating_duration_since(*at) >= MINUTE) {
            self.requests.pop_front();
        }
        if self.requests.len() >= allowance.requests as usize {
            return Err(format!("the limit is {} requests a minute", allowance.requests));
        }
        self.requests.push_back(now);
        Ok(())
    }

    /// A turn begins, unless the peer has no tokens left or too many turns are open.
    pub(crate) fn begin(&mut self, allowance: Allowance, now: Instant) -> Result<(), String> {
        if allowance.tokens > 0 && self.tokens_used(now) >= allowance.tokens {
            return Err(format!("the limit of {} tokens an hour is reached", allowance.tokens));
        }
        if self.turns >= PEER_TURNS_MAX {
            return Err(format!("{PEER_TURNS_MAX} messages of this node are being answered"));
        }
        self.turns += 1;
        Ok(())
    }

    /// A turn has ended, and cost so many tokens.
    pub(crate) fn end(&mut self, tokens: u64, now: Instant) {
        self.turns = self.turns.saturating_sub(1);
        // Where there is no limit, nothing else forgets them.
        self.forget_old(now);
        match self.tokens.back_mut().filter(|(at, _)| now.saturating_duration_since(*at) < MINUTE) {
            Some((_, sum)) => *sum = sum.saturating_add(tokens),
            None => self.tokens.push_back((now, tokens)),
        }
    }

    fn forget_old(&mut self, now: Instant) {
        while self.tokens.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) >= HOUR) {
            self.tokens.pop_front();
        }
    }

    /// Tokens of the last hour.
    fn tokens_used(&mut self, now: Instant) -> u64 {
        self.forget_old(now);
        self.tokens.iter().fold(0, |sum, (_, tokens)| sum.saturating_add(*tokens))
    }

    /// Is there nothing to remember of it?
    pub(crate) fn is_over(&mut self, now: Instant) -> bool {
        let is_late = self.requests.back().is_none_or(|at| now.saturating_duration_since(*at) >= MINUTE);
        self.turns == 0 && is_late && self.tokens_used(now) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWANCE: Allowance = Allowance { requests: 2, tokens: 100 };

    #[test]
    fn requests_come_back_with_the_minute() {
        let (mut usage, start) = (Usage::default(), Instant::now());
        let at = |secs| start + Duration::from_secs(secs);
        assert!(usage.request(ALLOWANCE, at(0)).is_ok() && usage.request(ALLOWANCE, at(30)).is_ok());
        assert!(usage.request(ALLOWANCE, at(59)).is_err());
        assert!(usage.request(ALLOWANCE, at(60)).is_ok() && usage.request(ALLOWANCE, at(61)).is_err());
        assert!(!usage.is_over(at(61)) && usage.is_over(at(130)));
    }

    #[test]
    fn tokens_come_back_with_the_hour() {
        let (mut usage, start) = (Usage::default(), Instant::now());
        let at = |secs| start + Duration::from_secs(secs);
        usage.begin(ALLOWANCE, at(0)).unwrap();
        usage.end(60, at(1));
        usage.begin(ALLOWANCE, at(100)).unwrap();
        usage.end(40, at(200));
        assert!(usage.begin(ALLOWANCE, at(3_600)).is_err());
        assert!(usage.begin(ALLOWANCE, at(3_601)).is_ok(), "the first is an hour old");
        let none = Allowance { tokens: 0, ..ALLOWANCE };
        usage.end(u64::MAX, at(3_602));
        assert!(usage.begin(none, at(3_603)).is_ok());
    }

    #[test]
    fn what_is_older_than_an_hour_is_forgotten_where_there_is_no_limit() {
        let (mut usage, start) = (Usage::default(), Instant::now());
        let none = Allowance { tokens: 0, ..ALLOWANCE };
        for minute in 0..200 {
            let now = start + MINUTE * minute;
            usage.begin(none, now).unwrap();
            usage.end(1, now);
        }
        assert_eq!(usage.tokens.len(), 60);
    }

    #[test]
    fn few_turns_are_open_at_once() {
        let (mut usage, now) = (Usage::default(), Instant::now());
        for _ in 0..PEER_TURNS_MAX {
            usage.begin(ALLOWANCE, now).unwrap();
        }
        assert!(usage.begin(ALLOWANCE, now).is_err());
        usage.end(1, now);
        assert!(usage.begin(ALLOWANCE, now).is_ok());
    }
}
