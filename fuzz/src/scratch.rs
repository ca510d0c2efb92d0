//! A directory in memory for what is only read from files.

use std::fs;
use std::path::PathBuf;

/// The file system in memory that every Linux has.
const MEMORY: &str = "/dev/shm";

/// An empty place of this thread of this process.
pub fn room() -> PathBuf {
    thread_local! {
        static ROOM: Room = Room::new();
    }
    ROOM.with(|room| room.0.clone())
}

struct Room(PathBuf);

impl Room {
    fn new() -> Self {
        let thread = std::thread::current();
        let name: String = format!("{:?}", thread.id()).chars().filter(char::is_ascii_digit).collect();
        let base = PathBuf::from(MEMORY);
        let base = if base.is_dir() { base } else { std::env::temp_dir() };
        let path = base.join(format!("agentsvc-fuzz-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // What is left is in memory, and goes with it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
