//! `[triggers]`: what bounds the agents that events wake.

use crate::kernel::config::table;

table! {
    /// `[triggers]` (spec 1, Triggers, rule 2).
    pub struct Triggers {
        /// Default of a trigger's `cooldown_secs`: minimum seconds between two fires.
        default_cooldown_secs: u32 = 5 => integer(0..=315_360_000).writable(),
        /// Maximum depth of turns that agents start through triggers and messages, 1 to 100.
        max_depth: u8 = 8 => integer(1..=100).writable(),
        /// Maximum fires per minute of a trigger, and messages of an agent to agents, from turns of depth 1 and more, 1 to 1000000.
        cascade_per_minute: u32 = 60 => integer(1..=1_000_000).writable(),
    }
}

#[cfg(test)]
mod tests {
    use super::Triggers;
    use crate::kernel::config::{Error, Loaded, read_table};

    fn parse(text: &str) -> Result<Loaded<Triggers>, Error> {
        read_table("triggers", text)
    }

    #[test]
    fn bounds_are_read_and_checked() {
        let text = "[triggers]\ndefault_cooldown_secs = 0\nmax_depth = 3\n";
        let triggers = parse(text).unwrap().config;
        assert_eq!((triggers.default_cooldown_secs, triggers.max_depth, triggers.cascade_per_minute), (0, 3, 60));
        let error = parse("[triggers]\nmax_depth = 0\n").unwrap_err().to_string();
        assert!(error.contains("c:2:13: triggers.max_depth: must be 1 to 100"), "{error}");
    }
}
