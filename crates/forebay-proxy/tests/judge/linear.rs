//! Linear: whether a history of lists that are only appended to has an order in which all of it might have happened, one after the other, each
//! while its client waited for it ("linearizability", Herlihy and Wing 1990).
//!
//! The lists as they are in the end tell the order of all that was appended, so that there is nothing to search for: each append has its place, each
//! read the one behind what it has seen, and whoever was answered before another one asked has no later place. That lists tell so much
//! is Kingsbury and Alvaro's (Elle, 2020).

use std::collections::HashMap;
use std::time::Instant;

use crate::histories::Told;

/// What was appended: by which client, and which of its appends.
pub(crate) type Item = (usize, u32);

/// Something that was asked of one list.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) list: usize,
    pub(crate) begun: Instant,
    pub(crate) ended: Instant,
    /// What it was to append.
    pub(crate) item: Option<Item>,
    pub(crate) told: Told,
    /// What it was shown; that of an append has its own item behind all others.
    pub(crate) seen: Option<Vec<Item>>,
}

/// Checks what was asked of lists that are these in the end.
///
/// # Errors
/// What has no such order, in words.
pub(crate) fn check(lists: &[Vec<Item>], history: &[Asked]) -> Result<(), String> {
    let mut asked_for: HashMap<(usize, Item), &Asked> = HashMap::new();
    for asked in history {
        if let Some(item) = asked.item {
            asked_for.insert((asked.list, item), asked);
        }
    }
    let mut places: HashMap<(usize, Item), usize> = HashMap::new();
    for (number, list) in lists.iter().enumerate() {
        for (at, item) in list.iter().enumerate() {
            if places.insert((number, *item), at).is_some() {
                return Err(format!("{item:?} is twice in list {number}"));
            }
            if !asked_for.contains_key(&(number, *item)) {
                return Err(format!("nobody has asked for {item:?} in list {number}"));
            }
        }
    }
    let mut all: Vec<Vec<((usize, bool), &Asked)>> = vec![Vec::new(); lists.len()];
    for asked in history {
        let list = &lists[asked.list];
        let place = asked.item.and_then(|item| places.get(&(asked.list, item)));
        match (asked.item, asked.told, place) {
            (Some(item), Told::Done, None) => return Err(format!("{item:?} was acknowledged and is not there")),
            (Some(item), Told::Refused, Some(_)) => return Err(format!("{item:?} was refused and is there")),
            _ => {}
        }
        if let Some(seen) = &asked.seen {
            if !list.starts_with(seen) {
                return Err(format!("{asked:?} has seen what never was, of {list:?}"));
            }
            if place.is_some_and(|place| seen.len() != place + 1) {
                return Err(format!("{asked:?} was told of another place than its own"));
            }
        }
        // An append is before the reads that have seen it and no more.
        match (place, &asked.seen) {
            (Some(place), _) => all[asked.list].push(((place + 1, false), asked)),
            (None, Some(seen)) if asked.item.is_none() => all[asked.list].push(((seen.len(), true), asked)),
            _ => {}
        }
    }
    all.into_iter().try_for_each(in_order)
}

