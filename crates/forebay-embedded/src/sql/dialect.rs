//! PostgreSQL's grammar as the parser knows it, with what it lacks or gets wrong.
//!
//! Promises: all is the parser's own PostgreSQL dialect, but for the precedence of signs, of OVERLAPS, of `~` and its kin and of NOT before
//! EXISTS, and for COLLATE behind any expression, ISNULL, NOTNULL and BETWEEN SYMMETRIC; comparisons, LIKE, BETWEEN and IS DISTINCT FROM do not associate; and the
//! words that name no column of a result without AS are PostgreSQL's.

use std::any::TypeId;

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ForebayDialect;

const POSTGRESQL: PostgreSqlDialect = PostgreSqlDialect {};

/// Takes what the parser's own dialect says.
macro_rules! as_postgresql {
    ($($method:ident),* $(,)?) => {
        $(fn $method(&self) -> bool {
            POSTGRESQL.$method()
        })*
    };
}

impl Dialect for ForebayDialect {
    fn dialect(&self) -> TypeId {
        POSTGRESQL.dialect()
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        POSTGRESQL.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        POSTGRESQL.is_delimited_identifier_start(character)
    }

    fn is_identifier_start(&self, character: char) -> bool {
        POSTGRESQL.is_identifier_start(character)
    }

    fn is_identifier_part(&self, character: char) -> bool {
        POSTGRESQL.is_identifier_part(character)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        POSTGRESQL.is_reserved_for_identifier(keyword)
    }

    fn is_table_alias(&self, keyword: &Keyword, parser: &mut Parser) -> bool {
        POSTGRESQL.is_table_alias(keyword, parser)
    }

    fn is_column_alias(&self, keyword: &Keyword, parser: &mut Parser) -> bool {
        !is_after_as_only(*keyword) && POSTGRESQL.is_column_alias(keyword, parser)
    }

    fn is_custom_operator_part(&self, character: char) -> bool {
        POSTGRESQL.is_custom_operator_part(character)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk => Some(Ok(self.prec_value(Precedence::PgOther))),
            Token::Word(word) if is_null_test(word.quote_style, &word.value).is_some() => {
                Some(Ok(self.prec_value(Precedence::Is)))
            }
            // It stands between two rows and nothing else, so that whatever operator is around them has the whole as its operand.
            Token::Word(word) if word.keyword == Keyword::OVERLAPS => Some(Ok(BETWEEN_ROWS)),
            _ => POSTGRESQL.get_next_precedence(parser),
        }
    }

    /// Signs bind tighter than `^`, COLLATE and AT TIME ZONE; all other operators in front of something looser than arithmetic.
    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        /// Between `[]` and COLLATE.
        const SIGN: u8 = 125;
        let other = self.prec_value(Precedence::PgOther);
        let (op, precedence) = match &parser.peek_token_ref().token {
            Token::Minus => (UnaryOperator::Minus, SIGN),
            Token::Plus => (UnaryOperator::Plus, SIGN),
            Token::Tilde => (UnaryOperator::BitwiseNot, other),
            Token::AtSign => (UnaryOperator::PGAbs, other),
            Token::PGSquareRoot => (UnaryOperator::PGSquareRoot, other),
            Token::PGCubeRoot => (UnaryOperator::PGCubeRoot, other),
            // The parser would take both words for one operator, and `IS NULL` behind for a test of its result.
            Token::Word(word) if word.keyword == Keyword::NOT && is_exists(parser.peek_nth_token_ref(1)) => {
                (UnaryOperator::Not, self.prec_value(Precedence::UnaryNot))
            }
            _ => return POSTGRESQL.parse_prefix(parser),
        };
        parser.next_token();
        Some(parser.parse_subexpr(precedence).map(|inner| Expr::UnaryOp {
            op,
            expr: Box::new(inner),
        }))
    }

    fn parse_infix(&self, parser: &mut Parser, left: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        if self.ends_with_its_like(left, precedence) {
            return Some(parser.expected_ref("another operator", parser.peek_token_ref()));
        }
        let Token::Word(word) = &parser.peek_token_ref().token else {
            return POSTGRESQL.parse_infix(parser, left, precedence);
        };
        if let Some(is_null) = is_null_test(word.quote_style, &word.value) {
            parser.next_token();
            let inner = Box::new(left.clone());
            return Some(Ok(if is_null {
                Expr::IsNull(inner)
            } else {
                Expr::IsNotNull(inner)
            }));
        }
        if word.keyword == Keyword::COLLATE {
            parser.next_token();
            return Some(parser.parse_object_name(false).map(|collation| Expr::Collate {
                expr: Box::new(left.clone()),
                collation,
            }));
        }
        let negated = word.keyword == Keyword::NOT;
        let at = usize::from(negated);
        let is_word = |parser: &Parser, place: usize, wanted: &str| {
            matches!(&parser.peek_nth_token_ref(place).token,
                Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
        };
        if is_word(parser, at, "BETWEEN") && is_word(parser, at + 1, "SYMMETRIC") {
            for _ in 0..at + 2 {
                parser.next_token();
            }
            return Some(symmetric(parser, left, negated, self.prec_value(Precedence::Between)));
        }
        POSTGRESQL.parse_infix(parser, left, precedence)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        POSTGRESQL.prec_value(precedence)
    }

    as_postgresql!(
        supports_unicode_string_literal,
        supports_filter_during_aggregation,
        supports_group_by_expr,
        supports_alter_user_as_alter_role,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_create_index_with_clause,
        supports_explain_with_utility_options,
        supports_listen_notify,
        supports_exclude_constraint,
        supports_factorial_operator,
        supports_bitwise_shift_operators,
        supports_comment_on,
        supports_load_extension,
        supports_named_fn_args_with_colon_operator,
        supports_named_fn_args_with_expr_name,
        supports_empty_projections,
        supports_nested_comments,
        supports_string_escape_constant,
        supports_numeric_literal_underscores,
        supports_array_typedef_with_brackets,
        supports_geometric_types,
        supports_order_by_using_operator,
        supports_set_names,
        supports_alter_column_type_using,
        supports_left_associative_joins_without_parens,
        supports_notnull_operator,
        supports_interval_options,
        supports_insert_table_alias,
        supports_create_table_like_parenthesized,
        supports_select_wildcard_with_alias,
        supports_comma_separated_trim,
        supports_xml_expressions,
        supports_aliased_function_args,
        supports_comment_optimizer_hint,
    );
}

