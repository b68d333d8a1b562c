// Prisma's client over its adapter for node-postgres: CRUD, relations, transactions. The tables are made by the migration that Prisma's
// engine writes, since the engine itself comes in no package.
//
// Does not know which server it talks to: all of it holds for PostgreSQL itself.
'use strict'

const assert = require('node:assert/strict')
const fs = require('node:fs')
const path = require('node:path')
const { PrismaClient, Prisma } = require('@prisma/client')
const { PrismaPg } = require('@prisma/adapter-pg')
const { make, url } = require('../node/checking')

const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }), errorFormat: 'minimal' })
const row = {
  small: -7,
  big: 4611686018427387904n,
  price: new Prisma.Decimal('12345.67'),
  ratio: 0.1,
  ok: false,
  name: "naïve 🐘 'q' \\",
  data: Uint8Array.from({ length: 256 }, (_, byte) => byte),
  day: new Date('2024-02-29T00:00:00.000Z'),
  local: new Date('2024-02-29T12:00:00.001Z'),
  at: new Date('2024-02-29T23:59:59.123Z'),
  doc: { a: [1, null, 'é'] },
  uid: 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
}

/** Does the work, which must fail with this code of Prisma's. */
const fails = (code, work) =>
  assert.rejects(work, (error) => assert.equal(error.code, code, error.message) === undefined)

make(
  {
    async migration() {
      const text = fs.readFileSync(path.join(__dirname, 'migration.sql'), 'utf8')
      await prisma.$transaction(
        text
          .split(';\n')
          .filter((statement) => statement.trim())
          .map((statement) => prisma.$executeRawUnsafe(statement)),
      )
      assert.equal(await prisma.author.count(), 0)
    },

    async types() {
      const { id, ...given } = await prisma.kinds.create({ data: row })
      assert.deepEqual({ ...given, data: Buffer.from(given.data) }, { ...row, data: Buffer.from(row.data) })
      const empty = await prisma.kinds.create({ data: {} })
      assert.ok(Object.keys(row).every((name) => empty[name] === null))
      for (const name of Object.keys(row)) {
        const value = name === 'doc' ? { equals: row[name] } : row[name]
        assert.equal(await prisma.kinds.count({ where: { [name]: value } }), 1, name)
      }
      assert.equal(await prisma.kinds.count({ where: { doc: { path: ['a', '0'], equals: 1 } } }), 1)
    },

    async crud() {
      const ann = await prisma.author.create({
        data: {
          name: 'Ann',
          born: new Date('1950-01-02'),
          books: {
            create: [
              { title: 'one', price: '1.50', tags: { create: { word: 'poetry' } } },
              { title: 'two', price: 2.5 },
            ],
          },
        },
        include: { books: { include: { tags: true }, orderBy: { title: 'asc' } } },
      })
      assert.deepEqual(
        ann.books.map(({ title, price, tags }) => [title, price.toFixed(2), tags.length]),
        [
          ['one', '1.50', 1],
          ['two', '2.50', 0],
        ],
      )
      assert.ok(Math.abs(new Date() - ann.books[0].created) < 60000)
      const { count } = await prisma.tag.createMany({
        data: Array.from({ length: 100 }, (_, number) => ({ word: `word ${number}` })),
      })
      assert.equal(count, 100)
      assert.equal((await prisma.tag.createMany({ data: [{ word: 'word 1' }], skipDuplicates: true })).count, 0)
      assert.equal(
        (await prisma.tag.deleteMany({ where: { word: { startsWith: 'WORD 1', mode: 'insensitive' } } })).count,
        11,
      )
      const changed = await prisma.book.update({
        where: { authorId_title: { authorId: ann.id, title: 'one' } },
        data: { title: 'first', price: { increment: 1 } },
      })
      assert.deepEqual([changed.title, changed.price.toFixed(2)], ['first', '2.50'])
      assert.equal(
        (await prisma.author.upsert({ where: { name: 'Ben' }, create: { name: 'Ben' }, update: {} })).name,
        'Ben',
      )
      assert.equal(
        (await prisma.author.upsert({ where: { name: 'Ben' }, create: { name: 'Ben' }, update: { name: 'Benno' } }))
          .name,
        'Benno',
      )
      const page = await prisma.book.findMany({
        where: { author: { name: { contains: 'nn' } }, price: { gte: 1 } },
        orderBy: [{ price: 'desc' }, { title: 'asc' }],
        skip: 1,
        take: 1,
      })
      assert.equal(page[0].title, 'two')
      const found = await prisma.author.findMany({
        where: { OR: [{ books: { some: { tags: { some: { word: 'poetry' } } } } }, { books: { none: {} } }] },
        orderBy: { name: 'asc' },
        include: { _count: { select: { books: true } } },
      })
      assert.deepEqual(
        found.map(({ name, _count }) => [name, _count.books]),
        [
          ['Ann', 2],
          ['Benno', 0],
        ],
      )
      const summed = await prisma.book.aggregate({ _sum: { price: true }, _avg: { price: true }, _count: true })
      assert.deepEqual([summed._sum.price.toFixed(2), summed._avg.price.toFixed(2), summed._count], ['5.00', '2.50', 2])
      const grouped = await prisma.book.groupBy({
        by: ['authorId'],
        _count: { _all: true },
        having: { price: { _sum: { gt: 1 } } },
      })
      assert.deepEqual(grouped, [{ authorId: ann.id, _count: { _all: 2 } }])
      assert.deepEqual(await prisma.$queryRaw`SELECT name FROM authors WHERE id = ${ann.id}`, [{ name: 'Ann' }])
      await prisma.author.delete({ where: { name: 'Benno' } })
    },

    async errors() {
      await fails('P2002', () => prisma.author.create({ data: { name: 'Ann' } }))
      await fails('P2003', () => prisma.book.create({ data: { title: 'x', authorId: 10000 } }))
      await fails('P2000', () => prisma.author.create({ data: { name: 'x'.repeat(51) } }))
      await fails('P2025', () => prisma.author.update({ where: { name: 'missing' }, data: { name: 'x' } }))
      await fails('P2010', () => prisma.$queryRaw`SELECT * FROM missing`)
    },

    async transactions() {
      await assert.rejects(
        prisma.$transaction(async (tx) => {
          await tx.tag.create({ data: { word: 'undone' } })
          throw new Error('on purpose')
        }),
        /on purpose/,
      )
      await fails('P2002', () =>
        prisma.$transaction([
          prisma.tag.create({ data: { word: 'undone' } }),
          prisma.tag.create({ data: { word: 'poetry' } }),
        ]),
      )
      await prisma.$transaction((tx) => tx.tag.create({ data: { word: 'kept' } }), { isolationLevel: 'Serializable' })
      assert.equal(await prisma.tag.count({ where: { word: { in: ['kept', 'undone'] } } }), 1)
    },
  },
  () => prisma.$disconnect(),
)
