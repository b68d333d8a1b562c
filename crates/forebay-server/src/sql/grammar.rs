//! Parses one statement into a syntax tree, with a grammar wide enough for SQLite's SQL and PostgreSQL's spellings.
//!
//! Contract: never overflows the stack, however deep the text nests or chains: what is deeper than SQLite itself would take is
//! [`SqlError::TooComplex`]. What the grammar does not know is `None`, not an error: SQLite has the last word on its own SQL.
//! Operators group as SQLite groups them. Knows nothing of schemas.

use sqlparser::ast::{BinaryOperator, Expr, Statement};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence, SQLiteDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError, ParserOptions};
use sqlparser::tokenizer::Token;

use super::error::SqlError;
use super::lexer::{self, Kind};

/// Parentheses, subqueries and prefix operators inside one another.
const NESTING_MAX: usize = 250;
/// Operators and keywords in one run without a comma, summed over the parentheses they stand in: no tree is deeper. SQLite refuses
/// expressions deeper than 1,000, and each level of `a = 1 OR …` takes two.
const CHAIN_MAX: usize = 2_500;

/// SQLite's grammar as the parser knows it, widened.
#[derive(Debug, Default)]
pub(crate) struct ForebayDialect {
    sqlite: SQLiteDialect,
}

impl Dialect for ForebayDialect {
    fn dialect(&self) -> std::any::TypeId {
        self.sqlite.dialect()
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        self.sqlite.is_delimited_identifier_start(character)
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        Some('"')
    }

    fn is_identifier_start(&self, character: char) -> bool {
        character.is_ascii_alphabetic() || character == '_' || !character.is_ascii()
    }

    fn is_identifier_part(&self, character: char) -> bool {
        self.is_identifier_start(character) || character.is_ascii_digit() || character == '$'
    }

    fn parse_statement(&self, parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        self.sqlite.parse_statement(parser)
    }

    /// Adds SQLite's IS with any right side; what the parser knows of IS is left to it.
    fn parse_infix(
        &self,
        parser: &mut Parser,
        left: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if let Token::Word(word) = &parser.peek_token_ref().token
            && word.keyword == Keyword::IS
        {
            let not = matches!(&parser.peek_nth_token_ref(1).token, Token::Word(word) if word.keyword == Keyword::NOT);
            if let Token::Word(word) = &parser.peek_nth_token_ref(if not { 2 } else { 1 }).token
                && matches!(
                    word.keyword,
                    Keyword::NULL
                        | Keyword::TRUE
                        | Keyword::FALSE
                        | Keyword::DISTINCT
                        | Keyword::NOT
                        | Keyword::UNKNOWN
                        | Keyword::JSON
                )
            {
                return None;
            }
            parser.next_token();
            if not {
                parser.next_token();
            }
            let operator = if not { "IS NOT" } else { "IS" };
            return Some(
                parser
                    .parse_subexpr(precedence)
                    .map(|right| Expr::BinaryOp {
                        left: Box::new(left.clone()),
                        op: BinaryOperator::Custom(operator.to_owned()),
                        right: Box::new(right),
                    }),
            );
        }
        self.sqlite.parse_infix(parser, left, precedence)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::StringConcat | Token::Arrow | Token::LongArrow => {
                Some(Ok(self.prec_value(Precedence::PgOther)))
            }
            Token::ShiftLeft | Token::ShiftRight | Token::Ampersand | Token::Pipe => {
                Some(Ok(self.prec_value(Precedence::Pipe)))
            }
            _ => None,
        }
    }

    /// SQLite's order, but for one thing: LIKE binds tighter than `=`, as PostgreSQL has it for the ILIKE that only it knows.
    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Period => 200,
            Precedence::DoubleColon => 140,
            Precedence::AtTz => 130,
            Precedence::PgOther | Precedence::Colon => 120,
            Precedence::MulDivModOp => 90,
            Precedence::PlusMinus => 80,
            Precedence::Xor | Precedence::Ampersand | Precedence::Caret | Precedence::Pipe => 70,
            Precedence::Between | Precedence::Like => 60,
            Precedence::Eq | Precedence::Is => 50,
            Precedence::UnaryNot => 30,
            Precedence::And => 20,
            Precedence::Or => 10,
        }
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }
    fn supports_start_transaction_modifier(&self) -> bool {
        true
    }
    fn supports_in_empty_list(&self) -> bool {
        true
    }
    fn supports_limit_comma(&self) -> bool {
        true
    }
    fn supports_asc_desc_in_column_definition(&self) -> bool {
        true
    }
    fn supports_dollar_placeholder(&self) -> bool {
        true
    }
    fn supports_notnull_operator(&self) -> bool {
        true
    }
    fn supports_comma_separated_trim(&self) -> bool {
        true
    }
    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }
    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }
    fn supports_insert_table_alias(&self) -> bool {
        true
    }
    fn supports_window_clause_named_window_reference(&self) -> bool {
        true
    }
    fn supports_select_wildcard_with_alias(&self) -> bool {
        false
    }
}

