// Where a secret must never be: in anything of the guest, on disk, in logs, in answers, in what processes were started with. Only the server's and the proxy's memory may hold it.
import type { Test } from 'tap'
import { processesIn } from '../../../../setup/server/leftovers.ts'
import { lines } from '../../../helpers/machine.ts'
import { vmmOf } from '../../../helpers/vmm.ts'
import { ORIGINS } from '../origins/contract.ts'
import { findInBytes, findInFolder, findInMemory, findInProcesses, formsOf, type Word } from '../search.ts'
import type { Secrets } from '../stage.ts'
import type { VmStage, World } from '../vm.ts'

export interface Searched {
  readonly world: World
  readonly stage: VmStage
  /** a value that the guest has in its environment and wrote to its disk: what a search must find, or it would find nothing at all */
  readonly marker: string
}

/** All forms of what all secrets have in common, and of the one whose text is base64. */
export function secretForms ({ REAL_TRACE, REAL_LOGIN }: Secrets): Word[] {
  return [...formsOf(REAL_TRACE.replace(/^trace/, '')), ...formsOf(REAL_LOGIN).map(({ name, bytes }) => ({ name: `the login ${name}`, bytes }))]
}

export async function nowhere (t: Test, searched: Searched, state: 'running' | 'asleep'): Promise<void> {
  const { world: { server, secrets }, stage, marker } = searched
  const words = secretForms(secrets)
  const control: Word = { name: 'marker', bytes: Buffer.from(marker) }
  if (state === 'running') await inMemory(t, searched, words, control)
  await answers(t, searched, words, control)
  await onDisk(t, server.folder, [...words, control], state === 'running' ? 'overlay' : 'memory')
  t.same(await findInProcesses(words), [], 'no process was started with it')
  t.not((await findInProcesses([{ name: 'id', bytes: Buffer.from(stage.id) }])).length > 0, state === 'asleep', 'a search of them finds the machine\'s own, while it runs')
}

async function inMemory (t: Test, { world: { server }, stage }: Searched, words: readonly Word[], control: Word): Promise<void> {
  await stage.guest.run(`echo "$MARKER" > /root/marker; sync; curl -sS https://${ORIGINS.api}/echo/searched -o /dev/null`)
  const machine = await findInMemory(await vmmOf(server, stage.id), [...words, control])
  t.same(machine.found.filter((each) => !each.endsWith(': marker')), [], `nothing in ${mib(machine.bytes)} of the VMM`)
  t.ok(machine.found.length > 0, 'where the marker is')
  const proxy = (await processesIn(server.dataDir)).find(({ command }) => command.includes('proxy/main.js'))
  const inProxy = await findInMemory(proxy?.pid ?? 0, words)
  t.ok(inProxy.found.length > 0, 'the proxy has it in its memory, where the search finds it')
}

async function onDisk (t: Test, folder: string, words: readonly Word[], holder: string): Promise<void> {
  const began = Date.now()
  const { found, files, bytes } = await findInFolder(folder, words)
  t.same(found.filter((each) => !each.endsWith(' marker')), [], `nothing in ${files} files with ${mib(bytes)}`)
  const holders = found.filter((each) => each.endsWith(' marker')).map((each) => each.slice(folder.length))
  t.ok(holders.some((each) => each.includes(holder)), `the marker is in the ${holder}`)
  t.comment(`searched in ${Date.now() - began} ms; the marker is in ${holders.join(', ')}`)
}

/** What the API says, now and before. */
async function answers (t: Test, { world: { server }, stage }: Searched, words: readonly Word[], control: Word): Promise<void> {
  const { id } = stage
  await server.sdk.instances.get(id)
  await server.sdk.instances.list()
  for (const source of ['app', 'vmm', 'hypeman'] as const) await lines(server, id, { source })
  const audit = await server.sdk.get<{ readonly entries: readonly unknown[] }>(`/instances/${id}/egress`)
  t.ok(JSON.stringify(audit).includes('injected'), 'the API tells what was put in')
  const said = Buffer.concat(server.answers)
  t.same(findInBytes(said, words), [], `nothing in ${server.answers.length} answers with ${mib(said.length)}`)
  t.same(findInBytes(said, [control]), ['marker'], 'which hold the marker')
}

function mib (bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`
}
