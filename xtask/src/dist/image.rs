//! A container image in the layout of the Open Container Initiative (image-spec 1.1), as one tar file.
//! `podman load`, `skopeo copy oci-archive:...` and `docker load` read this file. The image contains the
//! program, the libraries that the program needs, the certificates of authorities and a configuration. It
//! contains no shell, and the program does not run as root.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::archive::{Tree, gzip, sha256, source_time};
use super::program::Program;
use super::{DistArgs, VERSION, at, read, source};

/// Number of the user and group with which the program runs. A number needs no entry in a list of users.
const USER: u32 = 65532;
/// Certificate authorities that the program uses to check the certificates of origins.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Writes the image and returns its path.
///
/// # Errors
/// Returned if the program cannot be built, or if a file cannot be read or written.
pub(super) fn write(args: &DistArgs) -> Result<PathBuf, String> {
    let program = Program::to_pack(args)?;
    let image = layout(&files(&program)?).map_err(|error| format!("image: {error}"))?;
    let file = args.folder()?.join(format!("foxy-{VERSION}-oci.tar"));
    std::fs::write(&file, image).map_err(|error| at(&file, &error))?;
    Ok(file)
}

/// The root file system of the image.
fn files(program: &Program) -> Result<Tree, String> {
    let mut tree = Tree::default();
    tree.file("usr/bin/foxy", 0o755, program.bytes.clone());
    for library in program.libraries()? {
        let path = library.to_string_lossy();
        tree.file(path.trim_start_matches('/'), 0o755, read(&library)?);
    }
    tree.file(
        "etc/foxy/foxy.toml",
        0o644,
        source("dist/container/foxy.toml")?,
    );
    match read(&Path::new("/").join(AUTHORITIES)) {
        Ok(authorities) => tree.file(AUTHORITIES, 0o644, authorities),
        Err(error) => println!("   without authorities, https origins fail: {error}"),
    }
    let passwd = format!("foxy:x:{USER}:{USER}::/var/lib/foxy:/usr/sbin/nologin\n");
    tree.file("etc/passwd", 0o644, passwd);
    tree.file("etc/group", 0o644, format!("foxy:x:{USER}:\n"));
    tree.folder("var/lib/foxy", 0o750, USER);
    Ok(tree)
}

/// Builds the image: blobs named by their checksums, and the files that refer to them.
fn layout(root: &Tree) -> std::io::Result<Vec<u8>> {
    let time = source_time();
    let tar = root.tar(time)?;
    let layer = gzip(&tar)?;
    let mut blobs = Tree::default();
    let mut blob = |bytes: &[u8], kind: &str| {
        let digest = sha256(bytes);
        blobs.file(&format!("blobs/sha256/{digest}"), 0o644, bytes);
        json!({
            "mediaType": kind,
            "digest": format!("sha256:{digest}"),
            "size": bytes.len(),
        })
    };
    let layer = blob(&layer, "application/vnd.oci.image.layer.v1.tar+gzip");
    let config = blob(
        configuration(&sha256(&tar)).to_string().as_bytes(),
        "application/vnd.oci.image.config.v1+json",
    );
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [layer],
    });
    let mut manifest = blob(
        manifest.to_string().as_bytes(),
        "application/vnd.oci.image.manifest.v1+json",
    );
    manifest["annotations"] = json!({
        "org.opencontainers.image.ref.name": "latest",
        "io.containerd.image.name": "docker.io/library/foxy:latest",
    });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    blobs.file("index.json", 0o644, index.to_string());
    let version = json!({ "imageLayoutVersion": "1.0.0" });
    blobs.file("oci-layout", 0o644, version.to_string());
    // A list in Docker's own format, for container engines that cannot read the layout of the Open Container
    // Initiative.
    let path = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().unwrap_or_default();
        format!("blobs/{}", digest.replace(':', "/"))
    };
    let list = json!([{
        "Config": path(&config),
        "RepoTags": ["foxy:latest"],
        "Layers": [path(&layer)],
    }]);
    blobs.file("manifest.json", 0o644, list.to_string());
    blobs.tar(time)
}

/// The configuration with which a container engine runs the image.
fn configuration(layer: &str) -> Value {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": { "3128/tcp": {} },
            "Env": ["PATH=/usr/bin", "STATE_DIRECTORY=/var/lib/foxy"],
            "Entrypoint": ["/usr/bin/foxy"],
            "Cmd": ["serve", "--config", "/etc/foxy/foxy.toml"],
            "Volumes": { "/var/lib/foxy": {} },
            "WorkingDir": "/var/lib/foxy",
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "foxy",
                "org.opencontainers.image.version": VERSION,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer}")] },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use super::*;

    fn unpacked(tar: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(tar);
        let mut files = BTreeMap::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            files.insert(path, bytes);
        }
        files
    }

    #[test]
    fn each_name_leads_to_its_bytes_and_the_user_is_not_root() {
        let mut root = Tree::default();
        root.file("usr/bin/foxy", 0o755, "program");
        let files = unpacked(&layout(&root).unwrap());
        let read = |path: &str| serde_json::from_slice::<Value>(&files[path]).unwrap();
        let follow = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap();
            let bytes = &files[&format!("blobs/{}", digest.replace(':', "/"))];
            assert_eq!(digest, format!("sha256:{}", sha256(bytes)));
            assert_eq!(descriptor["size"], bytes.len());
            bytes.clone()
        };
        let manifest = follow(&read("index.json")["manifests"][0]);
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        let config: Value = serde_json::from_slice(&follow(&manifest["config"])).unwrap();
        assert_eq!(config["config"]["User"], "65532:65532");
        let layer = follow(&manifest["layers"][0]);
        let mut tar = Vec::new();
        flate2::read::GzDecoder::new(&layer[..])
            .read_to_end(&mut tar)
            .unwrap();
        let diff = config["rootfs"]["diff_ids"][0].as_str().unwrap();
        assert_eq!(diff, format!("sha256:{}", sha256(&tar)));
        assert_eq!(unpacked(&tar)["usr/bin/foxy"], b"program");
    }
}
