// A server that dies in the middle of `berth cp`, into a real VM and out of it, a file and a folder: in real terminals.
import { mkdir, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { eventually } from '../helpers/eventually.ts'
import { runCommand } from '../helpers/exec.ts'
import { testFolder } from '../helpers/folder.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { createShell, waitFor } from '../helpers/machine.ts'
import { startTestServer } from '../helpers/server.ts'
import { mainFile } from './berth.ts'
import { noTmux, openTerminal } from './terminal.ts'

if (noTmux !== false) {
  t.plan(0, noTmux)
  process.exit()
}

/** More than is copied before the server is gone: files with a hole, which take no space. */
const NEVER_DONE = 4 * 2 ** 30

const server = await startTestServer(t)
const image = await push(server, await busyboxImage(), 'cli/busybox:latest')
const { id } = await createShell(server, image, 'while true; do sleep 1; done', { size: '256MB', overlay_size: '2GB' })
await waitFor(server, id, 'Running')
const guest = async (script: string): Promise<string> => (await runCommand(server, id, { command: ['/bin/sh', '-c', script] })).stdout.trim()
const folder = testFolder(t, { source: { first: 'whole' }, 'old-file': 'what was there before', into: {} })
const here = (name: string): string => join(folder, name)

/** Copies in a terminal, ends the server as soon as `isUnderWay`, and looks at the terminal. */
async function cutOff (t: Test, args: string, isUnderWay: () => Promise<boolean>): Promise<void> {
  const terminal = await openTerminal(t, { env: { BERTH_URL: server.url, BERTH_TOKEN: server.key } })
  await terminal.type(`node ${mainFile} cp ${args}; echo code=$?`)
  await eventually('the copy is under way', isUnderWay, { explain: terminal.screen })
  await server.kill9()
  t.ok(await terminal.shows('code=6'), 'the exit code says that the server is not reached')
  t.match((await terminal.screen()).replaceAll('\n', ''), /berth: the connection to \S+ was lost in the middle of the copy/)
  await terminal.type('clear; stty -a | grep -c " echo .*"; stty -a | grep -c " icanon"')
  t.ok(await terminal.shows('1\n1\n'), 'what is typed is shown, and comes by lines')
  await server.restart()
  await waitFor(server, id, 'Running')
}

/** Whether a file of this folder that is being made has bytes. */
async function hasHalf (path: string): Promise<boolean> {
  const half = (await readdir(path).catch(() => [])).find((name) => name.startsWith('.berth-cp-'))
  return half !== undefined && (await stat(join(path, half)).catch(() => ({ size: 0 }))).size > 0
}

t.test('out of a VM a half file has no name here, and what was there before stays', async (t) => {
  await guest(`mkdir -p /srv; truncate -s ${NEVER_DONE} /srv/large`)
  await cutOff(t, `${id}:/srv/large ${here('old-file')}`, async () => await hasHalf(folder))
  t.equal(await readFile(here('old-file'), 'utf8'), 'what was there before')
  t.strictSame((await readdir(folder)).filter((name) => name.startsWith('.')), [], 'nothing lies beside it')
})

t.test('of a folder out of a VM the files that are there are whole', async (t) => {
  await mkdir(here('tree'))
  // The VM sends them in the order in which its file system has them: the one that is never done is the last.
  const names = (await guest('mkdir /srv/tree; cd /srv/tree; for name in a b c d; do echo whole > $name; done; find . -type f')).split('\n').map((name) => name.replace('./', ''))
  await guest(`truncate -s ${NEVER_DONE} /srv/tree/${names.at(-1) ?? ''}`)
  await cutOff(t, `${id}:/srv/tree/. ${here('tree')}`, async () => await hasHalf(here('tree')))
  t.strictSame(await readdir(here('tree')), names.slice(0, 3).sort(), 'those before it are there')
  for (const name of await readdir(here('tree'))) t.equal(await readFile(here(join('tree', name)), 'utf8'), 'whole\n', name)
})

t.test('into a VM a half file has no name there, and nothing of it is left', async (t) => {
  await writeFile(here('large'), '')
  await truncate(here('large'), NEVER_DONE)
  await guest('mkdir -p /up; echo before > /up/large')
  await cutOff(t, `${here('large')} ${id}:/up/large`, async () => await guest('find /up -name ".berth-put-*" -size +0') !== '')
  await eventually('the half file is gone', async () => await guest('ls -A /up') === 'large', { explain: async () => await guest('ls -lA /up') })
  t.equal(await guest('cat /up/large'), 'before')
})

t.test('of a folder into a VM the files that are there are whole', async (t) => {
  await truncate(here('source/first'), 5)
  await writeFile(here('source/second'), '')
  await truncate(here('source/second'), NEVER_DONE)
  await cutOff(t, `${here('source')} ${id}:/up`, async () => await guest('find /up/source -name ".berth-put-*" -size +0') !== '')
  await eventually('the half file is gone', async () => await guest('ls -A /up/source') === 'first', { explain: async () => await guest('ls -lA /up/source') })
  t.equal(await guest('cat /up/source/first'), 'whole')
})
