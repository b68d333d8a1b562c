-- sent: simple
;
-- ;
-- sent: simple
-- columns: "?column?" int4
SELECT 1
-- ;
-- sent: extended
-- described: int4, int4
-- columns: "?column?" int4
SELECT $1::int + $2
-- ;
-- sent: simple
CREATE TABLE kinds (id serial PRIMARY KEY, small smallint, big bigint, price numeric(12,4), ratio double precision, ok boolean, name varchar(40) UNIQUE, note text, data bytea, day date, at timestamptz, local timestamp, doc jsonb, uid uuid)
-- ;
-- sent: extended
-- described: int2, int8, numeric, float8, bool, varchar, text, bytea, date, timestamptz, timestamp, jsonb, uuid
-- columns: id int4
INSERT INTO kinds (small, big, price, ratio, ok, name, note, data, day, at, local, doc, uid) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING id
-- ;
-- sent: extended
-- described: int4
-- columns: small int2, big int8, price numeric[786440], ratio float8, ok bool, name varchar[44], note text, data bytea, day date, at timestamptz, local timestamp, doc jsonb, uid uuid
SELECT small, big, price, ratio, ok, name, note, data, day, at, local, doc, uid FROM kinds WHERE id = $1
-- ;
-- sent: simple
-- columns: name varchar[44]
SELECT name FROM kinds WHERE id = 2
-- ;
-- sent: simple
-- columns: id int4, small int2, big int8, price numeric[786440], ratio float8, ok bool, name varchar[44], note text, data bytea, day date, at timestamptz, local timestamp, doc jsonb, uid uuid
SELECT * FROM kinds
-- ;
-- sent: simple
INSERT INTO kinds (name) VALUES ('a'), ('b'), ('c')
-- ;
-- sent: extended
-- described: _text
UPDATE kinds SET note = name WHERE name = ANY($1)
-- ;
-- sent: simple
DELETE FROM kinds WHERE name IN ('a', 'b', 'c')
-- ;
-- sent: extended
-- described: varchar, timestamptz
INSERT INTO kinds (name, at) VALUES ($1, $2)
-- ;
-- sent: extended
-- described: timestamptz
-- columns: count int8
SELECT count(*) FROM kinds WHERE at = $1
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
CREATE TABLE ledger (id int PRIMARY KEY)
-- ;
-- sent: simple
BEGIN READ WRITE
-- ;
-- sent: simple
INSERT INTO ledger VALUES (1)
-- ;
-- sent: simple
ROLLBACK
-- ;
-- sent: simple
BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE
-- ;
-- sent: simple
INSERT INTO ledger VALUES (2)
-- ;
-- sent: simple
SAVEPOINT inside
-- ;
-- sent: simple
ROLLBACK TO SAVEPOINT inside
-- ;
-- sent: simple
COMMIT
-- ;
-- sent: simple
-- columns: sum int8
SELECT sum(id) FROM ledger
-- ;
-- sent: simple
BEGIN READ ONLY
-- ;
-- sent: simple
-- fails: 25006 cannot execute INSERT in a read-only transaction
INSERT INTO ledger VALUES (3)
-- ;
-- sent: simple
COPY "ledger" ("id") FROM STDIN
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) FROM ledger
