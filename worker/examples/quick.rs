//! quick
use std::time::Duration;
use study::prior::{Files, PriorSpec};
pub fn se(m: usize) -> worker::prior::Prior {
    let spec: PriorSpec = serde_json::from_str(&format!(r#"{{"setting":"finite","domain":{{"kind":"grid","points":{m},"dimension":1}},"kernel":{{"kind":"squared-exponential","lengthscale":0.05}},"mean":{{"kind":"zero"}},"noise_variance":0.01}}"#)).unwrap();
    worker::prior::Prior::build(&spec, &Files::default(), worker::prior::MemoryLimit { bytes: 1 << 34, state_per_point: 1600 }).unwrap()
}
fn main() {
    for (m, n, t) in [(1000, 1500, 100), (500, 1000, 50), (162, 1800, 100), (1000, 1_000_000, 100), (8000, 1500, 100)] {
        let prior = se(m);
        let r = worker::bench::time(&prior, worker::bench::Case { n, horizon: t }, Duration::from_secs(2));
        println!("M={m} N={n} T={t} rank {} trial {:.3} ms floor {:.3} ms ratio {:.2}", prior.factor.rank(), r.trial, r.floor, r.trial / r.floor);
    }
}
