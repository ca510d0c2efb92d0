//! Error codes of pairing.

agentsvc_components::error_codes! {
    /// Pairing of devices is off.
    PAIRING_OFF = "pairing_off", [404], "Set `[pairing] enabled = true` in the configuration.";
    /// The code is of no device that waits to be paired, and the client has no API key.
    PAIRING_CODE_INVALID = "pairing_code_invalid", [401], "Make a new code with `agentsvc device pair` or on the page.";
    /// The code was used, has expired, or never was one.
    PAIRING_CODE_GONE = "pairing_code_gone", [410], "Make a new code.";
    /// As many codes are open as there may be.
    PAIRING_CODES_OPEN = "pairing_codes_open", [429], "Use one of the open codes, or wait until one expires.";
}
