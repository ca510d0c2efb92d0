//! The tool that runs a workflow.

pub(crate) mod run;
