-- sent: extended
-- columns: "?column?" int4
SELECT 1
-- ;
-- sent: simple
DEALLOCATE pdo_stmt_00000001
-- ;
-- sent: simple
SET NAMES 'UTF8'
-- ;
-- sent: simple
CREATE TABLE kinds (id serial PRIMARY KEY, small smallint, big bigint, price numeric(12,4), ratio double precision, ok boolean, name varchar(40) NOT NULL UNIQUE, note text, data bytea, day date, at timestamptz, doc jsonb, uid uuid)
-- ;
-- sent: extended
-- parameters: unspecified, unspecified, unspecified, unspecified, unspecified, unspecified, unspecified, unspecified, unspecified, unspecified, unspecified, unspecified
-- columns: id int4
INSERT INTO kinds (small, big, price, ratio, ok, name, note, day, at, doc, uid, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING id
-- ;
-- sent: extended
-- columns: small int2, big int8, price numeric[786440], ratio float8, ok bool, name varchar[44], note text, day date, at timestamptz, doc jsonb, uid uuid
SELECT small, big, price, ratio, ok, name, note, day, at, doc, uid FROM kinds WHERE id = 1
-- ;
-- sent: simple
DEALLOCATE pdo_stmt_00000002
-- ;
-- sent: extended
-- columns: data bytea
SELECT data FROM kinds WHERE id = 1
-- ;
-- sent: simple
DEALLOCATE pdo_stmt_00000003
-- ;
-- sent: extended
-- parameters: unspecified, unspecified, unspecified, unspecified, unspecified, unspecified
-- columns: count int8
SELECT count(*) FROM kinds WHERE at = $1 AND price = $2 AND small = $3 AND day = $4 AND uid = $5 AND id = $6
-- ;
-- sent: extended
-- columns: price numeric[786440], name varchar[44]
SELECT price, name FROM kinds
-- ;
-- sent: simple
-- columns: relname name
SELECT RELNAME FROM PG_CLASS WHERE OID=26743
-- ;
-- sent: simple
-- columns: typname name
SELECT TYPNAME FROM PG_TYPE WHERE OID=1700
-- ;
-- sent: simple
DEALLOCATE pdo_stmt_00000005
-- ;
-- sent: simple
-- columns: id int4
INSERT INTO kinds (small, big, price, ratio, ok, name, note, day, at, doc, uid, data) VALUES (-7, 4611686018427387904, '12345.6700', '0.1', 'f', 'naïve 🐘 ''q'' \ ? emulated', '', '2024-02-29', '2024-02-29 23:59:59.123456+00', '{"a": [1, null, "é"]}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff') RETURNING id
-- ;
-- sent: simple
-- columns: small int2, big int8, price numeric[786440], ratio float8, ok bool, name varchar[44], note text, day date, at timestamptz, doc jsonb, uid uuid
SELECT small, big, price, ratio, ok, name, note, day, at, doc, uid FROM kinds WHERE id = 2
-- ;
-- sent: simple
-- columns: data bytea
SELECT data FROM kinds WHERE id = 2
-- ;
-- sent: simple
DEALLOCATE pdo_stmt_00000004
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) FROM kinds WHERE at = '2024-02-29 23:59:59.123456+00' AND price = '12345.6700' AND small = '-7' AND day = '2024-02-29' AND uid = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' AND id = '2'
-- ;
-- sent: extended
-- parameters: unspecified
INSERT INTO kinds (name) VALUES ($1)
-- ;
-- sent: simple
-- columns: lastval int8
SELECT LASTVAL()
-- ;
-- sent: extended
-- columns: currval int8
SELECT CURRVAL($1)
-- ;
-- sent: extended
-- parameters: unspecified
UPDATE kinds SET note = 'x' WHERE name LIKE $1
-- ;
-- sent: simple
DELETE FROM kinds WHERE note = 'x'
-- ;
-- sent: extended
-- columns: name varchar[44], note text
SELECT name, note FROM kinds WHERE name LIKE 'name %' ORDER BY id LIMIT 2
-- ;
-- sent: simple
BEGIN
-- ;
-- sent: simple
DECLARE pdo_crsr_00000004 SCROLL CURSOR WITH HOLD FOR SELECT id FROM kinds ORDER BY id
-- ;
-- sent: simple
-- columns: id int4
FETCH FORWARD 0 FROM pdo_crsr_00000004
-- ;
-- sent: simple
-- columns: id int4
FETCH NEXT FROM pdo_crsr_00000004
-- ;
-- sent: simple
COMMIT
-- ;
-- sent: simple
CLOSE pdo_crsr_00000004
-- ;
-- sent: simple
CREATE TABLE strict (id int PRIMARY KEY, parent int REFERENCES strict, name varchar(5) NOT NULL, age int CHECK (age > 0))
-- ;
-- sent: extended
-- parameters: unspecified, unspecified, unspecified, unspecified
INSERT INTO strict VALUES ($1, $2, $3, $4)
-- ;
-- sent: simple
DEALLOCATE pdo_stmt_00000006
-- ;
-- sent: simple
DEALLOCATE pdo_stmt_00000007
-- ;
-- sent: extended
-- fails: 42P01 relation "missing" does not exist
SELECT * FROM missing
-- ;
-- sent: simple
INSERT INTO strict VALUES (10, NULL, 'a', 1)
-- ;
-- sent: simple
ROLLBACK
-- ;
-- sent: extended
-- columns: count int8
SELECT count(*) FROM strict
-- ;
-- sent: simple
SAVEPOINT inside
-- ;
-- sent: simple
-- fails: 23505 duplicate key value violates unique constraint "strict_pkey"
INSERT INTO strict VALUES (1, NULL, 'a', 1)
-- ;
-- sent: simple
ROLLBACK TO SAVEPOINT inside
-- ;
-- sent: simple
INSERT INTO strict VALUES (11, NULL, 'a', 1)
-- ;
-- sent: simple
CREATE TABLE copied (id int, name text)
-- ;
-- sent: simple
COPY copied FROM STDIN WITH DELIMITER E'	' NULL AS E'\\N'
-- ;
-- sent: simple
COPY copied TO STDIN WITH DELIMITER E'	' NULL AS E'\\N'
