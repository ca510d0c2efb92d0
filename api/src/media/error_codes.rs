//! Error codes of media.

agentsvc_components::error_codes! {
    /// No provider that offers the kind of media has a key.
    MISSING_KEY = "missing_key", [422], "Set a key with `POST /api/providers/{name}/key`, or in the environment.";
    /// The provider is unknown, or does not offer this kind of media.
    MEDIA_UNSUPPORTED = "media_unsupported", [400], "`GET /api/media/providers` lists what each provider offers.";
    /// The provider refused the request for media.
    MEDIA_REFUSED = "media_refused", [400], "Change the request; `error` has the words of the provider.";
    /// A content filter of the provider stopped the request.
    MEDIA_FILTERED = "media_filtered", [400], "Change the prompt.";
    /// The provider takes no requests for media now, or its credit is used up.
    MEDIA_RATE_LIMITED = "media_rate_limited", [429], "Retry later, or raise the limit at the provider.";
    /// The provider refused its key.
    MEDIA_KEY_REFUSED = "media_key_refused", [502], "Set a valid key for the provider.";
    /// The provider could not be reached, failed, or sent what cannot be used.
    MEDIA_PROVIDER_FAILED = "media_provider_failed", [502], "Retry later; `error` says what went wrong.";
    /// The provider did not answer in time, or the task goes on.
    MEDIA_TIMEOUT = "media_timeout", [504], "With `task_id`, ask for it with `GET /api/media/tasks/{task_id}`; otherwise retry.";
    /// The daemon ended while the provider was asked, so that the request may have been paid.
    MEDIA_UNKNOWN = "media_unknown", [502], "Check the account at the provider before you repeat the request.";
    /// The file is no recording.
    MEDIA_NOT_AUDIO = "media_not_audio", [415], "Send MP3, WAV, FLAC, Ogg, AAC, MP4 or WebM.";
}
