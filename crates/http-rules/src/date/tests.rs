//! Tests of dates: the three formats, refused texts, and agreement with another implementation.

use foxy_base::WallTime;
use proptest::prelude::*;

use super::{format, parse};
use crate::testing::T0;

fn check(text: &str, expected: Option<i64>) {
    assert_eq!(
        parse(text.as_bytes(), T0),
        expected.map(WallTime::from_secs),
        "{text}"
    );
}

#[test]
fn the_three_formats_are_read() {
    check("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777));
    check("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777));
    check("Sun Nov  6 08:49:37 1994", Some(784_111_777));
    check("Thu, 01 Jan 1970 00:00:00 GMT", Some(0));
    check("Tue, 19 Jan 2038 14:14:08 GMT", Some(2_147_523_248));
    check("Sun, 21 Nov 2286 04:46:39 GMT", Some(10_000_039_599));
    check("Thu Aug  8 02:01:18 2050", Some(2_543_536_878));
    check("Sat, 29 Feb 2020 00:00:00 GMT", Some(1_582_934_400));
    check("Sat, 31 Dec 2016 23:59:60 GMT", Some(1_483_228_799));
}

#[test]
fn letter_case_does_not_matter() {
    let expected = Some(2_544_400_878);
    check("THU, 18 Aug 2050 02:01:18 GMT", expected);
    check("Thu, 18 AUG 2050 02:01:18 GMT", expected);
    check("Thu, 18 Aug 2050 02:01:18 gMT", expected);
}

#[test]
fn two_digit_years_are_at_most_fifty_ahead() {
    check("Thursday, 18-Aug-50 02:01:18 GMT", Some(2_544_400_878));
    check("Monday, 18-Aug-76 02:01:18 GMT", Some(209_181_678));
    check("Monday, 18-Aug-75 02:01:18 GMT", Some(3_333_319_278));
}

#[test]
fn everything_else_is_refused() {
    for text in [
        "",
        "0",
        "-1",
        "foo",
        "2147483647",
        "Thu, 18 Aug 2050 02:01:18 UTC",
        "Thu, 18 Aug 2050 02:01:18 AEST",
        "Thu, 18 Aug 2050 02:01:18 +0000",
        "Thu, 18 Aug 2050 02:01:18",
        "Thu, 18 Aug 50 02:01:18 GMT",
        "Thu 18 Aug 2050 02:01:18 GMT",
        "Thu, 18  Aug  2050 02:01:18 GMT",
        "Thu, 18-Aug-2050 02:01:18 GMT",
        "Thu, 18 Aug 2050 02.01.18 GMT",
        "Thu, 18 Aug 2050 2:01:18 GMT",
        "Thu, 18 Aug 2050 24:01:18 GMT",
        "Thu, 18 Aug 2050 02:61:18 GMT",
        "Thu, 31 Feb 2050 02:01:18 GMT",
        "Thu, 29 Feb 2100 02:01:18 GMT",
        "Thu, 00 Aug 2050 02:01:18 GMT",
        "Xyz, 18 Aug 2050 02:01:18 GMT",
        "Thu, 18 Xyz 2050 02:01:18 GMT",
        "Thu, 18-Aug-50 02:01:18 GMT",
        "Thursday, 18 Aug 2050 02:01:18 GMT",
        "Thu Aug 18 02:01:18 50",
        "Thu, 18 Aug 2050 02:01:18 GMT ",
        "Thu, +8 Aug 2050 02:01:18 GMT",
    ] {
        check(text, None);
    }
}

proptest! {
    #[test]
    fn formatting_and_parsing_agree(secs in -62_167_219_200i64..253_402_300_799) {
        let time = WallTime::from_secs(secs);
        prop_assert_eq!(parse(&format(time), T0), Some(time));
    }

    #[test]
    fn formatting_agrees_with_another_implementation(secs in 0i64..253_402_300_799) {
        let other = httpdate::fmt_http_date(
            std::time::UNIX_EPOCH + std::time::Duration::from_secs(secs.unsigned_abs()),
        );
        let ours = format(WallTime::from_secs(secs));
        prop_assert_eq!(other.as_bytes(), &ours[..]);
    }

    #[test]
    fn any_bytes_are_survived(text in proptest::collection::vec(any::<u8>(), 0..40), now: i64) {
        let _ = parse(&text, WallTime(now));
        let _ = format(WallTime(now));
    }

    #[test]
    fn near_dates_are_survived(text in "[A-Z][a-z]{2},? [0-9 ]{2}[ -][A-Z][a-z]{2}[ -][0-9]{2,4} [0-9:.]{8} GMT") {
        let _ = parse(text.as_bytes(), T0);
    }
}
