//! The least value of a function of one variable on a grid, refined by its derivative.
//!
//! The grid makes it global; from its best node the derivative says on which side the minimum lies,
//! and its root is bracketed there and found to the last bits, which comparing values alone, flat at
//! the minimum, could not do.

use theory::special::{Bracket, find_root};

/// Where the least value lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Minimum {
    Inside(f64),
    FirstNode,
    LastNode,
}

/// A function, by value and by derivative.
pub(super) struct Smooth<V, D> {
    pub(super) value: V,
    pub(super) derivative: D,
}

/// Enough halvings to separate any two nodes.
const MAX_HALVINGS: usize = 60;

impl<V: Fn(f64) -> f64, D: Fn(f64) -> f64> Smooth<V, D> {
    /// The minimum next to the best node, given the values at all ascending nodes.
    pub(super) fn minimum(&self, nodes: &[f64], values: &[f64]) -> Minimum {
        let best = (0..nodes.len()).fold(0, |k, i| if values[i] < values[k] { i } else { k });
        let slope = (self.derivative)(nodes[best]);
        if slope == 0.0 {
            return Minimum::Inside(nodes[best]);
        }
        if slope > 0.0 && best == 0 {
            return Minimum::FirstNode;
        }
        if slope < 0.0 && best + 1 == nodes.len() {
            return Minimum::LastNode;
        }
        let far = if slope > 0.0 { nodes[best - 1] } else { nodes[best + 1] };
        let bracket = self.bracket(nodes[best], far, slope > 0.0);
        Minimum::Inside(find_root(&self.derivative, bracket))
    }

    /// Narrows (near, far), where the value falls from `near` on towards a `far` that is no lower,
    /// until the derivative changes sign between them. A hump before `far` may hide that.
    fn bracket(&self, mut near: f64, mut far: f64, rising: bool) -> Bracket {
        for _ in 0..MAX_HALVINGS {
            if ((self.derivative)(far) > 0.0) != rising {
                break;
            }
            let middle = 0.5 * (near + far);
            let turned = ((self.derivative)(middle) > 0.0) != rising;
            if turned || (self.value)(middle) >= (self.value)(near) {
                far = middle;
            } else {
                near = middle;
            }
        }
        Bracket { low: near, high: far }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: impl Fn(f64) -> f64, derivative: impl Fn(f64) -> f64, nodes: &[f64]) -> Minimum {
        let values: Vec<f64> = nodes.iter().map(|&x| value(x)).collect();
        Smooth { value, derivative }.minimum(nodes, &values)
    }

    #[test]
    fn inside_and_at_the_ends() {
        let nodes = [0.0, 1.0, 2.0, 3.0];
        let parabola = |at: f64| of(|x| (x - at) * (x - at), |x| 2.0 * (x - at), &nodes);
        let Minimum::Inside(x) = parabola(1.3) else { panic!("inside") };
        assert!((x - 1.3).abs() < 1e-15);
        let Minimum::Inside(x) = parabola(2.8) else { panic!("inside") };
        assert!((x - 2.8).abs() < 1e-15);
        assert_eq!(parabola(2.0), Minimum::Inside(2.0));
        assert_eq!(parabola(-0.1), Minimum::FirstNode);
        assert_eq!(parabola(3.1), Minimum::LastNode);
    }

    #[test]
    fn a_hump_between_two_nodes() {
        // sin(7x) + x from 0: the minimum left of 1 lies beyond a maximum on the way to 0.
        let value = |x: f64| libm::sin(7.0 * x) + x;
        let slope = |x: f64| 7.0 * libm::cos(7.0 * x) + 1.0;
        let nodes = [0.0, 0.75, 1.5];
        let Minimum::Inside(x) = of(value, slope, &nodes) else { panic!("inside") };
        assert!(slope(x).abs() < 1e-12 && value(x) < value(0.0) && value(x) < value(0.75), "{x}");
    }
}
