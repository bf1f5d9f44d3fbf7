//! Random numbers with the distributions that traffic models use.

use foxy_base::Rng;

/// Draws one number from the standard normal distribution (Box and Muller; one value of the pair is used).
pub fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * open_unit(rng).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.unit()).cos()
}

/// Draws one number from the exponential distribution with this mean.
pub fn exponential(rng: &mut Rng, mean: f64) -> f64 {
    -mean * open_unit(rng).ln()
}

/// Draws one number from the lognormal distribution. `mu` and `sigma` are the parameters of the underlying
/// normal distribution.
pub fn lognormal(rng: &mut Rng, mu: f64, sigma: f64) -> f64 {
    (mu + sigma * normal(rng)).exp()
}

/// Draws one number from the Pareto distribution with minimum `least` and tail exponent `alpha`.
pub fn pareto(rng: &mut Rng, least: f64, alpha: f64) -> f64 {
    least * open_unit(rng).powf(-1.0 / alpha)
}

/// Draws one number uniformly from `(0, 1]`, so that the logarithm of the result is finite.
fn open_unit(rng: &mut Rng) -> f64 {
    1.0 - rng.unit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(draw: impl FnMut(&mut Rng) -> f64) -> f64 {
        let mut draw = draw;
        let mut rng = Rng::new(5);
        (0..200_000).map(|_| draw(&mut rng)).sum::<f64>() / 200_000.0
    }

    #[test]
    fn means_are_as_the_formulas_say() {
        let near = |got: f64, want: f64, what: &str| {
            assert!(
                (got - want).abs() < 0.02 * want.abs().max(1.0),
                "{what}: {got} for {want}"
            );
        };
        near(mean(normal), 0.0, "normal");
        near(mean(|r| normal(r).powi(2)), 1.0, "variance");
        near(mean(|r| exponential(r, 5.0)), 5.0, "exponential");
        near(
            mean(|r| lognormal(r, 1.0, 0.5)),
            (1.125f64).exp(),
            "lognormal",
        );
        near(mean(|r| pareto(r, 2.0, 3.0)), 3.0, "pareto");
    }
}
