//! The address and the credentials of a running Foxy.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::Args;

use super::client::SOCKET;
use crate::config::{self, ThisMachine, TokenFile};
use crate::run::token;

/// Default admin address.
const ADMIN: &str = "127.0.0.1:3129";

/// Options that locate the running Foxy.
#[derive(Clone, Debug, Default, Args)]
pub struct AdminArgs {
    /// Admin address of the running Foxy, or `unix:PATH` of its socket [default: 127.0.0.1:3129]
    #[arg(long, value_name = "ADDR")]
    pub admin: Option<String>,
    /// File with the admin token of the running Foxy [default: the file beside the default store]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Configuration file of the running Foxy; address and token file are read from it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Admin address and token.
#[derive(Debug)]
pub(super) struct Admin {
    pub(super) address: String,
    pub(super) token: Option<String>,
}

impl AdminArgs {
    /// Returns the address and the token.
    ///
    /// # Errors
    /// An error if a file that the arguments name cannot be read.
    pub(super) fn resolve(&self) -> Result<Admin, String> {
        let raw = config::read(self.config.as_deref()).map_err(|problems| {
            let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
            texts.join("; ")
        })?;
        let setting = |section: &str, name: &str| {
            let setting = raw.single.get(section)?.get(name)?;
            setting.texts.first().cloned()
        };
        // A user who can open the socket needs no token.
        let socket = || setting("access", "admin_socket").map(|path| format!("{SOCKET}{path}"));
        let named = setting("", "admin").filter(|admin| admin != "off");
        let address = self.admin.clone().or(named).or_else(socket);
        let named = self
            .token_file
            .as_ref()
            .map(|path| path.display().to_string());
        let named = named.or_else(|| setting("access", "admin_token_file"));
        Ok(Admin {
            address: address.unwrap_or_else(|| ADMIN.to_owned()),
            token: read(&TokenFile::new(named.as_deref(), &ThisMachine))?,
        })
    }
}

/// Returns the token; `None` if no file exists and no file was named. On loopback no token is needed.
fn read(file: &TokenFile) -> Result<Option<String>, String> {
    match token::read_text(&file.path) {
        // The text is sent in a field, so the content of a wrong file must not break the request.
        Ok(text) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic()) => {
            Ok(Some(text))
        }
        Ok(_) if file.given => Err(format!("{} holds no admin token", file.path.display())),
        Err(error) if file.given => {
            let hint = match error.kind() {
                ErrorKind::PermissionDenied => "; only its owner may read it",
                _ => "",
            };
            Err(format!(
                "cannot read {}: {error}{hint}",
                file.path.display()
            ))
        }
        Ok(_) | Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_comes_from_the_file_that_is_named_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("a"), "token-of-a-0123456789\n").unwrap();
        std::fs::write(path("b"), "token-of-b-0123456789\n").unwrap();
        let text = format!(
            "admin = \"10.0.0.1:9\"\n[access]\nadmin_token_file = \"{}\"\n",
            path("b").display()
        );
        std::fs::write(path("foxy.toml"), text).unwrap();
        let both = AdminArgs {
            token_file: Some(path("a")),
            config: Some(path("foxy.toml")),
            ..AdminArgs::default()
        };
        let admin = both.resolve().unwrap();
        assert_eq!(admin.address, "10.0.0.1:9");
        assert_eq!(admin.token.as_deref(), Some("token-of-a-0123456789"));
        let config = AdminArgs {
            token_file: None,
            admin: Some("[::1]:1".to_owned()),
            ..both
        };
        let admin = config.resolve().unwrap();
        assert_eq!(admin.address, "[::1]:1");
        assert_eq!(admin.token.as_deref(), Some("token-of-b-0123456789"));
    }

    #[test]
    fn a_named_file_must_hold_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let args = AdminArgs {
            token_file: Some(path.clone()),
            ..AdminArgs::default()
        };
        assert!(args.resolve().unwrap_err().contains("cannot read"));
        for text in ["", "a\r\nb", "two words"] {
            std::fs::write(&path, text).unwrap();
            assert!(args.resolve().unwrap_err().contains("holds no"), "{text}");
        }
    }
}
