//! Settings whose value is one number, duration or flag. Each setting is declared once, beside the field that
//! contains its value. From these declarations, [`settings!`](macro@crate::settings) makes a struct, its
//! defaults, a function that fills the struct with configured values, and one row for each setting.
//! Configuration readers and reference pages are made from these rows.

use std::time::Duration;

/// The values that a setting may have. Both ends of the range are permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// A number of bytes.
    Bytes(u64, u64),
    /// A whole number.
    Count(u64, u64),
    /// A duration, in seconds.
    Time(u64, u64),
    /// A duration in seconds, or off.
    TimeOrOff(u64, u64),
    /// Yes or no, as a flag.
    Flag,
}

/// The value of one setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// A number of bytes, or a whole number.
    Number(u64),
    /// A duration; `None` means off.
    Time(Option<Duration>),
    /// Yes or no.
    Flag(bool),
}

impl Plain {
    /// The value that means off.
    pub const OFF: Self = Self::Time(None);

    /// A duration of whole seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self::Time(Some(Duration::from_secs(seconds)))
    }

    /// The value as a whole number: bytes, a count, seconds, or 1 for yes and 0 for no. `None` if the setting
    /// is off.
    fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Time(time) => time.map(|time| time.as_secs()),
            Self::Flag(flag) => Some(u64::from(flag)),
        }
    }
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name of the setting in its section of the configuration.
    pub name: &'static str,
    /// The values that the setting may have.
    pub range: Range,
    /// The value if the configuration contains none.
    pub default: Plain,
    /// One or two sentences about the effect of the setting: the documentation of its field.
    pub about: &'static str,
}

/// A struct that [`settings!`](macro@crate::settings) has declared.
pub trait Settings: Sized {
    /// The settings of the struct, in the order of the fields.
    const ROWS: &'static [Row];

    /// Makes the struct by calling `value` for each setting. Fields that are not settings get their
    /// defaults.
    fn read(value: impl FnMut(&Row) -> Plain) -> Self;
}

/// A type that contains the value of a setting. A value that is too large for the type becomes the
/// type's largest value.
pub trait OfPlain {
    /// Converts the value to this type.
    fn of_plain(value: Plain) -> Self;
}

macro_rules! whole_numbers {
    ($($number:ty),+) => {
        $(impl OfPlain for $number {
            fn of_plain(value: Plain) -> Self {
                Self::try_from(value.number().unwrap_or(0)).unwrap_or(Self::MAX)
            }
        }

        impl OfPlain for Option<$number> {
            fn of_plain(value: Plain) -> Self {
                value.number().map(|number| <$number>::try_from(number).unwrap_or(<$number>::MAX))
            }
        })+
    };
}

whole_numbers!(u8, u32, u64, usize);

impl OfPlain for bool {
    fn of_plain(value: Plain) -> Self {
        value.number() == Some(1)
    }
}

impl OfPlain for Duration {
    fn of_plain(value: Plain) -> Self {
        match value {
            Plain::Time(time) => time.unwrap_or(Self::ZERO),
            other => Self::from_secs(other.number().unwrap_or(0)),
        }
    }
}

/// Declares a struct of settings. Each field has documentation (shown to users), the name of its
/// setting, its type, its default and its range. Fields in `besides` are not settings.
///
/// The macro implements [`Default`] and [`Settings`](crate::settings::Settings) for the struct.
///
/// ```
/// use foxy_base::settings::{Plain, Range, Settings};
///
/// foxy_base::settings! {
///     /// Longest waits for clients.
///     #[derive(Debug)]
///     pub struct Patience {
///         /// Time until a complete head has arrived.
///         "head" head: std::time::Duration = Plain::seconds(15), Range::Time(1, 60);
///     }
///     besides {
///         /// For tests.
///         seed: u64 = 7;
///     }
/// }
///
/// assert_eq!(Patience::default().head.as_secs(), 15);
/// assert_eq!(Patience::ROWS[0].about, "Time until a complete head has arrived.");
/// assert_eq!(Patience::read(|_| Plain::seconds(2)).head.as_secs(), 2);
/// ```
#[macro_export]
macro_rules! settings {
    (
        $(#[$outer:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $about:literal])+
                $setting:literal $field:ident: $type:ty = $default:expr, $range:expr;
            )+
        }
        $(besides {
            $(
                $(#[$meta:meta])+
                $other:ident: $other_type:ty = $other_default:expr;
            )+
        })?
    ) => {
        $(#[$outer])*
        $vis struct $name {
            $(
                $(#[doc = $about])+
                $vis $field: $type,
            )+
            $($(
                $(#[$meta])+
                $vis $other: $other_type,
            )+)?
        }

        impl $crate::settings::Settings for $name {
            const ROWS: &'static [$crate::settings::Row] = &[$(
                $crate::settings::Row {
                    name: $setting,
                    range: $range,
                    default: $default,
                    // The text of a documentation comment begins with the space after its marker.
                    about: concat!($($about),+).trim_ascii_start(),
                },
            )+];

            fn read(mut value: impl FnMut(&$crate::settings::Row) -> $crate::settings::Plain) -> Self {
                let mut rows = Self::ROWS.iter();
                let mut next = || rows.next().map_or($crate::settings::Plain::OFF, &mut value);
                Self {
                    $($field: $crate::settings::OfPlain::of_plain(next()),)+
                    $($($other: $other_default,)+)?
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                <Self as $crate::settings::Settings>::read(|row| row.default)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    settings! {
        /// All types.
        #[derive(Clone, Debug, PartialEq)]
        struct Sample {
            /// A time that takes
            /// two lines.
            "wait" wait: Duration = Plain::seconds(5), Range::Time(0, 9);
            /// Seconds.
            "life" life: Option<u32> = Plain::OFF, Range::TimeOrOff(0, 9);
            /// A share.
            "percent" percent: u8 = Plain::Number(50), Range::Count(0, 100);
            /// Yes or no.
            "on" on: bool = Plain::Flag(true), Range::Flag;
        }
        besides {
            /// No setting.
            seed: usize = 3;
        }
    }

    #[test]
    fn fields_have_defaults_and_values_in_their_order() {
        let made = Sample {
            wait: Duration::from_secs(5),
            life: None,
            percent: 50,
            on: true,
            seed: 3,
        };
        assert_eq!(Sample::default(), made);
        let given = Sample::read(|row| match row.name {
            "wait" => Plain::Time(Some(Duration::from_millis(250))),
            "life" => Plain::seconds(8),
            "percent" => Plain::Number(1000),
            _ => Plain::Flag(false),
        });
        let wait = Duration::from_millis(250);
        assert_eq!(
            given,
            Sample {
                wait,
                life: Some(8),
                percent: u8::MAX,
                on: false,
                seed: 3
            }
        );
    }

    #[test]
    fn the_documentation_of_a_field_is_what_users_read() {
        assert_eq!(Sample::ROWS[0].about, "A time that takes two lines.");
        assert_eq!(Sample::ROWS[2].about, "A share.");
    }
}
