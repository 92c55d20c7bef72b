use super::super::fixture::{fourier, functions, normals, points, stream};
use super::super::weights::weights;
use super::*;

/// Functions of a squared-exponential process, by very many random features: inputs and responses.
fn process(m: usize, n: usize, d: usize, lengthscale: f64) -> (Vec<f64>, Vec<f64>) {
    let mut s = stream(0);
    let inputs = points(m, d, &mut s);
    let responses = functions(&fourier(2000, d, lengthscale, &mut s), &inputs, n, &mut s);
    (inputs, responses)
}

#[test]
fn learnt_features_fit_far_better_than_random_ones() {
    let (inputs, responses) = process(300, 20, 2, 0.25);
    let data = Dataset::new(&inputs, 2, &responses).unwrap();
    let learnt = learn(Cpu::detect(), &data, &Options::new(40), &mut stream(1)).unwrap();
    assert!(learnt.loss() < 0.02 * learnt.losses[0], "{:?}", learnt.losses);
    assert!(learnt.losses.windows(2).all(|w| w[1] < w[0]));
    assert_eq!(learnt.iterations(), learnt.losses.len() - 1);
}

/// The reported loss is that of the returned features, in the units of the inputs.
#[test]
fn the_loss_is_that_of_the_features_returned() {
    let (mut inputs, responses) = process(200, 5, 2, 0.3);
    inputs.chunks_mut(2).for_each(|x| (x[0], x[1]) = (1000.0 * x[0] - 400.0, 0.01 * x[1] + 3.0));
    let data = Dataset::new(&inputs, 2, &responses).unwrap();
    let options = Options { iterations: 30, ..Options::new(20) };
    let learnt = learn(Cpu::detect(), &data, &options, &mut stream(1)).unwrap();
    let w = weights(Cpu::detect(), &learnt.cosines, &data, options.ridge).unwrap();
    let (mut squares, mut phi) = (0.0, vec![0.0; 20]);
    for (m, x) in inputs.chunks(2).enumerate() {
        learnt.cosines.phi(Cpu::detect(), x, &mut phi);
        for (i, w) in w.chunks(20).enumerate() {
            let fit: f64 = w.iter().zip(&phi).map(|(w, p)| w * p).sum();
            squares += (responses[i * 200 + m] - fit) * (responses[i * 200 + m] - fit);
        }
    }
    squares += options.ridge * 10.0 * w.iter().map(|w| w * w).sum::<f64>();
    let loss = squares / responses.iter().map(|y| y * y).sum::<f64>();
    assert!((loss / learnt.loss() - 1.0).abs() < 1e-6, "{loss} {}", learnt.loss());
}

#[test]
fn units_of_the_inputs_do_not_matter() {
    let (inputs, responses) = process(100, 4, 2, 0.3);
    // Powers of two, so that standardised inputs have the same bits.
    let scaled: Vec<f64> = inputs.iter().map(|x| x * 1024.0).collect();
    let run = |inputs: &[f64]| {
        let data = Dataset::new(inputs, 2, &responses).unwrap();
        let options = Options { iterations: 15, ..Options::new(10) };
        learn(Cpu::detect(), &data, &options, &mut stream(1)).unwrap().losses
    };
    assert_eq!(run(&inputs), run(&scaled));
}

#[test]
fn functions_of_a_few_cosines_are_fitted_exactly() {
    let mut s = stream(3);
    for d in [1, 2] {
        let inputs = points(150, d, &mut s);
        let responses = functions(&fourier(4, d, 0.4, &mut s), &inputs, 10, &mut s);
        let data = Dataset::new(&inputs, d, &responses).unwrap();
        let options = Options { ridge: 1e-10, tolerance: 1e-2, ..Options::new(12) };
        let learnt = learn(Cpu::detect(), &data, &options, &mut s).unwrap();
        assert!(learnt.loss() < 1e-7, "d = {d}: {} {}", learnt.losses[0], learnt.loss());
    }
}

#[test]
fn the_same_bits_on_every_instruction_set_and_every_time() {
    let (inputs, responses) = process(90, 7, 2, 0.3);
    let data = Dataset::new(&inputs, 2, &responses).unwrap();
    let options = Options { iterations: 20, ..Options::new(13) };
    let run = |cpu| learn(cpu, &data, &options, &mut stream(1)).unwrap();
    assert_eq!(run(Cpu::detect()), run(Cpu::plain()));
    assert_eq!(run(Cpu::detect()), run(Cpu::detect()));
    assert_ne!(run(Cpu::detect()), learn(Cpu::detect(), &data, &options, &mut stream(2)).unwrap());
}

#[test]
fn what_cannot_be_learnt_is_refused() {
    let (inputs, responses) = (normals(10, 0), normals(20, 1));
    let data = Dataset::new(&inputs, 1, &responses).unwrap();
    let run = |options: Options| learn(Cpu::detect(), &data, &options, &mut stream(1)).unwrap_err();
    let error = run(Options::new(11));
    assert_eq!(error, Error::TooFewPoints { features: 11, points: 10 });
    assert_eq!(
        error.to_string(),
        "11 features cannot be learnt from 10 points: at least as many are needed"
    );
    assert_eq!(run(Options::new(0)), Error::NoFeatures);
    let ridge = run(Options { ridge: 0.0, ..Options::new(2) });
    assert_eq!(ridge, Error::Ridge { ridge: 0.0 });
}

#[test]
fn one_point_and_constant_responses_are_no_trouble() {
    let data = Dataset::new(&[0.5, 0.5], 2, &[1.0, -2.0]).unwrap();
    let learnt = learn(Cpu::detect(), &data, &Options::new(1), &mut stream(1)).unwrap();
    assert!(learnt.loss() < 1e-6);
    let data = Dataset::new(&[0.1, 0.2, 0.3], 1, &[0.0; 3]).unwrap();
    let learnt = learn(Cpu::detect(), &data, &Options::new(2), &mut stream(1)).unwrap();
    assert_eq!(learnt.losses, [0.0]);
}
