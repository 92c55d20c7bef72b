//! A study of many cells, for measurements of what does not depend on how trials are computed.

/// A study of 1,000 cells. Of a summary most trials are only counted, so that no records have to be
/// made up for it.
pub fn thousand_cells(seed: u64, replicates: u64) -> String {
    format!(
        r#"[study]
name = "large"
seed = {seed}
replicates = {replicates}
detail = "summary"
[prior]
setting = "finite"
domain = {{ kind = "grid", points = 80, dimension = 1 }}
kernel = {{ kind = "squared-exponential", lengthscale = 0.1 }}
mean = {{ kind = "zero" }}
noise_variance = 0.01
[grid]
N = [200, 300, 400, 500, 600, 700, 800, 900, 1000, 2000]
T = [1, 5, 20, 50]
delta = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
"prior.noise_variance" = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1]
"#
    )
}
