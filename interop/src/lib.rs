//! A kernel of Tilewright as an operation of `candle`: RMS normalisation of the rows of a tensor.
//!
//! On a GPU the kernel reads and writes candle's own memory on candle's own stream, and nothing is copied or waited
//! for. Tensors of the CPU go to the emulator, which is slow and checks every access: so the operation is tested on
//! machines without a GPU.
//!
//! ```
//! use candle_core::{Device, Tensor};
//!
//! # fn main() -> candle_core::Result<()> {
//! let device = Device::cuda_if_available(0)?;
//! let x = Tensor::new(&[[3.0_f32, 4.0, 0.0, 0.0]], &device)?;
//! let weights = Tensor::ones(4, candle_core::DType::F32, &device)?;
//! let y = tilewright_interop::rms_norm(&x, &weights, 0.0)?;
//! assert_eq!(y.to_vec2::<f32>()?, [[1.2, 1.6, 0.0, 0.0]]);
//! # Ok(()) }
//! ```

use std::sync::OnceLock;

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};
use tilewright::{Device, EmulatorOptions, schedule};

schedule! {
    /// y = x · w / √(mean of x² + ε), for each row
    pub kernel RmsNorm(x: f32[M, N], w: f32[N], eps: f32) -> (y: f32[M, N])
    where N % 4 == 0, N <= 16384
    {
        ss[i]   = sum(|j| x[i, j] * x[i, j]);
        y[i, j] = x[i, j] * rsqrt(ss[i] / N as f32 + eps) * w[j];

        launch threads(512);
        schedule y {
            bind i: grid;
            split j by 4 -> jo, v;            // 16 bytes
            split jo by 512 -> r, t;
            bind t: thread;
            vectorize v;
            unroll r;
        }
        stage xr[i, j] = x in registers at y.i { like y; }
        schedule ss in registers at y.i        { like y; reduce t; }
    }
}

/// Normalises the last axis of `x`, of any rank but 0: x · w / √(mean of x² + ε). Both are f32 and contiguous.
///
/// # Errors
/// Other types, tensors that are not contiguous, shapes that do not fit; rows whose length is no multiple of 4 or is
/// more than 16384: the kernel's facts, which every launch checks.
pub fn rms_norm(x: &Tensor, weights: &Tensor, eps: f32) -> Result<Tensor> {
    x.apply_op2_no_bwd(weights, &Norm { eps })
}

/// The operation for candle.
struct Norm {
    eps: f32,
}

/// The rows of a tensor: how many they are, how long, and where the elements lie in its storage.
fn rows(layout: &Layout) -> Result<([usize; 2], std::ops::Range<usize>)> {
    let Some((start, end)) = layout.contiguous_offsets() else {
        bail!("rms_norm takes contiguous tensors, not strides {:?}", layout.stride())
    };
    let Some(&length) = layout.dims().last() else { bail!("rms_norm takes rows, not a scalar") };
    Ok(([(end - start) / length.max(1), length], start..end))
}

