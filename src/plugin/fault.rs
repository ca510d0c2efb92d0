//! Why a run of a hook gave nothing.

/// Why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// What runs it is not installed.
    #[error("launcher not found: {0}")]
    LauncherNotFound(String),
    /// It could not be started.
    #[error("the hook could not be started: {0}")]
    NotStarted(String),
    /// It took too long, and was killed.
    #[error("the hook took longer than {0} s and was killed")]
    TimedOut(u64),
    /// It ended with an error.
    #[error("the hook ended with {0}")]
    Exited(String),
    /// It wrote too much, and was killed.
    #[error("the hook wrote more than {0} bytes and was killed")]
    TooLong(usize),
    /// Nothing that it wrote is JSON.
    #[error("the hook wrote no JSON{0}")]
    NoJson(String),
    /// Its answer is JSON, but not what the hook gives.
    #[error("the answer of the hook is not valid: {0}")]
    Wrong(String),
    /// What it would be given is too large, or not what it takes.
    #[error("the input of the hook is not valid: {0}")]
    Input(String),
    /// Too many runs of it are under way.
    #[error("too many runs of the hook are in progress")]
    Busy,
    /// It failed too often, and is left alone for a while.
    #[error("the hook failed too often; the daemon tries it again in {0} s")]
    CircuitOpen(u64),
}

impl Fault {
    /// A stable word.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::LauncherNotFound(_) => "launcher_not_found",
            Self::NotStarted(_) => "not_started",
            Self::TimedOut(_) => "timed_out",
            Self::Exited(_) => "exited",
            Self::TooLong(_) => "too_long",
            Self::NoJson(_) => "no_json",
            Self::Wrong(_) => "wrong_answer",
            Self::Input(_) => "wrong_input",
            Self::Busy => "busy",
            Self::CircuitOpen(_) => "circuit_open",
        }
    }

    /// Is it worth another try?
    pub(super) const fn may_pass(&self) -> bool {
        matches!(self, Self::Exited(_) | Self::NoJson(_) | Self::NotStarted(_) | Self::TimedOut(_) | Self::Wrong(_))
    }

    /// Does it say something of the hook, and not of what is asked or of this moment?
    pub(super) const fn counts(&self) -> bool {
        !matches!(self, Self::Busy | Self::CircuitOpen(_) | Self::Input(_))
    }
}
