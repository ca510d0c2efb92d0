//! Limits of browsers.

agentsvc_components::limits! {
    pub const ALL;
    /// Seconds for which a page may be in use while others wait for one. Longer: the next call of another that finds none free closes
    /// it.
    pub const BROWSER_PAGE_HELD_SECS_MAX: u64 = 60;
    /// Requests of one page of a browser under way at once. More: they fail, and the page sees a network error.
    pub const BROWSER_REQUESTS_MAX: usize = 256;
    /// Bytes of what pages of all agents send, while it is on its way. More: the request fails.
    pub const BROWSER_POSTS_BYTES_MAX: usize = 32 << 20;
    /// Bytes of the same of the agents of one user with a limited role, or of one family. More: likewise.
    pub const BROWSER_POSTS_FAMILY_BYTES_MAX: usize = BROWSER_POSTS_BYTES_MAX / 2;
    /// Bytes of one message of a browser, such as a screenshot or the source of a page. A longer one is left out, and what waits for
    /// it fails.
    pub const BROWSER_MESSAGE_BYTES_MAX: usize = 64 << 20;
    /// Commands to a browser that wait for an answer. More are refused.
    pub const BROWSER_COMMANDS_MAX: usize = 4_096;
    /// Bytes of a page's source that are read for its text; the rest is cut off.
    pub const BROWSER_SOURCE_BYTES_MAX: usize = 2 << 20;
    /// Bytes of the text that `browser_type` enters. Longer: the call fails.
    pub const BROWSER_TYPE_BYTES_MAX: usize = 64 << 10;
    /// Bytes of a selector or script of a browser tool. Longer: the call fails.
    pub const BROWSER_SCRIPT_BYTES_MAX: usize = 64 << 10;
    /// Form fields and buttons that a browser tool lists of a page. More are left out.
    pub const BROWSER_FIELDS_MAX: usize = 60;
    /// Dialogs and refused requests of a page that are kept for the next result. More: the oldest go.
    pub const BROWSER_NOTES_MAX: usize = 20;
}
