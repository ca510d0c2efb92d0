//! `providers test`: does a provider answer, and how fast?

use clap::Args;
use serde_json::Value;

use super::path;
use crate::kernel::cli::Error;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::output::{Waiting, field};
use crate::kernel::percent::encoded;

/// Options of `providers test`.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// The provider
    provider: String,
    /// The model [default: the provider's default model]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

impl Test {
    /// Asks; fails when the provider does not answer.
    pub(crate) fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let query = self.model.as_deref().map(encoded).map(|model| format!("?model={model}")).unwrap_or_default();
        let waiting = Waiting::on(format!("testing {}", self.provider));
        let answer = context.block_on(client.post(&path(&self.provider, &format!("/test{query}")), None))?;
        drop(waiting);
        if context.json() { output::json(&answer) } else { output::line(&said(&answer)) }
    }
}

fn said(answer: &Value) -> String {
    let cell = |key| field(answer, key);
    format!("{} answers: {} in {} ms", cell("/provider"), cell("/model_tested"), cell("/latency_ms"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{encoded, said};

    #[test]
    fn a_line() {
        let answer = json!({"status": "ok", "provider": "p", "model_tested": "m", "latency_ms": 12});
        assert_eq!(said(&answer), "p answers: m in 12 ms");
        assert_eq!(encoded("org/m:1"), "org%2Fm%3A1");
    }
}