/// Whether nobody has a place before another one who was answered when it asked.
fn in_order(mut all: Vec<((usize, bool), &Asked)>) -> Result<(), String> {
    let mut answered: Vec<_> = all
        .iter()
        .filter(|(_, asked)| asked.told == Told::Done)
        .copied()
        .collect();
    answered.sort_by_key(|(_, asked)| asked.ended);
    all.sort_by_key(|(_, asked)| asked.begun);
    let mut answered = answered.into_iter().peekable();
    let mut last: Option<((usize, bool), &Asked)> = None;
    for (place, asked) in all {
        while let Some(before) = answered.next_if(|(_, before)| before.ended < asked.begun) {
            if last.is_none_or(|(place, _)| place < before.0) {
                last = Some(before);
            }
        }
        if let Some((_, before)) = last.filter(|(before, _)| *before > place) {
            return Err(format!("{asked:?} was asked behind {before:?}, and was before it"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rand::rngs::StdRng;
    use rand::seq::SliceRandom;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// Asked at these times of the only list.
    fn asked(start: Instant, times: (u64, u64), item: Option<u32>, told: Told, seen: Option<&[u32]>) -> Asked {
        let item = item.map(|item| (0, item));
        let seen = seen.map(|seen| seen.iter().map(|item| (0, *item)).collect());
        Asked {
            list: 0,
            begun: start + Duration::from_secs(times.0),
            ended: start + Duration::from_secs(times.1),
            item,
            told,
            seen,
        }
    }

    fn list(items: &[u32]) -> Vec<Vec<Item>> {
        vec![items.iter().map(|item| (0, *item)).collect()]
    }

    #[test]
    fn what_may_have_happened_is_accepted_and_nothing_else() {
        let start = Instant::now();
        let append = |times, item, told| asked(start, times, Some(item), told, None);
        let read = |times, seen| asked(start, times, None, Told::Done, Some(seen));
        let (done, refused, unknown) = (Told::Done, Told::Refused, Told::Unknown);
        for (items, history) in [
            (&[][..], vec![read((0, 1), &[])]),
            (
                &[1, 2],
                vec![append((0, 5), 2, done), append((0, 5), 1, done), read((1, 2), &[1])],
            ),
            (
                &[1],
                vec![append((0, 5), 1, unknown), read((6, 7), &[]), read((8, 9), &[1])],
            ),
            (&[], vec![append((0, 5), 1, unknown), append((0, 5), 2, refused)]),
            (
                &[1],
                vec![asked(start, (0, 1), Some(1), done, Some(&[1])), read((2, 3), &[1])],
            ),
        ] {
            assert_eq!(check(&list(items), &history), Ok(()), "{history:?}");
        }
        for (items, history, why) in [
            (&[][..], vec![append((0, 1), 1, done)], "acknowledged and is not there"),
            (&[1], vec![append((0, 1), 1, refused)], "refused and is there"),
            (&[1, 1], vec![append((0, 1), 1, done)], "twice"),
            (&[1], vec![], "nobody has asked"),
            (&[1], vec![append((0, 1), 1, done), read((2, 3), &[])], "was before it"),
            (
                &[1, 2],
                vec![append((0, 1), 2, done), append((2, 3), 1, done)],
                "was before it",
            ),
            (&[1], vec![append((5, 6), 1, done), read((0, 1), &[1])], "was before it"),
            (
                &[1, 2],
                vec![append((0, 9), 1, done), append((0, 9), 2, done), read((0, 9), &[2])],
                "never was",
            ),
            (
                &[1],
                vec![append((0, 9), 1, unknown), read((1, 2), &[1]), read((3, 4), &[])],
                "was before it",
            ),
            (
                &[1, 2],
                vec![append((0, 9), 1, done), asked(start, (0, 9), Some(2), done, Some(&[1]))],
                "another place",
            ),
        ] {
            let told = check(&list(items), &history).expect_err(why);
            assert!(told.contains(why), "{told}");
        }
    }

    /// Whether there is an order, by trying all of them.
    fn has_order(items: &[u32], history: &[Asked]) -> bool {
        fn tried(left: &mut Vec<&Asked>, now: &mut Vec<Item>, items: &[Item]) -> bool {
            let must = left
                .iter()
                .any(|asked| asked.item.is_none() || asked.told == Told::Done);
            if !must && now == items {
                return true;
            }
            for at in 0..left.len() {
                let next = left[at];
                let is_first = left
                    .iter()
                    .all(|other| other.told != Told::Done || other.ended >= next.begun || std::ptr::eq(*other, next));
                if !is_first || next.told == Told::Refused {
                    continue;
                }
                now.extend(next.item);
                let fits = items.starts_with(now) && next.seen.as_ref().is_none_or(|seen| seen == now);
                left.remove(at);
                let is_it = fits && tried(left, now, items);
                left.insert(at, next);
                if next.item.is_some() {
                    now.pop();
                }
                if is_it {
                    return true;
                }
            }
            false
        }
        let items: Vec<Item> = items.iter().map(|item| (0, *item)).collect();
        let mut left = history.iter().filter(|asked| asked.told != Told::Refused).collect();
        let refused = history.iter().filter(|asked| asked.told == Told::Refused);
        let mut refused = refused.filter_map(|asked| asked.item);
        !refused.any(|item| items.contains(&item)) && tried(&mut left, &mut Vec::new(), &items)
    }

    #[test]
    fn it_says_what_trying_all_orders_says() {
        let start = Instant::now();
        let (mut yes, mut no) = (0, 0);
        for seed in 0..20_000 {
            let mut random = StdRng::seed_from_u64(seed);
            let count = random.random_range(1..4_u32);
            let mut items: Vec<u32> = (0..count).collect();
            items.shuffle(&mut random);
            let mut times = || {
                let begun = random.random_range(0..8);
                (begun, random.random_range(begun..9))
            };
            let all_times = [(); 6].map(|()| times());
            let mut history = Vec::new();
            for item in 0..count {
                let told = [Told::Done, Told::Done, Told::Unknown, Told::Refused][random.random_range(0..4)];
                let end = items.iter().position(|known| *known == item).unwrap();
                let seen = random.random_range(0..4) == 0 && told == Told::Done;
                let seen = seen.then(|| items[..=end].to_vec());
                history.push(asked(
                    start,
                    all_times[item as usize],
                    Some(item),
                    told,
                    seen.as_deref(),
                ));
            }
            for read in 0..random.random_range(0..3_usize) {
                let length = random.random_range(0..=items.len());
                history.push(asked(
                    start,
                    all_times[3 + read],
                    None,
                    Told::Done,
                    Some(&items[..length]),
                ));
            }
            if random.random() {
                // What is unknown or was refused may not be there.
                items.retain(|item| history[*item as usize].told == Told::Done || random.random());
            }
            let expected = has_order(&items, &history);
            assert_eq!(
                check(&list(&items), &history).is_ok(),
                expected,
                "{seed}: {items:?} {history:?}"
            );
            *if expected { &mut yes } else { &mut no } += 1;
        }
        assert!(yes > 1000 && no > 1000, "{yes} {no}");
    }
}
