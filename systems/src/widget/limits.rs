//! Limits of web chats.

agentsvc_components::limits! {
    pub const ALL;
    /// Messages of one visitor that are kept. More: the oldest go.
    pub const VISITOR_MESSAGES_MAX: usize = 200;
    /// Bytes of them. More: likewise, but the newest stays.
    pub const VISITOR_MESSAGES_BYTES_MAX: usize = 512 << 10;
    /// Messages of all visitors of one site that are kept. More: the oldest of the site go.
    pub const SITE_MESSAGES_MAX: usize = 20_000;
    /// Bytes of them. More: likewise.
    pub const SITE_MESSAGES_BYTES_MAX: usize = 16 << 20;
    /// Characters of a visitor's message. Longer: 400.
    pub const VISITOR_TEXT_CHARS_MAX: usize = 4_000;
    /// Bytes of the id that a page gives a message. Longer: 400.
    pub const WEB_MESSAGE_NAME_BYTES_MAX: usize = 64;
}
