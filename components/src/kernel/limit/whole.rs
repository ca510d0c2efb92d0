//! Limits of the input log, backups, snapshots, rehearsals and queries, which work on the whole world.

limits! {
    pub(super) const ALL;
    /// Bytes of durable steps that may wait to be written to the input log. More: the log has a gap there, and goes
    /// on with another epoch at the world's next quiet moment.
    pub const INPUTS_WAITING_BYTES_MAX: u64 = 64 << 20;
    /// Characters of one input that a replay shows; the rest is cut.
    pub const REPLAY_SHOWN_CHARS_MAX: usize = 2_000;
    /// Records that a replay names as differing. Those that differ for the first time beyond it are not named; the
    /// steps that differ are counted all the same.
    pub const REPLAY_RECORDS_MAX: usize = 1_000;
    /// Bytes of all entries of one backup, before compression. More: no backup is made; an archive that says so is
    /// refused.
    pub const BACKUP_BYTES_MAX: u64 = 1 << 40;
    /// Entries of one backup. More: no backup is made, and the error names the way out; an archive with more is
    /// refused.
    pub const BACKUP_ENTRIES_MAX: usize = 250_000;
    /// Bytes of a backup's manifest. More: refused.
    pub const BACKUP_MANIFEST_BYTES_MAX: u64 = 96 << 20;
    /// Bytes of an entry's path in a backup. Longer: the file is left out with a warning; an archive with one is
    /// refused.
    pub const BACKUP_NAME_BYTES_MAX: usize = 1_024;
    /// Bytes that a byte of a compressed backup may become, on average. More: refused as a bomb; our own are padded.
    pub const BACKUP_RATIO_MAX: u64 = 1_000;
    /// Bytes that a backup may become whatever its size; the ratio is judged beyond.
    pub const BACKUP_RATIO_FREE_BYTES: u64 = 16 << 20;
    /// Bytes of window that a compressed backup may ask for, as a power of two. More: refused.
    pub const BACKUP_WINDOW_LOG_MAX: u32 = 24;
    /// Warnings of one backup or restore; of the rest only the number.
    pub const BACKUP_WARNINGS_MAX: usize = 100;
    /// Backups that are listed, newest first, and that the retention looks at.
    pub const BACKUPS_LISTED_MAX: usize = 10_000;
    /// Directories in each other that a backup follows. Deeper: left out with a warning; an archive with deeper ones is
    /// refused.
    pub const BACKUP_DEPTH_MAX: usize = 64;
    /// Files with several hard links of workspaces that a backup looks after. More: left out with a warning.
    pub const BACKUP_LINKED_MAX: usize = 1_000_000;
    /// Bytes of holes in the files of one workspace in a backup. A file with more of them: left out with a warning.
    pub const BACKUP_HOLES_BYTES_MAX: u64 = 4 << 30;
    /// Agents that one request deletes from which on a snapshot of the world is taken first. When that cannot be
    /// taken, nothing is deleted.
    pub const SNAPSHOT_BEFORE_DELETING: usize = 100;
    /// Snapshots that a home may hold, those of retention included. More: 409 until one is deleted.
    pub const SNAPSHOTS_MAX: usize = 1_000;
    /// Milliseconds that a rehearsal may run ahead. Longer: 400.
    pub const REHEARSAL_MS_MAX: i64 = 366 * 86_400_000;
    /// Events that are injected into one rehearsal. More: 400.
    pub const REHEARSAL_EVENTS_MAX: usize = 1_000;
    /// Bytes of the request that begins a rehearsal. Longer: 413.
    pub const REHEARSAL_BODY_BYTES_MAX: usize = 8 << 20;
    /// Rehearsals that are kept, a running one included. More: the oldest goes when another one begins.
    pub const REHEARSALS_KEPT_MAX: usize = 10;
    /// Fires of one rehearsal that are listed. More: counted, not listed.
    pub const REHEARSAL_FIRES_LISTED_MAX: u64 = 5_000_000;
    /// Fires of one rehearsal. More: it ends as failed.
    pub const REHEARSAL_FIRES_MAX: u64 = 50_000_000;
    /// Bytes of a query. Longer: 400.
    pub const QUERY_BYTES_MAX: usize = 8 << 10;
    /// Conditions, brackets and sums of one query. More: 400.
    pub const QUERY_CONDITIONS_MAX: usize = 128;
    /// Values of one `in (..)` of a query. More: 400.
    pub const QUERY_CHOICES_MAX: usize = 512;
    /// Columns, groupings and sort keys of a query, each. More: 400.
    pub const QUERY_COLUMNS_MAX: usize = 64;
    /// Rows that one look of a query goes over; then whatever waits for the world has its turn.
    pub const QUERY_LOOK_MAX: usize = 2_048;
    /// Bytes of the texts that one look makes, to show or to compare them, or holds against globs and parts, those
    /// of a glob as often as it has bytes; then the look ends as at its last row. A row that alone takes more is left out, and the
    /// answer says that it is not complete.
    pub const QUERY_LOOK_TEXT_MAX: usize = 4 << 20;
    /// Bytes of a glob of a query. Longer: 400.
    pub const QUERY_GLOB_BYTES_MAX: usize = 256;
    /// Rows that a query looks at in all. Beyond: its answer is not complete, and says so.
    pub const QUERY_LOOKED_MAX: u64 = 2_000_000;
    /// Keys that a query takes down of a kind whose rows stand in no order. More: its answer is not complete, and
    /// says so.
    pub const QUERY_KEYS_MAX: usize = 65_536;
    /// Rows of an answer of a query. A higher limit: 400.
    pub const QUERY_ROWS_MAX: usize = 10_000;
    /// Rows of an answer of a query that says nothing.
    pub const QUERY_ROWS_DEFAULT: usize = 1_000;
    /// Groups of a query. More are not kept, and its answer says so.
    pub const QUERY_GROUPS_MAX: usize = 10_000;
    /// Bytes that a query keeps. Beyond, the last rows go, and its answer says so.
    pub const QUERY_KEPT_BYTES_MAX: usize = 16 << 20;
    /// Bytes of one text of an answer of a query; the rest is cut.
    pub const QUERY_CELL_BYTES_MAX: usize = 1_024;
    /// Queries that are carried out at once, those of standing ones included. More: 429, and a standing query waits.
    pub const QUERIES_MAX: usize = 4;
    /// Milliseconds that a query may take. Then its answer is what was found, and says that it is not complete.
    pub const QUERY_MS_MAX: u64 = 20_000;
    /// Standing queries. More: 429.
    pub const QUERY_STREAMS_MAX: usize = 32;
    /// Streams of `/api/world/stream` and `/api/world/events`, together. More: 429.
    pub const WORLD_STREAMS_MAX: usize = 64;
    /// Events that `/api/world/events` keeps for those who come later; the oldest go.
    pub const WORLD_EVENTS_KEPT: usize = 200;
}

/// Milliseconds between two looks of a standing query: at least and at most. Outside: 400.
pub const QUERY_EVERY_MS: (u64, u64) = (500, 3_600_000);
