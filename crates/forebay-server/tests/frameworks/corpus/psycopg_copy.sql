-- sent: simple
CREATE TABLE copied (id int PRIMARY KEY, name text, price numeric(10,2), ok boolean, day date, at timestamptz, data bytea)
-- ;
-- sent: simple
COPY copied FROM STDIN
-- ;
-- sent: simple
-- columns: id int4, name text, price numeric[655366], ok bool, day date, at timestamptz, data bytea
SELECT * FROM copied ORDER BY id
-- ;
-- sent: simple
COPY copied (id, name, ok) TO STDOUT
-- ;
-- sent: simple
COPY (SELECT * FROM copied ORDER BY id) TO STDOUT
-- ;
-- sent: simple
TRUNCATE copied
-- ;
-- sent: simple
COPY copied FROM STDIN (FORMAT BINARY)
-- ;
-- sent: simple
COPY copied TO STDOUT (FORMAT BINARY)
-- ;
-- sent: simple
DELETE FROM copied
-- ;
-- sent: simple
COPY copied (id, name, price, day) FROM STDIN WITH (FORMAT csv, HEADER true, NULL 'none')
-- ;
-- sent: simple
-- columns: id int4, name text, price numeric[655366], day date
SELECT id, name, price, day FROM copied ORDER BY id
-- ;
-- sent: simple
COPY copied (id, name, price) TO STDOUT WITH CSV HEADER
-- ;
-- sent: simple
COPY copied (id, name) FROM STDIN
-- ;
-- sent: simple
-- columns: count int8, max text, sum int8
SELECT count(*), max(name), sum(id) FROM copied
-- ;
-- sent: simple
-- fails: 57014 COPY from stdin failed: error from Python: ZeroDivisionError - 
COPY copied (id) FROM STDIN
-- ;
-- sent: simple
-- fails: 42P01 relation "missing" does not exist
COPY missing FROM STDIN
-- ;
-- sent: simple
-- fails: 42703 column "missing" of relation "copied" does not exist
COPY copied (missing) FROM STDIN
