// `npm run bench -- lists`: what a page of each list costs when there are many rows, and one row by its id.
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { buildApp } from '../../core/app.ts'
import { readHostId } from '../../core/data/folder.ts'
import { openDatabase } from '../../core/db/open.ts'
import { inFolder } from '../folder.ts'
import { figureOf, print } from '../harness.ts'
import type { Benchmarks, BenchOptions } from '../options.ts'
import { middle, store } from './rows.ts'

const COUNTS = [1000, 10_000, 100_000]
const KEY = `berth_${'k'.repeat(24)}_${'0'.repeat(43)}`

async function lists ({ runs }: BenchOptions): Promise<void> {
  for (const count of COUNTS) await inFolder(async (folder) => { await measure(folder, count, runs) })
}

async function measure (folder: string, count: number, runs: number): Promise<void> {
  await chmod(folder, 0o711)
  const app = await buildApp({
    log: { level: 'silent' },
    server: { dataDir: folder, listen: '127.0.0.1:0', metrics: { enabled: false, listen: '127.0.0.1:0' } },
    plugins: { networking: { enabled: false }, guest: { config: { prepare: false } }, builds: { config: { prepare: false } }, instances: { config: { templates: { enabled: false } } } }
  }, { environment: { BERTH_API_KEY: KEY }, folder })
  await app.start({ listen: false })
  try {
    const database = openDatabase(`sqlite:${join(folder, 'berth.db')}`)
    await store(database, await readHostId(folder), count)
    await database.destroy()
    for (const path of [...PATHS, `/volumes/${middle(count)}`]) {
      const [wall, cpu]: [number[], number[]] = [[], []]
      for (let run = 0; run < runs; run++) {
        const before = process.cpuUsage()
        const began = performance.now()
        const { statusCode, body } = await app.http.inject({ url: path, headers: { authorization: `Bearer ${KEY}` } })
        wall.push(performance.now() - began)
        const { user, system } = process.cpuUsage(before)
        cpu.push((user + system) / 1000)
        if (statusCode !== 200) throw new Error(`${path} answered ${statusCode}: ${body}`)
      }
      const note = `${count} rows of each kind, SQLite`
      print(figureOf(`GET ${path}, time`, 'ms', wall, { note }))
      print(figureOf(`GET ${path}, processor`, 'ms', cpu, { note }))
    }
  } finally {
    await app.stop()
  }
}

const PATHS = [
  '/snapshots?limit=10', '/snapshots?limit=10&tags[team]=team-7', '/volumes?limit=10', '/volumes?limit=10&name=volume-77', '/builds?limit=10', '/builds?limit=10&status=failed', '/images?limit=10', '/images?limit=10&status=failed', '/pushes?limit=10', '/keys?limit=10', '/keys?limit=10&name=key-77'
]

export const benchmarks: Benchmarks = { lists }
