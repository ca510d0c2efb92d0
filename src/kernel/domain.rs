//! What a domain brings to the daemon.

use super::cli::Subcommand;
use super::effect::performers::Performers;
use super::toolset::Tool;

/// One domain: its folder under `src/` exports one of these as `DOMAIN`, and the list of all is `domains::DOMAINS`.
#[derive(Clone, Copy)]
pub struct Domain {
    /// The folder's name, the same in every crate.
    pub name: &'static str,
    /// The domains that this one names.
    pub uses: &'static [&'static str],
    /// Tools of agents.
    pub tools: &'static [Tool],
    /// Says what carries out its effects.
    pub performers: fn(&mut Performers),
    /// Subcommands of the command line.
    pub commands: &'static [Subcommand],
}

impl Domain {
    /// A domain that brings nothing.
    pub const EMPTY: Self = Self { name: "", uses: &[], tools: &[], performers: |_| {}, commands: &[] };
}
