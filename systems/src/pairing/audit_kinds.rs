//! Kinds of audit log entries: paired devices.

agentsvc_components::audit_kinds! {
    /// A device was paired; it has an API key from then on.
    DEVICE_PAIRED = "device_paired";
    /// A device was removed, by itself, with its key or with the user of the key.
    DEVICE_REMOVED = "device_removed";
    /// A notification for the paired devices was queued.
    DEVICES_NOTIFIED = "devices_notified";
    /// A notification for the paired devices was not delivered.
    NOTIFICATION_FAILED = "notification_failed";
}
