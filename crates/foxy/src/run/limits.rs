//! The limit on open files: raised as far as allowed, and never a base for sizes.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit on open files to the hard one; says so if that is little.
pub(crate) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if limit.current != limit.maximum && setrlimit(Resource::Nofile, raised).is_err() {
        tracing::warn!("the limit on open files could not be raised");
    }
    if let Some(files) = getrlimit(Resource::Nofile)
        .current
        .filter(|files| *files < 8192)
    {
        tracing::warn!(
            files,
            "few open files are allowed, which limits connections; raise LimitNOFILE or ulimit -n"
        );
    }
}
