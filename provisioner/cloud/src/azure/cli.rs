//! Tokens of the user who has logged in with Azure's own program (`az login`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bridge::error::chain;
use bridge::process::{
    FirstLine, HostEnvironment, OutputSink, OutputStream, ProcessSandbox, ProcessSpec, Spawner, describe_exit,
};
use serde_json::Value;
use zeroize::Zeroizing;

use super::failure::{SourceFailure, one_line};
use super::token::{AccessToken, is_token};

/// Limit of a run of the program.
const LIMIT: Duration = Duration::from_secs(10);
/// Time for which a token is kept whose end the program does not print, as before its version 2.54: it prints none that ends
/// within five minutes. The token is renewed five minutes before.
const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// Maximum number of lines that are kept of the output: the program prints some ten.
const MAX_LINES: usize = 1000;

/// Runs the program, with the environment of `sc`, and returns the token that it prints.
pub(super) async fn cli_token(
    environment: &BTreeMap<String, String>,
    scope: &str,
) -> Result<AccessToken, SourceFailure> {
    let unavailable = SourceFailure::Unavailable;
    let variables: Vec<_> = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let program = HostEnvironment::new(variables.clone()).find_program("az");
    let program = program.ok_or_else(|| unavailable("there is no program `az` on PATH".to_owned()))?;
    let resource = scope.strip_suffix("/.default").unwrap_or(scope);
    let arguments =
        ["account", "get-access-token", "--output", "json", "--resource", resource].map(Into::into).to_vec();
    // The program is written in Python, which also looks for modules in the working directory.
    let (directory, sandbox) = (PathBuf::from("/"), ProcessSandbox::None);
    let spec = ProcessSpec { program, arguments, directory, environment: variables, sandbox };
    let lines = Arc::new(Lines::default());
    let process = Spawner::unsupervised().spawn(&spec, lines.clone()).map_err(|error| unavailable(chain(&error)))?;
    let exited = tokio::time::timeout(LIMIT, process.wait_for_exit()).await;
    let status = exited.map_err(|_| unavailable(format!("`az` did not end within {} s", LIMIT.as_secs())))?;
    process.wait_for_output_end().await;
    if !status.success() {
        let printed = one_line(&process.last_lines(OutputStream::Stderr).join(" "));
        let printed = if printed.is_empty() { describe_exit(status) } else { printed };
        return Err(unavailable(format!("`az account get-access-token` failed: {printed}")));
    }
    let first = match process.first_line().await {
        FirstLine::Line(line) | FirstLine::Incomplete(line) => line,
        FirstLine::ExecFailed(_) => String::new(),
    };
    let rest = std::mem::take(&mut *lines.0.lock().unwrap_or_else(PoisonError::into_inner));
    let printed = Zeroizing::new(format!("{first}\n{}", rest.join("\n")));
    parse(&printed).ok_or_else(|| unavailable("`az account get-access-token` printed no token".to_owned()))
}

fn parse(printed: &str) -> Option<AccessToken> {
    let reply: Value = serde_json::from_str(printed).ok()?;
    match reply.get("expires_on") {
        Some(_) => AccessToken::of_reply(&reply),
        None => {
            let text = reply.get("accessToken")?.as_str().filter(|text| is_token(text))?;
            Some(AccessToken::new(text, LIFETIME))
        }
    }
}

/// Lines of the standard output after the first one.
#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl OutputSink for Lines {
    fn line(&self, stream: OutputStream, line: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if stream == OutputStream::Stdout && lines.len() < MAX_LINES {
            lines.push(line.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    async fn token(script: Option<&str>) -> Result<String, SourceFailure> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("az");
        if let Some(script) = script {
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        let environment = [("PATH".to_owned(), path), ("AZURE_CONFIG_DIR".to_owned(), "/azure".to_owned())].into();
        cli_token(&environment, "https://storage.azure.com/.default").await.map(|token| token.text.to_string())
    }

    #[tokio::test]
    async fn program_prints_the_token_of_the_resource() {
        let script = "printf '{\\n\"accessToken\": \"%s|%s\",\\n\"expires_on\": 99999999999\\n}\\n' \
                      \"$(echo \"$*\" | tr ' ' +)\" \"$AZURE_CONFIG_DIR\"";
        let printed = "account+get-access-token+--output+json+--resource+https://storage.azure.com|/azure";
        assert_eq!(token(Some(script)).await.unwrap(), printed);
        assert_eq!(token(Some("echo '{\"accessToken\": \"old\"}'")).await.unwrap(), "old");
    }

    #[tokio::test]
    async fn program_without_a_login_is_no_source() {
        let message = async |script: Option<&str>| match token(script).await.unwrap_err() {
            SourceFailure::Unavailable(reason) => reason,
            SourceFailure::Failed(reason) => panic!("{reason}"),
        };
        assert_eq!(message(None).await, "there is no program `az` on PATH");
        let script = "echo \"ERROR: Please run 'az login' to setup account.\" >&2; exit 1";
        let failed = "`az account get-access-token` failed: ERROR: Please run 'az login' to setup account.";
        assert_eq!(message(Some(script)).await, failed);
        assert_eq!(message(Some("exit 3")).await, "`az account get-access-token` failed: exit status 3");
        assert_eq!(message(Some("echo no")).await, "`az account get-access-token` printed no token");
    }
}
