//! The runtime's GPU half, over a CUDA driver library without a GPU (`fake-driver`, which says what that shows and what
//! not).
//!
//! Each test runs itself again in a process that finds that library as `libcuda.so.1`, once for each order of
//! execution: work is done at once, as late as possible, or as a seed says.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "foreign memory, streams of another library")]

use std::path::{Path, PathBuf};
use std::process::Command;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, sys};
use tilewright::__private::{Arg, launch, prepare};
use tilewright::error::Reason;
use tilewright::kernel::KernelInfo;
use tilewright::{Device, Error, Graph, Pinned, Stream, Tensor, TensorMut, TensorRef, schedule};

schedule! {
    /// y = a·x + b
    kernel Affine(a: f32, b: f32, x: f32[N]) -> (y: f32[N]) {
        y[i] = a * x[i] + b;
        schedule y { split i by 128 -> g, t; bind g: grid; bind t: thread; }
    }

    /// x = a·x, in place
    kernel Multiply(a: f32, inout x: f32[N]) -> () {
        x[i] = a * x[i];
        schedule x { split i by 128 -> g, t; bind g: grid; bind t: thread; }
    }

    /// z = x + y
    kernel Add(x: f32[N], y: f32[N]) -> (z: f32[N])
    where N % 4 == 0
    {
        z[i] = x[i] + y[i];
        schedule z { split i by 4 -> q, v; split q by 32 -> g, t; bind g: grid; bind t: thread; vectorize v; }
    }

    /// Parameters of every width, in an order that needs padding
    kernel Mixed(a: u8, x: f64[M, N], b: i64, c: bool, d: u16, e: f32) -> (y: f64[M, N; ld, 1], s: i64[M]) {
        y[i, j] = if c { x[i, j] * e as f64 } else { (d as i64 + b) as f64 };
        s[i] = sum(|j in 0..N| b + a as i64 + j as i64);
        launch threads(32);
        schedule y { split j by 32 -> g, t; reorder i, g, t; bind i, g: grid; bind t: thread; }
        schedule s { split i by 32 -> g, t; bind g: grid; bind t: thread; }
    }

    #[allow(TW0491)]
    /// y\[r, c\] = Σ x\[i, c\] over all i with p\[i\] = r
    kernel Gathered(p: i32[N], x: u32[N, 3]) -> (y: u32[R, 3; ld, 1]) where ld >= 3 {
        y[p[i], c] = sum(|i| x[i, c]);
        schedule y { split i by 32 -> g, t; reorder g, t, c; bind g: grid; bind t: thread; }
    }

    /// The largest x\[i\] with p\[i\] = r
    kernel Largest(p: u8[N], x: i64[N]) -> (y: i64[R]) {
        y[p[i]] = max(|i| x[i]);
        schedule y { split i by 32 -> g, t; bind g: grid; bind t: thread; }
    }

    /// y\[p\[i\]\] = x\[i\], and 0 elsewhere
    kernel Moved(p: i64[N], x: f32[N]) -> (y: f32[R]) {
        y[p[i]] = only(|i| x[i]);
        schedule y { split i by 32 -> g, t; bind g: grid; bind t: thread; }
    }

    /// z = 3 · x, by blocks that take several tiles
    kernel Tiles(x: f32[N]) -> (z: f32[N]) {
        z[i] = x[i] * 3.0;
        launch persistent;
        schedule z { split i by 32 -> g, t; bind g: grid; bind t: thread; }
    }

    /// z = 3 · x, which may begin before the launch before it has ended
    kernel Next(x: f32[N]) -> (z: f32[N]) {
        z[i] = x[i] * 3.0;
        launch dependent;
        schedule z { split i by 32 -> g, t; bind g: grid; bind t: thread; }
    }

    /// Rows in shared memory, read from both ends: 64 KiB of each
    kernel Large(x: f32[M, 16384]) -> (y: f32[M, 16384]) {
        y[i, j] = x[i, j] - x[i, 16383 - j];
        launch threads(1024);
        schedule y { split j by 1024 -> r, t; bind i: grid; bind t: thread; }
        stage xs[i, j] = x in shared at y.i { split j by 1024 -> r, t; bind t: thread; }
    }

    /// y = Σ x, by all blocks
    kernel Total(x: f32[N]) -> (y: f32[]) {
        y[] = sum(|i| x[i]);
        schedule y { split i by 32 -> g, t; bind g: grid; bind t: thread; reduce t; reduce g by grid; }
    }
}

/// The library that cargo built beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let beside = test.parent().expect("in a folder").join("libtilewright_fake_driver.so");
    assert!(beside.exists(), "{} was not built", beside.display());
    beside
}

/// Runs a body in processes that find the fake driver, with these variables.
fn on_fake_driver(name: &str, orders: &[&str], variables: &[(&str, &str)], body: fn()) {
    const INSIDE: &str = "TILEWRIGHT_FAKE_DRIVER";
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fake-driver-{name}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let link = folder.join("libcuda.so.1");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(library(), &link).expect("a link");
    for order in orders {
        let mut command = Command::new(std::env::current_exe().expect("a test has a path"));
        command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
        command.env("LD_LIBRARY_PATH", &folder).env(INSIDE, "1").env("FAKE_CUDA_ORDER", order);
        command.envs(variables.iter().copied());
        let output = command.output().expect("the test runs itself");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("1 passed"), "order {order}: {}\n{text}", output.status);
    }
}

