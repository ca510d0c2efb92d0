//! What a peer has asked and cost lately, so that none drains the budget of this node.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use agentsvc_components::SessionId;
use agentsvc_systems::peer::limits::{PEER_SESSIONS_OF_ONE_MAX, PEER_TURNS_MAX};

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
    /// The sessions of its messages of the last two hours, the newest last: its tokens are counted over them.
    sessions: VecDeque<(Instant, SessionId)>,
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

    /// A message has come for this session: all sessions over which the tokens of the last hour are counted.
    pub(crate) fn sessions(&mut self, session: SessionId, now: Instant) -> Vec<SessionId> {
        self.forget_old(now);
        self.sessions.retain(|(_, known)| *known != session);
        self.sessions.push_back((now, session));
        if self.sessions.len() > PEER_SESSIONS_OF_ONE_MAX {
            self.sessions.pop_front();
        }
        self.sessions.iter().map(|(_, session)| *session).collect()
    }

    /// A turn begins, unless the peer has no tokens left, of which so many were used in the last hour, or too many turns are open.
    pub(crate) fn begin(&mut self, allowance: Allowance, used: u64) -> Result<(), String> {
        if allowance.tokens > 0 && used >= allowance.tokens {
            return Err(format!("the limit of {} tokens an hour is reached", allowance.tokens));
        }
        if self.turns >= PEER_TURNS_MAX {
            return Err(format!("{PEER_TURNS_MAX} messages of this node are being answered"));
        }
        self.turns += 1;
        Ok(())
    }

    /// A turn has ended.
    pub(crate) fn end(&mut self) {
        self.turns = self.turns.saturating_sub(1);
    }

    /// What was begun an hour ago may still go on: it is counted for as long again.
    fn forget_old(&mut self, now: Instant) {
        while self.sessions.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) >= 2 * HOUR) {
            self.sessions.pop_front();
        }
    }

    /// Is there nothing to remember of it?
    pub(crate) fn is_over(&mut self, now: Instant) -> bool {
        let is_late = self.requests.back().is_none_or(|at| now.saturating_duration_since(*at) >= MINUTE);
        self.forget_old(now);
        self.turns == 0 && is_late && self.sessions.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

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
    fn tokens_are_counted_over_the_sessions_of_the_last_messages() {
        let (mut usage, start) = (Usage::default(), Instant::now());
        let session = |n: u128| SessionId(Uuid::from_u128(n));
        assert_eq!(usage.sessions(session(1), start), [session(1)]);
        assert_eq!(usage.sessions(session(2), start + HOUR), [session(1), session(2)]);
        assert_eq!(usage.sessions(session(1), start + HOUR), [session(2), session(1)]);
        assert!(!usage.is_over(start + HOUR) && usage.is_over(start + 3 * HOUR));
        for n in 0..PEER_SESSIONS_OF_ONE_MAX as u128 {
            usage.sessions(session(10 + n), start + 3 * HOUR);
        }
        let all = usage.sessions(session(10), start + 3 * HOUR);
        assert!(all.len() == PEER_SESSIONS_OF_ONE_MAX && all.last() == Some(&session(10)), "{}", all.len());
        assert!(usage.begin(ALLOWANCE, 99).is_ok() && usage.begin(ALLOWANCE, 100).is_err());
        assert!(usage.begin(Allowance { tokens: 0, ..ALLOWANCE }, u64::MAX).is_ok());
    }

    #[test]
    fn few_turns_are_open_at_once() {
        let mut usage = Usage::default();
        for _ in 0..PEER_TURNS_MAX {
            usage.begin(ALLOWANCE, 0).unwrap();
        }
        assert!(usage.begin(ALLOWANCE, 0).is_err());
        usage.end();
        assert!(usage.begin(ALLOWANCE, 0).is_ok());
    }
}
