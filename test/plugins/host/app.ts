// A server with the host plugin alone, and a plugin of the test's own that has processes.
import type { Test } from 'tap'
import { Type } from 'typebox'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import type { KeptProcess } from '../../../core/process/register.ts'
import { plugin as host } from '../../../plugins/host/index.ts'
import { ADMIN_KEY, bareApp, type BareApp } from '../../core/bare-app.ts'

export interface HostApp extends BareApp {
  readonly url: string
  /** what the plugin of the test keeps running */
  readonly kept: KeptProcess[]
  get<T> (path: string, key?: string): Promise<{ readonly status: number, readonly body: T, readonly text: string }>
  /** A key with these scopes. */
  keyFor (...scopes: string[]): Promise<string>
  /** Events of a stream, until the caller has enough. */
  follow (path: string, headers?: Readonly<Record<string, string>>): AsyncGenerator<{ readonly id?: string, readonly event?: string, readonly data: unknown }>
}

export async function startHost (t: Test, { config = {}, log = {} }: { readonly config?: Record<string, unknown>, readonly log?: Record<string, unknown> } = {}): Promise<HostApp> {
  const kept: KeptProcess[] = []
  const keeper = definePlugin({
    manifest: { id: 'keeper', provides: [], requires: ['processes'], config: Type.Object({}, { additionalProperties: false }) },
    create: ({ processes }) => ({ stop: (() => { const leave = processes.add(() => kept); return async () => { await Promise.resolve(leave()) } })() })
  })
  const bare = await bareApp(t, { log, plugins: { host: { config } } }, { plugins: [host, keeper] })
  await bare.app.start()
  const url = bare.app.address()
  const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` })
  return {
    ...bare,
    url,
    kept,
    async get (path, key = ADMIN_KEY) {
      const answer = await fetch(url + path, { headers: bearer(key) })
      const text = await answer.text()
      return { status: answer.status, body: JSON.parse(text), text }
    },
    async keyFor (...scopes) {
      const answer = await fetch(`${url}/keys`, { method: 'POST', headers: { ...bearer(ADMIN_KEY), 'content-type': 'application/json' }, body: JSON.stringify({ name: 'one', scopes }) })
      return (await answer.json() as { key: string }).key
    },
    async * follow (path, headers = {}) {
      const ends = new AbortController()
      const answer = await fetch(url + path, { headers: { ...bearer(ADMIN_KEY), ...headers }, signal: ends.signal })
      if (answer.status !== 200 || answer.body === null) throw new Error(`${answer.status} ${await answer.text()}`)
      try {
        let rest = ''
        for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
          const blocks = (rest + piece).split('\n\n')
          rest = blocks.pop() ?? ''
          for (const block of blocks) {
            const found = Object.fromEntries(block.split('\n').filter((line) => !line.startsWith(':')).map((line): [string, string] => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]))
            if (found['data'] !== undefined) yield { ...found, data: JSON.parse(found['data']) }
          }
        }
      } finally {
        ends.abort()
      }
    }
  }
}
