//! Installs the frameworks whose own programs are run against the server, a language at a time.
//!
//! Promises: versions are those of the files in `crates/forebay-server/tests/frameworks`; all but the languages themselves goes below
//! `target/frameworks`, where the tests look for it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    command::{Command, is_installed},
    install::{self, apt_install, install_once, install_unless},
    workspace,
};

/// What copies Java's libraries into one folder; a version, so that tomorrow's does the same.
const MAVEN_COPIES: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/// The frameworks of one language; Prisma is one of its own, because it brings more than all others of Node.js.
pub(crate) struct Language {
    /// As the module of their tests is called.
    pub(crate) name: &'static str,
    prepare: fn() -> Result<(), String>,
}

impl Language {
    /// Installs them if need be; the error is one line.
    pub(crate) fn prepare(&self) -> Result<(), String> {
        (self.prepare)()
    }
}

/// All of them, in the order they are run.
pub(crate) const LANGUAGES: &[Language] = &[
    Language {
        name: "python",
        prepare: || install::python_packages(&installed("python"), &sources("python")),
    },
    Language {
        name: "node",
        prepare: || install::node_packages(&installed("node"), &sources("node")),
    },
    Language {
        name: "prisma",
        prepare: prisma,
    },
    Language {
        name: "go",
        prepare: || install::go_program(&installed("go/frameworks"), &sources("go")),
    },
    Language {
        name: "java",
        prepare: java,
    },
    Language {
        name: "php",
        prepare: php,
    },
    Language {
        name: "tools",
        prepare: install::servers,
    },
];

fn installed(place: &str) -> PathBuf {
    workspace::target().join("frameworks").join(place)
}

fn sources(language: &str) -> PathBuf {
    workspace::root()
        .join("crates/forebay-server/tests/frameworks")
        .join(language)
}

/// Prisma's packages, and the client that it makes of the schema.
fn prisma() -> Result<(), String> {
    let (folder, sources) = (installed("prisma"), sources("prisma"));
    let files = ["package.json", "package-lock.json", "schema.prisma"].map(|name| sources.join(name));
    install_once(&folder, &files.each_ref().map(PathBuf::as_path), || {
        install::install_node_packages(&folder, &sources)?;
        let schema = folder.join("schema.prisma");
        fs::copy(&files[2], &schema).map_err(|error| format!("could not copy {}: {error}", files[2].display()))?;
        Command::new("node")
            .arguments(["node_modules/prisma/build/index.js", "generate", "--schema"])
            .arguments([schema])
            .set("CHECKPOINT_DISABLE", "1")
            // The engine that migrates comes in no package, and nothing here calls it: where one is named, none is looked for.
            .set("PRISMA_SCHEMA_ENGINE_BINARY", "/bin/true")
            .in_folder(&folder)
            .run()
    })
}

/// The libraries that `pom.xml` names, and the programs compiled against them.
fn java() -> Result<(), String> {
    let is_here = || ["java", "javac", "mvn"].into_iter().all(is_installed);
    install_unless(&is_here, &["openjdk-17-jdk-headless", "maven"], "java, javac or mvn")?;
    let (libraries, classes) = (installed("java/libraries"), installed("java/classes"));
    let project = sources("java").join("pom.xml");
    install_once(&libraries, &[&project], || {
        let option = |name: &str, path: &Path| format!("-D{name}={}", path.display());
        Command::new("mvn")
            .arguments(["--quiet", "--batch-mode", "--file"])
            .arguments([&project])
            .arguments([
                MAVEN_COPIES.to_owned(),
                option("outputDirectory", &libraries),
                option("maven.repo.local", &installed("maven")),
            ])
            .run()
    })?;
    let programs = files(&sources("java"), "java")?;
    let of: Vec<&Path> = programs.iter().chain([&project]).map(PathBuf::as_path).collect();
    install_once(&classes, &of, || {
        Command::new("javac")
            .arguments(["-encoding", "UTF-8", "-Xlint:all,-processing", "-d"])
            .arguments([classes.clone().into_os_string(), "-cp".into()])
            .arguments([libraries.join("*")])
            .arguments(&programs)
            .run()
    })
}

/// PHP with its driver, as the system brings them.
fn php() -> Result<(), String> {
    let driver_is_here = || {
        let modules = Command::new("php").arguments(["-m"]).told().unwrap_or_default();
        modules.lines().any(|module| module == "pdo_pgsql")
    };
    if driver_is_here() {
        return Ok(());
    }
    apt_install(&["php-cli", "php-pgsql"])?;
    if driver_is_here() {
        Ok(())
    } else {
        Err("the packages php-cli, php-pgsql came without PDO's driver".into())
    }
}

/// The files of a folder whose names end so, in order.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("could not read {}: {error}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .collect();
    found.sort();
    Ok(found)
}
