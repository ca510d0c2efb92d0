//! `providers`: list and test providers, and set their keys.

mod key;
mod list;
mod login;
mod test;

use clap::Subcommand;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::{Error, Run};
use crate::kernel::percent::encoded;

/// Subcommands of `providers`.
#[derive(Debug, Subcommand)]
pub(crate) enum Providers {
    /// List providers and whether they have a key
    List(list::List),
    /// Store a key in the vault (read from stdin)
    SetKey(key::SetKey),
    /// Delete the key or the sign-in from the vault
    RemoveKey(key::RemoveKey),
    /// Test a provider's key
    Test(test::Test),
    /// Sign in to a provider that uses a device code
    Login(login::Login),
}

impl Run for Providers {
    fn run(self, context: &Context) -> Result<(), Error> {
        match self {
            Self::List(command) => command.run(context),
            Self::SetKey(command) => command.run(context),
            Self::RemoveKey(command) => command.run(context),
            Self::Test(command) => command.run(context),
            Self::Login(command) => command.run(context),
        }
    }
}

/// The path of a provider's routes.
fn path(provider: &str, rest: &str) -> String {
    format!("/api/providers/{}{rest}", encoded(provider))
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn names_are_one_segment() {
        assert_eq!(path("openai", "/key"), "/api/providers/openai/key");
        assert_eq!(path("a/b ?é", ""), "/api/providers/a%2Fb%20%3F%C3%A9");
    }
}
