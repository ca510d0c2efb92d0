//! Limits of paired devices.

agentsvc_components::limits! {
    pub const ALL;
    /// Paired devices, whatever `[pairing] max_devices` says. More: 429.
    pub const DEVICES_MAX: usize = 100;
    /// Codes to pair devices that are open at once. More: 429.
    pub const PAIRING_CODES_MAX: usize = 5;
    /// Wrong codes after which the codes that are open end.
    pub const PAIRING_TRIES_MAX: u32 = 5;
    /// Bytes of the name of a device. Longer: 400.
    pub const DEVICE_NAME_BYTES_MAX: usize = 100;
    /// Bytes of the platform of a device. Longer: 400.
    pub const DEVICE_PLATFORM_BYTES_MAX: usize = 64;
    /// Bytes of the title of a notification. Longer: 400.
    pub const NOTIFICATION_TITLE_BYTES_MAX: usize = 256;
    /// Bytes of the message of a notification. Longer: 400.
    pub const NOTIFICATION_MESSAGE_BYTES_MAX: usize = 4 << 10;
    /// Notifications that wait to be delivered. More: 429.
    pub const NOTIFICATIONS_OPEN_MAX: usize = 100;
    /// Attempts to deliver one notification.
    pub const NOTIFICATION_TRIES_MAX: u32 = 8;
    /// Milliseconds before the second attempt; they double from attempt to attempt.
    pub const NOTIFICATION_BACKOFF_MS: i64 = 1_000;
    /// Milliseconds between two attempts at most.
    pub const NOTIFICATION_BACKOFF_MS_MAX: i64 = 60_000;
    /// Milliseconds after which a notification that was not delivered is given up.
    pub const NOTIFICATION_DEADLINE_MS: i64 = 10 * 60 * 1_000;
    /// Milliseconds that one attempt may take.
    pub const NOTIFICATION_TIMEOUT_MS: u32 = 10_000;
}
