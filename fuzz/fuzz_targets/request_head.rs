//! The heads of requests. An accepted head must have exactly one interpretation, and must be forwarded with
//! this interpretation.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = foxy_http1::fuzzing::request_head(data);
});
