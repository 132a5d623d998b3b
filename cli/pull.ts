// Pulls an image and waits until it is ready.
import { setTimeout as delay } from 'node:timers/promises'
import type { Api } from './api/client.ts'
import { path } from './api/path.ts'
import { Failure } from './failure.ts'
import type { Session } from './session.ts'
import type { Image } from './views.ts'

const EVERY_MS = 300

/** The image once it is ready. If it fails, this fails with the server's reason. */
export async function pullImage (session: Session, api: Api, name: string, tags?: Readonly<Record<string, string>>): Promise<Image> {
  let image = await api.call<Image>('POST', '/images', { body: { name, tags } })
  while (image.status !== 'ready') {
    if (image.status === 'failed') throw new Failure(`${image.name}: ${image.error ?? 'the pull failed'}`)
    session.progress.step(`${image.name}: ${image.status}${image.queue_position == null ? '' : `, place ${image.queue_position} in the queue`}`)
    await delay(EVERY_MS, undefined, { signal: session.interrupted })
    image = await api.call<Image>('GET', path`/images/${image.name}`)
  }
  session.progress.end()
  return image
}
