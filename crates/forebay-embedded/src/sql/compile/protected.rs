//! Rows that one foreign key protects and another takes along.
//!
//! PostgreSQL deletes level by level: what refers to a deleted row by a key that cascades is deleted next, and whether anything else
//! refers to it is looked at in the same turn, before what lies deeper goes. SQLite looks when all is gone, and finds nobody who
//! referred. So where a key protects rows of a table that a deletion reaches on another way, too, each row is looked at before.
//!
//! A row that stops referring by one key (SET NULL, SET DEFAULT) is looked at by its other keys, too, if its transaction has made or
//! changed it: one turn later, when what it refers to may be gone, and it itself is not yet. That is an error of PostgreSQL's where the
//! row was to go as well; where it may come to that, the deletion is refused.
//!
//! Promises: what PostgreSQL would have kept stays. A row that goes in the same turn as what it refers to is let go only where its
//! cascade comes first in its own table; elsewhere the deletion is PostgreSQL's error, also where PostgreSQL would have come to that row
//! in time.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::compiler::Compiler;
use super::definition::{Definition, ForeignKey};
use super::fault::{Fault, Result, unreadable};
use super::namespace::shown;
use super::schema::Table;
use super::sqlite_text::{ENVIRONMENT, identifier, quoted};

/// How many ways of a cascade are followed.
const PATHS_MAX: usize = 64;

/// A foreign key and the table whose it is.
type Key = (String, ForeignKey);

fn cascades(key: &ForeignKey) -> bool {
    key.on_delete.as_deref() == Some("CASCADE")
}

fn loosens(key: &ForeignKey) -> bool {
    matches!(key.on_delete.as_deref(), Some("SET NULL" | "SET DEFAULT"))
}

fn protects(key: &ForeignKey) -> bool {
    !key.deferred && matches!(key.on_delete.as_deref(), None | Some("NO ACTION" | "RESTRICT"))
}

/// The tables that a deletion reaches, and how.
struct Reach {
    /// The keys that lead to a table, in the order of their making, for each table whose rows may go.
    referring: BTreeMap<String, Vec<Key>>,
    /// The ways of the cascade to tables that matter, from the first table on; the way of no step is that table itself.
    paths: Vec<Vec<Key>>,
}

impl Reach {
    /// The ways to a table.
    fn to<'r>(&'r self, table: &'r str, first: &'r str) -> impl Iterator<Item = &'r [Key]> {
        self.paths
            .iter()
            .map(Vec::as_slice)
            .filter(move |path| path.last().map_or(first, |(met, _)| met) == table)
    }

    /// The keys that protect a table's rows, and whose own rows may stop referring while the cascade goes on.
    fn protecting<'r>(&'r self, parent: &str, first: &str) -> impl Iterator<Item = &'r Key> {
        let keys = self.referring.get(parent).into_iter().flatten();
        keys.filter(move |(child, key)| protects(key) && child != first && self.loses(child, key))
    }

    /// Whether rows of the key's table may stop referring by it while the cascade goes on.
    fn loses(&self, child: &str, key: &ForeignKey) -> bool {
        self.referring.contains_key(child)
            || self.referring.values().flatten().any(|(table, other)| {
                table == child
                    && other != key
                    && !protects(other)
                    && other.columns.iter().any(|column| key.columns.contains(column))
            })
    }

    /// The keys by which a table's rows are loosened, each with another of the same rows that is looked at then, and whose it is to refer
    /// to something else that goes.
    fn loosened<'r>(&'r self, parent: &str) -> impl Iterator<Item = (&'r Key, &'r str, &'r ForeignKey)> {
        let keys = self.referring.get(parent).into_iter().flatten();
        keys.filter(|(_, key)| loosens(key)).flat_map(move |loose| {
            self.referring.iter().flat_map(move |(other_parent, keys)| {
                keys.iter()
                    .filter(move |(child, other)| {
                        *child == loose.0 && *other != loose.1 && !other.deferred && !protects(other)
                    })
                    .map(move |(_, other)| (loose, other_parent.as_str(), other))
            })
        })
    }

    /// The tables on the way to those that protect others here, to those whom they protect, and to those whose rows are loosened.
    fn that_matter(&self, first: &str) -> BTreeSet<String> {
        let mut matter = BTreeSet::new();
        for parent in self.referring.keys() {
            for (child, _) in self.protecting(parent, first) {
                matter.extend([parent.clone(), child.clone()]);
            }
            for (_, other, _) in self.loosened(parent) {
                matter.extend([parent.clone(), other.to_owned()]);
            }
        }
        let leads = |keys: &[Key], matter: &BTreeSet<String>| {
            keys.iter().any(|(child, key)| cascades(key) && matter.contains(child))
        };
        loop {
            let more = self
                .referring
                .iter()
                .find(|(table, keys)| !matter.contains(*table) && leads(keys, &matter));
            match more {
                Some((table, _)) => matter.insert(table.clone()),
                None => return matter,
            };
        }
    }
}

