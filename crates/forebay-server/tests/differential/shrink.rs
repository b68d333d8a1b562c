//! Makes a case that differs small: parts are left out or exchanged for plain ones as long as it still differs in the same way.
//!
//! Promises: what it gives back differs, as the case did, on the same servers. Greedy: of all cases that are one change away it
//! takes the shortest that still differs, until none does.

use crate::{
    connection::Answer,
    servers::Pair,
    statements::Case,
    tree::{Node, Part, Shape},
    values,
    verdict::{self, Verdict},
};

const ROUNDS_MAX: usize = 25;
/// Of one round; the shortest are tried.
const CANDIDATES_MAX: usize = 160;
/// Many more rows than this are not in any table.
const ROWS: usize = 12;

/// A case with both servers' answers.
#[derive(Debug, Clone)]
pub(crate) struct Judged {
    pub(crate) case: Case,
    pub(crate) postgres: Vec<Answer>,
    pub(crate) forebay: Vec<Answer>,
    pub(crate) verdict: Verdict,
}

/// Runs and judges these cases.
pub(crate) fn judge(pair: &mut Pair, cases: Vec<Case>) -> Vec<Judged> {
    let sends: Vec<_> = cases.iter().map(Case::sends).collect();
    let (postgres, forebay) = pair.run(&sends);
    let answers = postgres.into_iter().zip(forebay);
    cases
        .into_iter()
        .zip(answers)
        .map(|(case, (postgres, forebay))| Judged {
            verdict: verdict::of_case(&postgres, &forebay, &case.ordered()),
            case,
            postgres,
            forebay,
        })
        .collect()
}

pub(crate) fn shrink(pair: &mut Pair, judged: Judged) -> Judged {
    let mut best = judged;
    for _ in 0..ROUNDS_MAX {
        match better(pair, &best, smaller(&best.case)) {
            Some(smaller) => best = smaller,
            None => break,
        }
    }
    let narrowed = narrowed(&best.case);
    if let Some(narrowed) = better(pair, &best, narrowed) {
        best = narrowed;
    }
    best
}

fn better(pair: &mut Pair, best: &Judged, candidates: Vec<Case>) -> Option<Judged> {
    if candidates.is_empty() {
        return None;
    }
    judge(pair, candidates)
        .into_iter()
        .find(|candidate| candidate.verdict == best.verdict)
}

fn size(case: &Case) -> usize {
    let rendered = |step: &crate::statements::Step| step.statement.rendered(false).sql.len();
    case.steps.iter().map(rendered).sum::<usize>()
        + case
            .steps
            .iter()
            .map(|step| 3 * step.statement.rendered(true).parameters.len())
            .sum::<usize>()
}

/// All that are one change away and shorter, the shortest first.
fn smaller(case: &Case) -> Vec<Case> {
    let now = size(case);
    let mut candidates = Vec::new();
    for (index, step) in case.steps.iter().enumerate() {
        let is_edge = index == 0 || index + 1 == case.steps.len();
        if case.steps.len() > 1 && !is_edge {
            let mut without = case.clone();
            without.steps.remove(index);
            candidates.push(without);
        }
        for statement in changes(&step.statement) {
            let mut changed = case.clone();
            changed.steps[index].statement = statement;
            candidates.push(changed);
        }
    }
    let mut sized: Vec<(usize, Case)> = candidates
        .into_iter()
        .map(|case| (size(&case), case))
        .filter(|(size, _)| *size < now)
        .collect();
    sized.sort_by_key(|(size, _)| *size);
    sized.truncate(CANDIDATES_MAX);
    sized.into_iter().map(|(_, case)| case).collect()
}

