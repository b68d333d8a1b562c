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
    command::{Command, is_installed},
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