/// Above `::`.
const BETWEEN_ROWS: u8 = 145;

impl ForebayDialect {
    /// Whether an expression ends with an operand of an operator that stands beside none of its own precedence: comparisons, LIKE and
    /// BETWEEN, IS. Parentheses around it make it another expression.
    fn ends_with_its_like(&self, left: &Expr, precedence: u8) -> bool {
        use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        let own = match left {
            Expr::BinaryOp {
                op: Eq | NotEq | Lt | LtEq | Gt | GtEq,
                ..
            } => Precedence::Eq,
            Expr::Like { any: false, .. }
            | Expr::ILike { any: false, .. }
            | Expr::SimilarTo { .. }
            | Expr::Between { .. } => Precedence::Like,
            Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => Precedence::Is,
            _ => return false,
        };
        precedence == self.prec_value(own)
    }
}

fn is_exists(token: &TokenWithSpan) -> bool {
    matches!(&token.token, Token::Word(word) if word.keyword == Keyword::EXISTS)
}

/// Whether a word names a column of a result behind AS only.
fn is_after_as_only(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::ARRAY
            | Keyword::CHAR
            | Keyword::CHARACTER
            | Keyword::CREATE
            | Keyword::DAY
            | Keyword::FILTER
            | Keyword::GRANT
            | Keyword::HOUR
            | Keyword::MINUTE
            | Keyword::MONTH
            | Keyword::ON
            | Keyword::OVER
            | Keyword::OVERLAPS
            | Keyword::PRECISION
            | Keyword::SECOND
            | Keyword::TO
            | Keyword::VARYING
            | Keyword::WITHIN
            | Keyword::WITHOUT
            | Keyword::YEAR
    )
}

/// Whether the word tests for NULL behind an expression: ISNULL does, NOTNULL for the opposite.
fn is_null_test(quote: Option<char>, word: &str) -> Option<bool> {
    if quote.is_some() {
        return None;
    }
    if word.eq_ignore_ascii_case("ISNULL") {
        Some(true)
    } else {
        word.eq_ignore_ascii_case("NOTNULL").then_some(false)
    }
}

/// `value BETWEEN SYMMETRIC a AND b`, as PostgreSQL reads it: between a and b, or between b and a.
fn symmetric(parser: &mut Parser, value: &Expr, negated: bool, precedence: u8) -> Result<Expr, ParserError> {
    let low = parser.parse_subexpr(precedence)?;
    parser.expect_keyword_is(Keyword::AND)?;
    let high = parser.parse_subexpr(precedence)?;
    let between = |low: &Expr, high: &Expr| Expr::Between {
        expr: Box::new(value.clone()),
        negated,
        low: Box::new(low.clone()),
        high: Box::new(high.clone()),
    };
    Ok(Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(between(&low, &high)),
        op: if negated {
            BinaryOperator::And
        } else {
            BinaryOperator::Or
        },
        right: Box::new(between(&high, &low)),
    })))
}
