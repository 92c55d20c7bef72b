use super::super::fixture::normals;
use super::*;

fn cosines(count: usize, dimension: usize, scale: f64) -> Cosines {
    let frequencies: Vec<f64> = normals(count * dimension, 0).iter().map(|z| z * scale).collect();
    Cosines::new(&frequencies, &normals(count, 1), dimension).unwrap()
}

#[test]
fn features_are_cosines_one_by_one_and_many_at_a_time() {
    // The last scale is beyond our own reduction of angles.
    for (count, dimension, scale) in [(1, 1, 1.0), (8, 2, 5.0), (13, 3, 40.0), (5, 2, 1e7)] {
        let cosines = cosines(count, dimension, scale);
        let points = normals(dimension * 21, 2);
        let panels = Panels::from_rows(&points, 21);
        for cpu in [Cpu::detect(), Cpu::plain()] {
            let batch = cosines.batch(cpu, &panels);
            for m in 0..21 {
                let x: Vec<f64> = (0..dimension).map(|j| panels.at(j, m)).collect();
                let mut out = vec![0.0; count];
                cosines.phi(cpu, &x, &mut out);
                for (k, &phi) in out.iter().enumerate() {
                    let angle = (0..dimension)
                        .fold(cosines.phase(k), |s, j| s + cosines.frequency(k, j) * x[j]);
                    let exact = (2.0 / count as f64).sqrt() * libm::cos(angle);
                    assert!((phi - exact).abs() < 1e-15, "{phi} against {exact}");
                    assert_eq!(phi, batch.at(k, m));
                }
            }
        }
    }
}

#[test]
fn the_derivative_agrees_with_finite_differences() {
    let cosines = cosines(11, 3, 3.0);
    let cpu = Cpu::detect();
    let x = [0.3, -0.7, 1.1];
    let (mut out, mut derivative) = (vec![0.0; 11], vec![0.0; 33]);
    cosines.gradient(cpu, &x, &mut out, &mut derivative);
    let step = 1e-5;
    for j in 0..3 {
        let moved = |by: f64| {
            let (mut x, mut out) = (x, vec![0.0; 11]);
            x[j] += by;
            cosines.phi(cpu, &x, &mut out);
            out
        };
        for (k, (up, down)) in moved(step).iter().zip(moved(-step)).enumerate() {
            let difference = (up - down) / (2.0 * step);
            assert!((derivative[k * 3 + j] - difference).abs() < 1e-8);
        }
    }
}

#[test]
fn what_is_not_a_set_of_features_is_refused() {
    assert_eq!(Cosines::new(&[], &[], 2), Err(Invalid::Empty { features: 0, dimension: 2 }));
    assert_eq!(
        Cosines::new(&[1.0; 3], &[0.0; 2], 2),
        Err(Invalid::Frequencies { found: 3, expected: 4 })
    );
    let infinite = Cosines::new(&[f64::INFINITY], &[0.0], 1);
    assert_eq!(infinite, Err(Invalid::NotFinite { value: f64::INFINITY }));
}
