//! PostgreSQL server of a test: its data in a temporary folder, on a free port of 127.0.0.1 and on a Unix socket.
//!
//! Uses an installed server, or installs the one of Debian.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::commands::run;

/// Folder below which Debian installs each version of the server.
const DEBIAN: &str = "/usr/lib/postgresql";
/// User that the package of Debian creates; the server refuses to run as root.
const USER: &str = "postgres";

/// Running server. Dropping it stops it.
///
/// Over TCP, every role needs its password (SCRAM); over the socket, none does.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    folder: TempDir,
    port: u16,
}

impl PostgresServer {
    /// Creates an empty server and starts it. `settings` are lines of postgresql.conf.
    ///
    /// # Errors
    /// Returns an error if no server is installed and none can be, or it does not start; it contains the command's
    /// output.
    pub fn start(settings: &[&str]) -> io::Result<Self> {
        let programs = programs()?;
        let folder = TempDir::new()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let server = Self { programs, folder, port };
        if geteuid().is_root() {
            let id = |flag| run(Command::new("id").args([flag, USER])).map(|printed| parse_id(&printed));
            let (user, group) = (id("-u")??, id("-g")??);
            chown(server.folder.path(), Some(user), Some(group))?;
        }
        fs::set_permissions(server.folder.path(), fs::Permissions::from_mode(0o755))?;
        let data = server.data();
        let arguments = ["--auth-local=trust", "--auth-host=scram-sha-256", "--username=postgres", "--no-sync"];
        run(server.command("initdb").args(arguments).args(["--encoding=UTF8", "--locale=C", "-D"]).arg(&data))?;
        let mut configuration = fs::read_to_string(data.join("postgresql.conf"))?;
        configuration.push_str("fsync = off\n");
        settings.iter().for_each(|line| configuration.extend([line, "\n"]));
        fs::write(data.join("postgresql.conf"), configuration)?;
        server.resume()?;
        Ok(server)
    }

    /// Returns the folder of the data.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns the folder of the socket.
    pub fn socket_folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts the server after [`stop`](Self::stop), on the same port.
    ///
    /// # Errors
    /// Returns an error if it does not start; it contains the server's log.
    pub fn resume(&self) -> io::Result<()> {
        let options = format!("-h 127.0.0.1 -p {} -k {}", self.port, self.folder.path().display());
        let log = self.folder.path().join("log");
        let mut command = self.command("pg_ctl");
        command.args(["start", "--wait", "--silent", "-o", &options, "-l"]).arg(&log).arg("-D").arg(self.data());
        let log = || fs::read_to_string(&log).unwrap_or_default();
        run(&mut command).map(drop).map_err(|error| io::Error::other(format!("{error}\n{}", log())))
    }

    /// Stops the server: ends its connections and waits until it is gone.
    ///
    /// # Errors
    /// Returns an error if it does not stop.
    pub fn stop(&self) -> io::Result<()> {
        let arguments = ["stop", "--wait", "--silent", "-m", "fast", "-D"];
        run(self.command("pg_ctl").args(arguments).arg(self.data())).map(drop)
    }

    /// Runs SQL in a database as the superuser, and returns what it printed: a line for each row, columns separated by
    /// `|`.
    ///
    /// # Errors
    /// Returns an error with the server's message.
    pub fn sql(&self, database: &str, statements: &str) -> io::Result<String> {
        let mut command = self.command("psql");
        command.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "postgres",
            "-d",
            database,
            "-c",
            statements,
        ]);
        command.arg("-h").arg(self.folder.path()).arg("-p").arg(self.port.to_string());
        let printed = run(&mut command)?;
        String::from_utf8(printed).map(|text| text.trim_end().to_owned()).map_err(io::Error::other)
    }

    /// Writes a file into the folder of the data, readable by the server only.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn write_file(&self, name: &str, content: &str) -> io::Result<()> {
        let path = self.data().join(name);
        fs::write(&path, content)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        if geteuid().is_root() {
            run(Command::new("chown").arg(USER).arg(&path))?;
        }
        Ok(())
    }

    fn command(&self, program: &str) -> Command {
        let path = self.programs.join(program);
        let mut command = if geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command
                .arg(format!("--reuid={USER}"))
                .arg(format!("--regid={USER}"))
                .args(["--clear-groups", "--"])
                .arg(path);
            command
        } else {
            Command::new(path)
        };
        // The temporary folder is readable by the user, unlike the current one perhaps.
        command.current_dir(self.folder.path());
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let arguments = ["stop", "--wait", "--silent", "-m", "immediate", "-D"];
        // A test may have stopped it.
        let _stopped = run(self.command("pg_ctl").args(arguments).arg(self.data()));
    }
}

fn parse_id(printed: &[u8]) -> io::Result<u32> {
    String::from_utf8_lossy(printed).trim().parse().map_err(io::Error::other)
}

/// Returns the folder of the server's programs.
fn programs() -> io::Result<PathBuf> {
    if let Some(found) = find_programs() {
        return Ok(found);
    }
    run(Command::new("apt-get").arg("update"))?;
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--no-install-recommends", "postgresql"]);
    run(install.env("DEBIAN_FRONTEND", "noninteractive"))?;
    find_programs().ok_or_else(|| io::Error::other("the package postgresql has no server"))
}

fn find_programs() -> Option<PathBuf> {
    let versions = fs::read_dir(DEBIAN).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let version = |path: &PathBuf| path.file_name().and_then(OsStr::to_str).and_then(|name| name.parse::<u32>().ok());
    let newest = versions.max_by_key(version).map(|version| version.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    newest.into_iter().chain(std::env::split_paths(&path)).find(|folder| folder.join("initdb").exists())
}
