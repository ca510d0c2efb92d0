//! Limits of chats.

agentsvc_components::limits! {
    pub const ALL;
    /// Instances of channels. More: 400.
    pub const CHANNELS_MAX: usize = 256;
    /// Bytes of the rules of all instances. More: 400.
    pub const CHANNELS_BYTES_MAX: usize = 8 << 20;
    /// People of one instance who are told of an approval; the rest is not told.
    pub const CHANNEL_RECIPIENTS_MAX: usize = 16;
    /// Bytes of the action, and of the description, of an approval in a chat; the rest is cut.
    pub const APPROVAL_NOTE_BYTES_MAX: usize = 500;
    /// Bytes of the input of an approval that a chat shows; a longer one is approved on the page.
    pub const APPROVAL_PAYLOAD_BYTES_MAX: usize = 1_000;
    /// Conversations of one instance with a message that was accepted. More: the one that has been idle for longest is removed.
    pub const CONVERSATIONS_MAX: usize = 10_000;
    /// The same, of strangers. More: likewise.
    pub const STRANGERS_MAX: usize = 1_000;
    /// Conversations of all instances. More: messages of new ones are ignored.
    pub const CONVERSATIONS_ALL_MAX: usize = 50_000;
    /// Sessions that one conversation knows, one for each agent. More: the one that was used first is forgotten.
    pub const CONVERSATION_SESSIONS_MAX: usize = 8;
    /// Ids of messages that a conversation remembers. A message that comes again after so many others is a new one.
    pub const CONVERSATION_SEEN_MAX: usize = 64;
    /// Senders whose rate a conversation remembers. More: the one of the oldest minute is forgotten.
    pub const CONVERSATION_SENDERS_MAX: usize = 32;
    /// Turns that the messages of one conversation begin in a minute, commands among them; messages that are joined begin one. More:
    /// they are ignored, for bots may answer each other.
    pub const CONVERSATION_TURNS_PER_MINUTE_MAX: u32 = 60;
    /// Answers to other bots without a message of a person between them, where `bot_replies_max` says nothing.
    pub const BOT_REPLIES_MAX: u32 = 5;
    /// Messages of chats that are not answered yet. More: 429, and nothing is stored.
    pub const CHAT_MESSAGES_MAX: usize = 10_000;
    /// Messages of one instance that are not answered yet. More: likewise.
    pub const CHANNEL_MESSAGES_MAX: usize = 2_500;
    /// Bytes of them. More: likewise.
    pub const CHANNEL_MESSAGES_BYTES_MAX: usize = 16 << 20;
    /// Messages of one conversation that are not answered yet. More: likewise.
    pub const CONVERSATION_MESSAGES_MAX: usize = 64;
    /// Bytes of all of them. More: likewise.
    pub const CHAT_MESSAGES_BYTES_MAX: usize = 64 << 20;
    /// Bytes of the text of one message of a chat; the rest is cut.
    pub const CHAT_TEXT_BYTES_MAX: usize = 64 << 10;
    /// Bytes of an id or a name of a platform. Longer: 400.
    pub const CHAT_ID_BYTES_MAX: usize = 1_024;
    /// Bytes of a reply token. Longer: 400.
    pub const REPLY_TOKEN_BYTES_MAX: usize = 8 << 10;
    /// Uploads of one message of a chat. More: 400.
    pub const CHAT_BLOCKS_MAX: usize = 16;
    /// Mentions, or roles of the sender, of one message. More: 400.
    pub const CHAT_MENTIONS_MAX: usize = 64;
    /// Milliseconds that a message waits for further ones of its sender at most, where `message_debounce_max_ms` says nothing.
    pub const DEBOUNCE_MS: u32 = 30_000;
    /// Messages that are joined, where `message_debounce_max_buffer` says nothing.
    pub const DEBOUNCE_JOINED: u32 = 64;
    /// Milliseconds that a message waits for room. Longer: its chat is told that there is none.
    pub const CHAT_WAIT_MS_MAX: i64 = 10 * 60 * 1_000;
    /// Milliseconds that a message waits for its files. Longer: its turn begins without them.
    pub const CHAT_FILES_MS: i64 = 90_000;
    /// Seconds after which `[auto_reply]` stops a turn at most. More: 400.
    pub const AUTO_REPLY_SECS_MAX: u64 = 3_600;
    /// Patterns of `suppress_patterns` of `[auto_reply]`. More: 400.
    pub const AUTO_REPLY_PATTERNS_MAX: usize = 64;
    /// Bytes of one of them. Longer: 400.
    pub const AUTO_REPLY_PATTERN_BYTES_MAX: usize = 256;
    /// Milliseconds that the model of `reply_precheck_model` has. Longer: the agent reads the message without its answer.
    pub const PRECHECK_MS: i64 = 30_000;
    /// Tokens of its answer.
    pub const PRECHECK_TOKENS_MAX: u32 = 512;
    /// Milliseconds between two tries to begin the turn of a message that waits for room.
    pub const CHAT_RETRY_MS: i64 = 5_000;
    /// Milliseconds in which a chat is told the same only once.
    pub const CHAT_NOTICE_MS: i64 = 60 * 60 * 1_000;
    /// Messages that one beat of the world takes up; the next one goes on.
    pub const CHAT_BEAT_MAX: usize = 256;
    /// Bytes of the text of an outgoing message; the rest is cut.
    pub const SEND_TEXT_BYTES_MAX: usize = 128 << 10;
    /// Bytes of other content of an outgoing message. Longer: 400.
    pub const SEND_CONTENT_BYTES_MAX: usize = 128 << 10;
    /// Bytes of the order of an outgoing message as JSON: more than its texts can take.
    pub const SEND_INPUT_BYTES_MAX: usize = 2 << 20;
    /// Bytes of the text of an outgoing message that are kept of it; the rest is in the session.
    pub const SEND_PREVIEW_BYTES_MAX: usize = 256;
    /// Bytes of the reason of an outgoing message's end; the rest is cut.
    pub const SEND_REASON_BYTES_MAX: usize = 512;
    /// Outgoing messages that wait or are being sent. More: 429; an answer of a turn is then refused, with the reason.
    pub const SENDS_OPEN_MAX: usize = 20_000;
    /// Those of one instance, so that one that does not send leaves room for the others. More: likewise.
    pub const INSTANCE_SENDS_OPEN_MAX: usize = SENDS_OPEN_MAX / 8;
    /// Bytes of the outgoing messages of one instance. More: likewise.
    pub const INSTANCE_SENDS_BYTES_MAX: usize = SENDS_BYTES_MAX / 4;
    /// Outgoing messages of one conversation that wait or are being sent. More: likewise.
    pub const CONVERSATION_SENDS_OPEN_MAX: usize = 256;
    /// Bytes of the outgoing messages of one conversation. More: likewise.
    pub const CONVERSATION_SENDS_BYTES_MAX: usize = 4 << 20;
    /// Bytes of all outgoing messages. More: likewise.
    pub const SENDS_BYTES_MAX: usize = 64 << 20;
    /// Outgoing messages that are being sent at once; of a user one in `POOL_SHARES` of them, of a family three. The rest waits.
    pub const SENDS_OUT_MAX: usize = 1_024;
    /// Outgoing messages of one instance that are kept after their end. More: the ones that ended first go.
    pub const SENDS_KEPT_MAX: usize = 1_000;
    /// Tries of one outgoing message of which nothing was written.
    pub const SEND_TRIES_MAX: u32 = 10_000;
    /// Milliseconds before its second try; they double from try to try.
    pub const SEND_BACKOFF_MS: i64 = 500;
    /// Milliseconds between two tries.
    pub const SEND_BACKOFF_MS_MAX: i64 = 30_000;
    /// Milliseconds after which an outgoing message is refused that was never written.
    pub const SEND_DEADLINE_MS: i64 = 24 * 60 * 60 * 1_000;
    /// Milliseconds that one try may take.
    pub const SEND_TIMEOUT_MS: u32 = 90_000;
    /// Pairings and offers of codes. More: 429.
    pub const PAIRINGS_MAX: usize = 10_000;
    /// Offers of codes of one instance. More: 429.
    pub const PAIRING_OFFERS_MAX: usize = 16;
    /// Characters of a code.
    pub const PAIRING_CODE_CHARS: usize = 8;
    /// Wrong codes of one chat in an hour. More: its codes are not looked at.
    pub const PAIRING_TRIES_MAX: u8 = 5;
    /// Milliseconds after which wrong codes are forgotten.
    pub const PAIRING_TRIES_MS: i64 = 60 * 60 * 1_000;
    /// Seconds that a code is valid, unless the request says otherwise.
    pub const PAIRING_SECS: u32 = 15 * 60;
    /// Seconds that a code holds at most. More: 400.
    pub const PAIRING_SECS_MAX: u32 = 24 * 60 * 60;
}
