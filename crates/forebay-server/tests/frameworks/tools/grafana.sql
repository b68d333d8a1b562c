-- What Grafana's data source for PostgreSQL asks: its test, the query builder's lists, and panels with the macros written out.
\ir schema.sql
SELECT 1 AS one;
SELECT current_setting('server_version_num')::int / 100 >= 1400 AS supported;
SELECT extversion FROM pg_extension WHERE extname = 'timescaledb';
\echo ok connect

SELECT CASE WHEN quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
            FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1), array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,
                string_to_array(current_setting('search_path'), ',') s)
        THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
    FROM information_schema.tables
    WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', '_timescaledb_cache', '_timescaledb_catalog', '_timescaledb_internal', '_timescaledb_config')
    ORDER BY 1;
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns
    WHERE table_schema = 'public' AND quote_ident(table_name) = 'books' ORDER BY ordinal_position;
SELECT quote_ident(column_name) AS column FROM information_schema.columns WHERE table_name = 'books' AND data_type IN ('timestamp with time zone', 'timestamp without time zone') ORDER BY column_name;
SELECT DISTINCT quote_literal(title) FROM books ORDER BY 1 LIMIT 100;
\echo ok lists

SELECT floor(extract(epoch FROM at) / 3600) * 3600 AS "time", count(*) AS "books", avg(price) AS "price"
    FROM books WHERE at BETWEEN '2024-01-01T00:00:00Z' AND '2024-01-31T23:59:59.999Z' GROUP BY 1 ORDER BY 1;
SELECT extract(epoch FROM at) AS "time", title AS metric, price AS value FROM books
    WHERE extract(epoch FROM at) >= 1704067200 AND extract(epoch FROM at) <= 1735689600 ORDER BY at;
SELECT floor((extract(epoch FROM at)) / 86400) * 86400 AS "time", name AS metric, sum(price) AS value
    FROM books JOIN authors ON authors.id = author_id WHERE at >= '2024-01-01T00:00:00Z' AND at <= '2024-12-31T00:00:00Z' AND name IN ('Ann', 'Ben')
    GROUP BY floor((extract(epoch FROM at)) / 86400) * 86400, name ORDER BY 1, 2;
SELECT at AS "time", price - lag(price) OVER (ORDER BY at) AS change FROM books ORDER BY at LIMIT 50;
SELECT DISTINCT name AS "__text", id AS "__value" FROM authors ORDER BY name;
\echo ok panels
