//! A model as it is written: in the files of this release, in a fetched catalog, in a request, in `custom_models.json`. The
//! keys are those of the API. Nothing is taken that is out of its range.

use std::ops::RangeInclusive;

use agentsvc_components::Micros;
use agentsvc_components::kernel::limit;
use serde::{Deserialize, Serialize};

use super::model::{Costs, Model, Origin, Tier, Vision};
use super::vision;

/// Tokens of a context.
pub(super) const CONTEXT: RangeInclusive<u64> = 512..=20_000_000;
/// Dollars for a million tokens.
pub(super) const DOLLARS: RangeInclusive<f64> = 0.0..=1_000.0;
/// Names that one model may have beside its id.
const NAMES_MAX: usize = 32;

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub(crate) struct Wrong {
    /// The key at fault.
    pub(crate) field: &'static str,
    /// What it must be.
    pub(crate) message: String,
}

fn wrong(field: &'static str, message: impl Into<String>) -> Wrong {
    Wrong { field, message: message.into() }
}

/// A model as it is written. What is left out is not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Row {
    pub(crate) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) provider: Option<String>,
    pub(crate) display_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tier: Option<String>,
    pub(crate) context_window: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_cost_per_m: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_cost_per_m: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cached_input_cost_per_m: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_write_cost_per_m: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) supports_tools: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) supports_vision: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) supports_streaming: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) supports_reasoning: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) aliases: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) also: Vec<String>,
}

impl Row {
    /// The model, checked. `is_provider` tells the providers that there are.
    pub(crate) fn into_model(self, origin: Origin, is_provider: impl Fn(&str) -> bool) -> Result<Model, Wrong> {
        let id = id("id", &self.id)?;
        let provider = self.provider.as_deref().map(str::trim).unwrap_or_default();
        if !is_provider(provider) {
            let message = if provider.is_empty() { "missing" } else { "is not a known provider" };
            return Err(wrong("provider", message));
        }
        let display_name = match self.display_name.trim() {
            "" => id.clone(),
            name if is_text(name) => name.into(),
            _ => return Err(wrong("display_name", too_long())),
        };
        let tier = self.tier.as_deref().map(tier).transpose()?;
        let tokens = |field, tokens: u64| {
            let tokens = Some(tokens).filter(|tokens| CONTEXT.contains(tokens)).and_then(|n| u32::try_from(n).ok());
            tokens.ok_or_else(|| wrong(field, format!("must be {} to {} tokens", CONTEXT.start(), CONTEXT.end())))
        };
        let context_window = tokens("context_window", self.context_window)?;
        let most = self.max_output_tokens;
        if most.is_some_and(|most| !(1..=u64::from(context_window)).contains(&most)) {
            return Err(wrong("max_output_tokens", "must be 1 to context_window"));
        }
        let costs = Costs {
            input: dollars("input_cost_per_m", self.input_cost_per_m)?,
            output: dollars("output_cost_per_m", self.output_cost_per_m)?,
            cached_input: dollars("cached_input_cost_per_m", self.cached_input_cost_per_m)?,
            cache_write: dollars("cache_write_cost_per_m", self.cache_write_cost_per_m)?,
        };
        Ok(Model {
            vision: match self.supports_vision {
                Some(true) => Vision::Supported,
                Some(false) => Vision::Unsupported,
                None => Vision::Unknown(vision::is_likely(&id)),
            },
            provider: provider.into(),
            display_name,
            tier,
            context_window,
            max_output_tokens: most.and_then(|most| u32::try_from(most).ok()),
            costs,
            tools: self.supports_tools.unwrap_or(true),
            streaming: self.supports_streaming.unwrap_or(true),
            reasoning: self.supports_reasoning.unwrap_or(false),
            aliases: names("aliases", &self.aliases)?,
            also: names("also", &self.also)?,
            origin,
            id,
        })
    }

    /// The row that says the same.
    pub(crate) fn of(model: &Model) -> Self {
        let owned = |names: &[Box<str>]| names.iter().map(|name| String::from(&**name)).collect();
        Self {
            id: model.id.to_string(),
            provider: Some(model.provider.to_string()),
            display_name: model.display_name.to_string(),
            tier: model.tier.map(|tier| tier.as_str().to_owned()),
            context_window: u64::from(model.context_window),
            max_output_tokens: model.max_output_tokens.map(u64::from),
            input_cost_per_m: model.costs.input.map(Micros::usd),
            output_cost_per_m: model.costs.output.map(Micros::usd),
            cached_input_cost_per_m: model.costs.cached_input.map(Micros::usd),
            cache_write_cost_per_m: model.costs.cache_write.map(Micros::usd),
            supports_tools: Some(model.tools),
            supports_vision: match model.vision {
                Vision::Unknown(_) => None,
                declared => Some(declared == Vision::Supported),
            },
            supports_streaming: Some(model.streaming),
            supports_reasoning: Some(model.reasoning),
            aliases: owned(&model.aliases),
            also: owned(&model.also),
        }
    }
}

