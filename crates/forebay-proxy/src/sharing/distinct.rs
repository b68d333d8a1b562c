//! Distinct: which of those who change a row each by its key may change different ones, as what is bound tells.
//!
//! Promises: two who are put together have bound something else each for the key. Where that means the same row all the same, as `5` and `05` do,
//! the server changes it for one of them, and the other one finds none.

use super::bound::Bound;

/// Those who are asked as one: the place of each on the trip, and what is bound for it.
pub(crate) type Members<'a> = Vec<(usize, Bound<'a>)>;

/// Puts together those who change different rows, as many as can be, by the parameters `keys`; in their order, so that two trips lock what both
/// want in the same order.
pub(crate) fn distinct<'a>(mut members: Members<'a>, keys: &[usize]) -> Vec<Members<'a>> {
    let compared = |bound: &Bound<'a>| -> Vec<_> { keys.iter().map(|at| bound.values.get(*at).cloned()).collect() };
    // Who came first stays first of those of one key.
    members.sort_by_cached_key(|(_, bound)| compared(bound));
    let mut groups: Vec<Members<'a>> = Vec::new();
    let (mut before, mut nth) = (None, 0);
    for member in members {
        let key = compared(&member.1);
        nth = if before.as_ref() == Some(&key) { nth + 1 } else { 0 };
        match groups.get_mut(nth) {
            Some(group) => group.push(member),
            None => groups.push(vec![member]),
        }
        before = Some(key);
    }
    groups
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    #[test]
    fn no_two_of_one_key_are_together() {
        let bound = |values: [&'static str; 3]| Bound {
            formats: &[0, 0],
            values: values.map(|value| Some(Cow::Borrowed(value.as_bytes()))).to_vec(),
            results: &[0, 0],
        };
        let values = [
            ["3", "x", "a"],
            ["1", "x", "b"],
            ["3", "y", "c"],
            ["1", "x", "d"],
            ["2", "x", "a"],
            ["1", "x", "e"],
        ];
        let members = values.into_iter().map(bound).enumerate().collect();
        let groups = distinct(members, &[0, 1]);
        let places = |members: &Members<'_>| members.iter().map(|(at, _)| *at).collect::<Vec<_>>();
        let groups: Vec<_> = groups.iter().map(places).collect();
        assert_eq!(groups, [vec![1, 4, 0, 2], vec![3], vec![5]]);
    }
}
