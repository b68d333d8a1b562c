//! Facts: what the catalog has of the names that stand in a statement, and what is the matter with them.
//!
//! Promises: nothing is the matter only if all relations of these names, in whatever schema, are ordinary logged tables without row security
//! and rules, of types that are PostgreSQL's own or enums; no function of the user's has one of the names, none that is
//! volatile or is called and not [reviewed](super::reviewed); no operator and no cast of the user's could be meant, of enums and rows neither. Of the table that a
//! statement changes also: no trigger of the user's, no foreign key that changes another table with it, nothing that is looked at only
//! when the transaction ends, no expression that calls what is not reviewed. Whose name stands for something else as well is refused for it.
//! A change of which nothing is the matter but row security, by policies that call nothing that is not reviewed, goes [apart](Found::Apart).
//!
//! What a read names may be a view, have row security, call what is not reviewed, or have times of the day that hang on what day it is, and be [followed](super::followed) still.
//! What of all this hangs on the table alone is told by a *mark*: while the mark is the same, nothing of it has changed.

use std::fmt::Write;
use std::sync::Arc;

use forebay_sql::{ChangeKind, Effect, Touches, called, names};

use super::followed::{CALLED, Followed, Needs, OF_THE_DAY, POLICY, SECURED, Told, VIEW};
use super::reviewed::{is_of_the_time, is_reviewed, may_stand_in_a_table, unsteady};
use crate::frames;
use crate::memory::key::{COLUMNS, Key};
use crate::settings::quoted_text;

/// The operators that words stand for, or nothing.
const OPERATORS: [&str; 14] = [
    "=", "<>", "<", "<=", ">", ">=", "~~", "!~~", "~~*", "!~~*", "~", "!~", "~*", "||",
];

/// Types of the user's that values may be of which are remembered: enums, rows, and arrays of them.
const OF_USERS: &str = "pg_type t LEFT JOIN pg_type e ON e.oid = t.typelem WHERE t.oid >= 16384 AND (t.typtype IN ('e', 'c') OR e.typtype IN ('e', 'c'))";

/// Whether an aggregate, which is always declared to be immutable, is of functions that are volatile.
const IS_OF_VOLATILE: &str = "EXISTS (SELECT FROM pg_aggregate g JOIN pg_proc f ON f.oid IN (g.aggtransfn, g.aggfinalfn, g.aggcombinefn, \
g.aggserialfn, g.aggdeserialfn, g.aggmtransfn, g.aggminvtransfn, g.aggmfinalfn) WHERE g.aggfnoid = p.oid AND f.provolatile = 'v')";

/// What tells whether anything of a table has changed: the writers of all rows that the catalog has of it. A number that comes later is
/// greater, so that no change makes up for another.
const MARK: &str = "pg_catalog.concat_ws(' ', c.oid, c.xmin, \
(SELECT pg_catalog.concat_ws(':', pg_catalog.count(*), pg_catalog.sum(CAST(CAST(x.xmin AS pg_catalog.text) AS pg_catalog.int8))) \
FROM pg_catalog.pg_attribute x WHERE x.attrelid OPERATOR(pg_catalog.=) c.oid), \
(SELECT pg_catalog.concat_ws(':', pg_catalog.count(*), pg_catalog.sum(CAST(CAST(x.xmin AS pg_catalog.text) AS pg_catalog.int8))) \
FROM pg_catalog.pg_attrdef x WHERE x.adrelid OPERATOR(pg_catalog.=) c.oid), \
(SELECT pg_catalog.concat_ws(':', pg_catalog.count(*), pg_catalog.sum(CAST(CAST(x.xmin AS pg_catalog.text) AS pg_catalog.int8))) \
FROM pg_catalog.pg_constraint x WHERE x.conrelid OPERATOR(pg_catalog.=) c.oid), \
(SELECT pg_catalog.concat_ws(':', pg_catalog.count(*), pg_catalog.sum(CAST(CAST(x.xmin AS pg_catalog.text) AS pg_catalog.int8))) \
FROM pg_catalog.pg_trigger x WHERE x.tgrelid OPERATOR(pg_catalog.=) c.oid), \
(SELECT pg_catalog.concat_ws(':', pg_catalog.count(*), pg_catalog.sum(CAST(CAST(x.xmin AS pg_catalog.text) AS pg_catalog.int8))) \
FROM pg_catalog.pg_index x WHERE x.indrelid OPERATOR(pg_catalog.=) c.oid))";

