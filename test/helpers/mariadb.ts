// Gives tests a database of either kind: SQLite in a file of their own, or a MariaDB that this test file starts for itself.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Knex } from 'knex'
import tap, { type Test } from 'tap'
import { openDatabase } from '../../core/db/open.ts'
import { hangProcess, mariadbUrl, PROGRAM, startMariadb, type MariadbServer } from './mariadb-server.ts'

// One server per test file, started by the first test that needs it.
let server: Promise<MariadbServer> | undefined

export type DatabaseTest = (t: Test, database: Knex, url: string) => Promise<void>

/** Runs the same test on SQLite and on MariaDB, each with an empty database of its own. `url` opens a second handle on it. */
export function eachDatabase (t: Test, name: string, fn: DatabaseTest): void {
  t.test(`${name} (SQLite)`, async (t) => {
    // not testFolder: the test may call that itself, which empties it
    const folder = await mkdtemp(join(tmpdir(), 'berth-sqlite-'))
    try {
      await onDatabase(t, `sqlite:${join(folder, 'test.db')}`, fn)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
  t.test(`${name} (MariaDB)`, existsSync(PROGRAM) ? {} : { skip: `${PROGRAM} is missing: install the package mariadb-server` }, async (t) => {
    await onDatabase(t, await createMariadbDatabase(), fn)
  })
}

/** A new empty database on this test file's MariaDB; returns its URL. */
export async function createMariadbDatabase (): Promise<string> {
  server ??= startOnce()
  const { socketPath } = await server
  const name = `test_${randomBytes(6).toString('hex')}`
  const admin = openDatabase(mariadbUrl(socketPath, 'information_schema'))
  try {
    await admin.raw('CREATE DATABASE ??', [name])
  } finally {
    await admin.destroy()
  }
  return mariadbUrl(socketPath, name)
}

/** Makes this test file's MariaDB hang, as a machine that has lost its disk does. Resolves to the function that lets it go on. */
export async function hangMariadb (): Promise<() => void> {
  server ??= startOnce()
  const { pid } = await server
  const resume = await hangProcess(pid)
  tap.teardown(resume)
  return resume
}

async function onDatabase (t: Test, url: string, fn: DatabaseTest): Promise<void> {
  const database = openDatabase(url)
  try {
    await fn(t, database, url)
  } finally {
    await database.destroy()
  }
}

async function startOnce (): Promise<MariadbServer> {
  const started = await startMariadb()
  tap.teardown(async () => {
    // The next file of the process starts its own.
    server = undefined
    await started.stop()
  })
  return started
}