impl CustomOp2 for Norm {
    fn name(&self) -> &'static str {
        "rms_norm"
    }

    fn cpu_fwd(&self, x: &CpuStorage, x_at: &Layout, w: &CpuStorage, w_at: &Layout) -> Result<(CpuStorage, Shape)> {
        static EMULATOR: OnceLock<Device> = OnceLock::new();
        let device = EMULATOR.get_or_init(|| Device::emulator(EmulatorOptions::default()));
        let (shape, range) = rows(x_at)?;
        let ([_, n], weights) = rows(w_at)?;
        let (x, w) = (&x.as_slice::<f32>()?[range], &w.as_slice::<f32>()?[weights]);
        let run = || -> tilewright::Result<Vec<f32>> {
            let x = tilewright::Tensor::from_slice(device, x, shape)?;
            let w = tilewright::Tensor::from_slice(device, w, [n])?;
            let mut y = tilewright::Tensor::uninit(device, shape)?;
            RmsNorm { x: &x, w: &w, eps: self.eps, y: &mut y }.launch(device)?;
            y.to_vec()
        };
        Ok((CpuStorage::F32(run().map_err(candle_core::Error::wrap)?), x_at.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        x_at: &Layout,
        w: &candle_core::CudaStorage,
        w_at: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        use candle_core::backend::BackendStorage;
        use tilewright::{Stream, TensorMut, TensorRef};

        let device = x.device().clone();
        let (shape, range) = rows(x_at)?;
        let ([_, n], weights) = rows(w_at)?;
        let (x, w) = (x.as_cuda_slice::<f32>()?, w.as_cuda_slice::<f32>()?);
        let mut out = device.alloc_zeros::<f32>(shape[0] * shape[1])?;
        let run = || -> tilewright::Result<()> {
            // Launches on the stream are in the order of candle's own.
            let stream = Stream::from_cudarc(device.cuda_stream())?;
            // Candle's memory, borrowed: the part that the tensor is.
            let x = TensorRef::from_cudarc(x, [x.len()])?.slice(0, range)?.reshape(shape)?;
            let w = TensorRef::from_cudarc(w, [w.len()])?.slice(0, weights)?.reshape([n])?;
            let mut y = TensorMut::from_cudarc(&mut out, shape)?;
            RmsNorm { x: &x, w: &w, eps: self.eps, y: &mut y }.launch(&stream)
        };
        run().map_err(candle_core::Error::wrap)?;
        Ok((candle_core::CudaStorage::wrap_cuda_slice(out, device), x_at.shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{D, DType, Device};

    use super::*;

    /// The same by candle's own operations.
    fn expected(x: &Tensor, w: &Tensor, eps: f64) -> Result<Tensor> {
        let mean = x.sqr()?.mean_keepdim(D::Minus1)?;
        x.broadcast_div(&(mean + eps)?.sqrt()?)?.broadcast_mul(w)
    }

    #[test]
    fn rows_are_those_of_candle() -> Result<()> {
        for shape in [vec![1, 4], vec![5, 36], vec![2, 3, 1000], vec![64], vec![2, 2052]] {
            let n = *shape.last().expect("an axis");
            let x = Tensor::rand(-1.0_f32, 1.0, shape.clone(), &Device::Cpu)?;
            let w = Tensor::rand(0.5_f32, 1.5, n, &Device::Cpu)?;
            let y = rms_norm(&x, &w, 1e-5)?;
            assert_eq!(y.dims(), shape);
            let difference = (y - expected(&x, &w, 1e-5)?)?.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>()?;
            assert!(difference < 1e-5, "{shape:?}: {difference}");
        }
        Ok(())
    }

    #[test]
    fn parts_of_tensors_are_read_where_they_lie() -> Result<()> {
        let whole = Tensor::rand(-1.0_f32, 1.0, (6, 32), &Device::Cpu)?;
        let w = Tensor::rand(0.5_f32, 1.5, (3, 32), &Device::Cpu)?.get(2)?;
        let part = whole.narrow(0, 2, 3)?;
        let difference = (rms_norm(&part, &w, 0.5)? - expected(&part, &w, 0.5)?)?.abs()?.max_all()?;
        assert!(difference.to_scalar::<f32>()? < 1e-5);
        Ok(())
    }

    #[test]
    fn what_does_not_fit_is_an_error() -> Result<()> {
        let of = |x: &Tensor, w: &Tensor| rms_norm(x, w, 0.0).map(|_| ()).unwrap_err().to_string();
        let zeros = |shape: &[usize], kind| Tensor::zeros(shape, kind, &Device::Cpu);
        let message = of(&zeros(&[2, 6], DType::F32)?, &zeros(&[6], DType::F32)?);
        assert!(message.contains("N % 4") && message.contains("N = 6"), "{message}");
        let message = of(&zeros(&[2, 8], DType::F32)?, &zeros(&[4], DType::F32)?);
        assert!(message.contains("N would be 8 (x.shape[1]) and 4 (w.shape[0])"), "{message}");
        let message = of(&zeros(&[8, 8], DType::F32)?.narrow(1, 0, 4)?, &zeros(&[4], DType::F32)?);
        assert!(message.contains("contiguous"), "{message}");
        let message = of(&zeros(&[2, 8], DType::F64)?, &zeros(&[8], DType::F64)?);
        assert!(message.contains("F32") || message.contains("dtype"), "{message}");
        Ok(())
    }
}
