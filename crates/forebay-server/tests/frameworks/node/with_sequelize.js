// Sequelize: sync, sync with alter after a change, CRUD, associations, transactions.
//
// Does not know which server it talks to: all of it holds for PostgreSQL itself.
'use strict'

const assert = require('node:assert/strict')
const { Sequelize, DataTypes, Op, QueryTypes, Transaction } = require('sequelize')
const errors = require('sequelize')
const { fails, make, url } = require('./checking')

const sequelize = new Sequelize(url, { logging: false })

/** The models; `after` a change of the application. */
function define(after) {
  const Author = sequelize.define('Author', {
    name: { type: DataTypes.STRING(after ? 120 : 50), allowNull: false, unique: true },
    ...(after ? { nick: { type: DataTypes.STRING, defaultValue: 'none' } } : {}),
    born: { type: DataTypes.DATEONLY, allowNull: true },
  })
  const Book = sequelize.define(
    'Book',
    {
      id: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4, primaryKey: true },
      title: { type: DataTypes.TEXT, allowNull: false },
      price: { type: DataTypes.DECIMAL(10, 2), defaultValue: 0, allowNull: after },
    },
    { paranoid: true, indexes: [{ name: 'books_title', fields: ['title'] }] },
  )
  const Tag = sequelize.define(
    'Tag',
    { word: { type: DataTypes.STRING, unique: 'tags_word' } },
    { timestamps: false, underscored: true },
  )
  Author.hasMany(Book, { foreignKey: { name: 'authorId', allowNull: false }, onDelete: 'CASCADE' })
  Book.belongsTo(Author, { foreignKey: 'authorId' })
  Book.belongsToMany(Tag, { through: 'BookTags', timestamps: false })
  Tag.belongsToMany(Book, { through: 'BookTags', timestamps: false })
  const Kinds = sequelize.define(
    'Kinds',
    {
      small: DataTypes.SMALLINT,
      big: DataTypes.BIGINT,
      price: DataTypes.DECIMAL(12, 4),
      ratio: DataTypes.DOUBLE,
      part: DataTypes.REAL,
      ok: DataTypes.BOOLEAN,
      name: DataTypes.STRING(40),
      data: DataTypes.BLOB,
      day: DataTypes.DATEONLY,
      clock: DataTypes.TIME,
      at: DataTypes.DATE,
      doc: DataTypes.JSON,
      docb: DataTypes.JSONB,
      uid: DataTypes.UUID,
    },
    { timestamps: false, freezeTableName: true },
  )
  return { Author, Book, Tag, Kinds }
}

const row = {
  small: -7,
  big: '4611686018427387904',
  price: '12345.6700',
  ratio: 0.1,
  part: 0.5,
  ok: false,
  name: "naïve 🐘 'q' \\",
  data: Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
  day: '2024-02-29',
  clock: '23:59:59.25',
  at: new Date('2024-02-29T23:59:59.123Z'),
  doc: { a: [1, null, 'é'] },
  docb: { b: [true, 1.5] },
  uid: 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
}
let models

