//! What is shown of a provider: never its key.

use std::collections::BTreeMap;

use agentsvc_api::provider::accounts::{ProviderDetail, ProviderView};

use super::detect;
use super::oauth::DeviceFlow;
use crate::model::catalog;
use crate::model::provider::overrides::Overrides;
use crate::model::provider::{Provider, Providers};

/// One line of the list.
pub(super) fn line(
    providers: &Providers,
    provider: &Provider,
    device_flows: &BTreeMap<Box<str>, DeviceFlow>,
) -> ProviderView {
    let of_default = || providers.has_default_key(provider).then_some("environment");
    let key_source = providers.key_source(provider).or_else(of_default);
    let auth_status = match (key_source, provider.needs_key) {
        (Some(_), _) => "configured",
        (None, false) => "no_key_needed",
        (None, true) => "not_configured",
    };
    ProviderView {
        name: provider.name.to_string(),
        display_name: display_name(provider),
        auth_status,
        key_source,
        env_var: provider.api_key_env.as_deref().map(str::to_owned),
        base_url: providers.shown_base_url(provider).into_string(),
        model_count: model_count(providers, provider),
        local: detect::runtime(&provider.name).is_some(),
        device_flow: device_flows.contains_key(&provider.name),
    }
}

/// All that is shown.
pub(super) fn detail(
    providers: &Providers,
    provider: &Provider,
    device_flows: &BTreeMap<Box<str>, DeviceFlow>,
    overrides: &Overrides,
) -> ProviderDetail {
    // Before the line: it opens what is in the vault, so that the line knows whether it can be used.
    let problem = overrides.problem(&provider.name).or_else(|| providers.key_problem(provider));
    ProviderDetail {
        view: line(providers, provider, device_flows),
        driver: provider.driver.as_str(),
        needs_key: provider.needs_key,
        default_model: Some(provider.default_model.to_string()).filter(|model| !model.is_empty()),
        context_tokens: provider.context_tokens,
        base_url_override: overrides.base_url(&provider.name).is_some(),
        problem,
    }
}

/// A runtime on this machine by nature.
pub(super) fn is_local(provider: &Provider) -> bool {
    provider.is_local || detect::runtime(&provider.name).is_some()
}

fn display_name(provider: &Provider) -> String {
    catalog::provider(&provider.name).map_or(&provider.name, |known| &known.display_name).to_string()
}

/// Models that the catalog has of it, those of clients included.
fn model_count(providers: &Providers, provider: &Provider) -> usize {
    let table = providers.catalog().table();
    table.models().iter().filter(|model| model.provider == provider.name).count()
}
