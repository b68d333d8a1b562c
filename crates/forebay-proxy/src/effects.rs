//! Effects: what of the database's own may leave something in the session that sets it off: functions, and the views, triggers, rules, policies,
//! defaults and constraints that call them, or one of PostgreSQL's own that does.
//!
//! Promises: a text that mentions nothing of that sets nothing of it off, as of the last look at the catalog: before the first text, behind
//! what changes functions through the proxy, and from time to time. What a function does is read off its source; one whose source is
//! not to be read leaves something, but for those of libraries that are known. Where there is row security it is also told which rights
//! [plans](crate::plans) were made by: what roles are is looked at each second there.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use forebay_sql::{
    body_may_leave_something, definition_may_leave_something, is_read_by_settings, leaving_by_name,
    may_ask_for_settings, mentioned, settings_named_in_body,
};
use parking_lot::Mutex;

use crate::frames;
use crate::leaves::Leaves;
use crate::plans::{Grounds, HangOn};
use crate::settings::{AT_ONCE, quoted_text};

/// What was made elsewhere is seen so much later at the latest.
const SEEN_FOR: Duration = Duration::from_secs(60);
/// After a look that failed the next comes so soon.
const FAILED_FOR: Duration = Duration::from_secs(1);
/// So many settings are kept that functions may set which are not committed.
const MADE_MAX: usize = 1000;
/// What roles were changed to elsewhere is seen so much later at the latest, where there is row security.
const ROLES_SEEN_FOR: Duration = Duration::from_secs(1);

/// Before what is asked of the catalog: in the database's own encoding, from which nothing is converted: what cannot be would have the rest refused.
const AS_IT_IS: &str = "\
SET LOCAL search_path = pg_catalog; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 100; \
SELECT NULL, NULL, set_config('client_encoding', getdatabaseencoding(), true); ";

/// Asks for the functions: a kind, a name and a text of each. Texts of views and rules are behind locks that DDL may have: to wait for one
/// longer than a moment would hold the client up, and could make somebody's transaction the victim of a deadlock (after `deadlock_timeout`).
/// What is refused for that is asked again. Numbers below 16384 are PostgreSQL's own (`FirstNormalObjectId` in `transam.h`).
const ASK_FUNCTIONS: &str = "\
SELECT CASE p.provolatile WHEN 'i' THEN 'immutable ' ELSE '' END || \
CASE WHEN l.lanname IN ('sql', 'plpgsql') THEN 'body' WHEN l.lanname IN ('c', 'internal') THEN 'library' ELSE 'opaque' END, \
p.proname, CASE WHEN l.lanname IN ('c', 'internal') THEN coalesce(p.probin, p.prosrc) \
WHEN p.prosrc = '' THEN pg_get_functiondef(p.oid) ELSE p.prosrc END \
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE p.oid >= 16384 AND p.prokind <> 'a'";

/// The same, and whether a definition calls one of PostgreSQL's own functions that leave something: by their numbers, as expressions are kept.
pub(crate) static ASK_SOURCES: LazyLock<String> = LazyLock::new(|| {
    let names: Vec<String> = leaving_by_name().iter().map(|name| quoted_text(name)).collect();
    format!(
        "{AT_ONCE}{AS_IT_IS}{ASK_FUNCTIONS} UNION ALL SELECT '{DIRECT}', NULL, '' FROM (SELECT ':funcid (' || string_agg(CAST(oid AS text), '|') || ') ' AS called FROM pg_proc \
         WHERE oid < 16384 AND proname = ANY(CAST(ARRAY[{}] AS name[]))) own \
         WHERE EXISTS (SELECT FROM pg_rewrite WHERE oid >= 16384 AND CAST(ev_action AS text) ~ called) \
         OR EXISTS (SELECT FROM pg_attrdef WHERE adrelid >= 16384 AND CAST(adbin AS text) ~ called) \
         OR EXISTS (SELECT FROM pg_policy WHERE concat_ws(' ', CAST(polqual AS text), CAST(polwithcheck AS text)) ~ called) \
         OR EXISTS (SELECT FROM pg_constraint WHERE oid >= 16384 AND CAST(conbin AS text) ~ called) \
         OR EXISTS (SELECT FROM pg_trigger WHERE tgqual IS NOT NULL AND CAST(tgqual AS text) ~ called) \
         OR EXISTS (SELECT FROM pg_proc WHERE oid >= 16384 AND CAST(proargdefaults AS text) ~ called) \
         OR EXISTS (SELECT FROM pg_type WHERE oid >= 16384 AND CAST(typdefaultbin AS text) ~ called)",
        names.join(",")
    ) + &format!(
        " UNION ALL SELECT '{SECURED}', NULL, '' WHERE EXISTS (SELECT FROM pg_class WHERE relrowsecurity) \
         UNION ALL SELECT '{ROLES}', NULL, {WHAT_ROLES_ARE}"
    )
});
/// Of that, what says that there is one.
const DIRECT: &str = "direct";
/// That there is row security.
const SECURED: &str = "secured";
/// What roles are, in short.
const ROLES: &str = "roles";
const WHAT_ROLES_ARE: &str = "\
CAST(hashtextextended(concat_ws(';', (SELECT string_agg(concat_ws(' ', oid, rolname, rolsuper, rolbypassrls, rolinherit), ',' ORDER BY oid) \
FROM pg_roles), (SELECT string_agg(CAST(members AS text), ',' ORDER BY CAST(members AS text)) FROM pg_auth_members members)), 0) AS text)";

