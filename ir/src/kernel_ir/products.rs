//! Products of matrices by tensor cores, and matrices that warps load and store: which thread has which element.

use tilewright_kernel::ElementType;
use tilewright_kernel::target::WARP;
use tilewright_kernel::tensor_map::Swizzle;

use super::{BufferId, ValueId, VariableId};

/// A product of matrices, of [`Wgmma::ROWS`] rows and [`Wgmma::depth`] elements along k.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wgmma {
    /// The first of the variables that it adds to; the others follow it in `Kernel::variables`. Where element (x, y) of
    /// the sum is, [`Wgmma::element`] says.
    pub sums: VariableId,
    /// Columns of the sum: a multiple of 8 up to 256 that the types admit (PTX manual 9.7.15.5.2).
    pub columns: u32,
    /// The left matrix: x counts its rows.
    pub a: Factor,
    /// The right one: x counts its columns.
    pub b: Matrix,
    /// Where it does not hold, what is in the variables is not added: a predicate that all threads agree on; none if it
    /// always is.
    pub adds: Option<ValueId>,
}

/// The left matrix of a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Factor {
    /// It is in shared memory.
    Shared(Matrix),
    /// Variables of the threads hold it: which element each has, [`Wgmma::factor_element`] says. Till the product is
    /// over the threads leave them alone.
    Registers(Vec<VariableId>),
}

impl Factor {
    /// The matrix in shared memory, if it is there.
    pub const fn matrix(&self) -> Option<&Matrix> {
        match self {
            Self::Shared(matrix) => Some(matrix),
            Self::Registers(_) => None,
        }
    }

    /// The variables that hold it.
    pub fn variables(&self) -> &[VariableId] {
        match self {
            Self::Shared(_) => &[],
            Self::Registers(variables) => variables,
        }
    }
}

/// A matrix in a buffer in shared memory, of rows along k: see [`tilewright_kernel::descriptor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// The buffer.
    pub buffer: BufferId,
    /// In which slot of it, a `Type::I32`.
    pub slot: ValueId,
    /// Where element (0, 0) lies before the swizzle, in elements from the start of the slot: an index integer that the
    /// threads of a warpgroup agree on, at a multiple of 16 bytes.
    pub offset: ValueId,
    /// Whether neighbours in memory are neighbours along x, not along k.
    pub across: bool,
    /// Leading dimension byte offset.
    pub leading: u32,
    /// Stride dimension byte offset.
    pub stride: u32,
    /// How chunks of 16 bytes are exchanged, by their addresses.
    pub swizzle: Swizzle,
    /// Whether an instruction tells the assembler that the lanes of a warp agree on where it is, where it does not see
    /// that: descriptors would move between registers for each product.
    pub told: bool,
}

impl Wgmma {
    /// Rows of the sum.
    pub const ROWS: u32 = 64;
    /// Most columns.
    pub const MOST_COLUMNS: u32 = 256;
    /// Most groups that a wait leaves under way (PTX manual 9.7.15.7.3, as its assembler has it).
    pub const MOST_PENDING: u32 = 7;
    /// Bytes along k.
    const DEPTH: u32 = 32;
    /// Bytes of a register with elements of a factor.
    pub const FACTOR_REGISTER: u32 = 4;

    /// The type of the sum of products of such factors, of warpgroups and of warps; none if there is no instruction
    /// (PTX manual 9.7.15.2 and 9.7.14.5). Warps multiply 8-bit floats from compute capability 8.9 on, others from 8.0
    /// on.
    pub const fn sum(left: ElementType, right: ElementType) -> Option<ElementType> {
        use ElementType::{Bf16, E4m3, E5m2, F16, F32, I8, I32, Tf32, U8};
        match (left, right) {
            (F16, F16) | (Bf16, Bf16) | (Tf32, Tf32) | (E4m3 | E5m2, E4m3 | E5m2) => Some(F32),
            (I8 | U8, I8 | U8) => Some(I32),
            _ => None,
        }
    }

    /// Whether a product of such elements can have so many columns.
    pub const fn has_columns(element: ElementType, columns: u32) -> bool {
        columns > 0 && columns <= Self::MOST_COLUMNS && columns.is_multiple_of(Self::column_step(element, columns))
    }

