//! Keys of URLs: the request to the origin has the same key.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = foxy_proxy::fuzzing::query_rules(data);
});
