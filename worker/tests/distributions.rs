//! Our normals and chi-squares have their laws: against closed forms in the body, in the moments and
//! in tails of one in a million, and against `rand_distr`.
//!
//! Each test has a false-alarm rate of 1e-7 (Bonferroni over its p-values).

// The statistics of the tests that cross crates, which depend on this one.
#[path = "../../tests/src/statistics.rs"]
pub mod statistics;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};
use statistics::{Alarm, binomial, one_sample, two_sample};
use theory::special::{
    chi2_cdf, chi2_quantile, chi2_sf, chi2_upper_quantile, normal_cdf, normal_quantile, normal_sf,
};
use worker::random::{Key, Purpose, Stream};

const RATE: f64 = 1e-7;
const TAILS: [f64; 5] = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6];
const DEGREES: [u64; 9] = [1, 2, 3, 4, 5, 16, 100, 1499, 1_000_000];

fn stream(identity: u64) -> Stream {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&identity.to_le_bytes());
    Stream::new(Key::new(11, &bytes, 0, Purpose::Estimator))
}

fn normals(identity: u64, count: usize) -> Vec<f64> {
    let mut out = vec![0.0; count];
    stream(identity).normals(&mut out);
    out
}

fn chi_squares(dof: u64, identity: u64, count: usize) -> Vec<f64> {
    let mut out = vec![0.0; count];
    stream(identity).chi_squares(dof, &mut out);
    out
}

/// Fewer where the closed form takes long.
fn body(dof: u64) -> usize {
    if dof > 10_000 { 30_000 } else { 400_000 }
}

/// Counts beyond the exact quantiles on both sides, for draws that come block by block.
struct TailCounts {
    limits: Vec<(f64, f64, f64)>,
    counts: Vec<[u64; 2]>,
    draws: u64,
}

impl TailCounts {
    fn new(lower: impl Fn(f64) -> f64, upper: impl Fn(f64) -> f64) -> Self {
        let limits: Vec<_> = TAILS.into_iter().map(|p| (p, lower(p), upper(p))).collect();
        Self { counts: vec![[0; 2]; limits.len()], limits, draws: 0 }
    }

    fn take(&mut self, draws: &[f64]) {
        self.draws += draws.len() as u64;
        let (_, low, high) = self.limits[0];
        for &x in draws.iter().filter(|&&x| x < low || x > high) {
            for (&(_, low, high), [below, above]) in self.limits.iter().zip(&mut self.counts) {
                *below += u64::from(x < low);
                *above += u64::from(x > high);
            }
        }
    }

    fn check(&self, alarm: &mut Alarm, what: &str) {
        for (&(p, ..), [below, above]) in self.limits.iter().zip(&self.counts) {
            alarm.check(binomial(*below, self.draws, p), || format!("{what}: below {p:e}"));
            alarm.check(binomial(*above, self.draws, p), || format!("{what}: above {p:e}"));
        }
    }
}

/// The first four moments of standardised draws about zero, each against its exact value and
/// standard error; `exact[j]` is E[x^j] for j = 1..=8.
fn check_moments(alarm: &mut Alarm, what: &str, draws: impl Iterator<Item = f64>, exact: [f64; 9]) {
    let (mut sums, mut count) = ([0.0; 5], 0.0);
    for x in draws {
        count += 1.0;
        let mut power = 1.0;
        for sum in &mut sums {
            *sum += power;
            power *= x;
        }
    }
    for j in 1..5 {
        let error = ((exact[2 * j] - exact[j] * exact[j]) / count).sqrt();
        let z = (sums[j] / count - exact[j]) / error;
        alarm.check(2.0 * normal_sf(z.abs()), || format!("{what}: moment {j}"));
    }
}

/// E[((X - k)/sqrt(2 k))^j] of a chi-square X of k degrees, j = 0..=8, from its cumulants
/// 2^(j-1) (j-1)! k: m_j = sum_i C(j-1, i-1) kappa_i m_{j-i}.
fn chi_square_moments(dof: u64) -> [f64; 9] {
    let scale = (2.0 * dof as f64).sqrt();
    let mut cumulants = [0.0; 9];
    let mut term = dof as f64 / scale;
    for (j, cumulant) in cumulants.iter_mut().enumerate().skip(1) {
        *cumulant = if j == 1 { 0.0 } else { term };
        term *= 2.0 * j as f64 / scale;
    }
    let mut moments = [1.0; 9];
    for j in 1..9 {
        let mut binomial = 1.0;
        moments[j] = 0.0;
        for i in 1..=j {
            moments[j] += binomial * cumulants[i] * moments[j - i];
            binomial *= (j - i) as f64 / i as f64;
        }
    }
    moments
}

