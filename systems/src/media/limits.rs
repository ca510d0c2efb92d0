//! Limits of media.

agentsvc_components::limits! {
    pub const ALL;
    /// Characters of the prompt of an image. More: 400.
    pub const MEDIA_PROMPT_CHARS_MAX: usize = 4_000;
    /// Images of one request. More: 400.
    pub const MEDIA_IMAGES_MAX: u32 = 4;
    /// Pixels of the width or height of an image. More: 400.
    pub const MEDIA_PIXELS_MAX: u32 = 4_096;
    /// Characters of a text that is read aloud. More: 400.
    pub const MEDIA_SPEECH_CHARS_MAX: usize = 10_000;
    /// Percent of the speed of speech. Slower than a quarter, or faster: 400.
    pub const MEDIA_SPEED_PERCENT_MAX: u32 = 400;
    /// Characters of the prompt of a video or of music. More: 400.
    pub const MEDIA_LONG_PROMPT_CHARS_MAX: usize = 2_000;
    /// Seconds of a video. More: 400.
    pub const MEDIA_VIDEO_SECS_MAX: u32 = 60;
    /// Characters of lyrics. More: 400.
    pub const MEDIA_LYRICS_CHARS_MAX: usize = 3_500;
    /// Bytes of a recording that is transcribed. More: 413.
    pub const MEDIA_AUDIO_BYTES_MAX: u64 = 10 << 20;
    /// Bytes of the name of a voice, a format, a language or a model. Longer: 400.
    pub const MEDIA_NAME_BYTES_MAX: usize = 128;
    /// Bytes of a transcript, or of a prompt as a provider changed it; the rest is cut.
    pub const MEDIA_TEXT_BYTES_MAX: usize = 256 << 10;
    /// Bytes of the words of a request that its task shows; the rest is cut.
    pub const MEDIA_PROMPT_KEPT_BYTES_MAX: usize = 512;
    /// Bytes of the reason why a task failed; the rest is cut.
    pub const MEDIA_ERROR_BYTES_MAX: usize = 512;
    /// Bytes of an id that a provider gives a task. Longer: the task fails.
    pub const MEDIA_REMOTE_BYTES_MAX: usize = 256;
    /// Media tasks that are open; a user or family may have one in `POOL_SHARES` of them. More: 429.
    pub const MEDIA_OPEN_MAX: usize = 256;
    /// Open media tasks of one agent, or of clients of the API. More: 429.
    pub const MEDIA_AGENT_OPEN_MAX: usize = 64;
    /// Media tasks that are kept, open and ended. More: of the user or family that keeps most, the ones that
    /// ended first go. Their files stay.
    pub const MEDIA_TASKS_MAX: usize = 2_000;
    /// Bytes of the texts of all media tasks. More: as above.
    pub const MEDIA_TASKS_BYTES_MAX: usize = 16 << 20;
    /// Milliseconds that an ended media task is kept.
    pub const MEDIA_KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1_000;
    /// Ended media tasks that one beat removes; the others go with the next.
    pub const MEDIA_SWEPT_MAX: usize = 64;
    /// Requests that wait for the end of one media task. Further ones are answered with what it is then.
    pub const MEDIA_WAITERS_MAX: usize = 16;
    /// Bytes of what a job of media is told.
    pub const MEDIA_INPUT_BYTES_MAX: usize = 64 << 10;
    /// Requests for media that are out at once; of a user one in `POOL_SHARES` of them, of a family three. The rest waits.
    pub const MEDIA_MAKE_OUT_MAX: usize = 8;
    /// Requests for media of one agent, or of clients of the API, that are out at once; the rest waits.
    pub const MEDIA_AGENT_MAKE_OUT_MAX: usize = 4;
    /// Milliseconds that a provider may take for a request. Longer: the task fails, and is not repeated.
    pub const MEDIA_MAKE_TIMEOUT_MS: u32 = 300_000;
    /// Milliseconds that a request may wait until a provider takes it.
    pub const MEDIA_MAKE_DEADLINE_MS: i64 = 15 * 60 * 1_000;
    /// Times that a provider is asked that takes no requests or cannot be reached.
    pub const MEDIA_MAKE_TRIES_MAX: u32 = 4;
    /// Times that a request is begun again because the daemon ended before the provider was asked. More: it fails.
    pub const MEDIA_RESTARTS_MAX: u8 = 3;
    /// Milliseconds that a task may take at the provider. Longer: it fails.
    pub const MEDIA_POLL_DEADLINE_MS: i64 = 2 * 60 * 60 * 1_000;
    /// Times that a provider is polled for one task.
    pub const MEDIA_POLL_TRIES_MAX: u32 = 2_000;
    /// Milliseconds between two questions for a task, at first; they double.
    pub const MEDIA_POLL_BACKOFF_MS: i64 = 1_000;
    /// Milliseconds between two questions for a task.
    pub const MEDIA_POLL_BACKOFF_MS_MAX: i64 = 20_000;
    /// Milliseconds that a provider may take to answer a question for a task.
    pub const MEDIA_POLL_TIMEOUT_MS: u32 = 60_000;
    /// Questions for tasks that are out at once; shared as requests are. The rest waits.
    pub const MEDIA_POLL_OUT_MAX: usize = 16;
    /// Results that are downloaded at once; of a user one. The rest waits.
    pub const MEDIA_FETCH_OUT_MAX: usize = 2;
    /// Times that a result is downloaded.
    pub const MEDIA_FETCH_TRIES_MAX: u32 = 6;
    /// Milliseconds after which a result that cannot be downloaded is given up.
    pub const MEDIA_FETCH_DEADLINE_MS: i64 = 30 * 60 * 1_000;
}
