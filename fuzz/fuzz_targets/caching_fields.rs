//! The decisions about storing, using and refreshing answers, for requests and answers with arbitrary fields.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = foxy_http_rules::fuzzing::caching_fields(data);
});