make(
  {
    async sync() {
      await sequelize.authenticate()
      models = define(false)
      await sequelize.sync()
      await sequelize.sync()
      assert.deepEqual((await sequelize.getQueryInterface().showAllTables()).sort(), [
        'Authors',
        'BookTags',
        'Books',
        'Kinds',
        'tags',
      ])
    },

    async types() {
      const { id } = await models.Kinds.create({ ...row })
      const { id: _, ...found } = (await models.Kinds.findByPk(id)).get({ plain: true })
      assert.deepEqual(found, row)
      const empty = await models.Kinds.findByPk((await models.Kinds.create({})).id)
      assert.ok(Object.keys(row).every((name) => empty[name] === null))
      for (const name of Object.keys(row).filter((name) => !['doc', 'docb'].includes(name))) {
        assert.equal(await models.Kinds.count({ where: { [name]: row[name] } }), 1, name)
      }
      assert.equal(await models.Kinds.count({ where: { docb: { [Op.contains]: { b: [1.5] } } } }), 1)
    },

    async crud() {
      const { Author, Book, Tag } = models
      const ann = await Author.create(
        {
          name: 'Ann',
          born: '1950-01-02',
          Books: [
            { title: 'one', price: '1.50', Tags: [{ word: 'poetry' }] },
            { title: 'two', price: 2.5 },
          ],
        },
        { include: [{ model: Book, include: Tag }] },
      )
      assert.equal(ann.Books.length, 2)
      const found = await Author.findOne({
        where: { name: { [Op.iLike]: 'AN%' } },
        include: [{ model: Book, include: Tag }],
        order: [[Book, 'title', 'ASC']],
      })
      assert.deepEqual(
        found.Books.map(({ title, price }) => [title, price]),
        [
          ['one', '1.50'],
          ['two', '2.50'],
        ],
      )
      assert.equal(found.Books[0].Tags[0].word, 'poetry')
      assert.ok(Math.abs(new Date() - found.createdAt) < 60000)
      await found.Books[0].update({ title: 'first' })
      assert.deepEqual(await Book.update({ price: sequelize.literal('price + 1') }, { where: { title: 'two' } }), [1])
      await found.Books[0].increment('price', { by: 0.25 })
      assert.equal((await found.Books[0].reload()).price, '1.75')
      await found.Books[0].decrement({ price: 0.25 })
      const { rows, count } = await Book.findAndCountAll({
        where: { price: { [Op.between]: [1, 10] } },
        order: [['title', 'DESC']],
        limit: 1,
        offset: 1,
      })
      assert.deepEqual([rows[0].title, count], ['first', 2])
      assert.equal(await Book.sum('price'), 5)
      const grouped = await Book.findAll({
        attributes: ['authorId', [sequelize.fn('COUNT', sequelize.col('id')), 'count']],
        group: ['authorId'],
        having: sequelize.where(sequelize.fn('COUNT', sequelize.col('id')), Op.gt, 1),
        raw: true,
      })
      assert.equal(grouped[0].count, '2')
      const tags = await Tag.bulkCreate(Array.from({ length: 100 }, (_, number) => ({ word: `word ${number}` })))
      assert.equal(new Set(tags.map(({ id }) => id)).size, 100)
      await Tag.bulkCreate([{ word: 'word 1' }], { ignoreDuplicates: true })
      assert.equal(await Tag.destroy({ where: { word: { [Op.startsWith]: 'word 1' } } }), 11)
      const [upserted] = await Tag.upsert({ word: 'poetry' }, { conflictFields: ['word'] })
      assert.equal(upserted.word, 'poetry')
      const [, created] = await Author.findOrCreate({ where: { name: 'Ben' }, defaults: { born: '1970-01-01' } })
      assert.equal(created, true)
      await Book.destroy({ where: { title: 'two' } })
      assert.equal(await Book.count(), 1)
      assert.equal(await Book.count({ paranoid: false }), 2)
      await Book.restore({ where: { title: 'two' } })
      assert.equal(
        (
          await sequelize.query('SELECT name FROM "Authors" WHERE name = $1', {
            bind: ['Ben'],
            type: QueryTypes.SELECT,
          })
        )[0].name,
        'Ben',
      )
      assert.equal(
        (
          await sequelize.query('SELECT name FROM "Authors" WHERE name IN (:names)', {
            replacements: { names: ['Ben', 'x'] },
            type: QueryTypes.SELECT,
          })
        ).length,
        1,
      )
    },

    async errors() {
      const { Author, Book } = models
      await fails('23505', () => Author.create({ name: 'Ann' }), errors.UniqueConstraintError)
      await fails('23503', () => Book.create({ title: 'x', authorId: 10000 }), errors.ForeignKeyConstraintError)
      await fails('23502', () => Author.create({ name: null }, { validate: false }), errors.DatabaseError)
      await fails('22001', () => Author.create({ name: 'x'.repeat(51) }), errors.DatabaseError)
      await fails('42P01', () => sequelize.query('SELECT * FROM missing'), errors.DatabaseError)
    },

    async transactions() {
      const { Tag } = models
      await assert.rejects(
        sequelize.transaction(async (transaction) => {
          await Tag.create({ word: 'undone' }, { transaction })
          throw new Error('on purpose')
        }),
        /on purpose/,
      )
      await sequelize.transaction(
        { isolationLevel: Transaction.ISOLATION_LEVELS.SERIALIZABLE },
        async (transaction) => {
          await Tag.create({ word: 'kept' }, { transaction })
          await fails('23505', () =>
            sequelize.transaction({ transaction }, (inner) => Tag.create({ word: 'kept' }, { transaction: inner })),
          )
          const locked = await Tag.findOne({ where: { word: 'kept' }, transaction, lock: transaction.LOCK.UPDATE })
          assert.equal(locked.word, 'kept')
        },
      )
      assert.equal(await Tag.count({ where: { word: ['kept', 'undone'] } }), 1)
    },

    async sync_with_alter() {
      models = define(false)
      await sequelize.sync({ alter: true })
      models = define(true)
      await sequelize.sync({ alter: true })
      const columns = await sequelize.getQueryInterface().describeTable('Authors')
      assert.equal(columns.name.type, 'CHARACTER VARYING(120)')
      assert.equal(columns.id.primaryKey, true)
      assert.equal(columns.name.allowNull, false)
      const ann = await models.Author.findOne({ where: { name: 'Ann' }, include: models.Book })
      assert.deepEqual([ann.nick, ann.Books.length], ['none', 2])
      await fails('23505', () => models.Author.create({ name: 'Ann' }), errors.UniqueConstraintError)
    },

    async query_interface() {
      const changes = sequelize.getQueryInterface()
      await changes.createTable('ledger', {
        id: { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true },
        amount: DataTypes.INTEGER,
      })
      await changes.bulkInsert('ledger', [{ amount: 1 }, { amount: 2 }])
      await changes.addColumn('ledger', 'memo', { type: DataTypes.STRING(20), defaultValue: 'x', allowNull: false })
      await changes.changeColumn('ledger', 'amount', { type: DataTypes.BIGINT, allowNull: false, defaultValue: 5 })
      await changes.renameColumn('ledger', 'memo', 'note')
      await changes.addIndex('ledger', ['note'], { name: 'ledger_note' })
      await changes.addConstraint('ledger', {
        type: 'check',
        fields: ['amount'],
        name: 'ledger_amount',
        where: { amount: { [Op.gte]: 0 } },
      })
      assert.deepEqual((await changes.showIndex('ledger')).map(({ name }) => name).sort(), [
        'ledger_note',
        'ledger_pkey',
      ])
      assert.deepEqual(
        await sequelize.query('SELECT amount, note FROM ledger ORDER BY id', { type: QueryTypes.SELECT }),
        [
          { amount: '1', note: 'x' },
          { amount: '2', note: 'x' },
        ],
      )
      await fails('23514', () => changes.bulkInsert('ledger', [{ amount: -1 }]))
      await changes.removeConstraint('ledger', 'ledger_amount')
      await changes.removeIndex('ledger', 'ledger_note')
      await changes.removeColumn('ledger', 'note')
      await changes.renameTable('ledger', 'book')
      await changes.dropTable('book')
    },

    async drop() {
      await sequelize.drop()
      assert.deepEqual(await sequelize.getQueryInterface().showAllTables(), [])
    },
  },
  () => sequelize.close(),
)
