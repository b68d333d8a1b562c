//! Touches: what a statement of PostgreSQL's does, and by which names it may reach more than that.
//!
//! Promises: a text that is shown to [read](Effect::Reads) can change, lock or leave nothing, and one that is shown to
//! [change rows](Effect::Changes) nothing but rows of the one table that it names, but for what it sets off by a name: a function,
//! an operator, a type, a view, whatever the catalog has. All names that stand in the text are told, as PostgreSQL folds them, also
//! those that are keywords or columns: whoever looks them up in the catalog misses none. A text of more than one statement, one that a
//! server's settings may give another meaning, and one that the parser does not understand are not shown. Knows no catalog.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};

use sqlparser::ast;

use super::dialect::Dialect;
use super::lexer::{Kind, Token};
use super::plain::{end, only_reads, tokens};
use super::syntax;

/// What a statement does by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// It reads.
    Reads,
    /// It inserts rows that stand in it into a table, updates or deletes rows of it.
    Changes(Change),
}

/// Rows of which table are changed, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The table, as it stands in SQL.
    pub table: String,
    /// How.
    pub kind: ChangeKind,
    /// Rows may be found that are not in the text.
    pub finds_rows: bool,
    /// It changes none of them: whatever rows there were are as they were.
    pub leaves_rows: bool,
}

/// How.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// Rows that stand in the text.
    Insert,
    /// Rows that are there.
    Update,
    /// The same.
    Delete,
    /// Rows that are there, and rows that stand in the text.
    Merge,
}

/// What is shown of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touches {
    /// What it does by itself.
    pub effect: Effect,
    /// All names in it, keywords among them.
    pub names: Vec<String>,
    /// What stands where a table does, each with the names in front of it, the outermost first.
    pub tables: Vec<Vec<String>>,
    /// Those of them that a parenthesis follows: what is a function is one of these, or stands behind a dot.
    pub called: Vec<String>,
    /// What may be operators in it, beside those that words stand for.
    pub operators: Vec<String>,
}

/// Why a text is not shown, in words that follow "it".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotShown(pub &'static str);

/// So many bytes of a name count (`NAMEDATALEN` in `pg_config_manual.h`, less its end).
const NAME_BYTES_MAX: usize = 63;
/// Words that no query has that only reads, unless it has a column of that name.
const NOT_READING: [&str; 6] = ["INTO", "INSERT", "UPDATE", "DELETE", "MERGE", "SHARE"];
/// What is neither of what is shown.
const NO_CHANGE: &str = "is no query, INSERT, UPDATE, DELETE or MERGE";
/// Columns that every table has, which tell of the transaction that wrote a row.
const OF_THE_TRANSACTION: [&str; 6] = ["xmin", "xmax", "cmin", "cmax", "ctid", "tableoid"];

/// Shows what a statement does.
///
/// # Errors
/// Why that is not shown.
pub fn touches(sql: &str) -> Result<Touches, NotShown> {
    let tokens = tokens(sql).ok_or(NotShown(
        "has a backslash, an escaped name, a hint, or a quote without its end",
    ))?;
    let end = end(&tokens, sql).ok_or(NotShown("is more than one statement"))?;
    let tokens: Vec<_> = tokens.into_iter().filter(|(range, _)| range.start < end).collect();
    let parsed = syntax::parse(Dialect::Postgres, sql).ok_or(NotShown("is not understood by the parser"))?;
    let effect = effect(&parsed, &tokens)?;
    let mut names = BTreeSet::new();
    let mut called = BTreeSet::new();
    for (at, (_, token)) in tokens.iter().enumerate() {
        let Some(name) = name(token)? else { continue };
        if tokens.get(at + 1).is_some_and(|(_, next)| next.is_symbol("(")) {
            called.insert(name.clone());
        }
        names.insert(name);
    }
    names.extend(named_by_words(&tokens).map(str::to_owned));
    if matches!(effect, Effect::Changes(_)) && OF_THE_TRANSACTION.iter().any(|column| names.contains(*column)) {
        return Err(NotShown("names a column that tells of its transaction"));
    }
    Ok(Touches {
        effect,
        names: names.into_iter().collect(),
        tables: tables(&parsed),
        called: called.into_iter().collect(),
        operators: operators(&tokens).into_iter().collect(),
    })
}

