//! Error codes of compactions.

agentsvc_components::error_codes! {
    /// The model wrote no summary; the session is unchanged.
    COMPACTION_FAILED = "compaction_failed", [500], "Read the message; check the model and retry.";
}