/// An id or alias: one word that can stand in a path.
pub(super) fn id(field: &'static str, text: &str) -> Result<Box<str>, Wrong> {
    let text = text.trim();
    if text.is_empty() {
        return Err(wrong(field, "must not be empty"));
    }
    if text.len() > limit::MODEL_ID_BYTES_MAX {
        return Err(wrong(field, format!("must have at most {} bytes", limit::MODEL_ID_BYTES_MAX)));
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(wrong(field, "must not contain spaces or control characters"));
    }
    Ok(text.into())
}

fn names(field: &'static str, names: &[String]) -> Result<Box<[Box<str>]>, Wrong> {
    if names.len() > NAMES_MAX {
        return Err(wrong(field, format!("must be at most {NAMES_MAX} names")));
    }
    names.iter().map(|name| id(field, name)).collect()
}

fn tier(word: &str) -> Result<Tier, Wrong> {
    Tier::parse(word).ok_or_else(|| wrong("tier", "must be one of `frontier`, `smart`, `fast`"))
}

fn dollars(field: &'static str, usd: Option<f64>) -> Result<Option<Micros>, Wrong> {
    let Some(usd) = usd else { return Ok(None) };
    let micros = Some(usd).filter(|usd| DOLLARS.contains(usd)).and_then(Micros::from_usd);
    micros.map(Some).ok_or_else(|| wrong(field, format!("must be {} to {} dollars", DOLLARS.start(), DOLLARS.end())))
}

fn is_text(text: &str) -> bool {
    text.len() <= limit::MODEL_ID_BYTES_MAX && !text.chars().any(char::is_control)
}

fn too_long() -> String {
    format!("must have at most {} bytes and no control characters", limit::MODEL_ID_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            id: "a/b".to_owned(),
            provider: Some("p".to_owned()),
            context_window: 8_000,
            input_cost_per_m: Some(0.0375),
            ..Row::default()
        }
    }

    fn read(row: Row) -> Result<Model, Wrong> {
        row.into_model(Origin::Custom, |provider| provider == "p")
    }

    #[test]
    fn what_is_left_out_is_not_known() {
        let model = read(row()).unwrap();
        assert_eq!((&*model.display_name, model.tier, model.vision), ("a/b", None, Vision::Unknown(false)));
        assert_eq!((model.costs.input, model.costs.output), (Some(Micros(37_500)), None));
        assert_eq!(model.costs.price(), None, "half a price is none");
        assert!(model.tools && model.streaming && !model.reasoning);
        assert_eq!(read(Row::of(&model)), Ok(model));
    }

    #[test]
    fn every_wrong_value_is_named() {
        let long = "x".repeat(limit::MODEL_ID_BYTES_MAX + 1);
        let cases: Vec<(&str, Row)> = vec![
            ("id", Row { id: " ".to_owned(), ..row() }),
            ("id", Row { id: "a b".to_owned(), ..row() }),
            ("id", Row { id: "a\u{0}".to_owned(), ..row() }),
            ("id", Row { id: long.clone(), ..row() }),
            ("provider", Row { provider: None, ..row() }),
            ("provider", Row { provider: Some("q".to_owned()), ..row() }),
            ("display_name", Row { display_name: long, ..row() }),
            ("tier", Row { tier: Some("best".to_owned()), ..row() }),
            ("context_window", Row { context_window: 0, ..row() }),
            ("context_window", Row { context_window: u64::MAX, ..row() }),
            ("max_output_tokens", Row { max_output_tokens: Some(8_001), ..row() }),
            ("max_output_tokens", Row { max_output_tokens: Some(0), ..row() }),
            ("input_cost_per_m", Row { input_cost_per_m: Some(-0.1), ..row() }),
            ("output_cost_per_m", Row { output_cost_per_m: Some(f64::NAN), ..row() }),
            ("cached_input_cost_per_m", Row { cached_input_cost_per_m: Some(1_000.1), ..row() }),
            ("cache_write_cost_per_m", Row { cache_write_cost_per_m: Some(f64::INFINITY), ..row() }),
            ("aliases", Row { aliases: vec![String::new()], ..row() }),
            ("also", Row { also: vec!["x".to_owned(); NAMES_MAX + 1], ..row() }),
        ];
        for (field, row) in cases {
            assert_eq!(read(row.clone()).unwrap_err().field, field, "{row:?}");
        }
    }
}