/// Asks for that alone.
pub(crate) static ASK_ROLES: LazyLock<String> =
    LazyLock::new(|| format!("{AT_ONCE}{AS_IT_IS}SELECT '{ROLES}', NULL, {WHAT_ROLES_ARE}"));

/// Asks for all that may call them. It takes a while where there is much of it, and is asked only where a function leaves something.
pub(crate) static ASK_CALLERS: LazyLock<String> = LazyLock::new(|| [AT_ONCE, AS_IT_IS, CALLERS].concat());
const CALLERS: &str = "\
SELECT 'reads', p.proname, concat_ws(' ', a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggmtransfn, a.aggmfinalfn) \
FROM pg_aggregate a JOIN pg_proc p ON p.oid = a.aggfnoid WHERE p.oid >= 16384 \
UNION ALL SELECT 'reads', relname, pg_get_viewdef(oid) FROM pg_class WHERE relkind IN ('v', 'm') AND oid >= 16384 \
UNION ALL SELECT 'writes', relname, 'UPDATE ' || pg_get_viewdef(oid) FROM pg_class WHERE relkind = 'v' AND oid >= 16384 \
UNION ALL SELECT 'writes', c.relname, pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid \
WHERE NOT t.tgisinternal \
UNION ALL SELECT 'writes', c.relname, pg_get_ruledef(r.oid) FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class \
WHERE r.rulename <> '_RETURN' AND c.oid >= 16384 \
UNION ALL SELECT 'reads', c.relname, pg_get_expr(p.polqual, p.polrelid) FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid \
UNION ALL SELECT 'writes', c.relname, pg_get_expr(p.polwithcheck, p.polrelid) FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid \
UNION ALL SELECT 'writes', c.relname, pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d JOIN pg_class c ON c.oid = d.adrelid \
WHERE c.oid >= 16384 \
UNION ALL SELECT 'writes', c.relname, pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid \
WHERE k.contype IN ('c', 'x') AND c.oid >= 16384 \
UNION ALL SELECT 'writes', parent.relname, 'DELETE FROM ' || quote_ident(child.relname) FROM pg_constraint k \
JOIN pg_class child ON child.oid = k.conrelid JOIN pg_class parent ON parent.oid = k.confrelid \
WHERE k.contype = 'f' AND (k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd')) \
UNION ALL SELECT 'writes', parent.relname, 'INSERT INTO ' || quote_ident(child.relname) FROM pg_inherits i \
JOIN pg_class child ON child.oid = i.inhrelid JOIN pg_class parent ON parent.oid = i.inhparent \
UNION ALL SELECT 'writes', c.relname, pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid \
WHERE (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL) AND c.oid >= 16384 \
UNION ALL SELECT 'reads', t.typname, pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN pg_type t ON t.oid = k.contypid \
UNION ALL SELECT 'writes', c.relname, quote_ident(t.typname) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
JOIN pg_type t ON t.oid = a.atttypid WHERE t.typtype = 'd' AND t.oid >= 16384 AND c.relkind <> 'i' \
UNION ALL SELECT 'reads', NULL, CAST(oprcode AS text) FROM pg_operator WHERE oid >= 16384 \
UNION ALL SELECT 'reads', NULL, CAST(CAST(castfunc AS regproc) AS text) FROM pg_cast WHERE oid >= 16384 AND castfunc <> 0 \
UNION ALL SELECT 'reads', NULL, CAST(amproc AS text) FROM pg_amproc WHERE oid >= 16384 \
UNION ALL SELECT 'reads', NULL, CAST(CAST(evtfoid AS regproc) AS text) FROM pg_event_trigger \
UNION ALL SELECT 'reads', proname, pg_get_expr(proargdefaults, 0) FROM pg_proc WHERE oid >= 16384 AND proargdefaults IS NOT NULL \
UNION ALL SELECT 'reads', typname, pg_get_expr(typdefaultbin, 0) FROM pg_type WHERE oid >= 16384 AND typdefaultbin IS NOT NULL";

/// Libraries of PostgreSQL's own distribution, and some that many have, whose functions leave nothing behind; those that do are known by name.
const HARMLESS_LIBRARIES: [&str; 40] = [
    // Of intarray.
    "_int",
    "amcheck",
    "autoinc",
    "bloom",
    "btree_gin",
    "btree_gist",
    "citext",
    "cube",
    "dict_int",
    "dict_xsyn",
    "earthdistance",
    "file_fdw",
    "fuzzystrmatch",
    "hstore",
    "insert_username",
    "isn",
    "lo",
    "ltree",
    "moddatetime",
    "pageinspect",
    "pg_buffercache",
    "pg_freespacemap",
    "pg_prewarm",
    "pg_stat_statements",
    "pg_trgm",
    "pg_visibility",
    "pgcrypto",
    "pgrowlocks",
    "pgstattuple",
    "postgres_fdw",
    "refint",
    "seg",
    "sslinfo",
    "tablefunc",
    "tcn",
    "tsm_system_rows",
    "tsm_system_time",
    "unaccent",
    "uuid-ossp",
    "vector",
];

