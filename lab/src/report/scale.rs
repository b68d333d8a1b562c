//! Scales: from figures to places on a plot, with ticks at round numbers.
//!
//! Promises: every figure that a scale was made for has its place between the ends; a linear scale begins at zero, so that
//! lengths compare; a logarithmic one is only made for figures above zero. Knows nothing of what is measured.

/// Points that differ by more are told apart only by their logarithms.
pub(super) const POINTS_RATIO_MAX: f64 = 50.0;
/// Bars, which begin at zero to be compared by length, may differ by more before the short ones cannot be seen.
pub(super) const BARS_RATIO_MAX: f64 = 200.0;

/// Numbers along an axis that grow by more are looked at by their factors.
const AXIS_RATIO_MAX: f64 = 20.0;

/// A scale between two places.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    /// `low < high`; both above zero if logarithmic.
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    is_logarithmic: bool,
}

impl Scale {
    /// For these figures, logarithmic where they differ by more than the factor.
    pub(super) fn fit(figures: impl Iterator<Item = f64> + Clone, ratio_max: f64, from: f64, to: f64) -> Self {
        let low = figures.clone().fold(f64::INFINITY, f64::min);
        let high = figures.clone().fold(f64::NEG_INFINITY, f64::max);
        if low > 0.0 && high / low > ratio_max {
            // Room for a mark at the ends.
            let (low, high) = (low / 1.25, high * 1.25);
            return Self {
                low,
                high,
                from,
                to,
                is_logarithmic: true,
            };
        }
        Self::linear(figures, from, to)
    }

    /// For these figures, from zero on.
    pub(super) fn linear(figures: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (low, high) = figures.fold((0.0, 0.0), |(low, high): (f64, f64), figure| {
            (low.min(figure), high.max(figure))
        });
        let high = if low < high { high } else { 1.0 };
        let step = step(high - low, 5);
        Self {
            low: (low / step).floor() * step,
            high: (high / step).ceil() * step,
            from,
            to,
            is_logarithmic: false,
        }
    }

    /// For the numbers along an axis: logarithmic where they grow by factors, and from end to end without room to spare.
    pub(super) fn along(low: f64, high: f64, from: f64, to: f64) -> Self {
        let is_logarithmic = low > 0.0 && high / low >= AXIS_RATIO_MAX;
        let low = if is_logarithmic { low } else { low.min(0.0) };
        Self {
            low,
            high: if low < high { high } else { low + 1.0 },
            from,
            to,
            is_logarithmic,
        }
    }

    /// Whether equal steps are equal factors.
    pub(super) fn is_logarithmic(&self) -> bool {
        self.is_logarithmic
    }

    /// Where a figure is.
    pub(super) fn place(&self, figure: f64) -> f64 {
        let share = if self.is_logarithmic {
            (figure / self.low).ln() / (self.high / self.low).ln()
        } else {
            (figure - self.low) / (self.high - self.low)
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Where a bar begins.
    pub(super) fn origin(&self) -> f64 {
        if self.is_logarithmic {
            self.from
        } else {
            self.place(0.0)
        }
    }

    /// Round figures along the scale, about as many as asked for.
    pub(super) fn ticks(&self, about: usize) -> Vec<f64> {
        if !self.is_logarithmic {
            let step = step(self.high - self.low, about);
            let count = ((self.high - self.low) / step + 1e-6).floor();
            let first = (self.low / step).ceil();
            let mut at = 0.0;
            let mut ticks = Vec::new();
            while at <= count {
                ticks.push((first + at) * step);
                at += 1.0;
            }
            ticks.retain(|tick| *tick <= self.high * (1.0 + 1e-9));
            return ticks;
        }
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let all: Vec<(i32, f64)> = decades
            .flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| (decade, digit * 10f64.powi(decade))))
            .filter(|(_, tick)| (self.low..=self.high).contains(tick))
            .collect();
        if all.len() <= about + 1 {
            return all.into_iter().map(|(_, tick)| tick).collect();
        }
        let is_power = |decade: i32, tick: f64| tick < 1.5 * 10f64.powi(decade);
        let powers: Vec<(i32, f64)> = all
            .into_iter()
            .filter(|(decade, tick)| is_power(*decade, *tick))
            .collect();
        let every = i32::try_from(powers.len().div_ceil(about.max(1))).unwrap_or(i32::MAX);
        let kept = powers.iter().filter(|(decade, _)| decade.rem_euclid(every) == 0);
        kept.map(|(_, tick)| *tick).collect()
    }
}

