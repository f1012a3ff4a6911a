//! PTX of any origin on a device: for programs that compare a GPU with expected results. Kernels of this crate come
//! another way, with checks.
//!
//! The driver copies as many bytes of as many parameters as an entry point has, and it alone knows these: so every
//! parameter is as long as the longest that there is, and there are as many as there can be.

use tilewright_kernel::Text;
use tilewright_kernel::tensor_map::TensorMap;

use super::kernel::{MOST_BYTES, Parameter};
use super::memory::Block;
use super::{Call, Context, tensor_map};
use crate::device::{Device, DeviceInner};
use crate::error::{Error, Result};

/// A launch of a kernel of some PTX.
#[derive(Clone, Copy, Debug)]
pub struct TextLaunch<'a> {
    /// The module.
    pub ptx: &'a str,
    /// The kernel.
    pub entry: &'a str,
    /// Blocks of the grid, in one dimension.
    pub blocks: u32,
    /// Threads of a block, in one dimension.
    pub threads: u32,
    /// Blocks of a cluster, 1 without clusters.
    pub cluster: u32,
}

/// A parameter of such a kernel.
#[derive(Clone, Debug)]
pub enum TextParameter {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// A tensor map that the driver encodes, and words of 32 bits of it that are then combined with others by exclusive
    /// or, each with its number.
    Map(TensorMap, Vec<(usize, u32)>),
}

/// What a launch is given, or why there is nothing to give.
pub type Parameters = std::result::Result<Vec<TextParameter>, String>;

/// Copies buffers to a GPU, runs a kernel with the parameters that belong to their addresses, waits for it, and copies
/// the buffers back. What the kernel does to other memory of the device is as the text says: nothing is checked.
///
/// # Errors
/// [`Error::NoCuda`] on the emulator; [`Error::Layout`] with what `parameters` says; [`Error::Load`] with the
/// assembler's log; a failure of the driver, among them faults of the kernel, after which the device takes no more
/// work of this process.
pub fn run_text(
    device: &Device,
    launch: TextLaunch<'_>,
    buffers: &mut [Vec<u8>],
    parameters: impl FnOnce(&[u64]) -> Parameters,
) -> Result<()> {
    #[cfg(feature = "emulator")]
    let DeviceInner::Cuda(context) = &**device.inner() else {
        return Err(Error::NoCuda { reason: "text of any origin runs on GPUs only".to_owned() });
    };
    #[cfg(not(feature = "emulator"))]
    let DeviceInner::Cuda(context) = &**device.inner();
    let ptx: Text = launch.ptx.to_owned().into();
    let function = context.function(launch.entry, &ptx, launch.entry, (0, launch.cluster))?;
    let mut blocks = Vec::with_capacity(buffers.len());
    for buffer in &*buffers {
        let block = Block::allocate(context, buffer.len())?;
        block.write(0, buffer)?;
        blocks.push(block);
    }
    let addresses: Vec<u64> = blocks.iter().map(Block::address).collect();
    let given = parameters(&addresses).map_err(|reason| Error::Layout { operation: "run_text", reason })?;
    let mut encoded = given.into_iter().map(encoded).collect::<Result<Vec<_>>>()?;
    encoded.resize(encoded.len().max(MOST_BYTES), Parameter::Zeros);
    let call = Call {
        function,
        blocks: launch.blocks,
        threads: launch.threads,
        cluster: launch.cluster,
        shared_bytes: 0,
        dependent: false,
        parameters: encoded,
    };
    run(context, &call)?;
    for (block, buffer) in blocks.iter().zip(buffers) {
        block.read(0, buffer)?;
    }
    Ok(())
}

/// Enqueues a call after the copies to its buffers, and before those from them.
fn run(context: &Context, call: &Call) -> Result<()> {
    // SAFETY: the parameters are at least as many and as long as those of any function. The buffers live until they
    // were read, which is after the kernel in the order of this stream; what else the kernel touches, its text
    // answers for.
    unsafe { call.enqueue(&context.service) }
}

/// A parameter as long as any that a kernel has.
fn encoded(parameter: TextParameter) -> Result<Parameter> {
    let mut bytes = match parameter {
        TextParameter::Bytes(bytes) => bytes,
        TextParameter::Map(map, edits) => {
            let mut words = tensor_map::words(&map)?;
            for (word, change) in edits {
                let Some(place) = words.get_mut(word) else { continue };
                *place ^= change;
            }
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        }
    };
    bytes.resize(bytes.len().max(MOST_BYTES), 0);
    Ok(Parameter::Bytes(bytes))
}
