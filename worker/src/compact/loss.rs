//! What learning minimises: the squared error of all functions with the best output weights for each,
//!
//! `L(w, b) = min_W (|Y - Phi W|^2 + lambda |W|^2) / |Y|^2`,
//!
//! Phi (M x K) the features at the inputs and Y (M x N) the responses. W is eliminated (variable
//! projection): at its minimum the derivative with respect to Phi is -2 (Y - Phi W) W^T / |Y|^2, as if W
//! were constant. lambda = ridge M/K keeps W bounded where features are nearly dependent.

use theory::PANEL;

use super::cholesky::Cholesky;
use super::features::Cosines;
use super::panels::{Panels, total};
use crate::simd::Cpu;

/// The loss of some training data, and room for its evaluation.
pub(super) struct Loss {
    cpu: Cpu,
    cosines: Cosines,
    lambda: f64,
    /// |Y|^2, or 1 where all responses are zero.
    scale: f64,
    /// d x M.
    inputs: Panels,
    /// M x N, and its transpose.
    responses: Panels,
    responses_t: Panels,
    room: Room,
}

struct Room {
    /// K x M: the features, their sines, and the derivative with respect to the features.
    cosine: Panels,
    sine: Panels,
    slope: Panels,
    /// M x K.
    cosine_t: Panels,
    gram: Panels,
    /// Minus W, K x N, and its transpose.
    negative: Panels,
    negative_t: Panels,
    /// N x M.
    residual: Panels,
    /// For every feature, eight partial sums of each derivative.
    sums: Vec<[f64; PANEL]>,
}

impl Room {
    fn new(k: usize, m: usize, n: usize, d: usize) -> Self {
        Self {
            cosine: Panels::zeros(k, m),
            sine: Panels::zeros(k, m),
            slope: Panels::zeros(k, m),
            cosine_t: Panels::zeros(m, k),
            gram: Panels::zeros(k, k),
            negative: Panels::zeros(k, n),
            negative_t: Panels::zeros(n, k),
            residual: Panels::zeros(n, m),
            sums: vec![[0.0; PANEL]; k * (d + 1)],
        }
    }
}

impl Loss {
    /// For K features, of inputs d x M and responses N x M.
    pub(super) fn new(
        cpu: Cpu,
        features: usize,
        ridge: f64,
        inputs: Panels,
        responses_t: Panels,
    ) -> Self {
        let (d, m, n) = (inputs.rows(), inputs.columns(), responses_t.rows());
        let norm = responses_t.squared_norm();
        Self {
            cpu,
            cosines: Cosines::still(features, d),
            lambda: ridge * m as f64 / features as f64,
            scale: if norm > 0.0 { norm } else { 1.0 },
            responses: responses_t.transpose(),
            responses_t,
            room: Room::new(features, m, n, d),
            inputs,
        }
    }

    /// L and its gradient with respect to the parameters of [`Cosines`]; infinity where the features
    /// are too dependent for the ridge.
    pub(super) fn evaluate(&mut self, parameters: &[f64], gradient: &mut [f64]) -> f64 {
        self.cosines.set_parameters(parameters);
        let Some(value) = self.eliminate() else {
            gradient.fill(0.0);
            return f64::INFINITY;
        };
        let Self { room, cpu, .. } = self;
        room.negative.transpose_into(&mut room.negative_t);
        room.slope.clear();
        room.slope.add_transposed_product(*cpu, &room.negative_t, &room.residual);
        self.chain(gradient);
        value
    }

    /// Finds W and the residual, and from them the loss.
    fn eliminate(&mut self) -> Option<f64> {
        let Self { room, cpu, .. } = self;
        let cpu = *cpu;
        self.cosines.batch_into(cpu, &self.inputs, &mut room.cosine, &mut room.sine);
        room.cosine.transpose_into(&mut room.cosine_t);
        room.gram.clear();
        room.gram.add_gram(cpu, &room.cosine_t);
        room.negative.clear();
        room.negative.add_transposed_product(cpu, &room.cosine_t, &self.responses);
        Cholesky::new(&room.gram, self.lambda)?.solve(&mut room.negative);
        room.negative.negate();
        room.residual.copy_from(&self.responses_t);
        room.residual.add_transposed_product(cpu, &room.negative, &room.cosine);
        let squares = room.residual.squared_norm() + self.lambda * room.negative.squared_norm();
        Some(squares / self.scale)
    }

