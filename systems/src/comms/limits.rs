//! Limits of comms.

agentsvc_components::limits! {
    pub const ALL;
    /// Comms events that are kept; the oldest go.
    pub const COMMS_EVENTS_KEPT: usize = 1_000;
    /// Bytes of the text of a comms event; the rest is cut.
    pub const COMMS_DETAIL_BYTES_MAX: usize = 256;
    /// Comms events of one answer. A higher limit is cut.
    pub const COMMS_EVENTS_LISTED_MAX: usize = 500;
    /// Agents of the topology, those that exchange messages first. More: the answer says that it is cut.
    pub const COMMS_NODES_MAX: usize = 1_000;
    /// Streams of comms events that may be open. More: 429.
    pub const COMMS_STREAMS_MAX: usize = 64;
    /// Comms events that a slow stream may be behind. More: it reads them from the world again.
    pub const COMMS_STREAM_BACKLOG_MAX: usize = 256;
}
