//! `[browser]`: the browsers of agents.

use std::path::{Path, PathBuf};

use crate::kernel::config::table;

table! {
    /// `[browser]`.
    pub struct Browser {
        /// Offer the tools browser_* to agents, if there is a Chromium.
        enabled: bool = true => flag().protected(),
        /// Chromium or Chrome, an absolute path. Default: what CHROME_PATH names, else chromium or google-chrome in the search
        /// path.
        executable: Option<PathBuf> => text(executable).example("/usr/bin/chromium").protected(),
        /// Width of pages in pixels, 320 to 3840.
        viewport_width: u64 = 1_280 => integer(320..=3_840).writable(),
        /// Height of pages in pixels, 240 to 2160.
        viewport_height: u64 = 800 => integer(240..=2_160).writable(),
        /// Seconds that a page may take to load or to respond, 1 to 110.
        timeout_secs: u64 = 30 => integer(1..=110).writable(),
        /// Seconds after which a page that is not used is closed, 5 to 86400.
        idle_secs: u64 = 600 => integer(5..=86_400).writable(),
        /// Pages that are open at once, one for each session, 1 to 32. Beyond, the page that was not used for the longest time
        /// is closed.
        max_sessions: usize = 4 => integer(1..=32).writable(),
        /// Maximum characters of page text in a result, 500 to 100000.
        max_chars: usize = 12_000 => integer(500..=100_000).writable(),
    }
}

fn executable(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    if !path.is_absolute() || text.contains('\0') {
        return Err("must be an absolute path".to_owned());
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::Browser;
    use crate::kernel::config::read_table;

    #[test]
    fn wrong_values_are_named() {
        let parse = |text: &str| read_table::<Browser>("browser", text);
        assert!(parse("").unwrap().config.enabled);
        let text = "[browser]\nenabled = false\nexecutable = \"/opt/chromium\"\nmax_sessions = 1\n";
        let read = parse(text).unwrap().config;
        assert_eq!((read.enabled, read.max_sessions), (false, 1));
        for (line, key) in [
            ("executable = \"chromium\"", "browser.executable"),
            ("timeout_secs = 0", "browser.timeout_secs"),
            ("viewport_width = 1", "browser.viewport_width"),
            ("max_sessions = 33", "browser.max_sessions"),
        ] {
            assert!(parse(&format!("[browser]\n{line}\n")).unwrap_err().to_string().contains(key), "{line}");
        }
    }
}
