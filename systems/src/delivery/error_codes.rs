//! Error codes of deliveries.

agentsvc_components::error_codes! {
    /// Untrusted content may have chosen where answers go.
    DELIVERY_UNTRUSTED = "delivery_untrusted", [403], "Set the targets yourself, with the API or the web page.";
    /// Too many schedules, cron jobs, triggers and workflows have targets.
    DELIVERY_TARGETS_FULL = "delivery_targets_full", [429], "Remove targets that you do not need.";
}
