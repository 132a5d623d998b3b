// Images of a registry that lies: each is ready or has failed with a reason, and leaves no half of itself.
import { setTimeout as delay } from 'node:timers/promises'
import { folders, startImagesApp, type ImagesApp } from '../helpers/images-app.ts'
import type { Fuzz } from './fuzz.ts'
import { Hold } from './helpers/hold.ts'
import { HostileRegistry } from './helpers/hostile-registry.ts'
import { watchUnhandled } from './helpers/unhandled.ts'

const PATIENCE_MS = 120_000
const LOOK_MS = 20

async function settled (app: ImagesApp, name: string, hold: Hold): Promise<Record<string, unknown> | undefined> {
  for (const until = performance.now() + PATIENCE_MS; performance.now() < until; await delay(LOOK_MS)) {
    hold.pause()
    const { body } = await app.request('GET', `/images/${encodeURIComponent(name)}`)
    if (body['status'] === 'ready' || body['status'] === 'failed') return body
  }
  return undefined
}

async function pullFault (app: ImagesApp, name: string, hold: Hold): Promise<string | undefined> {
  const { status, body } = await app.request('POST', '/images', { name })
  if (status === 500 || body['code'] === 'internal_error') return `${status} ${JSON.stringify(body)}`
  if (status >= 400) return typeof body['message'] === 'string' ? undefined : `${status} ${JSON.stringify(body)}`
  const image = await settled(app, name, hold)
  if (image === undefined) return 'it is neither ready nor failed'
  if (image['status'] === 'failed' && (typeof image['error'] !== 'string' || image['error'] === '')) return `no reason: ${JSON.stringify(image)}`
  const gone = await app.request('DELETE', `/images/${encodeURIComponent(name)}`)
  return gone.status === 204 ? undefined : `DELETE answers ${gone.status} ${JSON.stringify(gone.body)}`
}

export const fuzz: Fuzz = {
  seeds: [],
  isSlow: true,
  async start (atEnd) {
    const registry = new HostileRegistry()
    const host = await registry.listen()
    atEnd(() => { registry.close() })
    const app = await startImagesApp({ teardown: atEnd }, { registry: false })
    const unhandled = watchUnhandled(atEnd)
    const hold = new Hold()
    let cases = 0
    return async random => {
      const input = registry.play(random)
      hold.begin()
      const from = app.lines.length
      const failure = await pullFault(app, `${host}/image-${cases++}:a`, hold)
      // Level 50 is an error of the server's own.
      const error = app.lines.slice(from).find(({ level }) => Number(level) >= 50)
      const left = (await folders(app)).join()
      const fault = failure ?? unhandled() ?? hold.fault() ?? (error === undefined ? undefined : JSON.stringify(error)) ?? (left === '' ? undefined : `there is left: ${left}`)
      return { input, ...fault === undefined ? {} : { fault } }
    }
  }
}
