//! One package for each client, and the index documents that name it.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::write::GzEncoder;
use flate2::{Compression, Crc};
use sha2::{Digest, Sha256, Sha512};

/// The only file of the package for npm.
pub(super) const SOURCE: &str = "module.exports = 1;\n";

/// The only file of the package for Python.
pub(super) const MODULE: &str = "mark = 1\n";

/// The artefacts of all packages.
pub(super) struct Packages {
    pub(super) wheel: Vec<u8>,
    tarball: Vec<u8>,
    pub(super) krate: Vec<u8>,
}

impl Packages {
    pub(super) fn new() -> Self {
        let wheel = zip(&[
            ("foxydemo/__init__.py", MODULE),
            (
                "foxydemo-1.0.dist-info/METADATA",
                "Metadata-Version: 2.1\nName: foxydemo\nVersion: 1.0\n",
            ),
            (
                "foxydemo-1.0.dist-info/WHEEL",
                "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            ),
            ("foxydemo-1.0.dist-info/RECORD", ""),
        ]);
        let tarball = tar(&[
            (
                "package/package.json",
                "{\"name\":\"foxydemo\",\"version\":\"1.0.0\"}",
            ),
            ("package/index.js", SOURCE),
        ]);
        let krate = tar(&[
            (
                "foxydemo-1.0.0/Cargo.toml",
                "[package]\nname = \"foxydemo\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
            ),
            ("foxydemo-1.0.0/src/lib.rs", ""),
        ]);
        Self {
            wheel,
            tarball,
            krate,
        }
    }

    /// Returns media type and body for a path. `base` is scheme and authority of the registry.
    pub(super) fn answer(&self, path: &str, base: &str) -> Option<(&'static str, Vec<u8>)> {
        const WHEEL: &str = "foxydemo-1.0-py3-none-any.whl";
        let text = |text: String| text.into_bytes();
        let json = "application/json";
        let binary = "application/octet-stream";
        let (sha256, cksum) = (hex(&self.wheel), hex(&self.krate));
        let integrity = STANDARD.encode(Sha512::digest(&self.tarball));
        Some(match path {
            "/py/simple/foxydemo/" => (
                "application/vnd.pypi.simple.v1+json",
                text(format!(
                    "{{\"meta\":{{\"api-version\":\"1.0\"}},\"name\":\"foxydemo\",\"files\":[{{\"filename\":\"{WHEEL}\",\
                     \"url\":\"{base}/files/{WHEEL}\",\"hashes\":{{\"sha256\":\"{sha256}\"}}}}]}}"
                )),
            ),
            "/files/foxydemo-1.0-py3-none-any.whl" => (binary, self.wheel.clone()),
            "/npm/foxydemo" => (
                json,
                text(format!(
                    "{{\"name\":\"foxydemo\",\"dist-tags\":{{\"latest\":\"1.0.0\"}},\"versions\":{{\"1.0.0\":{{\"name\":\"foxydemo\",\
                     \"version\":\"1.0.0\",\"dist\":{{\"integrity\":\"sha512-{integrity}\",\
                     \"tarball\":\"{base}/npm/foxydemo/-/foxydemo-1.0.0.tgz\"}}}}}}}}"
                )),
            ),
            "/npm/foxydemo/-/foxydemo-1.0.0.tgz" => (binary, self.tarball.clone()),
            "/crates/config.json" => (
                json,
                text(format!("{{\"dl\":\"{base}/dl\",\"api\":\"{base}\"}}")),
            ),
            "/crates/fo/xy/foxydemo" => (
                "text/plain",
                text(format!(
                    "{{\"name\":\"foxydemo\",\"vers\":\"1.0.0\",\"deps\":[],\"cksum\":\"{cksum}\",\"features\":{{}},\"yanked\":false}}\n"
                )),
            ),
            "/dl/foxydemo/1.0.0/download" => (binary, self.krate.clone()),
            _ => return None,
        })
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

pub(super) fn tar(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// Returns a zip file without compression.
pub(super) fn zip(files: &[(&str, &str)]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, text) in files {
        let mut crc = Crc::new();
        crc.update(text.as_bytes());
        let size = u32::try_from(text.len()).unwrap().to_le_bytes();
        let length = u16::try_from(name.len()).unwrap().to_le_bytes();
        let offset = u32::try_from(out.len()).unwrap().to_le_bytes();
        // The fields are version, flags, method, time and date, then sizes, then the lengths of the name and
        // of the extra field.
        let about = [
            &[20, 0, 0, 0, 0, 0, 0, 0, 33, 0][..],
            &crc.sum().to_le_bytes(),
            &size,
            &size,
            &length,
            &[0, 0],
        ]
        .concat();
        for part in [
            &b"PK\x03\x04"[..],
            &about[..],
            name.as_bytes(),
            text.as_bytes(),
        ] {
            out.write_all(part).unwrap();
        }
        let entry = [
            &b"PK\x01\x02\x14\0"[..],
            &about[..],
            &[0; 10],
            &offset,
            name.as_bytes(),
        ];
        directory.extend(entry.concat());
    }
    let (count, start) = (files.len() as u16, out.len() as u32);
    out.extend(&directory);
    let size = directory.len() as u32;
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    out.extend([size.to_le_bytes(), start.to_le_bytes()].concat());
    out.extend([0, 0]);
    out
}