/// The statement's tree, or `None` if the grammar does not know it.
pub(crate) fn parse(text: &str) -> Result<Option<Statement>, SqlError> {
    parse_with(&ForebayDialect::default(), text)
}

/// The tree of a statement as PostgreSQL would read it: for queries of its catalog, which were not written for SQLite.
pub(crate) fn parse_catalog_query(text: &str) -> Result<Option<Statement>, SqlError> {
    parse_with(&PostgreSqlDialect {}, text)
}

fn parse_with(dialect: &dyn Dialect, text: &str) -> Result<Option<Statement>, SqlError> {
    let parser = Parser::new(dialect)
        .with_options(literal_options())
        .with_recursion_limit(NESTING_MAX);
    let statements = parser
        .try_with_sql(text)
        .and_then(|mut parser| parser.parse_statements());
    match statements {
        Ok(mut statements) if statements.len() == 1 => Ok(statements.pop()),
        Err(ParserError::RecursionLimitExceeded) => Err(SqlError::TooComplex {
            what: format!("it nests deeper than {NESTING_MAX} levels"),
        }),
        Ok(_) | Err(_) => Ok(None),
    }
}

/// Fails for a statement whose tree could be too deep to walk, judged by its tokens alone.
pub(crate) fn check_depth(source: &str, tokens: &[lexer::Token]) -> Result<(), SqlError> {
    // One entry per open parenthesis: (its run, what of the run commas do not reset).
    let mut levels = vec![(0_usize, 0_usize)];
    let mut total = 0_usize;
    for token in tokens {
        let level = levels
            .last_mut()
            .expect("the outermost level is never taken away");
        match token.kind {
            Kind::Open => {
                if levels.len() > NESTING_MAX {
                    return Err(SqlError::TooComplex {
                        what: format!("it nests deeper than {NESTING_MAX} levels"),
                    });
                }
                levels.push((1, 0));
                total += 1;
            }
            Kind::Close => {
                total -= level.0 + level.1;
                levels.pop();
                if levels.is_empty() {
                    levels.push((0, 0));
                }
            }
            Kind::Comma | Kind::Semicolon => {
                total -= level.0;
                level.0 = 0;
            }
            Kind::Word => {
                let text = token.text(source);
                if ["UNION", "INTERSECT", "EXCEPT", "EXPLAIN"]
                    .iter()
                    .any(|word| text.eq_ignore_ascii_case(word))
                {
                    level.1 += 1;
                    total += 1;
                } else if [
                    "OR", "AND", "NOT", "IS", "LIKE", "ILIKE", "GLOB", "MATCH", "REGEXP",
                    "BETWEEN", "IN", "CASE", "COLLATE", "NOTNULL", "ISNULL", "ARRAY", "AT",
                    "OVERLAPS", "SIMILAR", "RLIKE", "INTERVAL", "EXISTS", "CAST", "PRIOR", "DIV",
                    "XOR", "OPERATOR", "DISTINCT", "BINARY",
                ]
                .iter()
                .any(|word| text.eq_ignore_ascii_case(word))
                {
                    level.0 += 1;
                    total += 1;
                }
            }
            Kind::Operator => {
                level.0 += 1;
                total += 1;
            }
            // An array's brackets read as quoted names here.
            Kind::QuotedName if token.text(source).starts_with('[') => {
                level.0 += 1;
                total += 1;
            }
            _ => {}
        }
        if total > CHAIN_MAX {
            return Err(SqlError::TooComplex {
                what: format!("a chain of more than {CHAIN_MAX} operators"),
            });
        }
    }
    Ok(())
}

/// The tree of an expression that this module wrote itself.
pub(crate) fn own_expression(text: &str) -> Expr {
    Parser::new(&ForebayDialect::default())
        .with_options(literal_options())
        .try_with_sql(text)
        .and_then(|mut parser| parser.parse_expr())
        .expect("the expressions written here are of the grammar, as the tests see")
}

/// Literals stay as they were written, with doubled quotes, so that they are written out as they came.
fn literal_options() -> ParserOptions {
    ParserOptions::new().with_unescape(false)
}