macro_rules! tests {
    ($($(#[$meta:meta])* fn $name:ident($orders:expr $(, $variable:literal = $value:literal)*) $body:block)*) => {
        $(
            $(#[$meta])*
            #[test]
            fn $name() {
                on_fake_driver(stringify!($name), &$orders, &[$(($variable, $value)),*], || $body);
            }
        )*
    };
}

const EVERY: [&str; 5] = ["early", "late", "1", "2", "3"];
const LATE: [&str; 1] = ["late"];

/// What one of the fake driver's own functions counts.
fn counted<const N: usize>(name: &str) -> [u64; N] {
    let mut counts = [0; N];
    // SAFETY: the fake driver is loaded, and its functions of such a name have one pointer to so many numbers.
    unsafe {
        let count = sys::culib().get::<extern "C" fn(*mut [u64; N]) -> u32>(name.as_bytes()).expect("the fake driver");
        assert_eq!(count(&raw mut counts), 0);
    }
    counts
}

/// Bytes allocated, live events, live streams, bytes of page-locked memory of the host.
fn live() -> [u64; 4] {
    counted("fakeLive")
}

/// Copies that were executed between host and device, and those of them with page-locked memory.
fn copies() -> [u64; 2] {
    counted("fakeCopies")
}

fn gpu() -> Device {
    let device = Device::cuda(0).expect("the fake driver has a device");
    assert!(!device.is_emulator() && device.name().contains("Fake GPU"), "{device:?}");
    device
}

fn numbers(n: usize, seed: u32) -> Vec<f32> {
    (0..n as u32).map(|i| ((i * 37 + seed * 101) % 64) as f32 / 4.0).collect()
}

/// A small generator of choices.
struct Choices(u64);

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

tests! {
    /// `tilewright tune --device`: launches are timed, and the record says where.
    fn candidates_are_timed(LATE) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("timed");
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("kernel.rs").to_string_lossy().into_owned();
        let text = "tilewright::schedule! { kernel Scale(a: f32, x: f32[N]) -> (y: f32[N]) { y[i] = a * x[i];
            tune T in [2048, 64, 128]; schedule y { split i by T -> b, t; bind b: grid; bind t: thread; } } }";
        std::fs::write(&path, text).expect("a file");
        let (dims, scalars) = (["N=1000".to_owned()], ["a=0.5".to_owned()]);
        let request = tilewright_cli::tune::Request {
            kernel: None, dims: &dims, scalars: &scalars, gpu: None, budget: 1, device: true, launches: 3, write: true,
        };
        let output = tilewright_cli::tune::tune(&path, &request, false);
        assert_eq!((output.errors.as_str(), output.status), ("", tilewright_cli::Status::Good), "{}", output.text);
        assert!(output.text.contains("3 combinations of T, measured"), "{}", output.text);
        assert!(output.text.contains("T = 2048: [TW0602]"), "{}", output.text);
        let file = tilewright_cli::source::SourceFile::read(&path).expect("Rust");
        assert_eq!(file.findings().text, "", "a record that is current");
        let tuned = file.kernels().next().and_then(|found| found.kernel.tuned.clone()).expect("constants");
        let record = tuned.record.expect("a record");
        let name = gpu().properties().expect("a GPU").expect("a GPU").name;
        assert_eq!((record.ranking.machine, record.ranking.measured), (name, true));
        assert_eq!(record.ranking.sizes, "N=1000");
        // Again, with the sizes of the record.
        let output = tilewright_cli::tune::tune(&path, &tilewright_cli::tune::Request { dims: &[], ..request }, true);
        assert!(output.text.contains("\"measured\": true"), "{}{}", output.text, output.errors);
    }

    fn the_best_device_is_the_gpu(LATE, "FAKE_CUDA_DEVICES" = "2") {
        let device = Device::best().unwrap();
        assert!(!device.is_emulator());
        assert_eq!((device.capability(), device.emulator_report().is_none()), (Some((9, 0)), true));
        assert_eq!(Device::cuda(2).unwrap_err(), Error::NoDevice { ordinal: 2, count: 2 });
        let x = Tensor::from_slice(&device, &[1.0_f32; 8], [8]).unwrap();
        let other = Device::cuda(1).unwrap();
        let mut y = Tensor::<f32, 1>::zeros(&device, [8]).unwrap();
        let refused = Affine { a: 1.0, b: 0.0, x: &x, y: &mut y }.launch(&other).unwrap_err();
        assert!(matches!(&refused, Error::Refused(r) if matches!(r.reason, Reason::OtherDevice { .. })), "{refused}");
        // The second device works as well, on a thread whose current context is the first one's.
        let mut z = Tensor::<f32, 1>::from_slice(&other, &[3.0; 8], [8]).unwrap();
        Multiply { a: 2.0, x: &mut z }.launch(&other).unwrap();
        Affine { a: 1.0, b: 0.5, x: &x, y: &mut y }.launch(&device).unwrap();
        assert_eq!((z.to_vec().unwrap(), y.to_vec().unwrap()), (vec![6.0; 8], vec![1.5; 8]));
    }

    fn copies_come_after_what_writes_and_devices_are_listed(EVERY, "FAKE_CUDA_DEVICES" = "2") {
        let devices = Device::all().unwrap();
        assert_eq!(devices.len(), 2);
        let properties = devices[1].properties().unwrap().unwrap();
        assert_eq!((properties.ordinal, properties.capability), (1, (9, 0)));
        assert!(properties.free_bytes <= properties.memory_bytes && properties.multiprocessors > 0);
        let device = gpu();
        let stream = device.new_stream().unwrap();
        let mut x = Tensor::from_vec(&device, numbers(512, 1), [512]).unwrap();
        let start = stream.record().unwrap();
        Multiply { a: 2.0, x: &mut x }.launch(&stream).unwrap();
        // The copy waits for the launch before it, and the launch after it for the copy.
        let copy = x.try_clone().unwrap();
        let part = x.slice(0, 100..).unwrap().to_tensor(&device).unwrap();
        Multiply { a: 0.0, x: &mut x }.launch(&stream).unwrap();
        let end = stream.record().unwrap();
        let doubled: Vec<f32> = numbers(512, 1).iter().map(|x| 2.0 * x).collect();
        assert_eq!(copy.to_vec().unwrap(), doubled);
        assert_eq!(part.to_vec().unwrap(), doubled[100..]);
        assert_eq!(copy.to_device(&devices[1]).unwrap().to_vec().unwrap(), doubled);
        assert_eq!(x.to_vec().unwrap(), [0.0; 512]);
        assert!(end.since(&start).unwrap() > std::time::Duration::ZERO);
        let halves = Tensor::full(&device, 0.5_f32, [70_000]).unwrap();
        assert!(halves.to_vec().unwrap().iter().all(|x| *x == 0.5));
    }

    /// Copies with page-locked memory are in the order of the calls, whatever stream they and the launches are on.
    fn copies_of_pinned_memory_keep_their_order(EVERY) {
        const N: usize = 200;
        let device = gpu();
        let (first, second) = (device.new_stream().unwrap(), device.new_stream().unwrap());
        let mut x = Tensor::from_vec(&device, numbers(N, 1), [N]).unwrap();
        let mut y = Tensor::<f32, 1>::zeros(&device, [N]).unwrap();
        let [pageable, locked] = copies();
        assert!(Pinned::<u64>::zeros(&device, 100).unwrap().iter().all(|bits| *bits == 0));
        let mut host = Pinned::from_slice(&device, &numbers(N, 2)).unwrap();
        assert_eq!(live()[3], 4 * N as u64);
        for round in 3..8 {
            let sent = host.to_vec();
            // The launch before the copy sees the old elements, the one after it the new ones.
            Affine { a: 1.0, b: 0.0, x: &x, y: &mut y }.launch(&second).unwrap();
            let old = y.copy_to_pinned(Pinned::zeros(&device, N).unwrap(), &first).unwrap();
            let sending = x.copy_from_pinned(host, &first).unwrap();
            Affine { a: 2.0, b: 1.0, x: &x, y: &mut y }.launch(&second).unwrap();
            let new = y.copy_to_pinned(Pinned::zeros(&device, N).unwrap(), &device).unwrap();
            // What writes it later comes after the copy.
            Multiply { a: 0.0, x: &mut y }.launch(&first).unwrap();
            host = sending.wait().unwrap();
            assert_eq!(*host, sent, "the source is as it was");
            let new = new.wait().unwrap();
            assert!(new.iter().zip(&sent).all(|(new, sent)| *new == 2.0 * sent + 1.0), "{new:?}");
            assert_eq!(*old.wait().unwrap(), numbers(N, round - 2));
            host.copy_from_slice(&numbers(N, round));
            // Round by round what was sent is what the next one finds.
            assert_eq!(sent, numbers(N, round - 1));
        }
        assert_eq!(copies(), [pageable + 15, locked + 15], "every copy is one of the fast ones");
        drop((x, y, host));
        device.synchronize().unwrap();
        assert_eq!((live()[0], live()[3]), (0, 0));
    }

    /// Neither a transfer that is dropped nor one that is forgotten frees memory that a copy still uses (the driver
    /// would abort), and the copy is done all the same.
    fn pinned_memory_stays_while_a_copy_is_under_way(EVERY) {
        let device = gpu();
        let stream = device.new_stream().unwrap();
        let mut x = Tensor::<f32, 1>::zeros(&device, [64]).unwrap();
        let host = Pinned::from_slice(&device, &numbers(64, 1)).unwrap();
        drop(x.copy_from_pinned(host, &stream).unwrap());
        assert_eq!(live()[3], 0);
        assert_eq!(x.to_vec().unwrap(), numbers(64, 1));
        let host = Pinned::from_slice(&device, &numbers(64, 2)).unwrap();
        std::mem::forget(x.copy_from_pinned(host, &stream).unwrap());
        let into = x.copy_to_pinned(Pinned::zeros(&device, 64).unwrap(), &stream).unwrap();
        std::mem::forget(x.copy_to_pinned(Pinned::zeros(&device, 64).unwrap(), &device).unwrap());
        // The tensor and the stream go first.
        drop((x, stream));
        assert_eq!(*into.wait().unwrap(), numbers(64, 2));
        device.synchronize().unwrap();
        assert_eq!((live()[0], live()[3]), (0, 2 * 64 * 4), "what was forgotten stays");
    }

    fn transfers_tell_whether_they_are_done(LATE) {
        let device = gpu();
        let stream = device.new_stream().unwrap();
        let mut x = Tensor::<u8, 2>::zeros(&device, [8, 8]).unwrap();
        let host = Pinned::from_slice(&device, &[7_u8; 16]).unwrap();
        let (_, mut lower) = x.split_at_mut(0, 6).unwrap();
        let transfer = lower.copy_from_pinned(host, &stream).unwrap();
        assert!(!transfer.is_done().unwrap(), "nothing runs before somebody waits");
        stream.synchronize().unwrap();
        assert!(transfer.is_done().unwrap());
        assert_eq!(*transfer.wait().unwrap(), [7; 16]);
        assert_eq!(x.to_vec().unwrap()[40..], [[0; 8], [7; 8], [7; 8]].concat());
        let none = Pinned::<u8>::zeros(&device, 0).unwrap();
        assert!(x.slice(0, 3..3).unwrap().copy_to_pinned(none, &stream).unwrap().wait().unwrap().is_empty());
    }

    /// Bytes of the device that are no `bool` are none on the host either.
    fn copied_elements_are_values_of_their_type(LATE) {
        let device = gpu();
        let context = CudaContext::new(0).unwrap();
        let host = [0_u8, 1, 2, 255];
        let slice: CudaSlice<u8> = context.default_stream().clone_htod(&host).unwrap();
        context.default_stream().synchronize().unwrap();
        let address = {
            use cudarc::driver::DevicePtr;
            slice.device_ptr(slice.stream()).0
        };
        // SAFETY: the slice lives longer, and nothing else uses it; that not all of it is `bool` is what is tested.
        let flags = unsafe { TensorRef::<bool, 1>::from_raw_parts(device.as_ref(), address, [4], [1], &slice) };
        let into = Pinned::<bool>::zeros(&device, 4).unwrap();
        let flags = flags.copy_to_pinned(into, &device).unwrap().wait().unwrap();
        assert_eq!(flags.iter().map(|&flag| u8::from(flag)).collect::<Vec<_>>(), [0, 1, 1, 1]);
    }

    /// After a fault the device may still use the memory: it is an error, and it stays.
    fn after_a_fault_pinned_memory_is_given_up(LATE) {
        let device = gpu();
        let mut y = Tensor::<f32, 1>::zeros(&device, [64]).unwrap();
        // SAFETY: this breaks the promise on purpose: nothing is there. The fake device survives it.
        let nowhere = unsafe { TensorRef::<f32, 1>::from_raw_parts(device.as_ref(), 0x100, [64], [1], &()) };
        let host = Pinned::<f32>::zeros(&device, 64).unwrap();
        let launched = Affine { a: 1.0, b: 0.0, x: &nowhere, y: &mut y }.launch(&device);
        let told = launched.and_then(|()| y.copy_to_pinned(host, &device)).and_then(|copy| copy.wait().map(|_| ()));
        assert!(matches!(&told, Err(Error::Cuda { code, .. }) if code.contains("ILLEGAL_ADDRESS")), "{told:?}");
        assert_eq!(live()[3], 4 * 64, "it was not freed");
        assert!(matches!(Pinned::<f32>::zeros(&device, 4), Err(Error::Cuda { .. })));
    }

    fn pinned_memory_is_of_its_device(LATE, "FAKE_CUDA_DEVICES" = "2") {
        let emulator = Device::emulator(tilewright::EmulatorOptions::default());
        let (device, other) = (gpu(), Device::cuda(1).unwrap());
        let mut x = Tensor::<f32, 1>::zeros(&device, [4]).unwrap();
        let mut of = |host: &Device, stream: &Device| {
            let host = Pinned::from_slice(host, &[1.0, 2.0, 3.0, 4.0]).unwrap();
            x.copy_from_pinned(host, stream).and_then(|copy| copy.wait().map(|_| ())).map_err(|e| e.to_string())
        };
        // Memory that one GPU has locked is locked for all of them.
        of(&other, &device).unwrap();
        let refused = of(&device, &other).unwrap_err();
        assert!(refused.contains("the stream on another device, cuda:1"), "{refused}");
        let refused = of(&emulator, &device).unwrap_err();
        assert!(refused.contains("allocated for the emulator, the tensor is on cuda:0"), "{refused}");
        assert_eq!(x.to_vec().unwrap(), [1.0, 2.0, 3.0, 4.0]);
        let mut y = Tensor::<f32, 1>::zeros(&emulator, [4]).unwrap();
        let refused = y.copy_from_pinned(Pinned::zeros(&device, 4).unwrap(), &emulator).unwrap_err().to_string();
        assert!(refused.contains("allocated for a GPU, the tensor is on emulator"), "{refused}");
    }

    fn without_devices_the_emulator_is_best(LATE, "FAKE_CUDA_DEVICES" = "0") {
        assert!(matches!(Device::cuda(0), Err(Error::NoCuda { .. })));
        assert!(Device::best().unwrap().is_emulator());
    }

    fn results_are_those_of_the_reference(EVERY) {
        let device = gpu();
        for n in [0, 1, 4, 127, 128, 1000] {
            let x = Tensor::from_slice(&device, &numbers(n, 1), [n]).unwrap();
            let mut y = Tensor::<f32, 1>::uninit(&device, [n]).unwrap();
            let expected = Affine { a: 3.0, b: -1.0, x: &x, y: &mut y }.reference().unwrap();
            Affine { a: 3.0, b: -1.0, x: &x, y: &mut y }.launch(&device).unwrap();
            expected.check("y", &y).unwrap();
        }
        for (m, n) in [(1, 1), (3, 40), (33, 5)] {
            let data: Vec<f64> = numbers(m * n, 2).into_iter().map(f64::from).collect();
            let x = Tensor::from_slice(&device, &data, [m, n]).unwrap();
            let mut whole = Tensor::from_slice(&device, &vec![-7.0_f64; m * (n + 3)], [m, n + 3]).unwrap();
            let mut s = Tensor::<i64, 1>::uninit(&device, [m]).unwrap();
            let mut y = whole.view_mut().slice(1, 0..n).unwrap();
            let kernel = Mixed { a: 200, x: &x, b: -1 << 40, c: m != 3, d: 65535, e: 0.5, y: &mut y, s: &mut s };
            let expected = kernel.reference().unwrap();
            for wide in [false, true] {
                let mut info: KernelInfo = Mixed::KERNEL.clone();
                if wide {
                    let last = info.entries.last().cloned().expect("an entry point");
                    info.entries = vec![last].into();
                }
                let arguments = [
                    Arg::scalar(&200_u8), Arg::input(&x), Arg::scalar(&(-1_i64 << 40)), Arg::scalar(&(m != 3)),
                    Arg::scalar(&65535_u16), Arg::scalar(&0.5_f32), Arg::output(&mut y), Arg::output(&mut s),
                ];
                launch(&info, &arguments, device.as_ref()).unwrap();
                expected.check("y", &y).unwrap();
                expected.check("s", &s).unwrap();
            }
            drop(y);
            assert!(whole.to_vec().unwrap().chunks(n + 3).all(|row| row[n..] == [-7.0; 3]), "the gaps are untouched");
        }
    }

    /// Random launches on random streams, copies between them: every result is that of the order of the calls.
    fn conflicts_keep_their_order_over_streams(EVERY) {
        const N: usize = 200;
        let device = gpu();
        let mut streams: Vec<Stream> = (0..4).map(|_| device.new_stream().unwrap()).collect();
        let mut mirror: Vec<Vec<f32>> = (0..5).map(|k| numbers(N, k)).collect();
        let mut tensors: Vec<Tensor<f32, 1>> =
            mirror.iter().map(|m| Tensor::from_slice(&device, m, [N]).unwrap()).collect();
        let mut choices = Choices(7);
        for step in 0..150 {
            let (from, into) = (choices.below(5), choices.below(5));
            let stream = streams[choices.below(4)].clone();
            match choices.below(8) {
                0 => {
                    mirror[into] = numbers(N, step);
                    tensors[into].copy_from_slice(&mirror[into]).unwrap();
                }
                1 => assert_eq!(tensors[from].to_vec().unwrap(), mirror[from], "step {step}"),
                2 => {
                    mirror[into].iter_mut().for_each(|v| *v *= 0.5);
                    Multiply { a: 0.5, x: &mut tensors[into] }.launch(&stream).unwrap();
                }
                3 => {
                    // A new tensor takes the place of one whose launches may be pending.
                    tensors[into] = Tensor::zeros(&device, [N]).unwrap();
                    mirror[into] = vec![0.0; N];
                }
                4 => {
                    // A stream goes while its work is pending.
                    let at = choices.below(4);
                    streams[at] = device.new_stream().unwrap();
                }
                _ if from != into => {
                    mirror[into] = mirror[from].iter().map(|v| 0.5 * v + 1.0).collect();
                    let [x, y] = tensors.get_disjoint_mut([from, into]).unwrap();
                    Affine { a: 0.5, b: 1.0, x, y }.launch(&stream).unwrap();
                }
                _ => {}
            }
        }
        for (tensor, expected) in tensors.iter().zip(&mirror) {
            assert_eq!(tensor.to_vec().unwrap(), *expected);
        }
        drop((tensors, streams));
        device.synchronize().unwrap();
        assert_eq!(live()[0], 0, "every byte was freed");
    }

    fn threads_share_tensors(EVERY) {
        const N: usize = 64;
        let device = gpu();
        let shared = Tensor::from_slice(&device, &numbers(N, 3), [N]).unwrap();
        std::thread::scope(|scope| {
            for k in 0..4_u8 {
                let (device, shared) = (&device, &shared);
                scope.spawn(move || {
                    let stream = device.new_stream().unwrap();
                    let mut own = Tensor::<f32, 1>::uninit(device, [N]).unwrap();
                    for _ in 0..10 {
                        Affine { a: 1.0, b: f32::from(k), x: shared, y: &mut own }.launch(&stream).unwrap();
                        Multiply { a: 2.0, x: &mut own }.launch(device).unwrap();
                    }
                    let expected: Vec<f32> = numbers(N, 3).iter().map(|v| 2.0 * (v + f32::from(k))).collect();
                    assert_eq!(own.to_vec().unwrap(), expected);
                });
            }
        });
    }

    fn memory_outlives_its_launches(EVERY) {
        let device = gpu();
        let mut z = Tensor::<f32, 1>::zeros(&device, [256]).unwrap();
        let again = {
            let stream = device.new_stream().unwrap();
            let x = Tensor::from_slice(&device, &numbers(256, 1), [256]).unwrap();
            let y = Tensor::from_slice(&device, &numbers(256, 2), [256]).unwrap();
            Add { x: &x, y: &y, z: &mut z }.launch(&stream).unwrap();
            Add { x: &x, y: &y, z: &mut z }.prepare(&stream).unwrap()
        };
        let expected: Vec<f32> = numbers(256, 1).iter().zip(numbers(256, 2)).map(|(a, b)| a + b).collect();
        assert_eq!(z.to_vec().unwrap(), expected);
        z.copy_from_slice(&[0.0; 256]).unwrap();
        again.run().unwrap();
        again.run().unwrap();
        assert_eq!(z.to_vec().unwrap(), expected);
        drop((again, z));
        device.synchronize().unwrap();
        let [bytes, events, streams, _] = live();
        assert_eq!((bytes, events), (0, 0));
        assert_eq!(streams, 2, "the device's own and the one for copies");
    }

    fn graphs_order_what_conflicts(EVERY) {
        let device = gpu();
        let stream = device.new_stream().unwrap();
        let x = Tensor::from_slice(&device, &numbers(128, 1), [128]).unwrap();
        let [mut a, mut b, mut c] = [(); 3].map(|()| Tensor::<f32, 1>::zeros(&device, [128]).unwrap());
        let launches = [
            Affine { a: 2.0, b: 0.0, x: &x, y: &mut a }.prepare(&device).unwrap(),
            Affine { a: 1.0, b: 1.0, x: &x, y: &mut b }.prepare(&stream).unwrap(),
            Add { x: &a, y: &b, z: &mut c }.prepare(&device).unwrap(),
            Multiply { a: 10.0, x: &mut a }.prepare(&device).unwrap(),
            Multiply { a: 0.5, x: &mut c }.prepare(&device).unwrap(),
        ];
        let mut graph = Graph::new(&device, launches).unwrap();
        for round in 0..3 {
            graph.run(if round == 1 { &stream } else { device.as_ref() }).unwrap();
        }
        let host = numbers(128, 1);
        assert_eq!(c.to_vec().unwrap(), host.iter().map(|v| (3.0 * v + 1.0) * 0.5).collect::<Vec<_>>());
        assert_eq!(a.to_vec().unwrap(), host.iter().map(|v| 20.0 * v).collect::<Vec<_>>());
        drop((x, a, b));
        graph.run(&stream).unwrap();
        drop(graph);
        assert_eq!(c.to_vec().unwrap(), host.iter().map(|v| (3.0 * v + 1.0) * 0.5).collect::<Vec<_>>());
        drop((c, stream));
        device.synchronize().unwrap();
        assert_eq!(live()[..2], [0, 0]);
    }

    /// Each launch fills its output first, and nothing beside it: on streams, prepared, in graphs, and captured.
    fn outputs_are_filled_before(EVERY) {
        let device = gpu();
        let stream = device.new_stream().unwrap();
        // A part of rows of 8, of which the launches may touch three columns.
        let mut all = Tensor::full(&device, 900_u32, [6, 8]).unwrap();
        let p = Tensor::from_slice(&device, &[1, 3, 1, 77, -1], [5]).unwrap();
        let x = Tensor::from_slice(&device, &(0..15).collect::<Vec<u32>>(), [5, 3]).unwrap();
        let none = Tensor::from_slice(&device, &[0_i32; 0], [0]).unwrap();
        let nothing = Tensor::from_slice(&device, &[0_u32; 0], [0, 3]).unwrap();
        let rows = |sums: bool| -> Vec<u32> {
            let of = |r: u32, c: u32| match (r, c) {
                (1..5, 2..5) if sums && r == 2 => 6 + 2 * (c - 2),
                (1..5, 2..5) if sums && r == 4 => 3 + c - 2,
                (1..5, 2..5) => 0,
                _ => 900,
            };
            (0..6).flat_map(|r| (0..8).map(move |c| of(r, c))).collect()
        };
        for on in [device.as_ref(), &stream, device.as_ref()] {
            let mut y = all.view_mut().slice(0, 1..5).unwrap().slice(1, 2..5).unwrap();
            Gathered { p: &p, x: &x, y: &mut y }.launch(on).unwrap();
            Gathered { p: &p, x: &x, y: &mut y }.launch(on).unwrap();
        }
        assert_eq!(all.to_vec().unwrap(), rows(true));
        // Without terms nothing is launched, and the output is what a sum of no terms is.
        {
            let mut y = all.view_mut().slice(0, 1..5).unwrap().slice(1, 2..5).unwrap();
            Gathered { p: &none, x: &nothing, y: &mut y }.launch(&stream).unwrap();
        }
        assert_eq!(all.to_vec().unwrap(), rows(false));

        // A number of 8 bytes that is no repetition; and what a graph launches anew each time.
        let (bins, values) = (Tensor::from_slice(&device, &[2_u8, 2, 0], [3]).unwrap(), [-5_i64, -9, 7]);
        let values = Tensor::from_slice(&device, &values, [3]).unwrap();
        let mut best = Tensor::full(&device, 1_i64, [4]).unwrap();
        let expected = [7, i64::MIN, -5, i64::MIN];
        Largest { p: &bins, x: &values, y: &mut best }.launch(&device).unwrap();
        assert_eq!(best.to_vec().unwrap(), expected);
        let places = Tensor::from_slice(&device, &[3_i64, 0, -1, -1], [4]).unwrap();
        let floats = Tensor::from_slice(&device, &[1.5_f32, 2.5, 3.5, 4.5], [4]).unwrap();
        let mut moved = Tensor::full(&device, 9.0_f32, [5]).unwrap();
        let no_bins = Tensor::from_slice(&device, &[0_u8; 0], [0]).unwrap();
        let no_values = Tensor::from_slice(&device, &[0_i64; 0], [0]).unwrap();
        let mut least = Tensor::full(&device, 3_i64, [2]).unwrap();
        let launches = [
            Largest { p: &bins, x: &values, y: &mut best }.prepare(&device).unwrap(),
            Moved { p: &places, x: &floats, y: &mut moved }.prepare(&stream).unwrap(),
            Multiply { a: 2.0, x: &mut moved }.prepare(&device).unwrap(),
            Largest { p: &no_bins, x: &no_values, y: &mut least }.prepare(&device).unwrap(),
        ];
        let mut graph = Graph::new(&device, launches).unwrap();
        for round in 0..3 {
            best.copy_from_slice(&[round; 4]).unwrap();
            moved.copy_from_slice(&[round as f32; 5]).unwrap();
            least.copy_from_slice(&[round; 2]).unwrap();
            graph.run(if round == 1 { &stream } else { device.as_ref() }).unwrap();
            assert_eq!(best.to_vec().unwrap(), expected);
            assert_eq!(moved.to_vec().unwrap(), [5.0, 0.0, 0.0, 3.0, 0.0]);
            assert_eq!(least.to_vec().unwrap(), [i64::MIN; 2]);
        }
        drop(graph);

        let context = CudaContext::new(0).unwrap();
        let theirs = context.new_stream().unwrap();
        let prepared = Moved { p: &places, x: &floats, y: &mut moved }.prepare(&device).unwrap();
        let empty = Largest { p: &no_bins, x: &no_values, y: &mut least }.prepare(&device).unwrap();
        device.synchronize().unwrap();
        theirs.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
        // SAFETY: both launches live until the graph is gone, and nothing else uses their tensors while it runs.
        unsafe {
            prepared.enqueue(theirs.cu_stream()).unwrap();
            empty.enqueue(theirs.cu_stream()).unwrap();
        }
        let captured = theirs.end_capture(sys::CUgraphInstantiate_flags(0)).unwrap().expect("a graph");
        for _ in 0..2 {
            moved.copy_from_slice(&[8.0; 5]).unwrap();
            least.copy_from_slice(&[8; 2]).unwrap();
            captured.launch().unwrap();
            theirs.synchronize().unwrap();
            assert_eq!(moved.to_vec().unwrap(), [2.5, 0.0, 0.0, 1.5, 0.0]);
            assert_eq!(least.to_vec().unwrap(), [i64::MIN; 2]);
        }
        // A GPU does not look at promises: one of the terms is there.
        let twice = Tensor::from_slice(&device, &[2_i64, 2, -1, -1], [4]).unwrap();
        Moved { p: &twice, x: &floats, y: &mut moved }.launch(&device).unwrap();
        let found = moved.to_vec().unwrap();
        assert!([1.5, 2.5].contains(&found[2]) && found[..2] == [0.0; 2] && found[3..] == [0.0; 2], "{found:?}");
        assert!(Moved { p: &twice, x: &floats, y: &mut moved }.reference().is_err());
    }

    /// Launches and copies of ours between theirs, on their stream; ours on other streams wait for it.
    fn streams_of_cudarc_take_launches(EVERY) {
        let device = gpu();
        let context = CudaContext::new(0).unwrap();
        let theirs = context.new_stream().unwrap();
        let stream = Stream::from_cudarc(std::sync::Arc::clone(&theirs)).unwrap();
        let mut x = Tensor::from_slice(&device, &numbers(64, 5), [64]).unwrap();
        for _ in 0..3 {
            Multiply { a: 2.0, x: &mut x }.launch(&stream).unwrap();
            Multiply { a: 0.5, x: &mut x }.launch(&device).unwrap();
        }
        Multiply { a: 2.0, x: &mut x }.launch(&stream).unwrap();
        let host = x.copy_to_pinned(Pinned::zeros(&device, 64).unwrap(), &stream).unwrap().wait().unwrap();
        assert_eq!(*host, numbers(64, 5).iter().map(|v| 2.0 * v).collect::<Vec<_>>());
        let mut sum = Tensor::<f32, 0>::zeros(&device, []).unwrap();
        let ones = Tensor::full(&device, 1.0_f32, [500]).unwrap();
        Total { x: &ones, y: &mut sum }.launch(&stream).unwrap();
        assert_eq!(sum.to_vec().unwrap(), [500.0]);
        // The stream outlives their handle, and its events those of ours.
        let before = stream.record().unwrap();
        drop((theirs, context));
        Multiply { a: 2.0, x: &mut x }.launch(&stream).unwrap();
        assert!(stream.record().unwrap().since(&before).is_ok());
        drop((stream, sum));
        assert_eq!(x.to_vec().unwrap(), numbers(64, 5).iter().map(|v| 4.0 * v).collect::<Vec<_>>());
        drop((x, ones));
        device.synchronize().unwrap();
        assert_eq!(live()[0], 0);
        let each = CudaContext::new(0).unwrap().per_thread_stream();
        let refused = Stream::from_cudarc(each).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("another one on every thread"), "{refused}");
        let legacy = Stream::from_cudarc(CudaContext::new(0).unwrap().default_stream()).unwrap();
        let mut y = Tensor::full(&device, 1.5_f32, [8]).unwrap();
        Multiply { a: 2.0, x: &mut y }.launch(&legacy).unwrap();
        assert_eq!(y.to_vec().unwrap(), [3.0; 8]);
    }

    /// Slices that `cudarc` keeps are arguments while they are borrowed, on every stream.
    fn slices_of_cudarc_are_borrowed(EVERY) {
        let device = gpu();
        let context = CudaContext::new(0).unwrap();
        let (theirs, second) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let (host, more) = (numbers(96, 5), numbers(96, 6));
        let x: CudaSlice<f32> = theirs.clone_htod(&host).unwrap();
        let mut y: CudaSlice<f32> = second.alloc_zeros(96).unwrap();
        // Their copy on another stream than the slice's: the view waits for it.
        theirs.memcpy_htod(&more, &mut y).unwrap();
        let other = device.new_stream().unwrap();
        {
            let mut y = TensorMut::from_cudarc(&mut y, [96]).unwrap();
            Multiply { a: 2.0, x: &mut y }.launch(&other).unwrap();
            assert_eq!(y.to_vec().unwrap(), more.iter().map(|v| 2.0 * v).collect::<Vec<_>>());
            let x = TensorRef::from_cudarc(&x, [96]).unwrap();
            Affine { a: 1.0, b: 2.0, x: &x, y: &mut y }.launch(&other).unwrap();
            let (_, mut tail) = y.split_at(0, 64).unwrap();
            Affine { a: 0.0, b: 7.0, x: &x.slice(0, ..32).unwrap(), y: &mut tail }.launch(&device).unwrap();
        }
        // They read it on the slice's own stream, without any waiting in between; then the slice is gone at once.
        let found = second.clone_dtoh(&y).unwrap();
        let mut out = Tensor::<f32, 1>::zeros(&device, [96]).unwrap();
        Affine { a: 3.0, b: 0.0, x: &TensorRef::from_cudarc(&x, [96]).unwrap(), y: &mut out }.launch(&other).unwrap();
        drop(x);
        second.synchronize().unwrap();
        let expected = host.iter().enumerate().map(|(i, v)| if i < 64 { v + 2.0 } else { 7.0 });
        assert_eq!(found, expected.collect::<Vec<_>>());
        assert_eq!(out.to_vec().unwrap(), host.iter().map(|v| 3.0 * v).collect::<Vec<_>>());
        let wrong = TensorRef::from_cudarc(&y, [95]).map(|_| ()).unwrap_err();
        assert_eq!(wrong, Error::Length { shape: vec![95], expected: 95, found: 96 });
        drop((y, out, other));
        context.synchronize().unwrap();
        device.synchronize().unwrap();
        assert_eq!(live()[0], 0);
    }

    /// Prepared launches become part of a graph of `cudarc`; other uses of a stream that is captured are refused, and
    /// the capture goes on.
    fn launches_are_captured(EVERY) {
        let device = gpu();
        let context = CudaContext::new(0).unwrap();
        let theirs = context.new_stream().unwrap();
        let stream = Stream::from_cudarc(std::sync::Arc::clone(&theirs)).unwrap();
        let mut x = Tensor::from_slice(&device, &numbers(64, 5), [64]).unwrap();
        let mut y = Tensor::<f32, 1>::zeros(&device, [64]).unwrap();
        let double = Multiply { a: 2.0, x: &mut x }.prepare(&stream).unwrap();
        let affine = Affine { a: 1.0, b: 1.0, x: &x, y: &mut y }.prepare(&stream).unwrap();
        device.synchronize().unwrap();
        let given: CudaSlice<f32> = theirs.alloc_zeros(4).unwrap();
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        theirs.begin_capture(mode).unwrap();
        // SAFETY: both launches live until the graph is gone, and nothing else uses their tensors while it runs.
        unsafe {
            double.enqueue(theirs.cu_stream()).unwrap();
            affine.enqueue(theirs.cu_stream()).unwrap();
        }
        let refused = |what: Result<(), Error>| {
            let error = what.unwrap_err().to_string();
            assert!(error.contains("the stream is being captured"), "{error}");
        };
        refused(double.run());
        refused(stream.synchronize());
        refused(stream.record().map(|_| ()));
        refused(x.copy_to_pinned(Pinned::zeros(&device, 64).unwrap(), &stream).map(|_| ()));
        refused(TensorRef::from_cudarc(&given, [4]).map(|_| ()));
        assert_eq!(live()[3], 0, "page-locked memory is not lost where nothing was enqueued");
        let graph = theirs.end_capture(sys::CUgraphInstantiate_flags(0)).unwrap().expect("a graph");
        assert_eq!(x.to_vec().unwrap(), numbers(64, 5), "nothing has run yet");
        for _ in 0..3 {
            graph.launch().unwrap();
        }
        theirs.synchronize().unwrap();
        let expected: Vec<f32> = numbers(64, 5).iter().map(|v| 8.0 * v).collect();
        assert_eq!(x.to_vec().unwrap(), expected);
        assert_eq!(y.to_vec().unwrap(), expected.iter().map(|v| v + 1.0).collect::<Vec<_>>());
        double.run().unwrap();
        assert_eq!(x.to_vec().unwrap(), expected.iter().map(|v| 2.0 * v).collect::<Vec<_>>());
    }

    fn slices_are_handed_over_and_back(EVERY) {
        hand_over();
    }

    fn slices_are_handed_over_and_back_without_pools(EVERY, "FAKE_CUDA_POOLS" = "0") {
        hand_over();
    }

    /// Memory of another library, used in the order of a stream of ours.
    fn foreign_memory_is_used_in_the_order_of_its_stream(EVERY) {
        let device = gpu();
        let context = CudaContext::new(0).unwrap();
        let theirs = context.new_stream().unwrap();
        let host = numbers(64, 5);
        let slice: CudaSlice<f32> = theirs.clone_htod(&host).unwrap();
        theirs.synchronize().unwrap();
        let (home, other) = (device.new_stream().unwrap(), device.new_stream().unwrap());
        let mut y = Tensor::<f32, 1>::uninit(&device, [64]).unwrap();
        let address = {
            use cudarc::driver::DevicePtr;
            slice.device_ptr(&theirs).0
        };
        {
            let mut owner = &slice;
            // SAFETY: the slice lives longer, and nothing else uses it.
            let mut view = unsafe { TensorMut::<f32, 1>::from_raw_parts(&home, address, [64], [1], &mut owner) };
            Multiply { a: 2.0, x: &mut view }.launch(&home).unwrap();
            Multiply { a: 2.0, x: &mut view }.launch(&other).unwrap();
            Multiply { a: 2.0, x: &mut view }.launch(&home).unwrap();
            Affine { a: 1.0, b: 0.0, x: &view, y: &mut y }.launch(&other).unwrap();
        }
        // SAFETY: as above; another view, ordered by the same stream.
        let view = unsafe { TensorRef::<f32, 1>::from_raw_parts(&home, address, [64], [1], &slice) };
        let expected: Vec<f32> = numbers(64, 5).iter().map(|v| 8.0 * v).collect();
        assert_eq!(view.to_vec().unwrap(), expected);
        assert_eq!(y.to_vec().unwrap(), expected);
        {
            let mut owner = &slice;
            // SAFETY: as above.
            let mut view = unsafe { TensorMut::<f32, 1>::from_raw_parts(&home, address, [64], [1], &mut owner) };
            Multiply { a: 0.25, x: &mut view }.launch(&other).unwrap();
        }
        // What ran on another stream has happened for whoever waits for the home stream.
        home.synchronize().unwrap();
        let expected: Vec<f32> = numbers(64, 5).iter().map(|v| 2.0 * v).collect();
        let copied = theirs.clone_dtoh(&slice).unwrap();
        theirs.synchronize().unwrap();
        assert_eq!(copied, expected);
    }

    fn prepared_launches_run_on_streams_of_others(EVERY) {
        let device = gpu();
        let context = CudaContext::new(0).unwrap();
        let theirs = context.new_stream().unwrap();
        let x = Tensor::from_slice(&device, &numbers(64, 5), [64]).unwrap();
        let mut y = Tensor::<f32, 1>::zeros(&device, [64]).unwrap();
        let launch = Affine { a: 1.0, b: 2.0, x: &x, y: &mut y }.prepare(&device).unwrap();
        device.synchronize().unwrap();
        // SAFETY: both tensors live, and nothing else uses them until the stream is waited for.
        unsafe { launch.enqueue(theirs.cu_stream()) }.unwrap();
        theirs.synchronize().unwrap();
        assert_eq!(y.to_vec().unwrap(), numbers(64, 5).iter().map(|v| v + 2.0).collect::<Vec<_>>());
    }

    /// The device runs two blocks at one time, which take all tiles; prepared, and in a graph.
    fn persistent_launches_have_as_many_blocks_as_run_at_one_time(LATE) {
        let device = gpu();
        for n in [1, 32, 33, 500] {
            let host = numbers(n, 3);
            let expected: Vec<f32> = host.iter().map(|v| v * 3.0).collect();
            let x = Tensor::from_slice(&device, &host, [n]).unwrap();
            let mut z = Tensor::zeros(&device, [n]).unwrap();
            let launch = Tiles { x: &x, z: &mut z }.prepare(&device).unwrap();
            let blocks = if n <= 32 { "1 blocks" } else { "2 blocks" };
            assert!(format!("{launch:?}").contains(blocks), "{launch:?}");
            launch.run().unwrap();
            assert_eq!(z.to_vec().unwrap(), expected);
            let mut z = Tensor::zeros(&device, [n]).unwrap();
            let launch = Tiles { x: &x, z: &mut z }.prepare(&device).unwrap();
            Graph::new(&device, [launch]).unwrap().run(device.as_ref()).unwrap();
            assert_eq!(z.to_vec().unwrap(), expected);
        }
    }

    /// Each waits for the one before it, directly and in a graph.
    fn dependent_launches_follow_each_other(EVERY) {
        let device = gpu();
        let host = numbers(100, 3);
        let x = Tensor::from_slice(&device, &host, [100]).unwrap();
        let [mut y, mut z] = [(); 2].map(|()| Tensor::zeros(&device, [100]).unwrap());
        Next { x: &x, z: &mut y }.launch(&device).unwrap();
        Next { x: &y, z: &mut z }.launch(&device).unwrap();
        let nine: Vec<f32> = host.iter().map(|v| v * 9.0).collect();
        assert_eq!(z.to_vec().unwrap(), nine);
        let mut w = Tensor::zeros(&device, [100]).unwrap();
        let launches = vec![Next { x: &x, z: &mut y }.prepare(&device).unwrap(), Next { x: &y, z: &mut w }.prepare(&device).unwrap()];
        Graph::new(&device, launches).unwrap().run(device.as_ref()).unwrap();
        assert_eq!(w.to_vec().unwrap(), nine);
    }

    /// Blocks of a launch share memory that no other one has; it is kept as long as a run may need it, and used again
    /// by the same stream.
    fn launches_have_memory_of_their_own(EVERY) {
        let device = gpu();
        {
            let streams: Vec<Stream> = (0..3).map(|_| device.new_stream().unwrap()).collect();
            let sizes = [100, 1000, 64, 333, 1000, 7];
            let total = |host: &[f32]| host.iter().sum::<f32>();
            let inputs: Vec<Vec<f32>> = (0..).zip(sizes).map(|(seed, n)| {
                // Integers, whose sums are exact.
                numbers(n, seed).iter().map(|v| v.round()).collect()
            }).collect();
            let xs: Vec<Tensor<f32, 1>> =
                inputs.iter().map(|host| Tensor::from_slice(&device, host, [host.len()]).unwrap()).collect();
            let mut ys: Vec<Tensor<f32, 0>> = sizes.iter().map(|_| Tensor::zeros(&device, []).unwrap()).collect();
            for round in 0..4 {
                for (n, (x, y)) in xs.iter().zip(&mut ys).enumerate() {
                    Total { x, y }.launch(&streams[(n + round) % 3]).unwrap();
                }
                for (y, host) in ys.iter().zip(&inputs) {
                    assert_eq!(y.to_vec().unwrap(), [total(host)]);
                }
                if round == 1 {
                    let before = live()[0];
                    Total { x: &xs[1], y: &mut ys[1] }.launch(&streams[0]).unwrap();
                    assert_eq!(live()[0], before, "the stream has had such a launch");
                }
            }
            let mut launches = Vec::new();
            for ((x, y), stream) in xs.iter().zip(&mut ys).zip(streams.iter().cycle()) {
                launches.push(Total { x, y }.prepare(stream).unwrap());
            }
            launches.iter().chain(&launches).for_each(|launch| launch.run().unwrap());
            let mut graph = Graph::new(&device, launches).unwrap();
            graph.run(&streams[1]).unwrap();
            graph.run(&streams[2]).unwrap();
            drop((graph, streams));
            for (y, host) in ys.iter().zip(&inputs) {
                assert_eq!(y.to_vec().unwrap(), [total(host)]);
            }
        }
        device.synchronize().unwrap();
        assert_eq!(live()[0], 0);
    }

    /// A fault of a kernel is an error of every later call, and dropping what is left neither panics nor hangs.
    fn a_fault_is_told_and_stays(EVERY) {
        let device = gpu();
        let x = Tensor::from_slice(&device, &numbers(64, 1), [64]).unwrap();
        let mut y = Tensor::<f32, 1>::zeros(&device, [64]).unwrap();
        // SAFETY: this breaks the promise on purpose: nothing is there. The fake device survives it.
        let nowhere = unsafe { TensorRef::<f32, 1>::from_raw_parts(device.as_ref(), 0x100, [64], [1], &()) };
        let launched = Affine { a: 1.0, b: 0.0, x: &nowhere, y: &mut y }.launch(&device);
        let told = launched.and_then(|()| device.synchronize()).unwrap_err();
        assert!(matches!(&told, Error::Cuda { code, .. } if code.contains("ILLEGAL_ADDRESS")), "{told}");
        // Whichever call meets it says that it is another one's.
        for later in [y.to_vec().unwrap_err(), device.new_stream().unwrap_err()] {
            assert!(matches!(&later, Error::Cuda { .. }) && later.to_string().contains("launched earlier"), "{later}");
        }
        assert!(matches!(Affine { a: 1.0, b: 0.0, x: &x, y: &mut y }.launch(&device), Err(Error::Cuda { .. })));
        assert!(Tensor::<f32, 1>::zeros(&device, [4]).is_err() && device.new_stream().is_err());
        drop((x, y, device));
    }

    fn clusters_are_launched(EVERY) {
        for device in [gpu(), Device::emulator(tilewright::EmulatorOptions::default())] {
            for (cluster, dependent) in [(1, false), (1, true), (2, false), (8, true), (16, false)] {
                let info = ranks(cluster, dependent);
                let x = Tensor::from_slice(&device, &[0.0_f32; 32], [32]).unwrap();
                let [mut y, mut z] = [(); 2].map(|()| Tensor::<f32, 1>::zeros(&device, [32]).unwrap());
                let arguments = |y: &mut _| [Arg::scalar(&1.0_f32), Arg::scalar(&0.0_f32), Arg::input(&x), Arg::output(y)];
                launch(&info, &arguments(&mut y), device.as_ref()).unwrap();
                let expected: Vec<f32> = (0..32).map(|block| (block % cluster * 100 + cluster) as f32).collect();
                assert_eq!(y.to_vec().unwrap(), expected);
                let mut graph = Graph::new(&device, [prepare(&info, &arguments(&mut z), device.as_ref()).unwrap()]).unwrap();
                graph.run(&device).unwrap();
                assert_eq!(z.to_vec().unwrap(), expected);
            }
        }
    }

    fn clusters_need_a_device_that_has_them(LATE, "FAKE_CUDA_CAPABILITY" = "80") {
        let device = gpu();
        let x = Tensor::from_slice(&device, &[0.0_f32; 32], [32]).unwrap();
        let mut y = Tensor::<f32, 1>::zeros(&device, [32]).unwrap();
        let mut run = |cluster| {
            let mut info = ranks(cluster, false);
            info.ptx.capability = (9, 0);
            let arguments = [Arg::scalar(&1.0_f32), Arg::scalar(&0.0_f32), Arg::input(&x), Arg::output(&mut y)];
            launch(&info, &arguments, device.as_ref()).unwrap_err().to_string()
        };
        assert!(run(2).contains("needs compute capability 9.0"), "{}", run(2));
    }

    /// A cluster that the device has no room for is refused with its numbers, persistent or not; blocks alone are not.
    fn clusters_that_never_run_are_refused(LATE, "FAKE_CUDA_CLUSTERS" = "0") {
        let device = gpu();
        let x = Tensor::from_slice(&device, &[0.0_f32; 32], [32]).unwrap();
        let mut y = Tensor::<f32, 1>::zeros(&device, [32]).unwrap();
        let mut run = |cluster, persistent| {
            let mut info = ranks(cluster, false);
            info.launch.persistent = persistent;
            let arguments = [Arg::scalar(&1.0_f32), Arg::scalar(&0.0_f32), Arg::input(&x), Arg::output(&mut y)];
            launch(&info, &arguments, device.as_ref())
        };
        run(1, false).unwrap();
        for persistent in [false, true] {
            let refused = run(8, persistent).unwrap_err();
            let Error::Refused(refusal) = &refused else { panic!("{refused}") };
            assert_eq!(refusal.reason, Reason::NeverResident { cluster: 8, threads: 1, shared_bytes: 0 });
            assert!(refused.to_string().contains("no cluster of 8 blocks with 1 threads and 0 bytes"), "{refused}");
        }
    }

    /// More than 48 KiB of shared memory are asked for: without that the driver refuses the launch. More than the
    /// device has is refused here.
    fn large_blocks_opt_in(LATE) {
        assert!(Large::KERNEL.entries[0].shared_bytes > 48 << 10);
        let device = gpu();
        let host = numbers(16384, 7);
        let x = Tensor::from_slice(&device, &host, [1, 16384]).unwrap();
        let mut y = Tensor::<f32, 2>::zeros(&device, [1, 16384]).unwrap();
        Large { x: &x, y: &mut y }.launch(&device).unwrap();
        let expected: Vec<f32> = host.iter().zip(host.iter().rev()).map(|(a, b)| a - b).collect();
        assert_eq!(y.to_vec().unwrap(), expected);
        let mut info = Large::KERNEL.clone();
        info.entries.to_mut().iter_mut().for_each(|entry| entry.shared_bytes = 232_449);
        let refused = launch(&info, &[Arg::input(&x), Arg::output(&mut y)], device.as_ref()).unwrap_err();
        let told = "it needs 232449 bytes of dynamic shared memory in a block, the device has 232448";
        assert!(refused.to_string().contains(told), "{refused}");
    }

    /// What the driver's assembler did is told where it was done: registers, what was spilled, its log.
    fn what_the_assembler_made_is_told(
        LATE,
        "FAKE_CUDA_LOCAL" = "316",
        "FAKE_CUDA_LOG" = "info: 168 registers\ninfo: (C7510) Potential Performance Loss: products are serialized\n\
                           info: (C7508) setmaxnreg ignored"
    ) {
        let device = gpu();
        let x = Tensor::from_slice(&device, &numbers(64, 1), [64]).unwrap();
        let mut y = Tensor::<f32, 1>::zeros(&device, [64]).unwrap();
        let prepared = Affine { a: 1.0, b: 0.0, x: &x, y: &mut y }.prepare(&device).unwrap();
        let code = prepared.machine_code().unwrap().expect("it has machine code");
        assert_eq!((code.registers, code.local_bytes), (32, 316));
        assert!(code.log.starts_with("info: 168 registers"), "{code:?}");
        let [spilled, serialized, ignored] = &code.losses()[..] else { panic!("{:?}", code.losses()) };
        assert!(spilled.contains("316 bytes") && serialized.contains("(C7510)") && ignored.contains("(C7508)"));
        prepared.run().unwrap();
        // Nothing to compute, and nothing assembled.
        let none = Tensor::<f32, 1>::zeros(&device, [0]).unwrap();
        let mut empty = Tensor::<f32, 1>::zeros(&device, [0]).unwrap();
        let prepared = Affine { a: 1.0, b: 0.0, x: &none, y: &mut empty }.prepare(&device).unwrap();
        assert_eq!(prepared.machine_code().unwrap(), None);
    }

    fn kernels_without_losses_say_so(LATE) {
        let device = gpu();
        let x = Tensor::from_slice(&device, &numbers(64, 1), [64]).unwrap();
        let mut y = Tensor::<f32, 1>::zeros(&device, [64]).unwrap();
        let prepared = Affine { a: 1.0, b: 0.0, x: &x, y: &mut y }.prepare(&device).unwrap();
        let code = prepared.machine_code().unwrap().expect("it has machine code");
        assert!(code.losses().is_empty() && code.local_bytes == 0 && code.log.is_empty(), "{code:?}");
    }

    fn old_devices_are_refused(LATE, "FAKE_CUDA_CAPABILITY" = "75") {
        let refused = refused_launch();
        assert!(matches!(refused, Reason::Capability { needed: (8, 0), found: (7, 5), .. }), "{refused}");
    }

    fn old_drivers_are_refused(LATE, "FAKE_CUDA_VERSION" = "10020") {
        let refused = refused_launch();
        assert!(matches!(refused, Reason::Driver { found: (10, 2), .. }), "{refused}");
    }

    fn memory_ends(LATE, "FAKE_CUDA_MEMORY" = "65536") {
        let device = gpu();
        let error = Tensor::<f64, 1>::zeros(&device, [1 << 20]).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { bytes: 8_388_608, .. }), "{error}");
        let small = Tensor::<f64, 1>::zeros(&device, [1 << 10]).unwrap();
        assert_eq!(small.to_vec().unwrap(), vec![0.0; 1 << 10]);
    }

    fn what_the_driver_cannot_load_is_told_with_its_log(LATE) {
        let device = gpu();
        let x = Tensor::from_slice(&device, &numbers(64, 1), [64]).unwrap();
        let mut y = Tensor::<f32, 1>::zeros(&device, [64]).unwrap();
        let mut run = |change: &dyn Fn(&mut KernelInfo)| {
            let mut info = Affine::KERNEL.clone();
            change(&mut info);
            let arguments = [Arg::scalar(&1.0_f32), Arg::scalar(&0.0_f32), Arg::input(&x), Arg::output(&mut y)];
            launch(&info, &arguments, device.as_ref())
        };
        let broken = run(&|info| info.ptx.text = "this is no PTX".into()).unwrap_err();
        assert!(matches!(&broken, Error::Load { kernel, log, .. } if kernel == "Affine" && !log.is_empty()), "{broken}");
        let missing = run(&|info| {
            info.entries.to_mut().iter_mut().for_each(|e| e.name = "elsewhere".into());
        })
        .unwrap_err();
        assert!(matches!(&missing, Error::Load { code, .. } if code.contains("elsewhere")), "{missing}");
        run(&|_| {}).unwrap();
    }
}

