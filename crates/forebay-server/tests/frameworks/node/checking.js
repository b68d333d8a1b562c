// What the programs here share: a check is a function of the object given to `make`, and prints one line.
//
// Promises: every check is made, in the order given, whatever became of the one before; each that passes prints "ok NAME"; when
// one failed, its error is shown and the program ends with a failure. Knows neither a framework nor which server it is.
'use strict'

const assert = require('node:assert/strict')

exports.url = process.argv[2]

/** The server's address in parts, for those who do not take a URL. */
exports.address = () => {
  const { hostname, port, username, password, pathname } = new URL(exports.url)
  return { host: hostname, port: Number(port), username, password: password || undefined, database: pathname.slice(1) }
}

/** Does the work, which must fail with an error of this kind, whose cause has this SQLSTATE. */
exports.fails = async (state, work, kind = Error) => {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof kind, `${error.constructor.name}: ${error.message}`)
    const cause = error.original ?? error.driverError ?? error.cause ?? error
    assert.equal(cause.code, state, cause.message)
    return true
  })
}

/** Makes the checks, then `end`, then ends the program. */
exports.make = async (checks, end = () => {}) => {
  let failed = false
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check()
      console.log('ok', name)
    } catch (error) {
      failed = true
      console.log('FAILED', name)
      console.log(error)
    }
  }
  try {
    await end()
  } finally {
    process.exit(failed ? 1 : 0)
  }
}
