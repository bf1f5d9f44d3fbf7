//! Tests of the compact form: written requests are read back, and damage is detected.

use super::*;
use crate::generate::{ZipfWeb, ZipfWebConfig};
use crate::{Options, Reader, TraceError};
use proptest::prelude::*;

fn write(requests: &[Request]) -> Vec<u8> {
    let mut writer = CompactWriter::new(Vec::new()).unwrap();
    for request in requests {
        writer.write(request).unwrap();
    }
    writer.finish().unwrap()
}

fn read(bytes: Vec<u8>) -> Result<Vec<Request>, TraceError> {
    let input = Box::new(std::io::Cursor::new(bytes));
    Reader::new("t".as_ref(), input, Options::default())?.collect()
}

prop_compose! {
    fn any_request()(
        time_ms in any::<i64>(), object in any::<u64>(), size in any::<u64>(),
        client in any::<u32>(), server in any::<u32>(), version in any::<u32>(),
        status in any::<u16>(), method in 0u8..5, class in 0u8..3, flags in any::<u8>(),
        small in any::<bool>(),
    ) -> Request {
        Request {
            time_ms, object: if small { object >> 40 } else { object }, size, client, server,
            version: if small { 0 } else { version }, status: if small { 200 } else { status },
            method: Method::from_code(method).unwrap(), class: Class::from_code(class).unwrap(),
            flags: Flags(flags),
        }
    }
}

proptest! {
    #[test]
    fn round_trips(requests in proptest::collection::vec(any_request(), 0..50)) {
        prop_assert_eq!(read(write(&requests)).unwrap(), requests);
    }
}

#[test]
fn truncation_and_damage_are_told() {
    let config = ZipfWebConfig {
        requests: 500,
        ..Default::default()
    };
    let requests: Vec<_> = ZipfWeb::new(config, 1).collect();
    let whole = write(&requests);
    assert_eq!(read(whole.clone()).unwrap(), requests);
    for len in (0..whole.len()).step_by(97) {
        assert!(read(whole[..len].to_vec()).is_err(), "cut at {len}");
    }
    for at in (whole.len() / 2..whole.len()).step_by(211) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        assert!(read(damaged).is_err(), "byte {at}");
    }
}