/// A statement that fails unless the table that is called `$1` here has the mark `$2`: what stands before it in its transaction is undone
/// then.
pub(crate) fn guard() -> String {
    format!(
        "SELECT 1 OPERATOR(pg_catalog./) (CASE WHEN (SELECT {MARK} FROM pg_catalog.pg_class c \
         WHERE c.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass(CAST($1 AS pg_catalog.text))) \
         OPERATOR(pg_catalog.=) CAST($2 AS pg_catalog.text) THEN 1 ELSE 0 END)"
    )
}

/// The error of a [look] that fails: `ERRCODE_INVALID_ARGUMENT_FOR_LOGARITHM`, which hardly anything else makes.
pub(crate) const IS_ANOTHER: &[u8] = b"2201E";

/// A condition that is true, and fails unless the table that is called so here has that number. It has nothing of a row in it: the server looks
/// once.
pub(crate) fn look(table: &str, number: &str) -> String {
    let float = |number: u32| format!("CAST({number} AS pg_catalog.float8)");
    format!(
        "pg_catalog.ln(CASE WHEN CAST(pg_catalog.to_regclass({}) AS pg_catalog.oid) OPERATOR(pg_catalog.=) CAST({} AS pg_catalog.oid) \
         THEN {} ELSE {} END) OPERATOR(pg_catalog.=) {}",
        quoted_text(table),
        quoted_text(number),
        float(1),
        float(0),
        float(0)
    )
}

/// Asks for the number of the table of this name here.
pub(crate) fn ask_table(table: &str) -> String {
    format!(
        "SELECT 'table', CAST(CAST(pg_catalog.to_regclass({}) AS pg_catalog.oid) AS pg_catalog.text)",
        quoted_text(table)
    )
}

