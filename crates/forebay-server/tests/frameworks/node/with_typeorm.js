// TypeORM: synchronize twice and after a change, migrations, repositories, the query builder, transactions.
//
// Does not know which server it talks to: all of it holds for PostgreSQL itself.
'use strict'

require('reflect-metadata')
const assert = require('node:assert/strict')
const {
  DataSource,
  EntitySchema,
  In,
  IsNull,
  LessThan,
  Like,
  QueryFailedError,
  Not,
  Table,
  TableColumn,
  TableIndex,
} = require('typeorm')
const { address, fails, make } = require('./checking')

const { username, ...place } = address()

/** The entities; `after` a change of the application. */
function entities(after) {
  const Author = new EntitySchema({
    name: 'Author',
    tableName: 'authors',
    columns: {
      id: { type: 'int', primary: true, generated: 'increment' },
      name: { type: 'varchar', length: 50, unique: true },
      // A column whose length changes is dropped and made anew; one whose default changes is not.
      city: { type: 'varchar', length: after ? 120 : 50, nullable: true },
      ...(after
        ? { nick: { type: 'varchar', nullable: true, default: 'none' } }
        : { born: { type: 'date', nullable: true } }),
    },
    relations: { books: { type: 'one-to-many', target: 'Book', inverseSide: 'author', cascade: true } },
  })
  const Book = new EntitySchema({
    name: 'Book',
    tableName: 'books',
    columns: {
      id: { type: 'uuid', primary: true, generated: 'uuid' },
      title: { type: 'text' },
      price: { type: 'numeric', precision: 10, scale: 2, default: 0, nullable: after },
      version: { type: 'int', version: true },
      created: { type: 'timestamptz', createDate: true },
      updated: { type: 'timestamptz', updateDate: true },
      deleted: { type: 'timestamptz', deleteDate: true, nullable: true },
    },
    checks: [{ name: 'price_not_negative', expression: '"price" >= 0' }],
    indices: [{ name: 'books_title', columns: ['title'] }],
    relations: {
      author: { type: 'many-to-one', target: 'Author', inverseSide: 'books', onDelete: 'CASCADE', nullable: false },
      tags: { type: 'many-to-many', target: 'Tag', joinTable: { name: 'book_tags' }, cascade: true },
    },
  })
  const Tag = new EntitySchema({
    name: 'Tag',
    tableName: 'tags',
    columns: { id: { type: 'bigint', primary: true, generated: 'increment' }, word: { type: 'varchar' } },
    uniques: [{ name: 'tags_word', columns: ['word'] }],
  })
  const Kinds = new EntitySchema({
    name: 'Kinds',
    tableName: 'kinds',
    columns: {
      id: { type: 'int', primary: true, generated: 'identity' },
      small: { type: 'smallint', nullable: true },
      big: { type: 'bigint', nullable: true },
      price: { type: 'numeric', precision: 12, scale: 4, nullable: true },
      ratio: { type: 'double precision', nullable: true },
      ok: { type: 'boolean', nullable: true },
      name: { type: 'varchar', length: 40, nullable: true },
      data: { type: 'bytea', nullable: true },
      day: { type: 'date', nullable: true },
      clock: { type: 'time', nullable: true },
      at: { type: 'timestamptz', nullable: true },
      doc: { type: 'jsonb', nullable: true },
      words: { type: 'simple-array', nullable: true },
      uid: { type: 'uuid', nullable: true },
    },
  })
  return [Author, Book, Tag, Kinds]
}

const row = {
  small: -7,
  big: '4611686018427387904',
  price: '12345.6700',
  ratio: 0.1,
  ok: false,
  name: "naïve 🐘 'q' \\",
  data: Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
  day: '2024-02-29',
  clock: '23:59:59.25',
  at: new Date('2024-02-29T23:59:59.123Z'),
  doc: { a: [1, null, 'é'] },
  words: ['a', 'b'],
  uid: 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
}

const options = (after, more) => ({
  type: 'postgres',
  ...place,
  username,
  entities: entities(after),
  ...more,
})

/** A source of data for the length of the work. */
async function connected(work, after = false, more = {}) {
  const source = await new DataSource(options(after, more)).initialize()
  try {
    return await work(source)
  } finally {
    await source.destroy()
  }
}

/** What synchronize would still do. */
const pending = async (source) => (await source.driver.createSchemaBuilder().log()).upQueries.map(({ query }) => query)

