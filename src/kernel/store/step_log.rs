//! Who is handed what each durable step took in.

/// One durable step, on its way to the log of inputs.
pub struct WrittenStep {
    /// Its entry.
    pub entry: Vec<u8>,
    /// Its number.
    pub number: u64,
    /// The first of a new epoch.
    pub first: bool,
    /// A command that could not be written down.
    pub lost: Option<&'static str>,
}

/// Keeps the inputs of steps.
pub trait StepLog: Send {
    /// Takes over a step; never waits.
    fn send(&self, step: WrittenStep);
}
