//! The keys of URLs. Rules may change a URL before Foxy sends it to the origin. The changed URL must have the
//! same key as the URL that the client requested.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = foxy_proxy::fuzzing::query_rules(data);
});