/// 32 blocks in clusters; each writes its rank, and how many there are.
fn ranks(cluster: u32, dependent: bool) -> KernelInfo {
    const TEXT: &str = "\
.version 8.0
.target sm_90
.address_size 64
.visible .entry ranks(.param .u64 y) {
.reg .b32 %r<4>; .reg .f32 %f; .reg .b64 %a;
griddepcontrol.wait;
ld.param.u64 %a, [y];
mov.u32 %r0, %ctaid.x;
mad.wide.u32 %a, %r0, 4, %a;
mov.u32 %r1, %cluster_ctarank;
mov.u32 %r2, %cluster_nctarank;
mad.lo.u32 %r1, %r1, 100, %r2;
cvt.rn.f32.u32 %f, %r1;
st.global.f32 [%a], %f;
ret;
}
";
    let mut info = Affine::KERNEL.clone();
    info.ptx.text = TEXT.into();
    let entries = info.entries.to_mut();
    entries.truncate(1);
    (entries[0].name, entries[0].conditions) = ("ranks".into(), vec![].into());
    info.arguments = vec![tilewright::kernel::info::Argument::Address(3)].into();
    info.launch.blocks = tilewright::kernel::Size::constant(32);
    (info.launch.threads, info.launch.cluster, info.launch.dependent) = (1, cluster, dependent);
    info
}

