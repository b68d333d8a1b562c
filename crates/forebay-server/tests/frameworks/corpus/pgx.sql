-- sent: simple
-- ping
-- ;
-- sent: extended
-- described: int4
-- columns: "?column?" int4
SELECT $1::int + 1
-- ;
-- sent: simple
CREATE TABLE kinds (id serial PRIMARY KEY, small smallint, big bigint, price numeric(12,4), ratio double precision, ok boolean, name varchar(40) UNIQUE, note text, data bytea, day date, at timestamptz, local timestamp, doc jsonb, uid uuid)
-- ;
-- sent: extended
-- described: int2, int8, numeric, float8, bool, varchar, text, bytea, date, timestamptz, timestamp, jsonb, uuid
-- columns: small int2, big int8, price numeric[786440], ratio float8, ok bool, name varchar[44], note text, data bytea, day date, at timestamptz, local timestamp, doc jsonb, uid uuid
INSERT INTO kinds (small, big, price, ratio, ok, name, note, data, day, at, local, doc, uid) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING small, big, price, ratio, ok, name, note, data, day, at, local, doc, uid
-- ;
-- sent: extended
-- parameters: int2, int8, numeric, float8, bool, varchar, text, bytea, date, timestamptz, timestamp, jsonb, uuid
-- columns: small int2, big int8, price numeric[786440], ratio float8, ok bool, name varchar[44], note text, data bytea, day date, at timestamptz, local timestamp, doc jsonb, uid uuid
INSERT INTO kinds (small, big, price, ratio, ok, name, note, data, day, at, local, doc, uid) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING small, big, price, ratio, ok, name, note, data, day, at, local, doc, uid
-- ;
-- sent: simple
-- columns: small int2, big int8, price numeric[786440], ratio float8, ok bool, name varchar[44], note text, data bytea, day date, at timestamptz, local timestamp, doc jsonb, uid uuid
INSERT INTO kinds (small, big, price, ratio, ok, name, note, data, day, at, local, doc, uid) VALUES ( '-7' ,  '4611686018427387904' ,  '12345.67' ,  '0.1' ,  'f' ,  'naïve 🐘 ''q'' \ simple protocol' ,  '' ,  '\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff' ,  '2024-02-29 00:00:00Z' ,  '2024-02-29 23:59:59.123456Z' ,  '2024-02-29 23:59:59.123456Z' ,  '{"a": [1, null, "é"]}' ,  'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' ) RETURNING small, big, price, ratio, ok, name, note, data, day, at, local, doc, uid
-- ;
-- sent: simple
-- columns: small int2, big int8, price numeric[786440], ratio float8, ok bool, name varchar[44], note text, data bytea, day date, at timestamptz, local timestamp, doc jsonb, uid uuid
INSERT INTO kinds (small, big, price, ratio, ok, name, note, data, day, at, local, doc, uid) VALUES ( null ,  null ,  null ,  null ,  null ,  null ,  null ,  null ,  null ,  null ,  null ,  null ,  null ) RETURNING small, big, price, ratio, ok, name, note, data, day, at, local, doc, uid
-- ;
-- sent: extended
-- described: timestamptz, uuid, numeric, date
-- columns: count int8
SELECT count(*) FROM kinds WHERE at = $1 AND uid = $2 AND price = $3 AND day = $4
-- ;
-- sent: extended
-- described: _int4
-- columns: id int4, name varchar[44]
SELECT id, name FROM kinds WHERE id = ANY($1) ORDER BY id
-- ;
-- sent: extended
-- described: int4, text
-- columns: count int8
SELECT count(*) FROM kinds WHERE id >= $1 AND name LIKE $2
-- ;
-- sent: simple
CREATE TABLE copied (id bigint PRIMARY KEY, name text, at timestamptz)
-- ;
-- sent: extended
-- columns: id int8, name text, at timestamptz
select "id", "name", "at" from "copied"
-- ;
-- sent: simple
copy "copied" ( "id", "name", "at" ) from stdin binary;
-- ;
-- sent: extended
-- columns: id int8
select "id" from "copied"
-- ;
-- sent: simple
-- fails: 23505 duplicate key value violates unique constraint "copied_pkey"
copy "copied" ( "id" ) from stdin binary;
-- ;
-- sent: extended
-- described: timestamptz
-- columns: count int8
SELECT count(*) FROM copied WHERE at = $1
-- ;
-- sent: extended
-- described: int8
-- columns: id int8
INSERT INTO copied (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING id
-- ;
-- sent: extended
-- columns: count int8
SELECT count(*) FROM copied
-- ;
-- sent: simple
CREATE TABLE strict (id int PRIMARY KEY, parent int REFERENCES strict, name varchar(5) NOT NULL, age int CONSTRAINT grown CHECK (age > 0))
-- ;
-- sent: extended
-- described: int4, int4, varchar, int4
INSERT INTO strict VALUES ($1, $2, $3, $4)
-- ;
-- sent: simple
-- fails: 42P01 relation "missing" does not exist
SELECT * FROM missing
-- ;
-- sent: simple
-- fails: 42804 column "id" is of type integer but expression is of type boolean
INSERT INTO strict (id) VALUES (true)
-- ;
-- sent: simple
CREATE TABLE ledger (id int PRIMARY KEY)
-- ;
-- sent: simple
begin isolation level serializable
-- ;
-- sent: simple
INSERT INTO ledger VALUES (1)
-- ;
-- sent: simple
savepoint sp_1
-- ;
-- sent: simple
-- fails: 23505 duplicate key value violates unique constraint "ledger_pkey"
INSERT INTO ledger VALUES (2), (1)
-- ;
-- sent: simple
rollback to savepoint sp_1
-- ;
-- sent: simple
INSERT INTO ledger VALUES (3)
-- ;
-- sent: simple
commit
-- ;
-- sent: simple
begin read only
-- ;
-- sent: simple
-- fails: 25006 cannot execute INSERT in a read-only transaction
INSERT INTO ledger VALUES (4)
-- ;
-- sent: simple
rollback
-- ;
-- sent: extended
-- columns: sum int8
SELECT sum(id) FROM ledger
