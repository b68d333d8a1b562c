//! What drivers and ORMs ask: type lookup at connect, table listings, column reflection. Written by hand in the shape these libraries
//! build their queries, not captured from them.

use super::World;
use crate::catalog::Catalog;
use postgres_types::Type;

#[test]
fn psycopg_fetches_a_type() {
    let world = World::standard();
    let query =
        "SELECT typname AS name, oid, typarray AS array_oid, oid::regtype::text AS regtype, typdelim AS delimiter
                 FROM pg_type t WHERE t.oid = to_regtype($1) ORDER BY t.oid";
    let translation = Catalog::translate(query).unwrap();
    assert_eq!(translation.parameters, [Type::TEXT]);
    assert_eq!(
        translation.column_types(),
        [Type::NAME, Type::OID, Type::OID, Type::TEXT, Type::CHAR]
    );
    assert_eq!(world.rows_with(query, &[&"int8"]), ["int8|20|1016|bigint|,"]);
    assert_eq!(
        world.rows_with(query, &[&"timestamp with time zone"]),
        ["timestamptz|1184|1185|timestamp with time zone|,"]
    );
    assert_eq!(world.rows_with(query, &[&"no_such_type"]), Vec::<String>::new());
}

#[test]
fn tokio_postgres_looks_up_a_type() {
    let world = World::standard();
    let query = "SELECT t.typname, t.typtype, t.typelem, r.rngsubtype, t.typbasetype, n.nspname, t.typrelid
                 FROM pg_catalog.pg_type t
                 LEFT OUTER JOIN pg_catalog.pg_range r ON r.rngtypid = t.oid
                 INNER JOIN pg_catalog.pg_namespace n ON t.typnamespace = n.oid
                 WHERE t.oid = $1";
    assert_eq!(Catalog::translate(query).unwrap().parameters, [Type::OID]);
    assert_eq!(world.rows_with(query, &[&1007]), ["_int4|b|23|<null>|0|pg_catalog|0"]);
    assert_eq!(world.rows_with(query, &[&3904]), ["int4range|r|0|23|0|pg_catalog|0"]);
}

#[test]
fn pgjdbc_looks_up_a_type() {
    let world = World::standard();
    let query = "SELECT typinput='pg_catalog.array_in'::regproc as is_array, typtype, typname, pg_type.oid
                 FROM pg_catalog.pg_type
                 LEFT JOIN (select ns.oid as nspoid, ns.nspname, r.r from pg_namespace as ns
                     join ( select s.r, (current_schemas(false))[s.r] as nspname
                            from generate_series(1, array_upper(current_schemas(false), 1)) as s(r) ) as r using ( nspname )
                 ) as sp ON sp.nspoid = typnamespace
                 WHERE typname = $1 ORDER BY sp.r, pg_type.oid DESC";
    assert_eq!(world.rows_with(query, &[&"_text"]), ["t|b|_text|1009"]);
    assert_eq!(world.rows_with(query, &[&"jsonb"]), ["f|b|jsonb|3802"]);
    let visible = "SELECT n.nspname = ANY(current_schemas(true)), n.nspname, t.typname FROM pg_catalog.pg_type t
                   JOIN pg_catalog.pg_namespace n ON t.typnamespace = n.oid WHERE t.oid = $1";
    assert_eq!(world.rows_with(visible, &[&25]), ["t|pg_catalog|text"]);
}

