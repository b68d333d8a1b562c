//! What statements may not do to a connection that many callers share, enforced by SQLite's authorizer.
//!
//! The authorizer is asked while a statement is compiled, before anything of it takes effect (a PRAGMA may take effect while it
//! is compiled). Statements of callers begin and end no transaction: this crate alone does. Nor do they change the connection's
//! settings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// PRAGMAs that only read, or that change the file rather than the connection. With a value, only those of the second
/// list.
const READING_PRAGMAS: &[&str] = &[
    "application_id",
    "collation_list",
    "compile_options",
    "database_list",
    "encoding",
    "foreign_key_check",
    "foreign_key_list",
    "foreign_keys",
    "freelist_count",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "journal_mode",
    "max_page_count",
    "module_list",
    "page_count",
    "page_size",
    "pragma_list",
    "quick_check",
    "schema_version",
    "data_version",
    "synchronous",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
    "auto_vacuum",
    "stats",
];
/// PRAGMAs whose argument is what they look at, or that write to the file what any writer may write.
const PRAGMAS_WITH_ARGUMENT: &[&str] = &[
    "application_id",
    "foreign_key_check",
    "foreign_key_list",
    "incremental_vacuum",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "optimize",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
    "wal_checkpoint",
];

const TEMPORARY: &str = "temporary objects are refused: connections are shared; use an ordinary table";

/// The rules of one connection.
#[derive(Debug, Default)]
pub(super) struct Authorizer {
    /// Set while this crate itself begins or ends a transaction or sets the connection up.
    trusted: AtomicBool,
    /// Why the last statement was refused.
    refusal: Mutex<Option<String>>,
}

impl Authorizer {
    /// Puts the rules on a connection.
    pub(super) fn install(connection: &mut Connection) -> rusqlite::Result<Arc<Self>> {
        let authorizer = Arc::new(Self::default());
        let rules = Arc::clone(&authorizer);
        connection.authorizer(Some(move |context: AuthContext<'_>| rules.judge(&context)))?;
        Ok(authorizer)
    }

    /// Runs `work` free of the rules.
    pub(super) fn trusting<R>(&self, work: impl FnOnce() -> R) -> R {
        let _until_the_end = Trust {
            before: self.trusted.swap(true, Ordering::Relaxed),
            trusted: &self.trusted,
        };
        work()
    }

    /// Why the statement that was just prepared was refused, if it was refused here.
    pub(super) fn take_refusal(&self) -> Option<String> {
        self.refusal.lock().take()
    }

    fn judge(&self, context: &AuthContext<'_>) -> Authorization {
        if self.trusted.load(Ordering::Relaxed) {
            return Authorization::Allow;
        }
        // Inside a trigger or a view, functions such as last_insert_rowid() speak of the statement itself.
        let inner = context.accessor.is_some() && matches!(context.action, AuthAction::Function { .. });
        // `CREATE TABLE temp.t` is told as an ordinary table, whose description goes into the temporary schema.
        let temporary = context.database_name == Some("temp") && matches!(context.action, AuthAction::Insert { .. });
        let refusal = if temporary {
            Some(TEMPORARY.to_owned())
        } else {
            refusal(&context.action).filter(|_| !inner)
        };
        match refusal {
            None => Authorization::Allow,
            Some(reason) => {
                *self.refusal.lock() = Some(reason);
                Authorization::Deny
            }
        }
    }
}

/// Ends the trust with its scope, also when a panic leaves it.
struct Trust<'a> {
    before: bool,
    trusted: &'a AtomicBool,
}

impl Drop for Trust<'_> {
    fn drop(&mut self) {
        self.trusted.store(self.before, Ordering::Relaxed);
    }
}

