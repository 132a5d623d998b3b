// An installation that is killed before any of its steps, and what the next ones make of that.
import t from 'tap'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { appendFile, cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { join } from 'node:path'
import { shareOfCommit } from '../../../setup/test/share-of-commit.ts'
import { testFolder } from '../../helpers/folder.ts'
import { changeWorld, smallCheckout, treeOf, worldOf, type Checkout } from './small-checkout.ts'
import { dieBefore } from './steps.ts'

const PARTS = 8

const folder = testFolder(t)
const old = await smallCheckout(join(folder, 'old'), { name: 'old', schema: 1, units: ['berth-gone.socket'] })
const next = await smallCheckout(join(folder, 'next'), { name: 'next', schema: 2, units: ['berth-extra.socket'] })
const third = await smallCheckout(join(folder, 'third'), { name: 'third', schema: 3, units: [] })

let roots = 0
async function rootOf (from?: string): Promise<string> {
  const root = join(folder, `root-${++roots}`)
  // No system is without these.
  if (from === undefined) for (const path of ['usr/bin', 'usr/lib']) await mkdir(join(root, path), { recursive: true })
  else await cp(from, root, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
  return root
}

async function installed (...checkouts: readonly Checkout[]): Promise<string> {
  const root = await rootOf()
  for (const checkout of checkouts) await checkout.install(root)
  return root
}

/** Kills an installation before each of its steps that this commit plays. `root` is one that is thrown away after `look`. */
async function killedAtEachStep (from: string, checkout: Checkout, look: (root: string, step: string) => Promise<void>): Promise<number> {
  const whole = await rootOf(from)
  const { steps } = await dieBefore(whole, Infinity, async before => await checkout.install(whole, before))
  await rm(whole, { recursive: true })
  for (const number of shareOfCommit(steps.map((_step, index) => index + 1), PARTS)) {
    const root = await rootOf(from)
    const { died, steps: done } = await dieBefore(root, number, async before => await checkout.install(root, before))
    if (!died) throw new Error(`step ${number} did not come`)
    await look(root, `killed before step ${number}, ${done.at(-1)}`)
    await rm(root, { recursive: true })
  }
  return steps.length
}

/** The installation is over, and only what it set aside is left to be removed. */
async function isOver (root: string): Promise<boolean> {
  const path = join(root, 'usr/lib/berth.berth-journal')
  return existsSync(path) ? (JSON.parse(await readFile(path, 'utf8')) as { isDone: boolean }).isDone : (JSON.parse(await readFile(join(root, 'usr/lib/berth/package.json'), 'utf8')) as { name: string }).name === 'next'
}

const running = (root: string): unknown => ({ running: worldOf(root).running, schema: worldOf(root).database?.schema })

t.test('an upgrade that is killed before any step', async (t) => {
  const before = await installed(old)
  const after = await installed(old, next)
  const [oldTree, nextTree] = [treeOf(before), treeOf(after)]
  t.match(worldOf(before), { running: { 'berth.service': 'old', 'berth-gone.socket': 'old' }, database: { schema: 1 } })
  const steps = await killedAtEachStep(before, next, async (killed, step) => {
    const over = await isOver(killed)
    const [worked, tree] = over ? [after, nextTree] : [before, oldTree]

    const again = await rootOf(killed)
    changeWorld(again, (world) => { world.broken = 'next' })
    if (!over) {
      await t.rejects(next.install(again), /did not come up/, step)
      t.same(treeOf(again), tree, `the same again, which does not come up, gives the files of the version that worked: ${step}`)
      t.same(running(again), running(worked), `and it runs, with its database: ${step}`)
    }

    const other = await rootOf(killed)
    changeWorld(other, (world) => { world.broken = 'third' })
    await t.rejects(third.install(other), /did not come up/, step)
    t.same(treeOf(other), tree, `a third version, which does not come up, gives the files of the version that worked: ${step}`)
    t.same(running(other), running(worked), `and it runs, with its database: ${step}`)

    const fine = await rootOf(killed)
    await next.install(fine)
    t.same(treeOf(fine), nextTree, `the same again leaves the new version alone: ${step}`)
    t.same(running(fine), running(after), step)

    const removed = await rootOf(killed)
    await old.uninstall(removed)
    t.same(treeOf(removed).map(line => line.split(' ')[0]), ['etc/', 'etc/berth/', 'etc/berth/berth.yaml', 'etc/berth/egress.yaml', 'usr/', 'usr/bin/', 'usr/lib/'], `it is removed whole: ${step}`)
    for (const root of [again, other, fine, removed]) await rm(root, { recursive: true })
  })
  t.ok(steps > 40, `${steps} steps`)
})

t.test('of several upgrades that are cut off one after the other, each goes back to the last version that worked', async (t) => {
  const before = await installed(old)
  const cutOff = await rootOf(before)
  // The server has migrated the database, and the journal is not done yet.
  const { steps } = await dieBefore(cutOff, Infinity, async step => await next.install(cutOff, step))
  const restarted = steps.findIndex(step => step.includes('restart berth.service')) + 2
  const twice = await rootOf(before)
  await dieBefore(twice, restarted, async step => await next.install(twice, step))
  t.match(worldOf(twice), { database: { schema: 2 }, running: { 'berth.service': 'next' } })
  await killedAtEachStep(twice, third, async (killed, step) => {
    if ((JSON.parse(await readFile(join(killed, 'usr/lib/berth.berth-journal'), 'utf8').catch(() => '{"isDone":true}')) as { isDone: boolean }).isDone) return
    changeWorld(killed, (world) => { world.broken = 'next' })
    await t.rejects(next.install(killed), /did not come up/, step)
    t.same(treeOf(killed), treeOf(before), step)
    t.same(running(killed), running(before), step)
  })
})

t.test('a first installation that is killed before any step', async (t) => {
  const empty = await rootOf()
  const after = treeOf(await installed(next))
  await killedAtEachStep(empty, next, async (killed, step) => {
    const [fine, failing] = [await rootOf(killed), await rootOf(killed)]
    await next.install(fine)
    t.same(treeOf(fine), after, `the same again leaves it alone: ${step}`)
    if (!await isOver(killed).catch(() => false)) {
      changeWorld(failing, (world) => { world.broken = 'third' })
      await t.rejects(third.install(failing), /did not come up/, step)
      t.same(treeOf(failing), treeOf(empty), `another one, which fails, leaves nothing: ${step}`)
      t.same(worldOf(failing).running, {}, step)
    }
    for (const root of [fine, failing]) await rm(root, { recursive: true })
  })
})

t.test('a configuration that an operator has written over that of a cut-off installation stays', async (t) => {
  const root = await rootOf()
  const { steps } = await dieBefore(root, Infinity, async step => await next.install(root, step))
  const killed = await rootOf()
  await dieBefore(killed, steps.findIndex(step => step.includes('daemon-reload')) + 1, async step => await next.install(killed, step))
  await appendFile(join(killed, 'etc/berth/egress.yaml'), '# mine\n')
  changeWorld(killed, (world) => { world.broken = 'next' })
  await t.rejects(next.install(killed), /did not come up/)
  t.match(await readFile(join(killed, 'etc/berth/egress.yaml'), 'utf8'), /# mine/)
  t.notOk(existsSync(join(killed, 'etc/berth/berth.yaml')))
})

/** The program itself, into a root. @param preloaded module that is loaded before it */
async function program (root: string, preloaded?: string, { isRead = true } = {}): Promise<{ code: unknown, output: string }> {
  const child = spawn(process.execPath, [...preloaded === undefined ? [] : ['--import', preloaded], join(next.folder, 'dist/setup/service/main.js'), 'install', '--root', root, '--node', '/usr/bin/node'], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    if (isRead) stream.on('data', (text: Buffer) => { output += text.toString() })
    else stream.destroy()
  }
  const [code] = await once(child, 'close')
  return { code, output }
}

t.test('a signal takes an upgrade back, however often it comes, and the program ends as a shell has it of one that a signal ended', async (t) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    const root = await rootOf()
    await old.install(root)
    const before = treeOf(root)
    const preloaded = join(folder, `${signal}.mjs`)
    // When the new program has come, and when the old one is back.
    await writeFile(preloaded, `import { promises } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
const { rename } = promises
promises.rename = async (from, to) => {
  await rename(from, to)
  if (!to.endsWith('/usr/lib/berth')) return
  process.kill(process.pid, '${signal}')
  await new Promise(resolve => setTimeout(resolve, 50))
}
syncBuiltinESMExports()
`)
    const { code, output } = await program(root, preloaded)
    t.equal(code, 128 + constants.signals[signal], `${signal}: ${output}`)
    t.match(output, /everything goes back[^]*interrupted by SIG/)
    t.same(treeOf(root), before)
  }
})

t.test('an upgrade whose output nobody reads any more goes on to its end', async (t) => {
  const [root, whole] = [await rootOf(), await rootOf()]
  for (const each of [root, whole]) await old.install(each)
  t.equal((await program(root, undefined, { isRead: false })).code, 0)
  await next.install(whole)
  t.same(treeOf(root), treeOf(whole))
})
