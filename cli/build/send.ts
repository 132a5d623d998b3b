// Sends a folder to be built.
import FormData from 'form-data'
import type { Api } from '../api/client.ts'
import type { Session } from '../session.ts'
import type { Build } from '../views.ts'
import { archiveOf } from './context.ts'

/** Fields of the API's form; objects are sent as JSON, and undefined fields are left out. */
export type BuildFields = Readonly<Record<string, string | number | object | undefined>> & { readonly dockerfile?: string, readonly dockerfile_path?: string }

/** Ctrl-C ends the upload. Once that is over, the server builds in any case, and its answer is waited for: only by that can the build be cancelled. */
export async function sendBuild ({ interrupted }: Session, api: Api, folder: string, fields: BuildFields): Promise<Build> {
  const form = new FormData()
  for (const [field, value] of Object.entries(fields)) {
    if (value !== undefined) form.append(field, typeof value === 'object' ? JSON.stringify(value) : String(value))
  }
  form.append('source', await archiveOf(folder, fields.dockerfile === undefined ? fields.dockerfile_path ?? 'Dockerfile' : undefined), { filename: 'source.tar.gz', contentType: 'application/gzip' })
  const upload = new AbortController()
  const stop = (): void => { upload.abort() }
  interrupted.addEventListener('abort', stop, { once: true })
  form.once('end', () => { interrupted.removeEventListener('abort', stop) })
  interrupted.throwIfAborted()
  return await api.call<Build>('POST', '/builds', { upload: { content: form, headers: form.getHeaders() }, signal: upload.signal, isUndo: true })
}
