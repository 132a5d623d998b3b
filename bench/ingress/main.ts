// `npm run bench -- ingress`: an instance through the ingress against the same instance behind an nginx with nothing but `proxy_pass`, in the same place.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdir } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createHostCommands } from '../../core/process/run.ts'
import { eventually } from '../../test/helpers/eventually.ts'
import { freePort } from '../../test/helpers/free-port.ts'
import { ownNetwork } from '../../test/helpers/own-network.ts'
import { boot, field, startBerth, type Berth } from '../berth.ts'
import { inFolder } from '../folder.ts'
import { figureOf, print, series, takeTurns, type FigureOptions } from '../harness.ts'
import type { Benchmarks, BenchOptions } from '../options.ts'
import { templatesOff } from '../templates.ts'
import { startBareNginx } from './bare.ts'
import { guestArgv, guestPort, largeBytes, makeWebImage } from './image.ts'

interface Way { readonly name: string, readonly port: number }

const host = 'bench.test'
const connections = 50
const secondsEach = 4
/** Each measurement takes a second or more, and they hardly differ. */
const mostDownloads = 5
const load = fileURLToPath(new URL('../api/load.js', import.meta.url))
const run = promisify(execFile)

async function ingress ({ runs }: BenchOptions): Promise<void> {
  const commands = createHostCommands()
  const { namespace, cidr } = ownNetwork()
  try {
    await inFolder(async (folder, signal) => {
      const [port, barePort] = [await freePort('127.0.0.1'), await freePort('127.0.0.1')]
      const plugins = {
        ...templatesOff(),
        networking: { config: { namespace, uplink: 'none', cidr } },
        ingress: { config: { listen: { address: '127.0.0.1', http: [port] } } }
      }
      const berth = await startBerth({ folder: join(folder, 'server'), plugins, signal }, await makeWebImage())
      try {
        const id = await boot(berth, { name: 'web', argv: guestArgv, size: '512MB' })
        await berth.api.call('POST', '/ingresses', { name: 'web', rules: [{ match: { hostname: host }, target: { instance: 'web', port: guestPort } }] })
        const bareFolder = join(folder, 'bare')
        await mkdir(bareFolder)
        await chmod(folder, 0o711)
        const bare = await startBareNginx({ folder: bareFolder, namespace: `/run/netns/${namespace}`, port: barePort, target: `${await addressOf(berth, id)}:${guestPort}` })
        try {
          await sleepers(berth, id, port, runs)
          await measure({ name: 'through the ingress', port }, { name: 'bare nginx with proxy_pass', port: barePort }, runs)
        } finally {
          await bare.end()
        }
      } finally {
        await berth.server.stop()
      }
    })
  } finally {
    if (existsSync(`/run/netns/${namespace}`)) await commands.run('ip', ['netns', 'delete', namespace])
  }
}

/** A small answer of an nginx is most of what a program does for a first byte; what it takes beyond that is the program's own. */
async function sleepers ({ api }: Berth, id: string, port: number, runs: number): Promise<void> {
  const [woken, alone, both] = [series('first byte of a sleeper'), series('restore alone'), series('restore, then the first byte')]
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const began = performance.now()
    await work()
    return performance.now() - began
  }
  const asleep = async (work: () => Promise<void>): Promise<void> => {
    await api.call('POST', `/instances/${id}/standby`)
    await work()
  }
  // The program reports that it starts, and listens a moment later.
  await eventually('the program to listen', async () => await firstByte(port).then(() => true, () => false))
  const restore = async (): Promise<unknown> => await api.call('POST', `/instances/${id}/restore`)
  await takeTurns({
    runs,
    sides: [
      async (_run, keep) => { await asleep(async () => { keep(woken, await timed(async () => { await firstByte(port) })) }) },
      async (_run, keep) => {
        await asleep(async () => {
          const restored = await timed(restore)
          keep(alone, restored)
          keep(both, restored + await timed(async () => { await firstByte(port) }))
        })
      }
    ]
  })
  const note = 'GET of 100 bytes over HTTP/1.1 on a new connection; the program is an nginx in a VM with one vCPU'
  print(figureOf('first byte of a sleeper through the ingress', 'ms', woken.values, { other: alone, ratioAtMost: 1.3, note }))
  print(figureOf('first byte of a sleeper through the ingress', 'ms', woken.values, { other: both, note: `${note}; the other side restores it by hand and asks it then` }))
}

async function firstByte (port: number): Promise<void> {
  const asked = request({ host: '127.0.0.1', port, path: '/small', headers: { host }, agent: false })
  asked.end()
  const [response] = await once(asked, 'response')
  if (response.statusCode !== 200) throw new Error(`the sleeper answered ${String(response.statusCode)}`)
  response.resume()
  await once(response, 'end')
}

async function measure (ours: Way, bare: Way, runs: number): Promise<void> {
  const note = `GET of 100 bytes over HTTP/1.1 on kept connections, ${secondsEach} s a run; the program is an nginx in a VM with one vCPU`
  await side('requests through the ingress', 'requests/s', ours, bare, runs, async (way) => await requests(way, connections), { ratioAtLeast: 0.8, note: `${connections} connections; ${note}` })
  await side('latency through the ingress', 'ms', ours, bare, runs, async (way) => 1000 / await requests(way, 1), { ratioAtMost: 1.25, note: `mean at one connection; ${note}` })
  await side('download through the ingress', 'MB/s', ours, bare, Math.min(runs, mostDownloads), download, { ratioAtLeast: 0.9, note: `one answer of ${largeBytes / 1024 ** 3} GB, by curl` })
}

async function side (name: string, unit: string, ours: Way, bare: Way, runs: number, once: (way: Way) => Promise<number>, options: FigureOptions): Promise<void> {
  const [mine, theirs] = [series(name), series(bare.name)]
  await takeTurns({ runs, sides: [async (_run, keep) => keep(mine, await once(ours)), async (_run, keep) => keep(theirs, await once(bare))] })
  print(figureOf(name, unit, mine.values, { other: theirs, ...options }))
}

async function requests ({ port }: Way, count: number): Promise<number> {
  const { stdout } = await run(process.execPath, [load, '127.0.0.1', String(port), '/small', String(count), String(secondsEach)], { env: { ...process.env, BENCH_HOST: host } })
  return Number(stdout)
}

async function download ({ port }: Way): Promise<number> {
  const { stdout } = await run('curl', ['--silent', '--show-error', '--fail', '--noproxy', '*', '--header', `Host: ${host}`, '--output', '/dev/null', '--write-out', '%{size_download} %{time_total}', `http://127.0.0.1:${port}/large`])
  const [bytes = 0, seconds = 0] = stdout.split(' ').map(Number)
  if (bytes !== largeBytes) throw new Error(`the download had ${bytes} bytes`)
  return bytes / seconds / 1024 ** 2
}

async function addressOf ({ api }: Berth, id: string): Promise<string> {
  const ip = field(field(await api.call('GET', `/instances/${id}`), 'network'), 'ip')
  if (typeof ip !== 'string') throw new Error('the instance has no address')
  return ip
}

export const benchmarks: Benchmarks = { ingress }
