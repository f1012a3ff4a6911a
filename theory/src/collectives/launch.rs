//! The shape of a launch: threads of a block, blocks of a cluster, roles and their registers.

use tilewright_kernel::target::{self, REGISTER_STEP, ROLE_REGISTERS, registers_at_launch};

use super::ThreadSet;

/// [`target::WARP`] in this room's arithmetic, as are the limits after it.
pub const WARP: u64 = target::WARP as u64;
/// [`target::WARPGROUP`].
pub const WARPGROUP: u64 = target::WARPGROUP as u64;
/// [`target::BLOCK_LIMIT`].
pub const BLOCK_LIMIT: u64 = target::BLOCK_LIMIT as u64;
/// [`target::CLUSTER_LIMIT`].
pub const CLUSTER_LIMIT: u64 = target::CLUSTER_LIMIT as u64;

/// Whether clusters have so many blocks: a power of two up to [`CLUSTER_LIMIT`] (case N15 of the table of nests), so
/// that every unit of blocks divides them.
pub const fn is_cluster(blocks: u64) -> bool {
    blocks.is_power_of_two() && blocks <= CLUSTER_LIMIT
}

/// Blocks of a cluster and threads of a block: at least 1 each, and within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    cluster: u64,
    block: u64,
}

impl Shape {
    /// A shape.
    ///
    /// # Errors
    /// Blocks beyond 1 to 1024 threads; clusters of which [`is_cluster`] does not hold.
    pub const fn new(cluster: u64, block: u64) -> Result<Self, LaunchFault> {
        if block == 0 || block > BLOCK_LIMIT {
            return Err(LaunchFault::Block { threads: block });
        }
        if !is_cluster(cluster) {
            return Err(LaunchFault::Cluster { blocks: cluster });
        }
        Ok(Self { cluster, block })
    }

    /// Blocks of a cluster.
    pub const fn cluster(self) -> u64 {
        self.cluster
    }

    /// Threads of a block.
    pub const fn block(self) -> u64 {
        self.block
    }

    /// Threads of a cluster.
    pub const fn threads(self) -> u64 {
        self.cluster * self.block
    }

    /// All threads of a cluster.
    pub fn all(self) -> ThreadSet {
        ThreadSet::run(0, self.threads())
    }
}

/// A role as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleRequest {
    /// Its name.
    pub name: String,
    /// Its warps.
    pub warps: u64,
    /// Registers that each of its threads has; as many as at the launch if not given.
    pub registers: Option<u64>,
}

/// A role: a range of the warps of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its name.
    pub name: String,
    /// Its first warp.
    pub first: u64,
    /// Its warps.
    pub warps: u64,
    /// Registers that each of its threads has; as many as at the launch if not given.
    pub registers: Option<u64>,
}

/// What a launch asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchRequest {
    /// Blocks of a cluster, 1 if not given.
    pub cluster: Option<u64>,
    /// Threads of a block.
    pub threads: Option<u64>,
    /// Roles, in the order of their warps.
    pub roles: Vec<RoleRequest>,
    /// Blocks that a multiprocessor must be able to hold; 1 if not given.
    pub blocks_per_multiprocessor: Option<u64>,
}

/// A launch within the limits: whole warps, and roles that fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Its shape.
    pub shape: Shape,
    /// Its roles, in the order of their warps; none if all warps run the same.
    pub roles: Vec<Role>,
    /// Registers of a thread at the launch.
    pub registers: u64,
}

