//! The size of each part of the program, computed from its symbols. Data without symbols (texts, tables for
//! unwinding) is in the row `without symbols`.

use std::collections::BTreeMap;
use std::process::Command;

use super::DistArgs;
use super::program::Program;

/// Parts of the program, each with a list of prefixes of symbol names. A symbol belongs to the first part
/// that has a prefix of the symbol's name in its list.
const PARTS: &[(&str, &[&str])] = &[
    (
        "TLS: cryptography (aws-lc)",
        &[
            "aws_lc",
            "bn_",
            "p256",
            "p384",
            "p521",
            "ecp_",
            "mlkem",
            "aes",
            "sha",
            "k25519",
            "x25519",
            "gcm",
            "bignum_",
            "edwards25519",
            "curve25519",
        ],
    ),
    (
        "TLS: protocol and certificates",
        &[
            "rustls",
            "webpki",
            "x509_parser",
            "der_parser",
            "asn1_rs",
            "oid_registry",
            "nom",
            "foxy_tls",
        ],
    ),
    (
        "Foxy: store, index, formats, policies, disks",
        &[
            "foxy_store",
            "foxy_index",
            "foxy_format",
            "foxy_policy",
            "foxy_disk",
            "io_uring",
        ],
    ),
    (
        "Foxy: proxy and HTTP",
        &[
            "foxy_proxy",
            "foxy_mirror",
            "foxy_access",
            "foxy_http1",
            "foxy_http_rules",
            "httparse",
            "httpdate",
            "sfv",
            "foxy_base",
        ],
    ),
    (
        "Foxy: program, configuration, admin",
        &["foxy", "toml", "serde", "tracing", "ipnet"],
    ),
    (
        "compressed answers",
        &["brotli", "zlib_rs", "flate2", "alloc_no_stdlib"],
    ),
    (
        "checksums and hashes",
        &["crc_fast", "xxhash", "sha2", "argon2", "blake2"],
    ),
    (
        "command line",
        &["clap", "indicatif", "console", "anstream", "strsim"],
    ),
    (
        "name service",
        &["hickory", "idna", "icu", "url", "resolv_conf", "moka"],
    ),
    ("regular expressions", &["regex", "aho_corasick", "memchr"]),
    (
        "runtime",
        &[
            "tokio",
            "mio",
            "futures",
            "parking_lot",
            "rustix",
            "socket2",
        ],
    ),
    ("allocator", &["mi_", "_mi_", "mimalloc"]),
    (
        "standard library",
        &[
            "std",
            "core",
            "alloc",
            "gimli",
            "addr2line",
            "rustc_demangle",
            "hashbrown",
            "miniz_oxide",
            "compiler_builtins",
            "object",
        ],
    ),
];

/// Prints a table of the sizes.
///
/// # Errors
/// Returned if the program cannot be built, or if it has no symbols.
pub(super) fn print(args: &DistArgs) -> Result<(), String> {
    let program = Program::of(args)?;
    let output = Command::new("nm")
        .args(["--demangle", "--print-size", "--defined-only"])
        .arg(&program.path)
        .output()
        .map_err(|error| format!("nm: {error}; it is in the Debian package binutils"))?;
    let sums = sums(&String::from_utf8_lossy(&output.stdout));
    if sums.is_empty() {
        let path = program.path.display();
        return Err(format!(
            "{path} has no symbols; name one that is not stripped"
        ));
    }
    let total = program.bytes.len() as u64;
    let named: u64 = sums.values().sum();
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.push(("without symbols", total.saturating_sub(named)));
    rows.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    for (part, bytes) in rows {
        println!("   {:>8} KiB  {part}", bytes >> 10);
    }
    println!("   {:>8} KiB  stripped program", total >> 10);
    Ok(())
}

/// Adds up the bytes of each part, from lines of the form `ADDRESS SIZE KIND NAME`. Symbols of zeroed memory
/// (kind `b` or `B`) are left out, because they take no space in the file.
fn sums(listing: &str) -> BTreeMap<&'static str, u64> {
    let mut sums = BTreeMap::new();
    for line in listing.lines() {
        let mut words = line.splitn(4, ' ');
        let (_, size, kind, name) = (words.next(), words.next(), words.next(), words.next());
        let size = size.and_then(|size| u64::from_str_radix(size, 16).ok());
        if let (Some(size), Some(kind), Some(name)) = (size, kind, name)
            && !kind.eq_ignore_ascii_case("b")
        {
            *sums.entry(part(name)).or_default() += size;
        }
    }
    sums
}

/// Returns the part to which the name of a symbol belongs. `<a::B as c::D>::f` belongs to `a`, like
/// `a::B::f`.
fn part(name: &str) -> &'static str {
    let name = name.trim_start_matches(['<', '&', '*', '(', '[']);
    let name = name.strip_prefix("dyn ").unwrap_or(name);
    let fits = |(_, starts): &&(&str, &[&str])| {
        let starts = &mut starts.iter();
        starts.any(|start| name.starts_with(*start))
    };
    PARTS.iter().find(fits).map_or("other", |(part, _)| part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_for_the_part_of_their_name() {
        let sums = sums(
            "0001 0010 T <foxy_store::Engine as core::fmt::Debug>::fmt\n\
             0002 0020 t foxy_store::read\n\
             0003 0001 T aws_lc_0_39_0_EVP\n\
             0004 ffff b foxy_store::ZEROES\n\
             nonsense\n",
        );
        assert_eq!(sums["Foxy: store, index, formats, policies, disks"], 0x30);
        assert_eq!(sums.values().sum::<u64>(), 0x31);
    }
}
