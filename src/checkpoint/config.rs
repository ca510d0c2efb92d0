//! `[checkpoints]`: what is kept of files before tools change them.

use crate::kernel::config::table;

table! {
    /// `[checkpoints]`.
    pub struct Checkpoints {
        /// Keep the files of a workspace before a tool changes them, in a Git repository under `checkpoints/` of the home.
        enabled: bool = true => flag().writable(),
    }
}
