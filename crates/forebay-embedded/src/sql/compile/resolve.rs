//! Which operator or function a call means, by the types of its arguments: the rules of chapter 10 of PostgreSQL's manual ("Type Conversion"),
//! over all operators and functions that PostgreSQL has.
//!
//! Promises: PostgreSQL's choice, or its error: no match (42883), or several (42725). Knows no values.

use super::fault::{Fault, Result};
use crate::sql::facts::{self, Context, FunctionFact, Oid, OperatorFact, oid};

/// Whether PostgreSQL would take `from` for `to` without being asked to.
pub(crate) fn implicitly(from: Oid, to: Oid) -> bool {
    converts(from, to, Context::Implicit)
}

/// Whether there is a way from one type to another that may be taken in this context.
pub(crate) fn converts(from: Oid, to: Oid, context: Context) -> bool {
    if from == to || from == oid::UNKNOWN || to == oid::ANY || is_polymorphic(to) {
        return true;
    }
    if let Some(cast) = facts::cast(from, to) {
        return cast.context <= context;
    }
    // The vectors of the catalog are arrays that nothing else becomes.
    if let (Some(from), Some(element)) = (facts::element_of(from), facts::element_of(to)) {
        return !matches!(to, oid::INT2VECTOR | oid::OIDVECTOR) && converts(from, element, context);
    }
    // Any type becomes text on assignment, and text any type when asked for: through the text form.
    (context >= Context::Assignment && facts::category(to) == b'S' && from != oid::RECORD)
        || (context == Context::Explicit && facts::category(from) == b'S')
}

pub(crate) fn is_polymorphic(oid: Oid) -> bool {
    matches!(
        oid,
        oid::ANYELEMENT
            | oid::ANYARRAY
            | oid::ANYNONARRAY
            | oid::ANYENUM
            | oid::ANYRANGE
            | oid::ANYMULTIRANGE
            | oid::ANYCOMPATIBLE
            | oid::ANYCOMPATIBLEARRAY
            | oid::ANYCOMPATIBLENONARRAY
            | oid::ANYCOMPATIBLERANGE
            | oid::ANYCOMPATIBLEMULTIRANGE
    )
}

/// The operator that stands between two types; `left` is `None` for one in front.
pub(crate) fn operator(name: &str, left: Option<Oid>, right: Oid) -> Result<&'static OperatorFact> {
    let candidates = facts::operators(name);
    let exact = |left: Oid, right: Oid| {
        candidates
            .iter()
            .find(|candidate| candidate.left == left && candidate.right == right)
    };
    let found = match left {
        None => exact(0, right),
        Some(left) => {
            // What is not known yet is first taken to be what the other one is.
            if left == oid::UNKNOWN && right != oid::UNKNOWN {
                exact(right, right)
            } else if right == oid::UNKNOWN && left != oid::UNKNOWN {
                exact(left, left)
            } else {
                exact(left, right)
            }
        }
    };
    if let Some(found) = found {
        return Ok(found);
    }
    let given: Vec<Oid> = left.into_iter().chain([right]).collect();
    let possible: Vec<(&OperatorFact, Vec<Oid>)> = candidates
        .iter()
        .filter(|candidate| (candidate.left == 0) == left.is_none())
        .map(|candidate| {
            let wanted = if left.is_none() {
                vec![candidate.right]
            } else {
                vec![candidate.left, candidate.right]
            };
            (candidate, wanted)
        })
        .filter(|(_, wanted)| matches_all(&given, wanted))
        .collect();
    let spelled = || match left {
        None => format!("{name} {}", facts::display_name(right)),
        Some(left) => format!("{} {name} {}", facts::display_name(left), facts::display_name(right)),
    };
    match choose(&given, possible) {
        Choice::One(operator) => Ok(operator),
        Choice::None => Err(
            Fault::new("42883", format!("operator does not exist: {}", spelled())).with_hint(
                "No operator matches the given name and argument types. You might need to add explicit type casts.",
            ),
        ),
        Choice::Several => Err(Fault::new("42725", format!("operator is not unique: {}", spelled()))
            .with_hint("Could not choose a best candidate operator. You might need to add explicit type casts.")),
    }
}

