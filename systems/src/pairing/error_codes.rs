//! Error codes of paired devices.

agentsvc_components::error_codes! {
    /// There are as many paired devices as `[pairing] max_devices` allows.
    DEVICES_FULL = "devices_full", [429], "Remove devices, or set `[pairing] max_devices` higher.";
}