/// The round step that divides a range into about so many parts.
fn step(range: f64, about: usize) -> f64 {
    let rough = range / about.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let digit = match rough / power {
        ..=1.0 => 1.0,
        ..=2.0 => 2.0,
        ..=5.0 => 5.0,
        _ => 10.0,
    };
    digit * power
}

/// A figure in few letters: 1.53M, 963k, 12.3, 0.166.
pub(super) fn compact(figure: f64) -> String {
    let size = figure.abs();
    let (divided, letter) = match size {
        999.5e9.. => (figure / 1e12, "T"),
        999.5e6.. => (figure / 1e9, "G"),
        999.5e3.. => (figure / 1e6, "M"),
        999.5.. => (figure / 1e3, "k"),
        _ => (figure, ""),
    };
    if divided.abs() >= 1e4 {
        return format!("{figure:.2e}");
    }
    let decimals = match divided.abs() {
        99.95.. => 0,
        9.995.. => 1,
        0.9995.. => 2,
        0.0995.. => 3,
        0.001.. => 4,
        0.0 => 0,
        _ => return format!("{figure:.1e}"),
    };
    let text = format!("{divided:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text}{letter}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(figures: &[f64]) -> Scale {
        Scale::fit(figures.iter().copied(), POINTS_RATIO_MAX, 0.0, 100.0)
    }

    #[test]
    fn figures_keep_their_order_and_stay_between_the_ends() {
        for figures in [
            &[1.0, 2.0, 3.0][..],
            &[0.001, 1e9],
            &[0.0, 5.0],
            &[0.0],
            &[-3.0, 7.0],
            &[1e-12],
            &[5.0, 5.0],
            &[1e300, 1.0],
        ] {
            let scale = fit(figures);
            for figure in figures {
                let place = scale.place(*figure);
                assert!((0.0..=100.0).contains(&place), "{figure} of {figures:?} at {place}");
                for other in figures.iter().filter(|other| *other > figure) {
                    assert!(place < scale.place(*other), "{figures:?}");
                }
            }
        }
    }

    #[test]
    fn what_differs_much_is_logarithmic_and_what_can_be_zero_is_not() {
        assert!(fit(&[10.0, 1000.0]).is_logarithmic());
        assert!(!fit(&[10.0, 100.0]).is_logarithmic());
        assert!(!fit(&[0.0, 1000.0]).is_logarithmic());
        let linear = fit(&[90.0, 100.0]);
        assert_eq!((linear.place(0.0), linear.origin()), (0.0, 0.0), "from zero on");
        assert_eq!(linear.place(50.0) * 2.0, linear.place(100.0), "lengths compare");
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(fit(&[0.0, 7.0]).ticks(4), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(fit(&[1.0, 100.0]).ticks(7), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(fit(&[1.0, 10_000.0]).ticks(6), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
        assert_eq!(fit(&[5e3, 2.5e6]).ticks(4), [1e4, 1e5, 1e6]);
        for figures in [
            &[0.001, 1e9][..],
            &[1.0, 60.0],
            &[0.03],
            &[123.0, 456.0],
            &[1e-9, 1e200],
        ] {
            let ticks = fit(figures).ticks(5);
            assert!((2..=12).contains(&ticks.len()), "{figures:?}: {ticks:?}");
        }
    }

    #[test]
    fn compact_figures_have_three_digits_at_most() {
        for (figure, text) in [
            (1_533_986.0, "1.53M"),
            (963_590.0, "964k"),
            (999_700.0, "1M"),
            (1000.0, "1k"),
            (10_000.0, "10k"),
            (100.0, "100"),
            (12.34, "12.3"),
            (0.166, "0.166"),
            (0.05, "0.05"),
            (0.0, "0"),
            (-5.0, "-5"),
            (2.5e9, "2.5G"),
            (1e12, "1T"),
            (1e17, "1.00e17"),
            (1e-7, "1.0e-7"),
        ] {
            assert_eq!(compact(figure), text);
        }
    }
}
