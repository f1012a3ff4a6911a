//! The sorted map and set against those of the standard library, by random programs.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::{SortedMap, SortedSet};

/// One operation on a map or set of small keys.
#[derive(Clone, Debug)]
enum Step {
    Insert(u8, u16),
    Entry(u8, u16),
    Remove(u8),
    Change(u8, u16),
    Keep(u8),
    Extend(Vec<(u8, u16)>),
    PopFirst,
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..24u8;
    let step = prop_oneof![
        6 => (key.clone(), any::<u16>()).prop_map(|(k, v)| Step::Insert(k, v)),
        4 => (key.clone(), any::<u16>()).prop_map(|(k, v)| Step::Entry(k, v)),
        4 => key.clone().prop_map(Step::Remove),
        2 => (key.clone(), any::<u16>()).prop_map(|(k, v)| Step::Change(k, v)),
        1 => (1..5u8).prop_map(Step::Keep),
        1 => prop::collection::vec((key, any::<u16>()), 0..6).prop_map(Step::Extend),
        1 => Just(Step::PopFirst),
        1 => Just(Step::Clear),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn a_map_does_what_a_tree_does(steps in steps(), from in 0..26u8, length in 0..26u8) {
        let (mut map, mut tree) = (SortedMap::new(), BTreeMap::new());
        for step in steps {
            match step {
                Step::Insert(k, v) => prop_assert_eq!(map.insert(k, v), tree.insert(k, v)),
                Step::Entry(k, v) if v % 2 == 0 => {
                    prop_assert_eq!(map.entry(k).or_insert(v), tree.entry(k).or_insert(v));
                }
                Step::Entry(k, v) => {
                    *map.entry(k).or_default() = v;
                    *tree.entry(k).or_default() = v;
                }
                Step::Remove(k) => prop_assert_eq!(map.remove(&k), tree.remove(&k)),
                Step::Change(k, v) => {
                    prop_assert_eq!(map.get_mut(&k).map(|old| *old = v), tree.get_mut(&k).map(|old| *old = v));
                }
                Step::Keep(n) => {
                    map.retain(|k, v| u16::from(*k).wrapping_add(*v) % u16::from(n) == 0);
                    tree.retain(|k, v| u16::from(*k).wrapping_add(*v) % u16::from(n) == 0);
                }
                Step::Extend(all) => {
                    map.extend(all.clone());
                    tree.extend(all);
                }
                Step::PopFirst => {}
                Step::Clear => {
                    map.clear();
                    tree.clear();
                }
            }
            prop_assert_eq!(map.len(), tree.len());
            prop_assert_eq!(map.is_empty(), tree.is_empty());
            prop_assert!(map.iter().map(|(k, v)| (k, v)).eq(&tree));
            prop_assert!(map.keys().eq(tree.keys()) && map.values().eq(tree.values()));
            prop_assert_eq!(map.get(&from), tree.get(&from));
            prop_assert_eq!(map.contains_key(&from), tree.contains_key(&from));
            let to = from.saturating_add(length);
            prop_assert!(map.range(from..to).map(|(k, v)| (k, v)).eq(tree.range(from..to)));
            prop_assert!(map.range(from..=to).map(|(k, v)| (k, v)).eq(tree.range(from..=to)));
            prop_assert!(map.range(..to).map(|(k, v)| (k, v)).eq(tree.range(..to)));
            prop_assert_eq!(format!("{map:?}"), format!("{tree:?}"));
        }
        prop_assert!(map.into_iter().eq(tree));
    }

    #[test]
    fn a_set_does_what_a_tree_does(steps in steps(), from in 0..26u8, others in prop::collection::btree_set(0..24u8, 0..9)) {
        let (mut set, mut tree) = (SortedSet::new(), BTreeSet::new());
        let sorted: SortedSet<u8> = others.iter().copied().collect();
        for step in steps {
            match step {
                Step::Insert(k, _) | Step::Entry(k, _) => prop_assert_eq!(set.insert(k), tree.insert(k)),
                Step::Remove(k) | Step::Change(k, _) => prop_assert_eq!(set.remove(&k), tree.remove(&k)),
                Step::Extend(all) => {
                    set.extend(all.iter().map(|(k, _)| *k));
                    tree.extend(all.iter().map(|(k, _)| *k));
                }
                Step::PopFirst => prop_assert_eq!(set.pop_first(), tree.pop_first()),
                Step::Keep(_) | Step::Clear => {}
            }
            prop_assert_eq!(set.len(), tree.len());
            prop_assert!(set.iter().eq(&tree));
            prop_assert_eq!(set.contains(&from), tree.contains(&from));
            prop_assert_eq!(set.is_disjoint(&sorted), tree.is_disjoint(&others));
            prop_assert_eq!(format!("{set:?}"), format!("{tree:?}"));
        }
        prop_assert!(set.into_iter().eq(tree));
    }
}

#[test]
fn a_range_that_ends_before_it_starts_is_empty() {
    let map: SortedMap<u8, ()> = (0..9).map(|k| (k, ())).collect();
    assert_eq!(map.range((std::ops::Bound::Excluded(4), std::ops::Bound::Excluded(4))).len(), 0);
    assert_eq!(map.range((std::ops::Bound::Included(5), std::ops::Bound::Excluded(4))).len(), 0);
}

#[test]
fn of_two_entries_with_one_key_the_last_stays() {
    let map = SortedMap::from([("b", 1), ("a", 2), ("b", 3)]);
    assert_eq!(map["b"], 3);
    assert!(map.into_values().eq([2, 3]));
}
