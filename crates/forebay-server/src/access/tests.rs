//! What a line means is compared with PostgreSQL's own reading in the tests of the program; here is what is refused, and why.

use std::net::IpAddr;

use forebay_pg_wire::gate::Replication;
use forebay_pg_wire::tls::Certificate;

use super::*;

#[test]
fn what_is_not_understood_is_an_error_of_its_line() {
    for (line, why) in [
        ("host", "database is missing"),
        ("host all", "user is missing"),
        ("host all all", "address is missing"),
        ("host all all all", "method is missing"),
        ("local all all", "method is missing"),
        ("hosts all all all trust", "no type of connection"),
        ("host,local all all all trust", "the type is one"),
        ("host all all 10.0.0.0/33 trust", "length of its prefix"),
        ("host all all 10.0.0.1 trust", "no mask"),
        ("host all all 10.0.0.1 255.0.255.0 trust", "no mask"),
        ("host all all db.internal trust", "names of hosts"),
        ("host all all samenet trust", "which addresses"),
        ("host samerole all all trust", "no groups"),
        ("host all +staff all trust", "no groups"),
        ("host all @names all trust", "files of names"),
        ("host all /^a all trust", "patterns"),
        ("host all all all ldap", "\"ldap\" is not supported"),
        ("host all all all cert", "hostssl only"),
        ("host all all all trust clientcert=verify-ca", "hostssl only"),
        ("hostssl all all all cert clientcert=verify-ca", "verifies in full"),
        ("hostssl all all all trust map=x", "\"map=x\" is not supported"),
        ("host \"all all all trust", "quote"),
    ] {
        let text = format!("# first\n\nhost all all all reject\n{line}\n");
        let (number, told) = Rules::read(&text).unwrap_err();
        assert!(number == 4 && told.contains(why), "{line}: {number} {told}");
    }
}

fn applicant<'a>(user: &'a str, certificate: Option<&'a Certificate>) -> Applicant<'a> {
    Applicant {
        user,
        database: "shop",
        replication: Replication::No,
        origin: Origin::Address(IpAddr::from([10, 0, 0, 7])),
        is_over_tls: true,
        certificate,
    }
}

/// Passwords are known of `known`, as SCRAM or as md5 has them; the others are asked for nothing.
#[derive(Debug)]
struct Passwords(&'static str);

impl Gate for Passwords {
    fn demand<'a>(&'a self, _: Applicant<'a>) -> Verdict<'a, Demand> {
        let demand = match self.0 {
            "" => Demand::Nothing,
            stored => Demand::Proof(stored.parse().unwrap()),
        };
        Box::pin(std::future::ready(Ok(demand)))
    }

    fn check<'a>(&'a self, _: Applicant<'a>, _: &'a str) -> Verdict<'a, ()> {
        unreachable!("asked for nothing in clear")
    }
}

const SCRAM: &str = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
const MD5: &str = "md50123456789abcdef0123456789abcdef";

async fn demanded(rules: &str, stored: &'static str, applicant: Applicant<'_>) -> Result<Demand, WireError> {
    let access = Access::new(Rules::read(rules).unwrap(), Arc::new(Passwords(stored)));
    access.demand(applicant).await
}

#[tokio::test]
async fn a_rule_asks_for_what_it_says_or_lets_nobody_in() {
    let anna = applicant("anna", None);
    for (rule, stored, is_let_in) in [
        ("trust", SCRAM, true),
        ("scram-sha-256", SCRAM, true),
        ("scram-sha-256", MD5, false),
        ("md5", MD5, true),
        ("md5", SCRAM, true),
        ("password", "", false),
        ("scram-sha-256", "", false),
        ("reject", SCRAM, false),
    ] {
        let demanded = demanded(&format!("host all all all {rule}"), stored, anna).await;
        match demanded {
            Ok(Demand::Nothing) => assert_eq!(rule, "trust"),
            Ok(Demand::Proof(of)) => assert!(is_let_in && of.to_string() == stored, "{rule} {stored}"),
            Ok(Demand::Password) => panic!("in clear"),
            Err(error) => assert!(
                !is_let_in && error.sqlstate.starts_with("28"),
                "{rule} {stored} {error:?}"
            ),
        }
    }
}

#[tokio::test]
async fn a_certificate_is_the_users_own_where_the_rule_says_so() {
    let of = |name: &str| Certificate {
        common_name: Some(name.to_owned()),
    };
    let (annas, berts) = (of("anna"), of("bert"));
    let nameless = Certificate { common_name: None };
    for (rule, certificate, is_let_in) in [
        ("cert", None, false),
        ("cert", Some(&annas), true),
        ("cert", Some(&berts), false),
        ("cert", Some(&nameless), false),
        ("trust clientcert=verify-full", Some(&berts), false),
        ("trust clientcert=verify-full", Some(&annas), true),
        ("trust clientcert=verify-ca", Some(&berts), true),
        ("trust clientcert=verify-ca", None, false),
        ("scram-sha-256 clientcert=verify-full", None, false),
        ("scram-sha-256 clientcert=verify-full", Some(&annas), true),
        // One that was not asked for is no proof of anything.
        ("scram-sha-256", Some(&annas), true),
    ] {
        let demanded = demanded(
            &format!("hostssl all all all {rule}"),
            SCRAM,
            applicant("anna", certificate),
        )
        .await;
        match demanded {
            Ok(demand) => {
                assert!(is_let_in, "{rule} {certificate:?}");
                assert_eq!(matches!(demand, Demand::Proof(_)), rule.starts_with("scram"), "{rule}");
            }
            Err(_) => assert!(!is_let_in, "{rule} {certificate:?}"),
        }
    }
}

#[tokio::test]
async fn whom_no_rule_meets_is_told_in_postgresqls_words() {
    let error = demanded("host all bert all trust", SCRAM, applicant("anna", None))
        .await
        .unwrap_err();
    assert_eq!(
        error.message,
        "no pg_hba.conf entry for host \"10.0.0.7\", user \"anna\", database \"shop\", SSL encryption"
    );
}
