//! Little data, bad data, and beginnings.

use super::super::*;
use super::{candidates, close, standardised};

#[test]
fn degenerate_data_give_sane_posteriors() {
    let (_, table) = candidates(20);
    let (nearest, farthest) = table.extent().unwrap();
    let search = Search { bounds: Bounds::new(nearest, farthest), starts: 3 };
    let equal = [2.5; 12];
    let sets: [(&[usize], &[f64]); 6] = [
        (&[], &[]),
        (&[4], &[7.0]),
        (&[4, 4, 4], &[1.0, 2.0, 4.0]),
        (&[4, 4, 4], &[1.0; 3]),
        (&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], &equal),
        (&[0, 1, 0, 1], &[-1e9, 1e9, -1e9, 1e9]),
    ];
    for (at, y) in sets {
        for noise in [Noise::Fitted, Noise::Known(0.0), Noise::Known(0.3)] {
            let mut gp = Gp::new(&table, Cpu::detect());
            at.iter().for_each(|&i| gp.observe(i).unwrap());
            let posterior = gp.fit(&standardised(y), &search, noise).unwrap();
            let (mut mean, mut variance) = ([0.0; 20], [0.0; 20]);
            posterior.predict(&mut mean, &mut variance);
            let p = posterior.parameters();
            assert!(posterior.log_likelihood().is_finite());
            assert!(mean.iter().all(|m| m.abs() < 2.0), "{mean:?}");
            assert!(variance.iter().all(|&v| (0.0..=p.variance).contains(&v)), "{variance:?}");
            // What was observed is no less certain than what was not.
            let seen = at.iter().map(|&i| variance[i]);
            let least =
                variance.iter().fold(f64::MAX, |least, &v| if v < least { v } else { least });
            assert!(seen.into_iter().all(|v| v <= least + p.noise), "{at:?} {variance:?}");
        }
    }
}

#[test]
fn known_noise_is_kept_and_floored() {
    let (_, table) = candidates(30);
    let search = Search { bounds: Bounds::new(0.05, 1.4), starts: 4 };
    let mut gp = Gp::new(&table, Cpu::detect());
    (0..15).for_each(|i| gp.observe(i).unwrap());
    let y: Vec<f64> = (0..15).map(|i| libm::sin(f64::from(i))).collect();
    for (given, used) in [(0.0, NOISE_FLOOR), (0.25, 0.25)] {
        let found = gp.fit(&y, &search, Noise::Known(given)).unwrap();
        let (p, value) = (found.parameters(), found.log_likelihood());
        close(p.noise / used, 1.0, 1e-14);
        // No neighbour is better.
        for factor in [0.99, 1.01] {
            let wider = Parameters { length: p.length * factor, ..p };
            let taller = Parameters { variance: p.variance * factor, ..p };
            for other in [wider, taller] {
                assert!(gp.log_likelihood(&y, other).unwrap().0 <= value);
            }
        }
    }
    assert!(matches!(gp.fit(&y, &search, Noise::Known(-1.0)), Err(Error::Noise { .. })));
    assert_eq!(
        gp.fit(&y, &Search { starts: 0, ..search }, Noise::Fitted).err(),
        Some(Error::NoStart)
    );
    let mut bounds = search.bounds;
    bounds.length = [1.0, 0.5];
    let refused = gp.fit(&y, &Search { bounds, starts: 1 }, Noise::Fitted).err();
    assert_eq!(refused, Some(Error::Bounds { name: "length", least: 1.0, most: 0.5 }));
}

#[test]
fn rounding_is_an_error_and_not_a_number() {
    let (_, table) = candidates(100);
    let mut gp = Gp::new(&table, Cpu::detect());
    (0..100).for_each(|i| gp.observe(i).unwrap());
    let p = Parameters { variance: 1.0, length: 100.0, noise: 1e-20 };
    let error = gp.log_likelihood(&[1.0; 100], p).unwrap_err();
    assert!(matches!(error, Error::NotPositiveDefinite(_)), "{error}");
    for length in [f64::NAN, 0.0, -1.0, 1e21, f64::INFINITY] {
        let p = Parameters { length, ..p };
        assert!(matches!(gp.posterior(&[1.0; 100], p).err(), Some(Error::Bounds { .. })));
    }
}

#[test]
fn a_restart_is_a_fresh_beginning() {
    let (_, table) = candidates(40);
    let search = Search { bounds: Bounds::new(0.05, 1.4), starts: 2 };
    let y: Vec<f64> = (0..30).map(|i| libm::cos(f64::from(i))).collect();
    let run = |gp: &mut Gp<&Distances>| {
        (10..30).for_each(|i| gp.observe(i * 3 % 40).unwrap());
        let found = gp.fit(&y, &search, Noise::Fitted).unwrap();
        (found.parameters(), found.log_likelihood())
    };
    let mut gp = Gp::new(&table, Cpu::detect());
    (0..10).for_each(|i| gp.observe(i).unwrap());
    let first = run(&mut gp);
    gp.restart(10);
    assert_eq!((gp.observations(), gp.inputs()), (10, 10));
    assert_eq!(run(&mut gp), first);
}

#[test]
fn extremes_are_values_or_errors() {
    let (_, table) = candidates(9);
    let mut gp = Gp::new(&table, Cpu::detect());
    [0, 1, 2, 1, 3, 0].iter().for_each(|&i| gp.observe(i).unwrap());
    for y in [[0.0; 6], [1e100; 6], [1e100, 0.0, -1e100, 1e100, 0.0, 1.0]] {
        for (variance, length, noise) in
            [(1e-20, 1e-20, 1e20), (1e20, 1e20, 1e-20), (1e-20, 1.0, 1e-20), (1e20, 0.1, 1e20)]
        {
            if let Ok((value, gradient)) =
                gp.log_likelihood(&y, Parameters { variance, length, noise })
            {
                assert!(value.is_finite() && gradient.iter().all(|g| g.is_finite()));
            }
        }
    }
}
