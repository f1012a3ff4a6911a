//! Kernels of Tilewright in a program that does everything else with `cudarc`: its memory, its streams, its graphs.
//! Nothing is copied between the two. Without a GPU it says so.

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, sys};
use tilewright::{Device, Stream, TensorMut, TensorRef, schedule};

schedule! {
    /// z = a·x + y
    pub kernel Saxpy(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N])
    where N % 4 == 0
    {
        z[i] = a * x[i] + y[i];

        launch threads(256);
        schedule z {
            split i by 4 -> io, v;
            split io by 256 -> b, t;
            bind b: grid;
            bind t: thread;
            vectorize v;
        }
    }
}

const N: usize = 1 << 16;

/// All elements of a slice have a value, when the work of a stream is done.
fn check(stream: &Arc<CudaStream>, slice: &CudaSlice<f32>, value: f32) -> Result<(), Box<dyn Error>> {
    let found = stream.clone_dtoh(slice)?;
    stream.synchronize()?;
    match found.iter().position(|element| *element != value) {
        Some(at) => Err(format!("element {at} is {}, not {value}", found[at]).into()),
        None => Ok(()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    match Device::cuda(0) {
        Ok(device) => println!("on {}", device.name()),
        Err(error @ (tilewright::Error::NoCuda { .. } | tilewright::Error::NoDevice { .. })) => {
            println!("no GPU here: {error}");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    }
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let (ones, halves) = (vec![1.0_f32; N], vec![0.5_f32; N]);
    let x = stream.clone_htod(&ones)?;
    let y = stream.clone_htod(&halves)?;
    let mut z = stream.alloc_zeros::<f32>(N)?;

    // Their memory, borrowed, on their stream: the launch comes after the copies above, and the copy below after it.
    let ours = Stream::from_cudarc(Arc::clone(&stream))?;
    Saxpy {
        a: 2.0,
        x: &TensorRef::from_cudarc(&x, [N])?,
        y: &TensorRef::from_cudarc(&y, [N])?,
        z: &mut TensorMut::from_cudarc(&mut z, [N])?,
    }
    .launch(&ours)?;
    check(&stream, &z, 2.5)?;
    println!("a launch on borrowed slices: as it must be");

    // Addresses of any other library: what its types would promise, the program does.
    let (address, _used) = x.device_ptr(&stream);
    // SAFETY: the slice has N elements of f32, lives longer than the view, and is used in the order of this stream.
    let raw = unsafe { TensorRef::<f32, 1>::from_raw_parts(&ours, address, [N], [1], &x) };

    // A launch that was checked once becomes a node of their graph.
    let mut sum = TensorMut::from_cudarc(&mut z, [N])?;
    let launch = Saxpy { a: 10.0, x: &raw, y: &TensorRef::from_cudarc(&y, [N])?, z: &mut sum }.prepare(&ours)?;
    stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
    // SAFETY: the stream is of the device's primary context; the launch and the slices outlive the graph, which runs on
    // this stream alone.
    let enqueued = unsafe { launch.enqueue(stream.cu_stream()) };
    let graph = stream.end_capture(sys::CUgraphInstantiate_flags(0))?.ok_or("nothing was captured")?;
    enqueued?;
    graph.launch()?;
    graph.launch()?;
    stream.synchronize()?;
    drop((graph, launch));
    check(&stream, &z, 10.5)?;
    println!("a launch in a captured graph: as it must be");
    Ok(())
}