/// Whether some function leaves something, so that it matters what calls them.
pub(crate) fn have_source(functions: &[Row]) -> bool {
    functions
        .iter()
        .any(|row| row.kind == DIRECT || Node::of(row).reached.is_some())
}

/// What the catalog says of one database.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    seen: Mutex<Seen>,
    /// Something may be set off: otherwise no text needs to be read for it.
    has_source: AtomicBool,
    /// How often its tables were changed by clients, or may have been.
    schema_changes: AtomicU64,
    /// What plans [hang on](HangOn), as a number.
    plans_hang_on: AtomicU8,
    /// How often roles were others.
    roles_changes: AtomicU64,
    /// How often those that may change rows were others; 0: there are none.
    writers_number: AtomicU64,
    /// Settings of the user's own that functions may set which somebody makes.
    made: Mutex<BTreeSet<String>>,
}

/// What is to be asked before a session's next text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    Sources,
    /// What roles are, alone.
    Roles,
}

#[derive(Debug, Default)]
struct Seen {
    suspects: Arc<Suspects>,
    /// Until when it is taken for true.
    until: Option<Instant>,
    /// Of what was answered.
    hash: u64,
    /// Functions of the user's that may change rows.
    writers: Arc<HashSet<String>>,
    /// What may call functions, if it was asked for.
    callers: Option<Arc<[Row]>>,
    /// There is row security.
    is_secured: bool,
    /// What roles were, and until when that is taken for true.
    roles: Option<String>,
    roles_until: Option<Instant>,
}

/// Names that may leave something where a text mentions them.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    /// How many times others have taken its place.
    generation: u64,
    /// Where a text mentions them.
    read: HashMap<String, Reached, foldhash::fast::RandomState>,
    /// Where a text mentions them that writes.
    written: HashMap<String, Reached, foldhash::fast::RandomState>,
    /// By whatever text.
    by_any: Option<Reached>,
    /// Some function leaves something.
    has_source: bool,
}

/// Settings of the user's own that may be set; none where others may be.
type Reached = Option<BTreeSet<String>>;

impl Effects {
    /// What is to be asked now: by each session that is told so, before its next text.
    pub(crate) fn due(&self) -> Due {
        let mut seen = self.seen.lock();
        let now = Instant::now();
        match seen.until {
            Some(until) if now < until => {}
            // What is known is good enough for the others meanwhile.
            Some(_) => {
                seen.until = Some(now + SEEN_FOR);
                return Due::Sources;
            }
            None => return Due::Sources,
        }
        if !seen.is_secured || seen.roles_until.is_some_and(|until| now < until) {
            return Due::Nothing;
        }
        seen.roles_until = Some(now + ROLES_SEEN_FOR);
        Due::Roles
    }

    /// What may be set off; none where nothing is.
    pub(crate) fn suspects(&self) -> Option<Arc<Suspects>> {
        let has_source = self.has_source.load(Ordering::Acquire);
        has_source.then(|| Arc::clone(&self.seen.lock().suspects))
    }

    /// What the plans hang on that its server connections keep, beside what its sessions have set.
    pub(crate) fn grounds(&self) -> Grounds {
        let all = [HangOn::Folding, HangOn::Reading, HangOn::Anything];
        Grounds {
            hang_on: all[usize::from(self.plans_hang_on.load(Ordering::Acquire))],
            roles_changes: self.roles_changes.load(Ordering::Acquire),
        }
    }

    /// A text that was prepared at another of these numbers may read other columns than one that is prepared now.
    pub(crate) fn schema_changes(&self) -> u64 {
        self.schema_changes.load(Ordering::Acquire)
    }

    /// A command of this tag is done, and its own transaction sees it; or it is committed.
    pub(crate) fn has_changed_tables(&self, tag: &[u8]) {
        if may_change_tables(tag) {
            self.has_made_tables();
        }
    }