/// A function for these arguments, with the type each of them is to have.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) function: &'static FunctionFact,
    /// The types of the arguments, as many as were given; polymorphic ones as they were declared.
    pub(crate) wanted: Vec<Oid>,
    /// From this argument on they stand for one variadic argument.
    pub(crate) variadic_from: Option<usize>,
}

/// The function of that name for these arguments, or `None` if no function has the name at all.
pub(crate) fn function(name: &str, given: &[Oid], spread: bool) -> Result<Option<Chosen>> {
    let named = facts::functions(name);
    if named.is_empty() {
        return Ok(None);
    }
    let mut shapes: Vec<Chosen> = Vec::new();
    for function in named {
        let count = function.arguments.len();
        let plain = given.len() <= count && given.len() + function.defaults >= count;
        if plain && (function.variadic == 0 || spread) {
            shapes.push(Chosen {
                function,
                wanted: function.arguments[..given.len()].to_vec(),
                variadic_from: None,
            });
        } else if function.variadic != 0 && !spread && given.len() + 1 >= count && given.len() >= count {
            let mut wanted = function.arguments[..count - 1].to_vec();
            wanted.resize(given.len(), function.variadic);
            shapes.push(Chosen {
                function,
                wanted,
                variadic_from: Some(count - 1),
            });
        }
    }
    if let Some(exact) = shapes.iter().position(|shape| shape.wanted == given) {
        return Ok(Some(shapes.swap_remove(exact)));
    }
    let possible: Vec<(usize, Vec<Oid>)> = shapes
        .iter()
        .enumerate()
        .filter(|(_, shape)| matches_all(given, &shape.wanted))
        .map(|(index, shape)| (index, shape.wanted.clone()))
        .collect();
    let spelled = || {
        let types: Vec<String> = given.iter().map(|oid| facts::display_name(*oid)).collect();
        format!("{name}({})", types.join(", "))
    };
    match choose(given, possible) {
        Choice::One(index) => Ok(Some(shapes.swap_remove(index))),
        Choice::None => Err(
            Fault::new("42883", format!("function {} does not exist", spelled())).with_hint(
                "No function matches the given name and argument types. You might need to add explicit type casts.",
            ),
        ),
        Choice::Several => Err(Fault::new("42725", format!("function {} is not unique", spelled()))
            .with_hint("Could not choose a best candidate function. You might need to add explicit type casts.")),
    }
}

fn matches_all(given: &[Oid], wanted: &[Oid]) -> bool {
    given
        .iter()
        .zip(wanted)
        .all(|(given, wanted)| implicitly(*given, *wanted))
        && polymorphism(given, wanted).is_some()
}

/// What the polymorphic types of a declaration stand for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Polymorphism {
    /// anyelement, and the elements of anyarray.
    element: Option<Oid>,
    /// anycompatible, and the elements of anycompatiblearray.
    compatible: Option<Oid>,
}

impl Polymorphism {
    /// The actual type for a declared one.
    pub(crate) fn actual(self, declared: Oid) -> Option<Oid> {
        match declared {
            oid::ANYELEMENT | oid::ANYNONARRAY => self.element,
            oid::ANYARRAY => self.element.and_then(facts::array_of),
            oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => self.compatible,
            oid::ANYCOMPATIBLEARRAY => self.compatible.and_then(facts::array_of),
            other if is_polymorphic(other) => None,
            other => Some(other),
        }
    }
}

