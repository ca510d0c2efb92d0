//! What runs the hooks of a plugin.

use agentsvc_components::enum_words;

enum_words! {
    /// A runtime.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) enum Runtime [ALL, as_str] {
        #[default]
        Python = "python",
        Native = "native",
        V = "v",
        Node = "node",
        Deno = "deno",
        Go = "go",
        Ruby = "ruby",
        Bash = "bash",
        Bun = "bun",
        Php = "php",
        Lua = "lua",
    }
}

impl Runtime {
    /// The runtime of this name or alias.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        let alias = match &*name {
            "py" | "python3" => Self::Python,
            "nodejs" | "js" => Self::Node,
            "ts" => Self::Deno,
            "golang" => Self::Go,
            "sh" => Self::Bash,
            "rb" => Self::Ruby,
            "binary" => Self::Native,
            "vlang" => Self::V,
            _ => return Self::ALL.into_iter().find(|runtime| runtime.as_str() == name),
        };
        Some(alias)
    }

    /// The programs that start a hook, the first that is there; none of a native one, which starts itself.
    pub(crate) const fn launchers(self) -> &'static [&'static str] {
        match self {
            Self::Python => &["python3", "python"],
            Self::Native => &[],
            Self::V => &["v"],
            Self::Node => &["node"],
            Self::Deno => &["deno"],
            Self::Go => &["go"],
            Self::Ruby => &["ruby"],
            Self::Bash => &["bash"],
            Self::Bun => &["bun"],
            Self::Php => &["php"],
            Self::Lua => &["lua", "lua5.4", "lua5.3"],
        }
    }

    /// The arguments of the launcher before the path of the hook.
    pub(crate) const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Deno => &["run", "--allow-read", "--allow-env"],
            Self::Go | Self::Bun => &["run"],
            Self::V => &["-no-retry-compilation", "run"],
            _ => &[],
        }
    }

    /// The arguments that make the launcher say its version.
    pub(crate) const fn version_arguments(self) -> &'static [&'static str] {
        match self {
            Self::Go => &["version"],
            Self::Lua => &["-v"],
            _ => &["--version"],
        }
    }

    /// The ending of a hook's file.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Python => ".py",
            Self::Native => "",
            Self::V => ".v",
            Self::Node | Self::Bun => ".js",
            Self::Deno => ".ts",
            Self::Go => ".go",
            Self::Ruby => ".rb",
            Self::Bash => ".sh",
            Self::Php => ".php",
            Self::Lua => ".lua",
        }
    }

    /// How to install the launcher.
    pub(crate) const fn install_hint(self) -> &'static str {
        match self {
            Self::Python => "Install Python 3: apt install python3, or https://www.python.org/downloads/",
            Self::Native => "Nothing is needed: hooks are programs that run by themselves",
            Self::V => "Install V: https://vlang.io",
            Self::Node => "Install Node.js: apt install nodejs, or https://nodejs.org/",
            Self::Deno => "Install Deno: https://deno.com/",
            Self::Go => "Install Go: apt install golang-go, or https://go.dev/dl/",
            Self::Ruby => "Install Ruby: apt install ruby, or https://www.ruby-lang.org/",
            Self::Bash => "Install Bash: apt install bash",
            Self::Bun => "Install Bun: https://bun.sh/",
            Self::Php => "Install PHP: apt install php-cli, or https://www.php.net/",
            Self::Lua => "Install Lua: apt install lua5.4, or https://www.lua.org/",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Runtime;

    #[test]
    fn runtimes_have_aliases() {
        for (alias, runtime) in
            [("py", Runtime::Python), ("nodejs", Runtime::Node), ("ts", Runtime::Deno), ("golang", Runtime::Go)]
        {
            assert_eq!(Runtime::of(alias), Some(runtime));
        }
        assert!(Runtime::ALL.iter().all(|runtime| Runtime::of(runtime.as_str()) == Some(*runtime)));
        assert_eq!((Runtime::ALL.len(), Runtime::of("cobol")), (11, None));
    }
}
