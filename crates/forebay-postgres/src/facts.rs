//! Facts about a table, by which it is known whether many INSERTs may become one.
//!
//! Promises: [`Facts::is_plain`] means that a set-based INSERT does to this table exactly what its rows would have done one
//! after the other: no trigger, rule, policy or partition sees how they came; no default or CHECK calls a function of the
//! user's; no foreign key points at the table itself (it would be checked when all rows are there). The facts are read again
//! inside the transaction that relied on them: the INSERT's lock keeps all of them as they are until its end.

use super::answered::Answered;
use super::connection::Connection;
use super::error::Failure;
use super::pipeline::Whose;

/// What makes a table plain. Its storage is the server's own heap, whose number is 2 everywhere. What the table's row says of
/// triggers and CHECKs may be more than there is, never less.
macro_rules! plain {
    () => {
        "\
  c.relkind = 'r' AND c.relpersistence IN ('p', 'u') AND NOT c.relispartition AND NOT c.relrowsecurity AND NOT c.relhasrules
  AND c.relam = 2
  AND (NOT c.relhastriggers
    OR NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal))
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f' AND f.confrelid = c.oid)
  AND (c.relchecks = 0 OR NOT EXISTS (
    SELECT FROM pg_catalog.pg_constraint k
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_constraint'::regclass AND d.objid = k.oid
    WHERE k.conrelid = c.oid AND k.contype = 'c' AND d.refclassid = 'pg_catalog.pg_proc'::regclass))
  AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_attrdef e
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_attrdef'::regclass AND d.objid = e.oid
    WHERE e.adrelid = c.oid AND d.refclassid = 'pg_catalog.pg_proc'::regclass)
  AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND t.typtype NOT IN ('b', 'e'))"
    };
}

/// All facts; behind it comes the table as it stands in the statement, and a parenthesis.
const ALL: &str = concat!(
    "SELECT c.oid,
",
    plain!(),
    ",
  s.attname::text, s.sequence, s.is_identity, u.indexes, u.columns
FROM pg_catalog.pg_class c
LEFT JOIN LATERAL (
  SELECT a.attname, d.objid AS sequence, a.attidentity <> '' AS is_identity
  FROM pg_catalog.pg_attribute a
  JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_class'::regclass AND d.refclassid = 'pg_catalog.pg_class'::regclass
    AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum AND d.deptype IN ('a', 'i')
  JOIN pg_catalog.pg_class q ON q.oid = d.objid AND q.relkind = 'S'
  LEFT JOIN pg_catalog.pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
  WHERE a.attrelid = c.oid AND NOT a.attisdropped
    AND (a.attidentity <> ''
      OR pg_catalog.pg_get_expr(e.adbin, e.adrelid) = pg_catalog.format('nextval(%L::regclass)', d.objid::regclass::text))
    AND EXISTS (
      SELECT FROM pg_catalog.pg_index i
      WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indnkeyatts = 1
        AND i.indkey[0] = a.attnum AND i.indpred IS NULL)
  ORDER BY a.attnum LIMIT 1
) s ON true
CROSS JOIN LATERAL (
  SELECT coalesce(array_agg(i.indexrelid ORDER BY i.indexrelid, k.place), '{}') AS indexes,
    coalesce(array_agg(CASE WHEN i.indpred IS NULL THEN coalesce(a.attname::text, '') ELSE '' END
      ORDER BY i.indexrelid, k.place), '{}') AS columns
  FROM pg_catalog.pg_index i
  CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(number, place)
  LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number AND k.number > 0
  WHERE i.indrelid = c.oid AND i.indisunique
    AND k.place <= i.indnkeyatts
) u
WHERE c.oid = pg_catalog.to_regclass("
);

/// Whether the table is plain; as above.
const PLAIN: &str = concat!(
    "SELECT c.oid,
",
    plain!(),
    "
FROM pg_catalog.pg_class c
WHERE c.oid = pg_catalog.to_regclass("
);

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    table: u32,
    /// See the module.
    pub(super) is_plain: bool,
    /// The unique column that the table numbers by itself.
    pub(super) serial: Option<Serial>,
    /// The columns, not quoted, of each of its unique indexes; an empty name where it is not over all rows' plain column.
    pub(super) unique: Vec<Vec<String>>,
}

/// A column whose value is the next of a sequence, unless it is given one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Serial {
    /// Its name, not quoted.
    pub(super) column: String,
    /// The sequence's object id.
    pub(super) sequence: u32,
    /// Whether the column is GENERATED … AS IDENTITY.
    pub(super) is_identity: bool,
}

/// Whether a column, as it stands in SQL, is the one of that name.
pub(super) fn is_named(column: &str, name: &str) -> bool {
    match column.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\"") == name,
        None => column.to_lowercase() == name,
    }
}

/// A name as it stands in SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What a set relies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reliance {
    /// That the table is plain.
    Plain,
    /// Its serial column or its unique indexes, too.
    All,
}

impl Reliance {
    /// What is asked of the catalog to know whether it is so. The table is part of the text: what has no parameters the server plans
    /// once, and not anew for the first five times.
    pub(super) fn query(self, table: &str) -> String {
        let query = match self {
            Self::Plain => PLAIN,
            Self::All => ALL,
        };
        let table = table.replace('\\', r"\\").replace('\'', "''");
        format!("{query}E'{table}')")
    }

    /// Whether the answer is what these facts say.
    pub(super) fn holds(self, facts: &Facts, answered: &Answered) -> bool {
        match self {
            Self::Plain => {
                let is = (answered.first(0), answered.first(1));
                is == (Some(facts.table), Some(facts.is_plain))
            }
            Self::All => found(answered).as_ref() == Some(facts),
        }
    }
}

/// Reads the facts; none if there is no such table.
pub(super) async fn read(connection: &mut Connection, table: &str) -> Result<Option<Facts>, Failure> {
    let query = Reliance::All.query(table);
    let prepared = connection.prepare(&query, &[]).await?;
    let answered = connection.execute(Whose::Ours, &prepared, [0_i32; 0], &query).await?;
    Ok(found(&answered))
}

/// What the query for all of them has found.
fn found(answered: &Answered) -> Option<Facts> {
    let serial = match answered.first::<Option<String>>(2)? {
        Some(column) => Some(Serial {
            column,
            sequence: answered.first(3)?,
            is_identity: answered.first(4)?,
        }),
        None => None,
    };
    let indexes: Vec<u32> = answered.first(5)?;
    let columns: Vec<String> = answered.first(6)?;
    let columns: Vec<(u32, String)> = indexes.into_iter().zip(columns).collect();
    Some(Facts {
        table: answered.first(0)?,
        is_plain: answered.first(1)?,
        serial,
        unique: columns
            .chunk_by(|(one, _), (other, _)| one == other)
            .map(|index| index.iter().map(|(_, column)| column.clone()).collect())
            .collect(),
    })
}