/// What the polymorphic types stand for, given these arguments; `None` if that is contradictory. Unknown arguments say nothing, and
/// stand for text if none says anything.
pub(crate) fn polymorphism(given: &[Oid], wanted: &[Oid]) -> Option<Polymorphism> {
    let mut found = Polymorphism::default();
    let mut compatible: Vec<Oid> = Vec::new();
    let (mut wants_element, mut wants_compatible) = (false, false);
    for (given, wanted) in given.iter().zip(wanted) {
        match *wanted {
            oid::ANYELEMENT | oid::ANYNONARRAY => {
                wants_element = true;
                if *wanted == oid::ANYNONARRAY && facts::element_of(*given).is_some() {
                    return None;
                }
                if *given != oid::UNKNOWN && *found.element.get_or_insert(*given) != *given {
                    return None;
                }
            }
            oid::ANYARRAY => {
                wants_element = true;
                if *given != oid::UNKNOWN {
                    let element = facts::element_of(*given)?;
                    if *found.element.get_or_insert(element) != element {
                        return None;
                    }
                }
            }
            oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => {
                wants_compatible = true;
                if *given != oid::UNKNOWN {
                    compatible.push(*given);
                }
            }
            oid::ANYCOMPATIBLEARRAY => {
                wants_compatible = true;
                if *given != oid::UNKNOWN {
                    compatible.push(facts::element_of(*given)?);
                }
            }
            other if is_polymorphic(other) => return None,
            _ => {}
        }
    }
    if wants_element {
        found.element.get_or_insert(oid::TEXT);
    }
    if wants_compatible {
        let common = if compatible.is_empty() {
            oid::TEXT
        } else {
            common_type(&compatible, "function").ok()?
        };
        if !compatible.iter().all(|oid| implicitly(*oid, common)) {
            return None;
        }
        found.compatible = Some(common);
    }
    Some(found)
}

enum Choice<T> {
    One(T),
    None,
    Several,
}

/// The steps of `func_select_candidate`: most exact matches, most preferred types, then what unknown literals may be.
fn choose<T>(given: &[Oid], mut candidates: Vec<(T, Vec<Oid>)>) -> Choice<T> {
    fn one_or<T>(candidates: &mut Vec<(T, Vec<Oid>)>) -> Option<Choice<T>> {
        match candidates.len() {
            0 => Some(Choice::None),
            1 => candidates.pop().map(|(candidate, _)| Choice::One(candidate)),
            _ => None,
        }
    }
    /// Keeps those with the highest score.
    fn keep_best<T>(candidates: Vec<(T, Vec<Oid>)>, score: impl Fn(&[Oid]) -> usize) -> Vec<(T, Vec<Oid>)> {
        let best = candidates.iter().map(|(_, wanted)| score(wanted)).max().unwrap_or(0);
        candidates
            .into_iter()
            .filter(|(_, wanted)| score(wanted) == best)
            .collect()
    }
    if let Some(choice) = one_or(&mut candidates) {
        return choice;
    }
    candidates = keep_best(candidates, |wanted| {
        given
            .iter()
            .zip(wanted)
            .filter(|(given, wanted)| **given != oid::UNKNOWN && given == wanted)
            .count()
    });
    if let Some(choice) = one_or(&mut candidates) {
        return choice;
    }
    candidates = keep_best(candidates, |wanted| {
        given
            .iter()
            .zip(wanted)
            .filter(|(given, wanted)| {
                **given != oid::UNKNOWN
                    && (given == wanted
                        || (facts::is_preferred(**wanted) && facts::category(**given) == facts::category(**wanted)))
            })
            .count()
    });
    if let Some(choice) = one_or(&mut candidates) {
        return choice;
    }
    let unknown: Vec<usize> = (0..given.len()).filter(|index| given[*index] == oid::UNKNOWN).collect();
    if unknown.is_empty() {
        return Choice::Several;
    }
    // The category that each unknown argument is taken to be of: strings if any candidate takes a string, else what all agree on.
    let mut categories: Vec<(usize, u8, bool)> = Vec::new();
    let mut resolved = true;
    for index in &unknown {
        let mut category = None;
        let mut preferred = false;
        for (_, wanted) in &candidates {
            let (current, is_preferred) = (facts::category(wanted[*index]), facts::is_preferred(wanted[*index]));
            match category {
                None => (category, preferred) = (Some(current), is_preferred),
                Some(known) if known == current => preferred |= is_preferred,
                Some(_) if current == b'S' => (category, preferred) = (Some(current), is_preferred),
                Some(b'S') => {}
                Some(_) => category = Some(0),
            }
        }
        match category {
            Some(category) if category != 0 => categories.push((*index, category, preferred)),
            _ => {
                resolved = false;
                break;
            }
        }
    }
    if resolved {
        let fits = |wanted: &[Oid]| {
            categories.iter().all(|(index, category, preferred)| {
                facts::category(wanted[*index]) == *category && (!preferred || facts::is_preferred(wanted[*index]))
            })
        };
        if candidates.iter().any(|(_, wanted)| fits(wanted)) {
            candidates.retain(|(_, wanted)| fits(wanted));
        }
        if let Some(choice) = one_or(&mut candidates) {
            return choice;
        }
    }
    // If all that is known is of one type, the rest is taken to be of it too.
    let mut known = given.iter().copied().filter(|oid| *oid != oid::UNKNOWN);
    if let Some(first) = known.next()
        && known.all(|other| other == first)
    {
        let assumed = vec![first; given.len()];
        let mut fitting: Vec<usize> = (0..candidates.len())
            .filter(|candidate| matches_all(&assumed, &candidates[*candidate].1))
            .collect();
        if let (Some(only), true) = (fitting.pop(), fitting.is_empty()) {
            return Choice::One(candidates.swap_remove(only).0);
        }
    }
    Choice::Several
}