/// `parent` and `child` are names of rows in SQLite's text; the parent's side decides how values compare, as in SQLite's own look.
fn refers(key: &ForeignKey, child: &str, parent: &str) -> String {
    let pairs = key.columns.iter().zip(&key.referred);
    let pairs = pairs.map(|(own, other)| format!("{parent}.{} = {child}.{}", identifier(other), identifier(own)));
    pairs.collect::<Vec<_>>().join(" AND ")
}

/// The rows along a way, from the one called `first` on: each with its name, and what binds them.
fn along(path: &[Key], first: &str, prefix: &str) -> (Vec<String>, Vec<String>, String) {
    let (mut rows, mut bound, mut last) = (Vec::new(), Vec::new(), first.to_owned());
    for (place, (child, key)) in path.iter().enumerate() {
        let name = format!("\"{prefix}{place}\"");
        rows.push(format!("{} AS {name}", identifier(child)));
        bound.push(refers(key, &name, &last));
        last = name;
    }
    (rows, bound, last)
}

impl Compiler<'_> {
    /// A condition that fails if the row called `own`, and what goes with it, is protected; nothing where no such key is. `meant` tells
    /// which rows go, by that name, if not all of the table do.
    pub(super) fn protection(&mut self, table: &Table, own: &str, meant: Option<&str>) -> Result<Option<String>> {
        let reach = self.reach(&table.name)?;
        let mut parts = Vec::new();
        // Of the same name inside as the row that is asked about, so that the condition means each row there.
        let condition = meant.map(|meant| format!(" WHERE {meant}")).unwrap_or_default();
        let going = format!("(SELECT * FROM {} AS {own}{condition})", identifier(&table.name));
        for path in &reach.paths {
            let parent = path.last().map_or(&table.name, |(table, _)| table);
            for (child, key) in reach.protecting(parent, &table.name) {
                parts.push(self.protected(&reach, path, (parent, child, key), own)?);
            }
            for ((child, key), other_parent, other) in reach.loosened(parent) {
                for other_path in reach.to(other_parent, &table.name) {
                    if (1..=2).contains(&(other_path.len().wrapping_sub(path.len()))) {
                        parts.push(looked_at((path, key, own), (other_path, other, &going), child));
                    }
                }
            }
        }
        for (child, _) in reach.referring.values().flatten().filter(|(_, key)| loosens(key)) {
            self.changes.push(child.clone());
        }
        Ok((!parts.is_empty()).then(|| parts.join(" AND ")))
    }

    fn reach(&mut self, first: &str) -> Result<Reach> {
        let mut reach = Reach {
            referring: BTreeMap::new(),
            paths: Vec::new(),
        };
        let mut next = vec![first.to_owned()];
        while let Some(table) = next.pop() {
            let Entry::Vacant(unmet) = reach.referring.entry(table) else {
                continue;
            };
            let keys = self.foreign_keys_to(unmet.key())?;
            let further = keys.iter().filter(|(_, key)| cascades(key));
            next.extend(further.map(|(child, _)| child.clone()));
            unmet.insert(keys);
        }
        let matter = reach.that_matter(first);
        if !matter.is_empty() {
            reach.paths.push(Vec::new());
        }
        let mut next = 0;
        while let Some(path) = reach.paths.get(next).cloned() {
            next += 1;
            let parent = path.last().map_or(first, |(table, _)| table);
            for (child, key) in &reach.referring[parent] {
                let is_met = child == first || path.iter().any(|(met, _)| met == child);
                if !cascades(key) || is_met || !matter.contains(child) {
                    continue;
                }
                if reach.paths.len() == PATHS_MAX {
                    return Err(Fault::unsupported(format!(
                        "a deletion that more than {PATHS_MAX} ways of foreign keys take further,"
                    )));
                }
                let mut longer = path.clone();
                longer.push((child.clone(), key.clone()));
                reach.paths.push(longer);
            }
        }
        Ok(reach)
    }

    /// The look at one key behind one way of the cascade: NULL, or the error.
    fn protected(
        &mut self,
        reach: &Reach,
        path: &[Key],
        (parent, child, key): (&str, &str, &ForeignKey),
        own: &str,
    ) -> Result<String> {
        let (mut rows, mut conditions, last) = along(path, own, "p");
        rows.push(format!("{} AS \"child\"", identifier(child)));
        conditions.push(refers(key, "\"child\"", &last));
        // What is gone by then: taken along on a way that is no longer, or by a key of the same row's that comes first.
        for other in reach
            .paths
            .iter()
            .filter(|other| other.last().is_some_and(|(table, _)| table == child))
        {
            let Some(((_, step), before)) = other.split_last() else {
                continue;
            };
            if other.len() <= path.len() {
                let (rows, mut bound, last) = along(before, own, "q");
                bound.push(refers(step, "\"child\"", &last));
                let from = if rows.is_empty() {
                    String::new()
                } else {
                    format!(" FROM {}", rows.join(", "))
                };
                conditions.push(format!("NOT EXISTS (SELECT 1{from} WHERE {})", bound.join(" AND ")));
            } else if before == path && comes_first(reach, parent, child, step, key) {
                conditions.push(format!("({}) IS NOT TRUE", refers(step, "\"child\"", &last)));
            }
        }
        let message = format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
            shown(parent),
            key.name,
            shown(child)
        );
        let described = self.schema.table(parent).map_err(unreadable)?;
        let definition = described
            .as_ref()
            .and_then(|described| Definition::read(&described.definition));
        let value = match definition {
            Some(definition) => self.shown(&key.referred, &definition, &format!("{last}."))?,
            None => "''".to_owned(),
        };
        let names = key.referred.join(", ");
        let detail = format!(
            "{} || {value} || {}",
            quoted(&format!("Key ({names})=(")),
            quoted(&format!(") is still referenced from table \"{}\".", shown(child)))
        );
        Ok(format!(
            "(SELECT \"forebay_fail\"('23503', {}, {}, {}, NULL, {}) FROM {} WHERE {} LIMIT 1) IS NULL",
            quoted(&message),
            detail,
            quoted(child),
            quoted(&key.name),
            rows.join(", "),
            conditions.join(" AND ")
        ))
    }
}

