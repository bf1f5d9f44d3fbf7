//! Answers of origins: an accepted one has one reading, and is forwarded with the same.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = foxy_http1::fuzzing::response_head(data);
});
