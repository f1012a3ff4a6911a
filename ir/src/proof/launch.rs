//! A concrete launch: sizes, number of blocks, where tensors have elements, what copies of tiles move.

use tilewright_kernel::info::{KernelInfo, MapError, MapInfo, ParameterKind};
use tilewright_kernel::rules::{is_injective, row_major_strides};
use tilewright_kernel::tensor_map::TensorMap;
use tilewright_kernel::{Size, SizeError};

/// A launch of a kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Number of blocks.
    pub blocks: i64,
    /// Blocks for which buffers in workspaces have room.
    pub parts: i64,
    /// The value of each dimension and stride of the signature.
    pub dims: Vec<i64>,
    /// Each parameter of the signature; none for a scalar.
    pub tensors: Vec<Option<Tensor>>,
    /// Each tensor map of the signature.
    pub maps: Vec<Tiles>,
    /// Whether it may begin before earlier launches have ended.
    pub dependent: bool,
    /// Elements of each workspace.
    pub workspaces: Vec<i64>,
}

/// A tensor: its elements are those at the sum of index times stride.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Elements along each dimension.
    pub shape: Vec<i64>,
    /// Elements from one index to the next, along each dimension.
    pub strides: Vec<i64>,
    /// What the base address is a multiple of, in bytes.
    pub alignment: u32,
    /// Whether every element must be written.
    pub written: bool,
}

impl Tensor {
    /// The offsets of the first and the last element; none without elements, or if an offset does not fit 64 bits.
    pub fn reach(&self) -> Option<(i64, i64)> {
        if self.shape.contains(&0) {
            return None;
        }
        let (mut first, mut last) = (0i64, 0i64);
        for (size, stride) in self.shape.iter().zip(&self.strides) {
            let reach = (size - 1).checked_mul(*stride)?;
            if reach < 0 {
                first = first.checked_add(reach)?;
            } else {
                last = last.checked_add(reach)?;
            }
        }
        Some((first, last))
    }
}

/// What copies by a tensor map move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// The tensor: position among the parameters.
    pub parameter: u16,
    /// The map; its address counts as 0.
    pub map: TensorMap,
}

/// Why a kernel has no such launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoLaunch {
    /// A size of a tensor has no value, or something is too large.
    Size(SizeError),
    /// Tensors have sizes, and what the kernel makes of them has no value.
    Own(String),
    /// The tensor at this position would have a negative extent.
    Negative(usize),
    /// A tensor map cannot be encoded.
    Map(MapError),
    /// Elements of the written tensor at this position share a place, which the launcher refuses.
    Overlap(usize),
}

impl Launch {
    /// The launch of a finished kernel for these dimensions, contiguous tensors at addresses of the least alignment.
    ///
    /// # Errors
    /// See [`NoLaunch`].
    pub fn new(info: &KernelInfo, dims: &[i64]) -> Result<Self, NoLaunch> {
        let tiles =
            |map: &MapInfo| Ok(Tiles { parameter: map.parameter, map: map.at(0, dims).map_err(NoLaunch::Map)? });
        Ok(Self { maps: info.maps.iter().map(tiles).collect::<Result<_, _>>()?, ..Self::without_maps(info, dims)? })
    }

    /// The same of an entry point that copies by no tensor map, which is also there where a tensor has no map because
    /// it has no elements.
    ///
    /// # Errors
    /// See [`NoLaunch`]; never [`NoLaunch::Map`].
    pub fn without_maps(info: &KernelInfo, dims: &[i64]) -> Result<Self, NoLaunch> {
        let value = |size: &Size| {
            let value = size.eval(dims).map_err(NoLaunch::Size)?;
            i64::try_from(value).map_err(|_| NoLaunch::Size(SizeError::Overflow))
        };
        let tensors = info.parameters.iter().enumerate().map(|(at, parameter)| {
            let ParameterKind::Tensor(tensor) = &parameter.kind else { return Ok(None) };
            let shape = tensor.shape.iter().map(value).collect::<Result<Vec<i64>, _>>()?;
            if shape.iter().any(|extent| *extent < 0) {
                return Err(NoLaunch::Negative(at));
            }
            let strides = match &tensor.strides {
                Some(strides) => strides.iter().map(value).collect::<Result<Vec<i64>, _>>()?,
                None => row_major_strides(&shape).ok_or(NoLaunch::Size(SizeError::Overflow))?,
            };
            let written = tensor.role.is_written();
            if written && !is_injective(&shape, &strides) {
                return Err(NoLaunch::Overlap(at));
            }
            Ok(Some(Tensor { shape, strides, alignment: tensor.alignment, written }))
        });
        let tensors = tensors.collect::<Result<_, _>>()?;
        let own = |what: String, size: &Size| match value(size) {
            Err(NoLaunch::Size(error)) if error != SizeError::Overflow => {
                Err(NoLaunch::Own(format!("{what} has no value: {error}")))
            }
            known => known,
        };
        let blocks = own("the number of blocks".to_owned(), &info.launch.blocks)?;
        let workspaces = info.workspace.iter().map(|w| own(format!("the length of `{}`", w.name), &w.elements));
        Ok(Self {
            blocks,
            parts: blocks,
            dims: dims.to_vec(),
            dependent: info.launch.dependent,
            tensors,
            maps: Vec::new(),
            workspaces: workspaces.collect::<Result<_, _>>()?,
        })
    }

    /// The same by another number of blocks, of a persistent kernel.
    #[must_use]
    pub fn by(self, blocks: i64) -> Self {
        Self { blocks, ..self }
    }
}