/// Why there is no such launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchFault {
    /// A block of no or too many threads.
    Block {
        /// Its threads.
        threads: u64,
    },
    /// A block with a part of a warp.
    PartOfWarp {
        /// Its threads.
        threads: u64,
    },
    /// A cluster that is no power of two, or too large.
    Cluster {
        /// Its blocks.
        blocks: u64,
    },
    /// Neither the threads of a block nor roles are given.
    NoThreads,
    /// Threads are given, and roles that say how many there are.
    ThreadsAndRoles {
        /// The threads.
        threads: u64,
        /// Threads of the roles.
        of_roles: u64,
    },
    /// A role without warps.
    EmptyRole {
        /// Its position.
        role: usize,
    },
    /// Two roles with one name.
    SameName {
        /// Position of the first one.
        first: usize,
        /// Position of the second one.
        second: usize,
    },
    /// Registers that no thread can have.
    Registers {
        /// Position of the role.
        role: usize,
        /// What is asked for.
        asked: u64,
    },
    /// Registers change for whole warpgroups, and the block has a part of one.
    PartOfWarpgroup {
        /// Threads of the block.
        threads: u64,
    },
    /// Two roles in one warpgroup with different registers: its four warps change them together.
    MixedWarpgroup {
        /// Number of the warpgroup.
        group: u64,
        /// Positions of the roles.
        roles: (usize, usize),
    },
    /// More registers than the block has from its launch: who asks for more would wait forever.
    Pool {
        /// Registers that the roles have together.
        asked: u64,
        /// Registers of the block.
        pool: u64,
        /// Registers of a thread at the launch.
        at_launch: u64,
    },
}

impl Launch {
    /// Checks what is asked for.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn new(request: &LaunchRequest) -> Result<Self, LaunchFault> {
        let of_roles = request.roles.iter().fold(0, |sum: u64, r| sum.saturating_add(r.warps)).saturating_mul(WARP);
        let threads = match (request.threads, &request.roles[..]) {
            (Some(threads), []) => threads,
            (Some(threads), _) => return Err(LaunchFault::ThreadsAndRoles { threads, of_roles }),
            (None, []) => return Err(LaunchFault::NoThreads),
            (None, _) => of_roles,
        };
        for (role, asked) in request.roles.iter().enumerate() {
            if asked.warps == 0 {
                return Err(LaunchFault::EmptyRole { role });
            }
            if let Some(first) = request.roles[..role].iter().position(|r| r.name == asked.name) {
                return Err(LaunchFault::SameName { first, second: role });
            }
        }
        let shape = Shape::new(request.cluster.unwrap_or(1), threads)?;
        if threads % WARP != 0 {
            return Err(LaunchFault::PartOfWarp { threads });
        }
        let mut first = 0;
        let mut roles = Vec::new();
        for RoleRequest { name, warps, registers } in request.roles.iter().cloned() {
            roles.push(Role { name, first, warps, registers });
            first += warps;
        }
        let held = registers_at_launch(threads, request.blocks_per_multiprocessor.unwrap_or(1).max(1));
        let launch = Self { shape, roles, registers: held.min(target::REGISTER_LIMIT.into()) };
        launch.check_registers(held)?;
        Ok(launch)
    }

    /// The role with a name.
    pub fn role(&self, name: &str) -> Option<&Role> {
        self.roles.iter().find(|r| r.name == name)
    }

    /// `setmaxnreg`: steps of 8, whole warpgroups, and a sum that the block has (PTX ISA, `setmaxnreg`). A role that
    /// has as many as at the launch changes nothing; what others give back others can take.
    fn check_registers(&self, held: u64) -> Result<(), LaunchFault> {
        let threads = self.shape.block();
        let (least, most) = ROLE_REGISTERS;
        for (role, own) in self.roles.iter().enumerate() {
            if let Some(asked) = own.registers
                && (asked % REGISTER_STEP != 0 || !(least..=most).contains(&asked))
            {
                return Err(LaunchFault::Registers { role, asked });
            }
        }
        if self.roles.iter().all(|r| r.registers.is_none()) {
            return Ok(());
        }
        if !threads.is_multiple_of(WARPGROUP) {
            return Err(LaunchFault::PartOfWarpgroup { threads });
        }
        let warps = self.roles.iter().enumerate().flat_map(|(n, role)| (0..role.warps).map(move |_| n));
        let warps: Vec<usize> = warps.collect();
        let registers = |role: usize| self.roles[role].registers.unwrap_or(held);
        for (group, four) in (0..).zip(warps.chunks(4)) {
            if let Some(other) = four.iter().find(|r| registers(**r) != registers(four[0])) {
                return Err(LaunchFault::MixedWarpgroup { group, roles: (four[0], *other) });
            }
        }
        let asked = warps.iter().map(|role| WARP * registers(*role)).sum();
        let pool = threads * held;
        if asked > pool { Err(LaunchFault::Pool { asked, pool, at_launch: held }) } else { Ok(()) }
    }
}
