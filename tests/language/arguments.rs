//! What a launch takes beside tensors of a known rank: tensors whose rank is known at run time only, and arrays of
//! `ndarray` on their way there.

use tilewright::error::Reason;
use tilewright::{Device, DynTensor, EmulatorOptions, Error, Tensor, schedule};

schedule! {
    /// y[i, j] = x[i, j] + b[j]
    kernel AddRow(x: f32[M, N], b: f32[N]) -> (y: f32[M, N]) {
        y[i, j] = x[i, j] + b[j];
        schedule y { split j by 32 -> g, t; reorder i, g, t; bind i, g: grid; bind t: thread; }
    }
}

fn device() -> Device {
    Device::emulator(EmulatorOptions::default())
}

#[test]
fn tensors_of_any_rank_are_arguments() {
    let device = device();
    let x = DynTensor::from_slice(&device, &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    let b = Tensor::from_slice(&device, &[10.0, 20.0, 30.0], [3]).unwrap();
    let mut y = DynTensor::zeros(&device, &[2, 3]).unwrap();
    let expected = AddRow { x: &x, b: &b, y: &mut y }.reference().unwrap();
    AddRow { x: &x, b: &b, y: &mut y }.launch(&device).unwrap();
    assert_eq!(y.to_vec().unwrap(), [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
    expected.check("y", &y.as_rank::<2>().unwrap()).unwrap();
    // Views of one, as one.
    let rows = x.view().slice(0, 1..).unwrap();
    let (_, mut below) = y.view_mut().split_at(0, 1).unwrap();
    AddRow { x: &rows, b: &b, y: &mut below }.launch(&device).unwrap();
    assert_eq!(below.to_vec().unwrap(), [14.0, 25.0, 36.0]);
}

#[test]
fn another_rank_is_refused_with_both() {
    let device = device();
    let flat = DynTensor::<f32>::zeros(&device, &[6]).unwrap();
    let x = Tensor::<f32, 2>::zeros(&device, [2, 3]).unwrap();
    let b = Tensor::<f32, 1>::zeros(&device, [3]).unwrap();
    let mut y = DynTensor::from_slice(&device, &[-1.0_f32; 6], &[2, 3]).unwrap();
    let refused = AddRow { x: &flat, b: &b, y: &mut y }.launch(&device).unwrap_err();
    assert_eq!(refused.to_string(), "kernel AddRow was not launched: `x` has rank 2, the argument has rank 1");
    assert!(AddRow { x: &flat, b: &b, y: &mut y }.reference().is_err());
    let mut deep = DynTensor::from_slice(&device, &[-1.0_f32; 6], &[1, 2, 3]).unwrap();
    let refused = AddRow { x: &x, b: &b, y: &mut deep }.prepare(&device).map(|_| ()).unwrap_err();
    let Error::Refused(refusal) = refused else { panic!("{refused}") };
    assert_eq!(refusal.reason, Reason::Rank { parameter: "y".to_owned(), expected: 2, found: 3 });
    assert_eq!((y.to_vec().unwrap(), deep.to_vec().unwrap()), (vec![-1.0; 6], vec![-1.0; 6]), "nothing ran");
}

#[test]
fn arrays_go_through_a_kernel() {
    let device = device();
    let array = ndarray::array![[1.0_f32, 2.0], [3.0, 4.0], [5.0, 6.0]];
    let row = ndarray::array![100.0_f32, 200.0, 300.0];
    let x = Tensor::from_ndarray(&device, array.t()).unwrap();
    let b = Tensor::from_ndarray(&device, row.slice(ndarray::s![..;-1])).unwrap();
    let mut y = Tensor::zeros(&device, [2, 3]).unwrap();
    AddRow { x: &x, b: &b, y: &mut y }.launch(&device).unwrap();
    assert_eq!(y.to_ndarray().unwrap(), &array.t() + &row.slice(ndarray::s![..;-1]));
}
