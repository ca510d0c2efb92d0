//! The search over marketplaces: the registry, and skills.sh (facts 1.4).

use agentsvc_api::skill_source::sources::{MarketplacePage, MarketplaceSkill, RegistrySkill, SourceError};
use serde::Deserialize;

use super::cache::Cache;
use super::source::Source;
use super::wire::{Whose, Wire, one_line};
use crate::kernel::percent::encoded;

/// Rows of a page.
const PAGE_ROWS: usize = 20;
/// Rows that skills.sh is asked for.
const ROWS_MAX: usize = 100;

/// An answer of skills.sh.
#[derive(Deserialize)]
struct Answer {
    skills: Vec<Row>,
}

/// A skill of skills.sh.
#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    id: String,
    name: String,
    #[serde(default)]
    installs: u64,
    /// The repository, `owner/repo`.
    #[serde(default)]
    source: String,
}

/// Searches marketplaces.
#[derive(Default)]
pub(super) struct Marketplaces(Cache<Vec<MarketplaceSkill>>);

impl Marketplaces {
    /// The skills that skills.sh finds.
    ///
    /// # Errors
    /// [`SourceError`].
    pub(super) async fn skills_sh(
        &self,
        wire: &Wire,
        base: &str,
        query: &str,
    ) -> Result<Vec<MarketplaceSkill>, SourceError> {
        let url = format!("{base}/api/search?q={}&limit={ROWS_MAX}", encoded(query));
        if let Some(found) = self.0.get(&url) {
            return Ok(found.to_vec());
        }
        let answer: Answer = wire.json(&url, Whose::Hub).await?;
        let found = answer.skills.iter().take(ROWS_MAX).filter_map(skill).collect();
        Ok(self.0.put(url, found).to_vec())
    }
}

/// A row; `None` for what cannot be installed.
fn skill(row: &Row) -> Option<MarketplaceSkill> {
    let name = one_line(&row.name, 200);
    let id = if row.source.is_empty() { row.id.clone() } else { format!("{}/{}", row.source, row.name) };
    let Ok(Source::GitHub { owner, .. }) = Source::parse(&id, None) else { return None };
    let description = format!("Skill {name} of the repository {}", one_line(id.rsplit_once('/')?.0, 200));
    Some(MarketplaceSkill {
        name,
        author: owner,
        description,
        downloads: row.installs,
        version: String::new(),
        install_id: id,
    })
}

/// The skills of the registry that have all words of the query in their name, description or tags; names first.
pub(super) fn in_registry(skills: Vec<RegistrySkill>, query: &str) -> Vec<MarketplaceSkill> {
    let words: Vec<String> = query.to_lowercase().split_whitespace().map(str::to_owned).collect();
    let rank = |skill: &RegistrySkill| {
        let name = skill.name.to_lowercase();
        let all = format!("{name} {} {}", skill.description, skill.tags.join(" ")).to_lowercase();
        let in_name = words.iter().all(|word| name.contains(word));
        words.iter().all(|word| all.contains(word)).then_some(!in_name)
    };
    let mut found: Vec<(bool, RegistrySkill)> =
        skills.into_iter().filter_map(|skill| Some((rank(&skill)?, skill))).collect();
    found.sort_by(|(one, a), (other, b)| (one, &a.name).cmp(&(other, &b.name)));
    let shown = found.into_iter().map(|(_, skill)| {
        let RegistrySkill { name, description, version, author, .. } = skill;
        MarketplaceSkill { install_id: name.clone(), name, author, description, downloads: 0, version }
    });
    shown.collect()
}

/// A page of what both have found.
///
/// # Errors
/// That of the registry when neither could be asked.
pub(super) fn page(
    registry: Result<Vec<MarketplaceSkill>, SourceError>,
    skills_sh: Result<Vec<MarketplaceSkill>, SourceError>,
    page: usize,
) -> Result<MarketplacePage, SourceError> {
    let mut warnings = Vec::new();
    let mut all = Vec::new();
    match (registry, skills_sh) {
        (Err(error), Err(_)) => return Err(error),
        (registry, skills_sh) => {
            for (name, found) in [("registry", registry), ("skills.sh", skills_sh)] {
                match found {
                    Ok(found) => all.extend(found),
                    Err(error) => warnings.push(format!("{name}: {error}")),
                }
            }
        }
    }
    let total = all.len();
    let results = all.into_iter().skip((page - 1) * PAGE_ROWS).take(PAGE_ROWS).collect();
    Ok(MarketplacePage { results, total, warnings })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(name: &str, description: &str) -> RegistrySkill {
        let (name, description) = (name.to_owned(), description.to_owned());
        RegistrySkill {
            name,
            description,
            version: "1".into(),
            author: "me".into(),
            tags: vec!["Net".into()],
            is_installed: false,
        }
    }

    #[test]
    fn words_are_found_in_names_first() {
        let skills = || vec![registry("alpha", "about weather"), registry("weather", "x"), registry("other", "y")];
        let names = |query: &str| in_registry(skills(), query).into_iter().map(|skill| skill.name).collect::<Vec<_>>();
        assert_eq!(names("Weather"), ["weather", "alpha"]);
        assert_eq!(names("net about"), ["alpha"]);
        assert!(names("nothing").is_empty());
    }

    #[test]
    fn a_row_can_be_installed_or_is_left_out() {
        let row = |id: &str, source: &str| Row { id: id.into(), name: "a".into(), installs: 3, source: source.into() };
        let found = skill(&row("x", "o/r")).unwrap();
        assert_eq!((found.install_id.as_str(), found.author.as_str(), found.downloads), ("o/r/a", "o", 3));
        assert_eq!(skill(&row("o/r/a", "")).unwrap().install_id, "o/r/a");
        assert!(skill(&row("a", "")).is_none() && skill(&row("", "../r")).is_none());
    }

    #[test]
    fn one_marketplace_is_enough() {
        let failed = || Err(SourceError::Failed("down".to_owned()));
        let found = page(Ok(in_registry(vec![registry("a", "")], "a")), failed(), 1).unwrap();
        assert_eq!((found.results.len(), found.total, found.warnings.len()), (1, 1, 1));
        assert!(page(failed(), failed(), 1).is_err());
        assert!(page(Ok(Vec::new()), Ok(Vec::new()), 3).unwrap().results.is_empty());
    }
}
