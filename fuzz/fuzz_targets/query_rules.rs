//! Keys of URLs: the key is what the origin is asked for.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = foxy_proxy::fuzzing::query_rules(data);
});
