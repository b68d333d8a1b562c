// Drizzle: migrations by a journal as its kit writes it (the folder `drizzle` beside this file), CRUD, relations, transactions.
//
// Does not know which server it talks to: all of it holds for PostgreSQL itself.
'use strict'

const assert = require('node:assert/strict')
const path = require('node:path')
const { Pool } = require('pg')
const { and, asc, count, desc, eq, gt, ilike, inArray, relations, sql, sum } = require('drizzle-orm')
const { drizzle } = require('drizzle-orm/node-postgres')
const { migrate } = require('drizzle-orm/node-postgres/migrator')
const pg = require('drizzle-orm/pg-core')
const { fails, make, url } = require('./checking')

const authors = pg.pgTable('authors', {
  id: pg.serial().primaryKey(),
  name: pg.varchar({ length: 120 }).notNull().unique(),
  born: pg.date(),
  nick: pg.text().default('none'),
})
const books = pg.pgTable('books', {
  id: pg.uuid().defaultRandom().primaryKey(),
  authorId: pg
    .integer('author_id')
    .notNull()
    .references(() => authors.id, { onDelete: 'cascade' }),
  title: pg.text().notNull(),
  price: pg.numeric({ precision: 10, scale: 2 }).default('0').notNull(),
})
const many = pg.pgTable('kinds', {
  id: pg.integer().primaryKey().generatedAlwaysAsIdentity(),
  small: pg.smallint(),
  big: pg.bigint({ mode: 'bigint' }),
  ratio: pg.doublePrecision(),
  part: pg.real(),
  ok: pg.boolean(),
  name: pg.varchar({ length: 40 }),
  day: pg.date(),
  clock: pg.time(),
  local: pg.timestamp(),
  at: pg.timestamp({ withTimezone: true, precision: 3 }),
  doc: pg.json(),
  docb: pg.jsonb(),
  uid: pg.uuid(),
})
const schema = {
  authors,
  books,
  authorsRelations: relations(authors, ({ many }) => ({ books: many(books) })),
  booksRelations: relations(books, ({ one }) => ({
    author: one(authors, { fields: [books.authorId], references: [authors.id] }),
  })),
}
const row = {
  small: -7,
  big: 4611686018427387904n,
  ratio: 0.1,
  part: 0.5,
  ok: false,
  name: "naïve 🐘 'q' \\",
  day: '2024-02-29',
  clock: '23:59:59.25',
  local: new Date('2024-02-29T12:00:00.001Z'),
  at: new Date('2024-02-29T23:59:59.123Z'),
  doc: { a: [1, null, 'é'] },
  docb: { b: [true, 1.5] },
  uid: 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
}

const pool = new Pool({ connectionString: url })
const db = drizzle(pool, { schema })

