//! `[hands]`: what hands may do to the machine.

use crate::kernel::config::table;

table! {
    /// `[hands]`.
    pub struct Hands {
        /// Let clients install requirements of hands with the machine's package managers (`POST /api/hands/{id}/install-deps`).
        install_deps: bool => flag().protected(),
    }
}

#[cfg(test)]
mod tests {
    use super::Hands;
    use crate::kernel::config::read_table;

    #[test]
    fn nothing_is_installed_unless_the_operator_says_so() {
        let parse = |text: &str| read_table::<Hands>("hands", text);
        assert!(!parse("").unwrap().config.install_deps);
        assert!(parse("[hands]\ninstall_deps = true\n").unwrap().config.install_deps);
        assert!(parse("[hands]\ninstall_deps = 1\n").unwrap_err().to_string().contains("hands.install_deps"));
    }
}
