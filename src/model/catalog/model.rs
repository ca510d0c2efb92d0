//! A model as it is kept: compact, checked, and never changed.

use agentsvc_components::Micros;
use agentsvc_components::usage::price::Price;

agentsvc_components::enum_words! {
    /// Where a model's entry comes from.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Origin [as_str] {
        /// This release.
        BuiltIn = "builtin",
        /// A catalog that was fetched.
        Remote = "remote",
        /// A client of the API.
        Custom = "custom",
    }
}

agentsvc_components::enum_words! {
    /// How able and dear a model is, roughly.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Tier [ALL, as_str, parse] {
        /// The ablest of its maker.
        Frontier = "frontier",
        /// For most work.
        Smart = "smart",
        /// Quick and cheap.
        Fast = "fast",
    }
}

/// Whether a model takes pictures, and how that is known (spec 2, Model, vision_support rule).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vision {
    /// It was declared to take them.
    Supported,
    /// It was declared not to take them: requests to it have none.
    Unsupported,
    /// Nothing was declared; its name lets one think that it does (`true`) or not.
    Unknown(bool),
}

impl Vision {
    /// `vision_support` of the entry.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Unsupported => "unsupported",
            Self::Unknown(_) => "unknown",
        }
    }

    /// `supports_vision` of the entry.
    pub const fn is_likely(self) -> bool {
        matches!(self, Self::Supported | Self::Unknown(true))
    }
}

/// What a model costs for each million tokens; `None` is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Tokens of the prompt.
    pub input: Option<Micros>,
    /// Output tokens.
    pub output: Option<Micros>,
    /// Tokens of the prompt that were in the provider's cache.
    pub cached_input: Option<Micros>,
    /// Tokens of the prompt that are written into the provider's cache.
    pub cache_write: Option<Micros>,
}

impl Costs {
    /// The price for metering and budgets; `None` when one side of it is not known, for half a price is none.
    pub fn price(&self) -> Option<Price> {
        Some(Price {
            input_per_m: self.input?,
            output_per_m: self.output?,
            cached_input_per_m: self.cached_input,
            cache_write_per_m: self.cache_write,
        })
    }
}

/// One model of one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// The provider's id for the model; may contain slashes.
    pub id: Box<str>,
    /// Provider.
    pub provider: Box<str>,
    /// Display name.
    pub display_name: Box<str>,
    /// How able it is, where someone said so.
    pub tier: Option<Tier>,
    /// Context window: prompt and output tokens together.
    pub context_window: u32,
    /// The most tokens that an answer may have, where that is known.
    pub max_output_tokens: Option<u32>,
    /// What it costs.
    pub costs: Costs,
    /// Whether it supports tool calls.
    pub tools: bool,
    /// It takes pictures.
    pub vision: Vision,
    /// It can answer piece by piece.
    pub streaming: bool,
    /// Whether it supports extended thinking.
    pub reasoning: bool,
    /// Aliases.
    pub aliases: Box<[Box<str>]>,
    /// Other ids that its provider takes for it.
    pub also: Box<[Box<str>]>,
    /// Where the entry comes from.
    pub origin: Origin,
}

impl Model {
    /// Its id and the other ids of it.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.id).chain(self.also.iter().map(|id| &**id))
    }
}
