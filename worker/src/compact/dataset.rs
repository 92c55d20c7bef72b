//! Training data of the compact setting: N functions observed at the same M points.

/// Data that cannot be trained on.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// No coordinates, no points or no responses.
    #[error("training needs at least one point, one dimension and one function")]
    Empty,
    /// The inputs are not whole points.
    #[error("{found} coordinates are not whole points of dimension {dimension}")]
    Inputs {
        /// Coordinates given.
        found: usize,
        /// d.
        dimension: usize,
    },
    /// The responses are not whole functions.
    #[error("{found} responses are not whole functions at {points} points")]
    Responses {
        /// Responses given.
        found: usize,
        /// M.
        points: usize,
    },
    /// A coordinate or response is not a number.
    #[error("coordinates and responses must be finite; found {value}")]
    NotFinite {
        /// The first that is not.
        value: f64,
    },
}

/// Inputs (M x d) and responses (N x M), row by row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dataset<'a> {
    inputs: &'a [f64],
    dimension: usize,
    responses: &'a [f64],
}

impl<'a> Dataset<'a> {
    /// Checks shapes and values.
    pub fn new(inputs: &'a [f64], dimension: usize, responses: &'a [f64]) -> Result<Self, Invalid> {
        if inputs.is_empty() || dimension == 0 || responses.is_empty() {
            return Err(Invalid::Empty);
        }
        if !inputs.len().is_multiple_of(dimension) {
            return Err(Invalid::Inputs { found: inputs.len(), dimension });
        }
        let points = inputs.len() / dimension;
        if !responses.len().is_multiple_of(points) {
            return Err(Invalid::Responses { found: responses.len(), points });
        }
        if let Some(&value) = inputs.iter().chain(responses).find(|v| !v.is_finite()) {
            return Err(Invalid::NotFinite { value });
        }
        Ok(Self { inputs, dimension, responses })
    }

    /// d.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// M.
    pub fn points(&self) -> usize {
        self.inputs.len() / self.dimension
    }

    /// N.
    pub fn functions(&self) -> usize {
        self.responses.len() / self.points()
    }

    /// The inputs, point by point.
    pub fn inputs(&self) -> &'a [f64] {
        self.inputs
    }

    /// The responses, function by function.
    pub fn responses(&self) -> &'a [f64] {
        self.responses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_values_are_checked() {
        let data = Dataset::new(&[0.0; 6], 2, &[1.0; 12]).unwrap();
        assert_eq!((data.points(), data.functions(), data.dimension()), (3, 4, 2));
        assert_eq!(Dataset::new(&[], 1, &[1.0]), Err(Invalid::Empty));
        let ragged = Dataset::new(&[0.0; 5], 2, &[1.0]);
        assert_eq!(ragged, Err(Invalid::Inputs { found: 5, dimension: 2 }));
        let ragged = Dataset::new(&[0.0; 3], 1, &[1.0; 4]);
        assert_eq!(ragged, Err(Invalid::Responses { found: 4, points: 3 }));
        assert!(matches!(Dataset::new(&[0.0], 1, &[f64::NAN]), Err(Invalid::NotFinite { .. })));
    }
}
