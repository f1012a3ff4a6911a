//! Tests of what limits the work on conditions: beyond a limit nothing is excluded, and what is asked takes no longer.

use tilewright_kernel::algorithm::Compare;

use super::super::syncs;
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
        b.sync();
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
    b.sync();
    b.end_if();
    let kernel = b.finish().unwrap();
    let mut terms = Terms::new(&kernel, Plain(&kernel));
    terms.expression(least);
    terms.ways(holds, true);
    terms.ways(holds, false);
    let (expressions, conditions) = terms.looked_at();
    assert!(expressions <= kernel.values.len() && conditions <= 2 * kernel.values.len());
    assert!(expressions > 200 && conditions > 300, "{expressions} {conditions}");
    assert!(syncs::minimise(kernel, None).is_some());
}
