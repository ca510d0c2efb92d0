//! `completions`: a script for the shell, from the same definition as the parser.

use clap::Args;
use clap_complete::Shell;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::{Error, Run, output};

/// Options of `completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Run for Completions {
    fn run(self, _context: &Context) -> Result<(), Error> {
        output::print(&String::from_utf8_lossy(&self.script()))
    }
}

impl Completions {
    fn script(&self) -> Vec<u8> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::parser(|_| true), "agentsvc", &mut script);
        script
    }
}

#[cfg(test)]
mod tests {
    use clap_complete::Shell;

    use super::Completions;

    #[test]
    fn every_shell_has_a_script() {
        for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
            assert!(String::from_utf8(Completions { shell }.script()).unwrap().contains("agentsvc"), "{shell}");
        }
    }
}
