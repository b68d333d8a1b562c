//! Many INSERTs of one text as one statement over lists of their parameters.
//!
//! Promises: only for texts of which a parser has shown that each inserts one row of parameters and constants, and tables
//! whose [`Facts`] say that nobody can tell the difference. Each caller's own outcome: with one row a caller, as many rows as
//! callers means one for each; rows that are returned are matched to their callers by numbers that are drawn from the table's
//! own sequence before the rows are inserted, never by their order.
//!
//! The numbers are drawn by a statement of their own ([`Form::draw`]), under the lock that the INSERT will take: drawn within the
//! INSERT and joined with what it returns, they cost the server more than the rows themselves.
//!
//! Lists rather than a longer VALUES, because one prepared statement then serves any number of rows. Which rows would be in
//! conflict can be asked before ([`sift`]), so that a few of them do not fail all; the answer is a hint, and what it misses
//! fails the set.

use postgres_types::Type;

use super::facts::{Facts, is_named, quoted};
use super::types::array_of;
use forebay_sql::{Cell, Insert};

/// How a set is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) sql: String,
    /// The types of the lists.
    pub(super) lists: Vec<Type>,
    /// Which parameter of the original each list holds; not the last, if numbers are drawn.
    pub(super) sources: Vec<usize>,
    /// Where rows are told: draws numbers for them from the table's own sequence. Given how many, it tells one array of them,
    /// which the form takes as its last list; each row is told after its number.
    ///
    /// The INSERT in it that inserts nothing is there for its lock: as where one INSERT draws and writes, the table is locked
    /// before the sequence. Else a `TRUNCATE … RESTART IDENTITY` could wait for us while we wait for it.
    pub(super) draw: Option<String>,
}

/// A question before a set is written: which of its rows would be in conflict with rows that are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sift {
    /// Tells which of the rows, by their numbers from 1.
    pub(super) sql: String,
    /// The types of the lists.
    pub(super) lists: Vec<Type>,
    /// Which parameter of the original each list holds.
    pub(super) sources: Vec<usize>,
    /// For each unique index, the parameters of the original that make rows different there.
    pub(super) keys: Vec<Vec<usize>>,
}

/// The set-based form of the text, for a table of these facts; `types` are those of the parameters of the original.
pub(super) fn form(insert: &Insert, facts: &Facts, types: &[Type]) -> Option<Form> {
    if !facts.is_plain || types.len() != insert.parameters || insert.parameters == 0 {
        return None;
    }
    let serial = facts
        .serial
        .as_ref()
        .filter(|serial| !insert.columns.iter().any(|column| is_named(column, &serial.column)));
    let mut lists = Vec::with_capacity(types.len());
    let mut sources = Vec::with_capacity(types.len());
    let (mut columns, mut cells) = (Vec::new(), Vec::new());
    for (column, cell) in insert.columns.iter().zip(&insert.cells) {
        match cell {
            Cell::Parameter(number) => {
                lists.push(array_of(&types[*number])?);
                sources.push(*number);
                columns.push(column.as_str());
                cells.push(format!("unnest(${})", lists.len()));
            }
            Cell::Constant(literal) => {
                columns.push(column);
                cells.push(literal.clone());
            }
            // What a column gets that is not named.
            Cell::Default => {}
        }
    }
    let (mut returning, mut draw) = (String::new(), None);
    let mut overriding = "";
    let number;
    if let Some(items) = &insert.returning {
        let serial = serial.filter(|_| items.iter().all(|item| is_column(item)))?;
        number = quoted(&serial.column);
        if serial.is_identity {
            overriding = " OVERRIDING SYSTEM VALUE";
        }
        lists.push(Type::INT8_ARRAY);
        columns.push(&number);
        cells.push(format!("unnest(${})", lists.len()));
        returning = format!(" RETURNING {number}, {}", items.join(", "));
        draw = Some(format!(
            "WITH forebay_lock AS (INSERT INTO {} ({number}){overriding} SELECT NULL WHERE false) \
             SELECT ARRAY(SELECT nextval({}::oid::regclass) FROM generate_series(1, $1))",
            insert.table, serial.sequence,
        ));
    }
    // Lists in the select list are taken apart row by row; those in FROM, before the first row, and kept.
    let sql = format!(
        "INSERT INTO {} ({}){overriding} SELECT {}{returning}",
        insert.table,
        columns.join(", "),
        cells.join(", "),
    );
    Some(Form {
        sql,
        lists,
        sources,
        draw,
    })
}

