//! Limits of the answers that approvals ask for.

agentsvc_components::limits! {
    pub const ALL;
    /// Approvals that wait because turns that strangers began ask for them, beside those of all others. More: their calls are
    /// refused.
    pub const STRANGERS_PENDING_MAX: usize = 100;
    /// Bytes of the texts of those approvals. More: as too many.
    pub const STRANGERS_PENDING_BYTES_MAX: usize = 4 << 20;
    /// Bytes of the form of an approval, a JSON schema. Longer: it is refused.
    pub const ANSWER_SCHEMA_BYTES_MAX: usize = 16 << 10;
    /// Fields of the form of an approval. More: it is refused.
    pub const ANSWER_FIELDS_MAX: usize = 32;
    /// Bytes of the answer to an approval. Longer: 400.
    pub const ANSWER_BYTES_MAX: usize = 16 << 10;
}
