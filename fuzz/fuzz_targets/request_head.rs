//! The parser of requests: the head, and then the body. An accepted request must have exactly one
//! interpretation, and its head must be forwarded with this interpretation.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = foxy_http1::fuzzing::request_head(data);
});
