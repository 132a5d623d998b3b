// Between the command and a real server: passes everything on, and makes what differs from run to run the same in every run, so that output can be compared as a whole.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** What no instant of a test is away from by more than half an hour. */
const AGE_MS = 3.5 * 3_600_000

export interface SteadyRelay { readonly url: string, readonly port: number }

/** Ids become `id00…01` in the order in which they are seen, instants three hours ago, digests ones, and the address of the server's registry `registry`. */
export async function startSteadyRelay (t: Test, server: { readonly url: string }): Promise<SteadyRelay> {
  const ids = new Map<string, string>()
  const instant = new Date(Date.now() - AGE_MS).toISOString()
  const steadyId = (id: string): string => {
    const known = ids.get(id) ?? `id${String(ids.size + 1).padStart(10, '0')}${'0'.repeat(12)}`
    ids.set(id, known)
    return known
  }
  const steady = (text: string): string => text
    .replaceAll(/(?<=")[a-z0-9]{24}(?=")/g, steadyId)
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, instant)
    .replaceAll(/sha256:[0-9a-f]{64}/g, `sha256:${'1'.repeat(64)}`)
    .replaceAll(new URL(server.url).host, 'registry')
  const relay = createServer((request, reply) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk)).once('end', () => {
      const { authorization = '', 'content-type': type } = request.headers
      const hasBody = request.method !== 'GET' && request.method !== 'DELETE'
      fetch(new URL(request.url ?? '/', server.url), { method: request.method ?? 'GET', headers: { authorization, ...type === undefined || !hasBody ? {} : { 'content-type': type } }, ...hasBody ? { body: Buffer.concat(chunks) } : {} })
        .then(async (answer) => reply.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' }).end(steady(await answer.text())))
        .catch((error: unknown) => reply.destroy(error instanceof Error ? error : new Error(String(error))))
    })
  })
  await new Promise<void>((resolve) => { relay.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => { relay.close() })
  const { port } = relay.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port }
}
