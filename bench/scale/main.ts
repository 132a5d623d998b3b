// `npm run bench -- scale`: what stored rows cost a start and each request, what a change of one policy costs beside a thousand, and what many followers of one log cost; and for how long the event loop stood still in each.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'
import { buildApp } from '../../core/app.ts'
import { readHostId } from '../../core/data/folder.ts'
import { openDatabase } from '../../core/db/open.ts'
import { inFolder } from '../folder.ts'
import { figureOf, print } from '../harness.ts'
import { middle, store } from '../lists/rows.ts'
import type { Benchmarks, BenchOptions } from '../options.ts'
import { costOf, type Cost } from './held.ts'
import { idOf, storeResting } from './resting.ts'

const COUNTS = [1000, 10_000]
/** without a start: no host has so many instances, but this many rows of other kinds */
const MOST = 100_000
const FOLLOWERS = 1000
const LINES_PER_SECOND = 10
const KEY = `berth_${'k'.repeat(24)}_${'0'.repeat(43)}`

type App = Awaited<ReturnType<typeof buildApp>>

async function scale ({ runs, seconds }: BenchOptions): Promise<void> {
  for (const count of COUNTS) await inFolder(async (folder) => { await measure(folder, count, count, { runs, seconds }) })
  await inFolder(async (folder) => { await measure(folder, MOST, 0, { runs, seconds }) })
}

async function measure (folder: string, count: number, instances: number, { runs, seconds }: Pick<BenchOptions, 'runs' | 'seconds'>): Promise<void> {
  await chmod(folder, 0o711)
  await withApp(folder, async () => {})
  const hostId = await readHostId(folder)
  await inDatabase(folder, async (database) => { await storeResting(database, hostId, folder, instances) })
  const starts: Cost[] = []
  // The first start does what is done once for new rows.
  const most = instances > 0 ? Math.min(runs, 3) : 0
  for (let run = 0; run < most; run++) await withApp(folder, async (_app, start) => { starts.push(start) })
  if (starts.length > 0) tell(`start with ${instances} instances at rest`, starts, 'every second one in standby; the default configuration without preparation of guests, templates and builders, SQLite')
  await withApp(folder, async (app) => {
    // Added only now: a start removes old builds.
    await inDatabase(folder, async (database) => { await store(database, hostId, count) })
    for (const path of pathsWith(count, instances)) tell(`GET ${path}`, await requests(app, path, runs), `${count} rows of each kind, ${instances} instances at rest, SQLite`)
    if (instances === COUNTS[0]) await follow(app, folder, seconds)
  }, instances === COUNTS[0])
}

async function inDatabase (folder: string, work: (database: Knex) => Promise<void>): Promise<void> {
  const database = openDatabase(`sqlite:${join(folder, 'berth.db')}`)
  try {
    await work(database)
  } finally {
    await database.destroy()
  }
}

/** Starts a server here and stops it in the end. */
async function withApp (folder: string, work: (app: App, start: Cost) => Promise<void>, listen = false): Promise<void> {
  const app = await buildApp({
    log: { level: 'silent' },
    server: { dataDir: folder, listen: '127.0.0.1:0', metrics: { enabled: false, listen: '127.0.0.1:0' } },
    plugins: { networking: { config: { uplink: 'none' } }, guest: { config: { prepare: false } }, builds: { config: { prepare: false } }, instances: { config: { templates: { enabled: false } } } }
  }, { environment: { BERTH_API_KEY: KEY }, folder })
  try {
    const start = await costOf(async () => { await app.start({ listen }) })
    await work(app, start)
  } finally {
    await app.stop()
  }
}

async function requests (app: App, path: string, runs: number): Promise<Cost[]> {
  const costs: Cost[] = []
  for (let run = 0; run <= runs; run++) {
    const cost = await costOf(async () => {
      const { statusCode, body } = await app.http.inject({ url: path, headers: { authorization: `Bearer ${KEY}` } })
      if (statusCode !== 200) throw new Error(`${path} answered ${statusCode}: ${body}`)
    })
    // The first one compiles what the others use.
    if (run > 0) costs.push(cost)
  }
  return costs
}

/** Clients in a process of their own follow the log of an instance in standby; lines are written to it in the way a VMM writes them. */
async function follow (app: App, folder: string, seconds: number): Promise<void> {
  const id = idOf(1)
  const mark = 'the last line of all'
  const given = { url: `${app.address()}/instances/${id}/logs?follow=true&tail=0`, key: KEY, count: FOLLOWERS, mark }
  const clients = fork(new URL('programs/followers.js', import.meta.url), [JSON.stringify(given)])
  try {
    await once(clients, 'message')
    // By then the last followers have read the log for the first time.
    await delay(1000)
    const done = once(clients, 'message')
    let took = 0
    const cost = await costOf(async () => {
      const began = performance.now()
      for (let line = 0; line < seconds * LINES_PER_SECOND; line++) {
        appendFileSync(join(folder, 'instances', id, 'output.log'), `line ${line} of a program that says something\n`)
        await delay(1000 / LINES_PER_SECOND)
      }
      appendFileSync(join(folder, 'instances', id, 'output.log'), `${mark}\n`)
      await done
      took = performance.now() - began
    })
    const note = `${LINES_PER_SECOND} lines a second; the clients are another process`
    print(figureOf(`${FOLLOWERS} followers of one log, share of a processor`, '%', [100 * cost.cpu / took], { note }))
    print(figureOf(`${FOLLOWERS} followers of one log, longest block`, 'ms', [cost.block], { note }))
  } finally {
    clients.disconnect()
    await once(clients, 'exit')
  }
}

function tell (name: string, costs: readonly Cost[], note: string): void {
  print(figureOf(`${name}, time`, 'ms', costs.map(({ wall }) => wall), { note }))
  print(figureOf(`${name}, processor`, 'ms', costs.map(({ cpu }) => cpu), { note }))
  print(figureOf(`${name}, longest block`, 'ms', costs.map(({ block }) => block), { note }))
}

function pathsWith (count: number, instances: number): string[] {
  return [
    '/snapshots?limit=10', '/snapshots?limit=10&tags[team]=team-7', '/volumes?limit=10', `/volumes/${middle(count)}`, `/snapshots/${middle(count)}`, `/builds/${middle(count)}`,
    '/builds?limit=10', '/images?limit=10', '/pushes?limit=10', '/keys?limit=10', '/resources', '/health',
    ...instances === 0 ? [] : ['/instances?limit=10', '/instances?limit=10&tags[team]=team-7', '/instances?limit=10&state=Stopped', `/instances/${idOf(Math.floor(instances / 2))}`]
  ]
}

export const benchmarks: Benchmarks = { scale }
