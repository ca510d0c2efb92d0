//! A straight line through samples by least squares, and how sure its slope is.

/// Means that the samples are gathered into, each of as many in a row. Samples seconds apart are alike (memory grows
/// and falls in waves), so that their scatter would make the slope look far surer than it is; means of minutes are not.
const BLOCKS: usize = 15;
/// Student's t for 95 %, two-sided, by degrees of freedom from 1 on.
const STUDENT: [f64; 13] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160];

/// The line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slope {
    /// The mean of the values.
    pub(crate) mean: f64,
    /// Growth of the value for each unit of time.
    pub(crate) slope: f64,
    /// Half the width of the slope's 95 % interval.
    pub(crate) noise: f64,
}

impl Slope {
    /// The line through `(time, value)`, in the order of time. `None` with fewer samples than three for each block.
    pub(crate) fn of(samples: &[(f64, f64)]) -> Option<Self> {
        let each = samples.len() / BLOCKS;
        if each < 3 {
            return None;
        }
        // What does not fill the blocks is left out at the beginning.
        let blocks: Vec<(f64, f64)> = samples[samples.len() - each * BLOCKS..].chunks(each).map(mean).collect();
        let (at, value) = mean(&blocks);
        let spread: f64 = blocks.iter().map(|(t, _)| (t - at).powi(2)).sum();
        let slope = blocks.iter().map(|(t, v)| (t - at) * (v - value)).sum::<f64>() / spread;
        let left: f64 = blocks.iter().map(|(t, v)| (v - value - slope * (t - at)).powi(2)).sum();
        let error = (left / (BLOCKS - 2) as f64 / spread).sqrt();
        Some(Self { mean: value, slope, noise: STUDENT[BLOCKS - 3] * error })
    }

    /// Nothing says that the value grows: zero, or less, lies within the noise.
    pub(crate) fn is_flat(&self) -> bool {
        self.slope <= self.noise
    }
}

fn mean(samples: &[(f64, f64)]) -> (f64, f64) {
    let count = samples.len() as f64;
    let sum = samples.iter().fold((0.0, 0.0), |sum, sample| (sum.0 + sample.0, sum.1 + sample.1));
    (sum.0 / count, sum.1 / count)
}

/// Panics unless a line is found again under a wave, and a wave alone is no growth. Run by programs that rely on it.
pub(crate) fn check() {
    let wave = |t: f64| (t * 0.9).sin() * 4.0;
    let line = |growth: f64| -> Vec<(f64, f64)> {
        (0..450).map(|n| f64::from(n) * 0.1).map(|t| (t, 100.0 + growth * t + wave(t))).collect()
    };
    let (grows, flat) = (Slope::of(&line(2.0)), Slope::of(&line(0.0)));
    let (grows, flat) = (grows.expect("enough samples"), flat.expect("enough samples"));
    assert!(!grows.is_flat() && (grows.slope - 2.0).abs() <= grows.noise, "{grows:?}");
    assert!(flat.is_flat() && flat.slope.abs() <= flat.noise, "{flat:?}");
    assert!(Slope::of(&line(0.0)[..44]).is_none());
}