/// Asks what is the matter with these names, and with the table of this number, where rows of it are changed, and for the key of the one of this name, which it
/// is restricted to: rows of a kind and a text.
pub(crate) fn ask(touches: &Touches, table: Option<u32>, restricted_to: Option<&str>) -> String {
    let names = list(touches.names.iter().map(String::as_str));
    let unreviewed = list(
        touches
            .called
            .iter()
            .map(String::as_str)
            .filter(|name| !is_reviewed(name)),
    );
    let operators = list(
        OPERATORS
            .into_iter()
            .chain(touches.operators.iter().map(String::as_str)),
    );
    let unsteady = list(unsteady().iter().copied());
    // What may be read is decided by policies for reading, and what may be changed by all of them.
    let (condition, is_of_it) = match &touches.effect {
        Effect::Reads => ("pg_get_expr(y.polqual, y.polrelid)", "y.polcmd IN ('r', '*')"),
        Effect::Changes(_) => (
            "nullif(concat_ws(' AND ', pg_get_expr(y.polqual, y.polrelid), pg_get_expr(y.polwithcheck, y.polrelid)), '')",
            "true",
        ),
    };
    let mut text = format!(
        "SET LOCAL search_path = pg_catalog; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 100; \
         SELECT CASE WHEN p.provolatile = 'v' OR {IS_OF_VOLATILE} THEN 'the function ' || p.proname || ', which is volatile' ELSE '{CALLED}' || p.proname END, '' FROM pg_proc p WHERE p.proname = ANY({names}) \
         AND (p.oid >= 16384 OR (p.provolatile = 'v' AND NOT p.proname = ANY({unsteady})) OR p.proname = ANY({unreviewed})) \
         UNION ALL SELECT CASE WHEN c.relkind NOT IN ('r', 'p', 'v') THEN 'the relation ' || c.relname || ', which is no table' \
         WHEN c.relpersistence <> 'p' THEN 'the relation ' || c.relname || ', which is not logged' \
         WHEN c.relhasrules AND c.relkind <> 'v' THEN 'the relation ' || c.relname || ', which has rules' \
         WHEN c.is_odd THEN 'the relation ' || c.relname || ', which has a type or a storage of its own, or foreign parts' \
         WHEN c.relkind = 'v' THEN '{VIEW}' || c.relname ELSE '{SECURED}' || c.relname END, \
         CASE WHEN c.relkind = 'v' AND NOT c.is_odd THEN pg_get_viewdef(c.oid) ELSE '' END \
         FROM (SELECT c.oid, c.relname, c.relnamespace, c.relkind, c.relpersistence, c.relrowsecurity, c.relhasrules, \
         ((c.relkind = 'r' AND c.relam <> 2) OR (c.relhassubclass AND EXISTS (SELECT FROM pg_foreign_table)) \
         OR EXISTS (SELECT FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type e ON e.oid = t.typelem \
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND t.oid >= 16384 \
         AND t.typtype <> 'e' AND e.typtype IS DISTINCT FROM 'e')) AS is_odd FROM pg_class c WHERE c.relname = ANY({names})) c \
         JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind NOT IN ('i', 'I', 't', 'c') AND c.relpersistence <> 't' AND n.nspname <> 'information_schema' \
         AND (c.relkind NOT IN ('r', 'p') OR c.relpersistence <> 'p' OR c.relrowsecurity OR c.relhasrules OR c.is_odd) \
         UNION ALL SELECT '{POLICY}' || c.relname, coalesce({condition}, 'true') \
         FROM pg_policy y JOIN pg_class c ON c.oid = y.polrelid WHERE c.relname = ANY({names}) AND c.relrowsecurity AND {is_of_it} \
         UNION ALL SELECT 'the type ' || t.typname, '' FROM pg_type t LEFT JOIN pg_type e ON e.oid = t.typelem AND e.typarray = t.oid \
         WHERE t.typname = ANY({names}) AND t.oid >= 16384 AND coalesce(e.typtype, t.typtype) <> 'e' \
         AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = t.typrelid AND c.relkind <> 'c') \
         UNION ALL SELECT DISTINCT 'named', CAST(c.relname AS text) FROM pg_class c \
         WHERE c.relname = ANY({names}) AND c.relkind IN ('r', 'p') \
         UNION ALL SELECT 'named', CAST(part.relname AS text) FROM (WITH RECURSIVE parts AS (\
         SELECT oid FROM pg_class WHERE relname = ANY({names}) AND relhassubclass \
         UNION SELECT h.inhrelid FROM pg_inherits h JOIN parts ON parts.oid = h.inhparent) \
         SELECT c.relname FROM parts JOIN pg_class c ON c.oid = parts.oid WHERE NOT c.relname = ANY({names})) part \
         UNION ALL SELECT 'the operator ' || o.oprname, '' FROM pg_operator o WHERE o.oid >= 16384 AND o.oprname = ANY({operators}) \
         AND (o.oprleft < 16384 AND o.oprright < 16384 OR EXISTS (SELECT FROM {OF_USERS} AND t.oid IN (o.oprleft, o.oprright))) \
         UNION ALL SELECT 'a cast to ' || format_type(c.casttarget, NULL), '' FROM pg_cast c WHERE c.oid >= 16384 \
         AND (c.castsource < 16384 AND (c.casttarget < 16384 OR c.castcontext = 'i') \
         OR c.castfunc <> 0 AND EXISTS (SELECT FROM {OF_USERS} AND t.oid IN (c.castsource, c.casttarget)))"
    );
    if touches.effect == Effect::Reads {
        // What offset a zone has is a matter of the day: of what has one and no date, and of what gets one.
        let is_zoned = touches.names.iter().any(|name| name == "timezone");
        let types = if is_zoned {
            "1083, 1183, 1266, 1270"
        } else {
            "1266, 1270"
        };
        let _ = write!(
            text,
            " UNION ALL SELECT DISTINCT '{OF_THE_DAY}' || c.relname, '' FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid \
             WHERE c.relname = ANY({names}) AND c.relkind IN ('r', 'p', 'v') AND NOT a.attisdropped AND a.atttypid IN ({types})"
        );
    }
    if let Some(name) = restricted_to {
        let name = quoted_text(name);
        let _ = write!(
            text,
            " UNION ALL SELECT 'key', {COLUMNS} FROM pg_class c WHERE c.relname = {name} AND c.relkind = 'r' AND c.relpersistence <> 't'"
        );
    }
    if let (Effect::Changes(change), Some(table)) = (&touches.effect, table) {
        let finds_rows = change.kind != ChangeKind::Insert;
        let c = format!("(SELECT xmin, * FROM pg_class WHERE oid = {table}) c");
        let _ = write!(
            text,
            " UNION ALL SELECT 'mark', {MARK} FROM {c} \
             UNION ALL SELECT 'inherits', '' FROM pg_inherits h WHERE h.inhrelid = {table} \
             UNION ALL SELECT 'the trigger ' || t.tgname, '' FROM {c} JOIN pg_trigger t ON t.tgrelid = c.oid WHERE NOT t.tgisinternal \
             UNION ALL SELECT 'the table ' || c.relname || ', which is a part of another, or has parts', '' FROM {c} \
             WHERE c.relkind <> 'r' OR c.relispartition OR (c.relhassubclass AND {finds_rows}) \
             UNION ALL SELECT 'the constraint ' || k.conname || CASE WHEN k.condeferrable THEN ', which can be deferred' \
             WHEN k.contype = 'x' THEN ', which excludes' ELSE ', which changes a table with another' END, '' \
             FROM {c} JOIN pg_constraint k ON k.conrelid = c.oid OR k.confrelid = c.oid \
             WHERE k.condeferrable OR k.contype = 'x' OR ({finds_rows} AND k.contype = 'f' AND k.confrelid = c.oid \
             AND (k.confdeltype NOT IN ('a', 'r') OR k.confupdtype NOT IN ('a', 'r'))) \
             UNION ALL SELECT 'what a default, a constraint or an index of ' || c.relname || ' calls', '' FROM {c} \
             WHERE EXISTS (SELECT FROM pg_attrdef d JOIN pg_depend p ON p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid \
             WHERE d.adrelid = c.oid AND p.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)) \
             OR EXISTS (SELECT FROM pg_constraint k JOIN pg_depend p ON p.classid = 'pg_constraint'::regclass AND p.objid = k.oid \
             WHERE k.conrelid = c.oid AND p.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)) \
             OR EXISTS (SELECT FROM pg_index i JOIN pg_depend p ON p.classid = 'pg_class'::regclass AND p.objid = i.indexrelid \
             WHERE i.indrelid = c.oid AND p.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_opclass'::regclass)) \
             UNION ALL SELECT CASE WHEN a.attgenerated = '' THEN 'default' ELSE 'expression' END, pg_get_expr(d.adbin, d.adrelid) \
             FROM {c} JOIN pg_attrdef d ON d.adrelid = c.oid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.adnum \
             UNION ALL SELECT 'identity', '' FROM {c} JOIN pg_attribute a ON a.attrelid = c.oid WHERE a.attidentity <> '' \
             UNION ALL SELECT 'expression', pg_get_expr(k.conbin, k.conrelid) FROM {c} JOIN pg_constraint k ON k.conrelid = c.oid \
             WHERE k.contype = 'c' \
             UNION ALL SELECT 'expression', concat_ws(', ', pg_get_expr(i.indexprs, i.indrelid), pg_get_expr(i.indpred, i.indrelid)) \
             FROM {c} JOIN pg_index i ON i.indrelid = c.oid WHERE i.indexprs IS NOT NULL OR i.indpred IS NOT NULL",
        );
    }
    text
}

