-- psql's own commands; lists that name owners, sizes or versions go to /dev/null.
\ir schema.sql
\o /dev/null
\dt
\dt+
\di+
\ds
\dv+
\dn+
\du
\l
\df public.*
\dT
\dx
\dp
\dd
\db
\dc
\dO
\dD
\d
\d+
\d+ books
\o
\echo ok lists

\d authors
\d books
\d cheap
\d numbers
\d books_price
\d one_title_an_author
\echo ok descriptions

SELECT id, price, at, title AS named FROM books \gdesc
SELECT 'SELECT ' || id FROM authors ORDER BY id \gexec
SELECT name, title, count(*) FROM books JOIN authors ON authors.id = author_id GROUP BY 1, 2 ORDER BY 1, 2 \crosstabview
\echo ok queries
