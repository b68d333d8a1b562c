-- What has no equality is no key.
CREATE TABLE k_t (a json PRIMARY KEY)
CREATE TABLE k_t (a json UNIQUE)
CREATE TABLE k_t (a json)
ALTER TABLE k_t ADD UNIQUE (a)
DROP TABLE k_t
-- A key that is equal and looks different.
CREATE TABLE k_p (a numeric PRIMARY KEY)
CREATE TABLE k_c (a numeric REFERENCES k_p)
INSERT INTO k_p VALUES (1.0)
INSERT INTO k_c VALUES (1.00)
UPDATE k_p SET a = 1.000
SELECT a, (SELECT a FROM k_p) FROM k_c
UPDATE k_c SET a = 1.0000
DROP TABLE k_c
DROP TABLE k_p