fn refusal(action: &AuthAction<'_>) -> Option<String> {
    match action {
        AuthAction::Transaction { operation } => Some(format!(
            "{} is not a statement for the writer, which commits by itself; use Writer::begin for a transaction",
            transaction_word(operation)
        )),
        AuthAction::Savepoint { .. } => {
            Some("SAVEPOINT is not a statement for the writer; use Writer::begin for a transaction".to_owned())
        }
        // SQLite tells the name of what is attached only where it is a literal; without it, the action is unknown here.
        AuthAction::Attach { .. } | AuthAction::Detach { .. } | AuthAction::Unknown { .. } => {
            Some("ATTACH and DETACH are refused: connections are shared".to_owned())
        }
        AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempView { .. }
        | AuthAction::CreateTempTrigger { .. }
        | AuthAction::CreateTempIndex { .. } => Some(TEMPORARY.to_owned()),
        AuthAction::Pragma {
            pragma_name,
            pragma_value,
        } => {
            let name = pragma_name.to_ascii_lowercase();
            let allowed = match pragma_value {
                None => READING_PRAGMAS.contains(&name.as_str()) || PRAGMAS_WITH_ARGUMENT.contains(&name.as_str()),
                Some(_) => PRAGMAS_WITH_ARGUMENT.contains(&name.as_str()),
            };
            (!allowed).then(|| format!("PRAGMA {name} is refused here: it would change a connection that is shared"))
        }
        AuthAction::Function { function_name }
            if ["last_insert_rowid", "changes", "total_changes", "load_extension"]
                .iter()
                .any(|refused| refused.eq_ignore_ascii_case(function_name)) =>
        {
            Some(format!(
                "{function_name}() is refused: connections are shared, it would tell of another caller; use RETURNING, or the outcome"
            ))
        }
        _ => None,
    }
}

fn transaction_word(operation: &rusqlite::hooks::TransactionOperation) -> &'static str {
    use rusqlite::hooks::TransactionOperation as Operation;
    match operation {
        Operation::Begin => "BEGIN",
        Operation::Rollback => "ROLLBACK",
        _ => "COMMIT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(sql: &str) -> Option<String> {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t (a)").unwrap();
        let authorizer = Authorizer::install(&mut connection).unwrap();
        let result = connection.prepare(sql).map(|_| ());
        let refusal = authorizer.take_refusal();
        assert_eq!(result.is_err(), refusal.is_some(), "{sql}: {result:?}");
        refusal
    }

    #[test]
    fn what_would_change_a_shared_connection_is_refused_by_name() {
        for (sql, word) in [
            ("BEGIN", "BEGIN"),
            ("BEGIN IMMEDIATE", "BEGIN"),
            ("COMMIT", "COMMIT"),
            ("END", "COMMIT"),
            ("ROLLBACK", "ROLLBACK"),
            ("SAVEPOINT a", "SAVEPOINT"),
            ("ATTACH 'x' AS y", "ATTACH"),
            ("CREATE TEMP TABLE x (a)", "temporary"),
            ("CREATE TABLE temp.x (a)", "temporary"),
            ("CREATE TABLE temp.x AS SELECT 1", "temporary"),
            ("CREATE VIRTUAL TABLE temp.x USING fts5 (a)", "temporary"),
            ("CREATE VIEW temp.x AS SELECT 1", "temporary"),
            (
                "CREATE TRIGGER temp.x AFTER INSERT ON t BEGIN SELECT 1; END",
                "temporary",
            ),
            ("CREATE TEMP VIEW x AS SELECT 1", "temporary"),
            ("PRAGMA synchronous = OFF", "synchronous"),
            ("PRAGMA foreign_keys = OFF", "foreign_keys"),
            ("PRAGMA journal_mode = DELETE", "journal_mode"),
            ("PRAGMA query_only(1)", "query_only"),
            ("PRAGMA writable_schema = 1", "writable_schema"),
            ("SELECT last_insert_rowid()", "last_insert_rowid"),
            ("SELECT changes()", "changes"),
            ("INSERT INTO t VALUES (Last_Insert_RowId())", "RETURNING"),
        ] {
            let reason = refused(sql).unwrap_or_else(|| panic!("{sql} was allowed"));
            assert!(reason.contains(word), "{sql}: {reason}");
        }
    }

    #[test]
    fn what_reads_or_writes_the_file_is_allowed() {
        for sql in [
            "INSERT INTO t VALUES (1)",
            "CREATE TABLE u (a)",
            "PRAGMA table_info(t)",
            "PRAGMA user_version",
            "PRAGMA user_version = 3",
            "PRAGMA integrity_check",
            "PRAGMA journal_mode",
            "SELECT * FROM pragma_table_info('t')",
            "VACUUM",
        ] {
            assert_eq!(refused(sql), None, "{sql}");
        }
    }
}