    /// A table was made, or what a text does that its tag does not tell may be that.
    pub(crate) fn has_made_tables(&self) {
        self.schema_changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Somebody has changed something of the catalog, past the proxy.
    pub(crate) fn was_changed_elsewhere(&self) {
        self.schema_changes.fetch_add(1, Ordering::AcqRel);
        self.doubt();
    }

    /// A command of this tag is committed.
    pub(crate) fn has_changed(&self, tag: &[u8]) {
        self.has_changed_tables(tag);
        let mut seen = self.seen.lock();
        // A table may have row security from now on.
        let is_secured_now = !seen.is_secured && tag == b"ALTER TABLE\0";
        if changes_functions(tag) || seen.suspects.has_source || is_secured_now {
            seen.until = None;
        }
        let made = match changes_functions(tag) {
            true => std::mem::take(&mut *self.made.lock()),
            false => BTreeSet::new(),
        };
        if !made.is_empty() {
            // Who is inside of a transaction may call it before anybody looks.
            let mut by_any = seen.suspects.by_any.clone();
            merge(&mut by_any, Some(&Some(made)));
            seen.suspects = Arc::new(Suspects {
                generation: seen.suspects.generation + 1,
                read: seen.suspects.read.clone(),
                written: seen.suspects.written.clone(),
                by_any,
                has_source: true,
            });
            seen.hash = 0;
            self.has_source.store(true, Ordering::Release);
        }
        if is_of_all_databases(tag) {
            seen.roles_until = None;
        }
    }

    /// Tells the functions that may change rows from those of before; 0: there are none.
    pub(crate) fn writers_number(&self) -> u64 {
        self.writers_number.load(Ordering::Acquire)
    }

    /// Whether one of these is called as a function of the user's that may change rows.
    pub(crate) fn may_write(&self, called: &[String]) -> bool {
        let writers = Arc::clone(&self.seen.lock().writers);
        called.iter().any(|name| writers.contains(&name.to_lowercase()))
    }

    /// Somebody makes functions that may set these settings of the user's own.
    pub(crate) fn makes(&self, named: &[String]) {
        let mut made = self.made.lock();
        // What is never committed is not kept without an end.
        let room = MADE_MAX.saturating_sub(made.len());
        made.extend(named.iter().take(room).cloned());
    }

    /// The database may be another one from now on.
    pub(crate) fn doubt(&self) {
        self.seen.lock().until = None;
    }

    /// Whether it is known what calls functions, as of some time.
    pub(crate) fn knows_callers(&self) -> bool {
        self.seen.lock().callers.is_some()
    }

    /// What was answered; none where that was refused. `asks_again`: what calls functions was, as something of it is locked, and is taken for what it was before.
    pub(crate) fn learn(&self, rows: Option<Vec<Row>>, asks_again: bool) {
        let now = Instant::now();
        let rows = rows.and_then(|mut rows| {
            if asks_again {
                let callers = self.seen.lock().callers.clone()?;
                rows.extend(callers.iter().cloned());
            }
            Some(rows)
        });
        let holds_for = if asks_again { FAILED_FOR } else { SEEN_FOR };
        let Some(rows) = rows else {
            let mut seen = self.seen.lock();
            let generation = seen.suspects.generation + 1;
            let (callers, writers) = (seen.callers.take(), Arc::clone(&seen.writers));
            *seen = Seen {
                callers,
                writers,
                suspects: Arc::new(Suspects {
                    generation,
                    by_any: Some(None),
                    has_source: true,
                    ..Suspects::default()
                }),
                until: Some(now + FAILED_FOR),
                ..Seen::default()
            };
            self.roles_changes.fetch_add(1, Ordering::AcqRel);
            self.has_source.store(true, Ordering::Release);
            self.plans_hang_on.store(HangOn::Anything as u8, Ordering::Release);
            return;
        };
        self.learn_roles(&rows);
        let hash = hash_of(&rows);
        {
            let mut seen = self.seen.lock();
            seen.is_secured = rows.iter().any(|row| row.kind == SECURED);
            if seen.hash == hash {
                seen.until = Some(now + holds_for);
                return;
            }
        }
        let callers: Vec<Row> = rows.iter().filter(|row| row.is_of_a_caller()).cloned().collect();
        let mut suspects = Suspects::of(&rows);
        let writers = writers(&rows);
        self.plans_hang_on.store(hang_on(&rows) as u8, Ordering::Release);
        let mut seen = self.seen.lock();
        suspects.generation = seen.suspects.generation + 1;
        self.has_source.store(suspects.has_source, Ordering::Release);
        let number = match writers.is_empty() {
            true => 0,
            false => suspects.generation,
        };
        seen.writers = writers.into();
        self.writers_number.store(number, Ordering::Release);
        seen.callers = suspects.has_source.then(|| callers.into());
        seen.suspects = Arc::new(suspects);
        seen.until = Some(now + holds_for);
        seen.hash = hash;
    }

    /// What was answered of roles; nothing where that was refused.
    pub(crate) fn learn_roles(&self, rows: &[Row]) {
        let roles = rows.iter().find(|row| row.kind == ROLES).map(|row| &row.text);
        let mut seen = self.seen.lock();
        seen.roles_until = Some(Instant::now() + ROLES_SEEN_FOR);
        if roles.is_none() || seen.roles.as_ref().is_some_and(|before| Some(before) != roles) {
            self.roles_changes.fetch_add(1, Ordering::AcqRel);
        }
        seen.roles = roles.cloned();
    }
}

/// Whether commands of this tag may make or change functions; others change only what calls them.
fn changes_functions(tag: &[u8]) -> bool {
    let words: [&[u8]; 6] = [b"FUNCTION", b"PROCEDURE", b"ROUTINE", b"EXTENSION", b"DO\0", b"CALL\0"];
    words
        .iter()
        .any(|word| tag.windows(word.len()).any(|part| part == *word))
}

/// Whether commands of this tag change what is of all databases of a server: roles, or which database is called how.
pub(crate) fn is_of_all_databases(tag: &[u8]) -> bool {
    // What was prepared, and what a text does in another language, may be that.
    tag.ends_with(b" ROLE\0")
        || tag.ends_with(b" DATABASE\0")
        || [&b"DO\0"[..], b"CALL\0", b"COMMIT PREPARED\0"].contains(&tag)
}

/// Whether what commands of this tag do is to be [told](Effects::has_changed) when it is committed.
pub(crate) fn may_change(tag: &[u8]) -> bool {
    may_change_tables(tag) || is_of_all_databases(tag)
}

/// Whether commands of this tag make nothing.
pub(crate) fn only_drops(tag: &[u8]) -> bool {
    tag.starts_with(b"DROP ")
}

/// Whether commands of this tag make, alter or drop tables, or may.
fn may_change_tables(tag: &[u8]) -> bool {
    [
        &b"CREATE "[..],
        b"ALTER ",
        b"DROP ",
        b"DO\0",
        b"IMPORT ",
        b"COMMIT PREPARED\0",
    ]
    .iter()
    .any(|begin| tag.starts_with(begin))
}

/// A row of the answer.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    kind: String,
    /// It is a function that is declared so.
    is_immutable: bool,
    name: Option<String>,
    text: String,
}