make(
  {
    async migrate() {
      const migrationsFolder = path.join(__dirname, 'drizzle')
      await migrate(db, { migrationsFolder })
      await migrate(db, { migrationsFolder })
      const { rows } = await pool.query('SELECT count(*)::int AS n FROM drizzle.__drizzle_migrations')
      assert.equal(rows[0].n, 2)
    },

    async types() {
      const [{ id, ...found }] = await db.insert(many).values(row).returning()
      assert.deepEqual(found, row)
      const [empty] = await db.insert(many).values({}).returning()
      assert.ok(Object.keys(row).every((name) => empty[name] === null))
      for (const name of Object.keys(row).filter((name) => name !== 'doc')) {
        assert.equal((await db.select().from(many).where(eq(many[name], row[name]))).length, 1, name)
      }
    },

    async crud() {
      const [ann, ben] = await db
        .insert(authors)
        .values([{ name: 'Ann', born: '1950-01-02' }, { name: 'Ben' }])
        .returning()
      assert.deepEqual([ann.nick, ben.born], ['none', null])
      await db
        .insert(books)
        .values(
          Array.from({ length: 100 }, (_, number) => ({
            authorId: ann.id,
            title: `title ${number}`,
            price: `${number}.50`,
          })),
        )
      assert.equal(
        (
          await db
            .update(books)
            .set({ price: sql`${books.price} + 1` })
            .where(gt(books.price, '90'))
        ).rowCount,
        10,
      )
      assert.equal(
        (await db.delete(books).where(ilike(books.title, 'TITLE 1%')).returning({ title: books.title })).length,
        11,
      )
      const [upserted] = await db
        .insert(authors)
        .values({ name: 'Ann', nick: 'annie' })
        .onConflictDoUpdate({ target: authors.name, set: { nick: sql`excluded.nick` } })
        .returning()
      assert.deepEqual([upserted.id, upserted.nick], [ann.id, 'annie'])
      assert.deepEqual(await db.insert(authors).values({ name: 'Ann' }).onConflictDoNothing().returning(), [])
      const grouped = await db
        .select({ name: authors.name, n: count(books.id), total: sum(books.price) })
        .from(authors)
        .leftJoin(books, eq(books.authorId, authors.id))
        .groupBy(authors.name)
        .orderBy(desc(count(books.id)), asc(authors.name))
      assert.deepEqual(grouped, [
        { name: 'Ann', n: 89, total: '4858.50' },
        { name: 'Ben', n: 0, total: null },
      ])
      const dear = db
        .$with('dear')
        .as(db.select({ id: books.id, title: books.title }).from(books).where(gt(books.price, '98')))
      assert.equal(
        (await db.with(dear).select().from(dear).orderBy(dear.title).limit(1).offset(1))[0].title,
        'title 98',
      )
      const subquery = db.select({ id: books.authorId }).from(books)
      assert.equal(
        (
          await db
            .select()
            .from(authors)
            .where(and(inArray(authors.id, subquery), eq(authors.nick, 'annie')))
        ).length,
        1,
      )
      assert.equal(await db.$count(books, eq(books.authorId, ann.id)), 89)
      const prepared = db
        .select()
        .from(authors)
        .where(eq(authors.name, sql.placeholder('name')))
        .prepare('by_name')
      assert.equal((await prepared.execute({ name: 'Ben' }))[0].id, ben.id)
    },

    async relations() {
      // One statement with lateral joins and JSON.
      const found = await db.query.authors.findMany({
        where: eq(authors.name, 'Ann'),
        with: { books: { limit: 2, orderBy: asc(books.title), columns: { title: true, price: true } } },
      })
      assert.deepEqual(
        found[0].books.map(({ title }) => title),
        ['title 0', 'title 2'],
      )
      assert.equal((await db.query.books.findFirst({ with: { author: true } })).author.name, 'Ann')
    },

    async errors() {
      const [ann] = await db.select().from(authors).where(eq(authors.name, 'Ann'))
      await fails('23505', () => db.insert(authors).values({ name: 'Ann' }))
      await fails('23502', () => db.execute(sql`INSERT INTO authors (name) VALUES (${null})`))
      await fails('23503', () => db.insert(books).values({ authorId: 10000, title: 'x' }))
      await fails('23514', () => db.insert(books).values({ authorId: ann.id, title: 'x', price: '-1' }))
      await fails('22001', () => db.insert(authors).values({ name: 'x'.repeat(121) }))
      await fails('42P01', () => db.execute(sql`SELECT * FROM missing`))
    },

    async transactions() {
      await assert.rejects(
        db.transaction(async (tx) => {
          await tx.delete(books)
          tx.rollback()
        }),
      )
      assert.equal(await db.$count(books), 89)
      await db.transaction(
        async (tx) => {
          await tx.insert(authors).values({ name: 'kept' })
          await fails('23505', () => tx.transaction((inner) => inner.insert(authors).values({ name: 'kept' })))
          assert.equal((await tx.select().from(authors).where(eq(authors.name, 'kept')).for('update')).length, 1)
        },
        { isolationLevel: 'serializable', accessMode: 'read write' },
      )
      assert.equal(await db.$count(authors, eq(authors.name, 'kept')), 1)
    },
  },
  () => pool.end(),
)
