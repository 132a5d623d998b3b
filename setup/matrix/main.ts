// `npm run test:matrix -- [--folder FOLDER] [CELL...]`: runs quickstart and some tests on hosts that lack something, and prints the results.
import { chmod, chown, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { createHostCommands } from '../../core/process/run.ts'
import { CELLS, isCellName, type Cell } from './cells.ts'
import { makeCheckout, nodeCommands, prepareBase } from './checkout.ts'
import { runCell } from './steps.ts'

const commands = createHostCommands()

async function runAll (names: readonly (keyof typeof CELLS)[], folder: string): Promise<void> {
  // Users of the cells read it.
  await chmod(folder, 0o755)
  console.log(`checkouts and logs: ${folder}`)
  const base = await prepareBase(commands, folder)
  for (const name of names) {
    const began = performance.now()
    const lines = await tryCell(name, CELLS[name], base, folder)
    console.log([`${name} (${CELLS[name].about}), ${((performance.now() - began) / 1000).toFixed(0)} s`, ...lines].join('\n  '))
  }
}

async function tryCell (name: string, cell: Cell, base: string, folder: string): Promise<readonly string[]> {
  const owner = 1_890_000_000 + process.pid
  const top = join(folder, name)
  const home = join(top, 'home')
  const checkout = join(top, name === 'path-with-space' ? 'a check out' : 'checkout')
  await mkdir(home, { recursive: true })
  await chown(home, owner, owner)
  try {
    await makeCheckout(commands, { base, to: checkout, cell, owner })
    const bin = cell.node === undefined ? {} : { bin: await nodeCommands(commands, folder, cell.node) }
    return await runCell(name, cell, { checkout, folder: top, owner, ...bin })
  } catch (error) {
    return [`not tried: ${error instanceof Error ? error.message : String(error)}`]
  } finally {
    await rm(checkout, { recursive: true, force: true })
  }
}

async function main (args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args: [...args], options: { folder: { type: 'string' } }, allowPositionals: true })
  const unknown = positionals.filter((name) => !isCellName(name))
  if (unknown.length > 0) {
    console.error(`no such cell: ${unknown.join(', ')}; there are ${Object.keys(CELLS).join(', ')}`)
    return 2
  }
  if (process.getuid?.() !== 0) {
    console.error('not tried: hosts of which something is taken away need root')
    return 1
  }
  const names = (positionals.length > 0 ? positionals : Object.keys(CELLS)).filter(isCellName)
  if (values.folder !== undefined) {
    const folder = resolve(values.folder)
    await mkdir(folder, { recursive: true })
    await runAll(names, folder)
    return 0
  }
  const folder = await mkdtemp(join(tmpdir(), 'berth-matrix-'))
  try {
    await runAll(names, folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return 0
}

process.exitCode = await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : String(error))
  return 1
})