    /// From derivatives with respect to the features to those with respect to the parameters:
    /// dPhi_k/db_k = -sine, dPhi_k/dw_kj = -sine x_j.
    fn chain(&mut self, gradient: &mut [f64]) {
        let Self { room, inputs, .. } = self;
        let (k, d) = (self.cosines.count(), self.cosines.dimension());
        room.sums.fill([0.0; PANEL]);
        for p in 0..inputs.count() {
            let rows = room.slope.panel(p).iter().zip(room.sine.panel(p));
            for ((slope, sine), sums) in rows.zip(room.sums.chunks_exact_mut(d + 1)) {
                let product: [f64; PANEL] = std::array::from_fn(|lane| slope[lane] * sine[lane]);
                let (phase, frequencies) = sums.split_last_mut().expect("d + 1 sums");
                for (sums, x) in frequencies.iter_mut().zip(inputs.panel(p)) {
                    for lane in 0..PANEL {
                        sums[lane] += product[lane] * x[lane];
                    }
                }
                for lane in 0..PANEL {
                    phase[lane] += product[lane];
                }
            }
        }
        gradient.fill(0.0);
        let padded = self.cosines.padded();
        for feature in 0..k {
            for j in 0..=d {
                let sum = total(room.sums[feature * (d + 1) + j]);
                gradient[j * padded + feature] = -2.0 * sum / self.scale;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::normals;
    use super::*;

    fn loss(cpu: Cpu) -> (Loss, Vec<f64>) {
        let inputs = Panels::from_rows(&normals(2 * 37, 0), 37);
        let loss = Loss::new(cpu, 11, 1e-3, inputs, Panels::from_rows(&normals(5 * 37, 1), 37));
        let cosines = Cosines::new(&normals(22, 2), &normals(11, 3), 2).unwrap();
        (loss, cosines.parameters().to_vec())
    }

    #[test]
    fn the_gradient_agrees_with_finite_differences() {
        let (mut loss, parameters) = loss(Cpu::detect());
        let mut gradient = vec![0.0; parameters.len()];
        let value = loss.evaluate(&parameters, &mut gradient);
        assert!(value > 0.0 && value < 1.0);
        let mut unused = gradient.clone();
        let step = 1e-5;
        for at in (0..parameters.len()).filter(|at| at % 16 < 11) {
            let mut moved = |by: f64| {
                let mut parameters = parameters.clone();
                parameters[at] += by;
                loss.evaluate(&parameters, &mut unused)
            };
            let difference = (moved(step) - moved(-step)) / (2.0 * step);
            assert!((gradient[at] - difference).abs() < 1e-9, "{} {difference}", gradient[at]);
            assert!(gradient[at] != 0.0);
        }
    }

    #[test]
    fn the_gradient_of_padding_is_zero() {
        let (mut loss, parameters) = loss(Cpu::detect());
        let mut gradient = vec![1.0; parameters.len()];
        loss.evaluate(&parameters, &mut gradient);
        assert!(gradient.iter().enumerate().all(|(at, &g)| at % 16 < 11 || g == 0.0));
    }

    #[test]
    fn plain_and_vector_code_give_the_same_bits() {
        let run = |cpu| {
            let (mut loss, parameters) = loss(cpu);
            let mut gradient = vec![0.0; parameters.len()];
            let value = loss.evaluate(&parameters, &mut gradient);
            (value.to_bits(), gradient.iter().map(|g| g.to_bits()).collect::<Vec<_>>())
        };
        assert_eq!(run(Cpu::detect()), run(Cpu::plain()));
    }
}
