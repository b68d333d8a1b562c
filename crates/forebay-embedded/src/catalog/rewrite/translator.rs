//! The state of one walk over a catalog query.
//!
//! Each construct is translated by a method of [`Translator`] in the construct's own file.

use std::collections::BTreeMap;

use postgres_types::Type;

use super::super::error::CatalogError;
use super::scope::{CommonTable, Scope};

/// Levels of nesting: parentheses, subqueries, calls.
pub(super) const DEPTH_MAX: usize = 64;

/// The highest `$n`, as in the protocol.
pub(super) const PARAMETERS_MAX: usize = 65_535;

/// The state of one walk.
#[derive(Default)]
pub(super) struct Translator {
    /// Innermost last.
    pub(super) scopes: Vec<Scope>,
    pub(super) common_tables: Vec<CommonTable>,
    /// By number; the type once something told it.
    pub(super) parameters: BTreeMap<usize, Option<Type>>,
    /// For each SELECT list being walked, the sets its set-returning functions bring; `None` where such functions may not stand.
    pub(super) sets: Vec<Option<SetList>>,
    pub(super) names_made: usize,
    pub(super) aggregates_seen: usize,
    pub(super) depth: usize,
}

/// The set-returning functions of one SELECT list, which run in step.
pub(super) struct SetList {
    pub(super) alias: String,
    /// Each as SQL for a JSON array.
    pub(super) arrays: Vec<String>,
}

impl Translator {
    pub(super) fn parameters(&self) -> Vec<Type> {
        let highest = self.parameters.keys().next_back().copied().unwrap_or(0);
        (1..=highest)
            .map(|number| self.parameters.get(&number).cloned().flatten().unwrap_or(Type::TEXT))
            .collect()
    }

    /// Runs `walk` one level deeper, if there is one.
    pub(super) fn deeper<T>(
        &mut self,
        walk: impl FnOnce(&mut Self) -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        if self.depth >= DEPTH_MAX {
            return Err(CatalogError::TooComplex {
                limit: "nested too deeply",
            });
        }
        self.depth += 1;
        let result = walk(self);
        self.depth -= 1;
        result
    }

    pub(super) fn fresh_name(&mut self) -> String {
        self.names_made += 1;
        format!("forebay_{}", self.names_made)
    }
}
