//! Error codes of web chats.

agentsvc_components::error_codes! {
    /// The visitor's token is missing, or none of this site.
    VISITOR_UNKNOWN = "visitor_unknown", [401], "Begin a session without `X-Visitor`, and send the token that it answers with.";
    /// The visitor, the address or the site sends too many messages.
    WEB_CHAT_RATE = "web_chat_rate", [429], "Retry after the time in `Retry-After`.";
    /// Too many pages of the site, or of the visitor, are open.
    WEB_CHAT_STREAMS = "web_chat_streams", [429], "Retry after the time in `Retry-After`.";
    /// No agent answers on this site.
    WEB_CHAT_UNANSWERED = "web_chat_unanswered", [503], "Set `agent` of the site to an agent that is there.";
}
