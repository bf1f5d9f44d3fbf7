//! The heads of origins' answers. An accepted head must have exactly one interpretation, and must be
//! forwarded with this interpretation.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = foxy_http1::fuzzing::response_head(data);
});