fn refused_launch() -> Reason {
    let device = gpu();
    let x = Tensor::from_slice(&device, &numbers(64, 1), [64]).unwrap();
    let mut y = Tensor::<f32, 1>::zeros(&device, [64]).unwrap();
    match (Affine { a: 1.0, b: 0.0, x: &x, y: &mut y }).launch(&device) {
        Err(Error::Refused(refusal)) => refusal.reason,
        other => panic!("{other:?}"),
    }
}

/// `CudaSlice` to `Tensor` and back, on their streams and ours, with and without waiting in between.
fn hand_over() {
    let device = gpu();
    let context = CudaContext::new(0).unwrap();
    let theirs: std::sync::Arc<CudaStream> = context.new_stream().unwrap();
    // The fake driver reads host memory when a copy is executed: it stays until then.
    let (nine, eight) = (numbers(100, 9), numbers(100, 8));
    let slice: CudaSlice<f32> = theirs.clone_htod(&nine).unwrap();
    let mut x = Tensor::from_cudarc(slice, [4, 25]).unwrap();
    assert_eq!(x.shape(), [4, 25]);
    let mut y = Tensor::<f32, 1>::uninit(&device, [100]).unwrap();
    x.copy_from_slice(&nine).unwrap();
    let slice: CudaSlice<f32> = theirs.clone_htod(&eight).unwrap();
    let mut z = Tensor::from_cudarc(slice, [100]).unwrap();
    Affine { a: 2.0, b: 0.0, x: &z, y: &mut y }.launch(&device).unwrap();
    let expected: Vec<f32> = eight.iter().map(|v| 2.0 * v).collect();
    Multiply { a: 4.0, x: &mut z }.launch(&device).unwrap();
    // Ours becomes theirs while our launch may be pending.
    let back = z.into_cudarc().unwrap();
    let given = theirs.clone_dtoh(&back).unwrap();
    theirs.synchronize().unwrap();
    assert_eq!(given, eight.iter().map(|v| 4.0 * v).collect::<Vec<_>>());
    let ours = y.into_cudarc().unwrap();
    let copied = ours.stream().clone_dtoh(&ours).unwrap();
    ours.stream().synchronize().unwrap();
    assert_eq!(copied, expected);
    assert_eq!(x.to_vec().unwrap(), nine);
    drop((ours, back, x, theirs, context));
    device.synchronize().unwrap();
    assert_eq!(live()[0], 0);
    let six = [1.0; 6];
    let wrong: CudaSlice<f32> = CudaContext::new(0).unwrap().default_stream().clone_htod(&six).unwrap();
    assert!(matches!(Tensor::from_cudarc(wrong, [7]), Err(Error::Length { .. })));
}
