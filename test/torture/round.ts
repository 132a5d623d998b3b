// One round: clients call and faults come, then everything is put right, and then all that always holds must hold.
import { setTimeout as delay } from 'node:timers/promises'
import { look, type Sight } from './census/sight.ts'
import { complain, complaints, say } from './complaints.ts'
import { INVARIANTS, vmmsOf, type Before, type Invariant } from './invariants.ts'
import type { Call, RoundPlan, Trouble } from './plan.ts'
import { reason, type World } from './world.ts'

/** What goes on behind an answer: removing devices, expanding, compressing, taking over. On a host under load it takes a while. */
const REST_MS = 120_000
const POLL_MS = 1_000
const SAY_EVERY_MS = 15_000

export async function playRound (world: World, plan: RoundPlan, before: Before): Promise<Before> {
  say(`round ${plan.number}: ${plan.clients.flat().length} calls, ${plan.troubles.length} faults`)
  world.faults.clear()
  world.model.nextRound()
  await Promise.all([...plan.clients.map(async (calls, client) => await play(world, calls, client)), ...plan.troubles.map(async (trouble) => await make(world, trouble))])
  await world.server.startAgain()
  const sight = await rest(world, before)
  world.model.learn('instance', idsOf(sight.instances))
  world.model.learn('volume', idsOf(sight.volumes))
  world.model.learn('snapshot', idsOf(sight.snapshots))
  say(`  then: ${sight.instances.map((each) => `${String(each['name'])} ${String(each['state'])}`).join(', ')}; ${sight.volumes.length} volumes, ${sight.snapshots.length} snapshots, ${sight.images.length} images`)
  return { ...before, vmms: vmmsOf(sight.processes) }
}

/** A look before the first round. */
export async function firstLook (world: World): Promise<Before> {
  const { mounts, processes } = await look(world)
  return { mounts, vmms: vmmsOf(processes) }
}

async function play (world: World, calls: readonly Call[], client: number): Promise<void> {
  for (const { afterMs, action } of calls) {
    await delay(afterMs)
    const begun = performance.now()
    try {
      const result = await action.run(world)
      say(`  client ${client}: ${action.text} -> ${result} (from ${(begun / 1000).toFixed(1)})`)
    } catch (error) {
      complain(`the torture itself: ${action.text}: ${error instanceof Error ? error.stack ?? '' : String(error)}`)
    }
  }
}

async function make (world: World, { atMs, forMs, fault }: Trouble): Promise<void> {
  await delay(atMs)
  say(`  fault: ${fault.text}, for ${forMs} ms`)
  world.faults.add(fault.kind)
  const undo = await fault.begin(world)
  await delay(forMs)
  await undo()
  say(`  over: ${fault.text}`)
}

/** Looks until nothing is broken, and complains of what stays so. */
async function rest (world: World, before: Before): Promise<Sight> {
  let said = performance.now()
  for (const deadline = performance.now() + REST_MS; ;) {
    const isLate = performance.now() > deadline
    const sight = await look(world)
    const broken = await breaches(sight, world, before)
    if (broken.length === 0) return sight
    if (isLate || complaints().length > 0) {
      for (const each of broken) complain(each)
      return sight
    }
    if (performance.now() - said > SAY_EVERY_MS) {
      said = performance.now()
      for (const each of broken) say(`  not yet: ${each}`)
    }
    await delay(POLL_MS)
  }
}

async function breaches (sight: Sight, world: World, before: Before): Promise<string[]> {
  const cheap = await breachesOf(INVARIANTS.filter(({ isDear }) => isDear !== true), sight, world, before)
  return cheap.length > 0 ? cheap : await breachesOf(INVARIANTS.filter(({ isDear }) => isDear === true), sight, world, before)
}

async function breachesOf (invariants: readonly Invariant[], sight: Sight, world: World, before: Before): Promise<string[]> {
  const broken: string[] = []
  for (const { sentence, broken: check } of invariants) {
    try {
      for (const each of await check(sight, world, before)) broken.push(`"${sentence}" does not hold: ${each}`)
    } catch (error) {
      broken.push(`"${sentence}" could not be checked: ${reason(error)}`)
    }
  }
  return broken
}

function idsOf (rows: Sight['instances']): ReadonlySet<string> {
  return new Set(rows.map(({ id }) => String(id)))
}