#[test]
fn pgjdbc_lists_tables() {
    let world = World::standard();
    let query = "SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, c.relname AS TABLE_NAME,
        CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema'
        WHEN true THEN CASE
          WHEN n.nspname = 'pg_catalog' OR n.nspname = 'information_schema' THEN CASE c.relkind
            WHEN 'r' THEN 'SYSTEM TABLE' WHEN 'v' THEN 'SYSTEM VIEW' WHEN 'i' THEN 'SYSTEM INDEX' ELSE NULL END
          ELSE NULL END
        WHEN false THEN CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'i' THEN 'INDEX' WHEN 'v' THEN 'VIEW' ELSE NULL END
        ELSE NULL END AS TABLE_TYPE, d.description AS REMARKS
        FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c
        LEFT JOIN pg_catalog.pg_description d ON (c.oid = d.objoid AND d.objsubid = 0 and d.classoid = 'pg_class'::regclass)
        LEFT JOIN pg_catalog.pg_class dc ON (d.classoid=dc.oid AND dc.relname='pg_class')
        LEFT JOIN pg_catalog.pg_namespace dn ON (dn.oid=dc.relnamespace AND dn.nspname='pg_catalog')
        WHERE c.relnamespace = n.oid AND n.nspname LIKE 'pub%' AND (false OR ( c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' )
          OR ( c.relkind = 'v' AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' ))
        ORDER BY TABLE_TYPE,TABLE_SCHEM,TABLE_NAME";
    assert_eq!(
        world.rows(query),
        [
            "<null>|public|author|TABLE|<null>",
            "<null>|public|book|TABLE|<null>",
            "<null>|public|cheap_book|VIEW|<null>"
        ]
    );
}

#[test]
fn pgjdbc_lists_columns() {
    let world = World::standard();
    let query = "SELECT * FROM (SELECT current_database() AS current_database, n.nspname,c.relname,a.attname,a.atttypid,
        a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) AS attnotnull,a.atttypmod,a.attlen,t.typtypmod,
        row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum,
        nullif(a.attidentity, '') as attidentity,nullif(a.attgenerated, '') as attgenerated,
        pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc,dsc.description,t.typbasetype,t.typtype
        FROM pg_catalog.pg_namespace n
        JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid)
        JOIN pg_catalog.pg_attribute a ON (a.attrelid=c.oid)
        JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid)
        LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid=def.adrelid AND a.attnum = def.adnum)
        LEFT JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)
        LEFT JOIN pg_catalog.pg_class dc ON (dc.oid=dsc.classoid AND dc.relname='pg_class')
        LEFT JOIN pg_catalog.pg_namespace dn ON (dc.relnamespace=dn.oid AND dn.nspname='pg_catalog')
        WHERE c.relkind in ('r','p','v','f','m') and a.attnum > 0 AND NOT a.attisdropped AND c.relname LIKE 'author') c WHERE true
        ORDER BY nspname,c.relname,attnum";
    assert_eq!(
        world.rows(query)[..2],
        [
            "forebay|public|author|id|20|t|-1|8|-1|1|d|<null>|<null>|<null>|0|b",
            "forebay|public|author|name|25|t|-1|-1|-1|2|<null>|<null>|<null>|<null>|0|b"
        ]
    );
}

#[test]
fn pgjdbc_lists_primary_keys() {
    let world = World::standard();
    let query = "SELECT result.TABLE_CAT, result.TABLE_NAME, result.COLUMN_NAME, result.KEY_SEQ, result.PK_NAME
        FROM (SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, ct.relname AS TABLE_NAME, a.attname AS COLUMN_NAME,
          (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ, ci.relname AS PK_NAME,
          information_schema._pg_expandarray(i.indkey) AS KEYS, a.attnum AS A_ATTNUM
          FROM pg_catalog.pg_class ct
          JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid)
          JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)
          JOIN pg_catalog.pg_index i ON ( a.attrelid = i.indrelid)
          JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)
          WHERE true AND ct.relname = 'pair' AND i.indisprimary ) result
        where result.A_ATTNUM = (result.KEYS).x ORDER BY result.table_name, result.pk_name, result.key_seq";
    assert_eq!(
        World::new("CREATE TABLE pair (a int, b int, c int, PRIMARY KEY (c, a))").rows(query),
        ["<null>|pair|c|1|pair_pkey", "<null>|pair|a|2|pair_pkey"]
    );
    assert_eq!(world.rows(query), Vec::<String>::new());
}

