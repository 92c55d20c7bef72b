use super::*;
use nalgebra::DMatrix;
use proptest::prelude::*;

/// I(A) by nalgebra's determinant.
fn information(factor: &Factor, white: f64, noise_variance: f64, set: &[usize]) -> f64 {
    let dense = DMatrix::from_fn(set.len(), set.len(), |a, b| {
        let product: f64 = factor.row(set[a]).zip(factor.row(set[b])).map(|(x, y)| x * y).sum();
        let extra = if a == b { white } else { 0.0 };
        f64::from(a == b) + (product + extra) / noise_variance
    });
    0.5 * libm::log(dense.determinant())
}

fn subsets(points: usize, size: usize) -> Vec<Vec<usize>> {
    (0..1_usize << points)
        .filter(|mask| mask.count_ones() as usize == size)
        .map(|mask| (0..points).filter(|i| mask >> i & 1 == 1).collect())
        .collect()
}

#[test]
fn white_prior_in_closed_form() {
    let found = bracket(&Factor::from_columns(30, &[]), 2.0, 0.5, 30).unwrap();
    for t in 1..=30 {
        let exact = 0.5 * t as f64 * libm::log(5.0);
        let bounds = found.at(t).unwrap();
        assert!((bounds.lo - exact).abs() < 1e-13 * exact, "{bounds:?}");
        assert!((bounds.hi - exact).abs() < 1e-13 * exact, "{bounds:?}");
        assert!((bounds.by_spectrum.unwrap() - exact).abs() < 1e-13 * exact, "{bounds:?}");
        assert!((bounds.by_prefix - exact).abs() < 1e-13 * exact, "{bounds:?}");
    }
    assert_eq!((found.at(0), found.at(31)), (None, None));
}

#[test]
fn rank_one_prior_in_closed_form() {
    // k(i, j) = f_i f_j: I(A) = 1/2 log(1 + sum_A f_i^2/sigma^2), and the largest f_i are the best.
    let column: Vec<f64> = (0..20).map(|i| 0.1 * f64::from(i)).collect();
    let found = bracket(&Factor::from_columns(20, &[column]), 0.0, 0.01, 20).unwrap();
    let mut energy = 0.0;
    for (at, i) in (0..20).rev().enumerate() {
        energy += 0.01 * f64::from(i * i);
        let exact = 0.5 * libm::log1p(energy / 0.01);
        let bounds = found.at(at + 1).unwrap();
        assert!((bounds.lo - exact).abs() < 1e-12, "{exact} {bounds:?}");
        let whole: f64 = (0..20).map(|i| 0.01 * f64::from(i * i)).sum();
        let spectral = 0.5 * libm::log1p(whole / 0.01);
        assert!((bounds.by_spectrum.unwrap() - spectral).abs() < 1e-12, "{bounds:?}");
    }
    // At T = M the set is the whole domain, and the spectral bound is exact.
    assert!((found.at(20).unwrap().hi - found.at(20).unwrap().lo).abs() < 1e-12);
}

#[test]
fn first_horizon_is_exact_and_bounds_are_what_they_say() {
    let columns = [vec![1.0, 0.5, 0.0], vec![0.0, 0.5, 0.25]];
    let found = bracket(&Factor::from_columns(3, &columns), 0.1, 0.2, 2).unwrap();
    let first = found.at(1).unwrap();
    let exact = 0.5 * libm::log1p(1.1 / 0.2);
    assert!((first.lo - exact).abs() < 1e-15 && (first.hi - exact).abs() < 1e-15);
    assert!((found.at(2).unwrap().by_variance - 2.0 * exact).abs() < 1e-15);
    assert!((found.at(2).unwrap().by_greedy - found.at(2).unwrap().lo / 0.75).abs() < 1e-15);
}

#[test]
fn no_noise_no_bracket() {
    assert_eq!(bracket(&Factor::from_columns(3, &[vec![1.0; 3]]), 0.0, 0.0, 2), None);
}

#[test]
fn a_large_rank_leaves_the_spectrum_out() {
    let rank = SPECTRUM_RANK_LIMIT + 1;
    let columns: Vec<Vec<f64>> =
        (0..rank).map(|k| (0..rank).map(|i| f64::from(i == k)).collect()).collect();
    let found = bracket(&Factor::from_columns(rank, &columns), 0.0, 1.0, 3).unwrap();
    let bounds = found.at(3).unwrap();
    assert_eq!(bounds.by_spectrum, None);
    assert!((bounds.hi - 1.5 * libm::log(2.0)).abs() < 1e-14);
}

fn factors() -> impl Strategy<Value = (Factor, f64, f64)> {
    let shape = (3_usize..9, 0_usize..5);
    shape.prop_flat_map(|(rows, rank)| {
        let columns = prop::collection::vec(prop::collection::vec(-1.0_f64..1.0, rows), rank);
        let white = prop_oneof![Just(0.0), 0.01_f64..1.0];
        (columns, white, 1e-4_f64..2.0)
            .prop_map(move |(columns, w, noise)| (Factor::from_columns(rows, &columns), w, noise))
    })
}

proptest! {
    #[test]
    fn the_truth_over_all_subsets_lies_within((factor, white, noise) in factors()) {
        let points = factor.rows();
        let found = bracket(&factor, white, noise, points).unwrap();
        for t in 1..=points {
            let all = subsets(points, t).into_iter();
            let truth = all.map(|set| information(&factor, white, noise, &set))
                .fold(0.0, |a: f64, b| if b > a { b } else { a });
            let slack = 1e-9 * (1.0 + truth);
            let Bounds { lo, by_greedy, by_variance, by_spectrum, by_prefix, hi } =
                *found.at(t).unwrap();
            prop_assert!(lo <= truth + slack, "{t} {truth} {:?}", found.at(t));
            for bound in [by_greedy, by_variance, by_spectrum.unwrap(), by_prefix, hi] {
                prop_assert!(bound >= truth - slack, "{t} {truth} {:?}", found.at(t));
            }
        }
    }

    #[test]
    fn greedy_information_is_the_log_determinant((factor, white, noise) in factors()) {
        let found = bracket(&factor, white, noise, factor.rows()).unwrap();
        let (mut set, mut unchosen) = (vec![], (0..factor.rows()).collect::<Vec<_>>());
        for t in 1..=factor.rows() {
            let with = |i: usize| {
                let mut set = set.clone();
                set.push(i);
                information(&factor, white, noise, &set)
            };
            let gains: Vec<f64> = unchosen.iter().map(|&i| with(i)).collect();
            let best = (0..gains.len()).rev().max_by(|&a, &b| gains[a].total_cmp(&gains[b]));
            let best = best.unwrap();
            prop_assert!((found.at(t).unwrap().lo - gains[best]).abs() < 1e-8, "{t}");
            set.push(unchosen.remove(best));
        }
    }

    #[test]
    fn the_lower_end_grows_and_stays_below((factor, white, noise) in factors()) {
        let found = bracket(&factor, white, noise, factor.rows()).unwrap();
        for pair in found.bounds().windows(2) {
            prop_assert!(pair[0].lo <= pair[1].lo);
            prop_assert!(pair[1].lo <= pair[1].hi);
        }
    }

    #[test]
    fn adding_horizons_changes_none_before_them((factor, white, noise) in factors()) {
        let long = bracket(&factor, white, noise, factor.rows()).unwrap();
        let short = bracket(&factor, white, noise, 2).unwrap();
        prop_assert_eq!(short.bounds(), &long.bounds()[..2]);
    }
}
