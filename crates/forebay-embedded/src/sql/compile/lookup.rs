//! Which relation a name refers to, and whether a name is taken.
//!
//! Promises: a name without a schema is looked up along the search path, and created in the first schema of it; in the text of a definition (of a
//! view, of a default) it means the schema `public`.

use rusqlite::OptionalExtension as _;
use sqlparser::ast::{ObjectName, ObjectNamePart};

use super::compiler::Compiler;
use super::fault::{Fault, Result, unreadable};
use super::namespace::{
    PUBLIC, SEPARATOR, is_reserved, missing, parted, refuse_separator, schemas, session_path, shown, stored,
    unfold_names, written,
};
use super::schema::Table;
use super::types;
use crate::sql::identifier::made_of;

impl Compiler<'_> {
    /// The names in the file that a name may mean, the first that is there first; nothing if there is no such schema.
    pub(super) fn candidates(&mut self, name: &ObjectName) -> Result<Vec<String>> {
        let (schema, name) = written(name)?;
        if name.contains(SEPARATOR) || is_reserved(&name) {
            return Ok(Vec::new());
        }
        let schemas = match schema {
            Some(schema) if !self.has_schema(&schema)? => Vec::new(),
            Some(schema) => vec![schema],
            None => self.path()?,
        };
        Ok(schemas.iter().map(|schema| stored(schema, &name)).collect())
    }

    /// The name in the file of what a name means; if there is nothing, of what it would mean.
    pub(super) fn name_of(&mut self, name: &ObjectName) -> Result<String> {
        let candidates = self.candidates(name)?;
        for candidate in &candidates {
            if self.kind_of(candidate)?.is_some() {
                return Ok(candidate.clone());
            }
        }
        match (candidates.into_iter().next(), written(name)?) {
            (Some(first), _) => Ok(first),
            (None, (Some(schema), _)) if !self.has_schema(&schema)? => Err(missing(&schema)),
            (None, (_, name)) => Err(Fault::new("42939", format!("the name \"{name}\" is reserved"))),
        }
    }

    /// The name in the file of something new.
    pub(super) fn name_to_create(&mut self, name: &ObjectName) -> Result<String> {
        let (schema, name) = written(name)?;
        if is_reserved(&name) {
            return Err(Fault::new("42939", format!("the name \"{name}\" is reserved")));
        }
        refuse_separator(&name)?;
        let schema = match schema {
            Some(schema) if self.has_schema(&schema)? => schema,
            Some(schema) => return Err(missing(&schema)),
            None => self
                .path()?
                .into_iter()
                .next()
                .ok_or_else(|| Fault::new("3F000", "no schema has been selected to create in"))?,
        };
        Ok(stored(&schema, &name))
    }

    /// The schemas in which a name without one is looked up.
    pub(super) fn path(&mut self) -> Result<Vec<String>> {
        let setting = (self.session.settings)("search_path").filter(|_| !self.public_only);
        let Some(setting) = setting else {
            return Ok(vec![PUBLIC.to_owned()]);
        };
        let others = schemas(self.schema.connection()).map_err(unreadable)?;
        // Who has a schema of their own means something else by a name than others do.
        self.session_bound |= setting.contains("$user") && others.iter().any(|known| known == self.session.user);
        session_path(self.schema.connection(), self.session).map_err(unreadable)
    }

    /// Refuses what would be looked up elsewhere when its text is read again.
    pub(super) fn refuse_other_path(&mut self, what: &str) -> Result<()> {
        if self.path()? == [PUBLIC] {
            return Ok(());
        }
        Err(Fault::unsupported(format!(
            "{what} under another search_path than public"
        )))
    }

    pub(super) fn has_schema(&self, name: &str) -> Result<bool> {
        Ok(name == PUBLIC
            || schemas(self.schema.connection())
                .map_err(unreadable)?
                .iter()
                .any(|known| known == name))
    }

    /// For statements to which a schema that is not there is another error than a relation that is not.
    pub(super) fn refuse_missing_schema(&self, name: &ObjectName) -> Result<()> {
        match written(name)? {
            (Some(schema), _) if !self.has_schema(&schema)? => Err(missing(&schema)),
            _ => Ok(()),
        }
    }

    /// A fault in the words of who does not know the file: `"x::t"` is the relation `"t"`, and `x::t` is `x.t`.
    pub(super) fn as_told(&self, mut fault: Fault) -> Fault {
        if let Ok(schemas) = schemas(self.schema.connection()) {
            for text in [Some(&mut fault.message), fault.detail.as_mut(), fault.hint.as_mut()]
                .into_iter()
                .flatten()
            {
                unfold_names(text, &schemas);
            }
        }
        fault
    }

    /// Whether the name is taken: an error, or nothing to do where the client said IF NOT EXISTS.
    pub(super) fn exists_already(&mut self, name: &str, if_not_exists: bool) -> Result<Option<Vec<String>>> {
        if !self.is_taken(name)? {
            return Ok(None);
        }
        if if_not_exists {
            self.notices
                .push(format!("relation \"{}\" already exists, skipping", shown(name)));
            return Ok(Some(Vec::new()));
        }
        Err(Fault::new(
            "42P07",
            format!("relation \"{}\" already exists", shown(name)),
        ))
    }

    /// PostgreSQL's name for an index or a sequence that belongs to a table and is given none; both by their names in the file.
    pub(super) fn free_name(&self, table: &str, columns: &str, kind: &str) -> Result<String> {
        let (schema, table) = parted(table);
        let mut name = stored(schema, &made_of(table, columns, kind));
        let mut number = 0;
        while self.is_taken(&name)? {
            number += 1;
            name = stored(schema, &made_of(table, columns, &format!("{kind}{number}")));
        }
        Ok(name)
    }

    /// Whether there is something of that name. What differs from it in upper and lower case only stands in its way: SQLite takes
    /// both for the same.
    pub(super) fn is_taken(&self, name: &str) -> Result<bool> {
        const ALIKE: &str =
            "SELECT name FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE ORDER BY name = ?1 DESC LIMIT 1";
        let connection = self.schema.connection();
        let alike: Option<String> = connection
            .prepare_cached(ALIKE)
            .and_then(|mut statement| statement.query_row([name], |row| row.get(0)).optional())
            .map_err(unreadable)?;
        if let Some(alike) = alike {
            return if alike == name {
                Ok(true)
            } else {
                Err(alike_but_for_case(&alike, name))
            };
        }
        let found = |sql: &str| -> rusqlite::Result<bool> {
            connection.prepare_cached(sql)?.query_row([name], |row| row.get(0))
        };
        let has_sequences =
            found("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'forebay_sequence' AND ?1 IS NOT NULL)")
                .map_err(unreadable)?;
        Ok(has_sequences
            && found("SELECT EXISTS (SELECT 1 FROM forebay_sequence WHERE name = ?1)").map_err(unreadable)?)
    }

    pub(super) fn kind_of(&mut self, name: &str) -> Result<Option<String>> {
        let connection = self.schema.connection();
        let found: Option<String> = connection
            .query_row("SELECT type FROM sqlite_schema WHERE name = ?1", [name], |row| {
                row.get(0)
            })
            .ok();
        if found.is_some() {
            return Ok(found);
        }
        let sequence = connection
            .query_row("SELECT 1 FROM forebay_sequence WHERE name = ?1", [name], |row| {
                row.get::<_, i64>(0)
            })
            .is_ok();
        Ok(sequence.then(|| "sequence".to_owned()))
    }

    /// The table of that name.
    pub(super) fn table(&mut self, name: &ObjectName) -> Result<std::rc::Rc<Table>> {
        let spelled = types::object_name(name)?;
        let missing = || {
            let fault = Fault::new("42P01", format!("relation \"{spelled}\" does not exist"));
            match name.0.first() {
                Some(ObjectNamePart::Identifier(first)) => fault.at(first),
                _ => fault,
            }
        };
        let (schema, plain) = written(name)?;
        if crate::catalog::has_relation(schema.as_deref(), &plain) {
            return Err(Fault::unsupported(format!(
                "the catalog's \"{spelled}\" in this statement"
            )));
        }
        let candidates = self.candidates(name)?;
        for candidate in &candidates {
            let found = self
                .schema
                .table(candidate)
                .map_err(|error| Fault::new("XX000", format!("the schema cannot be read: {error}")))?;
            if let Some(found) = found {
                return Ok(found);
            }
            if self.is_sequence(candidate) {
                return Err(Fault::unsupported(format!("the sequence \"{plain}\" as a table")));
            }
        }
        Err(missing())
    }

    fn is_sequence(&self, name: &str) -> bool {
        // The table is there only if there are sequences.
        self.schema
            .connection()
            .prepare_cached("SELECT 1 FROM forebay_sequence WHERE name = ?")
            .and_then(|mut statement| statement.exists([name]))
            .unwrap_or(false)
    }
}

/// SQLite would take both names for the same.
pub(super) fn alike_but_for_case(known: &str, name: &str) -> Fault {
    Fault::unsupported(format!(
        "the name \"{}\" beside \"{}\", from which it differs in upper and lower case only,",
        shown(name),
        shown(known)
    ))
}
