//! Runs of the suite: the complete suite, and then again the tests whose verdict was unexpected.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::certificate::TestCertificate;
use super::install::Suite;
use super::servers::{self, Mode, Running, Settings};
use super::table::{Table, Verdicts};
use crate::workspace::root;

/// Time limit of one run of the suite. A run usually takes one minute.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Largest number of tests that run again. If more verdicts are unexpected, Foxy has changed.
const AGAIN_MAX: usize = 10;

/// Everything that a run needs.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) suite: Suite,
    pub(super) settings: Settings,
    pub(super) certificate: Option<TestCertificate>,
    /// Folder of the HTTP client.
    pub(super) client: PathBuf,
    /// Foxy's program.
    pub(super) foxy: PathBuf,
    /// Folder for logs and results.
    pub(super) folder: PathBuf,
}

impl Runs {
    /// Runs the complete suite. If a few tests have other verdicts than `expected`, these tests are run once
    /// more without the other tests, and their second verdicts count. A second run is needed because many
    /// answers of the suite are fresh for one second. On a busy machine, such an answer can take more than a
    /// second to arrive. Then it is not stored.
    pub(super) fn verdicts(&self, mode: Mode, expected: &Table) -> Result<Verdicts, String> {
        let kind = (mode, self.certificate.as_ref());
        let origin = Running::origin(&self.suite, kind, &self.folder)?;
        let settings = (mode, self.settings, self.certificate.as_ref());
        let proxy = Running::foxy(&self.foxy, &self.suite, settings, &origin, &self.folder)?;
        let mut verdicts = self.run(mode, (&origin, &proxy), &[])?;
        let again: Vec<String> = expected.differences(&verdicts).into_keys().collect();
        if (1..=AGAIN_MAX).contains(&again.len()) {
            println!("   {:<8} runs again: {}", mode.name(), again.join(", "));
            verdicts.replace(&again, self.run(mode, (&origin, &proxy), &again)?);
        }
        Ok(verdicts)
    }

    /// Runs `tests` and the tests on which they depend, or the complete suite if `tests` is empty.
    fn run(
        &self,
        mode: Mode,
        (origin, proxy): (&Running, &Running),
        tests: &[String],
    ) -> Result<Verdicts, String> {
        let out = self.folder.join(format!("{}.json", mode.name()));
        let mut command = Command::new("node");
        command
            .arg("--no-warnings")
            .arg(root().join("conformance").join("run.mjs"))
            .arg("--suite")
            .arg(&self.suite.folder)
            .arg("--client")
            .arg(&self.client)
            .arg("--out")
            .arg(&out);
        for test in tests {
            command.args(["--id", test]);
        }
        match mode {
            Mode::Reverse => command.args(["--base", &proxy.url()]),
            Mode::Forward => command.args(["--base", &origin.url(), "--proxy", &proxy.url()]),
        };
        if let Some(certificate) = &self.certificate {
            command.env("NODE_EXTRA_CA_CERTS", &certificate.file);
        }
        // The suite prints much text, which is dropped. It also writes its results to a file, which is read
        // below.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        servers::finish(command, TIMEOUT)?;
        Verdicts::read(&out)
    }
}
