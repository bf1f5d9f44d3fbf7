//! The pace at which a stream is played to a system: THROTTLE, REAL and FAST(n).
//!
//! Rule (Hummingbird): THROTTLE plays events without pauses. REAL plays them at their recorded times. FAST(n)
//! shortens to n every gap that is longer than n. If a system is behind the recorded time, the next event
//! follows without a pause.

use std::{fmt, str::FromStr};

use foxy_trace::{Request, TraceError};

use super::{CacheSystem, SystemCounts, SystemResult};
use crate::{
    model::{FsError, SimTime},
    run::{RunError, STOP_CHECK_INTERVAL, go_on},
};

/// Pace at which events are played.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Pace {
    /// `throttle`: events follow without pauses.
    #[default]
    Throttle,
    /// `real`: at recorded times; `real:FACTOR` multiplies the times by a factor.
    Real(f64),
    /// `fast:SECONDS`: gaps that are longer than this are shortened to this length.
    Fast(SimTime),
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Throttle => f.write_str("throttle"),
            Self::Real(factor) => write!(f, "real:{factor}"),
            Self::Fast(gap) => write!(f, "fast:{}", gap.as_secs()),
        }
    }
}

impl FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        let number = || {
            let value: f64 = if value.is_empty() { "1" } else { value }
                .parse()
                .map_err(|_| format!("`{value}` is not a number"))?;
            if value > 0.0 && value.is_finite() {
                Ok(value)
            } else {
                Err(format!("`{text}`: the number must be above 0"))
            }
        };
        match name {
            "throttle" => Ok(Self::Throttle),
            "real" => Ok(Self::Real(number()?)),
            "fast" => Ok(Self::Fast(SimTime::from_secs(number()?))),
            _ => Err(format!(
                "pace `{text}` is not known; choose throttle, real[:FACTOR] or fast:SECONDS"
            )),
        }
    }
}

/// Options of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Replay {
    /// Pace at which events are played.
    pub pace: Pace,
    /// Number of requests at the start that are played but not counted.
    pub warm_up: u64,
}

/// Relates the recorded time to the simulated time.
struct Tempo {
    pace: Pace,
    start: SimTime,
    first: Option<i64>,
    last: i64,
}

impl Tempo {
    /// Time at which an event is due; `None`: the event follows without a pause.
    fn due(&mut self, request: &Request, now: SimTime) -> Option<SimTime> {
        let first = *self.first.get_or_insert(request.time_ms);
        let before = std::mem::replace(&mut self.last, request.time_ms);
        let millis = |ms: i64| SimTime::from_millis(ms.max(0) as f64);
        match self.pace {
            Pace::Throttle => None,
            Pace::Real(factor) => {
                let passed = request.time_ms.saturating_sub(first) as f64 * factor;
                Some(self.start + SimTime::from_millis(passed))
            }
            Pace::Fast(_) if request.time_ms == first => None,
            Pace::Fast(gap) => Some(now + gap.min(millis(request.time_ms - before))),
        }
    }
}

/// Plays a stream to a system. If the system stops because there is no space, the run ends, and the
/// result records this.
///
/// # Errors
/// Returns the first error of the stream, of the file system or of the partition.
pub fn run_system(
    system: &mut dyn CacheSystem,
    requests: impl Iterator<Item = Result<Request, TraceError>>,
    replay: Replay,
) -> Result<SystemResult, RunError> {
    let fs = |error| RunError::Layout(crate::layout::LayoutError::Fs(error));
    let mut tempo = Tempo {
        pace: replay.pace,
        start: system.now(),
        first: None,
        last: 0,
    };
    let mut begun = (system.now(), system.counters(), system.extras());
    let mut counts = SystemCounts::default();
    let mut number = 0u64;
    let mut stopped = false;
    for request in requests {
        let request = request?;
        if let Some(due) = tempo.due(&request, system.now())
            && due > system.now()
        {
            system.idle(due).map_err(fs)?;
        }
        let begin = system.now();
        match system.request(&request) {
            Ok(outcome) => counts.add(&request, outcome, system.now() - begin),
            Err(FsError::NoSpace) => {
                stopped = true;
                break;
            }
            Err(error) => return Err(fs(error)),
        }
        number += 1;
        if number.is_multiple_of(STOP_CHECK_INTERVAL as u64) {
            go_on()?;
        }
        if number == replay.warm_up {
            counts = SystemCounts::default();
            begun = (system.now(), system.counters(), system.extras());
        }
    }
    system.finish().map_err(fs)?;
    Ok(SystemResult::new(system, &counts, &begun, stopped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paces_read_back() {
        for text in ["throttle", "real:2", "fast:0.5"] {
            assert_eq!(text.parse::<Pace>().unwrap().to_string(), text);
        }
        for bad in ["slow", "real:x", "fast:0", "fast:-1"] {
            assert!(bad.parse::<Pace>().is_err(), "{bad}");
        }
    }

    #[test]
    fn events_are_due_as_their_pace_says() {
        let due = |pace, times: &[i64]| {
            let mut tempo = Tempo {
                pace,
                start: SimTime::ZERO,
                first: None,
                last: 0,
            };
            let mut now = SimTime::ZERO;
            for time_ms in times {
                let request = Request {
                    time_ms: *time_ms,
                    ..Request::default()
                };
                now = now.max(tempo.due(&request, now).unwrap_or_default());
            }
            now.as_secs()
        };
        let times = [5_000, 6_000, 16_000, 16_000];
        assert!((due(Pace::Throttle, &times)).abs() < 1e-9);
        assert!((due(Pace::Real(1.0), &times) - 11.0).abs() < 1e-9);
        assert!((due(Pace::Real(0.5), &times) - 5.5).abs() < 1e-9);
        assert!((due(Pace::Fast(SimTime::from_secs(3.0)), &times) - 4.0).abs() < 1e-9);
    }
}
