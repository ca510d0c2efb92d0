//! Kinds of audit log entries: codes of devices.

agentsvc_components::audit_kinds! {
    /// A code to pair a device was made.
    PAIRING_REQUESTED = "pairing_requested";
    /// A wrong code was sent while codes were open.
    PAIRING_REFUSED = "pairing_refused";
}
