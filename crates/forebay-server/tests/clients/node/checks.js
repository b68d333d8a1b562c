// node-postgres against the server whose URL is the first argument.
//
// Promises: every check is made, in the order of `checks`, whatever became of the one before; each that passes prints
// "ok NAME", and if one failed so does the program. Does not know which server it talks to: all of it holds for PostgreSQL itself.
'use strict'

const assert = require('node:assert/strict')
const { Client, Pool, types } = require('pg')
const Cursor = require('pg-cursor')

const url = process.argv[2]
// Integers of 64 bits are texts by default, because not all of them are numbers of JavaScript. All of these are.
types.setTypeParser(types.builtins.INT8, Number)
const forEver = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c'
const columns =
  'id bigserial PRIMARY KEY, name text NOT NULL UNIQUE, price numeric, at timestamptz DEFAULT now(), ' +
  'ok boolean, data bytea, doc json, uid uuid, born date, ratio double precision, small bigint'

/** Does the work, which must fail with this SQLSTATE. */
const fails = (state, work) => assert.rejects(work, (error) => assert.equal(error.code, state, error.message) === undefined)

/** A connection for the length of the work. */
async function connected(work, options = {}) {
  const client = new Client({ connectionString: url, ...options })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

const values = async (client, sql, parameters) =>
  (await client.query({ text: sql, values: parameters, rowMode: 'array' })).rows

const checks = {
  async connect(client) {
    const status = {}
    const fresh = new Client({ connectionString: url })
    fresh.connection.on('parameterStatus', ({ parameterName, parameterValue }) => (status[parameterName] = parameterValue))
    await fresh.connect()
    await fresh.end()
    assert.equal(status.client_encoding, 'UTF8')
    assert.equal(status.server_encoding, 'UTF8')
    assert.equal(status.standard_conforming_strings, 'on')
    assert.equal(status.integer_datetimes, 'on')
    assert.ok(parseInt(status.server_version) >= 14, status.server_version)
    assert.deepEqual(await values(client, 'SELECT 1'), [[1]])
    assert.deepEqual((await client.query("SELECT 1 AS a, 'b' AS b")).rows, [{ a: 1, b: 'b' }])
  },

  async types(client) {
    const row = {
      name: "naïve 🐘 'quoted' \\",
      price: '123456.789012345',
      at: new Date('2024-02-29T23:59:59.123Z'),
      ok: true,
      data: Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
      doc: { a: [1, null, 'é'] },
      uid: 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
      born: new Date(1970, 0, 1),
      ratio: 0.1,
      small: -7,
    }
    const names = Object.keys(row)
    const marks = names.map((_, at) => `$${at + 1}`)
    const insert = `INSERT INTO kinds (${names}) VALUES (${marks})`
    const select = `SELECT ${names} FROM kinds WHERE name = $1`
    await client.query(`CREATE TABLE kinds (${columns})`)
    await client.query(insert, Object.values(row))
    assert.deepEqual((await client.query(select, [row.name])).rows, [row])
    const nulls = { ...Object.fromEntries(names.map((name) => [name, null])), name: 'nulls' }
    await client.query(insert, Object.values(nulls))
    assert.deepEqual((await client.query(select, ['nulls'])).rows, [nulls])
    // This client reads binary values as if they were text, so only those whose bytes are ASCII arrive whole.
    const binary = { text: 'SELECT $1::boolean AS ok, 2::float8 AS ratio', values: [true], binary: true }
    assert.deepEqual((await client.query(binary)).rows, [{ ok: true, ratio: 2 }])
    assert.deepEqual(await values(client, 'SELECT $1::bigint, $2::text, $3::bool', [5, 'five', false]), [[5, 'five', false]])
    await client.query("INSERT INTO kinds (name) VALUES ('defaults')")
    const [[at]] = await values(client, "SELECT at FROM kinds WHERE name = 'defaults'")
    assert.ok(Math.abs(at - Date.now()) < 60_000, String(at))
  },

  async returning(client) {
    await client.query('CREATE TABLE given (id bigserial PRIMARY KEY, name text NOT NULL)')
    const insert = 'INSERT INTO given (name) VALUES ($1), ($2) RETURNING id, name'
    assert.deepEqual(await values(client, insert, ['a', 'b']), [[1, 'a'], [2, 'b']])
    const update = "UPDATE given SET name = name || '!' WHERE id = $1 RETURNING name"
    assert.deepEqual(await values(client, update, [2]), [['b!']])
    assert.deepEqual(await values(client, 'DELETE FROM given WHERE id = $1 RETURNING *', [1]), [[1, 'a']])
  },

  async counts(client) {
    const count = async (sql, parameters) => {
      const { command, rowCount } = await client.query(sql, parameters)
      return `${command} ${rowCount}`
    }
    await client.query('CREATE TABLE counted (id bigint PRIMARY KEY, even boolean)')
    assert.equal(await count('INSERT INTO counted VALUES (1, false), (2, true), (3, false)'), 'INSERT 3')
    assert.equal(await count('UPDATE counted SET even = NOT even WHERE id > $1', [1]), 'UPDATE 2')
    assert.equal(await count('UPDATE counted SET even = true WHERE id = 99'), 'UPDATE 0')
    assert.equal(await count('SELECT * FROM counted'), 'SELECT 3')
    assert.equal(await count('DELETE FROM counted'), 'DELETE 3')
  },

  async errors(client) {
    await client.query('CREATE TABLE parents (id bigint PRIMARY KEY)')
    await client.query(
      'CREATE TABLE children (id bigint PRIMARY KEY, name text NOT NULL UNIQUE, ' +
        'parent bigint REFERENCES parents (id), age bigint CHECK (age >= 0))',
    )
    await client.query("INSERT INTO children VALUES (1, 'one', NULL, 1)")
    const insert = 'INSERT INTO children VALUES ($1, $2, $3, $4)'
    await fails('23505', () => client.query(insert, [2, 'one', null, 1]))
    await fails('23502', () => client.query(insert, [2, null, null, 1]))
    await fails('23503', () => client.query(insert, [2, 'two', 99, 1]))
    await fails('23514', () => client.query(insert, [2, 'two', null, -1]))
    await fails('42P01', () => client.query('SELECT * FROM missing'))
    await fails('42703', () => client.query('SELECT missing FROM children'))
    await fails('42601', () => client.query('SELEC 1'))
    await fails('22P02', () => client.query('SELECT $1::int', ['x']))
    assert.deepEqual(await values(client, 'SELECT count(*) FROM children'), [[1]])
  },

  async transactions(client) {
    const ids = () => values(client, 'SELECT id FROM ledger ORDER BY id')
    await client.query('CREATE TABLE ledger (id bigint PRIMARY KEY)')
    await client.query('BEGIN')
    await client.query('INSERT INTO ledger VALUES (1)')
    await connected(async (other) => assert.deepEqual(await values(other, 'SELECT id FROM ledger'), []))
    await client.query('ROLLBACK')
    assert.deepEqual(await ids(), [])

    await client.query('BEGIN')
    await client.query('INSERT INTO ledger VALUES (2)')
    await client.query('SAVEPOINT inner_one')
    await client.query('INSERT INTO ledger VALUES (3)')
    await client.query('RELEASE SAVEPOINT inner_one')
    await client.query('SAVEPOINT inner_two')
    await client.query('INSERT INTO ledger VALUES (4)')
    await fails('23505', () => client.query('INSERT INTO ledger VALUES (2)'))
    await fails('25P02', () => client.query('SELECT 1'))
    await client.query('ROLLBACK TO SAVEPOINT inner_two')
    assert.equal((await client.query('COMMIT')).command, 'COMMIT')
    assert.deepEqual(await ids(), [[2], [3]])

    await client.query('BEGIN')
    await fails('23505', () => client.query('INSERT INTO ledger VALUES (2)'))
    await fails('25P02', () => client.query('SELECT 1'))
    assert.equal((await client.query('COMMIT')).command, 'ROLLBACK', 'a failed transaction cannot be committed')
    assert.deepEqual(await ids(), [[2], [3]])
  },

  async prepared(client) {
    const insert = (id, name) =>
      client.query({ name: 'insert one', text: 'INSERT INTO prepared VALUES ($1, $2)', values: [id, name] })
    const select = async (id) =>
      (await client.query({ name: 'select one', text: 'SELECT name FROM prepared WHERE id = $1', values: [id] })).rows
    await client.query('CREATE TABLE prepared (id bigint PRIMARY KEY, name text)')
    for (let id = 0; id < 20; id++) await insert(id, `name ${id}`)
    for (const id of [3, 19, 3]) assert.deepEqual(await select(id), [{ name: `name ${id}` }])
    await fails('23505', () => insert(3, 'again'))
    assert.deepEqual(await select(4), [{ name: 'name 4' }])
  },

  async portions(client) {
    await client.query('CREATE TABLE portions (id bigint PRIMARY KEY)')
    const many = Array.from({ length: 100 }, (_, id) => id)
    await client.query(`INSERT INTO portions VALUES ${many.map((id) => `(${id})`)}`)
    // The portal is suspended after each read, and taken up again by the next.
    const cursor = client.query(new Cursor('SELECT id FROM portions WHERE id >= $1 ORDER BY id', [10], { rowMode: 'array' }))
    const sizes = []
    const seen = []
    for (let rows = await cursor.read(40); rows.length > 0; rows = await cursor.read(40)) {
      sizes.push(rows.length)
      seen.push(...rows.map(([id]) => id))
    }
    await cursor.close()
    assert.deepEqual(sizes, [40, 40, 10])
    assert.deepEqual(seen, many.slice(10))
    const unfinished = client.query(new Cursor('SELECT id FROM portions ORDER BY id', [], { rowMode: 'array' }))
    assert.deepEqual(await unfinished.read(2), [[0], [1]])
    await unfinished.close()
    assert.deepEqual(await values(client, 'SELECT count(*) FROM portions'), [[100]])
  },

  async concurrency(client) {
    await client.query('CREATE TABLE crowd (id bigserial PRIMARY KEY, worker bigint NOT NULL, turn bigint NOT NULL)')
    const pool = new Pool({ connectionString: url, max: 20 })
    const workers = Array.from({ length: 20 }, (_, worker) => worker)
    await Promise.all(
      workers.map(async (worker) => {
        const own = await pool.connect()
        for (let turn = 0; turn < 25; turn++) {
          const insert = 'INSERT INTO crowd (worker, turn) VALUES ($1, $2) RETURNING worker, turn'
          assert.deepEqual(await values(own, insert, [worker, turn]), [[worker, turn]])
        }
        own.release()
      }),
    )
    await pool.end()
    assert.deepEqual(await values(client, 'SELECT count(*), count(DISTINCT id) FROM crowd'), [[500, 500]])
    const byWorker = await values(client, 'SELECT worker, count(*) FROM crowd GROUP BY worker ORDER BY worker')
    assert.deepEqual(byWorker, workers.map((worker) => [worker, 25]))
  },

  async cancel(client) {
    let done = false
    const statement = fails('57014', () => client.query(forEver)).finally(() => (done = true))
    // A cancel that comes before the statement does nothing, so it is sent until the statement has ended.
    const sendCancel = () =>
      new Promise((resolve) => {
        const { connection, host, port } = new Client({ connectionString: url })
        connection.on('connect', () => connection.cancel(client.processID, client.secretKey))
        connection.on('end', resolve)
        connection.on('error', resolve)
        connection.connect(port, host)
      })
    const begun = Date.now()
    while (!done) {
      await sendCancel()
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    await statement
    assert.ok(Date.now() - begun < 10_000, 'the cancel took too long')
    assert.deepEqual(await values(client, 'SELECT 1'), [[1]])
  },

  async pipeline(client) {
    // node-postgres waits for each outcome; several statements in one string are what it can send together.
    await client.query('CREATE TABLE piped (id bigint PRIMARY KEY)')
    const results = await client.query('INSERT INTO piped VALUES (1); INSERT INTO piped VALUES (2), (3); SELECT count(*) FROM piped')
    assert.deepEqual(results.map((result) => [result.command, result.rowCount]), [['INSERT', 1], ['INSERT', 2], ['SELECT', 1]])
    const together = 'INSERT INTO piped VALUES (100); INSERT INTO piped VALUES (1); INSERT INTO piped VALUES (101)'
    await fails('23505', () => client.query(together))
    const found = await values(client, 'SELECT id FROM piped WHERE id >= 100')
    assert.deepEqual(found, [], 'statements in one string are one transaction')
    // Queued without waiting: each has its own outcome.
    const queued = [client.query('INSERT INTO piped VALUES (200)'), client.query('INSERT INTO piped VALUES (1)'), client.query('INSERT INTO piped VALUES (201)')]
    const outcomes = await Promise.allSettled(queued)
    assert.deepEqual(outcomes.map((outcome) => outcome.reason?.code ?? outcome.value.rowCount), [1, '23505', 1])
  },
}

async function main() {
  for (const [name, check] of Object.entries(checks)) {
    try {
      await connected(check)
      console.log(`ok ${name}`)
    } catch (error) {
      console.log(`--- FAILED ${name}`, error)
      process.exitCode = 1
    }
  }
  // A connection that a failed check left open would keep the program alive.
  process.exit()
}

main()
