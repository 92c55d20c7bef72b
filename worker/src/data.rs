//! Real data: a matrix of rewards, whose rows are the functions to be optimised.

use study::prior::{DataSpec, Files, Invalid, KernelSpec, PriorSpec, Protocol};

use crate::method::responses::Responses;
use crate::prior::Points;
use crate::random::Stream;

/// Rewards, larger ones better, NaN where missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewards {
    /// The inputs of the columns.
    pub points: Points,
    responses: Responses,
    protocol: Protocol,
    /// The variance of what is added to rewards on observing them.
    pub noise_variance: f64,
}

impl Rewards {
    /// Reads a checked specification.
    pub fn build(spec: &PriorSpec, files: &Files) -> Result<Self, Invalid> {
        let shape = spec.validate(files)?;
        let points = Points::build(&spec.domain, shape, files)?;
        let KernelSpec::Data { path } = &spec.kernel else {
            let reason = "has to be rewards; give rewards = \"rewards.csv\"";
            return Err(Invalid::Setting { key: "prior.kernel".to_owned(), reason });
        };
        let DataSpec { sense, protocol } = spec.data.unwrap_or_default();
        let table = files.incomplete("prior.rewards", path)?;
        let values = table.values().iter().map(|value| sense.sign() * value).collect();
        let responses = Responses { columns: table.columns(), values };
        Ok(Self { points, responses, protocol, noise_variance: spec.noise_variance })
    }

    /// M.
    pub fn size(&self) -> usize {
        self.responses.columns
    }

    /// The number of functions.
    pub fn functions(&self) -> usize {
        self.responses.rows()
    }

    /// A function at every point.
    pub fn row(&self, i: usize) -> &[f64] {
        let columns = self.responses.columns;
        &self.responses.values[i * columns..(i + 1) * columns]
    }

    /// The mean of every column, over what is there.
    pub fn column_means(&self) -> Vec<f64> {
        let mean = |j: usize| {
            let column = self.responses.iter().map(|row| row[j]).filter(|value| !value.is_nan());
            let (mut sum, mut count) = (0.0, 0_u64);
            for value in column {
                sum += value;
                count += 1;
            }
            if count > 0 { sum / count as f64 } else { 0.0 }
        };
        (0..self.size()).map(mean).collect()
    }

    /// The N functions that a trial on row `own` is trained on. The stream's draws do not depend on N,
    /// so that a larger N adds to a smaller one.
    pub(crate) fn training(&self, own: usize, n: u64, stream: &mut Stream) -> Responses {
        let mut others: Vec<usize> = (0..self.functions()).filter(|&row| row != own).collect();
        let n = usize::try_from(n).map_or(others.len(), |n| n.min(others.len()));
        if self.protocol == Protocol::Random {
            for next in 0..n {
                let pick = next + stream.below(others.len() - next);
                others.swap(next, pick);
            }
        }
        others.truncate(n);
        let values = others.iter().flat_map(|&row| self.row(row).iter().copied()).collect();
        Responses { columns: self.size(), values }
    }

    /// How far the columns are from normal: for those with variance, the share that a Jarque-Bera test
    /// rejects at 1 %, and their number. Every claim of the paper assumes normal columns.
    pub fn normality(&self) -> Normality {
        let mut found = Normality { columns: self.size(), varying: 0, rejected: 0 };
        for j in 0..self.size() {
            let column: Vec<f64> =
                self.responses.iter().map(|row| row[j]).filter(|value| !value.is_nan()).collect();
            if let Some(statistic) = jarque_bera(&column) {
                found.varying += 1;
                found.rejected += usize::from(statistic > CHI_SQUARE_2);
            }
        }
        found
    }
}

/// The upper 1 % point of chi-square with 2 degrees of freedom, -2 log(0.01).
const CHI_SQUARE_2: f64 = 9.210_340_371_976_184;

/// What the diagnostic of normality found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Normality {
    /// M.
    pub columns: usize,
    /// Columns that are not constant.
    pub varying: usize,
    /// Of these, how many are not normal at level 1 %.
    pub rejected: usize,
}

/// n/6 (skewness^2 + (kurtosis - 3)^2/4) (Jarque and Bera 1980); `None` for constant columns.
fn jarque_bera(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let moment = |power: u32| {
        let each = values.iter().map(|value| {
            let d = value - mean;
            (0..power).fold(1.0, |product, _| product * d)
        });
        each.sum::<f64>() / n
    };
    let variance = moment(2);
    if variance.is_nan() || variance <= 1e-24 * (mean * mean) {
        return None;
    }
    let skewness = moment(3) / (variance * variance.sqrt());
    let excess = moment(4) / (variance * variance) - 3.0;
    Some(n / 6.0 * (skewness * skewness + excess * excess / 4.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Key, Purpose};

    fn stream(replicate: u64) -> Stream {
        Stream::new(Key::new(1, &[0; 32], replicate, Purpose::Estimator))
    }

    fn rewards(protocol: Protocol) -> Rewards {
        let values = (0..20).map(f64::from).collect();
        let responses = Responses { columns: 2, values };
        Rewards { points: Points::numbered(2), responses, protocol, noise_variance: 0.0 }
    }

    #[test]
    fn a_function_is_never_among_its_training_data() {
        for protocol in [Protocol::LeaveOneOut, Protocol::First, Protocol::Random] {
            let rewards = rewards(protocol);
            for own in 0..10 {
                let small = rewards.training(own, 4, &mut stream(7));
                let large = rewards.training(own, 9, &mut stream(7));
                assert_eq!((small.rows(), large.rows()), (4, 9));
                assert_eq!(small.values, large.values[..8]);
                assert!(large.iter().all(|row| row[0] != 2.0 * own as f64));
            }
        }
        let first = rewards(Protocol::First).training(1, 2, &mut stream(0));
        assert_eq!(first.values, [0.0, 1.0, 4.0, 5.0]);
    }

    #[test]
    fn normal_columns_pass_and_others_do_not() {
        let mut normals = vec![0.0; 4000];
        stream(1).normals(&mut normals);
        // False alarm 1 %, seed fixed.
        assert!(jarque_bera(&normals).unwrap() < CHI_SQUARE_2);
        let squares: Vec<f64> = normals.iter().map(|z| z * z).collect();
        assert!(jarque_bera(&squares).unwrap() > 1000.0);
        assert_eq!(jarque_bera(&[3.0; 50]), None);
        // By hand: -1, 0, 1 has kurtosis 1.5 and no skewness.
        assert!((jarque_bera(&[-1.0, 0.0, 1.0]).unwrap() - 3.0 / 6.0 * 2.25 / 4.0).abs() < 1e-14);
    }
}
