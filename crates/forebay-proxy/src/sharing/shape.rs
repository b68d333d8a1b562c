//! Shape: what of a text may be asked for many at once: a read, an UPDATE or a DELETE of one row by its key, or an INSERT of one row.
//!
//! Promises: where the table is one for that, as the catalog is [asked](Shape::ask_table), nobody can tell. Knows no connection.

use forebay_sql::{Compared, Keyed, Parameter, Point, Row, With, keyed, keyed_many, lateral, names, point, row, rows};

use super::facts::look;
use crate::settings::quoted_text;

/// A longer name is cut, unless the server was built otherwise.
const NAME_BYTES_MAX: usize = 63;
/// More parameters than anybody who wants one row has.
const PARAMETERS_MAX: usize = 32;
/// Types of columns that a value can be compared with whatever it is: none of them makes it one of a smaller range first, which may fail.
const COMPARABLE: [u32; 14] = [16, 17, 20, 21, 23, 25, 1042, 1043, 1082, 1083, 1114, 1184, 1700, 2950];
/// Whole numbers, and numbers that have all of these among them.
const NUMBERS: [u32; 4] = [20, 21, 23, 1700];
/// text and varchar
const TEXTS: [u32; 2] = [25, 1043];

/// What may be asked for many at once.
#[derive(Debug)]
pub(crate) enum Shape {
    Point(Point),
    Row(Row),
    Keyed(Keyed),
}

/// What is done with one row, and how the server says that it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Select,
    Insert,
    Update,
    Delete,
}

impl Verb {
    /// What the server says of so many rows.
    pub(crate) fn tag(self, rows: usize) -> String {
        let verb = match self {
            Self::Select => "SELECT",
            Self::Insert => "INSERT 0",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        };
        format!("{verb} {rows}\0")
    }
}

impl Shape {
    pub(crate) fn of(text: &str) -> Option<Self> {
        if names(text).is_none_or(|names| names.iter().any(|name| name.len() > NAME_BYTES_MAX)) {
            // Of one that is cut its client is told each time.
            return None;
        }
        let shape = point(text)
            .map(Self::Point)
            .or_else(|| row(text).map(Self::Row))
            .or_else(|| keyed(text).map(Self::Keyed));
        shape.filter(|shape| shape.parameters() <= PARAMETERS_MAX)
    }

