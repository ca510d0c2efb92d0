//! `[hands]`: what hands may do to the machine.

use crate::kernel::config::table;

table! {
    /// `[hands]`.
    pub struct Hands {
        /// Let clients install requirements of hands with the machine's package managers (`POST /api/hands/{id}/install-deps`).
        install_deps: bool => flag().protected(),
        /// Environment variables of the daemon that commands of hands get, if a setting of the hand names them, although they
        /// look like keys: otherwise none that holds a key of the daemon or matches `skills.env_passthrough_denied_patterns`.
        env_allowed: Vec<Box<str>> => list(variable).protected(),
    }
}

fn variable(text: &str) -> Result<Box<str>, String> {
    let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if text.is_empty() || !is_name {
        return Err("must be the name of an environment variable".to_owned());
    }
    Ok(text.into())
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
        assert_eq!(parse("").unwrap().config.env_allowed, [] as [Box<str>; 0]);
        assert!(parse("[hands]\nenv_allowed = [\"A=B\"]\n").unwrap_err().to_string().contains("hands.env_allowed"));
        assert!(parse("[hands]\ninstall_deps = 1\n").unwrap_err().to_string().contains("hands.install_deps"));
    }
}
