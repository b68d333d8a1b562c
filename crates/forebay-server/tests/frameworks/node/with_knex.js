// Knex: migrations by its own source of them, the query builder, transactions.
//
// Does not know which server it talks to: all of it holds for PostgreSQL itself.
'use strict'

const assert = require('node:assert/strict')
const { fails, make, url } = require('./checking')
const knex = require('knex')({ client: 'pg', connection: url, pool: { min: 0, max: 4 } })

const migrations = {
  '001_first': {
    async up(knex) {
      await knex.schema.createTable('authors', (table) => {
        table.increments('id')
        table.string('name', 50).notNullable().unique()
        table.date('born')
        table.timestamps(true, true)
      })
      await knex.schema.createTable('books', (table) => {
        table.uuid('id').primary()
        table.integer('author_id').unsigned().notNullable().references('id').inTable('authors').onDelete('CASCADE')
        table.text('title').notNullable().index()
        table.decimal('price', 10, 2).defaultTo(0)
        table.boolean('sold').notNullable().defaultTo(false)
        table.enu('state', ['new', 'used']).defaultTo('new')
        table.jsonb('doc')
        table.binary('data')
        table.bigInteger('big')
        table.double('ratio')
        table.dateTime('at')
        table.time('clock')
        table.check('?? >= 0', ['price'], 'price_not_negative')
        table.unique(['author_id', 'title'], { indexName: 'one_title_an_author' })
      })
    },
    async down(knex) {
      await knex.schema.dropTable('books').dropTable('authors')
    },
  },
  '002_second': {
    async up(knex) {
      await knex.schema.alterTable('authors', (table) => {
        table.string('name', 120).notNullable().alter()
        table.string('nick').defaultTo('none')
        table.renameColumn('born', 'birthday')
      })
      await knex.schema.alterTable('books', (table) => {
        table.setNullable('sold')
        table.dropIndex(['title'])
        table.index(['price', 'title'], 'books_price')
        table.dropNullable('price')
      })
      await knex('authors').insert({ name: 'by the migration' })
    },
    async down(knex) {
      await knex('authors').where({ name: 'by the migration' }).delete()
      await knex.schema.alterTable('books', (table) => {
        table.dropIndex(['price', 'title'], 'books_price')
        table.index(['title'])
      })
      await knex.schema.alterTable('authors', (table) => {
        table.dropColumn('nick')
        table.renameColumn('birthday', 'born')
      })
    },
  },
}

/** Migrations in memory, up to one of them. */
const source = (...names) => ({
  migrationSource: {
    getMigrations: async () => names,
    getMigrationName: (name) => name,
    getMigration: async (name) => migrations[name],
  },
})
const all = source('001_first', '002_second')
const row = {
  id: 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
  title: "naïve 🐘 'q' \\ ?",
  price: '12345.67',
  sold: true,
  state: 'used',
  doc: { a: [1, null, 'é'] },
  data: Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
  big: '4611686018427387904',
  ratio: 0.1,
  at: new Date('2024-02-29T23:59:59.123Z'),
  clock: '23:59:59.25',
}