    /// What so many columns of such elements are a multiple of: 8, and of integers from 32 on 16 (PTX manual
    /// 9.7.15.5.2).
    pub const fn column_step(element: ElementType, columns: u32) -> u32 {
        if element.is_integer() && columns > 24 { 16 } else { 8 }
    }

    /// How many variables of a thread it adds to.
    pub const fn variables(&self) -> u32 {
        self.columns / 2
    }

    /// Those variables.
    pub fn all(&self) -> impl Iterator<Item = VariableId> + use<> {
        (self.sums.0..self.sums.0 + self.variables()).map(VariableId)
    }

    /// Elements along k, of so many bytes.
    pub const fn depth(bytes: u32) -> u32 {
        Self::DEPTH / bytes
    }

    /// How many variables of a thread hold a left matrix of elements of so many bytes.
    pub const fn factor_variables(bytes: u32) -> u32 {
        Self::ROWS * Self::depth(bytes) / (4 * WARP)
    }

    /// Which element of the left matrix is in a variable, counted from the first one, of a thread of the warpgroup: row
    /// and place along k (PTX manual 9.7.15.5.1.1.1, the fragment of A). A register of 32 bits has the elements of as
    /// many neighbouring variables as fit.
    pub const fn factor_element(bytes: u32, thread: u32, variable: u32) -> (u32, u32) {
        let each = Self::FACTOR_REGISTER / bytes;
        let (warp, lane, register) = (thread / WARP, thread % WARP, variable / each);
        let row = 16 * warp + lane / 4 + 8 * (register % 2);
        (row, each * (4 * (register / 2) + lane % 4) + variable % each)
    }

    /// Which element of the sum is in a variable, counted from the first one, of a thread of the warpgroup: row and
    /// column (PTX manual 9.7.15.5.1.1.2, the fragment of D).
    pub const fn element(thread: u32, variable: u32) -> (u32, u32) {
        let (warp, lane) = (thread / WARP, thread % WARP);
        let row = 16 * warp + lane / 4 + 8 * (variable / 2 % 2);
        (row, 8 * (variable / 4) + 2 * (lane % 4) + variable % 2)
    }
}

/// 1, 2 or 4 matrices of a buffer in shared memory that a warp accesses together, of eight rows of [`Matrices::ROW`]
/// bytes each (PTX manual 9.7.14.5.15, `ldmatrix`; 9.7.14.5.16, `stmatrix`). Lane 4·r + q has the q-th four bytes of
/// row r of each matrix; transposed, which elements of 2 bytes can be, it has the elements r of rows 2·q and 2·q + 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrices {
    /// The buffer.
    pub buffer: BufferId,
    /// Of lane 8·i + r where row r of matrix i starts: an index integer, in elements from the start of the buffer, at a
    /// multiple of the row's bytes. Further lanes say the same once more.
    pub offset: ValueId,
    /// How many matrices.
    pub count: u32,
    /// Elements of a row.
    pub row: u32,
    /// Whether it is the transposed matrices that lanes have.
    pub transposed: bool,
}

impl Matrices {
    /// Rows of a matrix.
    pub const ROWS: u32 = 8;
    /// Bytes of a row.
    pub const ROW: u32 = 16;

    /// How many values a lane has, those of one matrix after those of the one before.
    pub const fn values(&self) -> u32 {
        self.count * self.each()
    }

    /// Those of one matrix.
    const fn each(&self) -> u32 {
        self.row * Self::ROWS / WARP
    }

    /// Lanes that say where a row is which no other one says.
    pub const fn lanes(&self) -> u32 {
        self.count * Self::ROWS
    }

    /// Where a lane's value with a number lies: the lane that says the row, and the element in it.
    pub const fn source(&self, lane: u32, value: u32) -> (u32, u32) {
        let each = self.each();
        let (matrix, own) = (value / each, each * (lane % 4) + value % each);
        let (row, element) = if self.transposed { (own, lane / 4) } else { (lane / 4, own) };
        (Self::ROWS * matrix + row, element)
    }
}

