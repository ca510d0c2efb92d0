//! `pdf-text`: writes the text of the PDF on stdin to stdout. Not for people: the daemon starts it for each PDF that is
//! attached to a message, so that a hostile one can only end this process.

use clap::Args;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::{Error, Run};

/// Options of `pdf-text`.
#[derive(Debug, Args)]
pub(crate) struct PdfText {}

impl Run for PdfText {
    fn run(self, _context: &Context) -> Result<(), Error> {
        crate::upload::extract::run().map_err(|reason| Error::Protocol(format!("the PDF cannot be read: {reason}")))
    }
}
