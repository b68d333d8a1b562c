//! Catalog: what is asked of it, for changes that the stream does not tell: of tables' form, of rights, and of what is published.
//!
//! Numbers below 16384 are PostgreSQL's own (`FirstNormalObjectId` in `transam.h`).

use std::fmt::Write;
use std::sync::Arc;

use crate::memory::key::COLUMNS;
use crate::settings::quoted_text;

/// What the session that asks begins with. Its own commits wait for no standby, of which there may be none.
pub(super) const BEGIN: &str = "SET search_path = pg_catalog; SET lock_timeout = 100; SET statement_timeout = 10000; SET synchronous_commit = local; SET default_transaction_read_only = off";

/// Tells one running server from all others, and from itself before it was started or made a primary, whatever the session has set.
macro_rules! server {
    () => {
        "pg_catalog.concat_ws(' ', pg_catalog.pg_is_in_recovery(), \
         pg_catalog.md5(pg_catalog.timestamptz_send(pg_catalog.pg_postmaster_start_time())))"
    };
}

/// Which server it is, and whether it is a standby.
pub(super) const ASK_SERVER: &str = concat!(
    "SELECT ",
    server!(),
    ", CAST(pg_catalog.pg_is_in_recovery() AS pg_catalog.text)"
);

/// Asks, in front of a question and on the same connection, what that will see at least, and of which server.
pub(crate) const ASK_SNAPSHOT: &str = concat!(
    "SELECT CAST(pg_catalog.pg_current_snapshot() AS pg_catalog.text), ",
    server!()
);

/// Where the log ends, and who sees what.
pub(super) const ASK_TICK: &str =
    "SELECT CAST(pg_current_wal_insert_lsn() AS text), CAST(pg_current_snapshot() AS text)";

/// Something in the log, behind what is there: the stream gets no further than the log is written, nor beyond the beginning of a page of it.
pub(super) const NUDGE: &str = "SELECT pg_logical_emit_message(true, 'forebay', '')";

/// What the owner of a database may have it note in the log with each transaction that has altered something.
pub(super) const ALTERED: &str = "forebay altered";

/// Rows of the catalog that matter to an answer: the table, and a condition for what is the user's own, or may be changed by him, and is for more than one session.
const WATCHED: &[(&str, &str)] = &[
    ("pg_class", "oid >= 16384 AND relpersistence <> 't'"),
    (
        "pg_attribute",
        "attrelid >= 16384 AND attrelid IN (SELECT oid FROM pg_class WHERE oid >= 16384 AND relpersistence <> 't')",
    ),
    // The server's own are looked at, too: they may be altered and renamed, and rights to them revoked.
    (
        "pg_type",
        "typnamespace NOT IN (SELECT oid FROM pg_namespace WHERE starts_with(nspname, 'pg_temp_'))",
    ),
    ("pg_enum", "true"),
    (
        "pg_proc",
        "pronamespace NOT IN (SELECT oid FROM pg_namespace WHERE starts_with(nspname, 'pg_temp_'))",
    ),
    ("pg_operator", "true"),
    ("pg_cast", "true"),
    ("pg_collation", "true"),
    ("pg_ts_config", "true"),
    ("pg_ts_config_map", "true"),
    ("pg_ts_dict", "true"),
    ("pg_policy", "true"),
    (
        "pg_rewrite",
        "oid >= 16384 AND ev_class NOT IN (SELECT oid FROM pg_class WHERE relpersistence = 't')",
    ),
    (
        "pg_trigger",
        "NOT tgisinternal AND tgrelid NOT IN (SELECT oid FROM pg_class WHERE relpersistence = 't')",
    ),
    (
        "pg_constraint",
        "oid >= 16384 AND connamespace NOT IN (SELECT oid FROM pg_namespace WHERE starts_with(nspname, 'pg_temp_'))",
    ),
    (
        "pg_inherits",
        "inhrelid NOT IN (SELECT oid FROM pg_class WHERE relpersistence = 't')",
    ),
    (
        "pg_namespace",
        "NOT starts_with(nspname, 'pg_temp_') AND NOT starts_with(nspname, 'pg_toast_temp_')",
    ),
    ("pg_auth_members", "true"),
    ("pg_db_role_setting", "true"),
    ("pg_database", "datname = current_database()"),
    ("pg_publication", "true"),
    ("pg_publication_rel", "true"),
];

/// Where rows are taken out again, or changed back, which leaves no other rows than there were: what is counted of these tells so. It may come later, as the
/// server's sessions count (`PGSTAT_IDLE_INTERVAL` in `pgstat.c`: 10 s).
const COUNTED: &str = "'pg_authid', 'pg_auth_members', 'pg_cast', 'pg_db_role_setting', 'pg_namespace', 'pg_operator', \
     'pg_policy', 'pg_proc', 'pg_publication_rel'";