    /// The text, with parameters only.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Point(point) => &point.text,
            Self::Row(row) => &row.text,
            Self::Keyed(keyed) => &keyed.text,
        }
    }

    /// How many parameters that has.
    pub(crate) fn parameters(&self) -> usize {
        match self {
            Self::Point(point) => point.parameters,
            Self::Row(row) => row.parameters,
            Self::Keyed(keyed) => keyed.parameters,
        }
    }

    /// Which literals are parameters in that.
    pub(crate) fn literals(&self) -> &[usize] {
        match self {
            Self::Point(point) => &point.literals,
            Self::Row(row) => &row.literals,
            Self::Keyed(keyed) => &keyed.literals,
        }
    }

    pub(crate) fn verb(&self) -> Verb {
        match self {
            Self::Point(_) => Verb::Select,
            Self::Row(_) => Verb::Insert,
            Self::Keyed(keyed) if keyed.is_deleted => Verb::Delete,
            Self::Keyed(_) => Verb::Update,
        }
    }

    /// Whether the row is told.
    pub(crate) fn tells_row(&self) -> bool {
        match self {
            Self::Point(_) => true,
            Self::Row(_) => false,
            Self::Keyed(keyed) => keyed.tells_row,
        }
    }

    /// Which parameters tell the rows apart that are changed; none where that does not matter.
    pub(crate) fn keys(&self) -> Option<&[usize]> {
        match self {
            Self::Keyed(keyed) => Some(&keyed.keys),
            Self::Point(_) | Self::Row(_) => None,
        }
    }

    /// The text for lists of these types, where the table has this number. Who reads looks whether it has it still, as each by itself would look the
    /// name up anew; where rows are changed the guard does so.
    pub(crate) fn joint(&self, text: &str, lists: Vec<String>, number: &str) -> Option<String> {
        match self {
            Self::Point(point) => {
                let is_wrapped = false;
                let parameters: Vec<Parameter> = lists.into_iter().map(|list| Parameter { list, is_wrapped }).collect();
                lateral(text, &parameters)
                    .filter(|joint| !joint.is_ordered)
                    .map(|joint| format!("{} WHERE {}", joint.sql, look(&point.table, number)))
            }
            Self::Row(_) => rows(text, &lists),
            Self::Keyed(_) => keyed_many(text, &lists),
        }
    }

    /// Asks whether the table is one for that, by parameters of these types: a row with its number, if it is.
    pub(crate) fn ask_table(&self, elements: &[u32]) -> String {
        let equals = "OPERATOR(pg_catalog.=)";
        // Who is told what the server logs is told it of each.
        let is_quiet = format!(
            "pg_catalog.current_setting('client_min_messages') {equals} ANY (CAST('{{notice,warning,error}}' AS pg_catalog.text[]))"
        );
        let is_it = |table: &str| {
            format!(
                "c.oid {equals} CAST(pg_catalog.to_regclass({}) AS pg_catalog.oid)",
                quoted_text(table)
            )
        };
        // The columns have no two rows of the same values, by the very comparison that is asked for.
        let has_key = |columns: &[Compared]| {
            let names: Vec<String> = columns.iter().map(|compared| quoted_text(&compared.column)).collect();
            let names = format!("CAST(ARRAY[{}] AS pg_catalog.name[])", names.join(","));
            let unlike = columns.iter().map(|compared| {
                let types = comparable(compared.with, elements);
                let types: Vec<String> = types.iter().map(u32::to_string).collect();
                format!(
                    "(a.attname {equals} {} AND NOT a.atttypid {equals} ANY (CAST('{{{}}}' AS pg_catalog.oid[])))",
                    quoted_text(&compared.column),
                    types.join(",")
                )
            });
            let unlike: Vec<String> = unlike.collect();
            format!(
                "i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL \
                 AND NOT EXISTS (SELECT FROM pg_catalog.generate_series(0, \
                 CAST(i.indnkeyatts AS pg_catalog.int4) OPERATOR(pg_catalog.-) 1) n \
                 LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid {equals} c.oid AND a.attnum {equals} i.indkey[n] \
                 AND a.attname {equals} ANY ({names}) AND a.attcollation {equals} i.indcollation[n] \
                 AND CAST(i.indclass[n] AS pg_catalog.int8) OPERATOR(pg_catalog.<) 16384 WHERE a.attname IS NULL) \
                 AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid {equals} c.oid AND ({}))",
                unlike.join(" OR ")
            )
        };
        let number = "CAST(c.oid AS pg_catalog.text)";
        let of_indexes = format!("FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid {equals} i.indrelid");
        // What else may tell of other rows, and be told of in an answer, keeps a statement out of company.
        let is_by_itself = format!(
            "c.relkind {equals} 'r' AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k \
             WHERE k.conrelid {equals} c.oid AND k.confrelid {equals} c.oid)"
        );
        match self {
            Self::Point(point) => format!(
                "SELECT 'key', {number} {of_indexes} WHERE {} AND (c.relkind {equals} 'p' OR (c.relkind {equals} 'r' AND NOT c.relhassubclass)) \
                 AND {} AND {is_quiet} LIMIT 1",
                is_it(&point.table),
                has_key(&point.columns)
            ),
            Self::Keyed(keyed) => format!(
                "SELECT 'key', {number} {of_indexes} WHERE {} AND {is_by_itself} AND NOT c.relhassubclass AND {} AND {is_quiet} LIMIT 1",
                is_it(&keyed.table),
                has_key(&keyed.columns)
            ),
            Self::Row(row) => format!(
                "SELECT 'table', {number} FROM pg_catalog.pg_class c WHERE {} AND {is_by_itself} AND {is_quiet}",
                is_it(&row.table)
            ),
        }
    }
}

/// Types of columns of which two values are one only if they are one to this comparison, too.
fn comparable(with: With, elements: &[u32]) -> Vec<u32> {
    match with {
        With::Number => NUMBERS.to_vec(),
        // It is of the column's own.
        With::String => COMPARABLE.to_vec(),
        // Another one might not be a value of that type, and fail where there is no row.
        With::Cast(number, cast) if elements.get(number) != Some(&cast) => Vec::new(),
        With::Parameter(number) | With::Cast(number, _) => match elements.get(number) {
            Some(20 | 21 | 23) => NUMBERS.to_vec(),
            Some(element) if TEXTS.contains(element) => TEXTS.to_vec(),
            Some(element) if COMPARABLE.contains(element) => vec![*element],
            _ => Vec::new(),
        },
    }
}