impl Row {
    /// Whether it tells what may call functions.
    pub(crate) fn is_of_a_caller(&self) -> bool {
        matches!(self.kind.as_str(), "reads" | "writes")
    }

    /// Reads a DataRow from its first byte on. None if there is no text.
    pub(crate) fn read(row: &[u8]) -> Option<Self> {
        let mut rest = row.get(frames::HEADER_BYTES..)?.strip_prefix(&[0, 3])?;
        let mut column = || {
            let (length, behind) = rest.split_first_chunk::<4>()?;
            let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
                rest = behind;
                return Some(None);
            };
            let (text, behind) = behind.split_at_checked(length)?;
            rest = behind;
            Some(Some(String::from_utf8_lossy(text).into_owned()))
        };
        let (kind, name, text) = (column()??, column()?, column()??);
        let declared = kind.strip_prefix("immutable ");
        Some(Self {
            is_immutable: declared.is_some(),
            kind: declared.map(str::to_owned).unwrap_or(kind),
            name,
            text,
        })
    }
}

fn hash_of(rows: &[Row]) -> u64 {
    // Whatever the order is.
    let state = foldhash::fast::FixedState::default();
    rows.iter().fold(1, |sum: u64, row| {
        let mut hasher = state.build_hasher();
        for part in [&row.kind, row.name.as_deref().unwrap_or("\0"), &row.text] {
            hasher.write(part.as_bytes());
            hasher.write_u8(0);
        }
        hasher.write_u8(u8::from(row.is_immutable));
        sum.wrapping_add(hasher.finish())
    })
}

/// What plans hang on where there are these functions.
fn hang_on(rows: &[Row]) -> HangOn {
    let functions: Vec<&Row> = rows
        .iter()
        .filter(|row| matches!(row.kind.as_str(), "body" | "opaque"))
        .collect();
    if functions.iter().any(|row| row.is_immutable) && is_immutable_by_word_alone(&functions) {
        return HangOn::Anything;
    }
    match functions
        .iter()
        .any(|row| row.is_immutable || is_read_by_settings(row.text.as_bytes()))
    {
        true => HangOn::Reading,
        false => HangOn::Folding,
    }
}

/// Whether one that is declared immutable asks for what is set, or calls one that does, by whatever way.
fn is_immutable_by_word_alone(functions: &[&Row]) -> bool {
    let mentions: Vec<Vec<String>> = functions
        .iter()
        .map(|row| mentioned(&row.text).map(|(names, _)| names).unwrap_or_default())
        .collect();
    let mut asks: Vec<bool> = functions.iter().map(|row| may_ask_for_settings(&row.text)).collect();
    loop {
        if functions.iter().zip(&asks).any(|(row, asks)| row.is_immutable && *asks) {
            return true;
        }
        let names: HashSet<String> = (functions.iter().zip(&asks))
            .filter(|(_, asks)| **asks)
            .filter_map(|(row, _)| row.name.as_ref().map(|name| name.to_lowercase()))
            .collect();
        let before = asks.iter().filter(|asks| **asks).count();
        for (asks, mentions) in asks.iter_mut().zip(&mentions) {
            *asks |= mentions.iter().any(|name| names.contains(name));
        }
        if asks.iter().filter(|asks| **asks).count() == before {
            return false;
        }
    }
}

/// Words that a function has in its body if it changes rows, beside those that tell of a change by themselves: of a text that it puts together nobody knows.
const CHANGING: [&str; 9] = [
    "alter", "call", "cluster", "create", "do", "drop", "execute", "refresh", "reindex",
];