/// A load of matrices by each warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadMatrix {
    /// What is loaded.
    pub from: Matrices,
    /// The first of the values that a lane has.
    pub first: ValueId,
}

impl LoadMatrix {
    /// The values.
    pub fn results(&self) -> impl Iterator<Item = ValueId> + use<> {
        (self.first.0..self.first.0 + self.from.values()).map(ValueId)
    }
}

/// A store of matrices by each warp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreMatrix {
    /// Where they go.
    pub to: Matrices,
    /// The values that a lane has.
    pub values: Vec<ValueId>,
}

/// A product of matrices in the registers of a warp, of [`MmaSync::ROWS`] rows, [`MmaSync::COLUMNS`] columns and
/// [`Wgmma::depth`] elements along k.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MmaSync {
    /// The first of the [`MmaSync::SUMS`] variables that it adds to; the others follow it in `Kernel::variables`. Where
    /// element (x, y) of the sum is, [`Wgmma::element`] says, of the first warp.
    pub sums: VariableId,
    /// What holds the left matrix: which element each has, [`Wgmma::factor_element`] says, of the first warp.
    pub a: Vec<VariableId>,
    /// What holds the right one: [`MmaSync::right_element`].
    pub b: Vec<VariableId>,
}

impl MmaSync {
    /// Rows of the sum.
    pub const ROWS: u32 = 16;
    /// Columns of the sum.
    pub const COLUMNS: u32 = 8;
    /// Variables of a thread that it adds to.
    pub const SUMS: u32 = Self::ROWS * Self::COLUMNS / WARP;

    /// The variables that it adds to.
    pub fn all(&self) -> impl Iterator<Item = VariableId> + use<> {
        (self.sums.0..self.sums.0 + Self::SUMS).map(VariableId)
    }

    /// How many variables of a thread hold a left, and a right matrix of elements of so many bytes.
    pub const fn factor_variables(bytes: u32) -> [u32; 2] {
        let depth = Wgmma::depth(bytes);
        [Self::ROWS * depth / WARP, Self::COLUMNS * depth / WARP]
    }

    /// Which element of the right matrix is in a variable, counted from the first one, of a lane: place along k and
    /// column (PTX manual 9.7.14.5.8, the fragment of B).
    pub const fn right_element(bytes: u32, lane: u32, variable: u32) -> (u32, u32) {
        let each = Wgmma::FACTOR_REGISTER / bytes;
        (each * (4 * (variable / each) + lane % 4) + variable % each, lane / 4)
    }
}

/// A product of matrices, as far as variables are concerned.
#[derive(Clone, Copy, Debug)]
pub enum Product<'a> {
    /// Of a warpgroup.
    Wgmma(&'a Wgmma),
    /// Of a warp.
    MmaSync(&'a MmaSync),
}

impl<'a> Product<'a> {
    /// The variables that it adds to.
    pub fn all(self) -> impl Iterator<Item = VariableId> + use<> {
        let (first, count) = match self {
            Self::Wgmma(product) => (product.sums.0, product.variables()),
            Self::MmaSync(product) => (product.sums.0, MmaSync::SUMS),
        };
        (first..first + count).map(VariableId)
    }

    /// The variables that hold its matrices.
    pub fn factors(self) -> impl Iterator<Item = VariableId> + use<'a> {
        let (a, b): (&[VariableId], &[VariableId]) = match self {
            Self::Wgmma(product) => (product.a.variables(), &[]),
            Self::MmaSync(product) => (&product.a, &product.b),
        };
        a.iter().chain(b).copied()
    }

    /// The variables that it reads.
    pub fn uses(self) -> impl Iterator<Item = VariableId> + use<'a> {
        self.all().chain(self.factors())
    }

    /// Its matrices in shared memory, the left one first.
    pub fn matrices(self) -> impl Iterator<Item = &'a Matrix> {
        let (a, b) = match self {
            Self::Wgmma(product) => (product.a.matrix(), Some(&product.b)),
            Self::MmaSync(_) => (None, None),
        };
        a.into_iter().chain(b)
    }
}
