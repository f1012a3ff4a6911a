//! Tests of what limits the work on conditions: beyond a limit nothing is excluded, and what is asked takes no longer.

use tilewright_kernel::algorithm::Compare;

use super::super::barrier_placement;
use super::*;
use crate::kernel_ir::{Builder, Signature, Type};

fn builder() -> Builder {
    let (name, threads) = ("k".to_owned(), 64);
    let (parameters, dims, maps, arguments) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    Builder::new(Signature { name, parameters, dims, maps, arguments, threads, cluster: 1 })
}

/// A branch with a barrier for each of so many conditions: the number of the block is below a limit of its own.
fn branches(count: i64) -> Kernel {
    let mut b = builder();
    let block = b.block_index();
    for n in 0..count {
        let limit = b.index_literal(Type::I32, 10 * n + 10);
        let below = b.index_compare(Compare::Lt, block, limit);
        b.begin_if(below);
        b.bar_sync();
        b.end_if();
    }
    b.finish().unwrap()
}

#[test]
fn few_facts_are_compared() {
    let followed = |count: i64| Guards::new(&branches(count), None).followed.len();
    assert_eq!([2, MOST_FACTS as i64, MOST_FACTS as i64 + 1].map(followed), [2, MOST_FACTS, 0]);
}

#[test]
fn few_questions_are_answered() {
    let kernel = branches(13);
    let guards = Guards::new(&kernel, None);
    let facts: Vec<Fact> = guards.followed.iter().map(|(fact, _)| *fact).collect();
    // Below the first limit, and not below the last one.
    let known =
        |all: &[(Fact, bool)]| all.iter().fold(Known::default(), |known, (f, holds)| guards.with(known, *f, *holds));
    let never = |all: &[(Fact, bool)]| guards.excludes(known(all), facts[12], false);
    assert!(never(&[(facts[0], true)]));
    let mut excluded = 0;
    for n in 0..1_u32 << 12 {
        let known: Vec<(Fact, bool)> = facts[..12].iter().enumerate().map(|(at, f)| (*f, n >> at & 1 == 1)).collect();
        excluded += usize::from(never(&known));
    }
    assert_eq!(guards.asked.borrow().len(), MOST_QUESTIONS);
    assert!(excluded > 0 && excluded < 1 << 12);
    // What was asked is known, what is asked now says nothing.
    assert!(never(&[(facts[0], true)]));
    assert!(!never(&[(facts[1], true)]));
}

/// What is known of facts that depend on nothing that the one asked for depends on makes no other question of it.
#[test]
fn what_is_unrelated_is_not_asked() {
    let mut b = builder();
    let values = [b.block_index(), b.block_count()];
    for limit in [10, 20] {
        for value in values {
            let limit = b.index_literal(Type::I32, limit);
            let below = b.index_compare(Compare::Lt, value, limit);
            b.begin_if(below);
            b.bar_sync();
            b.end_if();
        }
    }
    let kernel = b.finish().unwrap();
    let guards = Guards::new(&kernel, None);
    let of_block = |fact: &Fact| match kernel.value(fact.value()).op {
        Op::CompareIndex(_, a, _) => a == values[0],
        _ => false,
    };
    let facts: Vec<Fact> = guards.followed.iter().map(|(fact, _)| *fact).collect();
    let (own, others): (Vec<Fact>, Vec<Fact>) = facts.into_iter().partition(of_block);
    assert_eq!((own.len(), others.len()), (2, 2));
    let below = guards.with(Known::default(), own[0], true);
    for holds in [false, true] {
        assert!(guards.excludes(guards.with(below, others[0], holds), own[1], false));
    }
    assert_eq!(guards.asked.borrow().len(), 1);
}

/// Ways beyond a limit may all have a solution.
#[test]
fn few_ways_are_looked_at() {
    let kernel = branches(3);
    let guards = Guards::new(&kernel, None);
    let [first, second, last] = [0, 1, 2].map(|n| guards.followed[n].0);
    // Pairs were looked at before.
    let below = guards.with(guards.with(Known::default(), first, true), second, true);
    let known: Vec<u32> = (0..MOST_LOOKED_AT as u32).collect();
    guards.parts.looked_at.borrow_mut().extend(known.iter().map(|n| (vec![*n, u32::MAX], true)));
    assert!(!guards.excludes(below, last, false));
    assert!(Guards::new(&kernel, None).excludes(below, last, false));
}

/// Values that are made of others twice, sixty times over: as many expressions as values.
#[test]
fn what_is_shared_is_looked_at_once() {
    let mut b = builder();
    let (block, three) = (b.block_index(), b.index_literal(Type::I32, 3));
    let (mut sum, mut product, mut least) = (block, block, block);
    let mut holds = b.index_compare(Compare::Lt, block, three);
    for n in 0..60 {
        let third = b.index_div(sum, three);
        sum = b.index_add(sum, third);
        product = b.index_mul(product, product);
        let more = b.index_sub(least, sum);
        least = b.index_min(more, least);
        let limit = b.index_literal(Type::I32, n);
        let (below, above) = (b.index_compare(Compare::Lt, sum, limit), b.index_compare(Compare::Ge, least, product));
        let either = b.or(below, holds);
        let both = b.and(above, holds);
        holds = b.or(either, both);
    }
    b.begin_if(holds);
    b.bar_sync();
    b.end_if();
    let kernel = b.finish().unwrap();
    let mut terms = Terms::new(&kernel, Plain(&kernel));
    terms.expression(least);
    terms.ways(holds, true);
    terms.ways(holds, false);
    let (expressions, conditions) = terms.looked_at();
    assert!(expressions <= kernel.values.len() && conditions <= 2 * kernel.values.len());
    assert!(expressions > 200 && conditions > 300, "{expressions} {conditions}");
    assert!(barrier_placement::place_alone(kernel).is_some());
}
