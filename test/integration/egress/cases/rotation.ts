// A credential that changes while a hundred requests are under way.
import type { Test } from 'tap'
import { startCommand } from '../../../helpers/exec.ts'
import { machineMs, ORIGINS } from '../origins/contract.ts'
import { valuesOf } from '../origins/host.ts'
import type { VmStage } from '../vm.ts'

const IN_FLIGHT = 100
/** So many connections the proxy makes to one origin. The other requests wait in it, and get their header later. */
const AT_ORIGIN = 64
/**
 * What was written before the answer may still lie in the origin's socket while its process waits for a processor. Requests that were begun in the guest after the
 * answer are told apart exactly, by their path; this is for the others.
 */
const UNREAD_MS = 3000

/** @returns the stage as it is afterwards */
export async function rotation (t: Test, stage: VmStage): Promise<VmStage> {
  const { server, id, outside, secrets } = stage
  const next = `${secrets.REAL_KEY}after`
  const [old, fresh] = [`Bearer ${secrets.REAL_KEY}`, `Bearer ${next}`]
  const before = (await outside.seen()).length
  const command = await startCommand(server, id, { command: ['node', '/clients/load.js', `https://${ORIGINS.api}`, 'mock-API_KEY', String(IN_FLIGHT)] })
  const output = createLines(command)
  const held = async (): Promise<number> => (await outside.seen()).slice(before).filter(({ url }) => url.startsWith('/held')).length
  while (await held() < AT_ORIGIN) await output.pause()
  const began = machineMs()
  // All of them are answered now, and the guest goes on with others while the value changes.
  const [answered] = await Promise.all([server.sdk.instances.update(id, { env: { REAL_KEY: next } }).then(() => machineMs()), outside.open()])
  command.write('1\n')
  await output.line('generation 1')
  // Until as many again have come as were in flight.
  while ((await outside.seen()).filter(({ url }) => url.includes('generation=1')).length < 2 * IN_FLIGHT) await output.pause()
  command.closeStdin()
  t.same(await command.result, { exitCode: 0 })
  const loads = (await outside.seen()).slice(before).filter(({ url }) => url.startsWith('/held'))
  const kinds = loads.map((seen) => ({ ...seen, key: valuesOf(seen.headers, 'authorization').join() }))
  t.same(kinds.filter(({ key }) => key !== old && key !== fresh).map(({ key }) => key.length), [], 'A46: each has the old value or the new one, whole')
  const counts = { old: kinds.filter(({ key }) => key === old).length, fresh: kinds.filter(({ key }) => key === fresh).length }
  t.ok(counts.old >= AT_ORIGIN && counts.fresh >= 2 * IN_FLIGHT, `${counts.old} with the old value, ${counts.fresh} with the new one`)
  t.same(kinds.filter(({ key, url }) => url.includes('generation=1') && key === old), [], 'A46: none that began after the answer has the old value')
  const late = kinds.filter(({ key, atMs }) => key === old && atMs > answered + UNREAD_MS)
  t.same(late.map(({ atMs }) => atMs - answered), [], 'A46: and none with the old value comes later')
  const last = Math.max(...kinds.filter(({ key }) => key === old).map(({ atMs }) => atMs)) - answered
  t.comment(`the change took ${(answered - began).toFixed(1)} ms; the last request with the old value came ${(-last).toFixed(1)} ms before its answer; ${output.last()}`)
  await outside.change({ bearer: next, basic: secrets.REAL_LOGIN })
  return { ...stage, secrets: { ...secrets, REAL_KEY: next } }
}

interface Output {
  line (text: string): Promise<void>
  last (): string
  /** Waits for nothing but a moment: what the origins see has no event here. */
  pause (): Promise<void>
}

function createLines (command: Awaited<ReturnType<typeof startCommand>>): Output {
  let text = ''
  let wake = (): void => {}
  command.onOutput((_stream, data) => {
    text += data.toString()
    wake()
  })
  return {
    async line (wanted) {
      while (!text.split('\n').includes(wanted)) {
        const ended = await Promise.race([new Promise<undefined>((resolve) => { wake = () => resolve(undefined) }), command.result])
        if (ended !== undefined) throw new Error(`the load has ended: ${text}`)
      }
    },
    last: () => text.trim().split('\n').at(-1) ?? '',
    pause: async () => { await new Promise((resolve) => setTimeout(resolve, 50)) }
  }
}
