// The torture itself, in namespaces of its own: main.ts makes them and starts this. Arguments: folder, seed, seconds, folder for what a failure leaves to look at.
import { existsSync } from 'node:fs'
import { cp, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isProxy, isVmm, isWorker, processes } from './census/processes.ts'
import { complain, complaints, say } from './complaints.ts'
import { planRound } from './plan.ts'
import { firstLook, playRound } from './round.ts'
import { buildStage } from './stage/stage.ts'
import { watch } from './watch.ts'
import type { World } from './world.ts'

const END_MS = 30_000

async function torture (world: World, seed: number, seconds: number): Promise<void> {
  let before = await firstLook(world)
  const end = watch(world)
  const untilMs = performance.now() + seconds * 1000
  let round = 0
  for (; complaints().length === 0 && performance.now() < untilMs; round++) before = await playRound(world, planRound(seed, round, world.stage.database.hang !== undefined), before)
  await end()
  say(`${round} rounds of seed ${seed}`)
}

/** Removes everything through the API, ends the server, and looks at what is left. */
async function cleanUp (world: World): Promise<void> {
  for (const [list, name] of [['/ingresses', 'id'], ['/webhooks', 'id'], ['/builders', 'id'], ['/instances', 'id'], ['/snapshots', 'id'], ['/volumes', 'id'], ['/images', 'name']] as const) {
    for (const each of (await world.call('GET', list)).items()) {
      const path = `${list}/${encodeURIComponent(String(each[name]))}`
      const { status, summary } = await world.call('DELETE', path)
      if (status !== 204) complain(`DELETE ${path} at the end: ${summary}`)
    }
  }
  await world.server.stop()
  const left = async (): Promise<string[]> => [
    ...(await processes()).filter((each) => isVmm(each) || isProxy(each) || isWorker(each) || each.command[0] === 'dnsmasq').map(({ pid, command }) => `process ${pid}: ${command.join(' ').slice(0, 100)}`),
    ...existsSync(`/run/netns/${world.stage.namespace}`) ? [`the network namespace ${world.stage.namespace}`] : []
  ]
  for (const deadline = performance.now() + END_MS; performance.now() < deadline && (await left()).length > 0;) await delay(200)
  for (const each of await left()) complain(`left at the end: ${each}`)
}

/** The logs, for whoever has to find the reason. */
async function keepEvidence (folder: string, evidence: string): Promise<void> {
  await rm(evidence, { recursive: true, force: true })
  await mkdir(evidence, { recursive: true })
  const data = join(folder, 'server/data')
  await cp(join(folder, 'server/server.log'), join(evidence, 'server.log'))
  if (existsSync(join(data, 'egress/proxy.log'))) await cp(join(data, 'egress/proxy.log'), join(evidence, 'proxy.log'))
  await cp(join(data, 'instances'), join(evidence, 'instances'), { recursive: true, filter: (path) => !/\.(?:ext4|img)$|\/(?:memory|state|standby.*|restore.*|replacement.*|.*\.sock)$/.test(path) }).catch(() => undefined)
  say(`logs are in ${evidence}`)
}

const [folder = '', seed = '', seconds = '', evidence = ''] = process.argv.slice(2)
const ends: (() => unknown)[] = []
try {
  // Half of the seeds have SQLite, which cannot be taken away: the server is in it. Half of either have templates.
  const world = await buildStage(folder, { hasDatabaseServer: Number(seed) % 2 === 1, hasTemplates: (Number(seed) >> 1) % 2 === 1 }, (work) => ends.push(work))
  await torture(world, Number(seed), Number(seconds))
  if (complaints().length > 0) await keepEvidence(folder, evidence)
  else await cleanUp(world)
} catch (error) {
  complain(error instanceof Error ? error.stack ?? error.message : String(error))
  await keepEvidence(folder, evidence).catch(() => undefined)
}
for (const end of ends.reverse()) await end()
for (const each of complaints()) console.log(`seed ${seed} fails: ${each}`)
process.exit(complaints().length === 0 ? 0 : 1)