/// Asks for a text that is another one whenever something of that has changed, or the server has read what sessions begin with once more, and how much of the log is held back for a slot, in bytes.
pub(super) fn ask_mark(version: u32, slot: &str) -> String {
    let mut text = String::from("SELECT md5(concat_ws(' ', pg_conf_load_time()");
    let namespaces = (version >= 150_000).then_some(("pg_publication_namespace", "true"));
    for (table, condition) in WATCHED.iter().copied().chain(namespaces) {
        // A number that comes later is greater, so that no change makes up for another.
        let _ = write!(
            text,
            ", (SELECT concat_ws(':', count(*), sum(CAST(CAST(xmin AS text) AS int8))) FROM {table} WHERE {condition})"
        );
    }
    let _ = write!(
        text,
        ", (SELECT string_agg(CAST(r AS text), ' ' ORDER BY oid) FROM (SELECT oid, rolname, rolsuper, rolinherit, rolcanlogin, rolbypassrls, \
         rolvaliduntil FROM pg_roles) r), \
         (SELECT string_agg(concat_ws(':', relname, n_tup_upd, n_tup_del), ' ' ORDER BY relname) FROM pg_stat_sys_tables \
         WHERE schemaname = 'pg_catalog' AND relname IN ({COUNTED})))), \
         coalesce((SELECT CAST(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) AS text) FROM pg_replication_slots WHERE slot_name = {}), '0')",
        quoted_text(slot)
    );
    text
}

/// Asks what tables of these names there are: how they are called, whether they are published whole, or have no rows but those of their parts, in a text that is another one whenever they have been published anew (empty: they are not), whether they have a replica identity, whether
/// the asker may publish them, how they are called with their schemas, and the columns of their [key](crate::memory::key); and how the publication itself is.
pub(super) fn ask_tables(publication: &str, names: &[Arc<str>]) -> String {
    let publication = quoted_text(publication);
    // By itself, or with what it is a part of.
    let since = format!(
        "concat_ws(' ', 'since', (SELECT xmin FROM pg_publication WHERE pubname = {publication}), \
         (SELECT string_agg(CAST(r.xmin AS text), ',' ORDER BY r.oid) FROM pg_publication_rel r JOIN pg_publication b ON b.oid = r.prpubid \
         WHERE b.pubname = {publication} AND r.prrelid IN (SELECT c.oid UNION SELECT relid FROM pg_partition_ancestors(c.oid))))"
    );
    let names: Vec<String> = names.iter().map(|name| quoted_text(name)).collect();
    format!(
        "SELECT CAST(c.relname AS text), CASE WHEN p.tablename IS NOT NULL OR c.relkind = 'p' THEN {since} ELSE '' END, \
         CAST(CASE c.relreplident WHEN 'f' THEN true WHEN 'n' THEN false ELSE EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid \
         AND i.indimmediate AND i.indisvalid AND CASE c.relreplident WHEN 'i' THEN i.indisreplident ELSE i.indisprimary END) END AS text), \
         CAST(c.relkind = 'r' AND c.relpersistence = 'p' AND pg_has_role(c.relowner, 'USAGE') AS text), \
         quote_ident(n.nspname) || '.' || quote_ident(c.relname), {COLUMNS} \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN (SELECT * FROM pg_publication_tables p WHERE p.pubname = {publication} \
         AND to_jsonb(p) ->> 'rowfilter' IS NULL) p ON p.schemaname = n.nspname AND p.tablename = c.relname \
         WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND c.oid >= 16384 AND c.relname = ANY(CAST(ARRAY[{}] AS name[])) \
         UNION ALL SELECT '', CAST(pubinsert AND pubupdate AND pubdelete AND pubtruncate AND NOT pubviaroot AS text), '', '', '', '' \
         FROM pg_publication WHERE pubname = {publication}",
        names.join(",")
    )
}

/// Makes a publication of no table.
pub(super) fn make(publication: &str) -> String {
    format!("CREATE PUBLICATION {}", quoted_name(publication))
}

/// Adds a table to it, by its whole name as it stands in SQL.
pub(super) fn add(publication: &str, table: &str) -> String {
    format!("ALTER PUBLICATION {} ADD TABLE ONLY {table}", quoted_name(publication))
}

/// The same, takes it out.
pub(super) fn remove(publication: &str, table: &str) -> String {
    format!("ALTER PUBLICATION {} DROP TABLE ONLY {table}", quoted_name(publication))
}

/// Makes a slot that goes with its connection.
pub(super) fn make_slot(slot: &str) -> String {
    format!("CREATE_REPLICATION_SLOT {slot} TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT")
}

/// Has the stream begin, with notes in the log where the server can tell them.
pub(super) fn start(slot: &str, publication: &str, version: u32) -> String {
    // A list of names, which is read as SQL's are, inside of a text.
    let names = quoted_name(publication).replace('\'', "''");
    let notes = if version >= 140_000 { ", messages 'true'" } else { "" };
    format!("START_REPLICATION SLOT {slot} LOGICAL 0/0 (proto_version '1', publication_names '{names}'{notes})")
}

fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_stand() {
        assert_eq!(make("a\"b"), "CREATE PUBLICATION \"a\"\"b\"");
        assert_eq!(
            start("s", "o'c", 130_000),
            "START_REPLICATION SLOT s LOGICAL 0/0 (proto_version '1', publication_names '\"o''c\"')"
        );
        assert!(start("s", "p", 140_000).ends_with(", messages 'true')"));
        let text = ask_tables("o'c", &["t'x".into()]);
        assert!(text.contains("'o''c'") && text.contains("'t''x'"), "{text}");
        assert!(!ask_mark(140_000, "s").contains("pg_publication_namespace"));
        assert!(ask_mark(150_000, "s").contains("pg_publication_namespace"));
    }
}