/// The names of the functions that may change rows, by what they say, by what those say that they call, or as nobody can tell.
fn writers(rows: &[Row]) -> HashSet<String> {
    let mut others = Vec::new();
    let mut writers = HashSet::new();
    let functions = rows.iter().filter(|row| !row.is_of_a_caller());
    for (row, name) in functions.filter_map(|row| Some((row, row.name.as_ref()?.to_lowercase()))) {
        let known = match row.kind.as_str() {
            "body" => mentioned(&row.text).filter(|(names, writes)| {
                let may_change = |name: &String| {
                    let name = name.as_str();
                    CHANGING.contains(&name) || leaving_by_name().contains(&name)
                };
                !writes && !names.iter().any(may_change)
            }),
            "library" => is_harmless(&row.text).then(Default::default),
            _ => None,
        };
        match known {
            Some((names, _)) => others.push((name, names)),
            None => drop(writers.insert(name)),
        }
    }
    loop {
        let before = others.len();
        others.retain(|(name, names)| {
            let calls_one = names.iter().any(|name| writers.contains(name));
            if calls_one {
                writers.insert(name.clone());
            }
            !calls_one
        });
        if others.len() == before {
            return writers;
        }
    }
}

/// Something that a text sets off by its name, and what it sets off in turn.
struct Node {
    name: Option<String>,
    is_written: bool,
    mentions: Vec<String>,
    writes: bool,
    reached: Option<Reached>,
}

impl Suspects {
    fn of(rows: &[Row]) -> Self {
        let mut nodes: Vec<Node> = rows.iter().map(Node::of).collect();
        let has_source = nodes.iter().any(|node| node.reached.is_some());
        let mut suspects = Self {
            has_source,
            ..Self::default()
        };
        if !has_source {
            return suspects;
        }
        // Up to the last that sets off another one.
        loop {
            let mut has_changed = false;
            for node in &mut nodes {
                let mut reached = node.reached.clone();
                for name in &node.mentions {
                    merge(&mut reached, suspects.read.get(name));
                    if node.writes {
                        merge(&mut reached, suspects.written.get(name));
                    }
                }
                let Some(reached) = reached else { continue };
                let place = match &node.name {
                    None => &mut suspects.by_any,
                    Some(name) => {
                        let of = if node.is_written {
                            &mut suspects.written
                        } else {
                            &mut suspects.read
                        };
                        let known = of.get(name).cloned();
                        let mut merged = known.clone();
                        merge(&mut merged, Some(&reached));
                        if merged != known {
                            has_changed = true;
                            of.insert(name.clone(), merged.unwrap_or_default());
                        }
                        continue;
                    }
                };
                let known = place.clone();
                merge(place, Some(&reached));
                has_changed |= *place != known;
            }
            if !has_changed {
                return suspects;
            }
        }
    }

    /// What may be left by whatever is set off.
    pub(crate) fn set_off_by_anything(&self) -> Option<Leaves> {
        let mut reached = self.by_any.clone();
        for by in self.read.values().chain(self.written.values()) {
            merge(&mut reached, Some(by));
        }
        reached.map(Leaves::by)
    }

    /// Which ones they are, among those of other times.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// What a text may leave by what it sets off; none where it leaves nothing.
    pub(crate) fn set_off_by(&self, text: &[u8]) -> Option<Leaves> {
        let mut reached = self.by_any.clone();
        match mentioned(&String::from_utf8_lossy(text)) {
            Some((names, writes)) => {
                let mut merge_all = |name: &str| {
                    merge(&mut reached, self.read.get(name));
                    if writes {
                        merge(&mut reached, self.written.get(name));
                    }
                };
                for name in &names {
                    merge_all(name);
                    // In another encoding it is any that differs by its letters beyond ASCII alone.
                    if !name.is_ascii() {
                        let alike = |other: &&String| !other.is_ascii() && squeezed(other) == squeezed(name);
                        (self.read.keys().chain(self.written.keys()))
                            .filter(alike)
                            .for_each(|name| merge_all(name));
                    }
                }
            }
            None => reached = Some(None),
        }
        reached.map(Leaves::by)
    }
}

impl Leaves {
    fn by(reached: Reached) -> Self {
        Self {
            named: reached.map(|named| named.into_iter().collect()),
            is_broken: false,
        }
    }
}

/// A name with one letter in place of all beyond ASCII that stand next to each other.
fn squeezed(name: &str) -> String {
    let mut letters: Vec<char> = name
        .chars()
        .map(|letter| {
            if letter.is_ascii() {
                letter
            } else {
                char::REPLACEMENT_CHARACTER
            }
        })
        .collect();
    letters.dedup_by(|one, other| !one.is_ascii() && !other.is_ascii());
    letters.into_iter().collect()
}

/// What is reached also by way of another.
fn merge(reached: &mut Option<Reached>, by: Option<&Reached>) {
    match (reached, by) {
        (_, None) => {}
        (Some(Some(names)), Some(Some(more))) => names.extend(more.iter().cloned()),
        (reached, Some(more)) if reached.is_none() => *reached = Some(more.clone()),
        (reached, Some(_)) => *reached = Some(None),
    }
}