/// What it names by more words than one: the type `timetz`, by `time(3) with time zone`, or where a `time` is taken to another zone; and the function `timezone`,
/// which does that, by `AT TIME ZONE`.
fn named_by_words(tokens: &[(Range<usize>, Token<'_>)]) -> impl Iterator<Item = &'static str> {
    let word = |at: usize| tokens.get(at).and_then(|(_, token)| name(token).ok()?);
    let is = |at: usize, words: &[&str]| word(at).is_some_and(|word| words.contains(&&*word));
    let (mut has_offset, mut has_time, mut takes_to_zone) = (false, false, false);
    for at in 0..tokens.len() {
        let has_digits = tokens.get(at + 1).is_some_and(|(_, token)| token.is_symbol("("));
        let behind = if has_digits { at + 4 } else { at + 1 };
        has_offset |= is(at, &["time"]) && is(behind, &["with"]) && is(behind + 1, &["time"]);
        let is_of_zone = at > 0 && is(at - 1, &["at", "with", "without"]) && is(at + 1, &["zone"]);
        has_time |= is(at, &["make_time"]) || (is(at, &["time", "_time"]) && !is_of_zone);
        takes_to_zone |= is(at, &["timezone"]) || (is(at, &["at"]) && is(at + 1, &["time", "local"]));
    }
    let timetz = (has_offset || has_time && takes_to_zone).then_some("timetz");
    timetz.into_iter().chain(takes_to_zone.then_some("timezone"))
}

/// What stands where a table does.
fn tables(parsed: &ast::Statement) -> Vec<Vec<String>> {
    #[derive(Default)]
    struct Tables(Vec<Vec<String>>);

    impl ast::Visitor for Tables {
        type Break = ();

        fn pre_visit_relation(&mut self, relation: &ast::ObjectName) -> ControlFlow<()> {
            let parts = relation.0.iter().filter_map(ast::ObjectNamePart::as_ident);
            self.0.push(parts.map(folded).collect());
            ControlFlow::Continue(())
        }
    }

    let mut tables = Tables::default();
    let _ = ast::Visit::visit(parsed, &mut tables);
    tables.0
}

/// As the server keeps it.
fn folded(name: &ast::Ident) -> String {
    let mut folded = match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_ascii_lowercase(),
    };
    clip(&mut folded);
    folded
}

/// Whether a function is called by the name of a schema that is not the catalog's; also where the text cannot be read.
pub fn calls_in_a_schema(sql: &str) -> bool {
    let Some(tokens) = tokens(sql) else { return true };
    tokens.windows(4).any(|four| {
        let [(_, schema), (_, dot), (_, function), (_, open)] = four else {
            return false;
        };
        let is_name = |token: &Token<'_>| matches!(token.kind, Kind::Word | Kind::QuotedName);
        let is_of_the_catalog = name(schema).is_ok_and(|schema| schema.as_deref() == Some("pg_catalog"));
        is_name(schema) && dot.is_symbol(".") && is_name(function) && open.is_symbol("(") && !is_of_the_catalog
    })
}

/// The names that a parenthesis follows, in an expression as PostgreSQL writes it out. None where it cannot be read.
pub fn called(expression: &str) -> Option<Vec<String>> {
    let tokens = tokens(expression)?;
    let mut called = Vec::new();
    for pair in tokens.windows(2) {
        if let [(_, token), (_, next)] = pair
            && next.is_symbol("(")
            && let Some(name) = name(token).ok()?
        {
            called.push(name);
        }
    }
    Some(called)
}

/// All names in a text, as they stand there, keywords among them. None where it cannot be read.
pub fn names(sql: &str) -> Option<Vec<&str>> {
    let tokens = tokens(sql)?;
    let texts = tokens.into_iter().filter_map(|(_, token)| match token.kind {
        Kind::Word => Some(token.text),
        Kind::QuotedName => token.text.strip_prefix('"')?.strip_suffix('"'),
        _ => None,
    });
    Some(texts.collect())
}

/// A name as the server keeps it: no longer than `NAMEDATALEN` leaves room for, in whole characters.
pub(super) fn name(token: &Token<'_>) -> Result<Option<String>, NotShown> {
    let mut name = match token.kind {
        // How others are folded is a matter of the server's locale.
        Kind::Word if token.text.is_ascii() => token.text.to_ascii_lowercase(),
        Kind::Word => return Err(NotShown("has a name without quotes that is not of ASCII letters")),
        Kind::QuotedName => token.text[1..token.text.len() - 1].replace("\"\"", "\""),
        _ => return Ok(None),
    };
    clip(&mut name);
    Ok(Some(name))
}

/// A name as the server keeps it that was given at whatever length.
pub fn clip(name: &mut String) {
    name.truncate(name.floor_char_boundary(NAME_BYTES_MAX));
}

fn effect(parsed: &ast::Statement, tokens: &[(Range<usize>, Token<'_>)]) -> Result<Effect, NotShown> {
    let has = |words: &[&str]| {
        let mut all = tokens.iter();
        all.any(|(_, token)| words.iter().any(|word| token.is_word(word)))
    };
    // The tokens have to say so, too.
    let begins = |words: &[&str]| {
        let mut all = tokens.iter().map(|(_, token)| token);
        let first = all.find(|token| !token.is_symbol("("));
        first.is_some_and(|first| words.iter().any(|word| first.is_word(word)))
    };
    match parsed {
        ast::Statement::Query(_) => {
            if has(&["TABLESAMPLE"]) {
                return Err(NotShown("reads a sample, which is another one each time"));
            }
            if !only_reads(parsed) || has(&NOT_READING) || !begins(&["SELECT", "WITH", "VALUES", "TABLE"]) {
                return Err(NotShown("locks what it reads, or writes"));
            }
            Ok(Effect::Reads)
        }
        // The parser takes the word for the table's name.
        _ if has(&["ONLY"]) => Err(NotShown("leaves out the parts of a table")),
        _ if !begins(&["INSERT", "UPDATE", "DELETE", "MERGE"]) => Err(NotShown(NO_CHANGE)),
        ast::Statement::Insert(insert) => {
            let Some(table) = inserted_into(insert) else {
                return Err(NotShown("is an INSERT of another form than rows that stand in it"));
            };
            let finds_rows = insert.on.is_some();
            only_queries(parsed, usize::from(insert.source.is_some()))?;
            Ok(changes(table, ChangeKind::Insert, finds_rows, leaves_rows(insert)))
        }
        ast::Statement::Update(update) => {
            let table = updated(update).and_then(only_table);
            let table = table.ok_or(NotShown("is an UPDATE of more than one table by itself"))?;
            refuse_cursors(tokens)?;
            only_queries(parsed, 0)?;
            Ok(changes(table, ChangeKind::Update, true, false))
        }
        ast::Statement::Delete(delete) => {
            let table = deleted_from(delete).and_then(only_table);
            let table = table.ok_or(NotShown("is a DELETE of more than one table by itself"))?;
            refuse_cursors(tokens)?;
            only_queries(parsed, 0)?;
            Ok(changes(table, ChangeKind::Delete, true, false))
        }
        ast::Statement::Merge(merge) => {
            let table = merged_into(merge).ok_or(NotShown("is a MERGE of other rows than those that stand in it"))?;
            only_queries(parsed, 1)?;
            Ok(changes(table, ChangeKind::Merge, true, false))
        }
        _ => Err(NotShown(NO_CHANGE)),
    }
}

fn changes(table: &ast::ObjectName, kind: ChangeKind, finds_rows: bool, leaves_rows: bool) -> Effect {
    Effect::Changes(Change {
        table: table.to_string(),
        kind,
        finds_rows,
        leaves_rows,
    })
}

/// Whether it changes no row that is found in conflict.
pub(super) fn leaves_rows(insert: &ast::Insert) -> bool {
    match &insert.on {
        None => true,
        Some(ast::OnInsert::OnConflict(conflict)) => matches!(conflict.action, ast::OnConflictAction::DoNothing),
        Some(_) => false,
    }
}

/// `WHERE CURRENT OF` a cursor: of the session.
fn refuse_cursors(tokens: &[(Range<usize>, Token<'_>)]) -> Result<(), NotShown> {
    let is_of = |pair: &[(Range<usize>, Token<'_>)]| pair[0].1.is_word("CURRENT") && pair[1].1.is_word("OF");
    match tokens.windows(2).any(is_of) {
        true => Err(NotShown("changes a row by a cursor")),
        false => Ok(()),
    }
}

/// The table, of an INSERT of rows.
pub(super) fn inserted_into(insert: &ast::Insert) -> Option<&ast::ObjectName> {
    let plain = insert.optimizer_hints.is_empty()
        && insert.or.is_none()
        && !insert.ignore
        && insert.into
        && !insert.overwrite
        && insert.assignments.is_empty()
        && insert.partitioned.is_none()
        && insert.after_columns.is_empty()
        && !insert.has_table_keyword
        && matches!(insert.on, None | Some(ast::OnInsert::OnConflict(_)))
        && insert.output.is_none()
        && !insert.replace_into
        && insert.priority.is_none()
        && insert.insert_alias.is_none()
        && insert.settings.is_none()
        && insert.format_clause.is_none()
        && insert.multi_table_insert_type.is_none();
    let has_rows = insert.source.as_ref().is_none_or(|source| {
        source.with.is_none()
            && source.order_by.is_none()
            && source.limit_clause.is_none()
            && source.fetch.is_none()
            && matches!(&*source.body, ast::SetExpr::Values(_))
    });
    match &insert.table {
        ast::TableObject::TableName(table) if plain && has_rows => Some(table),
        _ => None,
    }
}

/// What is updated, of an UPDATE that looks at nothing else.
pub(super) fn updated(update: &ast::Update) -> Option<&ast::TableWithJoins> {
    let is_plain = update.optimizer_hints.is_empty()
        && update.from.is_none()
        && update.output.is_none()
        && update.or.is_none()
        && update.order_by.is_empty()
        && update.limit.is_none();
    is_plain.then_some(&update.table)
}

/// What is deleted from, of a DELETE that looks at nothing else.
pub(super) fn deleted_from(delete: &ast::Delete) -> Option<&ast::TableWithJoins> {
    let is_plain = delete.optimizer_hints.is_empty()
        && delete.tables.is_empty()
        && delete.using.is_none()
        && delete.output.is_none()
        && delete.order_by.is_empty()
        && delete.limit.is_none();
    let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
    match from.as_slice() {
        [only] if is_plain => Some(only),
        _ => None,
    }
}

/// The table, where it is the only one, and nothing but a table.
pub(super) fn only_table(from: &ast::TableWithJoins) -> Option<&ast::ObjectName> {
    from.joins.is_empty().then(|| plain_table(&from.relation)).flatten()
}

fn plain_table(relation: &ast::TableFactor) -> Option<&ast::ObjectName> {
    match relation {
        ast::TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints,
            version: None,
            with_ordinality: false,
            partitions,
            json_path: None,
            sample: None,
            index_hints,
        } if with_hints.is_empty()
            && partitions.is_empty()
            && index_hints.is_empty()
            // `FROM t AS x (a, b)` calls its columns otherwise.
            && alias.as_ref().is_none_or(|alias| alias.columns.is_empty()) =>
        {
            Some(name)
        }
        _ => None,
    }
}

/// What a MERGE merges rows into that stand in it.
fn merged_into(merge: &ast::Merge) -> Option<&ast::ObjectName> {
    let ast::TableFactor::Derived {
        lateral: false,
        subquery,
        sample: None,
        ..
    } = &merge.source
    else {
        return None;
    };
    let has_rows = match &*subquery.body {
        ast::SetExpr::Values(_) => true,
        ast::SetExpr::Select(select) => select.from.is_empty(),
        _ => false,
    };
    let is_plain = merge.optimizer_hints.is_empty() && merge.into && merge.output.is_none();
    (is_plain && has_rows).then(|| plain_table(&merge.table)).flatten()
}

/// That so many queries stand in it, and no more.
fn only_queries(parsed: &ast::Statement, count: usize) -> Result<(), NotShown> {
    struct Queries {
        left: usize,
    }

    impl ast::Visitor for Queries {
        type Break = ();

        fn pre_visit_query(&mut self, _query: &ast::Query) -> ControlFlow<()> {
            match self.left.checked_sub(1) {
                Some(left) => {
                    self.left = left;
                    ControlFlow::Continue(())
                }
                None => ControlFlow::Break(()),
            }
        }
    }

    match ast::Visit::visit(parsed, &mut Queries { left: count }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(NotShown("has a query in it")),
    }
}

/// The signs that operators are made of.
const OPERATOR_SIGNS: &str = "+-*/<>=~!@#%^&|`?";

/// What may be an operator: every part of each run of such signs, as where one ends and the next begins is for the server to say.
fn operators(tokens: &[(Range<usize>, Token<'_>)]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut run = String::new();
    let mut ends = None;
    let mut close = |run: &mut String| {
        for begin in 0..run.len() {
            for end in begin + 1..=run.len() {
                all.insert(run[begin..end].to_owned());
            }
        }
        run.clear();
    };
    for (range, token) in tokens {
        let is_sign = token.kind == Kind::Symbol && OPERATOR_SIGNS.contains(token.text);
        if !is_sign || ends != Some(range.start) {
            close(&mut run);
        }
        if is_sign {
            run.push_str(token.text);
            ends = Some(range.end);
        }
    }
    close(&mut run);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect_of(sql: &str) -> Effect {
        touches(sql).unwrap_or_else(|why| panic!("{why:?}: {sql}")).effect
    }

    #[test]
    fn what_only_reads_is_shown_to() {
        for sql in [
            "SELECT 1",
            "select abalance from pgbench_accounts where aid = $1;",
            "WITH a AS (SELECT 1) SELECT * FROM a JOIN b USING (id) WHERE x IN (SELECT y FROM c)",
            "VALUES (1), (2)",
            "SELECT count(*) FILTER (WHERE a > 1), 'INSERT INTO' FROM t -- UPDATE\n GROUP BY 1 ORDER BY 1 LIMIT 5",
            "(SELECT 1 UNION ALL SELECT 2) ORDER BY 1",
            "SELECT \"update\" FROM t",
        ] {
            assert_eq!(effect_of(sql), Effect::Reads, "{sql}");
        }
    }

    #[test]
    fn what_may_do_more_is_not_shown() {
        for sql in [
            "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE",
            "MERGE INTO t USING (SELECT * FROM u) v ON t.id = v.id WHEN MATCHED THEN DELETE",
            "MERGE INTO t USING (VALUES (1)) v(id) ON t.id = (SELECT 1) WHEN MATCHED THEN DELETE",
            "WITH w AS (SELECT 1) MERGE INTO t USING (VALUES (1)) v(id) ON true WHEN MATCHED THEN DELETE",
            "SELECT 1; SELECT 2",
            "SELECT * FROM t FOR UPDATE",
            "SELECT * FROM t FOR NO KEY UPDATE SKIP LOCKED",
            "SELECT * FROM t FOR KEY SHARE",
            "SELECT * INTO u FROM t",
            "WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a",
            "SELECT * FROM t TABLESAMPLE bernoulli (1)",
            "SELECT 'a\\'",
            "SELECT U&\"a\" FROM t",
            "SELECT /*+ IndexScan(t) */ 1 FROM t",
            "SELECT 'open",
            "INSERT INTO t SELECT * FROM u",
            "INSERT INTO t VALUES ((SELECT max(id) FROM u))",
            "WITH a AS (SELECT 1) INSERT INTO t VALUES (1)",
            "UPDATE t SET a = 1 FROM u WHERE t.id = u.id",
            "UPDATE t SET a = (SELECT 1)",
            "UPDATE t SET a = 1 WHERE CURRENT OF c",
            "UPDATE t SET a = 1 WHERE EXISTS (SELECT FROM u)",
            "UPDATE ONLY t SET a = 1",
            "DELETE FROM ONLY t",
            "DELETE FROM t USING u WHERE t.id = u.id",
            "DELETE FROM t WHERE id IN (SELECT id FROM u)",
            "INSERT INTO t VALUES (1) RETURNING xmin",
            "DELETE FROM t WHERE ctid = '(0,1)'",
            "SELECT größe FROM t",
            "EXPLAIN ANALYZE DELETE FROM t",
            "COPY t TO STDOUT",
            "CALL p()",
            "TRUNCATE t",
            "",
        ] {
            assert!(touches(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn what_changes_one_table_is_shown_to() {
        let change = |table: &str, kind, finds_rows| {
            Effect::Changes(Change {
                table: table.to_owned(),
                kind,
                finds_rows,
                leaves_rows: !finds_rows,
            })
        };
        for (sql, effect) in [
            (
                "INSERT INTO t VALUES ($1, 2), (now(), DEFAULT)",
                change("t", ChangeKind::Insert, false),
            ),
            (
                "insert into s.\"T t\" (a) values (1) on conflict (a) do update set a = excluded.a returning id",
                change("s.\"T t\"", ChangeKind::Insert, true),
            ),
            ("INSERT INTO t DEFAULT VALUES", change("t", ChangeKind::Insert, false)),
            (
                "UPDATE t SET a = a + 1 WHERE id = $1",
                change("t", ChangeKind::Update, true),
            ),
            (
                "update t as x set (a, b) = ($1, $2) where x.id = 5 returning *",
                change("t", ChangeKind::Update, true),
            ),
            (
                "DELETE FROM t WHERE id = ANY($1)",
                change("t", ChangeKind::Delete, true),
            ),
            (
                "MERGE INTO s.t AS t USING (VALUES ($1, $2)) AS v(id, n) ON t.id = v.id WHEN MATCHED AND v.n IS NULL THEN DELETE \
                 WHEN MATCHED THEN UPDATE SET n = v.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (v.id, v.n)",
                change("s.t", ChangeKind::Merge, true),
            ),
            (
                "merge into t using (select $1::int as id) v on t.id = v.id when matched then do nothing when not matched then insert values (v.id)",
                change("t", ChangeKind::Merge, true),
            ),
        ] {
            assert_eq!(effect_of(sql), effect, "{sql}");
        }
        let Effect::Changes(finds_and_leaves) = effect_of("INSERT INTO t VALUES (1) ON CONFLICT (a) DO NOTHING") else {
            panic!("it inserts");
        };
        assert!(finds_and_leaves.finds_rows && finds_and_leaves.leaves_rows);
    }

    #[test]
    fn a_type_that_hangs_on_the_day_is_named_however_it_is_written() {
        let is_named = |sql| touches(sql).unwrap().names.contains(&"timetz".to_owned());
        for sql in [
            "SELECT a::time with time zone FROM t",
            "SELECT CAST(a AS TIME(3) WITH TIME ZONE) FROM t",
            "SELECT a::timetz FROM t",
            "SELECT a::time AT TIME ZONE 'UTC' FROM t",
            "SELECT timezone('UTC', a::\"time\") FROM t",
            "SELECT make_time(10, 0, 0) AT TIME ZONE 'UTC'",
        ] {
            assert!(is_named(sql), "{sql}");
        }
        for sql in [
            "SELECT a::timestamp with time zone FROM t",
            "SELECT a::time(3) without time zone FROM t",
            "SELECT a::time FROM t",
            "SELECT a AT TIME ZONE 'UTC', b::timestamp(3) without time zone FROM t",
        ] {
            assert!(!is_named(sql), "{sql}");
        }
    }

    #[test]
    fn what_goes_on_as_a_string_is_no_name() {
        for sql in [
            "SELECT 'a'\n'b'",
            "SELECT 'a' -- it goes on\n'b' FROM t",
            "SELECT a FROM t WHERE b = E'a'\n'b'",
        ] {
            assert_eq!(touches(sql), Err(NotShown("is not understood by the parser")), "{sql}");
        }
        assert!(touches("SELECT 'a''\n''b', 'c',\n'd'").is_ok());
    }

    #[test]
    fn no_name_and_no_operator_is_missed() {
        let touches = touches("SELECT t.Fullname, pg_catalog.Lower (a) || \"Of it\"(b), c @>- d FROM s.t WHERE a<>-1 AND x::money > 'f()'")
            .unwrap();
        for name in [
            "t",
            "fullname",
            "pg_catalog",
            "lower",
            "a",
            "Of it",
            "s",
            "money",
            "where",
        ] {
            assert!(touches.names.iter().any(|known| known == name), "{name}: {touches:?}");
        }
        assert!(
            !touches.names.iter().any(|known| known == "f"),
            "what stands in a string is no name"
        );
        assert_eq!(touches.called, ["Of it", "lower"]);
        for operator in ["||", "@>-", "@>", "-", "<>", "<>-", ">"] {
            assert!(
                touches.operators.iter().any(|known| known == operator),
                "{operator}: {touches:?}"
            );
        }
        assert!(!touches.operators.iter().any(|known| known == ">|"), "of other places");
    }
}
