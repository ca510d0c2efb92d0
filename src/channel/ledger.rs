//! What became of commands that were sent to an adapter. Adapters do not confirm, so a line that none understands is written
//! behind each send: the adapter complains of it when it has handled the send (facts of channels, 1.9).

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::stderr::Line;

/// Sends that an adapter may not have answered yet. More: the oldest is forgotten, as if it had ended unknown.
const OWED_MAX: usize = 64;
/// Bytes of a reason that are kept.
const REASON_BYTES_MAX: usize = 512;

/// What the adapter did with a send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Handled {
    /// It handled it, and reported no failure. That is not a delivery.
    Sent,
    /// It says that the platform took it; with the platform's id.
    Acknowledged(Option<String>),
    /// It reported a failure.
    Refused(String),
    /// It is not known: why.
    Unknown(String),
    /// Nothing was written to it: why.
    Unwritten(String),
}

#[derive(Debug)]
struct Owed {
    /// Of adapters that confirm by id.
    id: Option<String>,
    /// The first failure that it reported since.
    failure: Option<String>,
    reply: Option<oneshot::Sender<Handled>>,
}

/// Sends that wait for their outcome, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    owed: VecDeque<Owed>,
    /// It has answered a barrier in this run.
    pub(crate) answers: bool,
    /// It has sent something in this run.
    has_sent: bool,
    /// Failures that are those of no send.
    strays: Strays,
    /// The last of them.
    last_stray: String,
}

/// How many failures there were that are those of no send: of all kinds, and those that name a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Strays {
    all: u64,
    of_streams: u64,
}

/// A failure that an adapter reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    why: String,
    /// It names a text that goes out while it is written.
    of_stream: bool,
}

impl Failure {
    /// The failure of something that went out, `of_stream` if it names a stream.
    pub(crate) fn new(mut why: String, of_stream: bool) -> Self {
        why.truncate(why.floor_char_boundary(REASON_BYTES_MAX));
        Self { why, of_stream }
    }
}

impl Ledger {
    /// A send goes out now.
    pub(crate) fn add(&mut self, id: Option<String>, reply: oneshot::Sender<Handled>) {
        if self.owed.len() == OWED_MAX {
            self.owed.pop_front();
        }
        self.owed.push_back(Owed { id, failure: None, reply: Some(reply) });
    }

    /// Does an answer to the barrier belong to a send?
    pub(crate) fn is_owed(&self) -> bool {
        self.owed.iter().any(|owed| owed.id.is_none())
    }

    /// The adapter has come to the barrier behind the oldest send.
    pub(crate) fn passed(&mut self) {
        self.answers = true;
        if let Some(at) = self.owed.iter().position(|owed| owed.id.is_none())
            && let Some(owed) = self.owed.remove(at)
        {
            // Adapters are ready before they are connected. What one has not sent because of that waits, as if it was down.
            let waits = |why: &&String| !self.has_sent && why.to_ascii_lowercase().contains("not connected");
            let outcome = owed.failure.as_ref().filter(waits).map(|why| Handled::Unwritten(why.clone()));
            self.has_sent |= owed.failure.is_none();
            owed.end(outcome);
        }
    }

    /// The adapter confirms a send by its id.
    pub(crate) fn acknowledged(&mut self, id: &str, outcome: Handled) {
        if let Some(at) = self.owed.iter().position(|owed| owed.id.as_deref() == Some(id))
            && let Some(owed) = self.owed.remove(at)
        {
            owed.end(Some(outcome));
        }
    }

    /// The adapter reports a failure: it is that of the oldest send, which it works on, unless it names a stream.
    pub(crate) fn failed(&mut self, failure: Failure) {
        let Failure { why, of_stream } = failure;
        match self.owed.front_mut().filter(|owed| owed.id.is_none() && !of_stream) {
            // The first one is the cause of the others.
            Some(owed) => drop(owed.failure.get_or_insert(why)),
            None => {
                self.strays.all += 1;
                self.strays.of_streams += u64::from(of_stream);
                self.last_stray = why;
            }
        }
    }

    /// The failures so far that are those of no send.
    pub(crate) fn strays(&self) -> Strays {
        self.strays
    }

