//! Brings the test suites of others, which are run straight and through the proxy: PostgreSQL's own, and those of its clients.
//!
//! Promises: each is of the version that is used here anyway (the server that is installed, what `go.mod` and `Cargo.lock` pin), comes by
//! the package manager of its language, which checks it, and goes below `target/suites`, where the tests look for it. Nothing of
//! them is part of the project.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use crate::{
    command::{Command, cargo, is_installed},
    install::{self, apt_install, install_once_of, install_unless},
    workspace,
};

/// What links a program of PostgreSQL's with what its own programs share.
const SHARED_BY_PROGRAMS: [&str; 2] = ["libpgcommon.a", "libpgport.a"];
/// Libraries that the regression tests load beside their own; the packages of the system bring them.
const LOADED_BESIDES: [&str; 2] = ["autoinc.so", "refint.so"];
/// What is unpacked of PostgreSQL's source.
const REGRESSION_TESTS: &str = "src/test/regress";
const PIPELINE_TESTS: &str = "src/test/modules/libpq_pipeline";

/// A suite of somebody else's.
pub(crate) struct Suite {
    /// As its test is called.
    pub(crate) name: &'static str,
    prepare: fn() -> Result<(), String>,
}

impl Suite {
    /// Installs it if need be; the error is one line.
    pub(crate) fn prepare(&self) -> Result<(), String> {
        (self.prepare)()
    }
}

/// All of them, in the order they are run.
pub(crate) const SUITES: &[Suite] = &[
    Suite {
        name: "regress",
        prepare: postgresql,
    },
    Suite {
        name: "libpq_pipeline",
        prepare: postgresql,
    },
    Suite {
        name: "pgx",
        prepare: pgx,
    },
    Suite {
        name: "tokio_postgres",
        prepare: tokio_postgres,
    },
];

fn installed(place: &str) -> PathBuf {
    workspace::target().join("suites").join(place)
}

fn say<'a>(what: &'a str, path: &'a Path) -> impl Fn(std::io::Error) -> String + 'a {
    move |error| format!("could not {what} {}: {error}", path.display())
}

/// PostgreSQL's regression tests and `libpq_pipeline`, of the server's own version, with what of them has to be compiled.
fn postgresql() -> Result<(), String> {
    install::servers()?;
    let compiler_is_here = || ["gcc", "bzip2"].into_iter().all(is_installed);
    install_unless(&compiler_is_here, &["gcc", "libc6-dev", "bzip2"], "gcc or bzip2")?;
    let library_is_here = || Path::new("/usr/include/postgresql/libpq-fe.h").is_file();
    install_unless(&library_is_here, &["libpq-dev"], "libpq-fe.h")?;
    let server = Server::installed()?;
    let folder = installed("postgresql");
    let made_from = format!("{} {}\n", server.package, server.version);
    install_once_of(&folder, &made_from, || {
        let packages = folder.join("packages");
        let headers = server.fetch(&packages)?;
        let include = headers.join(format!("usr/include/postgresql/{}/server", server.major));
        let libraries = headers.join(format!("usr/lib/postgresql/{}/lib", server.major));
        let own = PathBuf::from(format!("/usr/lib/postgresql/{}", server.major));
        let (regress, pipeline) = (folder.join("regress"), folder.join("libpq_pipeline"));
        for (part, place) in [(REGRESSION_TESTS, &regress), (PIPELINE_TESTS, &pipeline)] {
            let unpacked = packages.join("source").join(part);
            fs::rename(&unpacked, place).map_err(say("move", &unpacked))?;
        }
        let include = format!("-I{}", include.display());
        let compile = || Command::new("gcc").arguments(["-O1", "-w", &include]);
        compile()
            .arguments(["-fPIC", "-shared", "-o"])
            .arguments([regress.join("regress.so"), regress.join("regress.c")])
            .run()?;
        compile()
            .arguments(["-I/usr/include/postgresql", "-I/usr/include/postgresql/internal", "-o"])
            .arguments([pipeline.join("libpq_pipeline"), pipeline.join("libpq_pipeline.c")])
            .arguments(["-lpq"])
            .arguments(SHARED_BY_PROGRAMS.map(|library| libraries.join(library)))
            .run()?;
        for library in LOADED_BESIDES {
            let from = own.join("lib").join(library);
            fs::copy(&from, regress.join(library)).map_err(say("copy", &from))?;
        }
        let runner = own.join("lib/pgxs/src/test/regress/pg_regress");
        for (from, name) in [(own.join("bin"), "bin"), (runner, "pg_regress")] {
            symlink(&from, folder.join(name)).map_err(say("link to", &from))?;
        }
        fs::remove_dir_all(&packages).map_err(say("remove", &packages))
    })
}

/// The server that the tests start: the newest that the system's packages have brought.
struct Server {
    major: u32,
    package: String,
    version: String,
}

