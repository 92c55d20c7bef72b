//! prof
use study::cell::{Cell, Estimator, Policy, PolicyConstants, Training};
fn main() {
    let m: usize = std::env::args().nth(1).map_or(1000, |a| a.parse().unwrap());
    let prior = se(m);
    let policy = Policy::PemUcb { training: Training { n: 1500, estimator: Estimator::Wishart }, delta: theory::Delta::new(0.1).unwrap(), constants: PolicyConstants::Printed };
    let cell = Cell { shape: [0; 32], noise_variance: 0.01, policy };
    let t = worker::trial::Trials::new(&prior, cell, 1, &[100], worker::Cpu::detect()).unwrap();
    t.run(0..(800 * 1000 / m) as u64, &mut |r| { std::hint::black_box(r); });
}
use study::prior::{Files, PriorSpec};
pub fn se(m: usize) -> worker::prior::Prior {
    let spec: PriorSpec = serde_json::from_str(&format!(r#"{{"setting":"finite","domain":{{"kind":"grid","points":{m},"dimension":1}},"kernel":{{"kind":"squared-exponential","lengthscale":0.05}},"mean":{{"kind":"zero"}},"noise_variance":0.01}}"#)).unwrap();
    worker::prior::Prior::build(&spec, &Files::default(), worker::prior::MemoryLimit { bytes: 1 << 34, state_per_point: 1600 }).unwrap()
}
