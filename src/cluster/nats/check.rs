//! Refuses servers and streams that could lose what they acknowledged, or two of whose writers could both succeed.

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Config, DiscardPolicy, Info, PersistenceMode, RetentionPolicy, StorageType};

use super::wire::{NotReady, Wire};

/// The oldest version of servers whose clusters compare and set sequences rightly, and keep their log when they restart.
const OLDEST: (i64, i64) = (2, 14);

/// Under which name a stream shows which key its entries are sealed with.
const FINGERPRINT: &str = "agentsvc-key";

impl Wire {
    /// Can the journal be used? Makes the stream where there is none.
    pub(crate) async fn ready(&self) -> Result<(), NotReady> {
        let unavailable = |text: String| Err(NotReady::Unavailable(text));
        let Some(server) = self.client.try_server_info().filter(|_| self.is_connected()) else {
            return unavailable("no NATS server answers".to_owned());
        };
        if !self.client.is_server_compatible(OLDEST.0, OLDEST.1, 0) {
            return Err(NotReady::Refused(format!(
                "the NATS server {} has version {}; a cluster needs {}.{} or newer, because older ones can lose entries or \
                 take two at one place",
                server.server_name, server.version, OLDEST.0, OLDEST.1
            )));
        }
        if !server.jetstream {
            let text = format!("JetStream is off at the NATS server {}; enable `jetstream`", server.server_name);
            return Err(NotReady::Refused(text));
        }
        if let Some(text) = why_open(server.auth_required, self.allows_open) {
            return Err(NotReady::Refused(format!("the NATS server {} {text}", server.server_name)));
        }
        let name = self.stream_name();
        let info = match self.context.get_stream(name.as_str()).await {
            Ok(stream) => stream.cached_info().clone(),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(why) if why.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    match self.context.create_stream(self.wanted()).await {
                        Ok(stream) => stream.cached_info().clone(),
                        Err(error) => return unavailable(format!("the stream {name} cannot be created: {error}")),
                    }
                }
                _ => return unavailable(format!("the stream {name} does not answer: {error}")),
            },
        };
        if is_of_others(&info.config, &self.seals.fingerprint) {
            return Err(NotReady::Refused(format!(
                "the stream {name} is that of nodes with another AGENTSVC_VAULT_KEY than this one has: set the same value"
            )));
        }
        match unsafe_setting(&info, self.copies, &self.subject()) {
            None => Ok(()),
            Some(text) => Err(NotReady::Refused(format!("the stream {name} {text}"))),
        }
    }

    /// The stream as it is made.
    fn wanted(&self) -> Config {
        Config {
            name: self.stream_name(),
            description: Some("the journal of an agentsvc cluster".to_owned()),
            subjects: vec![self.subject()],
            storage: StorageType::File,
            num_replicas: self.copies,
            discard: DiscardPolicy::New,
            retention: RetentionPolicy::Limits,
            deny_delete: true,
            metadata: [(FINGERPRINT.to_owned(), self.seals.fingerprint.clone())].into(),
            ..Config::default()
        }
    }
}

/// Do nodes with another key keep their journal in this stream? This one would take all of it for messages of others.
fn is_of_others(stream: &Config, fingerprint: &str) -> bool {
    stream.metadata.get(FINGERPRINT).is_some_and(|theirs| theirs != fingerprint)
}

/// Why a server is not used that asks clients for credentials or does not, to be said behind its name.
fn why_open(asks: bool, is_allowed: bool) -> Option<&'static str> {
    (!asks && !is_allowed).then_some(
        "takes clients without credentials, so anyone who reaches it could stop the cluster: set \
         `authorization` there and `cluster.credentials` here, or `cluster.allow_open_server = true`",
    )
}

/// What is wrong with the stream, to be said behind its name.
fn unsafe_setting(info: &Info, copies: usize, subject: &str) -> Option<String> {
    let Config {
        num_replicas,
        storage,
        discard,
        retention,
        max_age,
        max_bytes,
        max_messages,
        persist_mode,
        subjects,
        ..
    } = &info.config;
    let text = if *num_replicas < copies {
        format!("keeps each entry on {num_replicas} servers, and {copies} are needed (`cluster.replicas`)")
    } else if *storage != StorageType::File {
        "is not kept in files".to_owned()
    } else if *discard != DiscardPolicy::New {
        "discards old entries when it is full; set `discard` to `new`".to_owned()
    } else if *retention != RetentionPolicy::Limits || !max_age.is_zero() || *max_bytes > 0 || *max_messages > 0 {
        "loses entries by its limits of age, size, number or interest; remove them".to_owned()
    } else if *persist_mode == Some(PersistenceMode::Async) {
        "acknowledges before it has stored; set `persist_mode` to `default`".to_owned()
    } else if info.config.mirror.is_some() || info.config.sources.as_ref().is_some_and(|them| !them.is_empty()) {
        "is fed by other streams".to_owned()
    } else if info.config.no_ack || info.config.sealed || info.config.allow_rollup {
        "acknowledges nothing, is sealed or allows roll-ups".to_owned()
    } else if subjects.len() != 1 || subjects[0] != subject {
        format!("must have the subject {subject} alone")
    } else {
        return None;
    };
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::{Config, FINGERPRINT, is_of_others, why_open};

    #[test]
    fn a_stream_of_nodes_with_another_key_is_not_taken_for_an_empty_one() {
        let of =
            |key: &str| Config { metadata: [(FINGERPRINT.to_owned(), key.to_owned())].into(), ..Config::default() };
        assert!(is_of_others(&of("a"), "b"));
        assert!(!is_of_others(&of("a"), "a"));
        assert!(!is_of_others(&Config::default(), "a"), "somebody else has made it for the nodes");
    }

    #[test]
    fn a_server_that_asks_for_nothing_is_used_only_where_that_is_allowed() {
        assert!(why_open(false, false).is_some_and(|text| text.contains("allow_open_server")));
        assert_eq!([why_open(false, true), why_open(true, false), why_open(true, true)], [None; 3]);
    }
}