/// The type that all of these can be (`select_common_type`), as UNION, CASE, VALUES and IN want it. `what` is the construct.
pub(crate) fn common_type(types: &[Oid], what: &str) -> Result<Oid> {
    let Some(first) = types.first() else {
        return Ok(oid::TEXT);
    };
    if *first != oid::UNKNOWN && types.iter().all(|other| other == first) {
        return Ok(*first);
    }
    let mut chosen = oid::UNKNOWN;
    for current in types {
        let current = *current;
        if current == oid::UNKNOWN || current == chosen {
            continue;
        }
        if chosen == oid::UNKNOWN {
            chosen = current;
        } else if facts::category(current) != facts::category(chosen) {
            return Err(Fault::new(
                "42804",
                format!(
                    "{what} types {} and {} cannot be matched",
                    facts::display_name(chosen),
                    facts::display_name(current)
                ),
            ));
        } else if !facts::is_preferred(chosen) && implicitly(chosen, current) && !implicitly(current, chosen) {
            chosen = current;
        }
    }
    Ok(if chosen == oid::UNKNOWN { oid::TEXT } else { chosen })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &str, left: Oid, right: Oid) -> Result<&'static str, &'static str> {
        operator(name, Some(left), right)
            .map(|operator| operator.symbol)
            .map_err(|fault| fault.sqlstate)
    }

    #[test]
    fn operators_are_chosen_as_postgresql_chooses() {
        assert_eq!(symbol("+", oid::INT4, oid::INT4), Ok("int4pl"));
        assert_eq!(symbol("+", oid::DATE, oid::INT4), Ok("date_pli"));
        assert_eq!(symbol("-", oid::DATE, oid::DATE), Ok("date_mi"));
        assert_eq!(symbol("-", oid::DATE, oid::UNKNOWN), Ok("date_mi"));
        assert_eq!(symbol("+", oid::INT2, oid::NUMERIC), Ok("numeric_add"));
        assert_eq!(symbol("||", oid::TEXT, oid::INT4), Ok("textanycat(text,anynonarray)"));
        assert_eq!(symbol("||", oid::UNKNOWN, oid::UNKNOWN), Ok("textcat"));
        assert_eq!(symbol("+", oid::UNKNOWN, oid::UNKNOWN), Err("42725"));
        assert_eq!(symbol("=", oid::TEXT, oid::INT4), Err("42883"));
        assert_eq!(symbol("=", oid::VARCHAR, oid::UNKNOWN), Ok("texteq"));
        assert_eq!(symbol("<", oid::TIMESTAMP, oid::DATE), Ok("timestamp_lt_date"));
    }

    #[test]
    fn functions_are_chosen_as_postgresql_chooses() {
        let symbol = |name: &str, given: &[Oid]| {
            function(name, given, false)
                .map(|chosen| chosen.map(|chosen| chosen.function.symbol))
                .map_err(|fault| fault.sqlstate)
        };
        assert_eq!(symbol("round", &[oid::NUMERIC]), Ok(Some("round(numeric)")));
        assert_eq!(symbol("lower", &[oid::UNKNOWN]), Ok(Some("lower")));
        assert_eq!(symbol("abs", &[oid::INT4]), Ok(Some("int4abs")));
        assert_eq!(symbol("nosuch", &[]), Ok(None));
        assert_eq!(symbol("lower", &[oid::INT4]), Err("42883"));
        assert_eq!(symbol("concat", &[oid::INT4, oid::TEXT]), Ok(Some("text_concat")));
    }
}
