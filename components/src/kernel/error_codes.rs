//! Error codes that belong to no domain.

use crate::kernel::error_code::error_codes;

error_codes! {
    /// The daemon is starting and its world is not loaded.
    LOADING = "loading", [503], "Retry after the time in `Retry-After`.";
    /// A restore is replacing the world.
    EXCHANGING = "exchanging", [503], "Retry after the time in `Retry-After`; reopen streams.";
    /// Too many requests are waiting.
    BUSY = "busy", [503], "Retry after the time in `Retry-After`.";
    /// The store has not caught up with the changes that are waiting to be written.
    STORE_BACKLOG = "store_backlog", [503], "Retry after the time in `Retry-After`; check the disk if it persists.";
    /// The disk is full: reads are answered, changes are refused.
    READ_ONLY = "read_only", [503], "Free disk space; changes are accepted again within a second.";
    /// The disk, or the space reserved for these files, is full.
    STORAGE_FULL = "storage_full", [507], "Free disk space, delete files or raise the limit.";
    /// One agent with those it spawned, or one user, has as much stored as it may have.
    QUOTA_EXCEEDED = "quota_exceeded", [507], "Delete files of that agent or user, or raise the limit that `error` names.";
    /// A stored file does not match its checksum: the disk has changed it, or another program.
    FILE_DAMAGED = "file_damaged", [500], "Check the disk; upload the file again, or restore it from a backup.";
    /// The files that the nodes of a cluster share cannot be reached; nothing was stored.
    SHARED_FILES_UNAVAILABLE = "shared_files_unavailable", [503], "Retry after the time in `Retry-After`; check the NATS servers if it persists.";
    /// Another snapshot or restore is running.
    RESTORE_UNDERWAY = "snapshot_underway", [409], "Wait until it has finished.";
    /// A running node of a cluster replaces its world by no other one.
    RESTORE_IN_CLUSTER = "restore_in_cluster", [409], "Restore on a detached node, and build the cluster again from it: see docs/cluster-guide.md.";
}
