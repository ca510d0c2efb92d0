//! The configuration as it is shown.

use serde_json::Value;

use super::Config;
use crate::kernel::home::Home;
use crate::web::search;

impl Config {
    /// The configuration in effect as a nested object that mirrors the file section for section (spec 2, Configuration,
    /// rule 1): secrets as `***` or `not set`, words as the file spells them, every key there. What was left out shows
    /// what it comes to; null is what there is none of.
    pub fn shown(&self, home: &Home) -> Value {
        let mut shown = self.clone();
        shown.data_dir = Some(home.data_dir(self.data_dir.as_deref()));
        shown.backup.directory = Some(home.backups_dir(self.backup.directory.as_deref()));
        if let Ok((providers, _)) = self.models() {
            let providers = providers.with_overrides(crate::provider::kept(home, self.data_dir.as_deref()));
            let model = self.default_of(&providers);
            let provider = providers.get(&model.provider);
            let own_url = provider.map(|provider| provider.base_url.clone()).filter(|url| !url.is_empty());
            let own_key = provider.and_then(|provider| provider.api_key_env.clone());
            shown.default_model.base_url = model.base_url.or(own_url);
            shown.default_model.api_key_env = model.api_key_env.or(own_key);
            shown.default_model.provider = Some(model.provider);
            shown.default_model.model = Some(model.model);
        }
        let searches = &mut shown.web.search;
        searches.provider.get_or_insert_with(|| search::DEFAULT_NAME.into());
        serde_json::to_value(&shown).unwrap_or_default()
    }

    /// The value at `path` of what is [`shown`](Self::shown); null where there is none.
    pub fn shown_at(&self, home: &Home, path: &[String]) -> Value {
        let shown = self.shown(home);
        path.iter().try_fold(&shown, |value, name| value.get(name)).cloned().unwrap_or_default()
    }
}