#[test]
fn sqlalchemy_reflects() {
    let world = World::standard();
    let has_table = "SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class
        JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace
        WHERE pg_catalog.pg_class.relname = $1::VARCHAR AND pg_catalog.pg_class.relkind = ANY (ARRAY[$2::VARCHAR, $3::VARCHAR, $4::VARCHAR])
        AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != $5::VARCHAR";
    assert_eq!(
        world.rows_with(has_table, &[&"book", &"r", &"p", &"v", &"pg_catalog"]),
        ["book"]
    );
    let columns = "SELECT pg_catalog.pg_attribute.attname AS name, pg_catalog.format_type(pg_catalog.pg_attribute.atttypid, pg_catalog.pg_attribute.atttypmod) AS format_type,
        (SELECT pg_catalog.pg_get_expr(pg_catalog.pg_attrdef.adbin, pg_catalog.pg_attrdef.adrelid) AS pg_get_expr_1 FROM pg_catalog.pg_attrdef
         WHERE pg_catalog.pg_attrdef.adrelid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_attrdef.adnum = pg_catalog.pg_attribute.attnum AND pg_catalog.pg_attribute.atthasdef) AS \"default\",
        pg_catalog.pg_attribute.attnotnull AS not_null, pg_catalog.pg_class.relname AS table_name
        FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_attribute ON pg_catalog.pg_class.oid = pg_catalog.pg_attribute.attrelid
        AND pg_catalog.pg_attribute.attnum > $1::SMALLINT AND NOT pg_catalog.pg_attribute.attisdropped
        JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace
        WHERE pg_catalog.pg_class.relname IN ('book') ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_attribute.attnum";
    assert_eq!(
        world.rows_with(columns, &[&0]),
        [
            "isbn|text|<null>|t|book",
            "author_id|bigint|<null>|t|book",
            "title|text|'untitled'::text|f|book",
            "price|numeric|<null>|f|book",
            "published|timestamp without time zone|<null>|f|book",
        ]
    );
    let constraints = "SELECT attr.conrelid, array_agg(CAST(attr.attname AS TEXT) ORDER BY attr.ord) AS cols, attr.conname, min(attr.description) AS description
        FROM (SELECT con.conrelid AS conrelid, con.conname AS conname, con.conindid AS conindid, con.description AS description, con.ord AS ord, pg_catalog.pg_attribute.attname AS attname
          FROM pg_catalog.pg_attribute JOIN (
            SELECT pg_catalog.pg_constraint.conrelid AS conrelid, pg_catalog.pg_constraint.conname AS conname, pg_catalog.pg_constraint.conindid AS conindid,
              unnest(pg_catalog.pg_constraint.conkey) AS attnum, generate_subscripts(pg_catalog.pg_constraint.conkey, 1) AS ord, pg_catalog.pg_description.description AS description
            FROM pg_catalog.pg_constraint LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid
            WHERE pg_catalog.pg_constraint.contype = 'u') AS con
          ON pg_catalog.pg_attribute.attnum = con.attnum AND pg_catalog.pg_attribute.attrelid = con.conrelid) AS attr
        GROUP BY attr.conrelid, attr.conname ORDER BY attr.conrelid, attr.conname";
    let names = world.relations();
    let rows: Vec<String> = world
        .rows(constraints)
        .iter()
        .map(|row| {
            row.split_once('|')
                .map(|(oid, rest)| format!("{}|{rest}", names[oid]))
                .unwrap()
        })
        .collect();
    let mut sorted = rows.clone();
    sorted.sort();
    assert_eq!(
        sorted,
        [
            "author|{email}|author_email_key|<null>",
            "book|{author_id,title}|title_per_author|<null>"
        ]
    );
}

