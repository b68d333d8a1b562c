//! Tenants who share a database, told apart by row security, by roles, by settings of their own and by schemas: nobody is shown a row of
//! another's, nor writes one, while all of them ask the same at once and become others in between.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::client::Client;
use crate::script::Step;
use crate::{database, front, seeds};

const TENANTS: u32 = 4;
const CLIENTS: usize = 16;
/// Of each client.
const STEPS: usize = 150;

fn schema() -> String {
    let mut text = "\
CREATE TABLE secured (id serial PRIMARY KEY, tenant int DEFAULT current_setting('app.tenant')::int, n int);
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secured USING (tenant = current_setting('app.tenant')::int);
CREATE TABLE stamped (tenant int, said int);
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN new.tenant := current_setting(''app.tenant''); RETURN new; END';
CREATE TRIGGER stamp BEFORE INSERT ON stamped FOR EACH ROW EXECUTE FUNCTION stamp();
CREATE TABLE owned (tenant text DEFAULT current_user, said int);
CREATE TABLE plain (id int PRIMARY KEY, tenant int);
INSERT INTO plain SELECT n, n % 4 FROM generate_series(0, 99) n;
CREATE VIEW seen AS SELECT tenant, id FROM plain WHERE tenant = current_setting('app.tenant')::int;
CREATE FUNCTION become(t int) RETURNS text LANGUAGE sql AS $$ SELECT set_config('app.tenant', t::text, false) $$;
"
    .to_owned();
    for tenant in 0..TENANTS {
        text += &format!(
            "CREATE ROLE tenant_{tenant};\n\
             GRANT ALL ON ALL TABLES IN SCHEMA public TO tenant_{tenant};\n\
             GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO tenant_{tenant};\n\
             CREATE SCHEMA of_{tenant} AUTHORIZATION tenant_{tenant};\n\
             CREATE TABLE of_{tenant}.items (id int PRIMARY KEY, tenant int DEFAULT {tenant}, said int);\n\
             INSERT INTO of_{tenant}.items SELECT n FROM generate_series(0, 19) n;\n\
             GRANT ALL ON of_{tenant}.items TO tenant_{tenant};\n"
        );
    }
    text
}

/// Statements whose first column is the tenant, if they tell rows; `$t` is who asks, `$n` a number.
const TEXTS: [&str; 18] = [
    "SELECT tenant, n FROM secured WHERE n % 3 = $n % 3 ORDER BY n LIMIT 5",
    "SELECT tenant FROM secured WHERE id = $n",
    "INSERT INTO secured (n) VALUES ($n) RETURNING tenant",
    "UPDATE secured SET n = n + 1 WHERE id = $n RETURNING tenant",
    "DELETE FROM secured WHERE id = $n RETURNING tenant",
    "INSERT INTO stamped (said) VALUES ($t) RETURNING tenant",
    "INSERT INTO owned (said) VALUES ($t) RETURNING replace(tenant, 'tenant_', '')",
    "SELECT tenant FROM plain WHERE tenant = current_setting('app.tenant')::int AND id < $n",
    "SELECT tenant, id FROM seen WHERE id < $n",
    "SELECT current_setting('app.tenant')",
    "SELECT replace(current_user, 'tenant_', '')",
    "SELECT tenant FROM items WHERE id = $n",
    "SELECT tenant, count(*) FROM items GROUP BY tenant",
    "INSERT INTO items (id, said) VALUES ($n, $t)",
    "UPDATE items SET said = $t WHERE id = $n",
    "UPDATE items SET said = $t WHERE id = $n RETURNING tenant, said",
    "DELETE FROM items WHERE id = $n RETURNING tenant",
    "SELECT said FROM items WHERE id = $n AND said IS NOT NULL",
];

/// The first columns of all rows in an answer: a text of digits each, behind the count of columns and its length.
fn first_columns(answer: &str) -> Vec<String> {
    let rows = answer.lines().filter_map(|line| line.strip_prefix("D \\x00"));
    rows.map(|row| {
        // The count, and four bytes of which three are zero, each written as four letters.
        let (_, rest) = row.split_once("\\x00\\x00\\x00").unwrap();
        rest.strip_prefix("\\x01")
            .unwrap_or_else(|| panic!("{row}"))
            .chars()
            .take_while(char::is_ascii_digit)
            .take(1)
            .collect()
    })
    .collect()
}

/// Becomes a tenant, in one of the ways there are.
fn become_one(client: &mut Client, tenant: u32, random: &mut StdRng) {
    let ways: &[String] = match random.random_range(0..3) {
        0 => &[
            "RESET role".to_owned(),
            format!("SET app.tenant = '{tenant}'"),
            format!("SET search_path = of_{tenant}, public"),
            format!("SET ROLE tenant_{tenant}"),
        ],
        1 => &[
            format!("SET ROLE tenant_{tenant}"),
            format!(
                "SELECT set_config('app.tenant', '{tenant}', false), set_config('search_path', 'of_{tenant}, public', false)"
            ),
        ],
        _ => &[
            "RESET ALL".to_owned(),
            format!("BEGIN; SELECT public.become({tenant}); COMMIT"),
            format!("SET search_path = of_{tenant}, public; SET ROLE tenant_{tenant}"),
        ],
    };
    for text in ways {
        let answer = client.ask(&Step::query(text));
        assert!(!answer.contains("\nE "), "{text}: {answer}");
    }
}

