//! What a launch may touch: the regions of device memory that are mapped, or only the extents that the caller listed,
//! with labels and write permission; and the windows through which generic addresses reach the other state spaces.

use std::sync::Arc;

use super::device::Allocation;

/// Where shared memory appears in the generic address space.
pub const SHARED_WINDOW: u64 = 0x7f10_0000_0000;
/// Where local memory appears.
pub const LOCAL_WINDOW: u64 = 0x7f20_0000_0000;
/// Where constants appear.
pub const CONST_WINDOW: u64 = 0x7f30_0000_0000;
/// Where parameters appear.
pub const PARAM_WINDOW: u64 = 0x7f40_0000_0000;
/// Addresses of functions.
pub const FUNCTIONS: u64 = 0x7f50_0000_0000;
/// Where a module's variables in global memory begin, above all allocations.
pub const MODULE: u64 = 0x7000_0000_0000;
/// The workspace of a cooperative launch, after the variables: blocks of a grid meet in it
/// (`cooperative_groups::grid_group`).
pub const GRID_WORKSPACE: u64 = MODULE_END;
/// The heap of device code, after that.
pub const HEAP: u64 = 0x7200_0000_0000;
/// Where they end.
pub const MODULE_END: u64 = 0x7100_0000_0000;
/// Log2 of the part of the window of shared memory that one CTA of a cluster has: see `exec::cluster`.
pub const RANK_BITS: u32 = 24;
/// Size of each window.
pub const WINDOW: u64 = 0x10_0000_0000;

/// A range of device memory that the kernel may access.
#[derive(Clone, Debug)]
pub struct Region {
    /// First address.
    pub base: u64,
    /// One past the last address.
    pub end: u64,
    /// Name for reports.
    pub label: String,
    /// Bytes of an element, for reports; 0 when unknown.
    pub element: u32,
    /// Whether stores are an error.
    pub read_only: bool,
    /// Whether no region through which the kernel may store overlaps this one: reads of it cannot race.
    pub constant: bool,
    /// Whether it is the heap, of which only live blocks may be accessed.
    pub heap: bool,
    /// The allocation it lies in.
    pub allocation: Arc<Allocation>,
    /// That allocation's index in the launch's list.
    pub index: usize,
}

/// The regions of a launch, sorted by base. They may overlap: two views of one tensor.
#[derive(Debug, Default)]
pub struct Regions {
    list: Vec<Region>,
    /// Greatest end among this region and those before it.
    reach: Vec<u64>,
}

/// Why an access is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    /// No region contains it.
    Outside,
    /// The regions that contain it (one of them is given) are read-only.
    ReadOnly(usize),
}

impl Regions {
    /// One writable region for each allocation, which never overlap.
    pub fn of_allocations(list: Vec<Region>) -> Self {
        let reach = list.iter().map(|region| region.end).collect();
        Regions { list, reach }
    }

    /// Sorts the regions.
    pub fn new(mut list: Vec<Region>) -> Self {
        // Extents are the arguments of a kernel: few. Of very many, none is taken to be constant.
        let few = list.len() <= 1024;
        for index in 0..list.len() {
            let overlaps = |other: &Region| other.base < list[index].end && list[index].base < other.end;
            let constant = few && !list.iter().any(|other| !other.read_only && overlaps(other));
            list[index].constant = constant;
        }
        list.sort_by(|a, b| (a.base, a.end, &a.label).cmp(&(b.base, b.end, &b.label)));
        let mut greatest = 0;
        let reach = list
            .iter()
            .map(|region| {
                greatest = greatest.max(region.end);
                greatest
            })
            .collect();
        Regions { list, reach }
    }

    /// The region with this index.
    #[inline(always)]
    pub fn get(&self, index: usize) -> &Region {
        &self.list[index]
    }

    /// A region that contains `bytes` bytes from `address` and allows the access; `hint` is tried first.
    #[inline(always)]
    pub fn find(&self, address: u64, bytes: u64, write: bool, hint: usize) -> Result<usize, Denied> {
        if let Some(region) = self.list.get(hint)
            && address >= region.base
            && address < region.end
            && bytes <= region.end - address
            && !(write && region.read_only)
        {
            return Ok(hint);
        }
        self.search(address, bytes, write)
    }

    #[inline(never)]
    fn search(&self, address: u64, bytes: u64, write: bool) -> Result<usize, Denied> {
        let mut denied = Denied::Outside;
        let mut at = self.list.partition_point(|region| region.base <= address);
        while at > 0 && self.reach[at - 1] > address {
            at -= 1;
            let region = &self.list[at];
            if address >= region.end || bytes > region.end - address {
                continue;
            }
            if write && region.read_only {
                denied = Denied::ReadOnly(at);
                continue;
            }
            return Ok(at);
        }
        Err(denied)
    }

    /// The region nearest to an address outside all of them, with the distance in bytes: positive beyond its end,
    /// negative before its start.
    pub fn nearest(&self, address: u64, bytes: u64) -> Option<(&Region, i128)> {
        let distance = |region: &Region| {
            if address < region.base {
                i128::from(address) - i128::from(region.base)
            } else {
                // An access that starts inside and runs over counts from its last byte.
                i128::from(address) + i128::from(bytes) - i128::from(region.end)
            }
        };
        self.list.iter().map(|region| (region, distance(region))).min_by_key(|(_, d)| d.unsigned_abs())
    }
}
