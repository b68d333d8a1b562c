//! Type catalog: from a type's number to the type, as the server knows it.
//!
//! Promises: types that come with every PostgreSQL are known without asking; of others all that are asked for at once, with those
//! that they are made of, are asked for in one query and remembered until [`forget`](TypeCatalog::forget). Of an enum's labels and a
//! composite's fields nothing is asked: whoever reads values here has no use for them.

use std::collections::HashMap;

use postgres_types::{Kind, Oid, Type};

use super::error::{Failure, failure};
use super::pipeline::Refusal;
use forebay_pg_link::{Link, LinkError, ServerError, Tag};

/// The types of one database that are not every PostgreSQL's.
#[derive(Debug, Default)]
pub(super) struct TypeCatalog {
    types: HashMap<Oid, Type>,
}

/// A row of `pg_type`.
struct Described {
    name: String,
    schema: String,
    /// As `typtype` says it.
    kind: u8,
    /// Of an array's elements, a domain's values or a range's bounds; 0 for the rest.
    of: Oid,
}

impl TypeCatalog {
    /// Forgets all: the schema has changed.
    pub(super) fn forget(&mut self) {
        self.types.clear();
    }

    /// The type of a number that was [learnt](Self::learn), or is every PostgreSQL's.
    pub(super) fn find(&self, oid: Oid) -> Option<Type> {
        Type::from_oid(oid).or_else(|| self.types.get(&oid).cloned())
    }

    /// Learns those of these that are not known.
    pub(super) async fn learn(&mut self, link: &mut Link, oids: impl Iterator<Item = Oid>) -> Result<(), Failure> {
        let mut unknown: Vec<Oid> = oids.filter(|&oid| self.find(oid).is_none()).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        unknown.sort_unstable();
        unknown.dedup();
        let described = describe(link, &unknown).await?;
        for &oid in &unknown {
            if let Some(found) = self.made(oid, &described, 0) {
                self.types.insert(oid, found);
            }
        }
        Ok(())
    }

    fn made(&self, oid: Oid, described: &HashMap<Oid, Described>, depth: usize) -> Option<Type> {
        /// A domain over an array of domains and so on: nobody goes further.
        const DEPTH_MAX: usize = 64;
        if let Some(known) = self.find(oid) {
            return Some(known);
        }
        let Described { name, schema, kind, of } = described.get(&oid)?;
        let part = || match depth {
            DEPTH_MAX => None,
            _ => self.made(*of, described, depth + 1),
        };
        let kind = match kind {
            b'e' => Kind::Enum(Vec::new()),
            b'p' => Kind::Pseudo,
            b'c' => Kind::Composite(Vec::new()),
            b'd' => Kind::Domain(part()?),
            b'r' => Kind::Range(part()?),
            _ if *of != 0 => Kind::Array(part()?),
            _ => Kind::Simple,
        };
        Some(Type::new(name.clone(), oid, kind, schema.clone()))
    }
}

/// What the catalog says of these types, and of those that they are made of.
async fn describe(link: &mut Link, oids: &[Oid]) -> Result<HashMap<Oid, Described>, Failure> {
    let list: Vec<String> = oids.iter().map(Oid::to_string).collect();
    // A type has another length than -1 if its parts are no elements of an array, as a point's.
    let sql = format!(
        "WITH RECURSIVE found (oid, typname, nspname, typtype, part) AS (\
           SELECT t.oid, t.typname, n.nspname, t.typtype, \
             CASE t.typtype WHEN 'd' THEN t.typbasetype \
               WHEN 'r' THEN (SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE r.rngtypid = t.oid) \
               ELSE CASE WHEN t.typlen = -1 THEN t.typelem ELSE 0 END END \
           FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace), \
         wanted AS (\
           SELECT f.* FROM found f WHERE f.oid IN ({}) \
           UNION SELECT f.* FROM found f JOIN wanted w ON f.oid = w.part) \
         SELECT oid, typname, nspname, typtype, part FROM wanted",
        list.join(",")
    );
    ask(link, &sql)
        .await
        .map_err(|lost| Failure::lost(&lost))?
        .map_err(|error| failure(error, &sql))
}