/// The look at rows that this transaction has changed, that one key loosens behind one way of the cascade from the row called `own` while
/// what another key refers to goes behind another way from that row or another of `going`: NULL, or the error.
fn looked_at(
    (path, key, own): (&[Key], &ForeignKey, &str),
    (other_path, other, going): (&[Key], &ForeignKey, &str),
    child: &str,
) -> String {
    let (mut rows, mut conditions, last) = along(path, own, "p");
    conditions.push(refers(key, "\"child\"", &last));
    let (other_rows, other_conditions, last) = along(other_path, "\"first\"", "q");
    rows.push(format!("{going} AS \"first\""));
    rows.extend(other_rows);
    conditions.extend(other_conditions);
    conditions.push(refers(other, "\"child\"", &last));
    rows.push(format!("{} AS \"child\"", identifier(child)));
    let message = format!(
        "a deletion that takes a row of table \"{}\" along by \"{}\" and loosens it by \"{}\", in a transaction that has changed that table before, is not supported",
        shown(child),
        other.name,
        key.name
    );
    format!(
        "(SELECT \"forebay_fail\"('0A000', {}, NULL, {}) FROM {} WHERE \"forebay_changed\"({ENVIRONMENT}, {}) AND {} LIMIT 1) IS NULL",
        quoted(&message),
        quoted(child),
        rows.join(", "),
        quoted(child),
        conditions.join(" AND ")
    )
}

fn comes_first(reach: &Reach, parent: &str, child: &str, one: &ForeignKey, other: &ForeignKey) -> bool {
    let place = |key: &ForeignKey| {
        let keys = reach.referring.get(parent)?;
        keys.iter().position(|(table, known)| table == child && known == key)
    };
    place(one) < place(other)
}