class Ledger1700000000000 {
  async up(runner) {
    await runner.createTable(
      new Table({
        name: 'ledger',
        columns: [
          { name: 'id', type: 'int', isPrimary: true, isGenerated: true, generationStrategy: 'increment' },
          { name: 'amount', type: 'integer', isNullable: true },
        ],
      }),
      true,
    )
    await runner.query('INSERT INTO ledger (amount) VALUES (1), (2)')
  }
  async down(runner) {
    await runner.dropTable('ledger')
  }
}

class LedgerGrows1700000000001 {
  async up(runner) {
    await runner.addColumn('ledger', new TableColumn({ name: 'memo', type: 'varchar', length: '20', default: "'x'" }))
    await runner.changeColumn('ledger', 'amount', new TableColumn({ name: 'amount', type: 'integer', default: 5 }))
    await runner.createIndex('ledger', new TableIndex({ name: 'ledger_memo', columnNames: ['memo'] }))
    await runner.renameColumn('ledger', 'memo', 'note')
  }
  async down(runner) {
    await runner.dropColumn('ledger', 'note')
  }
}

make({
  async synchronize() {
    await connected(async (source) => {
      await source.synchronize()
      assert.deepEqual(await pending(source), [])
    })
  },

  async synchronize_again() {
    await connected(
      async (source) => {
        assert.deepEqual(await pending(source), [])
        assert.equal(await source.getRepository('Author').count(), 0)
      },
      false,
      { synchronize: true },
    )
  },

  async types() {
    await connected(async (source) => {
      const kinds = source.getRepository('Kinds')
      const { id } = await kinds.save({ ...row })
      const { id: _, ...found } = await kinds.findOneByOrFail({ id })
      assert.deepEqual(found, row)
      const empty = await kinds.findOneByOrFail({ id: (await kinds.save({})).id })
      assert.ok(Object.keys(row).every((name) => empty[name] === null))
      for (const name of Object.keys(row).filter((name) => !['doc', 'words', 'data'].includes(name))) {
        assert.equal(await kinds.countBy({ [name]: row[name] }), 1, name)
      }
    })
  },

  async repository() {
    await connected(async (source) => {
      const [authors, books] = [source.getRepository('Author'), source.getRepository('Book')]
      const saved = await authors.save({
        name: 'Ann',
        born: '1950-01-02',
        books: [
          { title: 'one', price: '1.50', tags: [{ word: 'poetry' }] },
          { title: 'two', price: '2.50', tags: [] },
        ],
      })
      assert.equal(saved.books[0].version, 1)
      const found = await authors.findOneOrFail({
        where: { name: 'Ann' },
        relations: { books: { tags: true } },
        order: { books: { title: 'ASC' } },
      })
      assert.deepEqual(
        found.books.map(({ title, price }) => [title, price]),
        [
          ['one', '1.50'],
          ['two', '2.50'],
        ],
      )
      assert.equal(found.books[0].tags[0].word, 'poetry')
      found.books[0].title = 'first'
      await authors.save(found)
      assert.equal((await books.findOneByOrFail({ title: 'first' })).version, 2)
      assert.deepEqual((await authors.update({ name: 'Ann' }, { born: null })).affected, 1)
      assert.equal(await authors.countBy({ born: IsNull(), name: Like('A%'), id: Not(In([98, 99])) }), 1)
      const [page, total] = await books.findAndCount({
        where: { price: LessThan(3) },
        order: { title: 'DESC' },
        skip: 1,
        take: 1,
        relations: { author: true },
      })
      assert.deepEqual([page[0].title, page[0].author.name, total], ['first', 'Ann', 2])
      await books.softDelete({ title: 'two' })
      assert.equal(await books.count(), 1)
      assert.equal(await books.count({ withDeleted: true }), 2)
      await books.restore({ title: 'two' })
      await authors.upsert([{ name: 'Ann', born: '1960-01-01' }, { name: 'Ben' }], ['name'])
      assert.deepEqual(
        (await authors.find({ order: { name: 'ASC' } })).map(({ name, born }) => [name, born]),
        [
          ['Ann', '1960-01-01'],
          ['Ben', null],
        ],
      )
      await authors.increment({ name: 'Ben' }, 'id', 100)
      assert.equal((await authors.delete({ name: 'Ben' })).affected, 1)
    })
  },

  async query_builder() {
    await connected(async (source) => {
      const summed = await source
        .getRepository('Book')
        .createQueryBuilder('book')
        .innerJoin('book.author', 'author')
        .select('author.name', 'name')
        .addSelect('SUM(book.price)', 'total')
        .where('book.price > :least AND author.name ILIKE :like', { least: 1, like: 'a%' })
        .groupBy('author.name')
        .having('COUNT(*) > 1')
        .getRawMany()
      assert.deepEqual(summed, [{ name: 'Ann', total: '4.00' }])
      const paged = await source
        .getRepository('Author')
        .createQueryBuilder('author')
        .leftJoinAndSelect('author.books', 'book')
        .orderBy('book.title')
        .take(1)
        .getMany()
      assert.deepEqual(
        paged[0].books.map(({ title }) => title),
        ['first', 'two'],
      )
      const inserted = await source
        .createQueryBuilder()
        .insert()
        .into('Tag')
        .values(Array.from({ length: 100 }, (_, number) => ({ word: `word ${number}` })))
        .orIgnore()
        .execute()
      assert.equal(inserted.identifiers.length, 100)
      const deleted = await source
        .createQueryBuilder()
        .delete()
        .from('Tag')
        .where('word LIKE :like', { like: 'word 1%' })
        .returning('word')
        .execute()
      assert.equal(deleted.affected, 11)
    })
  },

  async errors() {
    await connected(async (source) => {
      const author = (await source.getRepository('Author').find())[0]
      const save = (name, value) => () => source.getRepository(name).insert(value)
      await fails('23505', save('Author', { name: 'Ann' }), QueryFailedError)
      await fails('23502', save('Author', { name: null }), QueryFailedError)
      await fails('23503', save('Book', { title: 'x', author: { id: 1000 } }), QueryFailedError)
      await fails('23514', save('Book', { title: 'x', price: -1, author }), QueryFailedError)
      await fails('22001', save('Author', { name: 'x'.repeat(51) }), QueryFailedError)
      await fails('42P01', () => source.query('SELECT * FROM missing'), QueryFailedError)
    })
  },

  async transactions() {
    await connected(async (source) => {
      await assert.rejects(
        source.transaction(async (manager) => {
          await manager.save('Tag', { word: 'undone' })
          throw new Error('on purpose')
        }),
        /on purpose/,
      )
      await source.transaction('SERIALIZABLE', async (manager) => {
        await manager.save('Tag', { word: 'kept' })
        // One in another is a savepoint.
        await fails('23505', () => manager.transaction((inner) => inner.insert('Tag', { word: 'kept' })))
        const locked = await manager.findOne('Tag', { where: { word: 'kept' }, lock: { mode: 'pessimistic_write' } })
        assert.equal(locked.word, 'kept')
      })
      assert.equal(await source.getRepository('Tag').countBy({ word: In(['kept', 'undone']) }), 1)
    })
  },

  async synchronize_after_a_change() {
    await connected(async (source) => {
      assert.ok((await pending(source)).length > 0)
      await source.synchronize()
      assert.deepEqual(await pending(source), [])
      const [author] = await source.getRepository('Author').find({ relations: { books: true } })
      assert.deepEqual([author.name, author.nick, author.books.length], ['Ann', 'none', 2])
    }, true)
  },

  async migrations() {
    const migrations = [Ledger1700000000000, LedgerGrows1700000000001]
    await connected(
      async (source) => {
        assert.equal(await source.showMigrations(), true)
        assert.equal((await source.runMigrations()).length, 2)
        assert.equal((await source.runMigrations()).length, 0)
        assert.equal(await source.showMigrations(), false)
        assert.deepEqual(await source.query('SELECT amount, note FROM ledger ORDER BY id'), [
          { amount: 1, note: 'x' },
          { amount: 2, note: 'x' },
        ])
        await source.undoLastMigration()
        assert.deepEqual(Object.keys((await source.query('SELECT * FROM ledger'))[0]), ['id', 'amount'])
        await source.undoLastMigration()
        await fails('42P01', () => source.query('SELECT * FROM ledger'))
      },
      true,
      { migrations },
    )
  },

  async drop() {
    await connected(async (source) => {
      await source.dropDatabase()
      await fails('42P01', () => source.getRepository('Author').count())
    }, true)
  },
})