fn changes(statement: &Node) -> Vec<Node> {
    let mut changed = Vec::new();
    for path in statement.paths() {
        if path.is_empty() {
            continue;
        }
        let node = statement.at(&path);
        match &node.shape {
            Shape::Optional => changed.push(statement.with(&path, Vec::new())),
            Shape::Clause => {}
            Shape::Parameter(_) => {
                // Its literal, so that the statement can be said in psql.
                let text = node.rendered(false).sql;
                changed.push(statement.with(&path, vec![Node::leaf(node.oid, text).into()]));
                push_simple(statement, &path, node, &mut changed);
            }
            Shape::Leaf => push_simple(statement, &path, node, &mut changed),
            Shape::Expression { .. } => {
                let is_outermost = path.len() == 1;
                node.visit(&mut |inner| {
                    let is_child = node
                        .parts
                        .iter()
                        .any(|part| matches!(part, Part::Node(child) if std::ptr::eq(child, inner)));
                    let fits = is_outermost || is_child || inner.oid == node.oid;
                    if inner.is_expression() && !std::ptr::eq(inner, node) && fits {
                        changed.push(statement.with(&path, inner.clone().in_parentheses()));
                    }
                });
                push_simple(statement, &path, node, &mut changed);
            }
        }
    }
    changed
}

fn push_simple(statement: &Node, path: &[usize], node: &Node, changed: &mut Vec<Node>) {
    for text in values::simple(node.oid) {
        changed.push(statement.with(path, vec![Node::leaf(node.oid, text).into()]));
    }
    if node.shape != Shape::Leaf {
        changed.push(statement.with(path, vec![Node::leaf(node.oid, "NULL").into()]));
    }
}

/// For a statement over a whole table: over one row of it.
fn narrowed(case: &Case) -> Vec<Case> {
    const WHOLE: &str = " FROM d_every ORDER BY id";
    let mut candidates = Vec::new();
    if let [step] = case.steps.as_slice() {
        for (index, part) in step.statement.parts.iter().enumerate() {
            let Part::Text(text) = part else { continue };
            if !text.contains(WHOLE) {
                continue;
            }
            for row in 1..=ROWS {
                let narrow = format!(" FROM d_every WHERE id = {row} ORDER BY id");
                let mut changed = case.clone();
                changed.steps[0].statement.parts[index] = Part::Text(text.replace(WHOLE, &narrow));
                candidates.push(changed);
            }
        }
    }
    candidates
}

/// What need not be evaluated, whatever PostgreSQL does: its documentation leaves the order to it ("Expression Evaluation Rules").
const OPEN: &[&str] = &["AND", "OR", "WHERE", "HAVING", "FILTER", "LIMIT"];
/// What PostgreSQL may evaluate before its time, when it is constant.
const FOLDED: &[&str] = &["CASE", "COALESCE", "IN(", "NOT IN(", "BETWEEN", "NOT BETWEEN"];

/// A shrunk difference of errors only, which the order of evaluation explains: an error of a part that differs by itself would
/// have been shrunk to that part.
pub(crate) fn is_order_of_evaluation(judged: &Judged) -> bool {
    let Verdict::Different(how) = &judged.verdict else {
        return false;
    };
    let postgres_fails = ["22", "0A000"]
        .iter()
        .any(|state| how.starts_with(&format!("a value where PostgreSQL has the error {state}")));
    let forebay_fails = how.starts_with("an error 22");
    let symbols = judged.case.symbols();
    let has = |words: &[&str]| {
        symbols
            .iter()
            .any(|symbol| words.iter().any(|word| symbol.starts_with(word)))
    };
    // Where PostgreSQL's planner has found NULL it need not evaluate the rest, which fails.
    let only_null = judged
        .postgres
        .iter()
        .all(|answer| answer.error.is_none() && answer.rows.iter().all(|row| row.iter().any(Option::is_none)));
    let null_here = judged
        .forebay
        .iter()
        .all(|answer| answer.error.is_none() && answer.rows.iter().all(|row| row.iter().any(Option::is_none)));
    // In the simple protocol PostgreSQL describes what its planner has made of a constant CASE or COALESCE, elsewhere what was written.
    let described_as_planned = how == "type modifier of a column"
        && judged.case.steps.iter().any(|step| step.is_simple)
        && has(&["CASE", "COALESCE"]);
    described_as_planned
        || (postgres_fails && (has(OPEN) || has(FOLDED) || null_here))
        || (forebay_fails && (has(OPEN) || only_null))
}
