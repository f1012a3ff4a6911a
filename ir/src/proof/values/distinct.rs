//! Drawn integers of which no two are the same: the places of terms where one at most belongs to an element.
//!
//! **Property.** The numbers at `count` neighbouring offsets are those from −1 to `count` − 2, each once. **Formula.**
//! a·i + b modulo `count`, where a and `count` have no factor in common. So one of them is outside of every tensor, and
//! where a tensor has as many elements, all others are inside.

/// The number at an offset, of so many, as a hash draws it.
pub(super) fn distinct(count: i64, at: i64, hash: u64) -> i64 {
    let mut factor = (hash % count.unsigned_abs().max(1)).max(1) as i64;
    // One more than `count` has none, so that this ends.
    while gcd(factor, count) > 1 {
        factor += 1;
    }
    let number = i128::from(factor) * i128::from(at) + i128::from(hash >> 40);
    number.rem_euclid(i128::from(count.max(1))) as i64 - 1
}

/// The greatest common divisor of two numbers above 0.
fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::values::mix;

    #[test]
    fn numbers_are_all_of_a_range_in_many_orders() {
        for count in [1, 2, 3, 4, 6, 12, 35, 64, 210] {
            let mut orders = Vec::new();
            for seed in 0..20 {
                for first in [0, 5] {
                    let numbers: Vec<i64> =
                        (first..first + count).map(|at| distinct(count, at, mix([seed, 1, 2, 3]))).collect();
                    let mut sorted = numbers.clone();
                    sorted.sort_unstable();
                    assert_eq!(sorted, (-1..count - 1).collect::<Vec<_>>(), "{count} from {first}");
                    orders.push(numbers);
                }
            }
            orders.sort();
            orders.dedup();
            assert!(orders.len() > 5 || count < 6, "{count}: {} orders", orders.len());
        }
    }
}
