//! FOR UPDATE and its like, and LOCK TABLE.
//!
//! Promises: there is one lock, the right to write, and it stands for every row's and every table's. NOWAIT and SKIP LOCKED say what becomes of a
//! statement that finds it in another transaction's hands.

use sqlparser::ast::{Lock, NonBlock, ObjectName, Query, Select, SetExpr, TableFactor};

use super::compiler::Compiler;
use super::fault::Result;
use super::plan::Locks;
use super::syntax::folded;

/// A table that a query reads: the name it has in the query, and its own.
type Locked = (String, String);

impl Compiler<'_> {
    /// What FOR UPDATE, SHARE, NO KEY UPDATE and KEY SHARE of this query ask for.
    pub(super) fn lock_rows(&mut self, query: &Query) {
        if query.locks.is_empty() {
            return;
        }
        let SetExpr::Select(select) = &*query.body else {
            self.add_locks(Locks::Wait);
            return;
        };
        let tables = self.tables(select);
        for clause in &query.locks {
            let named = clause.of.as_ref().map(last);
            let table = tables
                .iter()
                .find(|(name, _)| named.as_ref().is_none_or(|named| named == name));
            self.add_locks(match (clause.nonblock, table) {
                (Some(NonBlock::Nowait), Some((_, table))) => Locks::Refuse(format!("row in relation \"{table}\"")),
                // Further in, a query that skips rows is one of many parts.
                (Some(NonBlock::SkipLocked), Some(_)) if self.depth == 1 => Locks::Skip,
                _ => Locks::Wait,
            });
        }
    }

    /// What LOCK TABLE asks for.
    pub(super) fn lock_tables(&mut self, lock: &Lock) -> Result<()> {
        for table in &lock.tables {
            self.refuse_missing_schema(&table.name)?;
            self.table(&table.name)?;
        }
        self.add_locks(match lock.tables.first() {
            Some(table) if lock.nowait => Locks::Refuse(format!("relation \"{}\"", last(&table.name))),
            _ => Locks::Wait,
        });
        Ok(())
    }

    /// Who is not to wait fails; who waits anyway skips nothing.
    fn add_locks(&mut self, locks: Locks) {
        self.locks = Some(match (self.locks.take(), locks) {
            (Some(refuse @ Locks::Refuse(_)), _) | (_, refuse @ Locks::Refuse(_)) => refuse,
            (Some(Locks::Wait), _) | (_, Locks::Wait) => Locks::Wait,
            (_, Locks::Skip) => Locks::Skip,
        });
    }

    /// The tables of a query's FROM.
    fn tables(&self, select: &Select) -> Vec<Locked> {
        let joined = select
            .from
            .iter()
            .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
        joined
            .filter_map(|factor| match factor {
                TableFactor::Table {
                    name,
                    alias,
                    args: None,
                    ..
                } => {
                    let table = last(name);
                    let is_query = name.0.len() == 1 && self.ctes.iter().any(|cte| cte.name == table);
                    let known_as = alias
                        .as_ref()
                        .map_or_else(|| table.clone(), |alias| folded(&alias.name));
                    (!is_query).then_some((known_as, table))
                }
                _ => None,
            })
            .collect()
    }
}

/// A name without the schema's.
fn last(name: &ObjectName) -> String {
    let last = name.0.last().and_then(|part| part.as_ident());
    last.map(folded).unwrap_or_default()
}