    /// Why a stream failed that began after the first of these counts, and whose end was told after the second. A failure
    /// in between counts only if it names a stream: an edit that was refused is made up for by the next one.
    pub(crate) fn stream_failure(&self, began: Strays, told: Strays) -> Option<String> {
        let has_failed = self.strays.of_streams > began.of_streams || self.strays.all > told.all;
        has_failed.then(|| self.last_stray.clone())
    }

    /// The run is over.
    pub(crate) fn close(&mut self, why: &str) {
        for owed in self.owed.drain(..) {
            owed.end(Some(Handled::Unknown(format!("the adapter ended before it confirmed the message: {why}"))));
        }
        (self.answers, self.has_sent) = (false, false);
    }
}

impl Owed {
    fn end(mut self, outcome: Option<Handled>) {
        let outcome = match (self.failure.take(), outcome) {
            (Some(why), None | Some(Handled::Unknown(_))) => Handled::Refused(why),
            (None, None) => Handled::Sent,
            (_, Some(outcome)) => outcome,
        };
        if let Some(reply) = self.reply.take() {
            let _gave_up = reply.send(outcome);
        }
    }
}

/// Words of lines about something that goes out, and words of lines about something that fails.
const GOES_OUT: [&str; 20] = [
    "send",
    "post ",
    "_post_",
    "postmessage",
    "reply",
    "upload",
    "comment api",
    "content type",
    "filedata",
    "file url",
    "file payload",
    "location",
    "media group",
    "deletemessage",
    "editinteractive",
    "stream_start",
    "stream split",
    "stream finalize",
    "stream exceeded",
    "chunk",
];
const FAILS: [&str; 17] = [
    "fail",
    "reject",
    "error",
    "drop",
    "refused",
    "exceed",
    "partially",
    "missing",
    "empty",
    "unsupported",
    "unknown",
    "unreadable",
    "invalid",
    "malformed",
    "not sending",
    "not an object",
    "transport",
];
/// Words of lines about what is tried again or otherwise, is shown beside a message, or keeps the connection.
const FAILS_NOTHING: [&str; 15] = [
    "429",
    "falling back",
    "posting",
    "resending",
    "retry",
    "pong",
    "ack send",
    "auth send",
    "heartbeat",
    "identify",
    "subscribe",
    "task-progress",
    "validation",
    "reaction",
    "typing",
];

