//! The trail on a real disk.
