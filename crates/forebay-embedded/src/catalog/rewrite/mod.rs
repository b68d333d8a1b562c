//! Translates a PostgreSQL catalog query into SQLite's SQL with the same meaning.
//!
//! One walk over the parsed query writes the new text and works out the type of every expression. Only what is listed here is
//! written; whatever else the parser can produce is refused by name, so a construct the translator has never heard of cannot slip
//! through. Types matter: `'t'` beside a boolean, `'16384'` beside an OID and `oid::regclass` in a result mean different things.
//!
//! How PostgreSQL's values are held: booleans as 0 and 1, `reg…` types as OIDs (whoever shows the result asks for
//! their names), arrays as PostgreSQL's text. A set-returning function becomes SQLite's `json_each` over a JSON array.
//!
//! Knows the catalog's relations, not their rows.

mod aggregate;
mod call;
mod column;
mod expression;
mod from;
mod operator;
mod piece;
mod query;
mod scope;
mod translator;

use postgres_types::Type;
use sqlparser::ast::Statement;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Tokenizer};

use super::error::CatalogError;
use translator::{DEPTH_MAX, Translator};

/// Bytes of one query.
const BYTES_MAX: usize = 256 << 10;
/// Tokens of one query: bounds the parsed tree, whose depth a chain of operators can make as large as its length.
const TOKENS_MAX: usize = 12_000;

/// A translated query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translation {
    /// SQLite's SQL; parameters keep their names, `$1`, `$2`.
    pub sql: String,
    /// The result's columns, named and typed as PostgreSQL would.
    pub columns: Vec<ResultColumn>,
    /// The types of `$1`, `$2`, … inferred from their use, `text` where nothing tells. Arrays are bound as text: `{a,b}`.
    pub parameters: Vec<Type>,
}

/// One column of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultColumn {
    /// Its name.
    pub name: String,
    /// Its type. The value is an SQLite integer for booleans (0, 1), OIDs (`reg…` types too: [`Catalog::name_of`] tells their names) and
    /// integers, text for all else but floats.
    ///
    /// [`Catalog::name_of`]: super::Catalog::name_of
    pub kind: Type,
    /// The type's modifier, -1 for none.
    pub modifier: i32,
}

impl Translation {
    /// The types of the result's columns.
    #[must_use]
    pub fn column_types(&self) -> Vec<Type> {
        self.columns.iter().map(|column| column.kind.clone()).collect()
    }
}

pub(super) fn translate(sql: &str) -> Result<Translation, CatalogError> {
    if sql.len() > BYTES_MAX {
        return Err(CatalogError::TooComplex {
            limit: "more than 256 KiB of text",
        });
    }
    let syntax = |message: String| CatalogError::Syntax { message };
    let dialect = PostgreSqlDialect {};
    let tokens = Tokenizer::new(&dialect, sql)
        .tokenize_with_location()
        .map_err(|error| syntax(error.to_string()))?;
    if tokens
        .iter()
        .filter(|token| !matches!(token.token, Token::Whitespace(_)))
        .count()
        > TOKENS_MAX
    {
        return Err(CatalogError::TooComplex {
            limit: "more than 12,000 words",
        });
    }
    let mut statements = Parser::new(&dialect)
        .with_recursion_limit(DEPTH_MAX)
        .with_tokens_with_locations(tokens)
        .parse_statements()
        .map_err(|error| match error {
            ParserError::RecursionLimitExceeded => CatalogError::TooComplex {
                limit: "nested too deeply",
            },
            ParserError::ParserError(message) | ParserError::TokenizerError(message) => syntax(message),
        })?;
    let statement = statements.pop();
    match (statement, statements.is_empty()) {
        (Some(Statement::Query(query)), true) => {
            let mut translator = Translator::default();
            let (sql, columns) = translator.query(&query)?;
            let columns = columns
                .into_iter()
                .map(|column| ResultColumn {
                    name: column.name,
                    kind: printable(column.kind),
                    modifier: column.modifier,
                })
                .collect();
            Ok(Translation {
                sql,
                columns,
                parameters: translator.parameters(),
            })
        }
        (Some(_), true) => Err(CatalogError::unsupported("a statement that is not a query")),
        (Some(_), false) => Err(CatalogError::unsupported("several statements at once")),
        (None, _) => Err(syntax("no statement".to_owned())),
    }
}

/// What nothing gave a type is text by the time a client sees it.
fn printable(kind: Type) -> Type {
    if kind == Type::UNKNOWN { Type::TEXT } else { kind }
}
