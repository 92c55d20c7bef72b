"""Writes gp.json: likelihoods, gradients, predictions and optima of scikit-learn's GaussianProcessRegressor.

    python3 -m pip install scikit-learn
    python3 worker/tests/gp.py > worker/tests/gp.json

theta is (log v, log l, log s). scikit-learn's deviation is that of a response: it includes the noise. Optima are
the best of 40 starts, polished; bounds are those of each case.
"""

import json
import os
import sys
import warnings

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # sums in one order

import numpy as np
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

BOUNDS = {"variance": [1e-3, 1e4], "length": [0.02, 20.0], "noise": [1e-8, 10.0]}
THETAS = [[0.0, -1.0, -2.0], [1.5, -0.3, -6.0], [-0.7, 0.6, 0.4], [0.2, -3.0, -1.0]]


def regressor(**options):
    kernel = ConstantKernel(1.0, BOUNDS["variance"]) * RBF(1.0, BOUNDS["length"]) + WhiteKernel(0.1, BOUNDS["noise"])
    # Without the jitter that it adds on its own.
    return GaussianProcessRegressor(kernel, alpha=0.0, **options)


def settings(rng):
    """Inputs and responses; the fourth and fifth have repeated inputs."""
    for n, d, distinct in [(1, 1, 1), (7, 1, 7), (20, 2, 20), (25, 3, 9), (40, 5, 17), (33, 2, 33)]:
        inputs = rng.integers(0, 64, (distinct, d)) / 64
        x = np.vstack([inputs, inputs[rng.integers(0, distinct, n - distinct)]])
        f = np.sin(5 * x[:, 0]) + (x**2).sum(axis=1)
        y = np.round(f + rng.normal(0, 0.2, n) * (n != 33), 3)
        yield x, y


def optimum(x, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = regressor(n_restarts_optimizer=39, random_state=1, normalize_y=True).fit(x, y)
        loss = lambda theta: tuple(-part for part in model.log_marginal_likelihood(theta, eval_gradient=True))
        best = minimize(loss, model.kernel_.theta, jac=True, method="L-BFGS-B", bounds=model.kernel_.bounds,
                        options={"ftol": 1e-15, "gtol": 1e-9})
    return round(-best.fun, 7)


def case(x, y, rng):
    model = regressor(optimizer=None)
    asked = rng.integers(0, 32, (3, x.shape[1])) / 32
    values = []
    for theta in THETAS:
        model.kernel = model.kernel.clone_with_theta(np.array(theta))
        model.fit(x, y)
        value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
        mean, deviation = model.predict(asked, return_std=True)
        values.append({"theta": theta, "log_likelihood": value, "gradient": list(gradient), "mean": list(mean),
                       "deviation": list(deviation)})
    return {"x": x.tolist(), "y": y.tolist(), "asked": asked.tolist(), "values": values, "optimum": optimum(x, y)}


rng = np.random.default_rng(1)
cases = [case(x, y, rng) for x, y in settings(rng)]
json.dump({"bounds": BOUNDS, "cases": cases}, sys.stdout, indent=None)
print()