/// The failure of something that went out, if a line of the error output reports one.
pub(crate) fn send_failure(line: &Line) -> Option<Failure> {
    if line.message.starts_with("on_command failed") {
        return match line.command.as_deref() {
            None | Some("Send" | "Interactive") => Some(Failure::new(line.cause(), false)),
            // What a piece failed to show, the end shows.
            Some("StreamStart" | "StreamEnd") => Some(Failure::new(line.cause(), true)),
            Some(_) => None,
        };
    }
    let message = line.message.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let is_bad = matches!(line.level.as_deref(), Some("warn" | "warning" | "error"));
    let fails = is_bad && has(&GOES_OUT) && has(&FAILS) && !has(&FAILS_NOTHING);
    fails.then(|| Failure::new(line.cause(), message.contains("stream")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owe(ledger: &mut Ledger, id: Option<&str>) -> oneshot::Receiver<Handled> {
        let (sender, receiver) = oneshot::channel();
        ledger.add(id.map(str::to_owned), sender);
        receiver
    }

    #[test]
    fn answers_match_first_in_first_out_also_after_one_gave_up() {
        let mut ledger = Ledger::default();
        let first = owe(&mut ledger, None);
        drop(first);
        let mut second = owe(&mut ledger, None);
        ledger.passed();
        assert!(second.try_recv().is_err(), "the late answer is that of the first");
        ledger.failed(Failure::new("403".to_owned(), false));
        ledger.failed(Failure::new("later".to_owned(), false));
        ledger.passed();
        assert_eq!(second.try_recv().unwrap(), Handled::Refused("403".to_owned()));
        assert!(!ledger.is_owed());
        ledger.passed();
    }

    #[test]
    fn what_an_adapter_does_not_send_before_it_is_connected_waits() {
        let mut ledger = Ledger::default();
        let mut outcome = |failure: Option<&str>| {
            let mut send = owe(&mut ledger, None);
            if let Some(why) = failure {
                ledger.failed(Failure::new(why.to_owned(), false));
            }
            ledger.passed();
            send.try_recv().unwrap()
        };
        let why = "on_command failed: twitch not connected";
        assert_eq!(outcome(Some(why)), Handled::Unwritten(why.to_owned()));
        assert_eq!(outcome(Some("403")), Handled::Refused("403".to_owned()));
        assert_eq!(outcome(None), Handled::Sent);
        assert_eq!(outcome(Some(why)), Handled::Refused(why.to_owned()), "a part may have gone out before");
        ledger.close("exit code 1");
        let mut send = owe(&mut ledger, None);
        ledger.failed(Failure::new(why.to_owned(), false));
        ledger.passed();
        assert!(matches!(send.try_recv().unwrap(), Handled::Unwritten(_)), "the next run is another connection");
    }

    #[test]
    fn ids_and_barriers_do_not_mix() {
        let mut ledger = Ledger::default();
        let (mut plain, mut named) = (owe(&mut ledger, None), owe(&mut ledger, Some("7")));
        ledger.acknowledged("8", Handled::Sent);
        ledger.acknowledged("7", Handled::Acknowledged(Some("p".to_owned())));
        assert_eq!(named.try_recv().unwrap(), Handled::Acknowledged(Some("p".to_owned())));
        ledger.close("exit code 1");
        assert!(matches!(plain.try_recv().unwrap(), Handled::Unknown(why) if why.ends_with("exit code 1")));
    }

    #[test]
    fn it_stays_bounded() {
        let mut ledger = Ledger::default();
        let _waiting: Vec<_> = (0..OWED_MAX * 2).map(|_| owe(&mut ledger, None)).collect();
        assert_eq!(ledger.owed.len(), OWED_MAX);
    }

    #[test]
    fn failures_of_streams_are_not_those_of_sends() {
        let mut ledger = Ledger::default();
        let began = ledger.strays();
        ledger.failed(Failure::new("an edit".to_owned(), false));
        let told = ledger.strays();
        assert_eq!(ledger.stream_failure(began, told), None, "the next edit makes up for it");
        let mut send = owe(&mut ledger, None);
        ledger.failed(Failure::new("placeholder".to_owned(), true));
        assert_eq!(ledger.stream_failure(began, told).as_deref(), Some("placeholder"));
        ledger.passed();
        assert_eq!(send.try_recv().unwrap(), Handled::Sent);
        let (began, told) = (ledger.strays(), ledger.strays());
        assert_eq!(ledger.stream_failure(began, told), None);
        ledger.failed(Failure::new("the last words".to_owned(), false));
        assert_eq!(ledger.stream_failure(began, told).as_deref(), Some("the last words"));
    }

    fn failure(text: &str) -> Option<Failure> {
        send_failure(&Line::parse(text))
    }

    fn said(level: &str, message: &str) -> Option<Failure> {
        failure(&serde_json::json!({ "level": level, "message": message }).to_string())
    }

    #[test]
    fn failed_commands_name_their_kind() {
        let command = |of: &str| {
            let fields = format!(r#"{{"error":"HTTP 403","cmd_type":"{of}"}}"#);
            failure(&format!(r#"{{"ts":1.0,"level":"error","message":"on_command failed","fields":{fields}}}"#))
        };
        assert_eq!(command("Send"), Some(Failure::new("on_command failed: HTTP 403".to_owned(), false)));
        assert!(command("Interactive").is_some() && command("StreamEnd").is_some_and(|failure| failure.of_stream));
        assert!(command("TypingCmd").is_none() && command("StreamDelta").is_none());
        let refused =
            r#"{"level":"warn","message":"mattermost POST /posts failed","fields":{"status":403,"body":"no"}}"#;
        assert_eq!(failure(refused).unwrap().why, "mattermost POST /posts failed: 403: no");
        assert!(said("info", "sending failed").is_none() && failure("plain words about a failed send").is_none());
    }

    /// What the adapters of the SDK log as warnings and errors: with `+` what says that something did not go out.
    const LINES: &str = include_str!("log_lines.txt");

    #[test]
    fn each_line_of_the_adapters_is_a_failure_of_a_send_or_not() {
        for line in LINES.lines() {
            let (sign, message) = line.split_once(' ').unwrap();
            assert_eq!(said("warn", message).is_some(), sign == "+", "{line}");
            assert_eq!(said("error", message).is_some(), sign == "+", "{line}");
            assert!(said("info", message).is_none(), "{line}");
        }
    }
}