/// An array of names, as it stands in SQL.
fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.map(quoted_text).collect();
    format!("CAST(ARRAY[{}] AS name[])", quoted.join(","))
}

/// What was found of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing is the matter.
    Harmless {
        /// Of the table whose rows are changed.
        mark: Option<String>,
        /// The table draws numbers for its rows.
        draws: bool,
        /// The tables of all names in it, and their parts and heirs.
        tables: Arc<[Arc<str>]>,
        /// Rows of the table that is changed are another's, too.
        inherits: bool,
        /// Of the table whose rows it is restricted to.
        key: Option<Key>,
    },
    /// It goes alone; what it reads is [followed](super::followed).
    Followed {
        /// Why, in words that follow "it names".
        matter: String,
        needs: Needs,
        /// As above, and those of all names in the definitions that it uses.
        tables: Arc<[Arc<str>]>,
    },
    /// A change that goes alone; which rows it changes is known as if nothing were the matter.
    Apart {
        /// Why, in words that follow "it names".
        matter: String,
        /// As above.
        inherits: bool,
        /// As above.
        key: Option<Key>,
    },
    /// What is, in words that follow "it names".
    Matter(String),
}

/// What these rows say, the answer to the last that was asked about what is followed.
pub(crate) fn found(followed: &Followed, rows: &[(String, String)]) -> Found {
    let touches = &followed.touches;
    let mut told = Told::default();
    let (mut marked, mut draws, mut inherits, mut key) = (None, false, false, None);
    let mut tables = Vec::new();
    let finds_rows = matches!(&touches.effect, Effect::Changes(change) if change.finds_rows);
    for (kind, text) in rows {
        if kind.contains(char::REPLACEMENT_CHARACTER) || text.contains(char::REPLACEMENT_CHARACTER) {
            return Found::Matter("what has letters that cannot be read in this client_encoding".to_owned());
        }
        match kind.as_str() {
            "mark" => marked = Some(text.clone()),
            "named" => tables.push(Arc::from(text.as_str())),
            "inherits" => inherits = true,
            "key" => key = Key::parse(text),
            "identity" => draws = true,
            "default" | "expression" => {
                let Some(called) = called(text) else {
                    return Found::Matter("a default, a constraint or an index that cannot be read".to_owned());
                };
                let is_default = kind == "default";
                let tells_time = || {
                    names(text).is_none_or(|names| names.iter().any(|name| is_of_the_time(&name.to_ascii_lowercase())))
                };
                if is_default && finds_rows && touches.names.iter().any(|name| name == "default") && tells_time() {
                    return Found::Matter("a default that tells the time".to_owned());
                }
                if let Some(other) = called.iter().find(|name| !may_stand_in_a_table(name, is_default)) {
                    return Found::Matter(format!("a table that calls {other}"));
                }
                draws |= called.iter().any(|name| name == super::reviewed::DRAWING);
            }
            kind if told.take(kind) => {}
            matter => return Found::Matter(matter.to_owned()),
        }
    }
    if let Some(matter) = followed.matter() {
        return Found::Matter(matter.to_owned());
    }
    if let Some(name) = followed.missing(&tables) {
        return Found::Matter(format!("the table {name}, by a rule's depends_on, which is not there"));
    }
    if let Some(matter) = told.matter.take() {
        return match touches.effect {
            Effect::Reads => Found::Followed {
                matter,
                needs: followed.needs(told),
                tables: tables.into(),
            },
            Effect::Changes(_) if marked.is_some() && followed.needs_row_security_alone(told) => {
                Found::Apart { matter, inherits, key }
            }
            Effect::Changes(_) => Found::Matter(matter),
        };
    }
    if matches!(touches.effect, Effect::Changes(_)) && marked.is_none() {
        return Found::Matter("a table that is not there".to_owned());
    }
    Found::Harmless {
        mark: marked,
        draws,
        tables: tables.into(),
        inherits,
        key,
    }
}