#[test]
fn django_introspects() {
    let world = World::standard();
    let tables = "SELECT c.relname, CASE WHEN c.relispartition THEN 'p' WHEN c.relkind IN ('m', 'v') THEN 'v' ELSE 't' END, obj_description(c.oid, 'pg_class')
        FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('f', 'm', 'p', 'r', 'v') AND n.nspname NOT IN ('pg_catalog', 'pg_toast') AND pg_catalog.pg_table_is_visible(c.oid)";
    let mut rows = world.rows(tables);
    rows.sort();
    assert_eq!(rows, ["author|t|<null>", "book|t|<null>", "cheap_book|v|<null>"]);
    let constraints = "SELECT c.conname, array(SELECT attname FROM unnest(c.conkey) WITH ORDINALITY cols(colid, arridx)
            JOIN pg_attribute AS ca ON cols.colid = ca.attnum WHERE ca.attrelid = c.conrelid ORDER BY cols.arridx),
        c.contype,
        (SELECT fkc.relname || '.' || fka.attname FROM pg_attribute AS fka JOIN pg_class AS fkc ON fka.attrelid = fkc.oid
         WHERE fka.attrelid = c.confrelid AND fka.attnum = c.confkey[1]), cl.reloptions
        FROM pg_constraint AS c JOIN pg_class AS cl ON c.conrelid = cl.oid
        WHERE cl.relname = $1 AND pg_catalog.pg_table_is_visible(cl.oid) ORDER BY 1";
    assert_eq!(
        world.rows_with(constraints, &[&"book"]),
        [
            "book_author_id_fkey|{author_id}|f|author.id|<null>",
            "book_pkey|{isbn}|p|<null>|<null>",
            "title_per_author|{author_id,title}|u|<null>|<null>"
        ]
    );
}

#[test]
fn the_information_schema_answers() {
    let world = World::standard();
    assert_eq!(
        world.rows("SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 2"),
        ["public|author|BASE TABLE", "public|book|BASE TABLE", "public|cheap_book|VIEW"]
    );
    assert_eq!(
        world.rows("SELECT column_name, data_type, is_nullable, column_default, udt_name, is_identity, numeric_precision FROM information_schema.columns WHERE table_name = 'author' ORDER BY ordinal_position"),
        [
            "id|bigint|NO|<null>|int8|YES|64",
            "name|text|NO|<null>|text|NO|<null>",
            "email|text|YES|<null>|text|NO|<null>",
            "born|date|YES|<null>|date|NO|<null>",
            "score|double precision|YES|1.5|float8|NO|53",
            "active|boolean|NO|true|bool|NO|<null>",
        ]
    );
    let keys = "SELECT tc.constraint_name, tc.constraint_type, kcu.column_name, kcu.ordinal_position, kcu.position_in_unique_constraint
        FROM information_schema.table_constraints tc JOIN information_schema.key_column_usage kcu USING (constraint_schema, constraint_name)
        WHERE tc.table_name = 'book' ORDER BY 1, 4";
    assert_eq!(
        world.rows(keys),
        [
            "book_author_id_fkey|FOREIGN KEY|author_id|1|1",
            "book_pkey|PRIMARY KEY|isbn|1|<null>",
            "title_per_author|UNIQUE|author_id|1|<null>",
            "title_per_author|UNIQUE|title|2|<null>"
        ]
    );
    assert_eq!(
        world.rows("SELECT constraint_name, unique_constraint_name, delete_rule, update_rule FROM information_schema.referential_constraints"),
        ["book_author_id_fkey|author_pkey|CASCADE|NO ACTION"]
    );
    assert_eq!(world.rows("SELECT table_name, column_name FROM information_schema.constraint_column_usage WHERE constraint_name = 'book_author_id_fkey'"), ["author|id"]);
    assert_eq!(
        world.rows("SELECT count(*) > 0 FROM information_schema.schemata WHERE schema_name = 'public'"),
        ["t"]
    );
}