impl Node {
    fn of(row: &Row) -> Self {
        let named = |named: Option<Vec<String>>| named.map(|named| named.into_iter().collect());
        let reached = match row.kind.as_str() {
            "body" => body_may_leave_something(&row.text).then(|| named(settings_named_in_body(&row.text))),
            "library" => (!is_harmless(&row.text)).then_some(None),
            // Of another language: what it sets, it sets by SQL.
            "reads" | "writes" => {
                definition_may_leave_something(&row.text).then(|| named(settings_named_in_body(&row.text)))
            }
            "opaque" => Some((!row.text.to_ascii_lowercase().contains("set")).then(BTreeSet::new)),
            _ => None,
        };
        let (mentions, writes) = match row.kind.as_str() {
            "library" => (Vec::new(), false),
            _ => mentioned(&row.text).unwrap_or_default(),
        };
        Self {
            name: row.name.as_ref().map(|name| name.to_lowercase()),
            is_written: row.kind == "writes",
            mentions,
            writes,
            reached,
        }
    }
}

/// Whether the functions of a library, or a function of the server's own by another name, leave nothing.
fn is_harmless(library: &str) -> bool {
    let name = library.rsplit('/').next().unwrap_or(library);
    let name = name.strip_suffix(".so").unwrap_or(name);
    let is_own = name == library
        && !["set_config", "setseed", "advisory", "_to_xml"]
            .iter()
            .any(|part| name.contains(part));
    let is_postgis = ["postgis", "rtpostgis", "address_standardizer"]
        .iter()
        .any(|begin| name.starts_with(begin));
    is_own || is_postgis || HARMLESS_LIBRARIES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: &str, name: &str, text: &str) -> Row {
        Row {
            kind: kind.to_owned(),
            is_immutable: false,
            name: (!name.is_empty()).then(|| name.to_owned()),
            text: text.to_owned(),
        }
    }

    fn leaves(suspects: &Suspects, text: &str) -> Option<Option<Vec<String>>> {
        suspects.set_off_by(text.as_bytes()).map(|leaves| leaves.named)
    }

    #[test]
    fn what_sets_off_what_leaves_something_is_found() {
        let rows = [
            row(
                "body",
                "Mark",
                "begin perform set_config('app.by', x, false); return new; end",
            ),
            row("body", "around", "begin return mark(); end"),
            row("body", "plain", "begin update t set a = 1; return 2; end"),
            row(
                "writes",
                "audited",
                "CREATE TRIGGER x BEFORE INSERT ON audited FOR EACH ROW EXECUTE FUNCTION \"Mark\"()",
            ),
            row("writes", "parent", "DELETE FROM audited"),
            row("reads", "seen", "SELECT around() FROM t"),
            row("body", "writing", "begin insert into audited values (1); end"),
            row("library", "trgm", "$libdir/pg_trgm"),
            row("opaque", "py", "return 1"),
        ];
        let suspects = Suspects::of(&rows);
        let by = || Some(Some(vec!["app.by".to_owned()]));
        for text in [
            "select mark()",
            "select s.around(1)",
            "insert into audited values (1)",
            "delete from Parent",
            "select * from seen",
            "select writing()",
        ] {
            assert_eq!(leaves(&suspects, text), by(), "{text}");
        }
        assert_eq!(leaves(&suspects, "select py()"), Some(Some(vec![])));
        assert_eq!(leaves(&suspects, "select 'open"), Some(None));
        for text in [
            "select * from audited",
            "update t set a = 1",
            "select plain(), trgm()",
            "select 'mark'",
        ] {
            assert_eq!(leaves(&suspects, text), None, "{text}");
        }
    }

    #[test]
    fn what_is_made_may_be_set_by_any_text_until_the_next_look() {
        let effects = Effects::default();
        let rows = || Some(vec![row("body", "plain", "select 1")]);
        effects.learn(rows(), false);
        effects.makes(&["app.made".to_owned()]);
        effects.has_changed(b"CREATE TABLE\0");
        assert!(effects.suspects().is_none(), "it is not there yet");
        effects.has_changed(b"CREATE FUNCTION\0");
        let suspects = effects.suspects().expect("it may be called");
        assert_eq!(leaves(&suspects, "select 1"), Some(Some(vec!["app.made".to_owned()])));
        effects.learn(rows(), false);
        assert!(effects.suspects().is_none(), "it was looked at");
        let many: Vec<String> = (0..2 * MADE_MAX).map(|number| format!("app.n{number}")).collect();
        many.iter().for_each(|name| effects.makes(std::slice::from_ref(name)));
        assert_eq!(effects.made.lock().len(), MADE_MAX);
    }

    #[test]
    fn what_is_locked_is_taken_for_what_it_was() {
        let sets = || row("body", "sets", "select set_config('app.by', '1', false)");
        let calls = || row("reads", "seen", "SELECT sets()");
        let effects = Effects::default();
        assert!(!effects.knows_callers());
        effects.learn(Some(vec![sets(), calls()]), false);
        assert!(effects.knows_callers());
        let more = || row("body", "more", "select 1");
        effects.learn(Some(vec![sets(), more()]), true);
        let suspects = effects.suspects().expect("a function leaves something");
        assert_eq!(
            leaves(&suspects, "select * from seen"),
            Some(Some(vec!["app.by".to_owned()]))
        );
        assert_eq!(leaves(&suspects, "select 1"), None);
        let nothing_known = Effects::default();
        nothing_known.learn(Some(vec![sets()]), true);
        let suspects = nothing_known.suspects().expect("nothing is known");
        assert_eq!(leaves(&suspects, "select 1"), Some(None));
    }

    #[test]
    fn who_writes_is_told_by_what_he_says_and_calls() {
        let rows = [
            row("body", "log", "insert into t values (1)"),
            row("body", "around", "select log()"),
            row("body", "dynamic", "begin execute x; end"),
            row("body", "plain", "select upper($1)"),
            row("library", "trgm", "$libdir/pg_trgm"),
            row("library", "other", "$libdir/other"),
            row("opaque", "py", "return 1"),
        ];
        let mut told: Vec<String> = writers(&rows).into_iter().collect();
        told.sort();
        assert_eq!(told, ["around", "dynamic", "log", "other", "py"]);
    }

    #[test]
    fn what_plans_hang_on_is_read_from_the_functions() {
        let immutable = |name: &str, text: &str| Row {
            is_immutable: true,
            ..row("body", name, text)
        };
        let asks = row("body", "Tenant", "select current_setting('app.tenant')");
        let calls = || immutable("mine", "select $1 = tenant()");
        for (rows, hang_on_it) in [
            (vec![], HangOn::Folding),
            (vec![row("library", "l", "'x'")], HangOn::Folding),
            (vec![row("body", "f", "select $1 + 1")], HangOn::Folding),
            (vec![immutable("f", "select $1::date")], HangOn::Reading),
            (vec![row("body", "f", "select $1 + 1"), calls()], HangOn::Reading),
            (
                vec![row("body", "f", "begin return '01/02/2024'::date; end")],
                HangOn::Reading,
            ),
            (vec![row("opaque", "f", "return 'a'")], HangOn::Reading),
            (vec![immutable("f", "select lower('x')")], HangOn::Reading),
            (vec![immutable("f", "select current_user")], HangOn::Anything),
        ] {
            assert_eq!(hang_on(&rows), hang_on_it, "{rows:?}");
        }
        assert_eq!(hang_on(&[asks]), HangOn::Reading);
        let asks = row("body", "Tenant", "select current_setting('app.tenant')");
        assert_eq!(hang_on(&[calls(), asks]), HangOn::Anything);
        // As it is declared otherwise, and nothing else has changed.
        let effects = Effects::default();
        let text = "select current_user";
        effects.learn(Some(vec![row("body", "f", text)]), false);
        assert_eq!(effects.grounds().hang_on, HangOn::Folding);
        effects.learn(Some(vec![immutable("f", text)]), false);
        assert_eq!(effects.grounds().hang_on, HangOn::Anything);
    }

    #[test]
    fn an_operator_is_in_no_text_and_so_in_all() {
        let rows = [
            row("body", "f", "begin set work_mem = 1; return 1; end"),
            row("reads", "", "f"),
        ];
        assert_eq!(leaves(&Suspects::of(&rows), "select 1"), Some(Some(vec![])));
        assert_eq!(leaves(&Suspects::of(&rows[..1]), "select 1"), None);
    }

    #[test]
    fn it_is_asked_anew_when_functions_change_and_never_twice_for_its_age() {
        let effects = Effects::default();
        let is_due = || effects.due() == Due::Sources;
        assert!(is_due() && is_due(), "nobody goes on without");
        effects.learn(Some(vec![row("body", "plain", "select 1")]), false);
        assert!(!is_due());
        effects.has_changed(b"CREATE TABLE\0");
        assert!(!is_due(), "no function leaves anything");
        effects.has_changed(b"CREATE FUNCTION\0");
        assert!(is_due());
        assert!(effects.suspects().is_none());
        effects.learn(Some(vec![row("body", "plain", "select 1")]), false);
        effects.has_changed(b"ALTER TABLE\0");
        assert!(is_due(), "it may have row security");
        effects.learn(None, false);
        assert_eq!(effects.suspects().unwrap().generation(), 2);
        assert_eq!(
            leaves(&effects.suspects().unwrap(), "select 1"),
            Some(None),
            "what is not known is anything"
        );
        effects.has_changed(b"ALTER TABLE\0");
        assert!(is_due());
    }

    #[test]
    fn roles_are_looked_at_where_there_is_row_security() {
        let effects = Effects::default();
        let roles = |what: &str| row(ROLES, "", what);
        let changes = || effects.grounds().roles_changes;
        effects.learn(Some(vec![roles("1")]), false);
        let before = changes();
        effects.has_changed(b"ALTER ROLE\0");
        assert_eq!(effects.due(), Due::Nothing, "no plan hangs on them");
        effects.learn(Some(vec![roles("1"), row(SECURED, "", "")]), false);
        assert_eq!((effects.due(), changes()), (Due::Nothing, before));
        effects.has_changed(b"GRANT ROLE\0");
        assert_eq!((effects.due(), effects.due()), (Due::Roles, Due::Nothing));
        effects.learn_roles(&[roles("1")]);
        assert_eq!(changes(), before);
        effects.learn_roles(&[roles("2")]);
        assert_eq!(changes(), before + 1);
        effects.learn_roles(&[]);
        effects.learn_roles(&[]);
        assert_eq!(changes(), before + 3, "what is not known is another");
    }
}