/// What to ask for rows in conflict, if that can be asked.
pub(super) fn sift(insert: &Insert, facts: &Facts, types: &[Type]) -> Option<Sift> {
    let mut sift = Sift {
        sql: String::new(),
        lists: Vec::new(),
        sources: Vec::new(),
        keys: Vec::new(),
    };
    let mut conflicts = Vec::new();
    // With more than one, which of them a row is said to break depends on what is written before it.
    let is_given = |name: &String| name.is_empty() || insert.columns.iter().any(|column| is_named(column, name));
    let mut breakable = facts
        .unique
        .iter()
        .filter(|index| index.len() > 1 || index.iter().any(is_given));
    let (Some(only), None) = (breakable.next(), breakable.next()) else {
        return None;
    };
    for index in [only] {
        let mut equal = Vec::with_capacity(index.len());
        let mut key = Vec::with_capacity(index.len());
        for name in index {
            let mut cells = insert.columns.iter().zip(&insert.cells);
            let cell = cells.find(|(column, _)| is_named(column, name)).map(|(_, cell)| cell);
            let column = quoted(name);
            match cell {
                Some(Cell::Parameter(number)) => {
                    key.push(*number);
                    let list = match sift.sources.iter().position(|source| source == number) {
                        Some(list) => list,
                        None => {
                            sift.lists.push(array_of(types.get(*number)?)?);
                            sift.sources.push(*number);
                            sift.sources.len() - 1
                        }
                    };
                    equal.push(format!("forebay_table.{column} = forebay_row.p{}", list + 1));
                }
                // NULL is in nobody's way.
                Some(Cell::Constant(literal)) if literal.eq_ignore_ascii_case("NULL") => break,
                Some(Cell::Constant(literal)) => equal.push(format!("forebay_table.{column} = {literal}")),
                // Of what the table itself puts there nothing is known.
                Some(Cell::Default) | None => break,
            }
        }
        if equal.len() == index.len() {
            conflicts.push(format!(
                "EXISTS (SELECT FROM {} AS forebay_table WHERE {})",
                insert.table,
                equal.join(" AND ")
            ));
            sift.keys.push(key);
        }
    }
    if conflicts.is_empty() || sift.lists.is_empty() {
        return None;
    }
    sift.sql = format!(
        "SELECT forebay_place FROM unnest({}) WITH ORDINALITY AS forebay_row({}, forebay_place) WHERE {}",
        parameters(sift.lists.len()),
        names(sift.lists.len()),
        conflicts.join(" OR ")
    );
    Some(sift)
}

/// Names for the lists' values.
fn names(count: usize) -> String {
    let names: Vec<String> = (1..=count).map(|list| format!("p{list}")).collect();
    names.join(", ")
}

/// The lists themselves.
fn parameters(count: usize) -> String {
    let parameters: Vec<String> = (1..=count).map(|list| format!("${list}")).collect();
    parameters.join(", ")
}

/// Whether a thing that is returned is a column, or all of them: nothing that could look at other rows.
fn is_column(item: &str) -> bool {
    let mut rest = item;
    loop {
        rest = match rest.strip_prefix('"') {
            Some(quoted) => match quoted.replace("\"\"", "__").find('"') {
                Some(end) => &quoted[end + 1..],
                None => return false,
            },
            None => {
                let end = rest
                    .find(|character: char| !(character.is_alphanumeric() || character == '_' || character == '$'))
                    .unwrap_or(rest.len());
                if end == 0 {
                    return rest == "*";
                }
                &rest[end..]
            }
        };
        match rest.strip_prefix('.') {
            Some(after) => rest = after,
            None => return rest.is_empty(),
        }
    }
}