impl Server {
    fn installed() -> Result<Self, String> {
        let folders = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let majors = folders.filter_map(|folder| folder.file_name().to_str()?.parse::<u32>().ok());
        let major = majors
            .max()
            .ok_or("the installed PostgreSQL is none of Debian's packages")?;
        let package = format!("postgresql-{major}");
        let version = Command::new("dpkg-query")
            .arguments(["--show", "--showformat=${Version}", &package])
            .told()
            .ok_or_else(|| format!("the installed PostgreSQL is not of the package {package}"))?;
        Ok(Self {
            major,
            package,
            version,
        })
    }

    /// Fetches source and headers of this very version into the folder, and returns where the headers' package is unpacked.
    ///
    /// The package manager knows where from, and checks what it fetches; its own lists, which may have no sources, stay as they are.
    fn fetch(&self, folder: &Path) -> Result<PathBuf, String> {
        const KINDS: [&str; 2] = ["deb", "deb-src"];
        let origins = || {
            let format = [
                "indextargets",
                "--format",
                "$(REPO_URI) $(RELEASE) $(COMPONENT)",
                "Created-By: Packages",
            ];
            Command::new("apt-get").arguments(format).told().unwrap_or_default()
        };
        if origins().is_empty() {
            // It names those only whose lists it has.
            apt_install(&[&self.package])?;
        }
        let (lists, headers) = (folder.join("lists"), folder.join("headers"));
        for place in [&lists.join("partial"), &headers] {
            fs::create_dir_all(place).map_err(say("make", place))?;
        }
        let origins = origins();
        let lines = |kind: &str| {
            origins
                .lines()
                .map(|line| format!("{kind} {line}\n"))
                .collect::<String>()
        };
        let list = folder.join("sources.list");
        fs::write(&list, KINDS.map(lines).concat()).map_err(say("write", &list))?;
        let apt = || {
            let option = |name: &str, path: &Path| ["-o".into(), format!("{name}={}", path.display())];
            Command::new("apt-get")
                .arguments(option("Dir::Etc::sourcelist", &list))
                .arguments(option("Dir::Etc::sourceparts", Path::new("-")))
                .arguments(option("Dir::State::lists", &lists))
                .arguments(["-qq", "-o", "APT::Sandbox::User=root"])
                .in_folder(folder)
        };
        let wanted = |package: &str| format!("{package}={}", self.version);
        let by_hand = |how: String| {
            format!(
                "{how}; if {} is not to be had any more, install the newer one: apt-get install --only-upgrade {}",
                wanted(&self.package),
                self.package
            )
        };
        apt().arguments(["update"]).run()?;
        apt()
            .arguments(["source", "--download-only"])
            .arguments([wanted(&self.package)])
            .run()
            .map_err(by_hand)?;
        apt()
            .arguments(["download"])
            .arguments([wanted(&format!("postgresql-server-dev-{}", self.major))])
            .run()
            .map_err(by_hand)?;
        let source = folder.join("source");
        fs::create_dir_all(&source).map_err(say("make", &source))?;
        Command::new("tar")
            .arguments([
                "--extract",
                "--bzip2",
                "--strip-components=1",
                "--no-same-owner",
                "--wildcards",
                "--file",
            ])
            .arguments([file_ending(folder, ".orig.tar.bz2")?])
            .arguments(["--directory".into(), source])
            .arguments([REGRESSION_TESTS, PIPELINE_TESTS].map(|part| format!("*/{part}")))
            .run()?;
        Command::new("dpkg")
            .arguments(["--extract".into(), file_ending(folder, ".deb")?, headers.clone()])
            .run()?;
        Ok(headers)
    }
}

/// The one file in the folder whose name ends so.
fn file_ending(folder: &Path, ending: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(say("read", folder))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths
        .find(|path| path.to_string_lossy().ends_with(ending))
        .ok_or_else(|| format!("nothing that ends in {ending} came to {}", folder.display()))
}

/// pgx's tests, compiled a program a package.
fn pgx() -> Result<(), String> {
    const MODULE: &str = "github.com/jackc/pgx/v5";
    install::servers()?;
    if !is_installed("go") {
        return Err("go not found; install Go 1.25 or newer".into());
    }
    let pinned_by = workspace::client_sources("go");
    let ask = |format: &str| {
        Command::new("go")
            .arguments(["list", "-m", "-f", format, MODULE])
            .in_folder(&pinned_by)
            .told()
            .map(|told| told.trim().to_owned())
            .ok_or_else(|| format!("{} does not pin {MODULE}", pinned_by.display()))
    };
    let folder = installed("pgx");
    install_once_of(&folder, &ask("{{.Version}}")?, || {
        Command::new("go")
            .arguments(["mod", "download"])
            .in_folder(&pinned_by)
            .run()?;
        let (source, programs) = (folder.join("source"), folder.join("programs"));
        // What was downloaded is nobody's to write to.
        copy(Path::new(&ask("{{.Dir}}")?), &source)?;
        fs::create_dir_all(&programs).map_err(say("make", &programs))?;
        let packages = [
            ".",
            "./pgconn",
            "./pgxpool",
            "./stdlib",
            "./pgtype",
            "./pgtype/zeronull",
        ];
        Command::new("go")
            .arguments(["test", "-c", "-o"])
            .arguments([&programs])
            .arguments(packages)
            .set("CGO_ENABLED", "0")
            .in_folder(&source)
            .run()
    })
}

