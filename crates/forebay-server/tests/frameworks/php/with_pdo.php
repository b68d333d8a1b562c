<?php
/**
 * PDO as PHP's applications use it, with prepared statements of the server and with PDO's own.
 *
 * Promises: every check is made, whatever became of the one before; each that passes prints "ok NAME", and if one failed so does the
 * program. Does not know which server it talks to: all of it holds for PostgreSQL itself.
 */
declare(strict_types=1);

$address = parse_url($argv[1]);
$dsn = sprintf('pgsql:host=%s;port=%d;dbname=%s', $address['host'], $address['port'], substr($address['path'], 1));

function connect(array $options = []): PDO
{
    global $dsn, $address;
    return new PDO($dsn, $address['user'] ?? null, $address['pass'] ?? null, $options + [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
}

function equal(mixed $found, mixed $expected): void
{
    if ($found !== $expected) {
        throw new Exception('found ' . var_export($found, true) . ', expected ' . var_export($expected, true));
    }
}

/** Does the work, which must fail with this SQLSTATE. */
function fails(string $state, callable $work): void
{
    try {
        $work();
    } catch (PDOException $error) {
        equal($error->errorInfo[0], $state);
        return;
    }
    throw new Exception("no $state");
}

const KINDS = 'CREATE TABLE kinds (id serial PRIMARY KEY, small smallint, big bigint, price numeric(12,4), ratio double precision, ok boolean, '
    . 'name varchar(40) NOT NULL UNIQUE, note text, data bytea, day date, at timestamptz, doc jsonb, uid uuid)';

$checks = [
    'connect' => function () {
        $pdo = connect();
        equal($pdo->query('SELECT 1')->fetchColumn(), 1);
        equal((int) $pdo->getAttribute(PDO::ATTR_SERVER_VERSION) >= 14, true);
        $pdo->exec("SET NAMES 'UTF8'");
        $pdo->exec(KINDS);
    },
    'types' => function () {
        $row = ['small' => -7, 'big' => 1 << 62, 'price' => '12345.6700', 'ratio' => 0.1, 'ok' => false, 'name' => "naïve 🐘 'q' \\ ?", 'note' => '',
            'day' => '2024-02-29', 'at' => '2024-02-29 23:59:59.123456+00', 'doc' => '{"a": [1, null, "é"]}', 'uid' => 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'];
        $bytes = implode('', array_map('chr', range(0, 255)));
        foreach ([false, true] as $emulated) {
            $pdo = connect([PDO::ATTR_EMULATE_PREPARES => $emulated]);
            $row['name'] .= $emulated ? ' emulated' : '';
            $names = array_keys($row);
            $insert = $pdo->prepare('INSERT INTO kinds (' . implode(', ', $names) . ', data) VALUES (:' . implode(', :', $names) . ', :data) RETURNING id');
            foreach ($row as $name => $value) {
                $insert->bindValue($name, $value, is_bool($value) ? PDO::PARAM_BOOL : (is_int($value) ? PDO::PARAM_INT : PDO::PARAM_STR));
            }
            $insert->bindValue('data', $bytes, PDO::PARAM_LOB);
            $insert->execute();
            $id = $insert->fetchColumn();
            $found = $pdo->query('SELECT ' . implode(', ', $names) . " FROM kinds WHERE id = $id")->fetch(PDO::FETCH_ASSOC);
            $found['ratio'] = (float) $found['ratio'];
            equal($found, $row);
            equal(stream_get_contents($pdo->query("SELECT data FROM kinds WHERE id = $id")->fetchColumn()), $bytes);
            $select = $pdo->prepare('SELECT count(*) FROM kinds WHERE at = ? AND price = ? AND small = ? AND day = ? AND uid = ? AND id = ?');
            $select->execute([$row['at'], $row['price'], $row['small'], $row['day'], $row['uid'], $id]);
            equal($select->fetchColumn(), 1);
            $meta = $pdo->query('SELECT price, name FROM kinds')->getColumnMeta(0);
            equal([$meta['name'], $meta['native_type'], $meta['table']], ['price', 'numeric', 'kinds']);
        }
    },
    'crud' => function () {
        $pdo = connect();
        $insert = $pdo->prepare('INSERT INTO kinds (name) VALUES (?)');
        foreach (range(1, 50) as $number) {
            $insert->execute(["name $number"]);
        }
        equal((int) $pdo->lastInsertId() >= 50, true);
        equal($pdo->lastInsertId('kinds_id_seq'), $pdo->lastInsertId());
        $update = $pdo->prepare("UPDATE kinds SET note = 'x' WHERE name LIKE :like");
        $update->execute(['like' => 'name 1%']);
        equal($update->rowCount(), 11);
        equal($pdo->exec("DELETE FROM kinds WHERE note = 'x'"), 11);
        equal($pdo->query("SELECT name, note FROM kinds WHERE name LIKE 'name %' ORDER BY id LIMIT 2")->fetchAll(PDO::FETCH_KEY_PAIR), ['name 2' => null, 'name 3' => null]);
        $cursor = $pdo->prepare('SELECT id FROM kinds ORDER BY id', [PDO::ATTR_CURSOR => PDO::CURSOR_SCROLL]);
        $pdo->beginTransaction();
        $cursor->execute();
        equal($cursor->fetchColumn(), 1);
        equal(is_int($cursor->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_NEXT)[0]), true);
        $cursor->closeCursor();
        $pdo->commit();
    },
    'errors' => function () {
        $pdo = connect();
        $pdo->exec('CREATE TABLE strict (id int PRIMARY KEY, parent int REFERENCES strict, name varchar(5) NOT NULL, age int CHECK (age > 0))');
        $insert = fn (...$values) => fn () => $pdo->prepare('INSERT INTO strict VALUES (?, ?, ?, ?)')->execute($values);
        $insert(1, null, 'a', 1)();
        fails('23505', $insert(1, null, 'a', 1));
        fails('23502', $insert(2, null, null, 1));
        fails('23503', $insert(2, 99, 'a', 1));
        fails('23514', $insert(2, null, 'a', 0));
        fails('22001', $insert(2, null, 'abcdef', 1));
        fails('22P02', $insert('two', null, 'a', 1));
        fails('42P01', fn () => $pdo->query('SELECT * FROM missing'));
    },
    'transactions' => function () {
        $pdo = connect();
        $count = fn () => $pdo->query('SELECT count(*) FROM strict')->fetchColumn();
        $pdo->beginTransaction();
        $pdo->exec("INSERT INTO strict VALUES (10, NULL, 'a', 1)");
        equal($pdo->inTransaction(), true);
        $pdo->rollBack();
        equal($count(), 1);
        $pdo->beginTransaction();
        $pdo->exec('SAVEPOINT inside');
        fails('23505', fn () => $pdo->exec("INSERT INTO strict VALUES (1, NULL, 'a', 1)"));
        $pdo->exec('ROLLBACK TO SAVEPOINT inside');
        $pdo->exec("INSERT INTO strict VALUES (11, NULL, 'a', 1)");
        $pdo->commit();
        equal($count(), 2);
    },
    'copy' => function () {
        $pdo = connect();
        $pdo->exec('CREATE TABLE copied (id int, name text)');
        equal($pdo->pgsqlCopyFromArray('copied', ["1\ta\n", "2\t\\N\n"]), true);
        equal($pdo->pgsqlCopyToArray('copied'), ["1\ta\n", "2\t\\N\n"]);
    },
];

$failed = false;
foreach ($checks as $name => $check) {
    try {
        $check();
        echo "ok $name\n";
    } catch (Throwable $error) {
        $failed = true;
        echo "FAILED $name\n$error\n";
    }
}
exit($failed ? 1 : 0);