#[test]
fn normals_have_their_law() {
    let mut alarm = Alarm::default();
    let sample = normals(1, 2_000_000);
    let moments = [1.0, 0.0, 1.0, 0.0, 3.0, 0.0, 15.0, 0.0, 105.0];
    check_moments(&mut alarm, "normal", sample.iter().copied(), moments);
    let successive: f64 = sample.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let z = successive / (sample.len() as f64 - 1.0).sqrt();
    alarm.check(2.0 * normal_sf(z.abs()), || "successive draws are uncorrelated".to_owned());
    alarm.check(one_sample(sample, normal_cdf), || "against the closed form".to_owned());
    let mut other = ChaCha8Rng::seed_from_u64(1);
    let theirs = StandardNormal.sample_iter(&mut other).take(1_000_000).collect();
    alarm.check(two_sample(normals(2, 1_000_000), theirs), || "against rand_distr".to_owned());
    alarm.judge("normals", RATE);
}

#[test]
fn normals_have_their_tails() {
    let mut tails = TailCounts::new(normal_quantile, |p| -normal_quantile(p));
    // The ziggurat's own boundary: where its tail begins.
    let (boundary, mut beyond) = (3.654_152_885_361_009, 0);
    let mut block = vec![0.0; 1 << 20];
    let mut stream = stream(3);
    for _ in 0..96 {
        stream.normals(&mut block);
        tails.take(&block);
        beyond += block.iter().filter(|x| x.abs() > boundary).count() as u64;
    }
    let mut alarm = Alarm::default();
    tails.check(&mut alarm, "normal");
    let p = binomial(beyond, tails.draws, 2.0 * normal_sf(boundary));
    alarm.check(p, || "beyond the ziggurat's layers".to_owned());
    println!("{} normals, counts {:?}", tails.draws, tails.counts);
    alarm.judge("normal tails", RATE);
}

/// Equal probability in each of 4096 slices, where an edge of a layer would show.
#[test]
fn normals_fill_their_slices() {
    const SLICES: usize = 4096;
    let mut counts = vec![0.0; SLICES];
    let draws = 16_000_000;
    for x in normals(4, draws) {
        counts[((normal_cdf(x) * SLICES as f64) as usize).min(SLICES - 1)] += 1.0;
    }
    let expected = draws as f64 / SLICES as f64;
    let statistic: f64 = counts.iter().map(|c| (c - expected) * (c - expected) / expected).sum();
    let mut alarm = Alarm::default();
    alarm.check(chi2_sf(SLICES as f64 - 1.0, statistic), || format!("statistic {statistic:.0}"));
    alarm.judge("slices", RATE);
}

#[test]
fn chi_squares_have_their_laws() {
    let mut alarm = Alarm::default();
    for dof in DEGREES {
        let k = dof as f64;
        let sample = chi_squares(dof, 5, body(dof));
        let p = one_sample(sample, |x| chi2_cdf(k, x));
        alarm.check(p, || format!("{dof} degrees against the closed form"));
        let many = chi_squares(dof, 6, 1_000_000);
        let standardised = many.iter().map(|x| (x - k) / (2.0 * k).sqrt());
        let what = format!("{dof} degrees");
        check_moments(&mut alarm, &what, standardised, chi_square_moments(dof));
        let mut other = ChaCha8Rng::seed_from_u64(dof);
        let law = ChiSquared::new(k).unwrap();
        let theirs = law.sample_iter(&mut other).take(400_000).collect();
        let ours = many[..400_000].to_vec();
        alarm.check(two_sample(ours, theirs), || format!("{dof} degrees against rand_distr"));
    }
    alarm.judge("chi-squares", RATE);
}

#[test]
fn chi_squares_have_their_tails() {
    let mut alarm = Alarm::default();
    let mut block = vec![0.0; 1 << 20];
    for dof in DEGREES {
        let k = dof as f64;
        let mut tails = TailCounts::new(|p| chi2_quantile(k, p), |p| chi2_upper_quantile(k, p));
        let mut stream = stream(7);
        for _ in 0..20 {
            stream.chi_squares(dof, &mut block);
            tails.take(&block);
        }
        tails.check(&mut alarm, &format!("{dof} degrees"));
    }
    alarm.judge("chi-square tails", RATE);
}

/// One degree of freedom too many is seen up to a hundred, one in fifty beyond.
#[test]
fn other_degrees_are_detected() {
    for dof in [1, 2, 3, 4, 5, 16, 100, 1499] {
        let other = (dof + if dof > 100 { dof / 50 } else { 1 }) as f64;
        let p = one_sample(chi_squares(dof, 8, 400_000), |x| chi2_cdf(other, x));
        assert!(p < 1e-12, "{dof} against {other}: {p}");
    }
    let almost: Vec<f64> = normals(9, 2_000_000).iter().map(|x| 1.01 * x).collect();
    assert!(one_sample(almost, normal_cdf) < 1e-12);
}