make(
  {
    async first_migration() {
      const [batch, done] = await knex.migrate.latest(source('001_first'))
      assert.deepEqual([batch, done], [1, ['001_first']])
      assert.ok(await knex.schema.hasTable('books'))
      await knex('authors').insert({ name: 'Ann', born: '1950-01-02' })
    },

    async second_migration() {
      const [batch, done] = await knex.migrate.latest(all)
      assert.deepEqual([batch, done], [2, ['002_second']])
      assert.deepEqual((await knex.migrate.latest(all))[1], [])
      assert.equal((await knex.migrate.list(all))[0].length, 2)
      assert.ok(await knex.schema.hasColumn('authors', 'nick'))
      const info = await knex('authors').columnInfo()
      assert.deepEqual([info.name.type, info.name.maxLength, info.name.nullable], ['character varying', 120, false])
      assert.deepEqual(await knex('authors').where({ name: 'Ann' }).pluck('nick'), ['none'])
    },

    async types() {
      const [{ id }] = await knex('authors').where({ name: 'Ann' }).select('id')
      const [given] = await knex('books')
        .insert({ ...row, author_id: id })
        .returning('*')
      const { author_id: _, ...found } = given
      assert.deepEqual(found, row)
      for (const name of Object.keys(row).filter((name) => name !== 'doc')) {
        assert.equal((await knex('books').where(name, row[name])).length, 1, name)
      }
      assert.equal((await knex('books').whereJsonPath('doc', '$.a[0]', '=', 1)).length, 1)
    },

    async crud() {
      const many = Array.from({ length: 250 }, (_, number) => ({ name: `author ${number}`, birthday: '2000-01-01' }))
      await knex.batchInsert('authors', many, 100)
      assert.equal(await knex('authors').where('name', 'like', 'author 1%').update({ nick: 'one' }), 111)
      assert.equal(await knex('authors').where('nick', 'one').del(), 111)
      assert.equal((await knex('authors').count('* as n').first()).n, '141')
      const [merged] = await knex('authors')
        .insert({ name: 'Ann', nick: 'annie' })
        .onConflict('name')
        .merge(['nick'])
        .returning(['name', 'nick'])
      assert.deepEqual(merged, { name: 'Ann', nick: 'annie' })
      assert.equal((await knex('authors').insert({ name: 'Ann' }).onConflict().ignore()).rowCount, 0)
      const joined = await knex('authors as a')
        .leftJoin('books as b', 'b.author_id', 'a.id')
        .groupBy('a.name')
        .orderBy([{ column: 'n', order: 'desc' }, 'a.name'])
        .select('a.name')
        .count('b.id as n')
        .limit(2)
      assert.deepEqual(joined, [
        { name: 'Ann', n: '1' },
        { name: 'author 0', n: '0' },
      ])
      const latest = await knex
        .with('recent', knex('authors').where('birthday', '>', '1999-01-01').select('id', 'name'))
        .from('recent')
        .whereIn('id', knex('authors').select('id'))
        .whereNotExists(knex('books').whereRaw('books.author_id = recent.id'))
        .orderBy('name')
        .first()
      assert.equal(latest.name, 'author 0')
      assert.equal((await knex('authors').whereBetween('id', [1, 5]).orWhereNull('nick').distinct('nick')).length, 2)
      assert.equal(await knex('authors').whereILike('name', 'ANN').increment('id', 0), 1)
      const united = knex('authors')
        .select('name')
        .whereIn('name', ['Ann'])
        .union(knex('authors').select('name').where('name', 'author 2'))
      assert.deepEqual((await united).map(({ name }) => name).sort(), ['Ann', 'author 2'])
      assert.equal((await knex.raw('SELECT ?::int + ? AS sum', [1, 2])).rows[0].sum, 3)
      let streamed = 0
      for await (const _ of knex('authors').select('id').stream()) streamed += 1
      assert.equal(streamed, 141)
    },

    async errors() {
      const book = { ...row, id: 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', title: 'x', author_id: 1 }
      await fails('23505', () => knex('authors').insert({ name: 'Ann' }))
      await fails('23502', () => knex('authors').insert({ name: null }))
      await fails('23503', () => knex('books').insert({ ...book, author_id: 100000 }))
      await fails('23514', () => knex('books').insert({ ...book, price: -1 }))
      await fails('23514', () => knex('books').insert({ ...book, state: 'other' }))
      await fails('22001', () => knex('authors').insert({ name: 'x'.repeat(121) }))
      await fails('42P01', () => knex('missing').select())
    },

    async transactions() {
      await assert.rejects(
        knex.transaction(async (trx) => {
          await trx('books').delete()
          throw new Error('on purpose')
        }),
        /on purpose/,
      )
      await knex.transaction(
        async (trx) => {
          await trx('authors').insert({ name: 'kept' })
          await fails('23505', () => trx.transaction((inner) => inner('authors').insert({ name: 'kept' })))
          assert.equal((await trx('authors').where({ name: 'kept' }).forUpdate().skipLocked()).length, 1)
        },
        { isolationLevel: 'serializable' },
      )
      assert.equal((await knex('books')).length, 1)
      assert.equal((await knex('authors').where({ name: 'kept' })).length, 1)
    },

    async rollback() {
      assert.deepEqual((await knex.migrate.rollback(all))[1], ['002_second'])
      assert.ok(!(await knex.schema.hasColumn('authors', 'nick')))
      await knex.migrate.up(all)
      await knex.migrate.rollback(all, true)
      assert.ok(!(await knex.schema.hasTable('books')))
      assert.equal((await knex.migrate.list(all))[0].length, 0)
    },

    async schema_builder() {
      await knex.schema.dropTableIfExists('ledger')
      await knex.schema.createTable('ledger', (table) => table.bigIncrements().comment('the key'))
      await knex.schema.createView('ledger_ids', (view) => {
        view.columns(['id'])
        view.as(knex('ledger').select('id'))
      })
      assert.deepEqual(await knex('ledger_ids'), [])
      await knex.schema.dropView('ledger_ids')
      await knex.schema.renameTable('ledger', 'book')
      await knex('book').truncate()
      await knex.schema.dropTable('book')
    },
  },
  () => knex.destroy(),
)
