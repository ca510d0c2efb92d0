//! Error codes of sources of skills.

agentsvc_components::error_codes! {
    /// The skill contains something that attacks the model or the machine.
    SECURITY_BLOCKED = "security_blocked", [403], "Do not install the skill; `findings` says what was found and where.";
    /// The skill belongs to the program and cannot be removed.
    SKILL_BUNDLED = "skill_bundled", [403], "Disable the skill for agents with `skills` in their manifests.";
    /// A skill of this name is installed.
    ALREADY_INSTALLED = "already_installed", [409], "Uninstall the skill first.";
    /// Another change of the skill, or too many changes of skills, are under way.
    SKILL_BUSY = "skill_busy", [409], "Retry in a moment.";
    /// The hub has removed the skill.
    SKILL_GONE = "skill_gone", [410], "Choose another skill.";
    /// A file does not have the checksum that its source publishes.
    CHECKSUM_MISMATCH = "checksum_mismatch", [422, 502], "Ask the publisher. `verify: false` skips checksums of paths and URLs.";
    /// The source has more bytes or files than a skill may have.
    SKILL_TOO_LARGE = "skill_too_large", [422], "Remove what the skill does not need.";
    /// What the source holds is no skill, or a damaged archive.
    SKILL_UNREADABLE = "skill_unreadable", [422], "Check the source; `error` says what could not be read.";
    /// The source asks for fewer requests.
    SOURCE_LIMITED = "source_limited", [429], "Retry after the time in `Retry-After`.";
    /// The source failed, could not be reached or gave an answer that cannot be read.
    SOURCE_FAILED = "source_failed", [502], "Retry later; check the URL of the source in the configuration.";
    /// The source did not answer in time.
    SOURCE_TIMEOUT = "source_timeout", [504], "Retry later.";
    /// The program `git` is not installed, or may not run.
    GIT_UNAVAILABLE = "git_unavailable", [422], "Install git, or use the URL of an archive.";
}
