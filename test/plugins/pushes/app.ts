// What tests of pushes have in common: a server with images to push, and a look at what has arrived.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Push } from '@onkernel/hypeman/resources/pushes'
import type { Test } from 'tap'
import { plugin } from '../../../plugins/pushes/index.ts'
import { startImagesApp, temporaryFolder, KEY, type ImagesApp, type ImagesAppOptions } from '../../helpers/images-app.ts'
import { pushLayout, writeLayout, type OciImage, type OciLayout } from '../../helpers/oci.ts'
import { tar } from '../../helpers/tar.ts'
import { eventually } from '../../helpers/eventually.ts'

/** @param config of pushes */
export async function startPushesApp (t: Test, options: Omit<ImagesAppOptions, 'plugins'> = {}, config: Record<string, unknown> = {}): Promise<ImagesApp> {
  return await startImagesApp(t, { ...options, plugins: [{ plugin, config }] })
}

/** An image of one file that holds `text`. */
export async function textLayout (t: Test, text: string, more: Partial<OciImage> = {}): Promise<OciLayout> {
  return await writeLayout(join(await temporaryFolder(t), 'layout'), [{ layers: [tar([{ path: 'f', content: text }])], ...more }])
}

/** Pushes to the built-in registry, and waits until the image is ready. */
export async function upload (app: ImagesApp, layout: OciLayout, end: string): Promise<void> {
  await pushLayout(layout, `${app.host}/${end}`, { username: 'any', password: KEY })
  const { status, error } = await app.settled(end)
  if (status !== 'ready') throw new Error(`${end}: ${error ?? status}`)
}

/** Asks until the push has ended; the API offers no other way. */
export async function ended (app: Pick<ImagesApp, 'sdk'>, id: string): Promise<Push> {
  return await until(app, id, ({ status }) => status === 'pushed' || status === 'failed')
}

export async function until (app: Pick<ImagesApp, 'sdk'>, id: string, isSo: (push: Push) => boolean): Promise<Push> {
  let last = ''
  return await eventually(`push ${id}`, async () => {
    const push = await app.sdk.pushes.get(id)
    last = push.status
    return isSo(push) && push
  }, { explain: () => `it is still ${last}` })
}

/** The digest of what a registry on plain HTTP has under a reference `host/repository:tag`. */
export async function digestAt (reference: string, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const [, host, repository, tag] = /^([^/]+)\/(.+):([^:]+)$/.exec(reference) ?? []
  const answer = await fetch(`http://${String(host)}/v2/${String(repository)}/manifests/${String(tag)}`, {
    headers: { accept: 'application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json', ...headers }
  })
  if (!answer.ok) throw new Error(`${reference}: ${answer.status}`)
  return `sha256:${createHash('sha256').update(Buffer.from(await answer.arrayBuffer())).digest('hex')}`
}