fn step(text: &str, tenant: u32, number: u32, random: &mut StdRng) -> Step {
    if random.random() {
        return Step::query(
            &text
                .replace("$t", &tenant.to_string())
                .replace("$n", &number.to_string()),
        );
    }
    let mut values = Vec::new();
    let mut sql = text.to_owned();
    for (name, value) in [("$t", tenant), ("$n", number)] {
        if sql.contains(name) {
            values.push(value.to_string());
            sql = sql.replace(name, &format!("${}::int", values.len()));
            // A key is compared as it is.
            sql = sql.replace(
                &format!("id = ${}::int", values.len()),
                &format!("id = ${}", values.len()),
            );
        }
    }
    let mut step = Step::new();
    step.parse("", &sql);
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    step.bind("", "", &values, false);
    step.execute("", 0);
    step.sync();
    step
}

fn live(seed: u64, proxy: &str, database: &str) -> u64 {
    let mut random = StdRng::seed_from_u64(seed);
    let mut tenant = random.random_range(0..TENANTS);
    // Also as its session begins.
    let options = format!("-c app.tenant={tenant} -c search_path=of_{tenant},public -c role=tenant_{tenant}");
    let mut client = Client::connect(proxy, database, &[("options", &options)]);
    let mut rows = 0;
    for _ in 0..STEPS {
        if random.random_range(0..20) == 0 {
            tenant = random.random_range(0..TENANTS);
            become_one(&mut client, tenant, &mut random);
        }
        let text = TEXTS[random.random_range(0..TEXTS.len())];
        let number = random.random_range(0..20);
        let mut as_tenant = tenant;
        let is_local = random.random_range(0..20) == 0;
        if is_local {
            // For one transaction it is another one.
            as_tenant = (tenant + 1) % TENANTS;
            client.ask(&Step::query(&format!(
                "BEGIN; SET LOCAL app.tenant = '{as_tenant}'; SET LOCAL search_path = of_{as_tenant}, public; SET LOCAL ROLE NONE; \
                 SET LOCAL ROLE tenant_{as_tenant}"
            )));
        }
        let answer = client.ask(&step(text, as_tenant, number, &mut random));
        if is_local {
            client.ask(&Step::query("COMMIT"));
        }
        for found in first_columns(&answer) {
            assert_eq!(found, as_tenant.to_string(), "seed {seed}: {text}: {answer}");
            rows += 1;
        }
        let may_fail = answer.contains("23505");
        assert!(may_fail || !answer.contains("\nE "), "seed {seed}: {text}: {answer}");
    }
    rows
}

#[test]
fn nobody_is_shown_what_is_anothers() {
    let name = "tenants";
    let upstream = database(name);
    let mut straight = Client::connect(&upstream, name, &[]);
    straight.run(&schema());
    let proxy = front::start_in_company(&upstream, 24);
    for seed in seeds(1) {
        let clients: Vec<_> = (0..CLIENTS as u64)
            .map(|number| {
                let proxy = proxy.clone();
                std::thread::spawn(move || live(seed * 1000 + number, &proxy, name))
            })
            .collect();
        let mut rows = 0;
        for client in clients {
            rows += client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        assert!(rows > 300, "{rows}");
    }
    // What they have written is where it belongs.
    let mut wrong = vec![
        "SELECT * FROM stamped WHERE tenant <> said".to_owned(),
        "SELECT * FROM owned WHERE tenant <> 'tenant_' || said".to_owned(),
    ];
    wrong.extend(
        (0..TENANTS)
            .map(|tenant| format!("SELECT * FROM of_{tenant}.items WHERE tenant <> {tenant} OR said <> {tenant}")),
    );
    for text in wrong {
        assert_eq!(straight.rows(&text), Vec::<Vec<_>>::new(), "{text}");
    }
    for table in ["stamped", "owned", "secured"] {
        assert_ne!(
            straight.rows(&format!("SELECT * FROM {table}")),
            Vec::<Vec<_>>::new(),
            "{table}"
        );
    }
    let mut admin = Client::connect(&proxy, name, &[front::ADMIN]);
    let all = admin.rows("SHOW FOREBAY SHARING");
    let count = |text: &str, column: usize| -> u64 {
        let of = all
            .iter()
            .filter(|row| row[2].as_deref().is_some_and(|shown| shown.contains(text)));
        of.map(|row| row[column].as_deref().unwrap_or("0").parse::<u64>().unwrap())
            .sum()
    };
    for text in ["FROM items WHERE id = ", "INSERT INTO items", "UPDATE items SET said"] {
        assert!(count(text, 3) > 10, "{text} did not travel: {all:?}");
    }
    for text in ["secured", "stamped", "FROM seen"] {
        assert_eq!(count(text, 3), 0, "{text} did travel");
    }
}
