//! Error codes of backups.

agentsvc_components::error_codes! {
    /// Another backup or restore is running, or another request is reading the whole world.
    BACKUP_BUSY = "backup_busy", [409], "Wait until it has finished.";
    /// The file is not a backup of this program.
    BACKUP_FOREIGN = "backup_foreign", [400], "Choose a file that `POST /api/backup` created.";
    /// A newer release wrote the archive.
    BACKUP_NEWER = "backup_newer", [400], "Update the daemon.";
    /// The archive is damaged or incomplete.
    BACKUP_DAMAGED = "backup_damaged", [400], "Use another backup.";
    /// The archive contains a path or a file type that a restore must not write.
    BACKUP_UNSAFE = "backup_unsafe", [400], "Do not trust this file.";
    /// The archive exceeds a limit of size or count.
    BACKUP_TOO_LARGE = "backup_too_large", [400], "Use another backup.";
    /// The selected components do not fit the present world.
    BACKUP_UNFIT = "backup_unfit", [400], "Read the message; restore other components, or all of them.";
}