/// The tests of tokio-postgres, which are part of its package, compiled; the port that stands in them is asked of the environment.
fn tokio_postgres() -> Result<(), String> {
    const PORT: &str = "5433";
    install::servers()?;
    let metadata = cargo(["metadata", "--format-version", "1", "--locked"]).told();
    let metadata = metadata.ok_or("cargo does not tell where tokio-postgres is")?;
    let manifests = metadata
        .split("\"manifest_path\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    let package = manifests
        .filter_map(|manifest| Path::new(manifest).parent())
        .find(|package| {
            package
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("tokio-postgres-"))
        })
        .ok_or("no package depends on tokio-postgres")?;
    let folder = installed("tokio-postgres");
    let made_from = package.file_name().unwrap_or_default().to_string_lossy();
    install_once_of(&folder, &made_from, || {
        let source = folder.join("source");
        copy(package, &source)?;
        let edit = |name: &str, edit: &dyn Fn(String) -> String| {
            let file = source.join(name);
            let text = fs::read_to_string(&file).map_err(say("read", &file))?;
            fs::write(&file, edit(text)).map_err(say("write", &file))
        };
        // A workspace of its own, without what only measures.
        edit("Cargo.toml", &|text| {
            without_sections(&text, &["[[bench]]", "[dev-dependencies.criterion]"]) + "\n[workspace]\n"
        })?;
        for file in ["tests/test/main.rs", "tests/test/runtime.rs"] {
            edit(file, &|text| with_port_of_environment(&text, PORT))?;
        }
        let built = folder.join("built");
        cargo(["test", "--quiet", "--test", "test", "--no-run"])
            .arguments(["--target-dir".into(), built.clone()])
            .set("CARGO_PROFILE_DEV_DEBUG", "0")
            .in_folder(&source)
            .run()?;
        let programs = built.join("debug/deps");
        let entries = fs::read_dir(&programs).map_err(say("read", &programs))?;
        let program = entries
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_none() && file_name_begins(path, "test-"))
            .ok_or("cargo built no tests")?;
        let tests = folder.join("tests");
        fs::rename(&program, &tests).map_err(say("move", &program))?;
        // They are many times what is needed from now on.
        fs::remove_dir_all(&built).map_err(say("remove", &built))
    })
}

/// The manifest without the sections that begin with these lines.
fn without_sections(manifest: &str, heads: &[&str]) -> String {
    let mut is_left_out = false;
    let mut kept = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_left_out = heads.contains(&line);
        }
        if !is_left_out {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn file_name_begins(path: &Path, beginning: &str) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(beginning))
}

/// The source with each text that has this port in it put together when it is needed, with `TEST_PORT` instead.
fn with_port_of_environment(source: &str, port: &str) -> String {
    let mut parts = source.split('"');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (at, part) in parts.enumerate() {
        let is_inside = at % 2 == 0;
        match part.split_once(port) {
            Some(_) if is_inside => {
                let format = part.replace(port, "{0}");
                text.push_str(&format!(
                    "format!(\"{format}\", std::env::var(\"TEST_PORT\").unwrap()).as_str()"
                ));
            }
            _ if is_inside => text.push_str(&format!("\"{part}\"")),
            _ => text.push_str(part),
        }
    }
    text
}

/// A folder with all that is in it, to be written to.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    Command::new("cp")
        .arguments(["-r".as_ref(), "--".as_ref(), from.as_os_str(), to.as_os_str()])
        .run()?;
    Command::new("chmod")
        .arguments(["-R".as_ref(), "u+w".as_ref(), to.as_os_str()])
        .run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_left_out_up_to_the_next() {
        let manifest = "[a]\nb = 1\n\n[[c]]\nd = 2\n[e]\n";
        assert_eq!(without_sections(manifest, &["[[c]]", "[e]"]), "[a]\nb = 1\n\n");
    }

    #[test]
    fn a_port_in_a_text_is_asked_of_the_environment() {
        let source = "let port = 5433; connect(\"host=a port=5433\", \"b\")";
        let expected = "let port = 5433; connect(format!(\"host=a port={0}\", std::env::var(\"TEST_PORT\").unwrap()).as_str(), \"b\")";
        assert_eq!(with_port_of_environment(source, "5433"), expected);
    }
}