async fn ask(link: &mut Link, sql: &str) -> Result<Result<HashMap<Oid, Described>, Refusal>, LinkError> {
    if let Err(error) = link.outbox().query(sql) {
        return Ok(Err(Refusal::Unsendable(Box::new(error))));
    }
    let (mut described, mut failed) = (HashMap::new(), None);
    loop {
        let message = link.answer().await?;
        match message.tag() {
            Tag::DATA_ROW => {
                let mut row = message.row()?;
                let mut text = || {
                    let value = row.next().flatten().unwrap_or_default();
                    String::from_utf8_lossy(value).into_owned()
                };
                let (oid, name, schema, kind, of) = (text(), text(), text(), text(), text());
                let described_as = Described {
                    name,
                    schema,
                    kind: kind.bytes().next().unwrap_or_default(),
                    of: of.parse().unwrap_or_default(),
                };
                if let Ok(oid) = oid.parse() {
                    described.insert(oid, described_as);
                }
            }
            Tag::ERROR_RESPONSE => failed = Some(Refusal::Server(Box::new(ServerError::read(&message)?))),
            Tag::READY_FOR_QUERY => return Ok(failed.map_or(Ok(described), Err)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_server::{connection, session};

    /// All that a type says of itself here, with what it is made of.
    fn told(described: &Type) -> String {
        let part = match described.kind() {
            Kind::Array(part) => format!("array of {}", told(part)),
            Kind::Domain(part) => format!("domain of {}", told(part)),
            Kind::Range(part) => format!("range of {}", told(part)),
            Kind::Enum(_) => "enum".to_owned(),
            Kind::Composite(_) => "composite".to_owned(),
            other => format!("{other:?}"),
        };
        format!("{} {}.{} {part}", described.oid(), described.schema(), described.name())
    }

    #[tokio::test]
    async fn types_are_what_another_client_says_they_are() {
        let plain = session().await;
        plain
            .batch_execute(
                "DROP SCHEMA IF EXISTS catalogued CASCADE; CREATE SCHEMA catalogued; SET search_path = catalogued;
                 CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN small AS int CHECK (VALUE < 10);
                 CREATE DOMAIN smalls AS small[]; CREATE DOMAIN moods AS mood[]; CREATE TYPE pair AS (a int, b mood);
                 CREATE TYPE span AS RANGE (subtype = float8); CREATE TABLE rows (a int, b smalls);
                 CREATE TYPE shell; CREATE DOMAIN deep AS moods",
            )
            .await
            .unwrap();
        let (mut connection, _server) = connection().await;
        let mut compared = 0;
        for name in [
            "mood",
            "mood[]",
            "small",
            "small[]",
            "smalls",
            "smalls[]",
            "moods",
            "pair",
            "pair[]",
            "span",
            "span[]",
            "span_multirange",
            "rows",
            "rows[]",
            "deep",
            "int",
            "text[]",
            "point",
            "point[]",
            "box[]",
            "name",
            "int2vector",
            "oidvector",
            "information_schema.sql_identifier",
            "information_schema.cardinal_number[]",
            "pg_catalog.pg_class",
        ] {
            let name = match name.contains('.')
                || !matches!(
                    name.trim_end_matches("[]"),
                    "mood" | "small" | "smalls" | "moods" | "pair" | "span" | "span_multirange" | "rows" | "deep"
                ) {
                true => name.to_owned(),
                false => format!("catalogued.{name}"),
            };
            let sql = format!("SELECT $1::{name}, NULL::{name}");
            let theirs = plain.prepare(&sql).await.unwrap();
            let ours = connection.prepare(&sql, &[]).await.unwrap_or_else(|_| panic!("{sql}"));
            assert_eq!(told(&ours.parameters[0]), told(&theirs.params()[0]), "{name}");
            assert_eq!(told(&ours.columns[1]), told(theirs.columns()[1].type_()), "{name}");
            compared += 1;
        }
        assert_eq!(compared, 26);
        plain.batch_execute("DROP SCHEMA catalogued CASCADE").await.unwrap();
    }
}
