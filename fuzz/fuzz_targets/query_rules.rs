//! Keys of URLs. The request that is sent to the origin must have the same key.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = foxy_proxy::fuzzing::query_rules(data);
});