/// Reads a DataRow of two texts from its first byte on; NULL is the empty text.
pub(crate) fn row(row: &[u8]) -> Option<(String, String)> {
    let mut rest = row.get(frames::HEADER_BYTES..)?.strip_prefix(&[0, 2])?;
    let mut column = || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
        let (text, behind) = behind.split_at_checked(length)?;
        rest = behind;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    Some((column()?, column()?))
}

/// Asks what of the session's settings matters to whoever shares a transaction.
pub(crate) const ASK_SESSION: &str = "SELECT pg_catalog.current_setting('default_transaction_isolation'), \
pg_catalog.concat_ws(' ', (SELECT setting FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'statement_timeout'), \
(SELECT setting FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'lock_timeout'), \
(SELECT setting FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'deadlock_timeout'), \
coalesce((SELECT setting FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'transaction_timeout'), '0'), \
(SELECT setting FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'session_replication_role'), \
CASE WHEN 'information_schema' OPERATOR(pg_catalog.=) ANY(pg_catalog.current_schemas(true)) THEN 'seen' ELSE 'unseen' END)";

/// What of the session's settings matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Reads may share a transaction.
    pub(crate) reads: bool,
    /// Changes may.
    pub(crate) changes: bool,
    /// How long they may wait for a lock, in milliseconds.
    pub(crate) lock_timeout_ms: u64,
}

/// A lock is waited for no longer than this in company.
const LOCK_TIMEOUT_MAX_MS: u64 = 20;

impl Terms {
    /// Nothing may be shared. Whoever waits already waits for no lock without a bound, which 0 would be.
    pub(crate) const NONE: Self = Self {
        reads: false,
        changes: false,
        lock_timeout_ms: 1,
    };

    /// What this row says.
    pub(crate) fn of((isolation, rest): &(String, String)) -> Self {
        let words: Vec<&str> = rest.split(' ').collect();
        let &[statement, lock, deadlock, transaction, role, catalog] = words.as_slice() else {
            return Self::NONE;
        };
        let unbounded = |text: &str| text == "0";
        let deadlock_ms = deadlock.parse::<u64>().unwrap_or(0);
        let reads = isolation == "read committed" && catalog == "unseen";
        Self {
            reads,
            // Who has set a bound to its own statements is told by it to the millisecond.
            changes: reads && role == "origin" && unbounded(statement) && unbounded(lock) && unbounded(transaction),
            lock_timeout_ms: (deadlock_ms / 4).clamp(1, LOCK_TIMEOUT_MAX_MS),
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_sql::touches;

    use super::*;

    fn rows(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(kind, text): &(&str, &str)| ((*kind).to_owned(), (*text).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn anything_is_the_matter_but_what_is_known_not_to_be() {
        let insert = touches("INSERT INTO t (a) VALUES ($1)").unwrap();
        let harmless = |draws| Found::Harmless {
            mark: Some("16400 700".to_owned()),
            draws,
            tables: Arc::default(),
            inherits: false,
            key: None,
        };
        let marked = ("mark", "16400 700");
        let found = |touches: &Touches, rows: &[(String, String)]| found(&Followed::of(touches, &[]), rows);
        assert_eq!(found(&insert, &rows(&[marked])), harmless(false));
        assert_eq!(found(&insert, &rows(&[marked, ("identity", "")])), harmless(true));
        let told = found(
            &insert,
            &rows(&[("named", "t"), marked, ("inherits", ""), ("named", "u")]),
        );
        assert!(
            matches!(told, Found::Harmless { tables, inherits: true, .. } if tables.iter().map(|name| &**name).eq(["t", "u"]))
        );
        for (lines, key) in [("23 id", Key::parse("23 id")), ("", None)] {
            let told = found(&insert, &rows(&[marked, ("key", lines)]));
            assert!(
                matches!(told, Found::Harmless { key: told, .. } if told == key),
                "{lines}"
            );
        }
        assert_eq!(
            found(&insert, &rows(&[("default", "nextval('t_id_seq'::regclass)"), marked])),
            harmless(true)
        );
        for other in [
            &[][..],
            &[marked, ("the trigger audit", "")],
            &[marked, ("default", "pg_backend_pid()")],
            &[marked, ("default", "'open")],
            &[marked, ("expression", "(nextval('s'::regclass) > 0)")],
            &[marked, ("expression", "f(a)")],
            &[marked, ("view t", "SELECT a FROM u")],
            &[marked, ("secured t", ""), ("called f", "")],
            &[marked, ("secured t", ""), ("view v", "SELECT a FROM u")],
            &[("secured t", "")],
        ] {
            assert!(matches!(found(&insert, &rows(other)), Found::Matter(_)), "{other:?}");
        }
        let secured = [marked, ("secured t", ""), ("policy t", "true"), ("key", "23 a")];
        let apart = Found::Apart {
            matter: "the relation t, which has row security".to_owned(),
            inherits: false,
            key: Key::parse("23 a"),
        };
        assert_eq!(found(&insert, &rows(&secured)), apart);
        let read = touches("SELECT a FROM t").unwrap();
        let told = found(
            &read,
            &rows(&[("view t", "SELECT a FROM u"), ("named", "u"), ("key", "23 a")]),
        );
        assert!(matches!(told, Found::Followed { tables, .. } if tables.iter().map(|name| &**name).eq(["u"])));
        let worse = rows(&[("view t", "SELECT a FROM u"), ("the function f", "")]);
        assert_eq!(found(&read, &worse), Found::Matter("the function f".to_owned()));
    }

    #[test]
    fn who_has_bounds_of_its_own_changes_nothing_in_company() {
        let terms = |isolation: &str, rest: &str| Terms::of(&(isolation.to_owned(), rest.to_owned()));
        let usual = terms("read committed", "0 0 1000 0 origin unseen");
        assert_eq!((usual.reads, usual.changes, usual.lock_timeout_ms), (true, true, 20));
        assert_eq!(terms("read committed", "0 0 40 0 origin unseen").lock_timeout_ms, 10);
        for rest in [
            "5000 0 1000 0 origin unseen",
            "0 5000 1000 0 origin unseen",
            "0 0 1000 9 origin unseen",
            "0 0 1000 0 replica unseen",
        ] {
            let terms = terms("read committed", rest);
            assert!(terms.reads && !terms.changes, "{rest}");
        }
        for (isolation, rest) in [
            ("serializable", "0 0 1000 0 origin unseen"),
            ("read committed", "0 0 1000 0 origin seen"),
            ("read committed", ""),
        ] {
            assert_eq!(
                terms(isolation, rest),
                Terms {
                    lock_timeout_ms: terms(isolation, rest).lock_timeout_ms,
                    ..Terms::NONE
                }
            );
        }
    }
}
